"""The reducer of changeset channels: changed files, and what can be done with them."""

from __future__ import annotations

from collections.abc import Mapping
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
    with_item,
    without_item,
)


def reduce_changeset(state: State, action: Action) -> State:
    """Return the state of a changeset after an action."""
    return reduce(REDUCERS, state, action)


def _with_status(value: JsonObject, action: Action) -> JsonObject:
    error = action.get("error") if action["status"] == "error" else None
    return changed(value, status=action["status"], error=error)


def _review(state: State, action: Action) -> State:
    reviewed: bool = action["reviewed"]

    def review(file: JsonObject) -> JsonObject:
        return changed(file, reviewed=reviewed) if file["id"] in action["files"] else file

    return changed(state, files=[review(file) for file in state["files"]])


def _replace(state: State, action: Action) -> State:
    operations = action.get("operations")
    return changed(
        state, files=action["files"], operations=state.get("operations") if operations is None else operations
    )


def _change_operation(state: State, action: Action) -> State:
    operations: list[JsonObject] | None = state.get("operations")
    place = index_of(operations, "id", action["operationId"])
    if operations is None or place is None:
        return state
    operation = present(_with_status(operations[place], action))
    return changed(state, operations=[*operations[:place], operation, *operations[place + 1 :]])


REDUCERS: Final[Mapping[str, Reducer]] = {
    "changeset/statusChanged": _with_status,
    "changeset/fileSet": lambda state, action: with_item(state, "files", "id", action["file"]),
    "changeset/fileRemoved": lambda state, action: without_item(state, "files", "id", action["fileId"]),
    "changeset/filesReviewChanged": _review,
    "changeset/contentChanged": _replace,
    "changeset/operationsChanged": setter("operations"),
    "changeset/operationStatusChanged": _change_operation,
    "changeset/cleared": lambda state, _: changed(state, files=[]),
}
