"""Limits on the parts of a message, because all of a message is handled at once. Pure."""

from __future__ import annotations

from typing import Any, Final, cast

MOST_ENTRIES: Final = 2000
"""The entries of one array or object in a request."""
MOST_LONG_ENTRIES: Final = 10_000
"""The same of what is long by nature, such as conversations, and of calls of models."""
MOST_VALUES: Final = 50_000
"""All values in a request."""


def excess_of(value: Any, most_entries: int = MOST_ENTRIES, most_values: int = MOST_VALUES) -> str | None:
    """Return what a message, as JSON values, has too much of; ``None`` if it is within the limits."""
    left, count = [value], 0
    while left:
        current = left.pop()
        if not isinstance(current, dict | list):
            continue
        inner = cast("dict[str, Any] | list[Any]", current)
        count += len(inner)
        if len(inner) > most_entries:
            return f"an array or object has more than {most_entries} entries"
        if count > most_values:
            return f"more than {most_values} values"
        left += inner.values() if isinstance(inner, dict) else inner
    return None
