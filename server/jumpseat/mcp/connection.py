"""One server of one session: its task, from its start to its end, and what it can be asked meanwhile.

All of a connection is entered and left in one task, :meth:`Connection.run`. A server that goes away is started
again with growing pauses; one that never came up is not: that is for whoever mends its settings. Nothing that
happens to a server is raised to anybody but those who have asked it something.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import anyio
import httpx
import mcp.types as types
import orjson

from jumpseat.agent.secrets import Secrets
from jumpseat.mcp.auth import AuthQuestion, ClientTokens, HeadersReason, NeedsLoginError
from jumpseat.mcp.catalogue import MissingVariableError, ServerEntry, resolved
from jumpseat.mcp.client import (
    CallTimeoutError,
    Interests,
    McpClient,
    RefusedError,
    ServerGoneError,
    initialize,
    open_client,
)
from jumpseat.mcp.credentials import Credentials
from jumpseat.mcp.http import http_streams
from jumpseat.mcp.stdio import CLOSE_S, Child, ServerFailedError, Streams, stdio_streams
from jumpseat_protocol.mcp import McpServerConfig, McpStatus

log = logging.getLogger(__name__)

START_S: Final = 60.0
"""From the start of a server to its list of tools. Package runners download what they run."""

CALL_S: Final = 300.0
"""Of one call without news, where the server's ``timeout`` says nothing."""

REQUEST_S: Final = 60.0
"""Of any other request."""

WAITS_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Between the loss of a server and its next start; after these it stays away."""

HEALTHY_S: Final = 60.0
"""A server that has held so long begins these anew when it is lost."""

RETURN_S: Final = 10.0
"""How long a call waits for a server that is just being started."""

REFRESH_S: Final = 0.5
"""The least time between two looks at a list that the server says has changed."""

MAX_TOOLS: Final = 500
MAX_PAGES: Final = 100
MAX_LIST_BYTES: Final = 2 * 1024 * 1024
MAX_DESCRIPTION: Final = 16 * 1024
SHORTEST_SECRET: Final = 6

R = TypeVar("R", bound=types.Result)


class NotConnectedError(Exception):
    """The server is not there; the text says why."""


@dataclass(frozen=True, slots=True)
class Surface:
    """What a connection needs of its host. ``changed`` hears of its status and tools, ``noted`` of its lists.

    ``tokens`` are those its server was given so far, by URL.
    """

    environ: Mapping[str, str]
    secrets: Secrets
    cwd: Callable[[], Path]
    indirect: Callable[[], bool]
    grace_s: Callable[[], float]
    changed: Callable[[Connection], None]
    noted: Callable[[Connection, str], None]
    warn: Callable[[str], None]
    interests: Callable[[Connection], Interests]
    credentials: Credentials
    tokens: dict[str, ClientTokens]


class Connection:
    """``tools`` are the server's own, as far as they are wanted; they stay while it is being restarted."""

    def __init__(self, entry: ServerEntry, surface: Surface) -> None:
        self.entry = entry
        self.config = entry.config
        # With the values of this start.
        self.resolved_config: McpServerConfig | None = None
        self.status: McpStatus = "pending"
        self.error: str | None = None
        self.tools: list[types.Tool] = []
        self.instructions: str | None = None
        self._surface = surface
        self._client: McpClient | None = None
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._changed = anyio.Event()
        self._auth_news = anyio.Event()
        self._stale = anyio.Event()
        self._start_limit: anyio.CancelScope | None = None
        self._secrets = Secrets()
        self._lost_at: list[float] = []

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def running(self) -> bool:
        return self._client is not None

    # --- its life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Have the server run until :meth:`stop`, or until it cannot be had."""
        try:
            with self._scope:
                while await self._once():
                    pass
        except Exception:
            log.exception("MCP server %s: its connection failed", self.name)
            self.status = "failed"
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """End the server and wait until nothing of it is left."""
        self._scope.cancel()
        await self._ended.wait()
        self.tools = []
        self._set("disabled")

    def retry_auth(self) -> None:
        """Try again where a token was missing: there may be one now."""
        self._auth_news.set()

    async def _once(self) -> bool:
        """One start and what comes of it; whether there is to be another."""
        self._set("pending")
        self._auth_news = anyio.Event()
        began, came_up = anyio.current_time(), False
        try:
            async with self._connected() as (client, ended, child):
                self._client, came_up = client, True
                self._set("connected")
                await self._watch(client, ended)
                problem = await _ending(child)
        except Exception as error:
            # Whatever a server, its transport or its settings come up with costs this server alone.
            problem = _described(error)
            if _wants_auth(error):
                self.tools = []
                self._set("needs-auth", problem)
                await self._auth_news.wait()
                return True
        finally:
            self._client = None
        return await self._pause(self._mask(problem), came_up=came_up, held_s=anyio.current_time() - began)

    async def _pause(self, problem: str, *, came_up: bool, held_s: float) -> bool:
        log.warning("MCP server %s: %s", self.name, problem)
        if held_s > HEALTHY_S:
            self._lost_at.clear()
        if not came_up and not self._lost_at:
            self._set("failed", problem)
            return False
        if len(self._lost_at) >= len(WAITS_S):
            self.tools = []
            self._set("failed", f"{problem}; it was started {len(self._lost_at)} times in vain")
            return False
        wait_s = WAITS_S[len(self._lost_at)]
        self._lost_at.append(anyio.current_time())
        self._set("failed", f"{problem}; it is started again in {wait_s:g} seconds")
        await anyio.sleep(wait_s)
        return True

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[tuple[McpClient, anyio.Event, Child | None], None]:
        surface = self._surface
        if self.config is None:
            raise ServerFailedError(self.entry.problem or "it is not configured")
        config = resolved(self.entry, self.config, surface.environ, indirect=surface.indirect())
        self.resolved_config = config
        self._secrets = _secrets_of(config)
        ended = anyio.Event()
        async with (
            self._transport(config) as (streams, child),
            open_client(streams, surface.interests(self), ended) as client,
        ):
            try:
                with anyio.fail_after(START_S) as self._start_limit:
                    hello = await initialize(client)
                    self.instructions = hello.instructions
                    self.tools = await self._list_tools(client) if hello.capabilities.tools else []
            except (TimeoutError, CallTimeoutError):
                raise ServerFailedError("it does not answer") from None
            except RefusedError as error:
                raise ServerFailedError(str(error)) from None
            except ServerGoneError:
                raise ServerFailedError(await _ending(child)) from None
            yield client, ended, child

    @asynccontextmanager
    async def _transport(self, config: McpServerConfig) -> AsyncGenerator[tuple[Streams, Child | None], None]:
        surface = self._surface
        if config.remote:
            auth = await surface.credentials.auth(surface.tokens, config, self._ask_token, self._ask_headers)
            async with http_streams(config, auth) as streams:
                yield streams, None
        else:
            async with stdio_streams(
                config,
                name=self.name,
                cwd=surface.cwd(),
                environ=surface.environ,
                mask=self._mask,
                close_s=lambda: min(CLOSE_S, surface.grace_s()),
            ) as (streams, child):
                yield streams, child

    async def _ask_token(self, question: AuthQuestion) -> str | None:
        # A person may have to be asked: that is not the server's delay.
        limit = self._start_limit if self._client is None else None
        left = limit.deadline - anyio.current_time() if limit else 0.0
        if limit:
            limit.deadline = float("inf")
            self._set("needs-auth")
        token = await self._surface.credentials.ask_token(self, question)
        if token is not None:
            self._secrets.add([token] if len(token) >= SHORTEST_SECRET else [])
        if limit:
            limit.deadline = anyio.current_time() + left
            self._set("pending")
        return token

    async def _ask_headers(self, reason: HeadersReason) -> dict[str, str] | None:
        given = await self._surface.credentials.ask_headers(self, reason)
        self._secrets.add(value for value in (given or {}).values() if len(value) >= SHORTEST_SECRET)
        return given

    def _mask(self, text: str) -> str:
        return self._surface.secrets(self._secrets(text))

    async def _watch(self, client: McpClient, ended: anyio.Event) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._refresh, client)
            await ended.wait()
            tasks.cancel_scope.cancel()

    async def _refresh(self, client: McpClient) -> None:
        while True:
            await self._stale.wait()
            self._stale = anyio.Event()
            try:
                self.tools = await self._list_tools(client)
            except (ServerGoneError, CallTimeoutError, RefusedError) as error:
                log.warning("MCP server %s: its list of tools cannot be read: %s", self.name, error)
            else:
                self._surface.changed(self)
                self._surface.noted(self, "tools")
            await anyio.sleep(REFRESH_S)

    def take_note(self, notification: types.ServerNotification) -> None:
        """Hear what a server says unasked."""
        match notification.root:
            case types.ToolListChangedNotification():
                self._stale.set()
            case types.ResourceListChangedNotification():
                self._surface.noted(self, "resources")
            case types.PromptListChangedNotification():
                self._surface.noted(self, "prompts")
            case types.LoggingMessageNotification(params=params):
                log.debug("MCP server %s (%s): %s", self.name, params.level, self._mask(str(params.data)[:500]))
            case _:
                pass

    async def _list_tools(self, client: McpClient) -> list[types.Tool]:
        """The tools that are wanted of the server; of a list without end, its beginning."""
        found: dict[str, types.Tool] = {}
        size, cursor, cut = 0, None, False
        for _ in range(MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await client.ask(
                types.ListToolsRequest(params=params), types.ListToolsResult, timeout_s=REQUEST_S
            )
            for tool in page.tools:
                size += len(orjson.dumps(tool.inputSchema, default=str)) + len(tool.description or "")
                if len(found) >= MAX_TOOLS or size > MAX_LIST_BYTES:
                    cut = True
                    break
                found.setdefault(tool.name, tool)
            cursor = page.nextCursor
            if cut or not cursor:
                break
        if cut or cursor:
            self._surface.warn(
                f"The MCP server {self.name!r} has more tools than are offered: {len(found)} of them are."
            )
        return [tool for tool in found.values() if self.wants(tool.name) and not _is_task(tool)]

    def wants(self, tool: str) -> bool:
        """Whether a tool of the server is to be offered."""
        config = self.config
        if config is None or tool in (config.exclude_tools or ()):
            return False
        return config.tools is None or "*" in config.tools or tool in config.tools

    # --- asking it ----------------------------------------------------------------------------------------------

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        meta: dict[str, Any] | None = None,
        on_news: Callable[[float, float | None, str | None], None] | None = None,
    ) -> types.CallToolResult:
        """Have the server run a tool.

        Raises:
            NotConnectedError, ServerGoneError, CallTimeoutError, RefusedError: it did not.
        """
        client = await self._client_soon()
        params = types.CallToolRequestParams.model_validate(
            {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}
        )
        return await client.ask(
            types.CallToolRequest(params=params), types.CallToolResult, timeout_s=self.call_s, on_news=on_news
        )

    async def ask(self, request: types.ClientRequestType, result: type[R]) -> R:
        """Any other request.

        Raises:
            NotConnectedError, ServerGoneError, CallTimeoutError, RefusedError: it was not answered.
        """
        if self._client is None:
            raise NotConnectedError(self._why())
        return await self._client.ask(request, result, timeout_s=REQUEST_S)

    @property
    def call_s(self) -> float:
        """How long a call may take without news, in seconds."""
        timeout_ms = self.config.timeout if self.config else None
        return timeout_ms / 1000 if timeout_ms else CALL_S

    async def tell_roots(self) -> None:
        """Tell the server that the working directory is another."""
        if self._client is not None:
            await self._client.tell_roots()

    async def _client_soon(self) -> McpClient:
        with anyio.move_on_after(RETURN_S):
            while self._client is None and not self._ended.is_set() and self.status != "needs-auth":
                await self._changed.wait()
        if self._client is None:
            raise NotConnectedError(self._why())
        return self._client

    def _why(self) -> str:
        return f"the MCP server {self.name!r} is not connected" + (f": {self.error}" if self.error else "")

    def _set(self, status: McpStatus, error: str | None = None) -> None:
        changed = (status, error) != (self.status, self.error)
        self.status, self.error = status, error
        self._changed.set()
        self._changed = anyio.Event()
        if changed:
            self._surface.changed(self)


async def _ending(child: Child | None) -> str:
    if child is None:
        return "the connection has ended"
    said = await child.last_words()
    return child.problem or (f"it has ended: {said}" if said else "it has ended")


def _is_task(tool: types.Tool) -> bool:
    """Whether a tool cannot just be called: its results are to be fetched later, which nobody here does."""
    return tool.execution is not None and tool.execution.taskSupport == "required"


def _secrets_of(config: McpServerConfig) -> Secrets:
    """What the settings of a server hold, to be left out of what is said of it."""
    mask = Secrets()
    values = [*(config.env or {}).values(), *(config.headers or {}).values()]
    mask.add(value for value in values if len(value.strip()) >= SHORTEST_SECRET)
    return mask


def _leaves(error: BaseException) -> Iterable[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _wants_auth(error: BaseException) -> bool:
    return any(
        isinstance(one, NeedsLoginError)
        or (isinstance(one, httpx.HTTPStatusError) and one.response.status_code in (401, 403))
        for one in _leaves(error)
    )


def _described(error: BaseException) -> str:
    """What went wrong, in words that can be shown: no query of a URL, no body of an answer."""
    for one in _leaves(error):
        match one:
            case ServerFailedError() | MissingVariableError() | NotConnectedError():
                return str(one)
            case NeedsLoginError():
                return "it wants a login"
            case httpx.HTTPStatusError():
                url = one.request.url
                return f"it answered with status {one.response.status_code} at {url.scheme}://{url.netloc.decode()}{url.path}"
            case httpx.TimeoutException():
                return "it did not answer in time"
            case httpx.ConnectError():
                return f"no connection to {one.request.url.host}: {one}"
            case httpx.HTTPError():
                return f"the connection failed: {one or type(one).__name__}"
            case _:
                pass
    first = next(iter(_leaves(error)))
    log.debug("an MCP server failed unexpectedly", exc_info=first)
    return f"it failed unexpectedly ({type(first).__name__})"
