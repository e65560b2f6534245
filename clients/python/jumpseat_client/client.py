"""The client: connecting to a server, methods of the server itself, and the way to its sessions."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, NamedTuple, TypeAlias, TypeVar, Unpack, cast

import anyio
from anyio.abc import AnyByteStream, TaskGroup
from pydantic import ValidationError

from jumpseat_client.connection import Broadcast, Connection, MessageTap, expect
from jumpseat_client.errors import HandshakeError, JumpseatClientError, RpcError, ServerGoneError
from jumpseat_client.permissions import PermissionHandler
from jumpseat_client.process import ServerProcess, find_server
from jumpseat_client.session import Event, Session, SessionSettings, to_params
from jumpseat_client.tools import AnyTool
from jumpseat_protocol.envelope import METHOD_NOT_FOUND
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.models import ModelsListResult
from jumpseat_protocol.server import ConnectResult, PingResult, StatusResult
from jumpseat_protocol.sessions import SessionIdResult, SessionListResult, SessionMetadata, SessionOpenedResult
from jumpseat_protocol.wire import WireModel

M = TypeVar("M", bound=WireModel)
RequestHandler: TypeAlias = Callable[[Any], Awaitable[Any]]

HANDSHAKE_S = 30.0
"""How long a server gets to start and answer ``connect``."""

SHUTDOWN_S = 5.0
"""How long the server gets to answer ``runtime.shutdown``: it flushes everything first."""


class Notification(NamedTuple):
    """What the server tells without being asked: ``session.event``, ``session.lifecycle`` and others."""

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
) -> AsyncGenerator[Client]:
    """Start a server and connect to it; leaving the context shuts it down.

    ``command`` is the executable with leading arguments, by default the installed ``jumpseat``; ``args`` are more
    arguments. ``env`` is laid over our own environment, ``None`` removes a variable. With ``start_new_session`` the
    ctrl-c of a terminal reaches us alone.

    Raises:
        HandshakeError: it could not be started, or did not answer as expected. The text holds its stderr.
    """
    process = await ServerProcess.start(
        [*(command or find_server()), *args, "--headless", "--stdio"],
        env or {},
        cwd,
        start_new_session=start_new_session,
    )
    try:
        async with _open(process.stream, token=None, on_message=on_message, process=process) as client:
            yield client
    finally:
        await process.close()


@asynccontextmanager
async def connect_tcp(
    host: str, port: int, *, token: str | None = None, on_message: MessageTap | None = None
) -> AsyncGenerator[Client]:
    """Connect to a running server; leaving the context leaves it running.

    Raises:
        HandshakeError: nobody listens there, or the token is wrong.
    """
    try:
        stream = await anyio.connect_tcp(host, port)
    except OSError as error:
        raise HandshakeError(f"could not connect to {host}:{port}: {error}") from error
    async with stream, open_client(stream, token=token, on_message=on_message) as client:
        yield client


@asynccontextmanager
async def open_client(
    stream: AnyByteStream, *, token: str | None = None, on_message: MessageTap | None = None
) -> AsyncGenerator[Client]:
    """Speak to a server over a stream that is already open, and that the caller closes."""
    async with _open(stream, token=token, on_message=on_message, process=None) as client:
        yield client


@asynccontextmanager
async def _open(
    stream: AnyByteStream, *, token: str | None, on_message: MessageTap | None, process: ServerProcess | None
) -> AsyncGenerator[Client]:
    """The client's task group, from the handshake to the orderly end. ``process`` is ended with it."""
    with _without_group():
        async with anyio.create_task_group() as tasks:
            connection = Connection(stream, tasks, on_message)
            client = Client(connection, tasks)
            if process is not None:
                tasks.start_soon(process.read_stderr)
            tasks.start_soon(connection.read, client, process.explain_end if process else _closed)
            tasks.start_soon(connection.write)
            try:
                await client.handshake(token)
                yield client
            finally:
                # Everything in here is bounded, so that a server cannot hold up a cancelled program.
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
def _without_group() -> Generator[None]:
    """Let an error of the caller's body out as it is, not wrapped in the group of our own tasks."""
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        error = group.exceptions[0]
        raise error from error.__cause__


class Client:
    """A connection to a server. Made by :func:`connect_stdio` and :func:`connect_tcp`, not by hand.

    Attributes:
        server_version: the version that the server states.
    """

    def __init__(self, connection: Connection, tasks: TaskGroup) -> None:
        self.server_version = ""
        self._connection = connection
        self._tasks = tasks
        self._sessions: dict[str, Session] = {}
        self._handlers: dict[str, RequestHandler] = {}
        self._notifications = Broadcast[Notification]()

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Call any method of the protocol; parameters and result are plain JSON values.

        Raises:
            RpcError: the server answered with an error.
            ServerGoneError: there is no server any more.
        """
        return await self._connection.request(method, params or {})

    def notifications(self) -> AbstractAsyncContextManager[AsyncIterator[Notification]]:
        """All notifications from now on, as they come: an async context manager that gives an iterator."""
        return self._notifications.listen()

    def on_request(self, method: str, handler: RequestHandler) -> None:
        """Answer requests of the server, ``hooks.invoke`` say: ``async def handler(params) -> JSON value``.

        Methods without a handler are answered with -32601. Requests run concurrently.
        """
        self._handlers[method] = handler

    # --- the server ---------------------------------------------------------------------------------------------

    async def ping(self, message: str | None = None) -> PingResult:
        return await self._call("ping", to_params({"message": message}), PingResult)

    async def status(self) -> StatusResult:
        return await self._call("status.get", {}, StatusResult)

    async def models(self) -> list[dict[str, Any]]:
        """The models of all configured providers: ``{id, name, capabilities: {supports, limits}, ...}``."""
        return (await self._call("models.list", {}, ModelsListResult)).models

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
        """Start a session. Without ``on_permission`` gated tools are denied.

        ``on_event`` is called in place with every event, from the very first; an error in it ends the client.
        """
        session_id = session_id or str(uuid.uuid4())
        return await self._open_session("session.create", session_id, {}, tools, on_permission, on_event, settings)

    async def resume_session(
        self,
        session_id: str,
        *,
        continue_pending_work: bool = False,
        tools: Sequence[AnyTool] = (),
        on_permission: PermissionHandler | None = None,
        on_event: Callable[[Event], None] | None = None,
        **settings: Unpack[SessionSettings],
    ) -> Session:
        """Go on with a session, live or from disk. Settings replace those it had; keys are never stored.

        A handle that this client had on the session before ends. ``continue_pending_work`` keeps permission
        requests and tool calls open that nobody answered.
        """
        params = {"continuePendingWork": continue_pending_work}
        return await self._open_session(
            "session.resume", session_id, params, tools, on_permission, on_event, settings
        )

    async def list_sessions(self) -> list[SessionMetadata]:
        return (await self._call("session.list", {}, SessionListResult)).sessions

    async def last_session_id(self) -> str | None:
        """The session used last, or ``None`` in an empty home."""
        return (await self._call("session.getLastId", {}, SessionIdResult)).session_id

    async def delete_session(self, session_id: str) -> None:
        """Delete a session with everything that is stored of it.

        Raises:
            JumpseatClientError: there is no such session.
        """
        answer = await self.request("session.delete", {"sessionId": session_id})
        expect(answer, f"delete session {session_id!r}")
        if session_id in self._sessions:
            self._sessions.pop(session_id).close()

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
        session = Session(
            self._connection,
            self._tasks,
            session_id,
            tools=tools,
            on_permission=on_permission,
            on_event=on_event,
            on_detached=self._forget,
        )
        params |= {
            "sessionId": session_id,
            "tools": [tool.definition() for tool in tools],
            "requestPermission": on_permission is not None,
        } | to_params(settings)
        # Known before the request: the first events come before its answer.
        before = self._sessions.get(session_id)
        self._sessions[session_id] = session
        try:
            opened = await self._call(method, params, SessionOpenedResult)
        except BaseException:
            session.close()
            if before is not None:
                self._sessions[session_id] = before
            else:
                del self._sessions[session_id]
            raise
        session.workspace_path = opened.workspace_path
        if before is not None:
            before.close()
        return session

    def _forget(self, session: Session) -> None:
        # A newer handle on the same session stays.
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]

    async def _call(self, method: str, params: Mapping[str, Any], result: type[M]) -> M:
        answer = await self.request(method, params)
        try:
            return result.model_validate(answer)
        except ValidationError as error:
            raise JumpseatClientError(f"the answer to {method} is not what the protocol says: {error}") from error

    # --- for the functions above and the connection -------------------------------------------------------------

    async def handshake(self, token: str | None) -> None:
        try:
            with anyio.fail_after(HANDSHAKE_S):
                answer = await self._call("connect", to_params({"token": token}), ConnectResult)
        except JumpseatClientError as error:
            raise HandshakeError(f"no connection: {error}") from error
        except TimeoutError:
            raise HandshakeError(f"no connection: no answer within {HANDSHAKE_S:.0f} s") from None
        if answer.protocol_version != PROTOCOL_VERSION:
            raise HandshakeError(
                f"the server speaks protocol {answer.protocol_version}, expected {PROTOCOL_VERSION}"
            )
        self.server_version = answer.version

    async def shut_down(self) -> None:
        """Ask the server to flush and stop; give up quietly where it cannot."""
        try:
            with anyio.move_on_after(SHUTDOWN_S):
                await self.request("runtime.shutdown")
        except (RpcError, ServerGoneError):
            return

    def notified(self, method: str, params: Any) -> None:
        self._notifications.publish(Notification(method, params))
        if method == "session.event" and isinstance(params, dict):
            details = cast("dict[str, Any]", params)
            session = self._sessions.get(str(details.get("sessionId")))
            if session is not None:
                session.receive(details.get("event") or {})

    async def requested(self, method: str, params: Any) -> Any:
        handler = self._handlers.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")
        return await handler(params)

    def ended(self, reason: str) -> None:
        self._notifications.close(reason)
        for session in self._sessions.values():
            session.close(reason)
