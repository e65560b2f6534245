"""States and actions of AHP as JSON objects, and changes of them that leave the old value untouched.

States are plain objects rather than structs, so that members of later versions of the protocol survive. A function
that changes nothing returns the same object: the identity of a state shows whether an action had an effect. All
other objects of a new state are shared with the old one, so that a delta costs the same in a long chat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
State: TypeAlias = JsonObject
Action: TypeAlias = JsonObject
Reducer: TypeAlias = Callable[[State, Action], State]

IDLE: Final = 1
ERROR: Final = 2
IN_PROGRESS: Final = 8
INPUT_NEEDED: Final = 24
"""Contains the bit of :data:`IN_PROGRESS`."""
READ: Final = 32
ARCHIVED: Final = 64
ACTIVITY: Final = 31
"""The bits of the activity, of which one value holds at a time. All others are independent."""


def reduce(reducers: Mapping[str, Reducer], state: State, action: Action) -> State:
    """Return the state after an action; the same object if the action is unknown or changes nothing."""
    reducer = reducers.get(action["type"])
    return state if reducer is None else reducer(state, action)


def changed(value: JsonObject, **members: Any) -> JsonObject:
    """Return an object with other members, ``None`` standing for absent ones; the same object if all are equal."""
    if all(value.get(name) == member for name, member in members.items()):
        return value
    return present({**value, **members})


def present(value: JsonObject) -> JsonObject:
    """Return an object without the members that are ``None``."""
    return {name: member for name, member in value.items() if member is not None}


def index_of(items: Sequence[JsonObject] | None, key: str, wanted: Any) -> int | None:
    """Return the place of the first item with a value, or ``None``."""
    return next((place for place, item in enumerate(items or ()) if item.get(key) == wanted), None)


def with_item(state: State, name: str, key: str, item: JsonObject) -> State:
    """Return a state whose list ``name`` has an item: in the place of one with the same ``key``, or at the end."""
    items: list[JsonObject] = list(state.get(name) or ())
    place = index_of(items, key, item[key])
    if place is None:
        items.append(item)
    else:
        items[place] = item
    return changed(state, **{name: items})


def without_item(state: State, name: str, key: str, wanted: Any, *, drop_empty: bool = False) -> State:
    """Return a state whose list ``name`` lacks an item; ``drop_empty`` removes the list with its last item."""
    items: list[JsonObject] = list(state.get(name) or ())
    place = index_of(items, key, wanted)
    if place is None:
        return state
    del items[place]
    return changed(state, **{name: None if drop_empty and not items else items})


def with_flag(state: State, flag: int, is_set: bool) -> State:
    """Return a state with a bit of its status set or cleared."""
    return changed(state, status=state["status"] | flag if is_set else state["status"] & ~flag)


def with_config(state: State, action: Action) -> State:
    """Return a state whose configuration has the values of an action, in addition or instead of its own."""
    config = state.get("config")
    if config is None:
        return state
    values = action["config"] if action.get("replace") else {**config["values"], **action["config"]}
    return changed(state, config={**config, "values": values})


def setter(name: str) -> Reducer:
    """Return a reducer that copies a member of the action to the state, and removes it where it is absent."""
    return lambda state, action: changed(state, **{name: action.get(name)})


def with_directory(state: State, action: Action) -> State:
    """Return a state with a further working directory."""
    directories: list[str] = state.get("workingDirectories") or []
    if action["directory"] in directories:
        return state
    return changed(state, workingDirectories=[*directories, action["directory"]])


def without_directory(state: State, action: Action) -> State:
    """Return a state without a working directory."""
    directories: list[str] = state.get("workingDirectories") or []
    if action["directory"] not in directories:
        return state
    return changed(state, workingDirectories=[one for one in directories if one != action["directory"]])
