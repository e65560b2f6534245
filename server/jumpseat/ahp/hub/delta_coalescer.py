"""The deltas for a client that is far behind: joined, as long as nothing else has to be sent."""

from __future__ import annotations

from typing import Final

from jumpseat.ahp.hub.channels import Numbered, envelope_of
from jumpseat.ahp.states.deltas import JoinedDeltas

_WHOLE: Final = frozenset(("chat/toolCallContentChanged", "chat/usage"))
"""Each of these replaces the one before of its call or turn."""


class HeldDeltas:
    """The latest deltas of one part or call. The numbers of a client only grow, so that others end the wait."""

    def __init__(self) -> None:
        self._deltas = JoinedDeltas()
        self._last: Numbered | None = None

    @property
    def size(self) -> int:
        """The characters that are held."""
        return self._deltas.size

    def hold(self, published: Numbered) -> bool:
        """Keep a delta; return ``False`` if the action is none, or cannot be joined with those that are held."""
        action, last = published.action, self._last
        if published.origin is not None:
            return False
        if action["type"] in _WHOLE:
            if last is not None and (last.uri, _owner(last.action)) != (published.uri, _owner(action)):
                return False
        else:
            if last is None:
                self._deltas.begin(action)
            elif last.uri != published.uri or last.action["type"] in _WHOLE:
                return False
            if not self._deltas.join(action):
                return False
        self._last = published
        return True

    def take(self) -> bytes | None:
        """Remove and return what is held in one envelope; ``None`` if there is nothing."""
        last, self._last = self._last, None
        joined = self._deltas.take()
        return None if last is None else envelope_of(last.uri, joined or last.action, last.number)


def _owner(action: dict[str, object]) -> tuple[object, ...]:
    return action["type"], action["turnId"], action.get("toolCallId")
