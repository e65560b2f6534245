"""The services of a session's owner for the doors of all replicas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias
from uuid import uuid4

import orjson
from anyio.abc import TaskGroup

from jumpseat.ahp.hub.channels import Channel, Numbered, Origin
from jumpseat.ahp.hub.numbers import Numbers
from jumpseat.ahp.live import client_tools
from jumpseat.ahp.live.customizations import offer_token
from jumpseat.ahp.live.dispatches import attempt, carry_out
from jumpseat.ahp.live.door import TAKEN, Door
from jumpseat.ahp.live.errors import error_of
from jumpseat.ahp.live.mirror import Mirror
from jumpseat.ahp.methods import changesets, files
from jumpseat.ahp.states.values import JsonObject, State
from jumpseat.ahp.translation.uris import owner_of, session_uri
from jumpseat.errors import JumpseatError, SessionNotFoundError
from jumpseat.rpc.connection import Connection
from jumpseat.sessions.access import NOTHING, Access
from jumpseat.sessions.context import Server

OPENED: Final = "ahp.opened"
ACTION: Final = "ahp.action"
PART_OPENED: Final = "ahp.partOpened"
PART_CLOSED: Final = "ahp.partClosed"
"""The notifications to the doors of other replicas: the states of a session's channels, an action on one, and the
further channels that are opened and closed meanwhile."""
DISPATCH: Final = "ahp.dispatch"
ARRIVE: Final = "ahp.arrive"
WITHDRAW: Final = "ahp.withdraw"
REQUEST: Final = "ahp.request"
"""The requests of doors, besides those that open, create, leave and delete a session."""
OPEN_CHANGESET: Final = "openChangeset"
"""Besides the requests of clients, what a door asks for about a session: to open the channel of a changeset."""
DELETE: Final = "sessions.delete"
"""The method of all clients that deletes a session, and fails for unknown ones."""
MOVED: Final = "$/moved"
"""See :data:`jumpseat.cluster.relay.session_calls.MOVED_NOTE`."""

Handler: TypeAlias = Callable[[Any], Any]


class OwnerDoor(Door, ABC):
    """A door that serves those of other replicas."""

    def __init__(self, server: Server, tasks: TaskGroup, numbers: Numbers) -> None:
        super().__init__(server, tasks, numbers)
        # By session and client: the place where the client is.
        self._places: dict[str, dict[str, str]] = {}

    @abstractmethod
    async def open_here(self, uri: str, access: Access) -> Mirror | None:
        """Open a session that this replica owns. See :meth:`Door.open`."""

    @abstractmethod
    async def create_here(self, uri: str, access: Access, options: JsonObject) -> None:
        """Create a session whose id this replica has claimed. See :meth:`Door.create`."""

    def find(self, session_id: str) -> Mirror | None:
        """Return the open mirror of a session of this replica."""
        return self._mirrors.get(session_id)

    def note_place(self, session_id: str, client_id: str, place: str) -> None:
        """Note at which replica a client of a session is."""
        self._places.setdefault(session_id, {})[client_id] = place

    def arrive(self, mirror: Mirror, client_id: str, access: Access, place: str, *, is_new: bool) -> None:
        """Note that an active client has come to another replica. One that begins anew has no tools."""
        places = self._places.get(mirror.session_id, {})
        if not is_active(mirror.state, client_id) or places.get(client_id) == place:
            return
        if not self.may_act(mirror.session_id, client_id, access):
            return
        if is_new:
            client_tools.remove_client(mirror, client_id)
        else:
            self.note_place(mirror.session_id, client_id, place)

    def withdraw_from(self, mirror: Mirror, client_id: str, place: str) -> None:
        """Withdraw the tools of a client that has left a replica, unless it has come to another one."""
        if self._places.get(mirror.session_id, {}).get(client_id) == place:
            client_tools.remove_client(mirror, client_id)

    def forget_place(self, place: str) -> None:
        """Withdraw the tools of the clients of a replica that is gone, unless they have come to another one."""
        for mirror in list(self._mirrors.values()):
            for client_id in [one for one, at in self._places.get(mirror.session_id, {}).items() if at == place]:
                client_tools.remove_client(mirror, client_id)

    def forget_clients(self, session_id: str) -> None:
        """Forget the clients of a session that is no longer open here."""
        self._places.pop(session_id, None)
        self._tokens.pop(session_id, None)


def is_active(session: State, client_id: str) -> bool:
    """Return whether a client is one of the active clients of a session."""
    return any(client["clientId"] == client_id for client in session.get("activeClients") or ())


class Guest:
    """The door of another replica, a subscriber of the sessions that its clients watch.

    ``client_id`` is hard to guess: no client can take the place of the guest.
    """

    def __init__(self, door: OwnerDoor, connection: Connection) -> None:
        self.door = door
        self.client_id = uuid4().hex
        self.place = ""
        """The name that the door gives itself, for all tokens."""
        self.initialized = self.returned = True
        self._connection = connection
        self._begin = b'{"from":' + orjson.dumps(self.client_id) + b',"envelope":'

    @property
    def rights(self) -> Access:
        """The rights of the token whose clients the door serves."""
        return self._connection.access or NOTHING

    def deliver(self, envelope: bytes, published: Numbered | None = None) -> None:
        self._connection.peer.notify_encoded(ACTION, self._begin, envelope, b"}")

    def renew(self, uri: str) -> None:
        """Let the other replica open the session again."""
        self._connection.notify(MOVED, {"sessionId": owner_of(uri)})

    def tell(self, created_by: str | None, method: str, params: JsonObject) -> None:
        """Do nothing: each replica tells its own clients of sessions."""

    @property
    def behind(self) -> bool:
        return self._connection.behind

    async def drain(self) -> None:
        await self._connection.drain()

    def show(self, mirror: Mirror) -> None:
        """Subscribe to a session, and send the states of its channels."""
        hub = self.door.hub
        if not hub.knows(self):
            hub.introduce(self, self.rights)
        uris = (*mirror.uris, *hub.parts(mirror.session_uri))
        states = {uri: hub.subscribe(self, uri)["state"] for uri in uris}
        channel = hub.get(mirror.session_uri)
        params = {
            "sessionId": mirror.session_id,
            "from": self.client_id,
            "createdAt": mirror.created_at,
            "createdBy": channel.created_by if channel is not None else None,
            "states": states,
        }
        self._connection.peer.notify_encoded(OPENED, orjson.dumps(params))

    def show_part(self, whole: str, channel: Channel) -> None:
        """Subscribe to a further channel of a session, and send its state."""
        self.door.hub.subscribe(self, channel.uri)
        params = {"from": self.client_id, "session": whole, "channel": channel.uri, "state": channel.state}
        self._connection.peer.notify_encoded(PART_OPENED, orjson.dumps(params))

    def hide_part(self, uri: str) -> None:
        self._connection.notify(PART_CLOSED, {"from": self.client_id, "channel": uri})

    def leave(self, session_id: str) -> None:
        """End the subscriptions to a session."""
        if self.door.hub.knows(self) and (mirror := self.door.find(session_id)) is not None:
            for uri in (*mirror.uris, *self.door.hub.parts(mirror.session_uri)):
                self.door.hub.unsubscribe(self, uri)


class OwnerService:
    """Serves the requests of one door about sessions that this replica owns.

    ``find_other`` returns what serves the methods that all clients have. The door of another replica is a guest.
    """

    def __init__(
        self, door: OwnerDoor, connection: Connection, find_other: Callable[[str], Handler | None], *, guest: bool
    ) -> None:
        self.guest = Guest(door, connection) if guest else None
        self._door = door
        self._connection = connection
        self._find_other = find_other
        self._handlers: Mapping[str, Handler] = {
            "session.resume": self._open,
            "session.create": self._create,
            "session.detach": self._leave,
            DISPATCH: self._dispatch,
            ARRIVE: self._arrive,
            WITHDRAW: self._withdraw,
            REQUEST: self._request,
        }

    def find(self, method: str) -> Handler | None:
        """Return the function that serves a method; ``None`` if doors do not call it."""
        return self._find_other(method) if method == DELETE else self._handlers.get(method)

    @property
    def _rights(self) -> Access:
        return self._connection.access or NOTHING

    async def _open(self, params: JsonObject) -> JsonObject:
        session_id: str = params["sessionId"]
        mirror = await self._door.open_here(session_uri(session_id), self._rights)
        if mirror is None:
            raise SessionNotFoundError(session_id)
        if self.guest is not None:
            self.guest.place = params["place"]
            self.guest.show(mirror)
        return {}

    async def _create(self, params: JsonObject) -> JsonObject:
        create = self._door.create_here(session_uri(params["sessionId"]), self._rights, params["options"])
        return await _answered(create)

    def _leave(self, params: JsonObject) -> JsonObject:
        if self.guest is not None:
            self.guest.leave(params["sessionId"])
        return {}

    async def _mirror(self, params: JsonObject) -> Mirror:
        """Return the session of a request.

        Raises:
            SessionNotFoundError: the client does not see it.
        """
        mirror = await self._door.open_here(session_uri(params["sessionId"]), self._rights)
        if mirror is None:
            raise SessionNotFoundError(params["sessionId"])
        return mirror

    def _dispatch(self, params: JsonObject) -> JsonObject | Coroutine[Any, Any, JsonObject]:
        """Carry out an action at once: its place among the others is that of its arrival."""
        mirror = self._door.mirror(params["channel"], self._rights)
        if mirror is not None and self._door.is_live(mirror):
            return self._carry_out(mirror, params)
        return self._dispatch_later(params)

    async def _dispatch_later(self, params: JsonObject) -> JsonObject:
        return self._carry_out(await self._mirror(params), params)

    def _carry_out(self, mirror: Mirror, params: JsonObject) -> JsonObject:
        client_id, action, channel = params["clientId"], params["action"], params["channel"]
        origin = Origin(client_id, params["clientSeq"], self.guest, self._rights)
        if not self._door.may_act(mirror.session_id, client_id, self._rights):
            return {"refused": TAKEN}
        if self._door.hub.get(channel) is None:
            return {}
        reason = attempt(channel, action, mirror, lambda: carry_out(mirror, channel, action, origin))
        if reason is not None:
            return {"refused": reason}
        self._door.note_place(mirror.session_id, client_id, params["place"])
        return {}

    async def _arrive(self, params: JsonObject) -> JsonObject:
        """Note that a client is at another replica now. One that begins anew has no tools."""
        mirror = await self._mirror(params)
        self._door.arrive(mirror, params["clientId"], self._rights, params["place"], is_new=params["isNew"])
        return {}

    async def _withdraw(self, params: JsonObject) -> JsonObject:
        """Withdraw the tools of a client, unless it has come to another replica."""
        mirror, client_id = await self._mirror(params), params["clientId"]
        if self._door.has_acted(mirror.session_id, client_id, self._rights):
            self._door.withdraw_from(mirror, client_id, params["place"])
        return {}

    async def _request(self, params: JsonObject) -> JsonObject:
        return await _answered(self._answer(params, params["call"], params["params"]))

    async def _answer(self, params: JsonObject, method: str, given: JsonObject) -> JsonObject:
        mirror = await self._mirror(params)
        if method == OPEN_CHANGESET:
            await mirror.changesets.open(given["channel"])
            return {}
        if method == "authenticate":
            return {"found": offer_token(mirror, given["resource"], given["token"])}
        peer = self.guest or Guest(self._door, self._connection)
        serve = {
            "completions": files.completions,
            "invokeChangesetOperation": changesets.invoke,
            "resourceRead": files.read,
            "resourceList": files.list_entries,
            "resourceResolve": files.resolve,
        }[method]
        return await serve(peer, given)


async def _answered(work: Coroutine[Any, Any, Any]) -> JsonObject:
    """Return the result of some work, or its error with the code that clients of this protocol know."""
    try:
        return {"result": await work}
    except JumpseatError as error:
        found = error_of(error)
        return {"error": {"code": found.code, "message": found.message, "data": found.data}}
