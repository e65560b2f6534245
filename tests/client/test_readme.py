"""The first example of the README runs unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "clients" / "python" / "README.md"


def test_first_example_prints_the_answer(tmp_path: Path) -> None:
    head, code, _ = README.read_text(encoding="utf-8").split("```", 2)
    assert len(head.splitlines()) < 20
    program = tmp_path / "example.py"
    program.write_text(code.removeprefix("python"), encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        env={**os.environ, "COPILOT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (process.stdout, process.stderr, process.returncode) == ("Shipped!\n", "", 0)
