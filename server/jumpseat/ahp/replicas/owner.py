"""What the owner of a session does for the doors of other replicas, and for that of its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import uuid4

import orjson

from jumpseat.ahp.hub.channels import Numbered, Origin
from jumpseat.ahp.live.dispatches import attempt, carry_out
from jumpseat.ahp.live.errors import error_of
from jumpseat.ahp.live.logins import offer_token
from jumpseat.ahp.live.mirror import Mirror
from jumpseat.ahp.methods import files
from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.uris import session_of, session_uri
from jumpseat.errors import JumpseatError, SessionNotFoundError
from jumpseat.rpc.connection import Connection
from jumpseat.sessions.access import NOTHING, Access

if TYPE_CHECKING:
    from jumpseat.ahp.replicas.door import ClusterDoor

OPENED: Final = "ahp.opened"
ACTION: Final = "ahp.action"
"""The notifications to the doors of other replicas: the states of a session's channels, and an action on one."""
DISPATCH: Final = "ahp.dispatch"
ARRIVE: Final = "ahp.arrive"
WITHDRAW: Final = "ahp.withdraw"
REQUEST: Final = "ahp.request"
"""The requests of doors, besides those that open, create, leave and delete a session."""
DELETE: Final = "sessions.delete"
"""The method of all clients that deletes a session, and fails for unknown ones."""
MOVED: Final = "$/moved"
"""See :data:`jumpseat.cluster.relay.session_calls.MOVED_NOTE`."""

Handler: TypeAlias = Callable[[Any], Any]


class Guest:
    """The door of another replica, a subscriber of the sessions that its clients watch.

    ``client_id`` is hard to guess: no client can take the place of the guest.
    """

    def __init__(self, door: ClusterDoor, connection: Connection) -> None:
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
        self._connection.notify(MOVED, {"sessionId": session_of(uri)})

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
        if hub.access_of(self.client_id) is None:
            hub.introduce(self, self.rights)
        states = {uri: hub.subscribe(self, uri)["state"] for uri in mirror.uris}
        channel = hub.get(mirror.session_uri)
        params = {
            "sessionId": mirror.session_id,
            "from": self.client_id,
            "createdAt": mirror.created_at,
            "createdBy": channel.created_by if channel is not None else None,
            "states": states,
        }
        self._connection.peer.notify_encoded(OPENED, orjson.dumps(params))

    def leave(self, session_id: str) -> None:
        """End the subscriptions to a session."""
        if (
            self.door.hub.access_of(self.client_id) is not None
            and (mirror := self.door.find(session_id)) is not None
        ):
            for uri in mirror.uris:
                self.door.hub.unsubscribe(self, uri)


class OwnerService:
    """Serves the requests of one door about sessions that this replica owns.

    ``find_other`` returns what serves the methods that all clients have. The door of another replica is a guest.
    """

    def __init__(
        self, door: ClusterDoor, connection: Connection, find_other: Callable[[str], Handler | None], *, guest: bool
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
        client_id, action = params["clientId"], params["action"]
        origin = Origin(client_id, params["clientSeq"], self.guest)
        if not self._door.may_act(mirror.session_id, client_id, self._rights):
            return {"refused": f"clientId {client_id[:100]!r} is taken"}
        reason = attempt(params["channel"], action, mirror, lambda: carry_out(mirror, action, origin))
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
        self._door.withdraw_from(await self._mirror(params), params["clientId"], params["place"])
        return {}

    async def _request(self, params: JsonObject) -> JsonObject:
        return await _answered(self._answer(params, params["call"], params["params"]))

    async def _answer(self, params: JsonObject, method: str, given: JsonObject) -> JsonObject:
        mirror = await self._mirror(params)
        if method == "authenticate":
            return {"found": offer_token(mirror, given["resource"], given["token"])}
        peer = self.guest or Guest(self._door, self._connection)
        serve = {
            "completions": files.completions,
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
