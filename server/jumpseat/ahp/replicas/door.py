"""The door of a replica: its clients use the sessions of all replicas."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import anyio
import anyio.lowlevel
import orjson
from anyio.abc import TaskGroup
from msgspec import Struct

from jumpseat.ahp.hub.channels import Origin
from jumpseat.ahp.hub.numbers import Numbers
from jumpseat.ahp.live.audience import Reader
from jumpseat.ahp.live.door import Peer
from jumpseat.ahp.live.errors import AhpError
from jumpseat.ahp.live.mirror import Mirror
from jumpseat.ahp.replicas.link import Cluster, Link, result_of
from jumpseat.ahp.replicas.owner import (
    ACTION,
    ARRIVE,
    DELETE,
    DISPATCH,
    OPEN_CHANGESET,
    OPENED,
    PART_CLOSED,
    PART_OPENED,
    REQUEST,
    WITHDRAW,
    Guest,
    Handler,
    OwnerDoor,
    OwnerService,
    is_active,
)
from jumpseat.ahp.states.channels import REDUCERS
from jumpseat.ahp.states.values import IDLE, Action, JsonObject, State, present
from jumpseat.ahp.translation.attachments import path_of
from jumpseat.ahp.translation.summaries import live_summary, with_activity
from jumpseat.ahp.translation.uris import (
    PROVIDER,
    ROOT,
    chat_uri,
    is_session,
    kind_of,
    owner_of,
    session_of,
    session_uri,
)
from jumpseat.errors import JumpseatError, OutcomeUnknownError, SessionNotFoundError
from jumpseat.rpc.connection import Connection
from jumpseat.sessions.access import Access
from jumpseat.sessions.context import Server
from jumpseat_protocol.envelope import INVALID_OPERATION

log = logging.getLogger(__name__)

NAME: Final = "ahp"
"""The name of this door between replicas."""
_LISTED: Final = frozenset(
    ("session/chatUpdated", "session/titleChanged", "session/isReadChanged", "session/isArchivedChanged")
)
"""The actions that change the entry of a session in lists."""


class Far(Struct):
    """A session of another replica. ``source`` is the name of its owner's subscriber, ``link`` the way there."""

    session_id: str
    link: Link
    source: str
    created_at: str
    created_by: str | None

    @property
    def uris(self) -> tuple[str, str]:
        return session_uri(self.session_id), chat_uri(self.session_id)


class ClusterDoor(OwnerDoor):
    """A door in a cluster."""

    def __init__(self, server: Server, tasks: TaskGroup, cluster: Cluster) -> None:
        super().__init__(server, tasks, Numbers.of_replica())
        self._cluster = cluster
        self._links: dict[Access, Link] = {}
        self._guests: dict[Connection, Guest] = {}
        # The places of the guests that have left, until the end of their grace.
        self._left: dict[str, str] = {}
        self._far: dict[str, Far] = {}
        # The links by which the sessions of this replica were opened: they are told when a session moves.
        self._opened: dict[str, Link] = {}
        self._asking: dict[str, anyio.Event] = {}
        self._place = uuid4().hex

    # --- links --------------------------------------------------------------------------------------------------

    def serve(
        self, connection: Connection, find_other: Callable[[str], Handler | None], *, guest: bool
    ) -> OwnerService:
        """Serve the door at the other end of a connection; a ``guest`` is that of another replica."""
        service = OwnerService(self, connection, find_other, guest=guest)
        if service.guest is not None:
            self._guests[connection] = service.guest
            self.connections.add(service.guest)
        return service

    def leave(self, connection: Connection) -> None:
        """Keep the sessions of a guest that is gone: its clients may come back to other replicas."""
        if (guest := self._guests.pop(connection, None)) is not None:
            self.connections.discard(guest)
            self.hub.leave(guest)
            self._left[guest.client_id] = guest.place

    def _link(self, access: Access) -> Link:
        link = self._links.get(access)
        if link is None:
            found: list[Link] = []
            connected = self._cluster.connect_door(access, NAME, lambda body: self._take(found[0], body))
            link = self._links[access] = Link(access, connected)
            found.append(link)
        return link

    def _take(self, link: Link, body: bytes) -> None:
        """Take a message of another replica."""
        message = orjson.loads(body)
        if message.get("method") == OPENED:
            self._show(link, message["params"])
        elif message.get("method") == ACTION:
            self._apply(link, message["params"])
        elif message.get("method") in (PART_OPENED, PART_CLOSED):
            self._show_part(message["params"])

    # --- sessions of this replica ---------------------------------------------------------------------------------

    async def open_here(self, uri: str, access: Access) -> Mirror | None:
        """Open a session that this replica owns. See :meth:`Door.open`."""
        session_id = owner_of(uri) or ""
        self._far.pop(session_id, None)
        known = self._mirrors.get(session_id)
        if known is not None and not self.is_live(known) and session_id not in self._opening:
            # Another replica may have had the session meanwhile.
            self._drop(session_id)
        return await super().open(uri, access)

    async def create_here(self, uri: str, access: Access, options: JsonObject) -> None:
        """Create a session whose id this replica has claimed. See :meth:`Door.create`."""
        await super().create(uri, access, options)

    def _drop(self, session_id: str) -> None:
        """Forget the mirror of a session that this replica has lost. Its channels stay for the next owner."""
        mirror = self._mirrors.pop(session_id, None)
        self.forget_clients(session_id)
        if mirror is not None:
            mirror.end()

    # --- sessions of all replicas ---------------------------------------------------------------------------------

    async def open(self, uri: str, access: Access) -> Mirror | None:
        """Return the mirror of a session, after opening it here or at its owner.

        Returns:
            ``None`` if there is no such session, or another replica owns it: its channels are open then.
        """
        session_id = owner_of(uri)
        if session_id is None:
            return None
        await anyio.lowlevel.checkpoint()
        while (asking := self._asking.get(session_id)) is not None:
            await asking.wait()
        if session_id in self._far:
            return None
        known = self.mirror(uri, access)
        if known is not None and self.is_live(known) and session_id in self._opened:
            return known
        done = self._asking[session_id] = anyio.Event()
        try:
            link = self._link(access)
            await link.ask("session.resume", session_id, place=self._place)
            self._opened[session_id] = link
        except SessionNotFoundError:
            return None
        finally:
            del self._asking[session_id]
            done.set()
        return self.mirror(uri, access)

    async def open_further(self, uri: str, access: Access) -> None:
        far = self._far.get(owner_of(uri) or "")
        if far is None:
            await super().open_further(uri, access)
        elif kind_of(uri) == "changeset" and access.sees(far.created_by) and self.hub.get(uri) is None:
            try:
                await self._open_changeset(far, uri)
            except JumpseatError as error:
                # The client's other channels do not depend on it.
                log.info("session %s: a changeset cannot be opened: %s", far.session_id, error)

    async def create(self, uri: str, access: Access, options: JsonObject) -> None:
        """Create a session on this replica. See :meth:`Door.create`."""
        session_id = session_of(uri)
        if session_id is None or not is_session(uri):
            raise AhpError.invalid(f"{uri[:200]!r} is not a URI like ahp-session:/<id>")
        directories: Any = options.get("workingDirectories") or [""]
        more = {"workingDirectory": path} if (path := path_of(str(directories[0]))) is not None else {}
        link = self._link(access)
        try:
            answer = await link.ask("session.create", session_id, options=options, **more)
            result_of(answer)
        except AhpError as error:
            if session_id not in self._opened:
                link.forget(session_id)
            raise AhpError.session_exists(uri) if error.code == INVALID_OPERATION else error from None
        self._opened[session_id] = link

    async def delete(self, session_id: str, access: Access) -> None:
        await self._link(access).ask(DELETE, session_id)

    def close(self, session_id: str) -> None:
        super().close(session_id)
        self._drop(session_id)
        if self._far.pop(session_id, None) is not None:
            for uri in (session_uri(session_id), chat_uri(session_id)):
                self.hub.close(uri)
        self._opened.pop(session_id, None)
        for link in self._links.values():
            link.forget(session_id)

    async def sweep(self) -> None:
        await super().sweep()
        for far in list(self._far.values()):
            if not self.hub.is_wanted(far.uris):
                try:
                    await far.link.ask("session.detach", far.session_id)
                except JumpseatError as error:
                    log.info("session %s: its owner is not told: %s", far.session_id, error)
                if not self.hub.is_wanted(far.uris):
                    self.close(far.session_id)

    # --- sessions of other replicas -------------------------------------------------------------------------------

    def _show(self, link: Link, params: JsonObject) -> None:
        """Open the channels of a session in the states that its owner has sent."""
        session_id: str = params["sessionId"]
        self._drop(session_id)
        far = Far(session_id, link, params["from"], params["createdAt"], params["createdBy"])
        self._far[session_id] = far
        states: dict[str, JsonObject] = params["states"]
        for uri in far.uris:
            self.hub.open(uri, states[uri], REDUCERS[kind_of(uri)], far.created_by)
        for gone in set(self.hub.parts(far.uris[0])) - states.keys():
            if kind_of(gone) == "changeset" and self.hub.is_wanted([gone]):
                self._tasks.start_soon(self._open_again, far, gone)
            else:
                self.hub.close_part(far.uris[0], gone)
        for uri in [uri for uri in states if uri not in far.uris]:
            self.hub.open_part(far.uris[0], uri, states[uri], REDUCERS[kind_of(uri)])
        for client in states[far.uris[0]]["activeClients"]:
            for access in self.hub.tokens_of(client["clientId"]):
                self._tell(far, self._link(access), ARRIVE, clientId=client["clientId"], isNew=False)

    async def _open_again(self, far: Far, uri: str) -> None:
        """Let the new owner of a session open a changeset that clients of this replica watch."""
        try:
            await self._open_changeset(far, uri)
        except JumpseatError as error:
            log.info("session %s: a changeset is closed: %s", far.session_id, error)
            if self._far.get(far.session_id) is far:
                self.hub.close_part(far.uris[0], uri)

    async def _open_changeset(self, far: Far, uri: str) -> None:
        params = {"channel": uri}
        result_of(await far.link.ask(REQUEST, far.session_id, call=OPEN_CHANGESET, params=params))

    def _show_part(self, params: JsonObject) -> None:
        """Open or close a further channel of a session, as its owner has done."""
        uri, state = params["channel"], params.get("state")
        far = self._far.get(owner_of(uri) or "")
        if far is None or far.source != params["from"]:
            return
        if state is None:
            self.hub.close_part(far.uris[0], uri)
        else:
            self.hub.open_part(far.uris[0], uri, state, REDUCERS[kind_of(uri)])

    def _apply(self, link: Link, params: JsonObject) -> None:
        """Apply an action of the owner, or pass its refusal on."""
        envelope: JsonObject = params["envelope"]
        uri, action = envelope["channel"], envelope["action"]
        far = self._far.get(owner_of(uri) or "")
        if far is None or far.source != params["from"]:
            return
        sender = envelope.get("origin")
        origin = None
        if sender is not None:
            origin = Origin(sender["clientId"], sender["clientSeq"], access=link.access)
        if (reason := envelope.get("rejectionReason")) is not None:
            if origin is not None:
                self.hub.refuse(origin, uri, action, reason)
            return
        self.hub.publish(uri, action, origin)
        if action["type"] in _LISTED and action.get("chat", far.uris[1]) == far.uris[1]:
            session, chat = (self.hub.get(one) for one in far.uris)
            if session is not None and chat is not None:
                session.state = with_activity(session.state, chat.state)
                self._tell_summary(self._summary(far), far.created_by)

    def _summary(self, far: Far) -> JsonObject:
        session, chat = (self._state(uri) for uri in far.uris)
        return live_summary(far.uris[0], session, chat, far.created_at)

    def _state(self, uri: str) -> State:
        channel = self.hub.get(uri)
        assert channel is not None, "open as long as the session is known"
        return channel.state

    def _seen(self, access: Access) -> list[Far]:
        """Return the open sessions of other replicas that a connection sees."""
        return [far for far in self._far.values() if access.sees(far.created_by)]

    def _tell(self, far: Far, link: Link, method: str, **params: Any) -> None:
        """Send the owner of a session a request whose failure changes nothing."""

        async def tell() -> None:
            try:
                await link.ask(method, far.session_id, place=self._place, **params)
            except JumpseatError as error:
                log.info("session %s: its owner is not told: %s", far.session_id, error)

        self._tasks.start_soon(tell)

    # --- actions and requests of clients --------------------------------------------------------------------------

    def relay(self, peer: Peer, channel: str, client_seq: int, action: Action) -> bool:
        session_id, client_id = owner_of(channel) or "", peer.client_id
        far = self._far.get(session_id)
        if far is None:
            mirror = self.mirror(channel, peer.rights)
            if mirror is None:
                return False
            if self.may_act(session_id, client_id, peer.rights):
                self.note_place(session_id, client_id, self._place)
            return False
        if self.hub.get(channel, peer.rights) is not None:
            origin = Origin(client_id, client_seq, access=peer.rights)
            self._send(peer, far.session_id, channel, origin, action)
        return True

    def _send(self, peer: Peer, session_id: str, channel: str, origin: Origin, action: Action) -> None:
        """Send an action to the owner of its session, behind those that were sent before."""
        link = self._link(peer.rights)
        sent: JsonObject = {"clientId": origin.client_id, "clientSeq": origin.client_seq, "action": action}
        try:
            answer = link.send(DISPATCH, session_id, place=self._place, channel=channel, **sent)
        except JumpseatError as error:
            self.hub.refuse(origin, channel, action, str(error))
            return

        async def finish() -> None:
            try:
                refusal = (await link.result(answer, DISPATCH, session_id)).get("refused")
            except OutcomeUnknownError:
                # Whether it was carried out, a snapshot tells.
                peer.renew(channel)
                return
            except JumpseatError as error:
                refusal = str(error)
            if refusal is not None:
                self.hub.refuse(origin, channel, action, refusal)

        self._tasks.start_soon(finish)

    async def ask(self, session_id: str, access: Access, method: str, params: JsonObject) -> JsonObject | None:
        if session_id not in self._far:
            await self.open(session_uri(session_id), access)
        far = self._far.get(session_id)
        if far is None or not access.sees(far.created_by):
            return None
        return result_of(await self._link(access).ask(REQUEST, session_id, call=method, params=params))

    async def offer_token_elsewhere(self, access: Access, url: str, token: str) -> bool:
        params = {"resource": url, "token": token}
        answers = [await self.ask(far.session_id, access, "authenticate", params) for far in self._seen(access)]
        return any(answer is not None and answer["found"] for answer in answers)

    # --- the places of clients -----------------------------------------------------------------------------------

    def note_client(self, peer: Peer, uri: str) -> None:
        is_new, session_id = not peer.returned, owner_of(uri) or ""
        if (mirror := self.mirror(uri, peer.rights)) is not None:
            self.arrive(mirror, peer.client_id, peer.rights, self._place, is_new=is_new)
        elif (far := self._far.get(session_id)) is not None and is_active(self._state(far.uris[0]), peer.client_id):
            self._tell(far, self._link(peer.rights), ARRIVE, clientId=peer.client_id, isNew=is_new)

    def withdraw_tools(self, client_id: str, access: Access, uri: str | None = None) -> None:
        if (place := self._left.pop(client_id, None)) is not None:
            if all(guest.place != place for guest in self._guests.values()):
                self.forget_place(place)
            return
        for mirror in list(self._mirrors.values()):
            if uri in (None, mirror.session_uri) and self.has_acted(mirror.session_id, client_id, access):
                self.withdraw_from(mirror, client_id, self._place)
        for far in list(self._far.values()):
            if uri in (None, far.uris[0]) and is_active(self._state(far.uris[0]), client_id):
                self._tell(far, self._link(access), WITHDRAW, clientId=client_id)

    # --- lists and files ------------------------------------------------------------------------------------------

    async def catch_up(self) -> None:
        await self._cluster.catch_up()

    def live_summaries(self, access: Access) -> list[JsonObject]:
        return [*super().live_summaries(access), *(self._summary(far) for far in self._seen(access))]

    def with_marks(self, summary: JsonObject, access: Access) -> JsonObject:
        is_far = session_of(summary["resource"]) in self._far
        return summary if is_far else super().with_marks(summary, access)

    def announce_change(self, params: JsonObject, connection: Reader, created_by: str | None) -> None:
        session_id, told = params["sessionId"], params.get("metadata")
        if session_id in self._far or session_id in self._mirrors or told is None:
            return
        if self._server.registry.get_live(session_id) is not None:
            super().announce_change(params, connection, created_by)
        elif params["type"] == "session.created":
            summary = {
                "resource": session_uri(session_id),
                "provider": PROVIDER,
                "title": "",
                "status": IDLE,
                "createdAt": told["startTime"],
                "modifiedAt": told["modifiedTime"],
                "defaultChat": chat_uri(session_id),
            }
            connection.tell(created_by, "root/sessionAdded", {"channel": ROOT, "summary": summary})
        elif params["type"] == "session.updated":
            stored = self._server.registry.store.describe(session_id, told["modifiedTime"])
            name = stored[0].name if stored is not None else None
            changes = present({"title": name or told.get("summary"), "modifiedAt": told["modifiedTime"]})
            changed = {"channel": ROOT, "session": session_uri(session_id), "changes": changes}
            connection.tell(created_by, "root/sessionSummaryChanged", changed)

    def folders(self, path: str, access: Access) -> list[str]:
        return [folder for folder, session_id in self._folders(access) if self._is_here(session_id)]

    def session_elsewhere(self, path: str, access: Access) -> str | None:
        inside = (
            (folder, session_id)
            for folder, session_id in self._folders(access)
            if Path(os.path.normpath(path)).is_relative_to(folder)
        )
        found = [session_id for _, session_id in inside]
        return None if not found or any(map(self._is_here, found)) else found[0]

    def _is_here(self, session_id: str) -> bool:
        return session_id in self._mirrors or self._cluster.is_on_this_host(session_id)

    def _folders(self, access: Access) -> Iterator[tuple[str, str]]:
        """Yield the folders of the sessions that a connection sees, each with its session."""
        for mirror in self.mirrors(access):
            yield str(mirror.session.settings.cwd), mirror.session_id
        for far in self._seen(access):
            for uri in self._state(far.uris[0]).get("workingDirectories") or ():
                if (path := path_of(uri)) is not None:
                    yield path, far.session_id
        for stored in self.registry(access).list():
            if stored.context is not None:
                yield stored.context.cwd, stored.session_id
