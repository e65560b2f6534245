"""The messages of a transcript, each with the location of its type in the schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from jumpseat_protocol.old_clients import UNREADABLE
from jumpseat_testkit.transcript import read


class Typed(NamedTuple):
    """A message: ``value`` is its params, result or error, with numbers in place of ``<n>``."""

    spot: tuple[str, ...]
    value: Any


def typed_messages(path: Path) -> Iterator[Typed]:
    """Return all messages of a transcript, in order."""
    # Both sides number their requests, so the same id can belong to two requests.
    requests: dict[tuple[str, Any], tuple[str, str]] = {}
    lines = read(path)
    # Clients that begin with a ping do not get fields that they cannot decode but the schema requires.
    spared = UNREADABLE if lines[0][1].get("method") == "ping" else ()
    for direction, message in lines:
        if direction == "--" or _event_type(message) in spared:
            continue
        other = "<-" if direction == "->" else "->"
        if "method" not in message:
            part = "error" if "error" in message else "result"
            spot = (*requests[other, message["id"]], part) if part == "result" else ("error",)
            yield Typed(spot, _with_figures(message[part]))
        elif "id" in message:
            section = "clientRequests" if direction == "->" else "serverRequests"
            requests[direction, message["id"]] = (section, message["method"])
            yield Typed((section, message["method"], "params"), _with_figures(message["params"]))
        else:
            yield Typed(("notifications", message["method"]), _with_figures(message["params"]))


def _event_type(message: Any) -> str | None:
    return message["params"]["event"]["type"] if message.get("method") == "session.event" else None


def _with_figures(value: Any) -> Any:
    if value == "<n>":
        return 0
    if isinstance(value, list):
        return [_with_figures(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _with_figures(item) for name, item in cast("dict[str, Any]", value).items()}
    return value
