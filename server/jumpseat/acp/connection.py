"""One editor: its wire, its JSON-RPC, and what sessions see of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn, TypeVar

import anyio
from anyio.abc import TaskGroup
from pydantic import ValidationError

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.editor.questions import ask_about_auto_mode, ask_about_plan, ask_user
from jumpseat.acp.routes import NOTIFICATIONS, find_notified, find_route
from jumpseat.acp.translation.errors import error_of
from jumpseat.errors import ClientCallError
from jumpseat.rpc.connection import DELTAS, PATIENCE_S
from jumpseat.rpc.json_rpc_peer import Dialect, JsonRpcPeer
from jumpseat.rpc.transport import LINES, Wire
from jumpseat.sessions.context import Context
from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
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

R = TypeVar("R", bound=WireModel)

ACP: Final = Dialect("$/cancel_request", "requestId", error_of, NOTIFICATIONS.keys())


class AcpConnection:
    """A client of its sessions like any other, and the caller of the handlers it shares with the other door."""

    def __init__(
        self, on_close: Callable[[AcpConnection], None], tasks: TaskGroup, mask: Callable[[str], str]
    ) -> None:
        self.authenticated = True
        self.handshaken = True
        self.protocol: int | None = PROTOCOL_VERSION
        self.tasks = tasks
        self._on_close = on_close
        self._slow = False
        self.wire = Wire(self._body, self._framing_error, self._closed, LINES)
        self.peer = JsonRpcPeer(self.wire.send, tasks, mask, ACP)
        self._door: AcpContext | None = None

    def serve(self, ctx: Context) -> None:
        """Serve the methods of ACP."""
        door = self._door = AcpContext(ctx, self)
        self.peer.find = lambda method: find_route(door, method) or find_notified(door, method)

    # --- out ----------------------------------------------------------------------------------------------------

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """See :class:`jumpseat.acp.door.Editor`."""
        self.peer.notify(method, params)

    async def ask(self, method: str, params: dict[str, Any], result: type[R]) -> R:
        answer = await self.peer.ask(method, params)
        try:
            return result.model_validate({} if answer is None else answer)
        except ValidationError:
            raise ClientCallError(f"the editor's answer to {method!r} could not be read") from None

    def announce(self, params: dict[str, Any]) -> None:
        """Editors ask for the list of sessions when they want it."""

    # --- what sessions see --------------------------------------------------------------------------------------

    def deliver(self, session_id: str, event: Event) -> None:
        """Send what ``event`` is to the editor; see :class:`jumpseat.agent.client.Client`, as for what follows."""
        view = self._door.views.get(session_id) if self._door is not None else None
        if view is not None:
            view.deliver(event, lossy=event.type in DELTAS and self.wire.lossy)

    async def drained(self) -> None:
        if self._slow and self.wire.busy:
            return
        with anyio.move_on_after(PATIENCE_S) as patience:
            await self.wire.drained()
        self._slow = patience.cancelled_caught
        if self._slow:
            log.warning("the editor has stopped reading; pieces of messages are left out")

    def catch_up(self, session_id: str, questions: Iterable[ExternalToolRequested | PermissionRequested]) -> None:
        """Ask what a session had asked before this editor came."""
        view = self._door.views.get(session_id) if self._door is not None else None
        for question in questions:
            if view is not None and isinstance(question, PermissionRequested):
                view.ask_again(question)

    async def ask_user(
        self, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
    ) -> UserInputResponse:
        if self._door is None:
            raise ClientCallError("the editor is not there yet")
        return await ask_user(self._door, session_id, question, choices, allow_freeform=allow_freeform)

    async def invoke_hook(self, session_id: str, hook_type: str, hook_input: dict[str, Any]) -> None:
        _nothing("hooks")

    async def exit_plan_mode(self, params: ExitPlanModeParams) -> ExitPlanModeResponse:
        if self._door is None:
            raise ClientCallError("the editor is not there yet")
        return await ask_about_plan(self._door, params)

    async def auto_mode_switch(self, params: AutoModeSwitchParams) -> AutoModeSwitchAnswer:
        if self._door is None:
            raise ClientCallError("the editor is not there yet")
        return await ask_about_auto_mode(self._door, params)

    async def transform_system_message(self, session_id: str, sections: dict[str, str]) -> dict[str, str]:
        _nothing("a say in the system message")

    async def provider_token(self, session_id: str, provider_name: str) -> str:
        _nothing("tokens")

    async def github_token(self, params: GitHubTokenParams) -> GitHubTokenResult:
        _nothing("tokens")

    async def start_http_request(self, params: HttpRequestStartParams) -> None:
        _nothing("requests of models")

    async def send_http_chunk(self, params: HttpRequestChunkParams) -> None:
        _nothing("requests of models")

    def close(self) -> None:
        """Send what is queued and end the connection."""
        self.wire.close()

    # --- in -----------------------------------------------------------------------------------------------------

    def _body(self, body: bytes) -> None:
        self.peer.receive(body)

    def _framing_error(self, error: FramingError) -> None:
        self.peer.refuse(INVALID_REQUEST, error.message)

    def _closed(self) -> None:
        self.peer.close()
        self._on_close(self)


def _nothing(what: str) -> NoReturn:
    raise ClientCallError(f"editors have no {what}")
