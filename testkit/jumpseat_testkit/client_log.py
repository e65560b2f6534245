"""Read the log that a client of the Agent Host Protocol keeps of one connection, such as VS Code's.

Each line is a JSON-RPC message with one more member, ``_ahpLog``: an object with the time ``ts``, the direction
``dir`` (``c2s`` from the client, ``s2c`` from the server), the ``connectionId``, and ``truncated`` if long strings
are shortened.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, cast

from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.patterns import ScriptError

JsonObject: TypeAlias = dict[str, Any]

MARK: Final = "_ahpLog"
_SENDERS: Final = {"c2s": True, "s2c": False}


class Entry(NamedTuple):
    """A message of the log. ``is_whole`` is false if long strings in it are shortened."""

    line: int
    from_client: bool
    message: JsonObject
    is_whole: bool = True


def is_client_log(path: Path) -> bool:
    """Return whether the file is a client's log rather than a script or a transcript."""
    try:
        with path.open(encoding="utf-8") as file:
            return path.suffix == ".jsonl" and MARK in as_object(json.loads(file.readline()))
    except (OSError, ValueError):
        return False


def read_client_log(path: Path) -> list[Entry]:
    """Read the messages of a log, without the client's pings and the answers to them.

    Raises:
        ScriptError: a line is no message with its direction, the log has several connections, or one of which the
            beginning is missing, or a message of the client is shortened.
    """
    entries: list[Entry] = []
    connections: set[Any] = set()
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "not UTF-8"
        raise ScriptError(f"cannot read {str(path)!r}: {reason}") from None
    # Not splitlines, which splits at characters that JSON strings may contain.
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip():
            entry, connection = _entry(line, number, path)
            entries.append(entry)
            connections.add(connection)
    if len(connections) > 1:
        raise ScriptError(f"{str(path)!r} has the traffic of {len(connections)} connections: play one at a time")
    if not entries or entries[0].message.get("method") not in ("initialize", "ping"):
        raise ScriptError(
            f"{str(path)!r} does not begin with initialize: a connection is played from its beginning"
        )
    pings = {one.message.get("id") for one in entries if one.from_client and one.message.get("method") == "ping"}
    return [one for one in entries if not _is_ping(one, pings)]


def _entry(line: str, number: int, path: Path) -> tuple[Entry, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise ScriptError(f"invalid JSON in {str(path)!r}, line {number}: {error}") from None
    message = as_object(value)
    about = as_object(message.get(MARK))
    from_client = _SENDERS.get(str(about.get("dir")))
    if from_client is None:
        raise ScriptError(f"{str(path)!r}, line {number}: expected a message with {MARK}.dir, c2s or s2c")
    is_whole = about.get("truncated") is not True
    if from_client and not is_whole:
        raise ScriptError(f"{str(path)!r}, line {number}: this message of the client is shortened")
    kept = {name: member for name, member in message.items() if name not in (MARK, "jsonrpc")}
    return Entry(number, from_client, kept, is_whole), about.get("connectionId")


def _is_ping(entry: Entry, pings: set[Any]) -> bool:
    message = entry.message
    if entry.from_client:
        return message.get("method") == "ping"
    return "method" not in message and message.get("id") in pings


def action_of(entry: Entry) -> JsonObject | None:
    """Return the action that a message of the server tells of, ``None`` for other messages and for refusals."""
    params = as_object(entry.message.get("params"))
    if entry.from_client or entry.message.get("method") != "action" or "rejectionReason" in params:
        return None
    return cast("JsonObject", params.get("action")) if isinstance(params.get("action"), dict) else None
