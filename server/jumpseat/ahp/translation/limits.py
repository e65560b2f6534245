"""Limits on what clients send, because all of a message is handled at once, and much of it is kept. Pure."""

from __future__ import annotations

from typing import Any, Final, cast

import orjson

from jumpseat.ahp.states.values import State
from jumpseat.errors import InvalidRequestError

MOST_ENTRIES: Final = 1000
"""The entries of one array or object."""
MOST_VALUES: Final = 100_000
"""All values of a message."""
MOST_CONFIG_BYTES: Final = 64 * 1024
"""The size of the settings of a channel with their schema."""


def excess_of(value: Any) -> str | None:
    """Return what a message has too much of, or ``None``."""
    left, count = [value], 0
    while left:
        current = left.pop()
        if not isinstance(current, dict | list):
            continue
        inner = cast("dict[str, Any] | list[Any]", current)
        count += len(inner)
        if len(inner) > MOST_ENTRIES:
            return f"an array or object has more than {MOST_ENTRIES} entries"
        if count > MOST_VALUES:
            return f"more than {MOST_VALUES} values"
        left += inner.values() if isinstance(inner, dict) else inner
    return None


def check_config(state: State) -> None:
    """Check the size of the settings in a state.

    Raises:
        InvalidRequestError: they are too large.
    """
    if len(orjson.dumps(state.get("config"))) > MOST_CONFIG_BYTES:
        raise InvalidRequestError(f"the settings are larger than {MOST_CONFIG_BYTES} bytes")
