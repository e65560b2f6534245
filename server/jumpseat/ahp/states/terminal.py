"""The reducer of terminal channels: output, and the end of the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from jumpseat.ahp.states.values import (
    Action,
    JsonObject,
    Reducer,
    State,
    changed,
    index_of,
    present,
    reduce,
    setter,
)


def reduce_terminal(state: State, action: Action) -> State:
    """Return the state of a terminal after an action."""
    return reduce(REDUCERS, state, action)


def _append(state: State, action: Action) -> State:
    content: list[JsonObject] = state["content"]
    last: JsonObject = content[-1] if content else {}
    if not action["data"]:
        return state
    if last.get("type") == "command" and not last["isComplete"]:
        last = {**last, "output": last["output"] + action["data"]}
    elif last.get("type") == "unclassified":
        last = {**last, "value": last["value"] + action["data"]}
    else:
        return {**state, "content": [*content, {"type": "unclassified", "value": action["data"]}]}
    return {**state, "content": [*content[:-1], last]}


def _begin_command(state: State, action: Action) -> State:
    part = {name: action[name] for name in ("commandId", "commandLine", "timestamp")}
    command = {"type": "command", **part, "output": "", "isComplete": False}
    return changed(state, content=[*state["content"], command], supportsCommandDetection=True)


def _finish_command(state: State, action: Action) -> State:
    content: list[JsonObject] = state["content"]
    place = index_of(content, "commandId", action["commandId"])
    if place is None:
        return state
    end = {"exitCode": action.get("exitCode"), "durationMs": action.get("durationMs")}
    part = present({**content[place], "isComplete": True, **end})
    return changed(state, content=[*content[:place], part, *content[place + 1 :]])


def _copied(*names: str) -> Callable[[State, Action], State]:
    return lambda state, action: changed(state, **{name: action[name] for name in names})


REDUCERS: Final[Mapping[str, Reducer]] = {
    "terminal/data": _append,
    "terminal/cleared": lambda state, _: changed(state, content=[]),
    "terminal/exited": lambda state, action: changed(
        state, lifecycle=present({"status": "exited", "exitCode": action.get("exitCode")})
    ),
    # Only what the process writes changes a terminal.
    "terminal/input": lambda state, _: state,
    "terminal/resized": _copied("cols", "rows"),
    "terminal/claimed": _copied("claim"),
    "terminal/titleChanged": _copied("title"),
    "terminal/cwdChanged": setter("cwd"),
    "terminal/commandDetectionAvailable": lambda state, _: changed(state, supportsCommandDetection=True),
    "terminal/commandExecuted": _begin_command,
    "terminal/commandFinished": _finish_command,
}
