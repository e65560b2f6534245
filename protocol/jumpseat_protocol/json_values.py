"""JSON that others have sent, as the types that a reader expects: anything else becomes an empty value."""

from __future__ import annotations

from typing import Any, Final, cast

import orjson

MOST_DEPTH: Final = 200
"""The levels of a value: JSON with more than 254 cannot be written, and events have some around it."""


def as_object(value: Any) -> dict[str, Any]:
    """Return ``value`` if it is an object, else an empty object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return ``value`` if it is an array, else an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Return ``value`` if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def is_too_deep(value: Any) -> bool:
    """Return whether a JSON value is nested more deeply than it can be written as a part of a message."""
    level: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (cast("dict[str, Any]", outer).values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Parse the arguments of a tool call. Blank text is an empty object.

    Anything but an object is ``None``, and so is what is nested too deeply.
    """
    if not text.strip():
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or (text.count("[") + text.count("{") > MOST_DEPTH and is_too_deep(value)):
        return None
    return cast("dict[str, Any]", value)
