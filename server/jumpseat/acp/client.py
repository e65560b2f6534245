"""An editor as the client of sessions, wherever its connection ends: the questions that ACP has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.editor.editor import Editor
from jumpseat.acp.editor.mcp_servers import EditorMcp
from jumpseat.acp.editor.questions import ask_about_auto_mode, ask_about_plan, ask_user
from jumpseat.errors import ClientCallError
from jumpseat.rpc.client import DELTAS, ConnectedClient
from jumpseat.sessions.context import Context
from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
    ExitPlanModeParams,
    ExitPlanModeResponse,
    UserInputResponse,
)
from jumpseat_protocol.events import AutoModeSwitchAnswer, Event, ExternalToolRequested, PermissionRequested
from jumpseat_protocol.wire import WireModel

R = TypeVar("R", bound=WireModel)


class EditorClient(ConnectedClient):
    """An editor that has sessions open. It answers only the questions that ACP has.

    ``context`` is ``None`` before :meth:`begin`.
    """

    noun = "editor"
    when_slow = "the rest of a message follows with its end"
    context: AcpContext | None = None

    def begin(self, ctx: Context) -> AcpContext:
        """Create the context of the editor's methods."""
        self.context = AcpContext(ctx, Editor(self, EditorMcp(self.ask)))
        return self.context

    @abstractmethod
    async def ask(self, method: str, params: dict[str, Any], result: type[R]) -> R:
        """See :class:`jumpseat.acp.editor.editor.EditorConnection`."""

    def deliver(self, session_id: str, event: Event) -> None:
        """Send the updates for ``event``."""
        view = self.context.views.get(session_id) if self.context is not None else None
        if view is not None:
            view.deliver(event, lossy=event.type in DELTAS and self.wire.lossy)

    def catch_up(self, session_id: str, questions: Iterable[ExternalToolRequested | PermissionRequested]) -> None:
        """Ask the questions that were open before this editor connected."""
        view = self.context.views.get(session_id) if self.context is not None else None
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
        return self.context.editor.mcp.ids if self.context is not None else ()

    async def ask_mcp(
        self, server_id: str, message: dict[str, Any], notified: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        return await self._require_context().editor.mcp.ask(server_id, message, notified)

    async def _ask_json(self, method: str, params: WireModel) -> Any:
        raise ClientCallError(f"editors do not answer {method!r}")

    def _require_context(self) -> AcpContext:
        if self.context is None:
            raise ClientCallError("the editor's connection is not ready")
        return self.context
