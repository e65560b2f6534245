"""The reducer of the root channel: agents, host configuration, counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat.ahp.states.values import Action, Reducer, State, reduce, setter, with_config

REDUCERS: Final[Mapping[str, Reducer]] = {
    "root/agentsChanged": setter("agents"),
    "root/activeSessionsChanged": setter("activeSessions"),
    "root/terminalsChanged": setter("terminals"),
    "root/configChanged": with_config,
}


def reduce_root(state: State, action: Action) -> State:
    """Return the state of the root channel after an action."""
    return reduce(REDUCERS, state, action)
