"""The official reducers of the protocol, from the crates ``ahp`` and ``ahp-types``, as a program.

``UPDATE_AHP=1 pytest tests/ahp/test_reducers.py`` builds the program, which takes minutes at first, and writes the
recorded states anew. Other runs use the program only if it is built.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from tests.support.toolchains import tool_folder

Case: TypeAlias = dict[str, Any]

SOURCE: Final = Path(__file__).parent / "reference"
UPDATE: Final = bool(os.environ.get("UPDATE_AHP"))
BUILD_S: Final = 1800


def states(cases: Iterable[Case]) -> list[Any]:
    """Return the states to which the official reducers come; the test is skipped without the program."""
    with tool_folder("ahp-reference") as folder:
        program = folder / "target" / "debug" / "ahp-reference"
        if UPDATE:
            shutil.copytree(SOURCE, folder, dirs_exist_ok=True)
            environ = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
            subprocess.run(["cargo", "build", "--quiet"], cwd=folder, env=environ, timeout=BUILD_S, check=True)
        elif not program.exists():
            pytest.skip("the official reducers are not built: UPDATE_AHP=1 builds them once")
        lines = "".join(f"{json.dumps(case)}\n" for case in cases)
        done = subprocess.run([program], input=lines, capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
