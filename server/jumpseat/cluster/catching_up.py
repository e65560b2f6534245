"""The events that a client has missed while its session went from one replica to another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

_SESSION = b'"sessionId":"'


class SeenEvents:
    """The latest event of each session that a client has got from another replica, as it was on the wire."""

    def __init__(self) -> None:
        self._latest: dict[bytes, bytes] = {}

    def note(self, body: bytes) -> None:
        """Note a notification with an event."""
        start = body.find(_SESSION, 0, 100) + len(_SESSION)
        self._latest[body[start : body.find(b'"', start)]] = body

    def latest(self, session_id: str) -> str | None:
        """Return the latest stored event of a session that the client has got; ``None`` if it has got none."""
        body = self._latest.get(orjson.dumps(session_id)[1:-1])
        if body is None:
            return None
        event: dict[str, Any] = orjson.loads(body)["params"]["event"]
        # An event that is not stored follows the stored one that it names.
        return event.get("parentId") if event.get("ephemeral") else event.get("id")


def missed(records: Iterable[dict[str, Any]], seen: str, until: str | None) -> list[dict[str, Any]]:
    """Return the events of a log between the event ``seen`` and the event ``until``, both not included.

    All events up to ``until`` are returned if the log has no event ``seen``: it was never stored.
    """
    found: list[dict[str, Any]] = []
    everything: list[dict[str, Any]] = []
    is_after = False
    for record in records:
        event_id = record.get("id")
        if event_id == until:
            break
        everything.append(record)
        if is_after:
            found.append(record)
        is_after = is_after or event_id == seen
    return found if is_after else everything
