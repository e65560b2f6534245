"""The connection of one editor: its transport, its JSON-RPC, and the client that its sessions see."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from anyio.abc import TaskGroup

from jumpseat import errors
from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.editor.editor import Editor
from jumpseat.acp.editor.mcp_servers import EditorMcp
from jumpseat.acp.editor.questions import ask_about_auto_mode, ask_about_plan, ask_user
from jumpseat.acp.routes import find_notification, find_route
from jumpseat.acp.v1_routes import NOTIFICATIONS, REQUESTS
from jumpseat.rpc import wire_errors
from jumpseat.rpc.client import DELTAS, ConnectedClient
from jumpseat.rpc.json_rpc_peer import Dialect, JsonRpcPeer
from jumpseat.rpc.transport import LINES, Wire
from jumpseat.sessions.access import EVERYTHING
from jumpseat.sessions.context import Context
from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
    ExitPlanModeParams,
    ExitPlanModeResponse,
    UserInputResponse,
)
from jumpseat_protocol.envelope import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    ErrorObject,
    FramingError,
)
from jumpseat_protocol.events import AutoModeSwitchAnswer, Event, ExternalToolRequested, PermissionRequested
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


ACP: Final = Dialect(
    "$/cancel_request", "requestId", error_of, NOTIFICATIONS.keys(), lambda name: nearest(name, REQUESTS, ALIKE)
)


async def _wait_for(stopped: Awaitable[None]) -> None:
    await stopped


class AcpConnection(ConnectedClient):
    """An editor on the other end of a transport. It answers only the questions that ACP has."""

    noun = "editor"
    when_slow = "the rest of a message follows with its end"

    def __init__(
        self, on_close: Callable[[AcpConnection], None], tasks: TaskGroup, mask: Callable[[str], str]
    ) -> None:
        super().__init__(EVERYTHING, PROTOCOL_VERSION, tasks)
        self.handshake_done = True
        self._on_close = on_close
        self.wire = Wire(self._body, self._framing_error, self._handle_close, LINES, on_end=self.handle_end)
        self.peer = JsonRpcPeer(self.wire.send, tasks, mask, ACP, label=lambda: self.label)
        self._ctx: AcpContext | None = None

    def serve(self, ctx: Context) -> None:
        """Serve the methods of ACP."""
        acp = self._ctx = AcpContext(ctx, Editor(self, EditorMcp(self.ask)))
        self.peer.find = lambda method: find_route(acp, method) or find_notification(acp, method)

    async def ask(self, method: str, params: dict[str, Any], result: type[R]) -> R:
        """See :class:`jumpseat.acp.editor.editor.EditorConnection`."""
        return self._read(method, await self.peer.ask(method, params), result)

    def admit(self) -> None:
        """Do nothing: on stdio, no limits apply before the first request."""

    def announce(self, params: dict[str, Any], created_by: str | None) -> None:
        """Do nothing: editors request the list of sessions."""

    def stop_prompts(self) -> None:
        """Cancel the prompts of all sessions, which get their responses."""
        for view in list(self._ctx.views.values()) if self._ctx is not None else ():
            with suppress(errors.SessionInUseError, errors.SessionNotFoundError):
                self.tasks.start_soon(_wait_for, view.cancel())

    # --- the client of sessions ---------------------------------------------------------------------------------

    def deliver(self, session_id: str, event: Event) -> None:
        """Send the updates for ``event``."""
        view = self._ctx.views.get(session_id) if self._ctx is not None else None
        if view is not None:
            view.deliver(event, lossy=event.type in DELTAS and self.wire.lossy)

    @property
    def label(self) -> str:
        """The name of the connection in the log."""
        return "editor"

    def catch_up(self, session_id: str, questions: Iterable[ExternalToolRequested | PermissionRequested]) -> None:
        """Ask the questions that were open before this editor connected."""
        view = self._ctx.views.get(session_id) if self._ctx is not None else None
        for question in questions:
            if view is not None and isinstance(question, PermissionRequested):
                view.ask_again(question)

    async def ask_user(
        self, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
    ) -> UserInputResponse:
        ctx = self._require_context()
        call_id = ctx.call_id(session_id, "ask_user")
        return await ask_user(ctx.editor, session_id, call_id, question, choices, allow_freeform=allow_freeform)

    async def exit_plan_mode(self, params: ExitPlanModeParams) -> ExitPlanModeResponse:
        ctx = self._require_context()
        return await ask_about_plan(ctx.editor, ctx.call_id(params.session_id, "exit_plan_mode"), params)

    async def auto_mode_switch(self, params: AutoModeSwitchParams) -> AutoModeSwitchAnswer:
        return await ask_about_auto_mode(self._require_context().editor, params)

    @property
    def mcp_servers(self) -> Collection[str]:
        return self._ctx.editor.mcp.ids if self._ctx is not None else ()

    async def ask_mcp(
        self, server_id: str, message: dict[str, Any], notified: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        return await self._require_context().editor.mcp.ask(server_id, message, notified)

    async def _ask_json(self, method: str, params: WireModel) -> Any:
        raise errors.ClientCallError(f"editors do not answer {method!r}")

    def _require_context(self) -> AcpContext:
        if self._ctx is None:
            raise errors.ClientCallError("the editor's connection is not ready")
        return self._ctx

    # --- the transport ------------------------------------------------------------------------------------------

    def _body(self, body: bytes) -> None:
        self.peer.receive(body)

    def _framing_error(self, error: FramingError) -> None:
        self.peer.refuse(INVALID_REQUEST, error.message)

    def _handle_close(self) -> None:
        self.peer.close()
        self._on_close(self)
