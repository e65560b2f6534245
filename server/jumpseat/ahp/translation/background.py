"""Background work as entries of chats. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from jumpseat.ahp.states.values import Action, JsonObject, State, present

LABEL_CHARS: Final = 200


def shell_work(shell_id: str, label: str, since: str, command: str, terminal: str | None) -> JsonObject:
    """Return the entry of a command; without a ``label``, it has its beginning as one."""
    shown = (label or command)[:LABEL_CHARS]
    entry = {"kind": "shell", "id": f"shell:{shell_id}", "label": shown, "startedAt": since, "command": command}
    return present({**entry, "terminal": terminal})


def agent_work(agent_id: str, label: str, since: str, chat: str) -> JsonObject:
    """Return the entry of a sub-agent with a chat of its own."""
    shown = label[:LABEL_CHARS]
    return {"kind": "subagent", "id": f"agent:{agent_id}", "label": shown, "startedAt": since, "chat": chat}


def background_actions(chat: State, wanted: Sequence[JsonObject]) -> Iterator[Action]:
    """Return the actions after which a chat lists what runs in its background."""
    before = {work["id"]: work for work in chat.get("backgroundWork") or ()}
    running = {work["id"] for work in wanted}
    for work_id in before:
        if work_id not in running:
            yield {"type": "chat/backgroundWorkRemoved", "id": work_id}
    for work in wanted:
        if before.get(work["id"]) != work:
            yield {"type": "chat/backgroundWorkSet", "work": work}
