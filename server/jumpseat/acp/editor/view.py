"""One session as one editor sees it: what is sent about it, and what the editor is asked."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from jumpseat.acp.editor import questions
from jumpseat.acp.translation.options import State, mode_id, modes_of, options_of
from jumpseat.acp.translation.plans import entries_of, entries_of_todos
from jumpseat.acp.translation.updates import (
    AskForm,
    AskPermission,
    AskToOpen,
    CommandsChanged,
    Compaction,
    Notice,
    OptionsChanged,
    PlanChanged,
    Step,
    Translator,
    Update,
    Withdraw,
)
from jumpseat.agent.model import ModelInfo
from jumpseat.agent.session.session import Session
from jumpseat.agent.turns.commands import available
from jumpseat.errors import JumpseatError, SessionNotFoundError
from jumpseat.sessions.models import session_models
from jumpseat.store.files import read_text
from jumpseat_protocol import events
from jumpseat_protocol.commands import SlashCommandInfo

if TYPE_CHECKING:
    from jumpseat.acp.editor.context import AcpContext

log = logging.getLogger(__name__)

LARGEST_SHOWN_BYTES: Final = 512 * 1024
"""A file above this is shown by the hunks of a change, and not as a whole."""


class SessionView:
    """``models`` are those the session can be switched to, as far as they are known by now."""

    def __init__(self, door: AcpContext, session_id: str, cwd: str) -> None:
        self.session_id = session_id
        self.translator = Translator(cwd, self._text_of)
        self.models: Sequence[ModelInfo] = ()
        self.models_known = anyio.Event()
        self._door = door
        self._default_model: str | None = None
        self._asked: dict[str, anyio.CancelScope] = {}
        self._told: list[dict[str, Any]] | None = None
        self._commands: set[anyio.CancelScope] = set()
        self._plan: list[dict[str, Any]] = []
        self._plan_is_old = False
        self._plan_lock = anyio.Lock()

    @property
    def session(self) -> Session:
        """The session itself.

        Raises:
            SessionNotFoundError: it is not live any more.
        """
        return self._door.ctx.registry.live(self.session_id)

    # --- what the editor is told --------------------------------------------------------------------------------

    def deliver(self, event: events.Event, *, lossy: bool) -> None:
        """Take an event of the session."""
        for step in self.translator.steps(event, lossy=lossy):
            self._take(step)

    def tell(self, update: dict[str, Any]) -> None:
        """Send an update."""
        self._door.connection.tell("session/update", {"sessionId": self.session_id, "update": update})

    def _take(self, step: Step) -> None:
        match step:
            case Update():
                self.tell(step.body)
            case Notice():
                if self._door.capabilities.session.notices is not None:
                    self.tell({"sessionUpdate": "notice", "severity": step.severity, "title": step.title})
            case Compaction():
                if self._door.capabilities.session.compaction is not None:
                    self.tell(step.body)
            case OptionsChanged():
                self._tell_mode()
                self.tell_options()
            case CommandsChanged():
                self.tell_commands()
            case PlanChanged():
                self._plan_is_old = True
                self._door.connection.tasks.start_soon(self.tell_plan)
            case AskPermission():
                self._ask(step.request_id, lambda: questions.ask_permission(self._door, self, step))
            case AskForm() | AskToOpen():
                self._ask(step.request_id, lambda: questions.ask_form(self._door, self, step))
            case Withdraw():
                if (scope := self._asked.pop(step.request_id, None)) is not None:
                    scope.cancel()

    def announce_soon(self) -> None:
        """Send what an editor is to know from the beginning, behind the answer that opens the session."""
        self._door.connection.tasks.start_soon(self._announce)

    async def _announce(self) -> None:
        with suppress(SessionNotFoundError):
            self.tell_commands()
            workspace = self._door.ctx.registry.folder(self.session).workspace
            if workspace is not None and (title := workspace.name or workspace.summary):
                self.tell({"sessionUpdate": "session_info_update", "title": title})
        self._plan_is_old = True
        await self.tell_plan()

    def show_terminal(self, call_id: str, terminal_id: str) -> None:
        """Have the editor show a tool call's output by its own terminal."""
        if (call := self.translator.calls.get(call_id)) is not None:
            call.in_terminal = True
        content = [{"type": "terminal", "terminalId": terminal_id}]
        self.tell({"sessionUpdate": "tool_call_update", "toolCallId": call_id, "content": content})

    def tell_commands(self) -> None:
        """Send the slash commands, which are prompts that begin with their names."""
        self.tell(
            {
                "sessionUpdate": "available_commands_update",
                "availableCommands": [
                    {"name": one.name, "description": one.description or one.name}
                    | ({"input": {"hint": one.input.hint}} if one.input and one.input.hint else {})
                    for one in self.commands()
                ],
            }
        )

    def commands(self) -> list[SlashCommandInfo]:
        return available(self.session)

    async def tell_plan(self) -> None:
        """Send the plan where it may have changed: the todos, or else the page, as far as it is a list."""
        # One at a time, so that what was read first is not sent last.
        async with self._plan_lock:
            if not self._plan_is_old:
                return
            self._plan_is_old = False
            try:
                folder = self._door.ctx.registry.folder(self.session)
                entries = entries_of_todos((await folder.database.todos()).todos)
                entries = entries or entries_of(read_text(folder.plan_path) or "")
            except JumpseatError as error:
                log.info("session %s: its plan cannot be read: %s", self.session_id, error)
                return
            if entries != self._plan:
                self._plan = entries
                self.tell({"sessionUpdate": "plan", "entries": entries})

    def replay(self, history: Iterable[events.EventPayload | events.UnknownPayload]) -> None:
        """Send all that has been said so far."""
        for payload in history:
            for update in self.translator.replay(payload):
                self._take(update)
        self.translator.calls.clear()

    def _text_of(self, path: str) -> str | None:
        """A file for the eyes of a person; ``None`` where there is none, or it is large."""
        try:
            file = Path(path)
            if not file.is_file() or file.stat().st_size > LARGEST_SHOWN_BYTES:
                return None
            return self._door.ctx.process.secrets(file.read_bytes().decode("utf-8", "replace"))
        except (OSError, ValueError):
            return None

    # --- options ------------------------------------------------------------------------------------------------

    def modes(self) -> dict[str, Any]:
        return modes_of(self.session.settings.mode)

    def options(self) -> list[dict[str, Any]]:
        """The options as they are now; the editor knows them from here on."""
        self._told = self._options()
        return self._told

    def tell_options(self) -> None:
        """Send the options where they are not as the editor knows them, if it knows the session at all."""
        if self._told is not None and (now := self._options()) != self._told:
            self._told = now
            self.tell({"sessionUpdate": "config_option_update", "configOptions": now})

    def _options(self) -> list[dict[str, Any]]:
        session = self.session
        settings = session.settings
        model = settings.model or self._default_model or self._door.ctx.models.default_id(settings)
        return options_of(
            State(
                mode=settings.mode,
                model=model and self._known_as(model),
                effort=settings.reasoning_effort,
                allow_all=session.permissions.approve_all,
                models=self.models,
                booleans=self._door.capabilities.session.config_options.boolean is not None,
            )
        )

    def _known_as(self, model: str) -> str:
        """A name of a model as the list has it, which may be with its adapter before it."""
        ids = [one.id for one in self.models]
        longer = [one for one in ids if one.endswith(f"/{model}")]
        return model if model in ids or len(longer) != 1 else longer[0]

    def _tell_mode(self) -> None:
        current = mode_id(self.session.settings.mode)
        before = next((one["currentValue"] for one in self._told or () if one["id"] == "mode"), None)
        if current != before:
            self.tell({"sessionUpdate": "current_mode_update", "currentModeId": current})

    async def find_models(self) -> None:
        """Learn which models there are; providers may be asked, so this takes its time."""
        ctx = self._door.ctx
        try:
            settings = self.session.settings
            self.models = await session_models(ctx, settings)
            if settings.model is None and ctx.models.default_id(settings) is None:
                self._default_model = await ctx.models.default_name(settings)
            self.tell_options()
        except JumpseatError as error:
            log.info("session %s: its models cannot be listed: %s", self.session_id, error)
        finally:
            self.models_known.set()

    # --- what the editor is asked -------------------------------------------------------------------------------

    def ask_again(self, question: events.PermissionRequested) -> None:
        """Ask what the session had asked before this editor came."""
        self.deliver(events.Event("", "", None, question), lossy=False)

    def withdraw_all(self) -> None:
        """Take back all that is being asked; whoever follows the session from here on asks anew."""
        for scope in self._asked.values():
            scope.cancel()
        self._asked.clear()

    def _ask(self, request_id: str, ask: Callable[[], Awaitable[None]]) -> None:
        # Entered here and not in the task, so that an answer that comes from elsewhere first is not lost.
        scope = self._asked[request_id] = anyio.CancelScope()
        self._door.connection.tasks.start_soon(self._run_question, request_id, ask, scope)

    async def _run_question(
        self, request_id: str, ask: Callable[[], Awaitable[None]], scope: anyio.CancelScope
    ) -> None:
        try:
            with scope:
                await ask()
        finally:
            if self._asked.get(request_id) is scope:
                del self._asked[request_id]

    # --- running ------------------------------------------------------------------------------------------------

    async def run_command(self, work: Awaitable[None]) -> bool:
        """Run a slash command; ``False`` where it was cancelled."""
        with anyio.CancelScope() as scope:
            self._commands.add(scope)
            try:
                await work
            finally:
                self._commands.discard(scope)
        return not scope.cancelled_caught

    def cancel(self) -> Awaitable[None]:
        """Stop what runs, at once; what to await for all to be quiet."""
        for scope in self._commands:
            scope.cancel()
        return self.session.abort("user_initiated")
