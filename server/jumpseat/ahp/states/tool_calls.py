"""The states of one tool call in a chat, from streamed arguments to its result or its cancellation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jumpseat.ahp.states.values import Action, JsonObject, Reducer, present

BLOCKING: Final = frozenset(("pending-confirmation", "pending-result-confirmation", "auth-required"))
"""The states in which a person is awaited."""

_NONE: Final[JsonObject] = {}
_ENDED: Final = frozenset(("completed", "cancelled"))
_ALWAYS: Final = ("toolCallId", "toolName", "displayName", "intention", "toolInput", "contributor", "_meta")
_RESULT: Final = ("success", "pastTenseMessage", "content", "structuredContent", "error")
_CONFIRMATION: Final = ("confirmationTitle", "riskAssessment", "edits", "editable", "options")


def started(action: Action) -> JsonObject:
    """Return the call of a ``chat/toolCallStart``."""
    return {"status": "streaming", **_copied(action, *_ALWAYS)}


def skipped(call: JsonObject) -> JsonObject:
    """Return a call at the end of its turn: without a result, it is cancelled."""
    if call["status"] in _ENDED:
        return call
    message: Any = call.get("invocationMessage", "")
    return {"status": "cancelled", **_copied(call, *_ALWAYS), "invocationMessage": message, "reason": "skipped"}


def _copied(source: JsonObject, *names: str) -> JsonObject:
    return {name: source[name] for name in names if source.get(name) is not None}


def _moved(call: JsonObject, action: Action, status: str, *kept: str, **members: Any) -> JsonObject:
    """Return a call in another state, with the members that each state has, and of its own those that are kept."""
    base = {"status": status, **_copied(call, *_ALWAYS, "invocationMessage", *kept), **_copied(action, "_meta")}
    return present({**base, **members})


def _delta(call: JsonObject, action: Action) -> JsonObject:
    if call["status"] != "streaming":
        return call
    update = _copied(action, "_meta", "invocationMessage")
    if action.get("content") is not None:
        update["partialInput"] = call.get("partialInput", "") + action["content"]
    return {**call, **update}


def _ready(call: JsonObject, action: Action) -> JsonObject:
    if call["status"] not in ("streaming", "running", "pending-confirmation"):
        return call
    members = _copied(action, "intention", "toolInput", "invocationMessage")
    members["contributor"] = _contributor(call.get("contributor"), action.get("contributor"))
    if action.get("confirmed") is not None:
        return _moved(call, action, "running", **members, confirmed=action["confirmed"])
    kept = _CONFIRMATION if call["status"] == "pending-confirmation" else ()
    return _moved(call, action, "pending-confirmation", *kept, **members, **_copied(action, *_CONFIRMATION))


def _contributor(current: JsonObject | None, new: JsonObject | None) -> JsonObject | None:
    """Return the more exact contributor: a call neither moves to a client nor from one to another."""
    if new is None:
        return current
    clients = [one.get("clientId") for one in (current, new) if one is not None and one["kind"] == "client"]
    return new if not clients or clients == [new.get("clientId")] * 2 else current


def _confirmed(call: JsonObject, action: Action) -> JsonObject:
    if call["status"] != "pending-confirmation":
        return call
    chosen = action.get("selectedOptionId")
    options: list[JsonObject] = call.get("options") or []
    option = next((one for one in options if chosen is not None and one["id"] == chosen), None)
    if not action["approved"]:
        reason = action.get("reason") or "denied"
        told = _copied(action, "reasonMessage", "userSuggestion")
        return _moved(call, action, "cancelled", reason=reason, **told, selectedOption=option)
    confirmed = action.get("confirmed") or "not-needed"
    moved = _moved(call, action, "running", confirmed=confirmed, selectedOption=option)
    if isinstance(moved.get("toolInput"), str) and action.get("editedToolInput") is not None:
        moved["toolInput"] = action["editedToolInput"]
    return moved


def _content_changed(call: JsonObject, action: Action) -> JsonObject:
    return {**call, **_copied(action, "_meta", "content")} if call["status"] == "running" else call


def _complete(call: JsonObject, action: Action) -> JsonObject:
    result, status = _copied(action["result"], *_RESULT), call["status"]
    awaits_review = bool(action.get("requiresResultConfirmation"))
    if status == "auth-required" and not result["success"]:
        # A client may give up on a login; what the call had shown before stays.
        result, awaits_review = {**_copied(call, "content"), **result}, False
    elif status not in ("running", "pending-confirmation"):
        return call
    confirmed = call.get("confirmed") or "not-needed"
    end = "pending-result-confirmation" if awaits_review else "completed"
    return _moved(call, action, end, "selectedOption", **result, confirmed=confirmed)


def _result_confirmed(call: JsonObject, action: Action) -> JsonObject:
    if call["status"] != "pending-result-confirmation":
        return call
    if action["approved"]:
        return _moved(call, action, "completed", *_RESULT, "confirmed", "selectedOption")
    return _moved(call, action, "cancelled", "selectedOption", reason="result-denied")


def _auth_required(call: JsonObject, action: Action) -> JsonObject:
    if call["status"] != "running" or (call.get("contributor") or _NONE).get("kind") != "mcp":
        return call
    kept = ("confirmed", "selectedOption", "content")
    return _moved(call, action, "auth-required", *kept, auth=action["auth"])


def _auth_resolved(call: JsonObject, action: Action) -> JsonObject:
    if call["status"] != "auth-required":
        return call
    return _moved(call, action, "running", "confirmed", "selectedOption", "content")


TRANSITIONS: Final[Mapping[str, Reducer]] = {
    "chat/toolCallDelta": _delta,
    "chat/toolCallReady": _ready,
    "chat/toolCallConfirmed": _confirmed,
    "chat/toolCallContentChanged": _content_changed,
    "chat/toolCallComplete": _complete,
    "chat/toolCallResultConfirmed": _result_confirmed,
    "chat/toolCallAuthRequired": _auth_required,
    "chat/toolCallAuthResolved": _auth_resolved,
}
"""The actions about one call, each a function of the call and the action."""
