"""One conversation with a server: the package's client session, and what it leaves to its user.

Calls may come from any task. They end when the server is gone, they can be cancelled and time out, and the server
is told; questions of the server are answered beside its other messages; and a server that floods us with messages
is read no faster than we can bear.
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
"""Messages that are read from a server in a second; the rest waits."""

QUESTIONS: Final = 16
"""Open questions of one server."""

PROTOCOL_LAG_S: Final = 1.0
"""How long telling a server that an answer is no longer wanted may take."""

R = TypeVar("R", bound=types.Result)


class ServerGoneError(Exception):
    """The connection to the server has ended."""


class CallTimeoutError(Exception):
    """The server has not answered in time."""


class RefusedError(Exception):
    """The server answered with an error; the text is its own."""


class Interests:
    """What a conversation needs of whoever has it. The functions must not raise."""

    def __init__(
        self,
        *,
        changed: Callable[[types.ServerNotification], None],
        sampling: Callable[[types.RequestId, types.CreateMessageRequestParams], Awaitable[Any]],
        elicitation: Callable[[types.ElicitRequestParams], Awaitable[Any]],
        roots: Callable[[], list[str]],
    ) -> None:
        self.changed = changed
        self.sampling = sampling
        self.elicitation = elicitation
        self.roots = roots


class McpClient(ClientSession):
    def __init__(self, streams: Streams, interests: Interests, tasks: TaskGroup) -> None:
        async def sampling(context: Any, params: types.CreateMessageRequestParams) -> Any:
            return await interests.sampling(context.request_id, params)

        async def elicitation(context: Any, params: types.ElicitRequestParams) -> Any:
            return await interests.elicitation(params)

        async def roots(context: Any) -> types.ListRootsResult:
            return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in interests.roots()]})

        async def incoming(message: Any) -> None:
            if isinstance(message, types.ServerNotification):
                interests.changed(message)

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
        self._questions = 0
        self._gone = False

    def end(self) -> None:
        """Let nobody wait any more."""
        self._gone = True
        for scope in list(self._waiting):
            scope.cancel()

    async def ask(
        self,
        request: types.ClientRequestType,
        result: type[R],
        *,
        timeout_s: float,
        on_news: Callable[[float, float | None, str | None], None] | None = None,
    ) -> R:
        """Send a request and wait. News of its progress begin the time anew.

        Raises:
            ServerGoneError: the server has gone.
            CallTimeoutError: it took too long; the server has been told.
            RefusedError: the server answered with an error, or with what is no answer.
        """
        if self._gone:
            raise ServerGoneError
        answered = False
        # The base class numbers its requests when they are sent, which is before it waits for anything.
        request_id = self._request_id
        with anyio.CancelScope() as gone, anyio.move_on_after(timeout_s) as limit:

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                limit.deadline = anyio.current_time() + timeout_s
                if on_news is not None:
                    on_news(progress, total, message)

            self._waiting.add(gone)
            try:
                answer = await self.send_request(
                    types.ClientRequest(request), result, progress_callback=on_progress
                )
                answered = True
                return answer
            except McpError as error:
                answered = True
                if error.error.code == types.CONNECTION_CLOSED:
                    raise ServerGoneError from None
                raise RefusedError(error.error.message) from None
            except ValidationError:
                answered = True
                raise RefusedError("the server answered in a form that could not be read") from None
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                answered = True
                raise ServerGoneError from None
            finally:
                self._waiting.discard(gone)
                if not (answered or self._gone):
                    self._tasks.start_soon(self._withdraw, request_id, request.method)
        if self._gone:
            raise ServerGoneError
        raise CallTimeoutError

    async def _withdraw(self, request_id: int, method: str) -> None:
        # Not to be withdrawn, says the specification.
        if method == "initialize":
            return
        params = types.CancelledNotificationParams(requestId=request_id, reason="no longer wanted")
        with anyio.move_on_after(PROTOCOL_LAG_S):
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await self.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))

    async def tell_roots(self) -> None:
        """Tell the server that its roots are others now."""
        with anyio.move_on_after(PROTOCOL_LAG_S):
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await self.send_roots_list_changed()

    async def _received_request(self, responder: RequestResponder[types.ServerRequest, types.ClientResult]) -> None:
        # The base class would read no other message until a person has answered.
        if not isinstance(responder.request.root, types.CreateMessageRequest | types.ElicitRequest):
            await super()._received_request(responder)
        elif self._questions >= QUESTIONS:
            with responder:
                await responder.respond(
                    types.ErrorData(code=types.INVALID_REQUEST, message="too many open questions")
                )  # pyright: ignore[reportArgumentType] - the package's own sessions answer so
        else:
            self._questions += 1
            self._tasks.start_soon(self._answer, responder)

    async def _answer(self, responder: RequestResponder[types.ServerRequest, types.ClientResult]) -> None:
        try:
            await super()._received_request(responder)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            self._questions -= 1


@asynccontextmanager
async def open_client(
    streams: Streams, interests: Interests, ended: anyio.Event
) -> AsyncGenerator[McpClient, None]:
    """A conversation over ``streams``. ``ended`` is set when the server says nothing any more."""
    incoming, outgoing = streams
    send_on, limited = anyio.create_memory_object_stream[Incoming]()

    async def pump() -> None:
        second, read = anyio.current_time(), 0
        try:
            with send_on:
                async for message in incoming:
                    await send_on.send(message)
                    read += 1
                    if read >= MESSAGES_PER_S:
                        await anyio.sleep_until(second + 1.0)
                        second, read = anyio.current_time(), 0
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            ended.set()

    async with anyio.create_task_group() as tasks:
        client = McpClient((limited, outgoing), interests, tasks)
        tasks.start_soon(pump)
        try:
            async with client:
                yield client
        finally:
            client.end()
            tasks.cancel_scope.cancel()


async def initialize(client: McpClient) -> types.InitializeResult:
    """Shake hands.

    Raises:
        ServerFailedError: the server speaks no version that we do, or refused.
        ServerGoneError: it is gone.
    """
    try:
        return await client.initialize()
    except McpError as error:
        if error.error.code == types.CONNECTION_CLOSED:
            raise ServerGoneError from None
        raise ServerFailedError(f"it refused the connection: {error.error.message}") from None
    except (ValidationError, RuntimeError) as error:
        reason = str(error) if isinstance(error, RuntimeError) else "its greeting could not be read"
        raise ServerFailedError(reason) from None
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        raise ServerGoneError from None
