"""Deltas of one part or call in one: a reducer copies the whole text for each, a client needs bytes for each."""

from __future__ import annotations

from io import StringIO
from typing import Final

from jumpseat.ahp.states.values import Action

_SUBJECT: Final = ("type", "turnId", "partId", "toolCallId")
_TEXT: Final = frozenset(("chat/delta", "chat/reasoning", "chat/toolCallDelta"))


class JoinedDeltas:
    """The deltas behind a first one, which has shown that its part exists."""

    def __init__(self) -> None:
        self._first: Action | None = None
        self._text = StringIO()
        self.size = 0
        """The characters that are held."""

    def begin(self, action: Action) -> None:
        """Join only deltas like this action from now on; none if it is no delta."""
        self._first = action if action["type"] in _TEXT else None

    def end(self) -> None:
        """Join nothing more."""
        self._first = None

    def join(self, action: Action) -> bool:
        """Keep a delta; return ``False`` if the action is none, or one of another part or call."""
        first = self._first
        if first is None or not (text := action.get("content")):
            return False
        if any(first.get(name) != action.get(name) for name in _SUBJECT) or action.keys() != first.keys():
            return False
        self._text.write(text)
        self.size += len(text)
        return True

    def take(self) -> Action | None:
        """Remove and return the deltas as one action; ``None`` if there are none."""
        if self._first is None or not self.size:
            return None
        joined = {**self._first, "content": self._text.getvalue()}
        self._text, self.size = StringIO(), 0
        return joined
