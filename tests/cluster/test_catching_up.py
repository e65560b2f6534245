"""What a client has got of a session, which decides what its next replica sends."""

from __future__ import annotations

from typing import Any

import orjson

from jumpseat.cluster.catching_up import Seen, SeenEvents, missed


def notification(event_id: str, kind: str = "assistant.message", **more: Any) -> bytes:
    event = {"type": kind, "id": event_id, **more}
    return orjson.dumps({"jsonrpc": "2.0", "method": "session.event", "params": {"sessionId": "s", "event": event}})


def test_what_a_client_has_got_from_a_replica_is_forgotten_when_the_session_leaves_it() -> None:
    seen = SeenEvents()
    seen.note(notification("e1", "assistant.turn_start"))
    seen.note(notification("d1", "assistant.message_delta", ephemeral=True, parentId="e1"))

    assert seen.take("s") == Seen("e1", in_run=True)
    assert seen.take("s") is None, "the client may have got later events elsewhere since"

    seen.note(notification("e9"))
    assert seen.take("s") == Seen("e9", in_run=False)


def test_the_events_after_the_last_seen_one_are_missed_and_those_that_were_kept_back_are_not() -> None:
    records = [{"id": name} for name in ("a", "b", "c", "d", "e")]

    assert missed(records, Seen("b", in_run=False), "d", {"c"}) == [{"id": "d"}]
    assert missed(records, Seen("gone", in_run=False), "d", set()) == []
