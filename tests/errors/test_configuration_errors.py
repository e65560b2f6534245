"""Each mistake of ``configuration_cases.py``, made in a file and reported by the command."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.errors.configuration_cases import MISTAKES, Mistake
from tests.support.cases import all_cases
from tests.support.forked import executable

SECRET = "sk-0123456789abcdef"  # not a real one


def report(program: str, home: Path, mistake: Mistake) -> str:
    """Run the command of a mistake; returns its output, with the home folder shortened."""
    path = home / mistake.file
    path.parent.mkdir(parents=True)
    path.write_text(mistake.text + "\n")
    done = subprocess.run(
        [program, *mistake.command],
        check=False,
        capture_output=True,
        cwd=home,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        env={"PATH": os.defpath, "HOME": str(home), "COPILOT_HOME": str(home)},
    )
    assert done.returncode not in (0, -1)
    return (done.stdout + done.stderr).replace(str(home), "~/.jumpseat")


@pytest.mark.parametrize("group", MISTAKES)
def test_a_mistake_is_reported_with_file_line_key_and_expectation(tmp_path: Path, group: str) -> None:
    mistakes = MISTAKES[group]
    homes = [tmp_path / str(number) for number in range(len(mistakes))]
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(partial(report, executable()), homes, mistakes.values()))
    with all_cases() as case:
        for (name, mistake), output in zip(mistakes.items(), outputs, strict=True):
            with case(name):
                assert mistake.message in output, f"{mistake.message}\n!=\n{output}"
                assert SECRET not in output
                assert "Traceback" not in output
