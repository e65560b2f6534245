"""The events that a client has missed while its session went from one replica to another.

Besides the events of the log, a client has to be told of the end of each run (``session.idle``), which is not in
the log. The owner stores the ends in a file of the session before it announces them. The place of an end is behind
the event that it names as its parent, so the next owner knows which ends a client has got.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

from jumpseat.cluster.sessions.records import Record
from jumpseat.store.session.event_log import parse_record
from jumpseat_protocol.events import Event

ENDS: Final = "ends.jsonl"
"""The name of the file with the ends of runs."""
MOST_ENDS: Final = 200
"""The number of ends that are kept: clients of a session that moves have missed a few."""


class Seen(Struct, frozen=True):
    """A client's position in a session: the last stored event or end, and whether it saw a run that continues."""

    item: str
    in_run: bool

    def encode(self) -> dict[str, Any]:
        """Return the form for other replicas."""
        return {"item": self.item, "inRun": self.in_run}


def decode_seen(value: Any) -> Seen | None:
    """Return what :meth:`Seen.encode` has made; ``None`` for anything else."""
    if isinstance(value, dict) and isinstance(item := value.get("item"), str):  # pyright: ignore
        return Seen(item, value.get("inRun") is True)  # pyright: ignore
    return None


class RunEnds:
    """The ends of the latest runs of a session, from the content of their file."""

    def __init__(self, stored: bytes = b"") -> None:
        self._lines = [line for line in stored.splitlines(keepends=True) if parse_record(line) is not None]

    def add(self, end: Event) -> Record:
        """Note the end of a run, and return the record that stores it."""
        line = end.encode() + b"\n"
        self._lines.append(line)
        if len(self._lines) <= MOST_ENDS:
            return Record("append", line, ENDS)
        del self._lines[: MOST_ENDS // 2]
        return Record("file", b"".join(self._lines), ENDS)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (orjson.loads(line) for line in self._lines)


def with_ends(records: Iterable[dict[str, Any]], ends: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events of a log, and behind each the ends of runs that name it as their parent."""
    behind: dict[str, list[dict[str, Any]]] = {}
    for end in ends:
        behind.setdefault(str(end.get("parentId")), []).append(end)
    return [item for record in records for item in (record, *behind.get(str(record.get("id")), ()))]


def last_id(lines: Sequence[bytes], ends: RunEnds) -> str | None:
    """Return the id of the last event of a log, or of the end of a run behind it."""
    record = parse_record(lines[-1]) if lines else None
    return with_ends([record], ends)[-1].get("id") if record is not None else None


def missed(
    items: Sequence[dict[str, Any]], seen: Seen, held: Collection[str], *, working: bool
) -> list[dict[str, Any]]:
    """Return the items behind the one that was ``seen``, up to the first one that is ``held`` back for the client.

    An item that a rewind has removed has nothing behind it. A client that saw a run that goes on is told of its end
    then, unless the session is ``working`` on it.
    """
    place = next((number for number, item in enumerate(items) if item.get("id") == seen.item), None)
    if place is None:
        last = [item for item in items if item.get("type") == "session.idle"][-1:]
        return last if seen.in_run and not working and not held else []
    found: list[dict[str, Any]] = []
    for item in items[place + 1 :]:
        if item.get("id") in held:
            break
        found.append(item)
    return found
