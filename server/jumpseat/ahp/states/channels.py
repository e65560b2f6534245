"""The reducers of all channels, by the kind of the channel, with which the types of its actions begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat.ahp.states.changeset import reduce_changeset
from jumpseat.ahp.states.chat import reduce_chat
from jumpseat.ahp.states.root import reduce_root
from jumpseat.ahp.states.session import reduce_session
from jumpseat.ahp.states.terminal import reduce_terminal
from jumpseat.ahp.states.values import Reducer

REDUCERS: Final[Mapping[str, Reducer]] = {
    "root": reduce_root,
    "session": reduce_session,
    "chat": reduce_chat,
    "terminal": reduce_terminal,
    "changeset": reduce_changeset,
}
