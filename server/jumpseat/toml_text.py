"""Parse TOML in time that is linear in its length.

The parser of the standard library takes quadratic time and memory for keys with many parts: ``a.a.a...`` in 64 KiB
takes half a minute. Such text is refused before it is parsed.
"""

from __future__ import annotations

import re
from typing import Any, Final

MAX_KEY_PARTS: Final = 32
"""Limit of the parts of a dotted key."""

# Every alternative consumes text, and none is tried twice at the same place: scanning is linear.
_TOKEN: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|\#[^\n]*+"
    r"|[^\"'\#]++",
    re.DOTALL,
)
_END_OF_KEY: Final = re.compile(r"[\n=,{}\[\]]")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        ValueError: the text is not valid TOML, or is nested too deeply.
    """
    # Imported here, because many sessions read no TOML.
    import tomllib

    if _has_long_key(text):
        raise ValueError(f"expected keys of at most {MAX_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _has_long_key(text: str) -> bool:
    dots = position = 0
    while (token := _TOKEN.match(text, position)) is not None:
        position = token.end()
        if text[token.start()] in "\"'#":
            continue
        first, *others = _END_OF_KEY.split(token.group())
        dots += first.count(".")
        if dots >= MAX_KEY_PARTS or any(other.count(".") >= MAX_KEY_PARTS for other in others):
            return True
        if others:
            dots = others[-1].count(".")
    # The parser stops at an unterminated string, too.
    return False
