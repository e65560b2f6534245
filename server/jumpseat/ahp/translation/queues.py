"""The waiting messages of a session as those of a chat. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jumpseat.ahp.states.values import Action, JsonObject, State


class Waiting(NamedTuple):
    """A waiting message; ``id`` becomes that of its turn."""

    id: str
    message: JsonObject


def queue_actions(chat: State, queued: Sequence[Waiting], steering: Sequence[Waiting]) -> Iterator[Action]:
    """Return the actions that lead from the waiting messages of a chat to others.

    Clients show one steering message, so that of several the first one is sent.
    """
    shown: JsonObject | None = chat.get("steeringMessage")
    first = steering[0] if steering else None
    if shown is not None and (first is None or shown["id"] != first.id):
        yield {"type": "chat/pendingMessageRemoved", "kind": "steering", "id": shown["id"]}
    if first is not None and (shown is None or shown != _entry(first)):
        yield {"type": "chat/pendingMessageSet", "kind": "steering", **_entry(first)}
    before: dict[str, JsonObject] = {one["id"]: one for one in chat.get("queuedMessages") or ()}
    names = [one.id for one in queued]
    for gone in [name for name in before if name not in names]:
        yield {"type": "chat/pendingMessageRemoved", "kind": "queued", "id": gone}
    for one in queued:
        if before.get(one.id) != _entry(one):
            yield {"type": "chat/pendingMessageSet", "kind": "queued", **_entry(one)}
    order = [name for name in before if name in names] + [name for name in names if name not in before]
    if order != names:
        yield {"type": "chat/queuedMessagesReordered", "order": names}


def _entry(waiting: Waiting) -> JsonObject:
    return {"id": waiting.id, "message": waiting.message}
