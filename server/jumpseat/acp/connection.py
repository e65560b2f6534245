"""The connection of one editor: its transport, its JSON-RPC, and the client that its sessions see."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import anyio
from anyio.abc import TaskGroup
from pydantic import ValidationError

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.editor.editor import Editor
from jumpseat.acp.editor.questions import ask_about_auto_mode, ask_about_plan, ask_user
from jumpseat.acp.routes import NOTIFICATIONS, find_notification, find_route
from jumpseat.acp.translation.errors import error_of
from jumpseat.errors import ClientCallError
from jumpseat.rpc.connection import DELTAS, DRAIN_TIMEOUT_S
from jumpseat.rpc.json_rpc_peer import Dialect, JsonRpcPeer
from jumpseat.rpc.transport import LINES, Wire
from jumpseat.sessions.access import EVERYTHING, Access
from jumpseat.sessions.context import Context
from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
    CancelClientTaskParams,
    CancelClientTaskResult,
    CanvasActionParams,
    CanvasCloseParams,
    CanvasOpenParams,
    CanvasOpenResult,
    ExitPlanModeParams,
    ExitPlanModeResponse,
    GitHubTokenParams,
    GitHubTokenResult,
    HttpRequestChunkParams,
    HttpRequestStartParams,
    UserInputResponse,
)
from jumpseat_protocol.envelope import INVALID_REQUEST
from jumpseat_protocol.events import AutoModeSwitchAnswer, Event, ExternalToolRequested, PermissionRequested
from jumpseat_protocol.framing import FramingError
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.wire import WireModel

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from jumpseat_protocol.session_fs import SetFsProviderParams

R = TypeVar("R", bound=WireModel)

ACP: Final = Dialect("$/cancel_request", "requestId", error_of, NOTIFICATIONS.keys())


class AcpConnection:
    """A client of sessions, as :class:`jumpseat.agent.client.Client`, for an editor on the other end."""

    def __init__(
        self, on_close: Callable[[AcpConnection], None], tasks: TaskGroup, mask: Callable[[str], str]
    ) -> None:
        self.access: Access | None = EVERYTHING
        self.handshake_done = True
        self.protocol: int | None = PROTOCOL_VERSION
        self.streams: set[str] = set()
        self.session_fs: SetFsProviderParams | None = None
        self.wants_telemetry = False
        self.tasks = tasks
        self._on_close = on_close
        self._slow = False
        self.wire = Wire(self._body, self._framing_error, self._handle_close, LINES)
        self.peer = JsonRpcPeer(self.wire.send, tasks, mask, ACP, label=lambda: self.label)
        self._ctx: AcpContext | None = None

    def serve(self, ctx: Context) -> None:
        """Serve the methods of ACP."""
        acp = self._ctx = AcpContext(ctx, Editor(self))
        self.peer.find = lambda method: find_route(acp, method) or find_notification(acp, method)

    # --- messages out -------------------------------------------------------------------------------------------

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """See :class:`jumpseat.acp.editor.editor.EditorConnection`."""
        self.peer.notify(method, params)

    async def ask(self, method: str, params: dict[str, Any], result: type[R]) -> R:
        answer = await self.peer.ask(method, params)
        try:
            return result.model_validate({} if answer is None else answer)
        except ValidationError:
            raise ClientCallError(f"the editor's response to {method!r} could not be read") from None

    def admit(self) -> None:
        """Do nothing: on stdio, no limits apply before the first request."""

    def announce(self, params: dict[str, Any], created_by: str | None) -> None:
        """Do nothing: editors request the list of sessions."""

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

    @property
    def connected(self) -> bool:
        """Return whether the client has not hung up."""
        return self.wire.open

    async def wait_until_read(self) -> None:
        """See :class:`jumpseat.sessions.context.Caller`."""
        await self.wire.drain()

    @property
    def behind(self) -> bool:
        """See :class:`jumpseat.agent.client.Client`."""
        return self.wire.busy

    async def drain(self) -> None:
        if self._slow and self.wire.busy:
            return
        with anyio.move_on_after(DRAIN_TIMEOUT_S) as scope:
            await self.wire.drain()
        if scope.cancelled_caught and not self._slow:
            log.warning("the editor has stopped reading; the rest of a message follows with its end")
        self._slow = scope.cancelled_caught

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

    async def invoke_hook(self, session_id: str, hook_type: str, hook_input: dict[str, Any]) -> None:
        _unsupported("run hooks")

    async def exit_plan_mode(self, params: ExitPlanModeParams) -> ExitPlanModeResponse:
        ctx = self._require_context()
        return await ask_about_plan(ctx.editor, ctx.call_id(params.session_id, "exit_plan_mode"), params)

    async def auto_mode_switch(self, params: AutoModeSwitchParams) -> AutoModeSwitchAnswer:
        return await ask_about_auto_mode(self._require_context().editor, params)

    async def transform_system_message(self, session_id: str, sections: dict[str, str]) -> dict[str, str]:
        _unsupported("change the system message")

    async def provider_token(self, session_id: str, provider_name: str) -> str:
        _unsupported("provide tokens")

    async def github_token(self, params: GitHubTokenParams) -> GitHubTokenResult:
        _unsupported("provide tokens")

    async def ask_session_fs(self, method: str, params: WireModel, result: type[R]) -> R:
        _unsupported("store sessions")

    async def open_canvas(self, params: CanvasOpenParams) -> CanvasOpenResult:
        _unsupported("show canvases")

    async def invoke_canvas_action(self, params: CanvasActionParams) -> Any:
        _unsupported("show canvases")

    async def close_canvas(self, params: CanvasCloseParams) -> None:
        _unsupported("show canvases")

    async def cancel_task(self, params: CancelClientTaskParams) -> CancelClientTaskResult:
        _unsupported("carry out tasks")

    async def start_http_request(self, params: HttpRequestStartParams) -> None:
        _unsupported("carry requests to models")

    async def send_http_chunk(self, params: HttpRequestChunkParams) -> None:
        _unsupported("carry requests to models")

    def _require_context(self) -> AcpContext:
        if self._ctx is None:
            raise ClientCallError("the editor's connection is not ready")
        return self._ctx

    def abort(self) -> None:
        """Close the connection at once."""
        self.wire.abort()

    def close(self) -> None:
        """Send the queued messages and end the connection."""
        self.wire.close()

    # --- the transport ------------------------------------------------------------------------------------------

    def _body(self, body: bytes) -> None:
        self.peer.receive(body)

    def _framing_error(self, error: FramingError) -> None:
        self.peer.refuse(INVALID_REQUEST, error.message)

    def _handle_close(self) -> None:
        self.peer.close()
        self._on_close(self)


def _unsupported(action: str) -> NoReturn:
    raise ClientCallError(f"editors cannot {action}")
