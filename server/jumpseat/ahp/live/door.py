"""The door of a server to the Agent Host Protocol: its hub, its live sessions, and the root channel."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
import anyio.lowlevel
import orjson
from anyio.abc import TaskGroup
from pydantic import ValidationError

from jumpseat.agent.settings import SessionSettings
from jumpseat.ahp.hub.channels import Origin
from jumpseat.ahp.hub.hub import Hub
from jumpseat.ahp.hub.numbers import Numbers
from jumpseat.ahp.live import client_tools, customizations
from jumpseat.ahp.live.audience import Reader
from jumpseat.ahp.live.client_marks import kept_of
from jumpseat.ahp.live.errors import AhpError
from jumpseat.ahp.live.mirror import Mirror
from jumpseat.ahp.states.root import reduce_root
from jumpseat.ahp.states.values import IDLE, Action, JsonObject
from jumpseat.ahp.translation.agents import agents_with
from jumpseat.ahp.translation.attachments import path_of, uri_of
from jumpseat.ahp.translation.shapes import check_config
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
from jumpseat.errors import JumpseatError, SessionNotFoundError
from jumpseat.rpc.wire_errors import invalid_params
from jumpseat.sessions.access import Access
from jumpseat.sessions.context import Context, Server
from jumpseat.sessions.opening import ATTENDED, create_session, resume_session
from jumpseat.sessions.registry import SessionRegistry
from jumpseat_protocol.sessions import SessionCreateParams, SessionResumeParams

log = logging.getLogger(__name__)

READY_S: Final = 0.5
"""The longest time from the creation of a session to its ``session/ready``, which waits for a subscription.

Clients that subscribe after the answer to ``createSession``, and wait for the action, would miss it otherwise.
"""
SWEEP_S: Final = 15.0
UNWANTED_S: Final = 60.0
"""The time after which a session without subscribers is closed: its creator still has to subscribe to it."""
TAKEN: Final = "the clientId is that of another token in this session"

_ATTENDED: Final[Mapping[str, bool]] = {**ATTENDED, "standsIn": True}
"""Agent host clients answer by actions; an SDK client or an editor is asked directly beside them."""


class Peer(Reader, Protocol):
    """The connection that a request came over. ``rights`` are those of its token."""

    initialized: bool
    returned: bool
    """``True`` for a client that has connected again: it has the tools that it had."""

    @property
    def door(self) -> Door: ...

    @property
    def rights(self) -> Access: ...


class Door:
    """All that connections of this protocol share. ``server`` are the parts of the server."""

    def __init__(self, server: Server, tasks: TaskGroup, numbers: Numbers | None = None) -> None:
        self.hub = Hub(numbers)
        self.connections: set[Reader] = set()
        self._server = server
        self._tasks = tasks
        self._mirrors: dict[str, Mirror] = {}
        self._opening: dict[str, anyio.Event] = {}
        self._awaits_ready: dict[str, anyio.Event] = {}
        # By session: the rights of the clients that have acted there, by their ids.
        self._tokens: dict[str, dict[str, Access]] = {}
        # The time of the first sweep that found a session without subscribers, by session.
        self._unwanted: dict[str, float] = {}
        self._agents = agents_with(server.models.declared(SessionSettings(cwd=Path.cwd())))
        self.hub.open_for_each(ROOT, self._root_state(), reduce_root)
        tasks.start_soon(self._sweep)
        tasks.start_soon(self._list_models)

    def _root_state(self) -> JsonObject:
        # Clients mirror settings of their own here, which are kept without effect.
        config: JsonObject = {"schema": {"type": "object", "properties": {}}, "values": {}}
        return {"agents": self._agents, "config": config}

    async def _list_models(self) -> None:
        """Show all models, once the providers have told theirs."""
        try:
            models = await self._server.models.catalogue.list()
        except JumpseatError as error:
            log.info("cannot list the models: %s", error)
            return
        self._agents = agents_with(models)
        self.hub.publish_for_each(ROOT, {"type": "root/agentsChanged", "agents": self._agents})

    def models(self) -> list[JsonObject]:
        """Return the models that are known so far."""
        return self._agents[0]["models"]

    def folders(self, path: str, access: Access) -> list[str]:
        """Return the working directories of the sessions that a connection sees, with the first that has a path.

        The list of all sessions is read only if the path is in no folder of an open one.
        """
        live = [str(mirror.session.settings.cwd) for mirror in self.mirrors(access)]
        if any(Path(os.path.normpath(path)).is_relative_to(folder) for folder in live):
            return live
        # Decoded here: models of ten thousand sessions would hold others up.
        listed: list[JsonObject] = orjson.loads(b"".join(self.registry(access).list_json(None)))
        contexts: list[JsonObject] = [one["context"] for one in listed if one.get("context") is not None]
        return list(dict.fromkeys((*live, *(str(context["cwd"]) for context in contexts if context.get("cwd")))))

    def mirrors(self, access: Access) -> list[Mirror]:
        """Return the open mirrors of the live sessions that a connection sees."""
        return [
            mirror
            for mirror in self._mirrors.values()
            if self.hub.get(mirror.session_uri, access) is not None and self.is_live(mirror)
        ]

    def configure(self, action: Action, origin: Origin, access: Access) -> None:
        """Keep settings that a client mirrors, for the clients with the same token.

        Raises:
            InvalidRequestError: they would be too large.
        """
        channel = self.hub.get(ROOT, access)
        assert channel is not None
        check_config(channel.reduced(action))
        self.hub.publish(ROOT, action, origin, access)

    # --- sessions -----------------------------------------------------------------------------------------------

    def mirror(self, uri: str, access: Access) -> Mirror | None:
        """Return the open mirror of the session of a channel that a connection sees."""
        mirror = self._mirrors.get(owner_of(uri) or "")
        return mirror if mirror is not None and self.hub.get(mirror.session_uri, access) is not None else None

    def is_live(self, mirror: Mirror) -> bool:
        """Return whether the session of a mirror is live: idle ones may have been closed."""
        return self._server.registry.get_live(mirror.session_id) is not None

    async def open(self, uri: str, access: Access) -> Mirror | None:
        """Return the mirror of the session of a channel, after opening it if it is stored or live without one.

        Returns:
            ``None`` if there is no such session for a connection with these rights.
        """
        session_id = owner_of(uri)
        if session_id is None:
            return None
        # A client may ask for many, and one that does not exist is found out without waiting.
        await anyio.lowlevel.checkpoint()
        while (opening := self._opening.get(session_id)) is not None:
            await opening.wait()
        known = self.mirror(uri, access)
        if known is not None and self.is_live(known):
            return known
        if known is None and session_id in self._mirrors:
            return None
        mirror = known or self._make(session_id, access)
        ended = self._opening[session_id] = anyio.Event()
        try:
            # Watching a session must not end what it waits for; what another process has left is ended.
            is_live = self._server.registry.get_live(session_id) is not None
            options = {**_ATTENDED, "sessionId": session_id, "continuePendingWork": is_live}
            await resume_session(mirror.context, SessionResumeParams.model_validate(options))
            if known is None:
                await self._add(mirror, "ready")
            else:
                known.follow()
                client_tools.offer(known, known.state["activeClients"])
        except SessionNotFoundError:
            return None
        finally:
            del self._opening[session_id]
            ended.set()
        return mirror

    async def open_further(self, uri: str, access: Access) -> None:
        """Open a further channel of an open session that is opened for those who want it: a changeset."""
        mirror = self.mirror(uri, access)
        if mirror is not None and kind_of(uri) == "changeset":
            await mirror.changesets.open(uri)

    async def create(self, uri: str, access: Access, options: JsonObject) -> None:
        """Create a session with the id in its URI.

        Raises:
            AhpError: the URI is taken, or no URI of a session.
            JumpseatError: the session cannot be created.
        """
        session_id = session_of(uri)
        if session_id is None or not is_session(uri):
            raise AhpError.invalid(f"{uri[:200]!r} is not a URI like ahp-session:/<id>")
        taken = AhpError.session_exists(uri)
        if session_id in self._mirrors or session_id in self._opening:
            raise taken
        registry = self._server.registry
        if registry.get_live(session_id) is not None or registry.metadata(session_id) is not None:
            raise taken
        directories: Any = options.get("workingDirectories") or []
        config: Any = options.get("config") or {}
        given: JsonObject = {**_ATTENDED, "sessionId": session_id}
        if directories:
            path = path_of(str(directories[0]))
            if path is None:
                raise AhpError.invalid("workingDirectories.0: expected a file: URI")
            given["workingDirectory"] = path
        if isinstance(config.get("model"), str):
            given["model"] = config["model"]
        mirror = self._make(session_id, access)
        ended = self._opening[session_id] = anyio.Event()
        try:
            session = await create_session(mirror.context, _checked(given))
            await self._add(mirror, "creating")
            if config.get("autoApprove") is True:
                session.permissions.set_mode("allow-all")
            if (client := options.get("activeClient")) is not None:
                self.may_act(session_id, client["clientId"], access)
                client_tools.begin_with(mirror, client)
        finally:
            del self._opening[session_id]
            ended.set()
        subscribed = self._awaits_ready[session_id] = anyio.Event()
        self._tasks.start_soon(self._become_ready, mirror, subscribed)
        self._announce_added(mirror)

    async def _become_ready(self, mirror: Mirror, subscribed: anyio.Event) -> None:
        with anyio.move_on_after(READY_S):
            await subscribed.wait()
        self._awaits_ready.pop(mirror.session_id, None)
        mirror.become_ready()

    def note_subscription(self, mirror: Mirror) -> None:
        """Let a new session become ready, now that a client sees it."""
        if (subscribed := self._awaits_ready.get(mirror.session_id)) is not None:
            subscribed.set()

    def _make(self, session_id: str, access: Access) -> Mirror:
        mirror = Mirror(self.hub, session_id, access, self._tasks, self._readers, self._announce_summary)
        parts = self._server
        mirror.ctx = Context(mirror, parts.registry, parts.models, parts.process, parts.mcp)
        return mirror

    async def _add(self, mirror: Mirror, lifecycle: str) -> None:
        self._mirrors[mirror.session_id] = mirror
        try:
            storage = self._server.registry.storage(mirror.session)
            await mirror.open(lifecycle=lifecycle, kept=kept_of(storage.client_metadata))
        except BaseException:
            del self._mirrors[mirror.session_id]
            raise
        self._tasks.start_soon(customizations.follow, mirror)

    def _readers(self, uris: Iterable[str]) -> list[Reader]:
        channels = [channel for uri in uris if (channel := self.hub.get(uri)) is not None]
        subscribed: set[object] = {subscriber for channel in channels for subscriber in channel.subscribers}
        # Asked for with each delta: the cost is that of the smaller set.
        return list(self.connections & subscribed)

    def close(self, session_id: str) -> None:
        """Forget a session that is deleted or no longer live."""
        mirror = self._mirrors.pop(session_id, None)
        self._unwanted.pop(session_id, None)
        self._tokens.pop(session_id, None)
        if mirror is not None:
            mirror.end()
            for uri in mirror.uris:
                self.hub.close(uri)

    async def _sweep(self) -> None:
        """Close the sessions that no client can come back to any more."""
        while True:
            await anyio.sleep(SWEEP_S)
            await self.sweep()

    async def sweep(self) -> None:
        """Forget the clients whose grace has ended, and close the sessions without subscribers."""
        for client_id, access in self.hub.expire():
            self.withdraw_tools(client_id, access)
        unwanted = self._unwanted_mirrors()
        now, before = anyio.current_time(), self._unwanted
        self._unwanted = {one.session_id: before.get(one.session_id, now) for one in unwanted}
        for mirror in list(self._mirrors.values()):
            mirror.changesets.close_unwanted()
        for mirror in unwanted:
            if self._unwanted[mirror.session_id] + UNWANTED_S <= now and not self.hub.is_wanted(mirror.uris):
                await self._leave(mirror)

    def _unwanted_mirrors(self) -> list[Mirror]:
        # Not one by one: many sessions and many clients would hold others up.
        wanted = self.hub.all_wanted()
        return [
            mirror
            for mirror in self._mirrors.values()
            if wanted.isdisjoint((*mirror.uris, *self.hub.parts(mirror.session_uri)))
        ]

    def withdraw_tools(self, client_id: str, access: Access, uri: str | None = None) -> None:
        """Withdraw the tools of a client that has left a session, or all of them."""
        for mirror in self._mirrors.values():
            if uri in (None, mirror.session_uri) and self.has_acted(mirror.session_id, client_id, access):
                client_tools.remove_client(mirror, client_id)

    def may_act(self, session_id: str, client_id: str, access: Access) -> bool:
        """Return whether a client is that of the token that has used its id in a session first.

        Actions and active clients have no other name than the id, also in sessions that several tokens see.
        """
        return self._tokens.setdefault(session_id, {}).setdefault(client_id, access) == access

    def has_acted(self, session_id: str, client_id: str, access: Access) -> bool:
        """Return whether a client has used its id in a session first."""
        return self._tokens.get(session_id, {}).get(client_id) == access

    async def _leave(self, mirror: Mirror) -> None:
        session = self._server.registry.get_live(mirror.session_id)
        if session is not None and session.working:
            return
        self.close(mirror.session_id)
        try:
            await self._server.registry.detach_and_close(mirror.session_id, mirror)
        except JumpseatError as error:
            log.info("session %s: cannot be closed: %s", mirror.session_id, error)

    async def delete(self, session_id: str, access: Access) -> None:
        """Delete a session.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        await self.registry(access).delete(session_id)

    # --- other replicas; see `ahp/replicas` ---------------------------------------------------------------------

    def relay(self, peer: Peer, channel: str, client_seq: int, action: Action) -> bool:
        """Send an action to the replica that owns the session; return ``False`` if this process carries it out."""
        return False

    async def ask(self, session_id: str, access: Access, method: str, params: JsonObject) -> JsonObject | None:
        """Return the answer of the replica that owns a session; ``None`` if this process answers."""
        return None

    def session_elsewhere(self, path: str, access: Access) -> str | None:
        """Return a session whose folder has a path and is on another host; ``None`` if the path is one of here."""
        return None

    def note_client(self, peer: Peer, uri: str) -> None:
        """Note that a client subscribes to a channel."""

    async def catch_up(self) -> None:
        """Wait until the sessions of other replicas are known."""

    async def offer_token_elsewhere(self, access: Access, url: str, token: str) -> bool:
        """Give a token to the MCP servers of sessions of other replicas; return whether there are any."""
        return False

    # --- lists --------------------------------------------------------------------------------------------------

    def live_summaries(self, access: Access) -> list[JsonObject]:
        """Return the list entries of the sessions with open channels that a connection sees."""
        return [
            mirror.summary()
            for mirror in self._mirrors.values()
            if self.hub.get(mirror.session_uri, access) is not None
        ]

    def with_marks(self, summary: JsonObject, access: Access) -> JsonObject:
        """Return the list entry of a session with the marks of clients; open ones have them."""
        session_id = session_of(summary["resource"]) or ""
        if session_id in self._mirrors:
            return summary
        try:
            stored = self.registry(access).store.get_existing(session_id)
        except JumpseatError:
            return summary
        return {**summary, "status": summary["status"] | kept_of(stored.client_metadata).marks}

    def registry(self, access: Access) -> SessionRegistry:
        """Return the sessions that exist for connections with these rights."""
        return self._server.registry.seen_by(access)

    def tell(self, created_by: str | None, method: str, params: JsonObject) -> None:
        """Send a notification to the connections that see sessions of the token ``created_by``."""
        for connection in list(self.connections):
            connection.tell(created_by, method, params)

    def _created_by(self, mirror: Mirror) -> str | None:
        channel = self.hub.get(mirror.session_uri)
        return channel.created_by if channel is not None else None

    def announce_change(self, params: JsonObject, connection: Reader, created_by: str | None) -> None:
        """Tell a connection of a session that another door has created, as the notification ``params`` says."""
        if params["type"] != "session.created":
            return
        session_id = params["sessionId"]
        session = self._server.registry.get_live(session_id)
        if session is None or session_id in self._mirrors or session_id in self._opening:
            return
        summary = {
            "resource": session_uri(session_id),
            "provider": PROVIDER,
            "title": "",
            "status": IDLE,
            "createdAt": session.started_at,
            "modifiedAt": session.started_at,
            "workingDirectories": [uri_of(str(session.settings.cwd))],
            "defaultChat": chat_uri(session_id),
        }
        connection.tell(created_by, "root/sessionAdded", {"channel": ROOT, "summary": summary})

    def _announce_added(self, mirror: Mirror) -> None:
        self.tell(self._created_by(mirror), "root/sessionAdded", {"channel": ROOT, "summary": mirror.summary()})

    def _announce_summary(self, mirror: Mirror, summary: JsonObject) -> None:
        self._tell_summary(summary, self._created_by(mirror))

    def _tell_summary(self, summary: JsonObject, created_by: str | None) -> None:
        fixed = ("resource", "provider", "createdAt")
        changes = {name: value for name, value in summary.items() if name not in fixed}
        params = {"channel": ROOT, "session": summary["resource"], "changes": changes}
        self.tell(created_by, "root/sessionSummaryChanged", params)


def _checked(options: JsonObject) -> SessionCreateParams:
    try:
        return SessionCreateParams.model_validate(options)
    except ValidationError as error:
        raise invalid_params("createSession", error, SessionCreateParams) from None
