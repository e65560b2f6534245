"""The MCP client of one connection: the package's client session, with time-outs, limits and answers to servers.

Requests may be sent from any task. They end when the server is gone, can be cancelled and time out, and the server
is notified of that. Messages of the server are read at a limited rate. A server asks for input with requests of its
own (revisions up to 2025-11-25) or with a result that lists them (from 2026-07-28 on); both are answered here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias, TypeVar, cast

import anyio
import anyio.to_thread
import mcp.types as types
from anyio.abc import TaskGroup
from mcp.client.context import ClientRequestContext
from mcp.client.session import ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from jumpseat.mcp.http import SESSION_LOST
from jumpseat.mcp.repair import repair_result
from jumpseat.mcp.stdio import Incoming, Streams, unreadable_reply
from jumpseat.mcp.task_shapes import CLAIMS, EXTENSION, CreatedTask
from jumpseat_protocol.version import __version__

MESSAGES_PER_S: Final = 500
"""Limit on the messages that are read from a server per second."""

MAX_SERVER_REQUESTS: Final = 16
"""Limit on the open sampling and elicitation requests of one server."""

MAX_INPUT_ROUNDS: Final = 10
"""Limit on the results of one request that ask for input."""

INPUT_DELAY_S: Final = 0.25
"""Delay before a request is repeated for a server that asks for nothing but its repetition."""

NOTIFY_S: Final = 1.0
"""Time-out of sending a notification to a server."""

R = TypeVar("R", bound=types.Result)
T = TypeVar("T")

Progress: TypeAlias = Callable[[float, float | None, str | None], None]
InputParams: TypeAlias = (
    types.CallToolRequestParams | types.GetPromptRequestParams | types.ReadResourceRequestParams
)


class ServerGoneError(Exception):
    """The connection to the server has ended."""


class CallTimeoutError(Exception):
    """The server has not responded in time."""


class RefusedError(Exception):
    """The server responded with an error; the text is the server's, and so is ``code``, if it sent one."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


class TaskCreated(Exception):  # noqa: N818 - it is no failure
    """The server runs a call as a task; its result comes later."""

    def __init__(self, task: CreatedTask) -> None:
        super().__init__(task.task_id)
        self.task = task


class SessionLostError(RefusedError):
    """The server has lost the session, and has not run the request: a new connection has a new session."""

    def __init__(self) -> None:
        super().__init__("the server has lost the session")


class ServerCallbacks:
    """Callbacks for the notifications and requests of a server; they must not raise.

    ``notified`` gets every notification, ``sampling`` and ``elicitation`` return the result of a request, and
    ``roots`` returns the URIs of the roots.
    """

    def __init__(
        self,
        *,
        notified: Callable[[types.ServerNotification], None],
        sampling: Callable[[types.RequestId, types.CreateMessageRequestParams], Awaitable[Any]],
        elicitation: Callable[[types.ElicitRequestParams], Awaitable[Any]],
        roots: Callable[[], list[str]],
    ) -> None:
        self.notified = notified
        self.sampling = sampling
        self.elicitation = elicitation
        self.roots = roots


class McpClient:
    """A client session whose requests end with the connection and time out; ``session`` is the package's.

    ``ended`` is set when the stream of the server's messages has ended.
    """

    def __init__(self, streams: Streams, callbacks: ServerCallbacks, tasks: TaskGroup, ended: anyio.Event) -> None:
        async def sampling(context: ClientRequestContext, params: types.CreateMessageRequestParams) -> Any:
            return await self._answer(lambda: callbacks.sampling(context.request_id, params))

        async def elicitation(context: ClientRequestContext, params: types.ElicitRequestParams) -> Any:
            return await self._answer(lambda: callbacks.elicitation(params))

        async def roots(context: ClientRequestContext) -> types.ListRootsResult:
            return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in callbacks.roots()]})

        async def incoming(message: types.ServerNotification | Exception) -> None:
            if not isinstance(message, Exception):
                callbacks.notified(message)

        self.session = ClientSession(
            *streams,
            sampling_callback=sampling,
            elicitation_callback=elicitation,
            list_roots_callback=roots,
            message_handler=incoming,
            client_info=types.Implementation(name="jumpseat", version=__version__),
            extensions={EXTENSION: {}},
            result_claims=CLAIMS,
        )
        self._tasks = tasks
        self._ended = ended
        # The requests that wait for a response, each with the errors that end it.
        self._waiting: dict[anyio.Event, list[Exception]] = {}
        self._server_requests = 0
        self._gone = False

    def end(self) -> None:
        """End all waiting requests with :class:`ServerGoneError`."""
        self._gone = True
        for done in self._waiting:
            done.set()

    async def settle(self) -> None:
        """Wait for the responses to requests that were sent."""
        for done in list(self._waiting):
            await done.wait()

    def refuse(self, error: types.ErrorData) -> None:
        """End the request that an error without an id is about: the only one that waits, if it is the only one."""
        if len(self._waiting) == 1:
            ((done, errors),) = self._waiting.items()
            errors.append(RefusedError(error.message, error.code))
            done.set()

    @property
    def stateless(self) -> bool:
        """Return whether the negotiated revision is one without a session: 2026-07-28."""
        return self.session.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def ask(
        self,
        request: types.ClientRequest | types.Request[Any, Any],
        result: type[R],
        *,
        timeout_s: float,
        on_progress: Progress | None = None,
    ) -> R:
        """Send a request and wait for its result; each progress notification restarts the time-out.

        A server that asks for input gets it, and the request is repeated. The time that the input takes does not
        count towards the time-out.

        Raises:
            TaskCreated: the result of the call will be that of a task.
            ServerGoneError: the connection has ended.
            CallTimeoutError: the request timed out; the server has been notified.
            RefusedError: the server responded with an error, or with a result of another form.
        """
        adapter = _ADAPTERS.get(result) if self.stateless else None
        if adapter is None:
            return await self._send(
                lambda progressed: self.session.send_request(request, result, progress_callback=progressed),
                timeout_s,
                on_progress,
            )
        for _ in range(MAX_INPUT_ROUNDS):
            sent = request
            answer = await self._send(
                lambda progressed, sent=sent: self.session.send_request(
                    sent, adapter, progress_callback=progressed
                ),
                timeout_s,
                on_progress,
            )
            if isinstance(answer, CreatedTask):
                raise TaskCreated(answer)
            if not isinstance(answer, types.InputRequiredResult):
                return cast("R", answer)
            request = await self._with_input(request, answer)
        raise RefusedError(f"the server asked for input more than {MAX_INPUT_ROUNDS} times")

    async def list_tools(self, cursor: str | None, *, timeout_s: float) -> types.ListToolsResult:
        """Request one page of the server's tools, without those that the specification forbids to offer.

        Raises:
            ServerGoneError, CallTimeoutError, RefusedError: as in :meth:`ask`.
        """
        params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
        return await self._send(lambda _: self.session.list_tools(params=params), timeout_s)

    @property
    def can_listen(self) -> bool:
        """Return whether the server announces changed lists to subscribers only."""
        return self.stateless and any(self._announced_changes())

    def _announced_changes(self) -> tuple[bool, bool, bool]:
        """Return whether the server announces changes of its tools, prompts and resources."""
        found = self.session.server_capabilities
        kinds = (found.tools, found.prompts, found.resources) if found else (None, None, None)
        tools, prompts, resources = (bool(kind and kind.list_changed) for kind in kinds)
        return tools, prompts, resources

    async def listen(self, on_open: Callable[[], Awaitable[None]]) -> None:
        """Subscribe to changed lists until the server ends the subscription; ``on_open`` is called when it begins.

        The changes themselves arrive as notifications.

        Raises:
            RefusedError: the server refused the subscription, or the stream of changes was lost.
            ServerGoneError: the connection has ended.
        """
        tools, prompts, resources = self._announced_changes()
        try:
            async with listen(
                self.session,
                tools_list_changed=tools,
                prompts_list_changed=prompts,
                resources_list_changed=resources,
            ) as subscription:
                await on_open()
                async for _ in subscription:
                    pass
        except MCPError as error:
            raise self.public_error(error) from None
        except SubscriptionLost:
            raise RefusedError("the subscription was lost") from None

    async def notify_roots_changed(self) -> None:
        """Notify the server that the list of roots has changed, if its revision has such a notification."""
        if not self.stateless:
            with anyio.move_on_after(NOTIFY_S):
                await self.session.send_notification(types.RootsListChangedNotification())

    async def _send(
        self,
        send: Callable[[ProgressFnT], Awaitable[T]],
        timeout_s: float,
        on_progress: Progress | None = None,
    ) -> T:
        """Send one request in a separate task, so that no caller waits for the notification of its cancellation."""
        if self._gone:
            raise ServerGoneError
        results: list[T] = []
        errors: list[Exception] = []
        done, scope = anyio.Event(), anyio.CancelScope()

        async def extend_deadline(progress: float, total: float | None, message: str | None) -> None:
            limit.deadline = anyio.current_time() + timeout_s
            if on_progress is not None:
                on_progress(progress, total, message)

        async def run() -> None:
            try:
                with scope:
                    results.append(await send(extend_deadline))
            except Exception as error:
                errors.append(self.public_error(error))
            finally:
                done.set()

        with anyio.move_on_after(timeout_s) as limit:
            self._waiting[done] = errors
            self._tasks.start_soon(run)
            try:
                await done.wait()
            finally:
                del self._waiting[done]
                scope.cancel()
        if results:
            return results[0]
        if errors:
            raise errors[0]
        raise CallTimeoutError if limit.cancelled_caught else ServerGoneError

    def public_error(self, error: Exception) -> Exception:
        """Return an error of the package as one of this module's."""
        match error:
            case MCPError() if error.code == types.CONNECTION_CLOSED and self._is_connection_loss(error.message):
                return ServerGoneError()
            case MCPError() if error.code == SESSION_LOST:
                return SessionLostError()
            case MCPError():
                return RefusedError(error.message, error.code)
            case ValidationError():
                return RefusedError("the server's response does not match the protocol")
            case anyio.ClosedResourceError() | anyio.BrokenResourceError():
                return ServerGoneError()
            case _:
                return error

    def _is_connection_loss(self, message: str) -> bool:
        """Return whether an error with the package's code for a lost connection was not sent by the server."""
        return self._ended.is_set() or message.startswith("SSE stream ")

    async def _with_input(
        self, request: types.ClientRequest | types.Request[Any, Any], asked: types.InputRequiredResult
    ) -> types.ClientRequest | types.Request[Any, Any]:
        """Return ``request`` with the input that the server has asked for.

        Raises:
            RefusedError: a callback refused to give the input.
        """
        found = await self.answers_to(asked.input_requests or {})
        if not found:
            await anyio.sleep(INPUT_DELAY_S)
        params = cast("InputParams", request.params)
        fresh = params.model_copy(update={"input_responses": found or None, "request_state": asked.request_state})
        return request.model_copy(update={"params": fresh})

    async def answers_to(self, asked: types.InputRequests) -> dict[str, Any]:
        """Return the answers to questions of the server, by their keys.

        Raises:
            RefusedError: a callback refused to give the input.
        """
        found: dict[str, Any] = {}
        refusals: list[types.ErrorData] = []

        async def answer(key: str, question: types.InputRequest) -> None:
            context = ClientRequestContext(session=self.session, request_id=key)
            value = await self.session.dispatch_input_request(context, question)
            if isinstance(value, types.ErrorData):
                refusals.append(value)
                tasks.cancel_scope.cancel()
            else:
                found[key] = value

        async with anyio.create_task_group() as tasks:
            for key, question in asked.items():
                tasks.start_soon(answer, key, question)
        if refusals:
            raise RefusedError(refusals[0].message, refusals[0].code)
        return found

    async def _answer(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Answer a request of the server, unless too many are open."""
        if self._server_requests >= MAX_SERVER_REQUESTS:
            return types.ErrorData(code=types.INVALID_REQUEST, message="too many open requests")
        self._server_requests += 1
        try:
            return await ask()
        finally:
            self._server_requests -= 1


_ADAPTERS: Final[dict[type[types.Result], TypeAdapter[Any]]] = {
    types.CallToolResult: TypeAdapter(types.InputRequiredResult | CreatedTask | types.CallToolResult),
    types.GetPromptResult: TypeAdapter(types.InputRequiredResult | types.GetPromptResult),
    types.ReadResourceResult: TypeAdapter(types.InputRequiredResult | types.ReadResourceResult),
}
"""The results of requests for which a server may ask for input, each with the result that does so."""


@asynccontextmanager
async def open_client(
    streams: Streams, callbacks: ServerCallbacks, ended: anyio.Event
) -> AsyncGenerator[McpClient, None]:
    """Open a client session over ``streams``; ``ended`` is set when the stream of the server's messages ends."""
    incoming, outgoing = streams
    forward, limited = anyio.create_memory_object_stream[Incoming]()

    async def pump() -> None:
        second, read = anyio.current_time(), 0
        try:
            with forward:
                async for message in incoming:
                    match message:
                        case SessionMessage(message=types.JSONRPCResponse(result=result)):
                            # A list of tools may have a mebibyte of schemas.
                            await anyio.to_thread.run_sync(repair_result, result)
                        case SessionMessage(message=types.JSONRPCError(id=None, error=error)):
                            client.refuse(error)
                        case ValidationError():
                            replies = (unreadable_reply(found["input"]) for found in message.errors())
                            reply = next((reply for reply in replies if reply is not None), None)
                            message = message if reply is None else SessionMessage(reply)
                        case _:
                            pass
                    await forward.send(message)
                    read += 1
                    if read >= MESSAGES_PER_S:
                        await anyio.sleep_until(second + 1.0)
                        second, read = anyio.current_time(), 0
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            ended.set()

    async with anyio.create_task_group() as tasks:
        client = McpClient((limited, outgoing), callbacks, tasks, ended)
        tasks.start_soon(pump)
        try:
            async with client.session:
                yield client
        finally:
            client.end()
            tasks.cancel_scope.cancel()
