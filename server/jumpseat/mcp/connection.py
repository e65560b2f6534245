"""The connection to one server of one session: its task from start to end, and requests to the server meanwhile.

Everything of a connection is opened and closed in one task, :meth:`Connection.run`. A server that is lost is
restarted after growing delays; a server that never came up is not, because its settings need attention. Failures
of a server are raised only to callers that wait for one of its responses.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import mcp.types as types
from anyio.abc import TaskGroup
from msgspec import Struct

from jumpseat.agent.client import Client
from jumpseat.agent.secrets import Secrets
from jumpseat.errors import ProviderAuthError, ProviderError
from jumpseat.mcp.auth import AuthQuestion, ClientTokens, HeadersReason, NeedsLoginError
from jumpseat.mcp.catalogue import ServerEntry, resolve_config
from jumpseat.mcp.client import (
    CallTimeoutError,
    McpClient,
    Progress,
    RefusedError,
    ServerCallbacks,
    ServerGoneError,
    SessionLostError,
    TaskCreated,
    open_client,
)
from jumpseat.mcp.credentials import Credentials
from jumpseat.mcp.failures import (
    NotConnectedError,
    NotNegotiatedError,
    describe,
    leaves,
    may_have_older_transport,
    needs_auth,
)
from jumpseat.mcp.github import MakeConfig
from jumpseat.mcp.http import http_streams
from jumpseat.mcp.negotiation import negotiate
from jumpseat.mcp.outside import OutsideStarts, StartRefusedError
from jumpseat.mcp.stdio import CLOSE_S, Child, ServerFailedError, Streams, stdio_streams
from jumpseat.mcp.tool_list import list_tools, needs_task
from jumpseat.sandbox.session import SessionSandbox
from jumpseat.system.log_fields import fields
from jumpseat_protocol.mcp import McpStatus
from jumpseat_protocol.mcp_servers import McpServerConfig
from jumpseat_protocol.sessions import GitHubMcpToolConfig

if TYPE_CHECKING:
    from jumpseat.mcp.tasks import TaskFollower

log = logging.getLogger(__name__)

START_S: Final = 60.0
"""Time-out from the start of a server to its list of tools; package runners download the server first."""

CALL_S: Final = 300.0
"""Default time-out of a tool call; each progress notification restarts it."""

REQUEST_S: Final = 60.0
"""Time-out of any other request."""

RESTART_DELAYS_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Delays between the loss of a server and its restart; after the last one the server is given up."""

HEALTHY_S: Final = 60.0
"""Uptime after which a lost server begins with the first delay again."""

RECONNECT_S: Final = 10.0
"""Time-out of a call that waits for its server to be started."""

SETTLE_S: Final = 2.0
"""Time that a server has to answer other requests before the connection with a lost session is closed."""

REFRESH_S: Final = 0.5
"""Shortest time between two requests for a list that the server has announced as changed."""

REFRESHED_S: Final = 5.0
"""Time that a model call waits for a changed list of tools."""

MAX_PROBLEMS: Final = 5
"""Invalid tools that one warning names."""

SHORTEST_SECRET: Final = 6

R = TypeVar("R", bound=types.Result)
T = TypeVar("T")


class ConnectionContext(Struct, frozen=True):
    """Services that the host gives a connection.

    ``changed`` is called after the status or the tools have changed, ``list_changed`` with ``tools``, ``resources``
    or ``prompts`` after the server has announced a new list. ``tasks`` outlive calls,
    and ``stays`` returns whether the session does not end. ``tokens`` are the server's tokens by URL.
    ``sandbox`` confines the process of the server, ``outside`` decides whether it starts unconfined. ``github``
    makes the settings of GitHub's own server. ``client_of`` returns the client that serves a server itself.
    """

    environ: Mapping[str, str]
    secrets: Secrets
    cwd: Callable[[], Path]
    indirect: Callable[[], bool]
    grace_s: Callable[[], float]
    changed: Callable[[Connection], None]
    list_changed: Callable[[Connection, str], None]
    warn: Callable[[str], None]
    callbacks: Callable[[Connection], ServerCallbacks]
    credentials: Credentials
    tokens: dict[str, ClientTokens]
    github: MakeConfig
    tasks: TaskGroup
    stays: Callable[[], bool]
    client_of: Callable[[str], Client | None] = lambda _: None
    sandbox: SessionSandbox | None = None
    outside: OutsideStarts | None = None


class Connection:
    """The connection to one server.

    ``tools`` are the server's tools that its settings allow; they stay listed while the server is being restarted.
    """

    def __init__(self, entry: ServerEntry, context: ConnectionContext) -> None:
        self.entry = entry
        self.config = entry.config
        # The settings of the current start, with variables replaced.
        self.resolved_config: McpServerConfig | None = None
        self.status: McpStatus = "pending"
        self.error: str | None = None
        self.tools: list[types.Tool] = []
        self.instructions: str | None = None
        self._context = context
        self._client: McpClient | None = None
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._changed = anyio.Event()
        self._auth_changed = anyio.Event()
        self._tools_stale = anyio.Event()
        # The changes of the list of tools that the server has announced, and those of them that are listed.
        self._changes = self._listed_changes = 0
        self._session_lost = anyio.Event()
        self._start_limit: anyio.CancelScope | None = None
        self._secrets = Secrets()
        self._lost_at: list[float] = []
        self._discovers = True
        # The failure of streamable HTTP, while the older transport is tried.
        self._http_failure: BaseException | None = None
        self._problems: list[str] = []

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def running(self) -> bool:
        return self._client is not None

    # --- start and end ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the server until :meth:`stop` is called or restarting it has failed."""
        try:
            with self._scope:
                while await self._run_once():
                    pass
        except Exception:
            log.exception("MCP server %s: its connection failed", self.name)
            self.status = "failed"
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """End the server and wait until its process group is gone."""
        self._scope.cancel()
        await self._ended.wait()
        self.tools = []
        self._set("disabled")

    def retry_auth(self) -> None:
        """Connect again if the server was waiting for a token."""
        self._auth_changed.set()

    async def _run_once(self) -> bool:
        """Start the server and wait for its end; return whether to start it again."""
        self._set("pending")
        self._auth_changed, self._session_lost = anyio.Event(), anyio.Event()
        began, came_up = anyio.current_time(), False
        try:
            async with self._connect() as (client, ended, child):
                self._client, came_up = client, True
                self._listed_changes = self._changes
                self._set("connected")
                await self._watch(client, ended)
                if self._session_lost.is_set():
                    with anyio.move_on_after(SETTLE_S):
                        await client.settle()
                    # The service may still be starting.
                    self._lost_at = [anyio.current_time()]
                    return True
                problem = await _end_reason(child)
        except Exception as error:
            # Any failure of a server, its transport or its settings affects this server alone.
            problem = describe(error)
            if any(isinstance(cause, StartRefusedError) for cause in leaves(error)):
                self.tools = []
                self._set("failed", self._mask(problem))
                return False
            if self._discovers and any(isinstance(cause, NotNegotiatedError) for cause in leaves(error)):
                # Some servers of older revisions exit when anything precedes the handshake.
                self._discovers = False
                return True
            if needs_auth(error):
                self.tools = []
                self._set("needs-auth", problem)
                await self._auth_changed.wait()
                return True
            if not came_up and self._http_failure is not None:
                problem, self._http_failure = describe(self._http_failure), None
            elif not came_up and self.config is not None and may_have_older_transport(self.config, error):
                self._http_failure = error
                return True
        finally:
            self._client = None
        return await self._delay_restart(
            self._mask(problem), came_up=came_up, uptime_s=anyio.current_time() - began
        )

    async def _delay_restart(self, problem: str, *, came_up: bool, uptime_s: float) -> bool:
        """Wait before the next start; return whether there is one."""
        if uptime_s > HEALTHY_S:
            self._lost_at.clear()
        if not came_up and not self._lost_at:
            self._set("failed", problem)
            return False
        if len(self._lost_at) >= len(RESTART_DELAYS_S):
            self.tools = []
            self._set("failed", f"{problem}; gave up after {len(self._lost_at)} restarts")
            return False
        delay_s = RESTART_DELAYS_S[len(self._lost_at)]
        self._lost_at.append(anyio.current_time())
        self._set("failed", f"{problem}; restarting in {delay_s:g} seconds")
        await anyio.sleep(delay_s)
        return True

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[tuple[McpClient, anyio.Event, Child | None], None]:
        context = self._context
        if self.config is None:
            raise ServerFailedError(self.entry.problem or "the server is not configured")
        if self.entry.github is not None:
            config = await self._github_config(self.entry.github)
        else:
            config = resolve_config(self.entry, self.config, context.environ, indirect=context.indirect())
        if self._http_failure is not None:
            config = config.model_copy(update={"type": "sse"})
        self.resolved_config = config
        self._secrets = _secrets_of(config)
        ended = anyio.Event()
        async with (
            self._transport(config) as (streams, child),
            open_client(streams, context.callbacks(self), ended) as client,
        ):
            try:
                with anyio.fail_after(START_S) as self._start_limit:
                    await negotiate(client, discover=self._discovers and config.transport != "sse")
                    self.instructions = client.session.instructions
                    capabilities = client.session.server_capabilities
                    self.tools = await self._list_tools(client) if capabilities and capabilities.tools else []
            except (TimeoutError, CallTimeoutError):
                raise ServerFailedError("the server does not respond") from None
            except RefusedError as error:
                raise ServerFailedError(str(error)) from None
            except ServerGoneError:
                if child is not None and child.problem is None and client.session.protocol_version is None:
                    raise NotNegotiatedError(await _end_reason(child)) from None
                raise ServerFailedError(await _end_reason(child)) from None
            yield client, ended, child

    async def _github_config(self, wanted: GitHubMcpToolConfig) -> McpServerConfig:
        try:
            return await self._context.github(wanted)
        except ProviderAuthError as error:
            raise NeedsLoginError(str(error)) from None
        except ProviderError as error:
            raise ServerFailedError(str(error)) from None

    @asynccontextmanager
    async def _transport(self, config: McpServerConfig) -> AsyncGenerator[tuple[Streams, Child | None], None]:
        context = self._context
        if config.transport == "acp":
            # Imported for servers of editors only.
            from jumpseat.mcp.over_client import client_streams

            server_id = config.server_id or ""
            if (client := context.client_of(server_id)) is None:
                raise ServerFailedError("the editor that serves it is not connected")
            async with client_streams(client, server_id) as streams:
                yield streams, None
        elif config.remote:
            auth = await context.credentials.auth(context.tokens, config, self._ask_token, self._ask_headers)
            async with http_streams(config, auth) as streams:
                yield streams, None
        else:
            if context.outside is not None:
                config = await context.outside.allow(self.entry, config, context.cwd(), context.environ)
            async with stdio_streams(
                config,
                name=self.name,
                cwd=context.cwd(),
                environ=context.environ,
                mask=self._mask,
                close_s=lambda: min(CLOSE_S, context.grace_s()),
                sandbox=context.sandbox,
            ) as (streams, child):
                yield streams, child

    async def _ask_token(self, question: AuthQuestion) -> str | None:
        token = await (self._request_token if self._has_client_credentials else self._ask_person)(question)
        if token is not None:
            self._secrets.add([token] if len(token) >= SHORTEST_SECRET else [])
        return token

    async def _ask_person(self, question: AuthQuestion) -> str | None:
        # Waiting for a person does not count towards the server's start-up time.
        limit = self._start_limit if self._client is None else None
        left = limit.deadline - anyio.current_time() if limit else 0.0
        if limit:
            limit.deadline = float("inf")
            self._set("needs-auth")
        url = (self.resolved_config.url if self.resolved_config else None) or ""
        token = await self._context.credentials.ask_token(self.name, self.config, url, question)
        if limit:
            limit.deadline = anyio.current_time() + left
            self._set("pending")
        return token

    @property
    def _has_client_credentials(self) -> bool:
        """Return whether this side logs in without a person. For servers of clients, their clients do so."""
        config = self.resolved_config
        return config is not None and not self.entry.literal and config.oauth_grant_type == "client_credentials"

    async def _request_token(self, question: AuthQuestion) -> str | None:
        # Imported here: few servers have such credentials.
        from jumpseat.mcp.client_credentials import GrantFailedError, request_token

        assert self.resolved_config is not None
        if question.reason == "upscope":
            # Another token would have the same scopes.
            return None
        try:
            return await request_token(self.resolved_config, self._context.environ, self._client_secret)
        except GrantFailedError as error:
            problem = self._mask(str(error))
            log.warning("MCP server %s: %s", self.name, problem)
            self._context.warn(f"MCP server {self.name!r}: {problem}")
            return None

    async def _client_secret(self, url: str, issuer: str, client_id: str) -> str | None:
        secret = await self._context.credentials.client_secret(url, issuer, client_id)
        self._secrets.add([secret] if secret is not None and len(secret) >= SHORTEST_SECRET else [])
        return secret

    async def _ask_headers(self, reason: HeadersReason) -> dict[str, str] | None:
        headers = await self._context.credentials.ask_headers(self.name, self.config, reason)
        self._secrets.add(value for value in (headers or {}).values() if len(value) >= SHORTEST_SECRET)
        return headers

    def _mask(self, text: str) -> str:
        return self._context.secrets(self._secrets(text))

    async def _watch(self, client: McpClient, ended: anyio.Event) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._refresh_tools, client)
            if client.can_listen:
                tasks.start_soon(self._listen, client)
            tasks.start_soon(_cancel_after, ended, tasks.cancel_scope)
            tasks.start_soon(_cancel_after, self._session_lost, tasks.cancel_scope)

    def _begin_session(self, lost: McpClient) -> None:
        """Connect to the server again, which has lost the session of a connection."""
        if self._client is lost:
            self._client = None
            self._session_lost.set()

    async def _refresh_tools(self, client: McpClient) -> None:
        while True:
            await self._tools_stale.wait()
            self._tools_stale, changes = anyio.Event(), self._changes
            try:
                self.tools = await self._list_tools(client)
            except SessionLostError:
                self._begin_session(client)
            except (ServerGoneError, CallTimeoutError, RefusedError) as error:
                log.warning("MCP server %s: cannot list its tools: %s", self.name, error)
            else:
                self._context.changed(self)
                self._context.list_changed(self, "tools")
            self._listed_changes = changes
            self._announce_change()
            await anyio.sleep(REFRESH_S)

    async def _listen(self, client: McpClient) -> None:
        """Keep a subscription to changed lists open, as servers of revisions without a session require."""
        subscribed = False

        async def handle_subscription() -> None:
            nonlocal subscribed, lost
            # A change may have been missed between two subscriptions.
            if subscribed and await self._list_tools(client) != self.tools:
                self._tools_stale.set()
            subscribed, lost = True, 0

        lost = 0
        while lost < len(RESTART_DELAYS_S):
            try:
                await client.listen(handle_subscription)
            except (ServerGoneError, CallTimeoutError, RefusedError) as error:
                log.debug("MCP server %s: no subscription to changed lists: %s", self.name, error)
            delay_s, lost = RESTART_DELAYS_S[lost], lost + 1
            await anyio.sleep(delay_s)

    def handle_notification(self, notification: types.ServerNotification) -> None:
        """Handle a notification of the server."""
        match notification:
            case types.ToolListChangedNotification():
                self._changes += 1
                self._tools_stale.set()
            case types.ResourceListChangedNotification():
                self._context.list_changed(self, "resources")
            case types.PromptListChangedNotification():
                self._context.list_changed(self, "prompts")
            case types.LoggingMessageNotification(params=params):
                log.debug("MCP server %s (%s): %s", self.name, params.level, self._mask(str(params.data)[:500]))
            case _:
                pass

    async def _list_tools(self, client: McpClient) -> list[types.Tool]:
        """Request the server's tools and return those that its settings allow."""
        offered = await list_tools(client, timeout_s=REQUEST_S)
        if not offered.complete:
            self._context.warn(
                f"The MCP server {self.name!r} has too many tools: only the first {len(offered.tools)} are offered."
            )
        if offered.problems and offered.problems != self._problems:
            shown = "; ".join(offered.problems[:MAX_PROBLEMS])
            more = (
                f"; and {len(offered.problems) - MAX_PROBLEMS} more" if len(offered.problems) > MAX_PROBLEMS else ""
            )
            self._context.warn(f"The MCP server {self.name!r} defines tools that are invalid: {shown}{more}.")
        self._problems = offered.problems
        return [tool for tool in offered.tools if self.allows(tool.name) and not needs_task(tool)]

    def allows(self, tool: str) -> bool:
        """Return whether the server's settings allow a tool to be offered."""
        config = self.config
        if config is None or tool in (config.exclude_tools or ()):
            return False
        return config.tools is None or "*" in config.tools or tool in config.tools

    # --- requests -----------------------------------------------------------------------------------------------

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        meta: dict[str, Any] | None = None,
        on_progress: Callable[[float, float | None, str | None], None] | None = None,
        on_task: Callable[[str], None] = lambda _task_id: None,
    ) -> types.CallToolResult:
        """Call a tool of the server.

        ``on_progress`` gets the progress so far, the total where it is known, and a message. ``on_task`` gets the
        id of the task that the server makes of the call, if it makes one.

        Raises:
            NotConnectedError: the server is not connected.
            ServerGoneError: the connection ended before the response.
            CallTimeoutError: there was no response or progress in time.
            RefusedError: the server responded with an error.
        """
        params = types.CallToolRequestParams.model_validate(
            {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}
        )

        async def send(client: McpClient) -> types.CallToolResult:
            return await client.ask(
                types.CallToolRequest(params=params),
                types.CallToolResult,
                timeout_s=self.call_timeout_s,
                on_progress=on_progress,
            )

        async def send_with_headers(client: McpClient) -> types.CallToolResult:
            try:
                return await send(client)
            except RefusedError as error:
                if error.code != types.HEADER_MISMATCH:
                    raise
            # Some arguments are sent in headers too, and the server has changed which.
            self.tools = await self._list_tools(client)
            return await send(client)

        try:
            return await self._in_session(send_with_headers)
        except TaskCreated as created:
            task = created.task
        on_task(task.task_id)
        return await self._follower(task.task_id, on_progress).follow(task)

    async def follow_task(self, task_id: str, on_progress: Progress | None = None) -> types.CallToolResult:
        """Return the result of a call that an earlier process has made, and that its server runs as a task.

        Raises:
            NotConnectedError, RefusedError: as in :meth:`call`.
        """
        return await self._follower(task_id, on_progress).follow()

    def _follower(self, task_id: str, on_progress: Progress | None) -> TaskFollower:
        # Imported here: few servers have tasks.
        from jumpseat.mcp.tasks import TaskFollower

        context = self._context
        return TaskFollower(task_id, self._wait_for_client, context.tasks, context.stays, on_progress)

    async def ask(self, request: types.ClientRequest, result: type[R]) -> R:
        """Send any other request and return its result.

        Raises:
            NotConnectedError, ServerGoneError, CallTimeoutError, RefusedError: as in :meth:`call`.
        """
        return await self._in_session(lambda client: client.ask(request, result, timeout_s=REQUEST_S))

    async def _in_session(self, send: Callable[[McpClient], Awaitable[T]]) -> T:
        """Send a request, and repeat it once in a new session if the server has lost the session."""
        client = await self._wait_for_client()
        try:
            return await send(client)
        except SessionLostError:
            self._begin_session(client)
        return await send(await self._wait_for_client())

    @property
    def call_timeout_s(self) -> float:
        """Time-out of a tool call, in seconds; progress restarts it."""
        timeout_ms = self.config.timeout if self.config else None
        return timeout_ms / 1000 if timeout_ms else CALL_S

    async def notify_roots_changed(self) -> None:
        """Notify the server that the working directory has changed."""
        if self._client is not None:
            await self._client.notify_roots_changed()

    async def started(self) -> None:
        """Wait while the server is being started, up to ``START_S``."""
        with anyio.move_on_after(START_S):
            while self.status == "pending" and not self._ended.is_set():
                await self._changed.wait()

    async def refreshed(self) -> None:
        """Wait up to ``REFRESHED_S`` until the tools are those that the server has announced so far."""
        changes = self._changes
        with anyio.move_on_after(REFRESHED_S):
            while self._listed_changes < changes and self._client is not None:
                await self._changed.wait()

    async def _wait_for_client(self) -> McpClient:
        with anyio.move_on_after(RECONNECT_S):
            while self._client is None and not self._ended.is_set() and self.status != "needs-auth":
                await self._changed.wait()
        if self._client is None:
            raise NotConnectedError(self._not_connected_text())
        return self._client

    def _not_connected_text(self) -> str:
        return f"the MCP server {self.name!r} is not connected" + (f": {self.error}" if self.error else "")

    def _set(self, status: McpStatus, error: str | None = None) -> None:
        changed = (status, error) != (self.status, self.error)
        self.status, self.error = status, error
        self._announce_change()
        if changed:
            self._log_status()
            self._context.changed(self)

    def _announce_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _log_status(self) -> None:
        level = logging.WARNING if self.status in ("failed", "needs-auth") else logging.INFO
        if self.status != "pending" and log.isEnabledFor(level):
            tools = len(self.tools) if self.status == "connected" else None
            where = fields(server=self.name, status=self.status, tools=tools, reason=self.error)
            log.log(level, f"MCP server {self.status}", extra=where)


async def _cancel_after(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _end_reason(child: Child | None) -> str:
    if child is None:
        return "the connection has ended"
    stderr = await child.stderr_tail()
    return child.problem or (f"the process has ended: {stderr}" if stderr else "the process has ended")


def _secrets_of(config: McpServerConfig) -> Secrets:
    """Return a mask for the values in a server's ``env`` and ``headers``."""
    mask = Secrets()
    values = [*(config.env or {}).values(), *(config.headers or {}).values()]
    mask.add(value for value in values if len(value.strip()) >= SHORTEST_SECRET)
    return mask
