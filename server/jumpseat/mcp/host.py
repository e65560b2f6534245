"""The servers of one session: which there are, which of them run, and what of theirs the model is offered.

A host without servers costs nothing. With the first server its task begins, which owns those of all connections and
loads the ``mcp`` package; nobody waits for it but the first turn, and that one not for long.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
from anyio.abc import TaskGroup

from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.mcp.catalogue import MissingVariableError, ServerEntry, resolved
from jumpseat.mcp.credentials import Credentials
from jumpseat.mcp.loading import load
from jumpseat.mcp.naming import tool_name
from jumpseat.mcp.tools import McpTool
from jumpseat_protocol import events
from jumpseat_protocol.mcp import McpProbeResult, McpServerConfig, McpServerInfo, McpStatus

if TYPE_CHECKING:
    from jumpseat.mcp.auth import ClientTokens
    from jumpseat.mcp.connection import Connection
    from jumpseat.mcp.hosts import McpHosts
    from jumpseat.mcp.questions import Questions

log = logging.getLogger(__name__)

FIRST_TURN_S: Final = 5.0
"""How long the first turn waits for servers that are being started; what comes later comes with a later call."""

MAX_INSTRUCTIONS: Final = 2000
"""Characters of what one server says of itself."""

SAMPLING: Final = "sampling.requested"

_UNSETTLED: Final = ("pending",)


@dataclass(slots=True)
class State:
    """A server as the session has it. ``connection`` is the latest, if it was ever started."""

    entry: ServerEntry
    status: McpStatus = "pending"
    error: str | None = None
    connection: Connection | None = None
    tokens: dict[str, ClientTokens] = field(default_factory=lambda: dict[str, "ClientTokens"]())


class _Told:
    """What a login that has begun has told so far."""

    def __init__(self) -> None:
        self.address: str | None = None
        self.problem: str | None = None
        self.known = anyio.Event()

    async def show(self, address: str) -> None:
        self.address = address
        self.known.set()


class McpHost:
    """The tools of a session's servers, as one source of tools."""

    def __init__(self, session: Session, shared: McpHosts) -> None:
        self.session = session
        self.env_mode: Literal["direct", "indirect"] = "direct"
        self.app_context: dict[str, Any] = {}
        self.credentials = Credentials(session, shared.logins, self._emit)
        # Of what clients have models answer for servers, by the id of the request.
        self.sampling_runs: dict[str, anyio.CancelScope] = {}
        self._shared = shared
        self._states: dict[str, State] = {}
        # Those that a client has started with a configuration of their own.
        self._brought: dict[str, ServerEntry] = {}
        self._tools: dict[str, McpTool] = {}
        self._questions: Questions | None = None
        self._tasks: TaskGroup | None = None
        self._begun = False
        self._closed = False
        self._told = False
        self._grace_s = 1.0
        self._scope = anyio.CancelScope()
        self._ready = anyio.Event()
        self._settled = anyio.Event()
        self._ended = anyio.Event()
        session.clients.on_fewer_interests.append(self._release)

    # --- what others see ----------------------------------------------------------------------------------------

    @property
    def present(self) -> bool:
        """Whether the session has servers at all."""
        return bool(self._states)

    def tools(self) -> Mapping[str, McpTool]:
        return self._tools

    def instructions(self, offered: Collection[str]) -> list[str]:
        """What the servers that have tools on offer say of their use, as far as there is room."""
        named = {tool.connection.name: tool.connection for name, tool in self._tools.items() if name in offered}
        return [
            f"What the MCP server {name!r} says of its tools:\n{said[:MAX_INSTRUCTIONS]}"
            for name, connection in named.items()
            if (said := (connection.instructions or "").strip())
        ]

    def servers(self) -> list[McpServerInfo]:
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
        state = self._states.get(name)
        return state.entry if state else None

    def connected(self, name: str) -> Connection:
        """The connection of a server that runs.

        Raises:
            InvalidRequestError: it does not.
        """
        state = self._states.get(name)
        if state is None or state.connection is None or not state.connection.running:
            raise InvalidRequestError(f"MCP server {name!r} is not connected")
        return state.connection

    def running(self, name: str) -> bool:
        state = self._states.get(name)
        return bool(state and state.connection and state.connection.running)

    @property
    def questions(self) -> Questions | None:
        """What servers have asked; ``None`` while none could."""
        return self._questions

    # --- beginning and ending -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Look what servers the session is set up with, now or anew, and have them run; returns at once."""
        if self._closed:
            return
        found = {**self._shared.find(self.session.settings), **self._brought}
        gone = [name for name in self._states if name not in found]
        changed = [name for name, state in self._states.items() if name in found and state.entry != found[name]]
        for name in [*gone, *changed]:
            self._later(self._drop, self._states.pop(name))
        fresh = [name for name in found if name not in self._states]
        # In the order in which they were found: it is that of the tools.
        self._states = {name: self._states.get(name) or State(entry) for name, entry in found.items()}
        for name in fresh:
            state = self._states[name]
            if not state.entry.enabled:
                state.status = "disabled"
            else:
                self._later(self._start, state)
        if self._settled.is_set() and any(self._states[name].status in _UNSETTLED for name in fresh):
            # Such as those of a custom agent that was selected just now: its first turn wants them, too.
            self._settled, self._told = anyio.Event(), False
        self._collect()

    def _later(self, do: Callable[[State], Awaitable[None]], state: State) -> None:
        self._begin_task()
        # In the host's own task, which may have to load the package first.
        self.session.services.tasks.start_soon(self._when_ready, do, state)

    def _begin_task(self) -> None:
        if not self._begun:
            self._begun = True
            self.session.services.tasks.start_soon(self._run)

    async def _when_ready(self, do: Callable[[State], Awaitable[None]], state: State) -> None:
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
                self._mark(state, "failed", "the mcp package cannot be loaded")
            return False
        return True

    async def ready(self) -> None:
        """Wait for servers that are being started; the first turn does, and not for long."""
        if self._begun and not self._settled.is_set():
            with anyio.move_on_after(FIRST_TURN_S):
                await self._settled.wait()
            self._settled.set()

    def stop_waiting(self) -> bool:
        """Let no turn wait for servers; whether one could have."""
        waits = self._begun and not self._settled.is_set()
        self._settled.set()
        return waits

    async def close(self, grace_s: float) -> None:
        """End all servers."""
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

    # --- one server ---------------------------------------------------------------------------------------------

    async def start(self, name: str, config: McpServerConfig | None = None) -> None:
        """Have a server run that does not; with ``config``, as that says. Returns while it is being started.

        Raises:
            InvalidRequestError: it runs, or there is no such server.
        """
        state = self._states.get(name)
        if config is not None:
            if state is not None:
                await self._drop(state)
            entry = self._brought[name] = ServerEntry(name, config, literal=True)
            state = self._states[name] = State(entry, status="disabled")
        if state is None:
            raise InvalidRequestError(f"MCP server {name!r} is not configured")
        if state.connection is not None and state.status in ("connected", "pending"):
            raise InvalidRequestError(f"MCP server {name!r} runs already")
        await self._drop(state)
        self._mark(state, "pending")
        self._later(self._start, state)

    async def stop(self, name: str) -> None:
        """End a server; its tools go with it.

        Its status is ``disabled`` whoever ended it: SDKs up to 1.0.6 fail on ``stopped``, in events and in lists.

        Raises:
            InvalidRequestError: there is no such server.
        """
        state = self._states.get(name)
        if state is None:
            raise InvalidRequestError(f"MCP server {name!r} is not configured")
        await self._drop(state)
        self._mark(state, "disabled")

    async def _start(self, state: State) -> None:
        from jumpseat.mcp.connection import Connection, Surface

        # It may have been stopped before the package was there.
        if state.connection is not None or state.status != "pending" or self._tasks is None:
            return
        services, questions = self.session.services, self._questions
        assert questions is not None
        from jumpseat.mcp.client import Interests

        def interests(connection: Connection) -> Interests:
            return Interests(
                changed=connection.take_note,
                sampling=lambda request_id, params: questions.sample(connection.name, request_id, params),
                elicitation=lambda params: questions.elicit(connection.name, params),
                roots=lambda: [self.session.settings.cwd.as_uri()],
            )

        def changed(connection: Connection) -> None:
            if state.connection is connection:
                self._mark(state, connection.status, connection.error)

        surface = Surface(
            environ=self._shared.environ,
            secrets=services.secrets,
            cwd=lambda: self.session.settings.cwd,
            indirect=lambda: self.env_mode == "indirect",
            grace_s=lambda: self._grace_s,
            changed=changed,
            noted=self._noted,
            warn=lambda text: self._emit(events.SessionWarning(warning_type="mcp", message=text)),
            interests=interests,
            credentials=self.credentials,
            tokens=state.tokens,
        )
        state.connection = Connection(state.entry, surface)
        self._tasks.start_soon(state.connection.run)

    async def _drop(self, state: State) -> None:
        """End a server and tell nobody."""
        connection, state.connection = state.connection, None
        if connection is not None:
            await connection.stop()

    # --- tokens -------------------------------------------------------------------------------------------------

    def retry_auth(self, name: str | None = None) -> None:
        """Try again what has failed for want of a token."""
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
        """Log in to a server; returns the address that the user is to open, ``None`` where no login is wanted.

        Raises:
            InvalidRequestError: nobody can log in there.
        """
        config = self._remote(name)
        if not self.credentials.stored_logins:
            raise InvalidRequestError(
                "a login is kept on the disk, and this session wants its tokens in memory only"
            )
        url = config.url or ""
        if not again and await self._shared.logins.current(url) is not None:
            self.retry_auth(name)
            return None
        self._begin_task()
        await self._ready.wait()
        if self._tasks is None or self._closed:
            raise InvalidRequestError("the session ends")
        told = _Told()

        async def log_in_and_on() -> None:
            await load("jumpseat.mcp.login")
            from jumpseat.mcp.login import LoginFailedError, log_in

            try:
                login = await log_in(
                    url,
                    told.show,
                    client_id=client_id or config.oauth_client_id,
                    client_secret=client_secret,
                    client_name=client_name,
                    done=success,
                )
                if login is not None:
                    await self._shared.logins.keep(url, login)
                self.retry_auth(name)
            except LoginFailedError as error:
                log.warning("MCP server %s: %s", name, error)
                told.problem = str(error)
            finally:
                told.known.set()

        self._tasks.start_soon(log_in_and_on)
        await told.known.wait()
        if told.address is None and told.problem is not None:
            raise InvalidRequestError(f"MCP server {name!r}: {told.problem}")
        return told.address

    async def probe(self, name: str) -> McpProbeResult:
        """Find out whether a server wants a login, whatever has become of it; nothing changes.

        Raises:
            InvalidRequestError: it has no URL, or a variable in its settings is not set.
        """
        config = self._remote(name)
        token = await self.credentials.token(self._states[name].tokens, config.url or "")
        await load("jumpseat.mcp.probe")
        from jumpseat.mcp.probe import probe

        return await probe(config, token)

    def _remote(self, name: str) -> McpServerConfig:
        """The settings of a server that is reached by a URL, as it would be started with them now.

        Raises:
            InvalidRequestError: there is no such server, it is a program, or a variable is not set.
        """
        state = self._states.get(name)
        if state is None or state.entry.config is None:
            raise InvalidRequestError(f"MCP server {name!r} is not configured")
        if not state.entry.config.remote:
            raise InvalidRequestError(f"MCP server {name!r} is not a remote server")
        try:
            return resolved(state.entry, state.entry.config, self._shared.environ)
        except MissingVariableError as error:
            raise InvalidRequestError(f"MCP server {name!r}: {error}") from None

    def _release(self) -> None:
        """Let no server wait for what no client answers any more."""
        self.credentials.release()
        if self._questions is not None and not self.session.clients.has_interest(SAMPLING):
            self._questions.close()

    # --- telling ------------------------------------------------------------------------------------------------

    def tell_roots(self) -> None:
        """Tell the servers that the working directory is another."""
        for state in self._states.values():
            if state.connection is not None and self._tasks is not None and not self._closed:
                self._tasks.start_soon(state.connection.tell_roots)

    def _mark(self, state: State, status: McpStatus, error: str | None = None) -> None:
        name = state.entry.name
        if self._states.get(name) is not state:
            return
        told = (state.status, state.error) != (status, error)
        state.status, state.error = status, error
        self._collect()
        if told:
            self._emit(events.McpServerStatusChanged(server_name=name, status=status, error=error))
        if not self._told and all(one.status not in _UNSETTLED for one in self._states.values()):
            self._told = True
            self._settled.set()
            self._emit(events.McpServersLoaded(servers=[self._loaded(one) for one in self._states.values()]))

    def _loaded(self, state: State) -> events.McpLoadedServer:
        entry = state.entry
        return events.McpLoadedServer(
            name=entry.name,
            status=state.status,
            source=entry.source,
            transport=entry.config.transport if entry.config else None,
            plugin_name=entry.plugin,
            error=state.error,
        )

    def _noted(self, connection: Connection, what: str) -> None:
        kinds = {
            "tools": events.McpToolsListChanged,
            "resources": events.McpResourcesListChanged,
            "prompts": events.McpPromptsListChanged,
        }
        self._emit(kinds[what](server_name=connection.name))

    def _collect(self) -> None:
        """Name the tools that there are now."""
        tools: dict[str, McpTool] = {}
        taken = set(self._shared.reserved)
        for state in self._states.values():
            for tool in state.connection.tools if state.connection else ():
                name = tool_name(state.entry.name, tool.name, taken)
                taken.add(name)
                assert state.connection is not None
                tools[name] = McpTool(name, self.session, state.connection, tool)
        self._tools = tools

    def _emit(self, payload: events.EventPayload) -> None:
        if self._closed:
            return
        try:
            self.session.emit(payload)
        except StoreError as error:
            log.error("session %s: %s", self.session.id, error)
