"""Accepted prompts that have not begun: they are sent again when the replica that had them is gone.

A prompt is in the log when its run begins. Until then it is in the queue of the session's owner alone, and at the
replica of its client.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from msgspec import Struct

from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.cluster.relay.session_calls import Call

MOST: Final = 100
"""The number of prompts of a session that are remembered."""
_FORGETTING: Final = ("session.abort", "session.interruptMainTurn", "session.queue.")


class Sent(Struct, frozen=True):
    """An accepted prompt: its id, and the params of ``session.send``."""

    message_id: str
    params: dict[str, Any]

    def encode(self) -> dict[str, Any]:
        """Return the form for other replicas."""
        return {"id": self.message_id, "params": self.params}


class SentPrompts:
    """The accepted prompts of one client, by session."""

    def __init__(self) -> None:
        self._sent: dict[str, dict[str, Sent]] = {}

    def note(self, call: Call) -> None:
        """Note a request that has succeeded."""
        if call.method == "session.send" and not call.params.get("wait"):
            result: Any = call.later.result()
            message_id = cast("dict[str, Any]", result).get("messageId") if isinstance(result, dict) else None
            if isinstance(message_id, str):
                sent = self._sent.setdefault(call.session_id, {})
                sent[message_id] = Sent(message_id, call.params)
                if len(sent) > MOST:
                    del sent[next(iter(sent))]
        elif call.method.startswith(_FORGETTING):
            # The prompts may have been dropped, and must not come back.
            self.forget(call.session_id)

    def forget(self, session_id: str) -> None:
        """Forget the prompts of a session: all have run, or were dropped."""
        self._sent.pop(session_id, None)

    def of(self, session_id: str) -> list[Sent]:
        """Return the prompts of a session, in their order."""
        return list(self._sent.get(session_id, {}).values())


def decode_sent(value: Any) -> list[Sent]:
    """Return what :meth:`Sent.encode` has made, as far as it is valid."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    found = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    return [
        Sent(item["id"], item["params"])
        for item in found
        if isinstance(item.get("id"), str) and isinstance(item.get("params"), dict)
    ]


def lost_prompts(session: Session, records: Iterable[dict[str, Any]], sent: list[Sent]) -> list[Sent]:
    """Return the prompts that are neither in a log nor in the queue of the session."""
    known = {record.get("id") for record in records if record.get("type") == "user.message"}
    waiting, steering = session.queue.waiting()
    known |= {item.id for item in (*waiting, *steering)}
    if session.queue.prompt is not None:
        known |= {*session.queue.prompt.message_ids}
    return [each for each in sent if each.message_id not in known]


def keep_id(session: Session, new_id: str, message_id: str) -> None:
    """Give a waiting prompt the id that its client knows."""
    waiting, steering = session.queue.waiting()
    for item in (*waiting, *steering):
        if isinstance(item, Prompt) and item.id == new_id:
            item.id = message_id
            item.message_ids = [message_id]
