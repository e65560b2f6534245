"""The messages of a connection in the log, at the level ``debug``: without credentials, and shortened."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, Final, cast

import orjson

from jumpseat.parsing.json_text import read_json
from jumpseat.system.log_fields import fields

log = logging.getLogger("jumpseat.wire")

MASK: Final = "[redacted]"

LONGEST_CHARS: Final = 4000
"""The length from which a message is cut."""

_CREDENTIAL: Final = re.compile(r"token|key|secret|passw|authorization|credential|cookie|signature", re.IGNORECASE)
# All members of these hold values that may be credentials, whatever their names are.
_CREDENTIALS: Final = frozenset({"headers", "requestHeaders", "env", "environment"})


def log_message(label: Callable[[], str], direction: str, body: bytes) -> None:
    """Log one message; ``direction`` is ``received`` or ``sent``."""
    if log.isEnabledFor(logging.DEBUG):
        log.debug(direction, extra=fields(client=label(), bytes=len(body), body=_masked(body)))


def _masked(body: bytes) -> str:
    try:
        value = read_json(body)
    except orjson.JSONDecodeError:
        return "(not JSON)"
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    # The params of these methods are secrets, under names that tell nothing.
    is_secret = str(members.get("method")).startswith("secrets.")
    text = orjson.dumps({**members, "params": MASK} if is_secret else _mask(value), default=str).decode()
    return text if len(text) <= LONGEST_CHARS else text[:LONGEST_CHARS] + "..."


def _mask(value: Any, name: str = "", *, all_members: bool = False) -> Any:
    if isinstance(value, dict):
        inside = all_members or name in _CREDENTIALS
        members = cast("dict[str, Any]", value)
        return {key: _mask(item, key, all_members=inside) for key, item in members.items()}
    if isinstance(value, list):
        return [_mask(item, name, all_members=all_members) for item in cast("list[Any]", value)]
    if isinstance(value, str) and value and (all_members or _CREDENTIAL.search(name)):
        return MASK
    return value
