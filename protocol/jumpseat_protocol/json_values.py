"""JSON that others have sent, as the types that a reader expects: anything else becomes an empty value."""

from __future__ import annotations

from typing import Any, cast

import orjson


def as_object(value: Any) -> dict[str, Any]:
    """Return ``value`` if it is an object, else an empty object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return ``value`` if it is an array, else an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Return ``value`` if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Parse the arguments of a tool call. Blank text is an empty object; anything but an object is ``None``."""
    if not text.strip():
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
