"""The modules that ``make quick`` leaves out.

Their tests start programs, import providers' SDKs, or are marked ``thorough`` as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]

_SLOW: Final = re.compile(
    r"^(?:import|from) (?:subprocess|tests\.adapters\.provider_sdks)\b|\bsys\.executable\b"
    r"|^pytestmark = .*\bthorough\b",
    re.MULTILINE,
)
_HELPERS: Final = re.compile(r"^from (tests[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


@cache
def is_slow(path: Path) -> bool:
    """Return whether a test module or a helper of it has one of the marks of slow tests.

    It imports ``subprocess``, as ``tests/support/server.py`` does, or ``tests.adapters.provider_sdks``, or uses
    ``sys.executable``.

    Helpers are the modules of ``tests`` that it imports, and each ``conftest.py`` of its folders below ``tests``.
    """
    text = path.read_text(encoding="utf-8")
    return _SLOW.search(text) is not None or any(map(is_slow, _helpers(path, text)))


def _helpers(path: Path, text: str) -> Iterator[Path]:
    for folder in path.parents:
        conftest = folder / "conftest.py"
        if TESTS in folder.parents and conftest != path and conftest.is_file():
            yield conftest
    for package, names in _HELPERS.findall(text):
        place = TESTS.parent.joinpath(*package.split("."))
        candidates = [place, *(place / name for name in re.findall(r"\w+", names))]
        yield from (file for candidate in candidates if (file := candidate.with_suffix(".py")).is_file())
