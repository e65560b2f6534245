"""The connection of one client: its transport, its JSON-RPC, and its dispatches, which are handled in order."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeGuard, cast

import anyio
from anyio.abc import TaskGroup

from jumpseat.ahp.hub.channels import Channel, Numbered, Origin
from jumpseat.ahp.hub.delta_coalescer import HeldDeltas
from jumpseat.ahp.live.dispatches import attempt, carry_out
from jumpseat.ahp.live.door import TAKEN, Door
from jumpseat.ahp.live.errors import AhpError, error_of
from jumpseat.ahp.methods import changesets, files, handshake, sessions
from jumpseat.ahp.names import Names
from jumpseat.ahp.states.values import Action, JsonObject
from jumpseat.ahp.translation.shapes import excess_of
from jumpseat.ahp.translation.uris import ROOT
from jumpseat.errors import JumpseatError
from jumpseat.rpc.client import DRAIN_TIMEOUT_S
from jumpseat.rpc.json_rpc_peer import Dialect, JsonRpcPeer
from jumpseat.rpc.transport import Framing, Wire
from jumpseat.sessions.access import Access
from jumpseat.system.log_fields import fields
from jumpseat_protocol.envelope import INVALID_REQUEST, MAX_BODY_BYTES, FramingError
from jumpseat_protocol.members import nearest
from jumpseat_protocol.methods import ALIKE

log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Any, JsonObject], Any]

BEFORE: Final[Mapping[str, Handler]] = {
    "ping": handshake.ping,
    "initialize": handshake.initialize,
    "reconnect": handshake.reconnect,
}
AFTER: Final[Mapping[str, Handler]] = {
    "subscribe": sessions.subscribe,
    "fetchTurns": sessions.fetch_turns,
    "listSessions": sessions.list_all,
    "createSession": sessions.create,
    "disposeSession": sessions.dispose,
    "resolveSessionConfig": sessions.resolve_config,
    "sessionConfigCompletions": sessions.complete_config,
    "authenticate": sessions.authenticate,
    "completions": files.completions,
    "resourceRead": files.read,
    "resourceList": files.list_entries,
    "resourceResolve": files.resolve,
    "resourceRequest": files.request,
    "invokeChangesetOperation": changesets.invoke,
}
AHP: Final = Dialect(
    error_of=error_of,
    notifications=("dispatchAction", "unsubscribe"),
    nearest=lambda name: nearest(name, (*BEFORE, *AFTER), ALIKE),
)
HELD_CHARS: Final = 8 << 20
"""With more characters in held deltas, the deltas are sent."""
MOST_WAITING: Final = 1000
"""The dispatches of a connection that may wait for a session to be opened."""


class AhpConnection:
    """A client on the other end of a transport. See :class:`jumpseat.network.listener.Newcomer`."""

    admitted = True

    def __init__(
        self,
        door: Door,
        access: Access,
        tasks: TaskGroup,
        mask: Callable[[str], str],
        on_close: Callable[[AhpConnection], None],
        framing: Framing,
        peer: str | None = None,
    ) -> None:
        self.door = door
        self.access: Access | None = access
        self.client_id = ""
        self.initialized = False
        self.returned = False
        self._tasks = tasks
        self._peer = peer
        self._on_close = on_close
        self._dispatches: deque[tuple[str, int, Action]] = deque()
        self._slow = False
        self._held = HeldDeltas()
        self._names = Names()
        self.wire = Wire(
            self._body, self._framing_error, self._handle_close, framing, self._release, on_end=self.close
        )
        self.wire.limit(MAX_BODY_BYTES)
        self.peer = JsonRpcPeer(self._send, tasks, mask, AHP, label=lambda: self.label)
        self.peer.find = self._find
        door.connections.add(self)
        log.info("client connected", extra=fields(client=self.label))

    @property
    def rights(self) -> Access:
        """The rights of the connection's token."""
        assert self.access is not None
        return self.access

    @property
    def label(self) -> str:
        """The name of the connection in the log."""
        name = self.access.name if self.access is not None else None
        return " ".join(filter(None, (name, self._peer))) or "agent host client"

    def _find(self, method: str) -> Callable[[Any], Any] | None:
        if method == "dispatchAction":
            return self._take_dispatch
        if method == "unsubscribe":
            return self._unsubscribe
        handler = BEFORE.get(method) or (AFTER.get(method) if self.initialized else None)
        return None if handler is None else lambda params: handler(self, self._names.inward(limited(params)))

    def _unsubscribe(self, params: Any) -> None:
        uri = channel_of(self._names.inward(params))
        self.door.hub.unsubscribe(self, uri)
        self.door.withdraw_tools(self.client_id, self.rights, uri)

    # --- dispatches ---------------------------------------------------------------------------------------------

    def _take_dispatch(self, params: Any) -> None:
        members = checked(self._names.inward(params))
        channel, client_seq, action = members.get("channel"), members.get("clientSeq"), members.get("action")
        if not self.initialized or not isinstance(channel, str) or not _is_number(client_seq):
            log.info("ignored a malformed dispatch", extra=fields(client=self.label))
            return
        if len(self._dispatches) >= MOST_WAITING:
            self._refuse(channel, client_seq, action, "too many actions wait")
            return
        self._dispatches.append((channel, client_seq, cast("Action", action)))
        if len(self._dispatches) == 1 and not self._carry_out_now():
            self._tasks.start_soon(self._carry_out_later)

    def _carry_out_now(self) -> bool:
        """Carry out the first dispatch, unless its session has to be opened before."""
        channel, client_seq, action = self._dispatches[0]
        if self.door.relay(self, channel, client_seq, action):
            self._dispatches.popleft()
            return True
        mirror = self.door.mirror(channel, self.rights)
        if channel != ROOT and (mirror is None or not self.door.is_live(mirror)):
            return False
        self._dispatches.popleft()
        self._carry_out(channel, client_seq, action)
        return True

    async def _carry_out_later(self) -> None:
        while self._dispatches:
            channel = self._dispatches[0][0]
            try:
                await self.door.open(channel, self.rights)
            except JumpseatError as error:
                log.info("cannot open a session: %s", error, extra=fields(client=self.label))
            dispatch = self._dispatches.popleft()
            if not self.door.relay(self, *dispatch):
                self._carry_out(*dispatch)

    def _carry_out(self, channel: str, client_seq: int, action: Action) -> None:
        """Carry out an action, or refuse it. Actions on channels that do not exist are ignored."""
        if self.door.hub.get(channel, self.rights) is None:
            return
        mirror = self.door.mirror(channel, self.rights) if channel != ROOT else None
        origin = Origin(self.client_id, client_seq, access=self.rights)
        if mirror is None:
            reason = attempt(channel, action, None, lambda: self.door.configure(action, origin, self.rights))
        elif not self.door.may_act(mirror.session_id, self.client_id, self.rights):
            reason = TAKEN
        else:
            reason = attempt(channel, action, mirror, lambda: carry_out(mirror, channel, action, origin))
        if reason is not None:
            self._refuse(channel, client_seq, action, reason)

    def _refuse(self, channel: str, client_seq: int, action: Any, reason: str) -> None:
        self.door.hub.refuse(Origin(self.client_id, client_seq, access=self.rights), channel, action, reason)

    # --- messages to the client ---------------------------------------------------------------------------------

    def deliver(self, envelope: bytes, published: Numbered | None = None) -> None:
        """Send an action in its envelope. For a client that is far behind, deltas are held and joined."""
        may_wait = published is not None and self.wire.lossy and self._held.size < HELD_CHARS
        if published is not None and may_wait and self._held.hold(published):
            return
        self.peer.notify_encoded("action", envelope)

    def renew(self, uri: str) -> None:
        """End the connection: no message replaces a state, so the client has to connect again for a snapshot."""
        log.info("a client has to connect again: %s has another state", uri, extra=fields(client=self.label))
        self._tasks.start_soon(self._close_soon)

    async def _close_soon(self) -> None:
        self.close()

    def show_part(self, whole: str, channel: Channel) -> None:
        """Do nothing: clients are told of further channels by actions, and subscribe to those that they show."""

    def hide_part(self, uri: str) -> None:
        """Do nothing, as for :meth:`show_part`."""

    def _release(self) -> None:
        """Send the held deltas."""
        if (envelope := self._held.take()) is not None:
            self.peer.notify_encoded("action", envelope)

    def _send(self, *message: bytes | memoryview) -> None:
        """Send a message behind the deltas that are held: clients rely on the order."""
        self._release()
        self.wire.send(*self._names.outward(message))

    def tell(self, created_by: str | None, method: str, params: JsonObject) -> None:
        """Send a notification of the root channel about a session, if the client subscribes to it and may see it.

        ``created_by`` is the name of the token to whose sessions it belongs.
        """
        if self.rights.sees(created_by) and self.door.hub.has_subscriber(ROOT, self):
            self.peer.notify(method, params)

    def announce(self, params: dict[str, Any], created_by: str | None) -> None:
        """Tell the client that a session is gone. See :class:`jumpseat.doors.ClientConnection`."""
        sessions.announce(self, params, created_by)

    @property
    def behind(self) -> bool:
        """Return whether much of what was sent is unread."""
        return self.wire.busy

    async def drain(self) -> None:
        """Wait until the client has read most of what was sent to it; once, if it has stopped reading."""
        if self._slow and self.wire.busy:
            return
        with anyio.move_on_after(DRAIN_TIMEOUT_S) as scope:
            await self.wire.drain()
        self._slow = scope.cancelled_caught

    async def wait_until_settled(self) -> None:
        """Return at once: the token was checked before."""

    def close(self) -> None:
        """Send the queued messages and end the connection."""
        self.wire.close()

    def abort(self) -> None:
        """End the connection at once, also if it has no transport yet."""
        self.wire.abort()

    # --- the transport ------------------------------------------------------------------------------------------

    def _body(self, body: bytes) -> None:
        self.peer.receive(body)

    def _framing_error(self, error: FramingError) -> None:
        self.peer.refuse(INVALID_REQUEST, error.message)
        self.close()

    def _handle_close(self) -> None:
        log.info("client disconnected", extra=fields(client=self.label))
        self.peer.close()
        self.door.connections.discard(self)
        self.door.hub.leave(self)
        self._on_close(self)


def _is_number(value: Any) -> TypeGuard[int]:
    """Return whether a value is an unsigned integer that all clients can read."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def checked(params: Any) -> JsonObject:
    """Return the params of a message.

    Raises:
        AhpError: they are not an object.
    """
    if not isinstance(params, dict):
        raise AhpError.invalid("params: expected an object")
    return cast("JsonObject", params)


def limited(params: Any) -> JsonObject:
    """Return the params of a request.

    Raises:
        AhpError: they are not an object, or too much.
    """
    if (excess := excess_of(params)) is not None:
        raise AhpError.invalid(f"params: {excess}")
    return checked(params)


def channel_of(params: Any) -> str:
    """Return the channel that a message is about, an empty string without one."""
    channel = checked(params).get("channel")
    return channel if isinstance(channel, str) else ""
