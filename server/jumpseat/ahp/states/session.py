"""The reducer of session channels: life cycle, catalogue of chats, open questions, customizations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from jumpseat.ahp.states.values import (
    ACTIVITY,
    ARCHIVED,
    IN_PROGRESS,
    INPUT_NEEDED,
    READ,
    Action,
    JsonObject,
    Reducer,
    State,
    changed,
    index_of,
    present,
    reduce,
    setter,
    with_config,
    with_directory,
    with_flag,
    with_item,
    without_directory,
    without_item,
)


def reduce_session(state: State, action: Action) -> State:
    """Return the state of a session after an action."""
    return reduce(REDUCERS, state, action)


def _fail(state: State, action: Action) -> State:
    return changed(state, lifecycle="failed", creationError=action["error"])


# --- chats ------------------------------------------------------------------------------------------------------


def _remove_chat(state: State, action: Action) -> State:
    removed = without_item(state, "chats", "resource", action["chat"])
    if removed is not state and state.get("defaultChat") == action["chat"]:
        return changed(removed, defaultChat=None)
    return removed


def _update_chat(state: State, action: Action) -> State:
    place = index_of(state["chats"], "resource", action["chat"])
    if place is None:
        return state
    chat = state["chats"][place]
    changes = {name: value for name, value in action["changes"].items() if value is not None}
    return with_item(state, "chats", "resource", {**chat, **changes, "resource": chat["resource"]})


def _reorder_chats(state: State, action: Action) -> State:
    known = {chat["resource"]: chat for chat in state["chats"]}
    order: list[str] = action["chats"]
    if len(order) != len(known) or set(order) != known.keys():
        return state
    return changed(state, chats=[known[resource] for resource in order])


# --- questions --------------------------------------------------------------------------------------------------


def _set_input_needed(state: State, action: Action) -> State:
    return _with_input_status(with_item(state, "inputNeeded", "id", action["request"]))


def _remove_input_needed(state: State, action: Action) -> State:
    removed = without_item(state, "inputNeeded", "id", action["id"], drop_empty=True)
    return state if removed is state else _with_input_status(removed)


def _with_input_status(state: State) -> State:
    """Return a state whose status shows whether a person is awaited; tools that clients run do not count."""
    status: int = state["status"]
    if any(request["kind"] != "toolClientExecution" for request in state.get("inputNeeded") or ()):
        return changed(state, status=status & ~ACTIVITY | INPUT_NEEDED)
    return changed(state, status=status & ~(INPUT_NEEDED & ~IN_PROGRESS))


# --- working directories ----------------------------------------------------------------------------------------


def _replace_directory(state: State, action: Action) -> State:
    directories: list[str] = state.get("workingDirectories") or []
    old, new = action["directory"], action["replacement"]
    if old not in directories:
        return state
    place = directories.index(old)
    if new in directories[:place]:
        return changed(state, workingDirectories=[*directories[:place], *directories[place + 1 :]])
    later = [one for one in directories[place + 1 :] if one != new]
    return changed(state, workingDirectories=[*directories[:place], new, *later])


# --- customizations ---------------------------------------------------------------------------------------------


def _customize(state: State, item_id: str, change: Callable[[JsonObject, bool], JsonObject | None]) -> State:
    """Return a state in which one customization, at the top or in a container, was given to ``change``.

    ``change`` gets the customization and whether it is in a container; ``None`` as its result removes it.
    """
    items: list[JsonObject] | None = state.get("customizations")
    place = index_of(items, "id", item_id)
    if items is None:
        return state
    if place is not None:
        return changed(state, customizations=_with_change(items, place, change(items[place], False)))
    for at, container in enumerate(items):
        children: list[JsonObject] = container.get("children") or []
        if (place := index_of(children, "id", item_id)) is not None:
            inner = _with_change(children, place, change(children[place], True))
            return changed(state, customizations=_with_change(items, at, {**container, "children": inner}))
    return state


def _with_change(items: list[JsonObject], place: int, item: JsonObject | None) -> list[JsonObject]:
    return [*items[:place], *(() if item is None else (item,)), *items[place + 1 :]]


def _toggle(state: State, action: Action) -> State:
    enablement: list[JsonObject] = action["enablement"]
    enabled = enablement[0].get("enabled", False) if enablement else True

    def toggle(item: JsonObject, is_child: bool) -> JsonObject:
        # Only plugins and MCP servers show in which scopes they were switched.
        if item.get("type") == "mcpServer" or (item.get("type") == "plugin" and not is_child):
            return present({**item, "enablement": enablement or None})
        return {**item, "enabled": enabled}

    return _customize(state, action["id"], toggle)


def _remove_customization(state: State, action: Action) -> State:
    return _customize(state, action["id"], lambda _item, _is_child: None)


def _with_server_state(state: State, server_id: str, server: JsonObject, channel: str | None) -> State:
    def change(item: JsonObject, _is_child: bool) -> JsonObject:
        return present({**item, "state": server, "channel": channel}) if item["type"] == "mcpServer" else item

    return _customize(state, server_id, change)


def _start_in_background(state: State, action: Action) -> State:
    def change(item: JsonObject, _is_child: bool) -> JsonObject:
        server: JsonObject = item.get("state") or {}
        if item["type"] != "mcpServer" or server.get("kind") != "starting" or not server.get("blocking"):
            return item
        return {**item, "state": {**server, "blocking": False}}

    return _customize(state, action["id"], change)


REDUCERS: Final[Mapping[str, Reducer]] = {
    "session/ready": lambda state, _: changed(state, lifecycle="ready"),
    "session/creationFailed": _fail,
    "session/chatAdded": lambda state, action: with_item(state, "chats", "resource", action["summary"]),
    "session/chatRemoved": _remove_chat,
    "session/chatUpdated": _update_chat,
    "session/chatsReordered": _reorder_chats,
    "session/defaultChatChanged": setter("defaultChat"),
    "session/titleChanged": setter("title"),
    "session/isReadChanged": lambda state, action: with_flag(state, READ, action["isRead"]),
    "session/isArchivedChanged": lambda state, action: with_flag(state, ARCHIVED, action["isArchived"]),
    "session/activityChanged": setter("activity"),
    "session/configChanged": with_config,
    "session/metaChanged": setter("_meta"),
    "session/serverToolsChanged": lambda state, action: changed(state, serverTools=action["tools"]),
    "session/activeClientSet": lambda state, action: with_item(
        state, "activeClients", "clientId", action["activeClient"]
    ),
    "session/activeClientRemoved": lambda state, action: without_item(
        state, "activeClients", "clientId", action["clientId"]
    ),
    "session/inputNeededSet": _set_input_needed,
    "session/inputNeededRemoved": _remove_input_needed,
    "session/changesetsChanged": setter("changesets"),
    "session/customizationsChanged": setter("customizations"),
    "session/customizationUpdated": lambda state, action: with_item(
        state, "customizations", "id", action["customization"]
    ),
    "session/customizationRemoved": _remove_customization,
    "session/customizationToggled": _toggle,
    "session/mcpServerStateChanged": lambda state, action: _with_server_state(
        state, action["id"], action["state"], action.get("channel")
    ),
    "session/mcpServerStartRequested": lambda state, action: _with_server_state(
        state, action["id"], {"kind": "starting"}, None
    ),
    "session/mcpServerStopRequested": lambda state, action: _with_server_state(
        state, action["id"], {"kind": "stopped"}, None
    ),
    "session/mcpServerBackgroundRequested": _start_in_background,
    "session/workingDirectorySet": with_directory,
    "session/workingDirectoryRemoved": without_directory,
    "session/workingDirectoryReplaced": _replace_directory,
}
