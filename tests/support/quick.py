"""Which modules ``make quick`` leaves out: those whose tests start programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]

_SUBPROCESS: Final = re.compile(r"^(?:import|from) subprocess\b", re.MULTILINE)
_HELPERS: Final = re.compile(r"^from (tests[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


@cache
def starts_programs(path: Path) -> bool:
    """Return whether a test module or a helper of it imports ``subprocess``, as ``tests/support/server.py`` does.

    Helpers are the modules of ``tests`` that it imports, and each ``conftest.py`` of its folders below ``tests``.
    """
    text = path.read_text(encoding="utf-8")
    return _SUBPROCESS.search(text) is not None or any(map(starts_programs, _helpers(path, text)))


def _helpers(path: Path, text: str) -> Iterator[Path]:
    for folder in path.parents:
        conftest = folder / "conftest.py"
        if TESTS in folder.parents and conftest != path and conftest.is_file():
            yield conftest
    for package, names in _HELPERS.findall(text):
        place = TESTS.parent.joinpath(*package.split("."))
        candidates = [place, *(place / name for name in re.findall(r"\w+", names))]
        yield from (file for candidate in candidates if (file := candidate.with_suffix(".py")).is_file())
