"""The events that a client has missed while its session went from one replica to another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

import orjson

from jumpseat_protocol.lazy_dataclasses import dataclass

_SESSION: Final = b'"sessionId":"'
_TURN: Final = b'"type":"assistant.turn_start"'
_IDLE: Final = b'"type":"session.idle"'
_HEAD_BYTES: Final = 400
"""The part of a notification that has the type of its event, whatever the event holds."""
_OF_RUNS: Final = frozenset({"user.message", "assistant.turn_end", "abort", "session.error"})


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client has got of a session: the last stored event, and whether a run had begun and not ended."""

    event_id: str
    in_run: bool

    def encode(self) -> dict[str, Any]:
        """Return the form for other replicas."""
        return {"event": self.event_id, "inRun": self.in_run}


def decode_seen(value: Any) -> Seen | None:
    """Return what :meth:`Seen.encode` has made; ``None`` for anything else."""
    if isinstance(value, dict) and isinstance(event := value.get("event"), str):  # pyright: ignore
        return Seen(event, value.get("inRun") is True)  # pyright: ignore
    return None


class SeenEvents:
    """The latest event of each session that a client has got from another replica, as it was on the wire.

    ``on_idle`` is called with the session's id after each run.
    """

    def __init__(self, on_idle: Callable[[str], None] = lambda _session_id: None) -> None:
        self._on_idle = on_idle
        self._latest: dict[bytes, bytes] = {}
        self._in_run: set[bytes] = set()

    def note(self, body: bytes) -> None:
        """Note a notification with an event."""
        start = body.find(_SESSION, 0, 100) + len(_SESSION)
        session = body[start : body.find(b'"', start)]
        self._latest[session] = body
        if body.find(_TURN, 0, _HEAD_BYTES) >= 0:
            self._in_run.add(session)
        elif body.find(_IDLE, 0, _HEAD_BYTES) >= 0:
            self._in_run.discard(session)
            self._on_idle(orjson.loads(b'"%b"' % session))

    def take(self, session_id: str) -> Seen | None:
        """Return what the client has got of a session, and forget it; ``None`` if it has got nothing.

        The session may come back to the replica after the client has got later events elsewhere.
        """
        key = orjson.dumps(session_id)[1:-1]
        body, in_run = self._latest.pop(key, None), key in self._in_run
        self._in_run.discard(key)
        if body is None:
            return None
        event: dict[str, Any] = orjson.loads(body)["params"]["event"]
        # An event that is not stored follows the stored one that it names.
        event_id = event.get("parentId") if event.get("ephemeral") else event.get("id")
        return Seen(event_id, in_run) if event_id else None


def missed(
    records: Iterable[dict[str, Any]], seen: Seen, last: str | None, kept: Collection[str]
) -> list[dict[str, Any]]:
    """Return the events of a log after those ``seen``, up to the event ``last``, without those that were ``kept``.

    There are none if the log has no event ``seen``, which was removed since.
    """
    found: list[dict[str, Any]] = []
    is_after = False
    for record in records:
        event_id = record.get("id")
        if is_after and event_id not in kept:
            found.append(record)
        is_after = is_after or event_id == seen.event_id
        if event_id == last:
            break
    return found


def begins_run(record: dict[str, Any]) -> bool:
    """Return whether an event is the first of a run of the main agent."""
    data: dict[str, Any] = record.get("data") or {}
    return record.get("type") == "user.message" and record.get("agentId") is None and data.get("delivery") == "idle"


def with_idles(records: Iterable[dict[str, Any]], seen: Seen, idle: Callable[[], bytes]) -> Iterable[bytes]:
    """Yield the JSON of events, and between runs that of ``session.idle``, which is not stored."""
    in_run = seen.in_run
    for record in records:
        if begins_run(record):
            if in_run:
                yield idle()
            in_run = True
        yield orjson.dumps(record)


def lacks_idle(seen: Seen, records: Iterable[dict[str, Any]]) -> bool:
    """Return whether a client that has ``seen`` so much, and has then got ``records``, lacks the end of a run."""
    return seen.in_run or any(record.get("type") in _OF_RUNS for record in records)
