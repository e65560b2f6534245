"""A channel: its state, its subscribers, and its latest actions for clients that come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import orjson

from jumpseat.ahp.states.deltas import JoinedDeltas
from jumpseat.ahp.states.values import Action, JsonObject, Reducer, State
from jumpseat.sessions.access import EVERYTHING, Access

RING_ACTIONS: Final = 1000
RING_BYTES: Final = 4 << 20
"""The latest actions of a channel that are kept, up to both limits."""


class Origin(NamedTuple):
    """The dispatch that an action is the echo of.

    ``access`` are the rights of its sender, ``via`` is the other replica that the sender is connected to.
    """

    client_id: str
    client_seq: int
    via: Subscriber | None = None
    access: Access = EVERYTHING


class Numbered(NamedTuple):
    """An action of a channel, with its number and the dispatch that it is the echo of."""

    uri: str
    action: Action
    number: int
    origin: Origin | None


class Subscriber(Protocol):
    """A connection that subscribes to channels."""

    client_id: str
    """The name that the client has chosen for itself."""

    def deliver(self, envelope: bytes, published: Numbered | None = None) -> None:
        """Send an action in its envelope, as JSON; ``published`` is the same, if all subscribers get it."""
        ...

    def renew(self, uri: str) -> None:
        """Let the client get a snapshot of a channel, which no longer continues what was sent."""
        ...

    def show_part(self, whole: str, channel: Channel) -> None:
        """Take note of a further channel that belongs to one to which it subscribes."""
        ...

    def hide_part(self, uri: str) -> None:
        """Take note that such a channel is closed."""
        ...


def envelope_of(
    channel: str, action: Action, number: int, origin: Origin | None = None, rejection: str | None = None
) -> bytes:
    """Return an action in its envelope, as JSON."""
    envelope: JsonObject = {"channel": channel, "action": action, "serverSeq": number}
    if origin is not None:
        envelope["origin"] = {"clientId": origin.client_id, "clientSeq": origin.client_seq}
    if rejection is not None:
        envelope["rejectionReason"] = rejection
    return orjson.dumps(envelope)


class Channel:
    """A channel with a state. ``created_by`` is the name of the token to whose sessions it belongs.

    ``began_at`` is the number after which all actions of the channel are in its ring.
    """

    def __init__(
        self,
        uri: str,
        state: State,
        reducer: Reducer,
        began_at: int,
        created_by: str | None = None,
        ring_actions: int = RING_ACTIONS,
    ) -> None:
        self.uri = uri
        self._state = state
        # The deltas that are not in the state yet: each would copy the text of its part.
        self._deltas = JoinedDeltas()
        self.created_by = created_by
        self.subscribers: dict[Subscriber, None] = {}
        self._reducer = reducer
        self._began_at = began_at
        self._ring: deque[tuple[int, bytes]] = deque()
        self._ring_bytes = 0
        self._ring_actions = ring_actions

    @property
    def state(self) -> State:
        """The state after all actions."""
        if (joined := self._deltas.take()) is not None:
            self._state = self._reducer(self._state, joined)
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._deltas.take()
        self._state = state

    def reduced(self, action: Action) -> State:
        """Return the state that an action would lead to; the present one if it changes nothing."""
        return self._reducer(self.state, action)

    def apply(self, action: Action) -> bool:
        """Apply an action; return ``False`` if it changes nothing."""
        if self._deltas.join(action):
            return True
        before = self.state
        self._state = self.reduced(action)
        if self._state is before:
            self._deltas.end()
            return False
        self._deltas.begin(action)
        return True

    def send(self, action: Action, number: int, origin: Origin | None) -> None:
        """Send an action that was applied to all subscribers."""
        envelope = envelope_of(self.uri, action, number, origin)
        self._ring.append((number, envelope))
        self._ring_bytes += len(envelope)
        while len(self._ring) > self._ring_actions or self._ring_bytes > RING_BYTES:
            self._began_at, dropped = self._ring.popleft()
            self._ring_bytes -= len(dropped)
        published = Numbered(self.uri, action, number, origin)
        for subscriber in list(self.subscribers):
            subscriber.deliver(envelope, published)

    def after(self, number: int) -> Sequence[tuple[int, bytes]] | None:
        """Return the actions after a number, ``None`` if not all of them are kept."""
        if number < self._began_at:
            return None
        return [kept for kept in self._ring if kept[0] > number]

    def snapshot(self, number: int, turns: int | None = None) -> JsonObject:
        """Return the state for a client, with the latest ``turns`` of a chat, or with all.

        ``number`` is the last one that was given: all later actions are not in the state.
        """
        state = self.state
        if turns is not None and len(state.get("turns", ())) > turns:
            kept = state["turns"][len(state["turns"]) - turns :]
            cursor = kept[0]["id"] if kept else END
            state = {**state, "turns": kept, "turnsNextCursor": cursor}
        return {"resource": self.uri, "state": state, "fromSeq": number}


END: Final = "end"
"""The cursor of a snapshot without turns."""


def older_turns(state: State, cursor: str, most: int) -> Action | None:
    """Return the action that loads the turns before a cursor; ``None`` if there is no such turn."""
    turns: list[JsonObject] = state["turns"]
    end = next((place for place, turn in enumerate(turns) if turn["id"] == cursor), None)
    if end is None:
        if cursor != END:
            return None
        end = len(turns)
    begin = max(0, end - most)
    loaded: Action = {"type": "chat/turnsLoaded", "turns": turns[begin:end]}
    return loaded | ({"turnsNextCursor": turns[begin]["id"]} if begin else {})
