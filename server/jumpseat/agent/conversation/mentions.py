"""Mentions in prompts: ``@{name}`` of a tool or group of tools that the user wants to be used."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_MENTION: Final = re.compile(r"@\{([^{}\s]{1,100})\}")


def mentions(text: str) -> list[str]:
    """Return the mentioned names in order."""
    return _MENTION.findall(text) if "@{" in text else []


def expand_mentions(text: str, expansion: Callable[[str], str | None]) -> str:
    """Replace each mention by the result of ``expansion`` for its name, unless that is ``None``."""
    return _MENTION.sub(lambda match: expansion(match[1]) or match[0], text) if "@{" in text else text
