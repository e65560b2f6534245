"""The reducer of chat channels: turns, their parts and tool calls, questions, waiting messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from jumpseat.ahp.states import tool_calls
from jumpseat.ahp.states.values import (
    ACTIVITY,
    ARCHIVED,
    ERROR,
    IDLE,
    IN_PROGRESS,
    INPUT_NEEDED,
    READ,
    Action,
    JsonObject,
    Reducer,
    State,
    changed,
    present,
    reduce,
    setter,
    with_directory,
    with_flag,
    with_item,
    without_directory,
    without_item,
)


def reduce_chat(state: State, action: Action) -> State:
    """Return the state of a chat after an action. Actions about a turn that is not active change nothing."""
    return reduce(REDUCERS, state, action)


def later(time: str, duration_ms: int) -> str | None:
    """Return an ISO time some milliseconds later, ``None`` if the time is invalid or the sum out of range."""
    try:
        start = datetime.fromisoformat(time)
        if start.tzinfo is None:
            return None
        end = start.astimezone(UTC) + timedelta(milliseconds=duration_ms)
    except (ValueError, OverflowError):
        return None
    return end.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _with_activity(state: State, ended_as: int | None = None) -> State:
    """Return a state whose status shows what the chat does: how its turn ended, or what follows from its parts."""
    active: JsonObject | None = state.get("activeTurn")
    if ended_as is not None:
        activity = ended_as
    elif active is None:
        activity = IDLE
    else:
        activity = INPUT_NEEDED if any(map(_awaits_person, active["responseParts"])) else IN_PROGRESS
    return changed(state, status=state["status"] & ~ACTIVITY | activity)


def _awaits_person(part: JsonObject) -> bool:
    if part["kind"] == "toolCall":
        return part["toolCall"]["status"] in tool_calls.BLOCKING
    return part["kind"] == "inputRequest" and part.get("response") is None


# --- turns ------------------------------------------------------------------------------------------------------


def _start_turn(state: State, action: Action) -> State:
    active: JsonObject = {
        "id": action["turnId"],
        "startedAt": action["startedAt"],
        "message": action["message"],
        "responseParts": [],
    }
    started = with_flag(_with_activity(changed(state, activeTurn=active)), READ, False)
    started = changed(started, modifiedAt=action["startedAt"])
    queued = action.get("queuedMessageId")
    if queued is None:
        return started
    steering: JsonObject = started.get("steeringMessage") or {}
    if steering.get("id") == queued:
        started = changed(started, steeringMessage=None)
    return without_item(started, "queuedMessages", "id", queued, drop_empty=True)


def _end_turn(ending: str, status: int | None = None) -> Reducer:
    def end(state: State, action: Action) -> State:
        active = _active(state, action)
        if active is None:
            return state
        duration = max(0, action["duration"])
        modified_at = later(active["startedAt"], duration)
        if modified_at is None:
            return state
        parts = [
            {**part, "toolCall": tool_calls.skipped(part["toolCall"])} if part["kind"] == "toolCall" else part
            for part in active["responseParts"]
        ]
        if ending == "error":
            parts.append({**action["part"], "kind": "error"})
        turn = {**active, "responseParts": parts, "state": ending, "duration": duration}
        ended = changed(state, activeTurn=None, turns=[*state["turns"], turn], modifiedAt=modified_at)
        return _with_activity(ended, status)

    return end


def _resume_turn(state: State, action: Action) -> State:
    last: JsonObject | None = state["turns"][-1] if state["turns"] else None
    if state.get("activeTurn") is not None or last is None or not is_resumable(last, action["turnId"]):
        return state
    active = {name: value for name, value in last.items() if name not in ("state", "duration")}
    active.setdefault("startedAt", state["modifiedAt"])
    resumed = changed(state, turns=state["turns"][:-1], activeTurn=active)
    return with_flag(_with_activity(resumed), READ, False)


def is_resumable(turn: JsonObject, turn_id: str) -> bool:
    """Return whether a turn is the one with an id, and has ended in an error after which it can continue."""
    part: JsonObject = turn["responseParts"][-1] if turn["responseParts"] else {}
    failed = turn["state"] == "error" and part.get("kind") == "error"
    return turn["id"] == turn_id and failed and part.get("resumable") is True


def _truncate(state: State, action: Action) -> State:
    turns: list[JsonObject] = state["turns"]
    last = action.get("turnId")
    if last is None:
        kept = changed(state, turns=[], turnsNextCursor=None)
    else:
        end = next((place for place, turn in enumerate(turns) if turn["id"] == last), None)
        if end is None:
            return state
        kept = changed(state, turns=turns[: end + 1])
    return _with_activity(changed(kept, activeTurn=None))


def _load_turns(state: State, action: Action) -> State:
    known = {turn["id"] for turn in state["turns"]}
    older = [turn for turn in action["turns"] if turn["id"] not in known]
    return changed(state, turns=[*older, *state["turns"]], turnsNextCursor=action.get("turnsNextCursor"))


def _active(state: State, action: Action) -> JsonObject | None:
    active = state.get("activeTurn")
    return active if active is not None and active["id"] == action["turnId"] else None


def _set_usage(state: State, action: Action) -> State:
    active = _active(state, action)
    return state if active is None else changed(state, activeTurn=changed(active, usage=action["usage"]))


# --- parts ------------------------------------------------------------------------------------------------------


def _add_part(state: State, action: Action) -> State:
    active = _active(state, action)
    # Errors come with the end of a turn.
    if active is None or action["part"]["kind"] == "error":
        return state
    return _appended(state, active, action["part"])


def _start_call(state: State, action: Action) -> State:
    active = _active(state, action)
    if active is None:
        return state
    return _appended(state, active, {"kind": "toolCall", "toolCall": tool_calls.started(action)})


def _appended(state: State, active: JsonObject, part: JsonObject) -> State:
    return {**state, "activeTurn": {**active, "responseParts": [*active["responseParts"], part]}}


def _change_part(
    state: State, active: JsonObject, fits: Callable[[JsonObject], bool], change: Callable[[JsonObject], JsonObject]
) -> State:
    """Return a state in which the first part that ``fits`` was changed."""
    parts: list[JsonObject] = active["responseParts"]
    for place, part in enumerate(parts):
        if fits(part):
            new = change(part)
            if new is part:
                return state
            return {**state, "activeTurn": {**active, "responseParts": [*parts[:place], new, *parts[place + 1 :]]}}
    return state


def _append_to(kind: str) -> Reducer:
    def append(state: State, action: Action) -> State:
        active = _active(state, action)
        if active is None or not action["content"]:
            return state
        return _change_part(
            state,
            active,
            lambda part: part_id(part) == action["partId"],
            lambda part: {**part, "content": part["content"] + action["content"]} if part["kind"] == kind else part,
        )

    return append


def part_id(part: JsonObject) -> str | None:
    """Return the id of a part; ``None`` if parts of its kind have none."""
    call: JsonObject | None = part.get("toolCall")
    return part.get("id") if call is None else call["toolCallId"]


def _change_call(state: State, action: Action) -> State:
    active = _active(state, action)
    if active is None:
        return state

    def change(part: JsonObject) -> JsonObject:
        call = part["toolCall"]
        new = tool_calls.TRANSITIONS[action["type"]](call, action)
        return part if new is call or new == call else {**part, "toolCall": new}

    moved = _change_part(
        state,
        active,
        lambda part: part["kind"] == "toolCall" and part_id(part) == action["toolCallId"],
        change,
    )
    return moved if moved is state else _with_activity(moved)


# --- questions --------------------------------------------------------------------------------------------------


def _is_open(request_id: str) -> Callable[[JsonObject], bool]:
    return lambda part: (
        part["kind"] == "inputRequest" and part.get("response") is None and part["request"]["id"] == request_id
    )


def _ask(state: State, action: Action) -> State:
    active: JsonObject | None = state.get("activeTurn")
    if active is None:
        return state
    request: JsonObject = action["request"]

    def again(part: JsonObject) -> JsonObject:
        answers = request.get("answers") or part["request"].get("answers")
        return {**part, "request": present({**request, "answers": answers})}

    asked = _change_part(state, active, _is_open(request["id"]), again)
    if asked is state:
        asked = _appended(state, active, {"kind": "inputRequest", "request": request})
    return with_flag(_with_activity(asked), READ, False)


def _change_answer(state: State, action: Action) -> State:
    def change(part: JsonObject) -> JsonObject:
        before: JsonObject = part["request"].get("answers") or {}
        answers = {**before, action["questionId"]: action.get("answer")}
        return {**part, "request": changed(part["request"], answers=present(answers) or None)}

    active = state.get("activeTurn")
    return state if active is None else _change_part(state, active, _is_open(action["requestId"]), change)


def _complete_input(state: State, action: Action) -> State:
    def complete(part: JsonObject) -> JsonObject:
        before: JsonObject = part["request"].get("answers") or {}
        given: JsonObject = action.get("answers") or {}
        request = changed(part["request"], answers={**before, **given} or None)
        return {**part, "request": request, "response": action["response"]}

    active = state.get("activeTurn")
    if active is None:
        return state
    completed = _change_part(state, active, _is_open(action["requestId"]), complete)
    return state if completed is state else _with_activity(completed)


# --- waiting messages -------------------------------------------------------------------------------------------


def _set_pending(state: State, action: Action) -> State:
    entry: dict[str, Any] = {"id": action["id"], "message": action["message"]}
    if action["kind"] == "steering":
        return changed(state, steeringMessage=entry)
    return with_item(state, "queuedMessages", "id", entry)


def _remove_pending(state: State, action: Action) -> State:
    if action["kind"] == "steering":
        steering: JsonObject = state.get("steeringMessage") or {}
        return changed(state, steeringMessage=None) if steering.get("id") == action["id"] else state
    return without_item(state, "queuedMessages", "id", action["id"], drop_empty=True)


def _reorder(state: State, action: Action) -> State:
    """Return a state with another order of queued messages; those that are not named stay behind, in their order.

    The official Rust client sorts those by their ids, so that orders sent from here name all messages.
    """
    waiting: dict[str, JsonObject] = {one["id"]: one for one in state.get("queuedMessages") or ()}
    if not waiting:
        return state
    order = [waiting.pop(one) for one in action["order"] if one in waiting]
    return changed(state, queuedMessages=[*order, *waiting.values()])


REDUCERS: Final[Mapping[str, Reducer]] = {
    "chat/turnStarted": _start_turn,
    "chat/turnComplete": _end_turn("complete"),
    "chat/turnCancelled": _end_turn("cancelled"),
    "chat/error": _end_turn("error", ERROR),
    "chat/turnResume": _resume_turn,
    "chat/truncated": _truncate,
    "chat/turnsLoaded": _load_turns,
    "chat/usage": _set_usage,
    "chat/responsePart": _add_part,
    "chat/delta": _append_to("markdown"),
    "chat/reasoning": _append_to("reasoning"),
    "chat/toolCallStart": _start_call,
    **dict.fromkeys(tool_calls.TRANSITIONS, _change_call),
    "chat/inputRequested": _ask,
    "chat/inputAnswerChanged": _change_answer,
    "chat/inputCompleted": _complete_input,
    "chat/pendingMessageSet": _set_pending,
    "chat/pendingMessageRemoved": _remove_pending,
    "chat/queuedMessagesReordered": _reorder,
    "chat/draftChanged": setter("draft"),
    "chat/activityChanged": setter("activity"),
    "chat/isReadChanged": lambda state, action: with_flag(state, READ, action["isRead"]),
    "chat/isArchivedChanged": lambda state, action: with_flag(state, ARCHIVED, action["isArchived"]),
    "chat/backgroundWorkSet": lambda state, action: with_item(state, "backgroundWork", "id", action["work"]),
    "chat/backgroundWorkRemoved": lambda state, action: without_item(state, "backgroundWork", "id", action["id"]),
    "chat/changesetsChanged": setter("changesets"),
    "chat/canvasesChanged": setter("canvases"),
    "chat/movableChanged": setter("movable"),
    "chat/workingDirectorySet": with_directory,
    "chat/workingDirectoryRemoved": without_directory,
}
