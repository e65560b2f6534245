"""The MCP client of one connection: the package's client session, with cancellation, time-outs and limits.

Requests may be sent from any task. They end when the server is gone, can be cancelled and time out, and the server
is notified of that. Requests of the server are answered concurrently with its other messages, and messages of the
server are read at a limited rate.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import anyio
import mcp.types as types
from anyio.abc import TaskGroup
from mcp.client.session import ClientSession
from mcp.shared.exceptions import McpError
from mcp.shared.session import RequestResponder
from pydantic import ValidationError

from jumpseat.mcp.stdio import Incoming, ServerFailedError, Streams
from jumpseat_protocol.version import __version__

log = logging.getLogger(__name__)

MESSAGES_PER_S: Final = 500
"""Limit on the messages that are read from a server per second."""

MAX_SERVER_REQUESTS: Final = 16
"""Limit on the open sampling and elicitation requests of one server."""

NOTIFY_S: Final = 1.0
"""Time-out of sending a notification to a server."""

R = TypeVar("R", bound=types.Result)


class ServerGoneError(Exception):
    """The connection to the server has ended."""


class CallTimeoutError(Exception):
    """The server has not responded in time."""


class RefusedError(Exception):
    """The server responded with an error; the text is the server's."""


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


class McpClient(ClientSession):
    """A client session whose requests end with the connection, time out, and are cancelled at the server."""

    def __init__(self, streams: Streams, callbacks: ServerCallbacks, tasks: TaskGroup) -> None:
        async def sampling(context: Any, params: types.CreateMessageRequestParams) -> Any:
            return await callbacks.sampling(context.request_id, params)

        async def elicitation(context: Any, params: types.ElicitRequestParams) -> Any:
            return await callbacks.elicitation(params)

        async def roots(context: Any) -> types.ListRootsResult:
            return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in callbacks.roots()]})

        async def incoming(message: Any) -> None:
            if isinstance(message, types.ServerNotification):
                callbacks.notified(message)

        super().__init__(
            *streams,
            sampling_callback=sampling,
            elicitation_callback=elicitation,
            list_roots_callback=roots,
            message_handler=incoming,
            client_info=types.Implementation(name="jumpseat", version=__version__),
        )
        self._tasks = tasks
        self._waiting: set[anyio.CancelScope] = set()
        self._server_requests = 0
        self._gone = False

    def end(self) -> None:
        """End all waiting requests with :class:`ServerGoneError`."""
        self._gone = True
        for scope in list(self._waiting):
            scope.cancel()

    async def ask(
        self,
        request: types.ClientRequestType,
        result: type[R],
        *,
        timeout_s: float,
        on_progress: Callable[[float, float | None, str | None], None] | None = None,
    ) -> R:
        """Send a request and wait for its result; each progress notification restarts the time-out.

        Raises:
            ServerGoneError: the connection has ended.
            CallTimeoutError: the request timed out; the server has been notified.
            RefusedError: the server responded with an error, or with a result of another form.
        """
        if self._gone:
            raise ServerGoneError
        answered = False
        # The base class assigns this id when the request is sent, before its first await.
        request_id = self._request_id
        with anyio.CancelScope() as gone, anyio.move_on_after(timeout_s) as limit:

            async def progressed(progress: float, total: float | None, message: str | None) -> None:
                limit.deadline = anyio.current_time() + timeout_s
                if on_progress is not None:
                    on_progress(progress, total, message)

            self._waiting.add(gone)
            try:
                answer = await self.send_request(types.ClientRequest(request), result, progress_callback=progressed)
                answered = True
                return answer
            except McpError as error:
                answered = True
                if error.error.code == types.CONNECTION_CLOSED:
                    raise ServerGoneError from None
                raise RefusedError(error.error.message) from None
            except ValidationError:
                answered = True
                raise RefusedError("the server's response does not match the protocol") from None
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                answered = True
                raise ServerGoneError from None
            finally:
                self._waiting.discard(gone)
                if not (answered or self._gone):
                    self._tasks.start_soon(self._cancel_request, request_id, request.method)
        if self._gone:
            raise ServerGoneError
        raise CallTimeoutError

    async def _cancel_request(self, request_id: int, method: str) -> None:
        # The specification forbids cancelling this request.
        if method == "initialize":
            return
        params = types.CancelledNotificationParams(requestId=request_id, reason="the request was cancelled")
        with anyio.move_on_after(NOTIFY_S):
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await self.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))

    async def notify_roots_changed(self) -> None:
        """Notify the server that the list of roots has changed."""
        with anyio.move_on_after(NOTIFY_S):
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await self.send_roots_list_changed()

    async def _received_request(self, responder: RequestResponder[types.ServerRequest, types.ClientResult]) -> None:
        # The base class reads no other message until its callback has returned, and a person may be asked here.
        if not isinstance(responder.request.root, types.CreateMessageRequest | types.ElicitRequest):
            await super()._received_request(responder)
        elif self._server_requests >= MAX_SERVER_REQUESTS:
            with responder:
                await responder.respond(
                    types.ErrorData(code=types.INVALID_REQUEST, message="too many open requests")
                )  # pyright: ignore[reportArgumentType] - the package's own sessions respond so
        else:
            self._server_requests += 1
            self._tasks.start_soon(self._respond, responder)

    async def _respond(self, responder: RequestResponder[types.ServerRequest, types.ClientResult]) -> None:
        try:
            await super()._received_request(responder)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            self._server_requests -= 1


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
        client = McpClient((limited, outgoing), callbacks, tasks)
        tasks.start_soon(pump)
        try:
            async with client:
                yield client
        finally:
            client.end()
            tasks.cancel_scope.cancel()


async def initialize(client: McpClient) -> types.InitializeResult:
    """Send the ``initialize`` request and return its result.

    Raises:
        ServerFailedError: the server refused, or supports no protocol version that we support.
        ServerGoneError: the connection has ended.
    """
    try:
        return await client.initialize()
    except McpError as error:
        if error.error.code == types.CONNECTION_CLOSED:
            raise ServerGoneError from None
        raise ServerFailedError(f"the server refused the connection: {error.error.message}") from None
    except (ValidationError, RuntimeError) as error:
        reason = str(error) if isinstance(error, RuntimeError) else "invalid response to 'initialize'"
        raise ServerFailedError(reason) from None
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        raise ServerGoneError from None
