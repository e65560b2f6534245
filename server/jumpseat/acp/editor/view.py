"""The view of a session that one editor has: updates, options, and questions to the user."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import anyio

from jumpseat.acp.editor import questions
from jumpseat.acp.editor.editor import Editor
from jumpseat.acp.translation.options import State, mode_id, modes_of, options_of
from jumpseat.acp.translation.plans import PLAN_ID, entries_of, entries_of_todos
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
from jumpseat.commands.running import available_commands
from jumpseat.errors import JumpseatError, SessionInUseError, SessionNotFoundError
from jumpseat.sessions.context import Context
from jumpseat.sessions.mcp_servers import listed_servers
from jumpseat.sessions.options import session_models
from jumpseat.store.session.database import TodoRows
from jumpseat.system.regular_files import read_whole
from jumpseat_protocol import events
from jumpseat_protocol.commands import SlashCommandInfo
from jumpseat_protocol.permissions import DecidedBy

log = logging.getLogger(__name__)

LARGEST_SHOWN_BYTES: Final = 512 * 1024
"""For changes of a larger file, hunks are shown instead of the whole file."""


class SessionView:
    """Sends updates about one session. ``models`` are the models known so far that the session can switch to."""

    def __init__(self, server: Context, editor: Editor, session_id: str, cwd: str) -> None:
        self.session_id = session_id
        self.translator = Translator(cwd, self._text_of)
        self.inserted: dict[str, anyio.Event] = {}
        """Set when the prompt with an id has its place in the conversation, for those who wait for that."""
        self.models: Sequence[ModelInfo] = ()
        self.models_known = anyio.Event()
        self._server = server
        self._editor = editor
        self._default_model: str | None = None
        self._questions: dict[str, anyio.CancelScope] = {}
        self._sent_options: list[dict[str, Any]] | None = None
        self._running_commands: set[anyio.CancelScope] = set()
        self._announced = False
        self._plan: list[dict[str, Any]] = []
        self._plan_changed = False
        self._plan_lock = anyio.Lock()
        session = server.registry.get_live(session_id)
        self.follower = editor.version.follow(
            self.translator, self._is_running, working=session is not None and session.working
        )

    @property
    def session(self) -> Session:
        """The session.

        Raises:
            SessionNotFoundError: the session is no longer live.
            SessionInUseError: the session is live in another process.
        """
        return self._server.registry.live(self.session_id)

    # --- updates ------------------------------------------------------------------------------------------------

    def deliver(self, event: events.Event, *, lossy: bool) -> None:
        """Send the updates for an event of the session, and ask its question."""
        if not self._announced and isinstance(event.payload, events.McpServerStatusChanged):
            # Before the response that opens the session, the editor does not know the session.
            return
        self.take(self.follower.steps(event, lossy=lossy))
        if isinstance(event.payload, events.UserMessage) and event.payload.message_id in self.inserted:
            self.inserted[event.payload.message_id].set()

    def send(self, update: dict[str, Any]) -> None:
        """Send a ``session/update``, which has the form of version 1."""
        body = self._editor.version.update(update)
        if body is not None:
            self._editor.connection.notify("session/update", {"sessionId": self.session_id, "update": body})

    def take(self, steps: Iterable[Step]) -> None:
        """Carry out steps."""
        for step in steps:
            self._take(step)

    def _take(self, step: Step) -> None:
        match step:
            case Update():
                self.send(step.body)
            case Notice():
                if self._editor.capabilities.session.notices is not None:
                    self.send({"sessionUpdate": "notice", "severity": step.severity, "title": step.title})
                elif step.otherwise is not None:
                    self.send(step.otherwise)
            case Compaction():
                if self._editor.capabilities.session.compaction is not None:
                    self.send(step.body)
            case OptionsChanged():
                self._send_mode()
                self.send_options()
            case CommandsChanged():
                self.send_commands()
            case PlanChanged():
                self._plan_changed = True
                self._editor.connection.tasks.start_soon(self.send_plan)
            case AskPermission():
                self._start_question(step.request_id, lambda: self._ask_permission(step))
            case AskForm() | AskToOpen():
                self._start_question(step.request_id, lambda: self._ask_form(step))
            case Withdraw():
                if (scope := self._questions.pop(step.request_id, None)) is not None:
                    scope.cancel()

    def announce_soon(self) -> None:
        """Send the commands, failed servers, the title and the plan, after the response that opens the session."""
        self._editor.connection.tasks.start_soon(self._announce)

    async def _announce(self) -> None:
        with suppress(SessionInUseError, SessionNotFoundError):
            self._announced = True
            self.send_commands()
            for server in listed_servers(self._server, self.session):
                self.take(self.translator.server_status(server.name, server.status, server.error))
            workspace = self._server.registry.storage(self.session).workspace
            if workspace is not None and (title := workspace.name or workspace.summary):
                self.send({"sessionUpdate": "session_info_update", "title": title})
        self._plan_changed = True
        await self.send_plan()

    def show_terminal(self, call_id: str, terminal_id: str) -> None:
        """Show the output of a tool call in the editor's own terminal."""
        if (call := self.translator.running(call_id)) is not None:
            call.in_terminal = True
            call_id = call.id
        content = [{"type": "terminal", "terminalId": terminal_id}]
        self.send({"sessionUpdate": "tool_call_update", "toolCallId": call_id, "content": content})

    def send_commands(self) -> None:
        """Send the slash commands. The user runs one by a prompt that begins with its name."""
        self.send({"sessionUpdate": "available_commands_update", "availableCommands": self.listed_commands()})

    def listed_commands(self) -> list[dict[str, Any]]:
        """Return the slash commands as ACP lists them."""
        return [
            {"name": command.name, "description": command.description or command.name}
            | ({"input": {"hint": command.input.hint}} if command.input and command.input.hint else {})
            for command in self.commands()
        ]

    def commands(self) -> list[SlashCommandInfo]:
        """Return the slash commands that prompts of the editor can begin with."""
        return available_commands(self.session, loosening=False)

    async def send_plan(self) -> None:
        """Send the plan if it has changed: the todos, or else the list items of the plan's page."""
        # One at a time, so that an older plan is not sent after a newer one.
        async with self._plan_lock:
            if not self._plan_changed:
                return
            self._plan_changed = False
            try:
                storage = self._server.registry.storage(self.session)
                todos = await storage.database.todos() if storage.database is not None else TodoRows()
                entries = entries_of_todos(todos.todos) or entries_of(await storage.plan.read() or "")
            except JumpseatError as error:
                log.info("session %s: cannot read the plan: %s", self.session_id, error)
                return
            if entries != self._plan:
                self._plan = entries
                self._show_plan(entries)

    def _show_plan(self, entries: list[dict[str, Any]]) -> None:
        if self._editor.capabilities.plan is None:
            self.send({"sessionUpdate": "plan", "entries": entries})
        elif entries:
            plan = {"type": "items", "planId": PLAN_ID, "entries": entries}
            self.send({"sessionUpdate": "plan_update", "plan": plan})
        else:
            self.send({"sessionUpdate": "plan_removed", "planId": PLAN_ID})

    def replay(self, history: Iterable[events.EventPayload | events.UnknownPayload]) -> None:
        """Send the updates for the events of the log."""
        for payload in history:
            self.take(self.follower.replay(payload))
        self.take(self.follower.end_replay())

    def _text_of(self, path: str) -> str | None:
        """Return the masked text of a file, or ``None`` if it is missing, unreadable or too large."""
        try:
            content = read_whole(Path(path), LARGEST_SHOWN_BYTES)
            return self._server.process.secrets(content.decode("utf-8", "replace"))
        except (OSError, ValueError):
            return None

    # --- options ------------------------------------------------------------------------------------------------

    def modes(self) -> dict[str, Any]:
        """Return the modes as ACP's ``SessionModeState``."""
        return modes_of(self.session.settings.mode)

    def options(self) -> list[dict[str, Any]]:
        """Return the current options, for a response to the editor."""
        self._sent_options = self._options()
        return self._sent_options

    def send_options(self) -> None:
        """Send the options if they differ from those sent last. Before a first response nothing is sent."""
        if self._sent_options is not None and (options := self._options()) != self._sent_options:
            self._sent_options = options
            self.send({"sessionUpdate": "config_option_update", "configOptions": options})

    def _options(self) -> list[dict[str, Any]]:
        session = self.session
        settings = session.settings
        model = settings.options.model or self._default_model or self._server.models.default_id(settings)
        return options_of(
            State(
                mode=settings.mode,
                model=model and self._listed_id(model),
                effort=settings.options.reasoning_effort,
                allow_all=session.permissions.approve_all,
                models=self.models,
                booleans=self._editor.capabilities.session.config_options.boolean is not None,
            )
        )

    def _listed_id(self, model: str) -> str:
        """Return the id of a model in the list, where its adapter may precede it."""
        ids = [model.id for model in self.models]
        qualified = [model_id for model_id in ids if model_id.endswith(f"/{model}")]
        return model if model in ids or len(qualified) != 1 else qualified[0]

    def _send_mode(self) -> None:
        current = mode_id(self.session.settings.mode)
        before = next(
            (option["currentValue"] for option in self._sent_options or () if option["id"] == "mode"), None
        )
        if current != before:
            self.send({"sessionUpdate": "current_mode_update", "currentModeId": current})

    async def find_models(self) -> None:
        """List the models and send the changed options. Slow where providers are asked for their models."""
        try:
            settings = self.session.settings
            models = await session_models(self._server, settings)
            if settings.options.model is None and self._server.models.default_id(settings) is None:
                self._default_model = await self._server.models.default_name(settings)
            # Together with the default: the first model of a list would be shown as the current one.
            self.models = models
            self.send_options()
        except JumpseatError as error:
            log.info("session %s: cannot list the models: %s", self.session_id, error)
        finally:
            self.models_known.set()

    # --- questions ----------------------------------------------------------------------------------------------

    def ask_again(self, question: events.PermissionRequested) -> None:
        """Ask a question that was open before this editor connected."""
        self.deliver(events.Event.of("", "", None, question), lossy=False)

    def withdraw_all(self) -> None:
        """Withdraw all open questions; a later view of the session asks them again."""
        for scope in self._questions.values():
            scope.cancel()
        self._questions.clear()

    async def _ask_permission(self, step: AskPermission) -> None:
        decision = await questions.ask_permission(self._editor, self.session_id, step)
        if not self._server.connection.connected:
            # Other clients can answer, or this editor once it has come back.
            return
        try:
            by = DecidedBy(client=self._editor.client_name) if self._editor.client_name is not None else None
            self.session.permissions.questions.pending.answer(step.request_id, decision, by)
        except (SessionInUseError, SessionNotFoundError):
            log.debug("session %s was closed before its question was answered", self.session_id)

    async def _ask_form(self, step: AskForm | AskToOpen) -> None:
        result = await questions.ask_form(self._editor, self.session_id, step)
        if not self._server.connection.connected:
            return
        try:
            self.session.clients.elicitations.answer(step.request_id, result)
        except (SessionInUseError, SessionNotFoundError):
            log.debug("session %s was closed before its question was answered", self.session_id)

    def _start_question(self, request_id: str, ask: Callable[[], Awaitable[None]]) -> None:
        # Created before the task starts, so that no early withdrawal is lost.
        scope = self._questions[request_id] = anyio.CancelScope()
        self._editor.connection.tasks.start_soon(self._run_question, request_id, ask, scope)

    async def _run_question(
        self, request_id: str, ask: Callable[[], Awaitable[None]], scope: anyio.CancelScope
    ) -> None:
        try:
            with scope:
                await ask()
        finally:
            if self._questions.get(request_id) is scope:
                del self._questions[request_id]

    # --- running ------------------------------------------------------------------------------------------------

    def _is_running(self) -> bool:
        session = self._server.registry.get_live(self.session_id)
        return session is not None and session.queue.running

    async def run_command(self, work: Awaitable[None]) -> bool:
        """Run a slash command and return whether it finished; ``False`` means that it was cancelled."""
        with anyio.CancelScope() as scope:
            self._running_commands.add(scope)
            try:
                await work
            finally:
                self._running_commands.discard(scope)
        return not scope.cancelled_caught

    def cancel(self) -> Awaitable[None]:
        """Cancel commands and abort the turn at once. The result completes when the turn has ended."""
        self._cancel_commands()
        return self.session.abort("user_initiated")

    def cancel_foreground(self) -> None:
        """Cancel commands, the running prompt and the waiting ones. What runs in the background goes on."""
        self._cancel_commands()
        if self.session.interrupt(flush=False) is None:
            self.session.queue.clear_waiting()

    def _cancel_commands(self) -> None:
        for scope in self._running_commands:
            scope.cancel()
