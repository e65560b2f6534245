"""Reading JSON that may hold lone surrogates.

JavaScript programs send them where a text was cut in the middle of an emoji: half of the pair stays, as an escape
(``\\ud83d``) that strict parsers refuse.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

# Escapes in JSON text: a backslash, a pair of surrogates, or (in group 1) a lone surrogate.
_ESCAPES: Final = re.compile(
    rb"\\\\|(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def read_json(text: bytes) -> Any:
    """Parse JSON, with U+FFFD for each lone surrogate.

    Raises:
        orjson.JSONDecodeError: ``text`` is not valid JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        repaired = _ESCAPES.sub(lambda found: b"\\ufffd" if found.group(1) else found.group(), text)
        if repaired == text:
            raise
        return orjson.loads(repaired)
