"""The examples in the pages of the documentation."""

from __future__ import annotations

import re
from typing import Any, cast

from tests.support.toolchains import ROOT


def code_blocks(page: str, language: str) -> list[str]:
    """Return the contents of a page's code blocks in ``language``; ``page`` is a path below the root."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)


def contains(actual: Any, expected: Any) -> bool:
    """Return whether ``actual`` equals ``expected``, apart from additional members of objects."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        members = cast("dict[str, Any]", actual)
        return all(
            name in members and contains(members[name], value)
            for name, value in cast("dict[str, Any]", expected).items()
        )
    return actual == expected
