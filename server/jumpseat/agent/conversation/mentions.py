"""``@{name}`` in a prompt: a tool or a group of tools that the user wants used."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_MENTION: Final = re.compile(r"@\{([^{}\s]{1,100})\}")


def mentions(text: str) -> list[str]:
    """The names that are mentioned."""
    return _MENTION.findall(text) if "@{" in text else []


def in_words(text: str, words: Callable[[str], str | None]) -> str:
    """``text`` with its mentions in ``words``; a name that has none stays as it is."""
    return _MENTION.sub(lambda match: words(match[1]) or match[0], text) if "@{" in text else text
