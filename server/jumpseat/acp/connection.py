"""The connection of one editor: its transport, its JSON-RPC, and the client that its sessions see."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar, cast

import anyio
import orjson
from anyio.abc import TaskGroup

from jumpseat import errors
from jumpseat.acp.client import EditorClient
from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.routes import find_notification, find_route
from jumpseat.acp.v1_routes import NOTIFICATIONS, REQUESTS
from jumpseat.parsing.json_text import read_json
from jumpseat.rpc import wire_errors
from jumpseat.rpc.connection import FIRST_MESSAGE_BYTES, FIRST_UNREAD_BYTES
from jumpseat.rpc.json_rpc_peer import Dialect, JsonRpcPeer
from jumpseat.rpc.transport import LINES, Framing, Wire
from jumpseat.sessions.access import EVERYTHING, Access
from jumpseat.sessions.context import Context
from jumpseat.system.log_fields import fields
from jumpseat_protocol.envelope import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_BODY_BYTES,
    METHOD_NOT_FOUND,
    ErrorObject,
    FramingError,
)
from jumpseat_protocol.members import nearest
from jumpseat_protocol.methods import ALIKE, PROTOCOL_VERSION
from jumpseat_protocol.wire import WireModel

log = logging.getLogger(__name__)

R = TypeVar("R", bound=WireModel)

AUTH_REQUIRED: Final = -32000
RESOURCE_NOT_FOUND: Final = -32002

CODES: Final[Mapping[type[errors.JumpseatError], int]] = {
    errors.SessionNotFoundError: RESOURCE_NOT_FOUND,
    errors.InvalidRequestError: INVALID_PARAMS,
    errors.UnsupportedError: METHOD_NOT_FOUND,
    errors.AuthenticationRequiredError: AUTH_REQUIRED,
    errors.ProviderAuthError: AUTH_REQUIRED,
}


def error_of(exc: Exception) -> ErrorObject:
    """Return the error of the response for ``exc``, without ``data``: some editors expect a string there."""
    if isinstance(exc, errors.JumpseatError):
        code = next((CODES[cls] for cls in type(exc).__mro__ if cls in CODES), INTERNAL_ERROR)
        return ErrorObject(code=code, message=str(exc))
    return wire_errors.error_of(exc)


def token_of(params: Any) -> str | None:
    """Return the connection token in the params of ``initialize``: ``_meta.jumpseat.token``."""
    for name in ("_meta", "jumpseat", "token"):
        params = cast("dict[str, Any]", params).get(name) if isinstance(params, dict) else None
    return params if isinstance(params, str) else None


def _is_request(body: bytes) -> bool:
    try:
        message = read_json(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(message, dict) and {"jsonrpc", "id", "method"} <= cast("dict[str, Any]", message).keys()


ACP: Final = Dialect(
    "$/cancel_request", "requestId", error_of, NOTIFICATIONS.keys(), lambda name: nearest(name, REQUESTS, ALIKE)
)


async def _wait_for(stopped: Awaitable[None]) -> None:
    await stopped


class Elsewhere(Protocol):
    """The sessions of a cluster. See :class:`jumpseat.acp.replicas.relay.Relay`."""

    def find(self, method: str, /) -> Callable[[Any], Any] | None: ...

    def stop_prompts(self) -> None: ...

    def close(self) -> None: ...


class AcpConnection(EditorClient):
    """An editor on the other end of a transport.

    ``access`` is ``None`` for a client over TCP that has to present a token with ``initialize``: see
    :func:`token_of`. ``peer`` is the address of a client over a network, whose sessions go on without it. Until its
    first valid request, the limits of :class:`jumpseat.rpc.connection.Connection` apply.
    """

    def __init__(
        self,
        on_close: Callable[[AcpConnection], None],
        tasks: TaskGroup,
        mask: Callable[[str], str],
        *,
        access: Access | None = EVERYTHING,
        framing: Framing = LINES,
        peer: str | None = None,
    ) -> None:
        super().__init__(access, PROTOCOL_VERSION, tasks)
        self.handshake_done = True
        self.admitted = False
        self._settled = anyio.Event()
        self._peer = peer
        self._on_close = on_close
        self.wire = Wire(self._body, self._framing_error, self._handle_close, framing, on_end=self.handle_end)
        if peer is not None:
            self.wire.limit(FIRST_MESSAGE_BYTES, FIRST_UNREAD_BYTES)
        self.peer = JsonRpcPeer(self.wire.send, tasks, mask, ACP, label=lambda: self.label)
        self._elsewhere: Elsewhere | None = None
        if framing is not LINES:
            # Over HTTP, the token was checked before.
            self.admit()

    def serve(self, ctx: Context, reach: Callable[[AcpContext], Elsewhere] | None = None) -> None:
        """Serve the methods of ACP. In a cluster, ``reach`` returns the way to the owners of sessions."""
        acp = self.begin(ctx)
        elsewhere = self._elsewhere = reach(acp) if reach is not None else None

        def find(method: str) -> Callable[[Any], Any] | None:
            serve = find_route(acp, method) or find_notification(acp, method)
            if serve is not None and elsewhere is not None:
                serve = elsewhere.find(method) or serve
            return None if serve is None else lambda params: serve(self._checked(ctx, method, params))

        self.peer.find = find

    def _checked(self, ctx: Context, method: str, params: Any) -> Any:
        """Return the params of a request, after its first one has been checked.

        Raises:
            AuthenticationRequiredError: the client has presented no valid token.
        """
        if self.admitted:
            return params
        if self.access is None and method == "initialize":
            self.access = ctx.process.gate.access_of(token_of(params))
            if self.access is None:
                log.warning("refused an editor: wrong or missing connection token", extra=fields(client=self.label))
        if self.access is None:
            raise errors.AuthenticationRequiredError(
                "wrong or missing connection token: expected it in initialize, as _meta.jumpseat.token"
            )
        self.admit()
        return params

    async def ask(self, method: str, params: dict[str, Any], result: type[R]) -> R:
        """See :class:`jumpseat.acp.editor.editor.EditorConnection`."""
        return self._read(method, await self.peer.ask(method, params), result)

    def admit(self) -> None:
        """Lift the limits that apply until the first valid request."""
        if self.admitted:
            return
        self.admitted = True
        self._settled.set()
        if self._peer is not None:
            self.wire.limit(MAX_BODY_BYTES)
            log.info("client connected", extra=fields(client=self.label))

    async def wait_until_settled(self) -> None:
        """See :class:`jumpseat.network.listener.Newcomer`."""
        await self._settled.wait()

    def announce(self, params: dict[str, Any], created_by: str | None) -> None:
        """Do nothing: editors request the list of sessions."""

    def handle_end(self) -> None:
        """Answer the requests that were read; a client over a network may come back, and its sessions go on."""
        if self._peer is None:
            super().handle_end()
        else:
            self.wire.close()

    def stop_prompts(self) -> None:
        """Cancel the prompts of all sessions, which get their responses."""
        if self._elsewhere is not None:
            self._elsewhere.stop_prompts()
        for view in list(self.context.views.values()) if self.context is not None else ():
            with suppress(errors.SessionInUseError, errors.SessionNotFoundError):
                self.tasks.start_soon(_wait_for, view.cancel())

    @property
    def label(self) -> str:
        """The name of the connection in the log: that of its token, with the address of a client over a network."""
        name = self.access.name if self.access is not None else None
        return " ".join(filter(None, (name, self._peer))) or "editor"

    # --- the transport ------------------------------------------------------------------------------------------

    def _body(self, body: bytes) -> None:
        if self._peer is not None and not self.admitted and not _is_request(body):
            self._reject("not a request of JSON-RPC")
        else:
            self.peer.receive(body)

    def _framing_error(self, error: FramingError) -> None:
        if self._peer is not None and not self.admitted:
            self._reject(error.message)
        else:
            self.peer.refuse(INVALID_REQUEST, error.message)

    def _reject(self, why: str) -> None:
        """End the connection of something that is no client."""
        log.warning("closed the connection of %s: %s", self._peer, why)
        self.abort()

    def _handle_close(self) -> None:
        if self.admitted and self._peer is not None:
            log.info("client disconnected", extra=fields(client=self.label))
        self._settled.set()
        self.peer.close()
        if self._elsewhere is not None:
            self._elsewhere.close()
        self._on_close(self)
