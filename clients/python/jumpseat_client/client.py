"""The client: connections to servers, the server's own methods, and access to sessions."""

from __future__ import annotations

import os
import ssl
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, Unpack, cast

import anyio
from anyio.abc import AnyByteStream, TaskGroup
from pydantic import TypeAdapter, ValidationError

from jumpseat_client.connection import Broadcast, Connection, MessageTap, require_success
from jumpseat_client.errors import HandshakeError, JumpseatClientError, RpcError, ServerGoneError
from jumpseat_client.events import Event
from jumpseat_client.options import SessionSettings, to_params
from jumpseat_client.permissions import PermissionHandler
from jumpseat_client.process import ServerProcess, find_server
from jumpseat_client.responder import SessionResponder
from jumpseat_client.session import Session
from jumpseat_client.tools import AnyTool
from jumpseat_protocol.envelope import METHOD_NOT_FOUND
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.models import ModelsListResult
from jumpseat_protocol.server import ConnectResult, PingResult, StatusResult
from jumpseat_protocol.sessions import SessionIdResult, SessionListResult, SessionMetadata, SessionOpenedResult
from jumpseat_protocol.wire import WireModel, WireStruct

if TYPE_CHECKING:
    from jumpseat_protocol.complete import AnswerStream, CompleteOptions, CompleteParams, CompleteResult

R = TypeVar("R", bound=WireModel | WireStruct)
RequestHandler: TypeAlias = Callable[[Any], Awaitable[Any]]

HANDSHAKE_S = 30.0
"""Seconds for a server to start and answer ``connect``."""

SHUTDOWN_S = 5.0
"""Seconds for the server to answer ``runtime.shutdown``, which flushes everything first."""


class Notification(NamedTuple):
    """A notification from the server: ``session.event``, ``session.lifecycle`` and others."""

    method: str
    params: Any


@asynccontextmanager
async def connect_stdio(
    command: Sequence[str] | None = None,
    *,
    args: Sequence[str] = (),
    env: Mapping[str, str | None] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    on_message: MessageTap | None = None,
    start_new_session: bool = False,
    on_stderr: Callable[[bytes], None] | None = None,
) -> AsyncGenerator[Client]:
    """Start a server and connect to it. Leaving the context shuts the server down.

    ``command`` is the executable with leading arguments, by default the installed ``jumpseat``; ``args`` are more
    arguments. ``env`` updates our own environment, ``None`` removes a variable. With ``start_new_session`` the
    server does not receive the ctrl-c of our terminal. ``on_stderr`` is called with the server's stderr output.

    Raises:
        HandshakeError: the server could not be started, or did not answer as expected. The message has its
        stderr.
    """
    process = await ServerProcess.start(
        [*(command or find_server()), *args, "--headless", "--stdio"],
        env or {},
        cwd,
        start_new_session=start_new_session,
        on_stderr=on_stderr,
    )
    try:
        async with _open(process.stream, token=None, on_message=on_message, process=process) as client:
            yield client
    finally:
        await process.close()


@asynccontextmanager
async def connect_tcp(
    host: str,
    port: int,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | bool = False,
    on_message: MessageTap | None = None,
) -> AsyncGenerator[Client]:
    """Connect to a running server. Leaving the context leaves the server running.

    ``tls`` requires TLS: ``True`` trusts the system's certificate authorities. For a certificate authority of your
    own, pass ``ssl.create_default_context(cafile="ca.pem")``.

    Raises:
        HandshakeError: the connection was refused, the server's certificate is not trusted, or the token is wrong.
    """
    stream: AnyByteStream
    try:
        if tls is False:
            stream = await anyio.connect_tcp(host, port)
        else:
            context = ssl.create_default_context() if tls is True else tls
            stream = await anyio.connect_tcp(host, port, ssl_context=context, tls_standard_compatible=False)
    except (OSError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
        raise HandshakeError(f"could not connect to {host}:{port}: {_reason(error)}") from error
    async with stream, open_client(stream, token=token, on_message=on_message) as client:
        yield client


def _reason(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "RECORD_LAYER_FAILURE"):
            return "the server does not speak TLS"
        case _:
            return str(error) or "the server ended the connection during the TLS handshake"


@asynccontextmanager
async def open_client(
    stream: AnyByteStream, *, token: str | None = None, on_message: MessageTap | None = None
) -> AsyncGenerator[Client]:
    """Connect over a stream that is already open. The caller closes the stream.

    Raises:
        HandshakeError: the token is wrong, or the server did not answer as expected.
    """
    async with _open(stream, token=token, on_message=on_message, process=None) as client:
        yield client


@asynccontextmanager
async def _open(
    stream: AnyByteStream, *, token: str | None, on_message: MessageTap | None, process: ServerProcess | None
) -> AsyncGenerator[Client]:
    """Run the client's task group from the handshake to the orderly end, and end ``process`` with it."""
    with _unwrap_single_error():
        async with anyio.create_task_group() as tasks:
            connection = Connection(stream, tasks, on_message)
            client = Client(connection, tasks)
            if process is not None:
                tasks.start_soon(process.read_stderr)
            tasks.start_soon(connection.read, client, process.explain_end if process else _closed)
            tasks.start_soon(connection.write)
            try:
                try:
                    await client.handshake(token)
                except HandshakeError as error:
                    if process is None or process.refusal is None:
                        raise
                    raise HandshakeError(f"the server could not start: {process.refusal}") from error
                yield client
            finally:
                # Each step has a time limit, so a server cannot delay a cancelled program for long.
                with anyio.CancelScope(shield=True):
                    if process is not None:
                        await client.shut_down()
                    await connection.finish()
                    if process is not None:
                        await process.end()
                tasks.cancel_scope.cancel()


async def _closed() -> str:
    return "the server closed the connection"


@contextmanager
def _unwrap_single_error() -> Generator[None]:
    """Raise a single error of the body unwrapped, not inside the exception group of our tasks."""
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        error = group.exceptions[0]
        raise error from error.__cause__


class Client:
    """A connection to a server, made by :func:`connect_stdio`, :func:`connect_tcp` or :func:`open_client`.

    Attributes:
        server_version: the version that the server reported.
    """

    def __init__(self, connection: Connection, tasks: TaskGroup) -> None:
        self.server_version = ""
        self._connection = connection
        self._tasks = tasks
        self._responders: dict[str, SessionResponder] = {}
        self._handlers: dict[str, RequestHandler] = {}
        # The receivers of streamed answers by their stream ids.
        self._answers: dict[str, Callable[[dict[str, Any]], None]] = {}
        self._notifications = Broadcast[Notification]()

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Call any method of the protocol. Parameters and result are plain JSON values.

        Raises:
            RpcError: the server answered with an error.
            ServerGoneError: the connection is down or went down meanwhile.
        """
        return await self._connection.request(method, params or {})

    def notifications(self) -> AbstractAsyncContextManager[AsyncIterator[Notification]]:
        """Iterate over all notifications from now on: an async context manager that yields an iterator."""
        return self._notifications.listen()

    def on_request(self, method: str, handler: RequestHandler) -> None:
        """Handle the server's requests of one method, such as ``hooks.invoke``.

        ``handler`` is ``async def handler(params) -> result``, with JSON values; an :class:`RpcError` that it
        raises is the response. Requests without a handler are answered with the error -32601. Handlers run
        concurrently.
        """
        self._handlers[method] = handler

    # --- the server ---------------------------------------------------------------------------------------------

    async def ping(self, message: str | None = None) -> PingResult:
        """Check that the server responds."""
        return await self._call("ping", to_params({"message": message}), PingResult)

    async def status(self) -> StatusResult:
        """Return the versions of the server and its protocol."""
        return await self._call("status.get", {}, StatusResult)

    async def models(self) -> list[dict[str, Any]]:
        """Return the models of all configured providers: ``{id, name, capabilities: {supports, limits}, ...}``."""
        return (await self._call("models.list", {}, ModelsListResult)).models

    # --- model calls without a session --------------------------------------------------------------------------

    async def complete(
        self, params: CompleteParams | None = None, /, **options: Unpack[CompleteOptions]
    ) -> CompleteResult:
        """Call a model once and return its answer. ``options`` take precedence over ``params``.

        Raises:
            RpcError: the request cannot be carried out as asked, or the call failed.
        """
        from jumpseat_client.completion import complete

        return await complete(self._connection, params, options)

    def stream(
        self, params: CompleteParams | None = None, /, **options: Unpack[CompleteOptions]
    ) -> AbstractAsyncContextManager[AnswerStream]:
        """Call a model once and stream its answer: ``async with client.stream(...) as answer: async for event ...``

        Leaving the context ends the call. The whole answer is in ``answer.result`` when the iteration has ended.

        Raises:
            RpcError: as :meth:`complete`; raised by the iteration.
        """
        from jumpseat_client.completion import stream

        return stream(self._connection, self._answers, params, options)

    # --- sessions -----------------------------------------------------------------------------------------------

    async def create_session(
        self,
        *,
        session_id: str | None = None,
        tools: Sequence[AnyTool] = (),
        on_permission: PermissionHandler | None = None,
        on_event: Callable[[Event], None] | None = None,
        **settings: Unpack[SessionSettings],
    ) -> Session:
        """Create a session. Without ``on_permission``, tools that need permission are denied.

        ``on_event`` is called synchronously with every event, from the first on. An exception in it ends the
        client.
        """
        session_id = session_id or str(uuid.uuid4())
        return await self._open_session("session.create", session_id, {}, tools, on_permission, on_event, settings)

    async def resume_session(
        self,
        session_id: str,
        *,
        continue_pending_work: bool = False,
        take_over: bool = False,
        tools: Sequence[AnyTool] = (),
        on_permission: PermissionHandler | None = None,
        on_event: Callable[[Event], None] | None = None,
        **settings: Unpack[SessionSettings],
    ) -> Session:
        """Resume a session, live or from disk. ``settings`` replace its stored ones; keys are never stored.

        An earlier handle of this client on the session is closed. ``continue_pending_work`` keeps unanswered
        permission requests and tool calls open. ``take_over`` aborts a prompt that the session runs in another
        server process; without it, such a session is not resumed.

        Raises:
            RpcError: there is no such session, or another process does not give it up (code -32006).
        """
        params = {"continuePendingWork": continue_pending_work, "takeOver": take_over}
        return await self._open_session(
            "session.resume", session_id, params, tools, on_permission, on_event, settings
        )

    async def list_sessions(self) -> list[SessionMetadata]:
        """Return the stored sessions, the latest first."""
        return (await self._call("session.list", {}, SessionListResult)).sessions

    async def last_session_id(self) -> str | None:
        """Return the id of the session used last, or ``None`` if no session is stored."""
        return (await self._call("session.getLastId", {}, SessionIdResult)).session_id

    async def delete_session(self, session_id: str) -> None:
        """Delete a session and everything stored for it.

        Raises:
            JumpseatClientError: there is no such session.
        """
        answer = await self.request("session.delete", {"sessionId": session_id})
        require_success(answer, f"delete session {session_id!r}")
        if session_id in self._responders:
            self._responders.pop(session_id).session.close()

    async def _open_session(
        self,
        method: str,
        session_id: str,
        params: dict[str, Any],
        tools: Sequence[AnyTool],
        on_permission: PermissionHandler | None,
        on_event: Callable[[Event], None] | None,
        settings: Mapping[str, Any],
    ) -> Session:
        session = Session(self._connection, session_id, on_event=on_event, on_detached=self._forget)
        responder = SessionResponder(session, self._tasks, tools=tools, on_permission=on_permission)
        params |= {
            "sessionId": session_id,
            "tools": [tool.definition() for tool in tools],
            "requestPermission": on_permission is not None,
        } | to_params(settings)
        # Registered before the request, because the first events arrive before its response.
        before = self._responders.get(session_id)
        self._responders[session_id] = responder
        try:
            opened = await self._call(method, params, SessionOpenedResult)
        except BaseException:
            session.close()
            if before is not None:
                self._responders[session_id] = before
            else:
                del self._responders[session_id]
            raise
        session.workspace_path = opened.workspace_path
        if before is not None:
            before.session.close()
        return session

    def _forget(self, session: Session) -> None:
        # Keep a newer handle on the same session.
        responder = self._responders.get(session.id)
        if responder is not None and responder.session is session:
            del self._responders[session.id]

    async def _call(self, method: str, params: Mapping[str, Any], result: type[R]) -> R:
        answer = await self.request(method, params)
        try:
            return TypeAdapter(result).validate_python(answer)
        except ValidationError as error:
            raise JumpseatClientError(f"invalid response to {method}: {error}") from error

    # --- called by the functions above and the connection -------------------------------------------------------

    async def handshake(self, token: str | None) -> None:
        """Send ``connect`` and check the protocol version.

        Raises:
            HandshakeError: the server did not answer as expected.
        """
        try:
            with anyio.fail_after(HANDSHAKE_S):
                answer = await self._call("connect", to_params({"token": token}), ConnectResult)
        except JumpseatClientError as error:
            raise HandshakeError(f"could not connect: {error}") from error
        except TimeoutError:
            raise HandshakeError(f"could not connect: no response within {HANDSHAKE_S:.0f} s") from None
        if answer.protocol_version != PROTOCOL_VERSION:
            raise HandshakeError(
                f"the server has protocol version {answer.protocol_version}, expected {PROTOCOL_VERSION}"
            )
        self.server_version = answer.version

    async def shut_down(self) -> None:
        """Tell the server to flush and stop; ignore errors and time-outs."""
        try:
            with anyio.move_on_after(SHUTDOWN_S):
                await self.request("runtime.shutdown")
        except (RpcError, ServerGoneError):
            return

    def on_notification(self, method: str, params: Any) -> None:
        self._notifications.publish(Notification(method, params))
        if not isinstance(params, dict):
            return
        details = cast("dict[str, Any]", params)
        if method == "session.event":
            responder = self._responders.get(str(details.get("sessionId")))
            if responder is not None:
                event = Event.decode(details.get("event") or {})
                responder.session.publish(event)
                responder.handle(event)
        elif method == "jumpseat.complete.event" and (receive := self._answers.get(str(details.get("streamId")))):
            receive(details)

    async def handle_request(self, method: str, params: Any) -> Any:
        handler = self._handlers.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")
        return await handler(params)

    def on_end(self, reason: str) -> None:
        self._notifications.close(reason)
        for responder in self._responders.values():
            responder.session.close(reason)
