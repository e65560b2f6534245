"""The MCP host of a session: its servers, their status, and the tools that the model is offered.

A host without servers costs nothing. The first server starts the host's task, which owns the tasks of all
connections and loads the ``mcp`` package. Only the first turn waits for servers to start, for a limited time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from jumpseat.agent.client import Client
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.mcp.catalogue import ServerEntry
from jumpseat.mcp.credentials import Credentials
from jumpseat.mcp.loading import load
from jumpseat.mcp.naming import name_prefix
from jumpseat.mcp.pending_login import PendingLogin
from jumpseat.mcp.servers import HostServices, ServerState, loaded_server, remote_config, tools_of
from jumpseat.mcp.tools import McpTool
from jumpseat.tools.session_sandbox import session_sandbox
from jumpseat_protocol import events
from jumpseat_protocol.mcp import McpProbeResult, McpServerInfo, McpStatus
from jumpseat_protocol.mcp_servers import McpServerConfig
from jumpseat_protocol.sessions import GitHubMcpToolConfig

if TYPE_CHECKING:
    from jumpseat.mcp.connection import Connection
    from jumpseat.mcp.outside import OutsideStarts
    from jumpseat.mcp.questions import Questions

log = logging.getLogger(__name__)

FIRST_TURN_S: Final = 5.0
"""Time that the first turn waits for servers to start; later tools are offered with a later model call."""

MAX_INSTRUCTIONS: Final = 2000
"""Limit on the instructions of one server, in characters."""

SAMPLING: Final = "sampling.requested"

_UNSETTLED: Final = ("pending",)


class McpHost:
    """The servers of one session, and their tools."""

    def __init__(self, session: Session, services: HostServices) -> None:
        self.session = session
        self.env_mode: Literal["direct", "indirect"] = "direct"
        self.app_context: dict[str, Any] = {}
        sandboxes = services.sandboxes
        self._sandbox = session_sandbox(session, sandboxes, of_servers=True) if sandboxes is not None else None
        self.credentials = Credentials(session, services.logins, self._emit)
        # The model calls that clients run for sampling requests, by the id of the request.
        self.sampling_runs: dict[str, anyio.CancelScope] = {}
        self._services = services
        self._states: dict[str, ServerState] = {}
        # The servers that a client has started with its own configuration.
        self._client_servers: dict[str, ServerEntry] = {}
        self._tools: dict[str, McpTool] = {}
        # The tools of clients whose names are not given to tools of servers.
        self._client_tools: Mapping[str, object] = {}
        self._questions: Questions | None = None
        self._tasks: TaskGroup | None = None
        self._begun = False
        self._closed = False
        self._announced = False
        self._grace_s = 1.0
        self._scope = anyio.CancelScope()
        self._ready = anyio.Event()
        self._settled = anyio.Event()
        self._ended = anyio.Event()
        session.clients.on_fewer_interests.append(self._release)

    # --- servers and tools --------------------------------------------------------------------------------------

    @property
    def present(self) -> bool:
        """Return whether the session has servers, in any status."""
        return bool(self._states)

    def tools(self) -> Mapping[str, McpTool]:
        """Return the tools of all servers, by the names that the model knows."""
        if self.session.clients.tools() is not self._client_tools:
            self._name_tools()
        return self._tools

    def _name_tools(self) -> None:
        self._client_tools = self.session.clients.tools()
        taken = {*self._services.reserved, *self._client_tools}
        self._tools = tools_of(self._states.values(), self.session, taken)

    def instructions(self, offered: Collection[str]) -> list[str]:
        """Return the instructions of the servers of the ``offered`` tools, each cut to ``MAX_INSTRUCTIONS``."""
        named = {tool.connection.name: tool.connection for name, tool in self._tools.items() if name in offered}
        return [
            f"Instructions of the MCP server {name!r} for its tools:\n{text[:MAX_INSTRUCTIONS]}"
            for name, connection in named.items()
            if (text := (connection.instructions or "").strip())
        ]

    def servers(self) -> list[McpServerInfo]:
        """Return all servers with their status, in the order of their tools."""
        return [
            McpServerInfo(
                name=name,
                status=state.status,
                source=state.entry.source,
                source_plugin=state.entry.plugin,
                error=state.error,
            )
            for name, state in self._states.items()
        ]

    def entry(self, name: str) -> ServerEntry | None:
        """Return the entry of a server; ``None`` if the session has no server of that name."""
        state = self._states.get(name)
        return state.entry if state else None

    def connection_to(self, name: str) -> Connection:
        """Return the connection of a connected server.

        Raises:
            InvalidRequestError: the server is not connected or unknown.
        """
        state = self._states.get(name)
        if state is None or state.connection is None or not state.connection.running:
            raise InvalidRequestError(f"MCP server {name!r} is not connected")
        return state.connection

    def tool_of(self, server: str, name: str) -> McpTool:
        """Return a tool by the name that its server gives it.

        Raises:
            InvalidRequestError: the server is not connected, or has no such tool.
        """
        connection = self.connection_to(server)
        for tool in self.tools().values():
            if tool.connection is connection and tool.tool.name == name:
                return tool
        raise InvalidRequestError(f"MCP server {server!r} has no tool {name[:200]!r}")

    def running(self, name: str) -> bool:
        """Return whether a server is connected."""
        state = self._states.get(name)
        return bool(state and state.connection and state.connection.running)

    @property
    def questions(self) -> Questions | None:
        """The open requests of servers; ``None`` before the first server is started."""
        return self._questions

    # --- start and end ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Find the servers of the session, start new ones and end those that are gone; returns at once."""
        if self._closed:
            return
        found = {**self._services.find(self.session.settings), **self._client_servers}
        gone = [name for name in self._states if name not in found]
        changed = [name for name, state in self._states.items() if name in found and state.entry != found[name]]
        for name in [*gone, *changed]:
            self._schedule(self._drop, self._states.pop(name))
        fresh = [name for name in found if name not in self._states]
        # The order of the servers is that of their tools.
        self._states = {name: self._states.get(name) or ServerState(entry) for name, entry in found.items()}
        for name in fresh:
            state = self._states[name]
            if not state.entry.enabled:
                state.status = "disabled"
            else:
                self._schedule(self._start, state)
        if self._settled.is_set() and any(self._states[name].status in _UNSETTLED for name in fresh):
            # For example, a custom agent was selected: its first turn waits for its servers, too.
            self._settled, self._announced = anyio.Event(), False
        self._name_tools()

    def _schedule(self, do: Callable[[ServerState], Awaitable[None]], state: ServerState) -> None:
        self._begin_task()
        # Waits for the host's own task, which loads the package first.
        self.session.services.tasks.start_soon(self._when_ready, do, state)

    def _begin_task(self) -> None:
        if not self._begun:
            self._begun = True
            self.session.services.tasks.start_soon(self._run)

    async def _when_ready(self, do: Callable[[ServerState], Awaitable[None]], state: ServerState) -> None:
        await self._ready.wait()
        if not self._closed:
            await do(state)

    async def _run(self) -> None:
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    if not await self._load():
                        return
                    from jumpseat.mcp.questions import Questions

                    self._questions = Questions(self.session)
                    self._tasks = tasks
                    self._ready.set()
                    await anyio.sleep_forever()
        finally:
            self._closed = True
            self._ready.set()
            self._settled.set()
            self._ended.set()

    async def _load(self) -> bool:
        try:
            await load()
        except Exception:
            log.exception("the mcp package cannot be loaded")
            for state in list(self._states.values()):
                self._set_status(state, "failed", "the mcp package cannot be loaded")
            return False
        return True

    async def ready(self) -> None:
        """Wait up to ``FIRST_TURN_S`` for servers that are being started, once, and for lists that have changed."""
        if self._begun and not self._settled.is_set():
            with anyio.move_on_after(FIRST_TURN_S):
                await self._settled.wait()
            if not self._settled.is_set():
                self._settled.set()
                slow = ", ".join(repr(name) for name, state in self._states.items() if state.status in _UNSETTLED)
                text = f"MCP servers are still being started, and their tools are not offered yet: {slow}."
                self._emit(events.SessionWarning(warning_type="mcp", message=text))
        for state in list(self._states.values()):
            if state.connection is not None:
                await state.connection.refreshed()

    async def absence(self, name: str) -> str | None:
        """Return the reason why a tool is not offered, ``None`` if it is not a tool of a server without tools.

        Waits for a server that is being started.
        """
        fitting = (state for state in self._states.values() if name.startswith(name_prefix(state.entry.name)))
        state = max(fitting, key=lambda state: len(state.entry.name), default=None)
        was_connected = state is not None and state.status == "connected"
        if state is None or was_connected:
            return None
        if state.connection is not None:
            await state.connection.started()
        server = f"the MCP server {state.entry.name!r}"
        match state.status:
            case "connected":
                return f"Tool {name!r} was not available yet: {server} has just been started. Call the tool again."
            case "pending":
                return f"Tool {name!r} is not available yet: {server} is still being started. Try again later."
            case "needs-auth":
                return f"Tool {name!r} is not available: {server} requires a login of the user."
            case "failed":
                return f"Tool {name!r} is not available: {server} has failed: {state.error}."
            case _:
                return f"Tool {name!r} is not available: {server} is {state.status}."

    def stop_waiting(self) -> bool:
        """Stop turns from waiting for servers; return whether servers were still being started."""
        waits = self._begun and not self._settled.is_set()
        self._settled.set()
        return waits

    async def close(self, grace_s: float) -> None:
        """End all servers; those that run as processes get ``grace_s`` seconds to exit."""
        self._closed = True
        self._grace_s = grace_s
        self.credentials.close()
        if self._questions is not None:
            self._questions.close()
        for scope in list(self.sampling_runs.values()):
            scope.cancel()
        if self._begun:
            self._scope.cancel()
            await self._ended.wait()
        if self._sandbox is not None:
            await self._sandbox.close()

    # --- one server ---------------------------------------------------------------------------------------------

    async def start(self, name: str, config: McpServerConfig | None = None) -> None:
        """Start a server, with ``config`` in place of its settings if given; returns before it is connected.

        Raises:
            InvalidRequestError: the server is running already or not configured.
        """
        state = self._states.get(name)
        if config is not None:
            if state is not None:
                await self._drop(state)
            entry = self._client_servers[name] = ServerEntry(name, config, literal=True)
            state = self._states[name] = ServerState(entry, status="disabled")
        if state is None:
            raise InvalidRequestError(f"MCP server {name!r} is not configured")
        if state.connection is not None and state.status in ("connected", "pending"):
            raise InvalidRequestError(f"MCP server {name!r} is already running")
        await self._drop(state)
        self._set_status(state, "pending")
        self._schedule(self._start, state)

    async def stop(self, name: str) -> None:
        """End a server and remove its tools.

        Its status becomes ``disabled``: SDKs up to 1.0.6 fail on ``stopped``, in events and in lists.

        Raises:
            InvalidRequestError: the server is not configured.
        """
        state = self._states.get(name)
        if state is None:
            raise InvalidRequestError(f"MCP server {name!r} is not configured")
        await self._drop(state)
        self._set_status(state, "disabled")

    async def _start(self, state: ServerState) -> None:
        from jumpseat.mcp.connection import Connection, ConnectionContext

        async with self._services.starting:
            # Starting a process takes milliseconds, so others have their turn between two, of any session.
            await anyio.lowlevel.checkpoint()
        # The server may have been stopped while the package was being loaded.
        if state.connection is not None or state.status != "pending" or self._tasks is None:
            return
        services, questions = self.session.services, self._questions
        assert questions is not None
        from jumpseat.mcp.client import ServerCallbacks

        def callbacks(connection: Connection) -> ServerCallbacks:
            return ServerCallbacks(
                notified=connection.handle_notification,
                sampling=lambda request_id, params: questions.sample(connection.name, request_id, params),
                elicitation=lambda params: questions.elicit(connection.name, params),
                roots=lambda: [self.session.settings.cwd.as_uri()],
            )

        def handle_change(connection: Connection) -> None:
            if state.connection is connection:
                self._set_status(state, connection.status, connection.error)

        context = ConnectionContext(
            environ=self._services.environ_of(self.session.id),
            secrets=services.secrets,
            cwd=lambda: self.session.settings.cwd,
            indirect=lambda: self.env_mode == "indirect",
            grace_s=lambda: self._grace_s,
            changed=handle_change,
            list_changed=self._list_changed,
            warn=lambda text: self._emit(events.SessionWarning(warning_type="mcp", message=text)),
            callbacks=callbacks,
            credentials=self.credentials,
            tokens=state.tokens,
            sandbox=self._sandbox,
            outside=self._outside(),
            github=self._github_config,
            client_of=self._client_of,
            tasks=self._tasks,
            stays=lambda: not self.session.queue.closed,
        )
        state.connection = Connection(state.entry, context)
        self._tasks.start_soon(state.connection.run)

    def _client_of(self, server_id: str) -> Client | None:
        return next((client for client in self.session.clients if server_id in client.mcp_servers), None)

    def _outside(self) -> OutsideStarts | None:
        sandboxes = self._services.sandboxes
        if sandboxes is None or self._sandbox is None:
            return None
        from jumpseat.mcp.outside import OutsideStarts

        return OutsideStarts(self.session, sandboxes, self._sandbox)

    async def _github_config(self, wanted: GitHubMcpToolConfig) -> McpServerConfig:
        from jumpseat.mcp.github import config_of

        assert self._services.github is not None, "the entry exists only where there is access"
        return await config_of(self._services.github, self.session.settings, wanted)

    async def _drop(self, state: ServerState) -> None:
        """End a server without an event."""
        connection, state.connection = state.connection, None
        if connection is not None:
            await connection.stop()

    # --- tokens -------------------------------------------------------------------------------------------------

    def retry_auth(self, name: str | None = None) -> None:
        """Reconnect the servers that are waiting for a token: ``name``, or all of them."""
        for state in self._states.values():
            if state.connection is not None and name in (None, state.entry.name):
                state.connection.retry_auth()

    async def login(
        self,
        name: str,
        *,
        again: bool,
        client_name: str | None,
        client_id: str | None,
        client_secret: str | None,
        success: str | None,
    ) -> str | None:
        """Begin a login to a server.

        Returns the address that the user has to open; ``None`` if a stored login is used (unless ``again``) or the
        server requires none. ``success`` is the text that the browser shows in the end.

        Raises:
            InvalidRequestError: the server supports no login, or the session stores none.
        """
        config = remote_config(self._states, name, self._services.environ)
        if not self.credentials.stored_logins:
            raise InvalidRequestError(
                "a login is stored on disk, but mcpOAuthTokenStorage of this session is 'in-memory'"
            )
        if not again and await self._services.logins.current(config.url or "") is not None:
            self.retry_auth(name)
            return None
        self._begin_task()
        await self._ready.wait()
        if self._tasks is None or self._closed:
            raise InvalidRequestError("the session is closing")
        pending = PendingLogin(
            name,
            config,
            self._services.logins,
            lambda: self.retry_auth(name),
            client_name=client_name,
            client_id=client_id,
            client_secret=client_secret,
            success_text=success,
        )
        self._tasks.start_soon(pending.run)
        return await pending.address()

    async def probe(self, name: str) -> McpProbeResult:
        """Find out whether a server requires a login, in any status and without changing it.

        Raises:
            InvalidRequestError: the server has no URL, or a variable in its settings is not set.
        """
        config = remote_config(self._states, name, self._services.environ)
        token = await self.credentials.token(self._states[name].tokens, config.url or "")
        await load("jumpseat.mcp.probe")
        from jumpseat.mcp.probe import probe

        return await probe(config, token)

    def _release(self) -> None:
        """Cancel the open requests that no client is interested in any more."""
        self.credentials.release()
        if self._questions is not None and not self.session.clients.has_interest(SAMPLING):
            self._questions.close()

    # --- notifications and events -------------------------------------------------------------------------------

    def notify_roots_changed(self) -> None:
        """Notify the servers that the working directory has changed."""
        for state in self._states.values():
            if state.connection is not None and self._tasks is not None and not self._closed:
                self._tasks.start_soon(state.connection.notify_roots_changed)

    def _set_status(self, state: ServerState, status: McpStatus, error: str | None = None) -> None:
        """Set the status of a server, and emit the events that follow from it."""
        name = state.entry.name
        if self._states.get(name) is not state:
            return
        changed = (state.status, state.error) != (status, error)
        state.status, state.error = status, error
        self._name_tools()
        if changed:
            self._emit(events.McpServerStatusChanged(server_name=name, status=status, error=error))
        if not self._announced and all(state.status not in _UNSETTLED for state in self._states.values()):
            self._announced = True
            self._settled.set()
            self._emit(events.McpServersLoaded(servers=[loaded_server(state) for state in self._states.values()]))

    def _list_changed(self, connection: Connection, kind: str) -> None:
        payloads = {
            "tools": events.McpToolsListChanged,
            "resources": events.McpResourcesListChanged,
            "prompts": events.McpPromptsListChanged,
        }
        self._emit(payloads[kind](server_name=connection.name))

    def _emit(self, payload: events.EventPayload) -> None:
        if self._closed:
            return
        try:
            self.session.emit(payload)
        except StoreError as error:
            log.error("session %s: %s", self.session.id, error)
