"""Summaries of chats for the channel of their session, and lists of sessions. Pure.

No action says that a session works or is idle again, and folds of clients may differ from its status there: the
chat's status in the catalogue is right, and so are the summaries in the list of sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jumpseat.ahp.states.values import ACTIVITY, Action, JsonObject, State, changed, present
from jumpseat.ahp.translation.client_tools import runner_of
from jumpseat.ahp.translation.uris import PROVIDER

_NONE: Final[JsonObject] = {}
_SHOWN: Final = ("resource", "title", "status", "activity", "modifiedAt", "origin", "interactivity")


def chat_summary(chat: State) -> JsonObject:
    """Return the entry of a chat in the catalogue of its session."""
    return {name: chat[name] for name in _SHOWN if name in chat}


def actions_for_session(session: State, chat: State) -> Iterator[Action]:
    """Return the actions that bring a session in step with its chat: open questions, and the catalogue."""
    wanted = {needed["id"]: needed for needed in _input_needed(session, chat)}
    before = {needed["id"]: needed for needed in _needed_in(session, chat["resource"])}
    for request_id in before.keys() - wanted.keys():
        yield {"type": "session/inputNeededRemoved", "id": request_id}
    for request_id, needed in wanted.items():
        if needed != before.get(request_id):
            yield {"type": "session/inputNeededSet", "request": needed}
    summary = chat_summary(chat)
    known: JsonObject = next((one for one in session["chats"] if one["resource"] == summary["resource"]), _NONE)
    if changes := {name: value for name, value in summary.items() if known.get(name) != value}:
        yield {"type": "session/chatUpdated", "chat": summary["resource"], "changes": changes}


def actions_without_chat(session: State, chat: str) -> Iterator[Action]:
    """Return the actions that take a chat and its open questions from a session."""
    for needed in _needed_in(session, chat):
        yield {"type": "session/inputNeededRemoved", "id": needed["id"]}
    yield {"type": "session/chatRemoved", "chat": chat}


def _needed_in(session: State, chat: str) -> list[JsonObject]:
    return [needed for needed in session.get("inputNeeded") or () if needed["chat"] == chat]


def _input_needed(session: State, chat: State) -> Iterator[JsonObject]:
    active: JsonObject | None = chat.get("activeTurn")
    # Calls in two chats may have the same id.
    begin = "" if chat["resource"] == session.get("defaultChat") else f"{chat['resource']}#"
    for part in active["responseParts"] if active is not None else ():
        if part["kind"] == "toolCall" and part["toolCall"]["status"] == "pending-confirmation":
            call = part["toolCall"]
            yield {
                "kind": "toolConfirmation",
                "id": begin + call["toolCallId"],
                "chat": chat["resource"],
                "turnId": active["id"] if active is not None else "",
                "toolCall": call,
            }
        elif part["kind"] == "toolCall" and (client := runner_of(part["toolCall"])) is not None:
            call = part["toolCall"]
            yield {
                "kind": "toolClientExecution",
                "id": begin + call["toolCallId"],
                "chat": chat["resource"],
                "turnId": active["id"] if active is not None else "",
                "clientId": client,
                "toolCall": call,
            }
        elif part["kind"] == "inputRequest" and part.get("response") is None:
            request = part["request"]
            yield {"kind": "chatInput", "id": begin + request["id"], "chat": chat["resource"], "request": request}


def with_activity(session: State, chat: State) -> State:
    """Return a session with the activity of its chat, which no action tells."""
    return changed(session, status=session["status"] & ~ACTIVITY | chat["status"] & ACTIVITY)


def live_summary(uri: str, session: State, chat: State, created_at: str) -> JsonObject:
    """Return the list entry of a session whose channels are open."""
    return present(
        {
            "resource": uri,
            "provider": PROVIDER,
            "title": session["title"],
            "status": session["status"],
            "createdAt": created_at,
            "modifiedAt": chat["modifiedAt"],
            "activity": chat.get("activity"),
            "workingDirectories": session.get("workingDirectories"),
            "defaultChat": session.get("defaultChat"),
            "chats": [{"resource": chat["resource"], "title": session["title"], "status": chat["status"]}],
        }
    )
