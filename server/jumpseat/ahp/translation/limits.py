"""Limits on what clients send, because all of a message is handled at once, and much of it is kept. Pure."""

from __future__ import annotations

from typing import Any, Final

import orjson

from jumpseat.ahp.states.values import State
from jumpseat.errors import InvalidRequestError
from jumpseat.parsing import message_size

MOST_ENTRIES: Final = 1000
"""The entries of one array or object."""
MOST_VALUES: Final = 100_000
"""All values of a message."""
MOST_CONFIG_BYTES: Final = 64 * 1024
"""The size of the settings of a channel with their schema."""


def excess_of(value: Any) -> str | None:
    """Return what a message has too much of, or ``None``."""
    return message_size.excess_of(value, MOST_ENTRIES, MOST_VALUES)


def check_config(state: State) -> None:
    """Check the size of the settings in a state.

    Raises:
        InvalidRequestError: they are too large.
    """
    if len(orjson.dumps(state.get("config"))) > MOST_CONFIG_BYTES:
        raise InvalidRequestError(f"the settings are larger than {MOST_CONFIG_BYTES} bytes")
