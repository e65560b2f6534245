"""``jumpseat chat``: connects a session to the screen."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from jumpseat_client import Client, Event, JumpseatClientError, ServerGoneError, Session
from jumpseat_protocol.events import (
    AutoModeSwitchAnswer,
    AutoModeSwitchCompleted,
    ElicitationCompleted,
    ElicitationRequested,
    SessionResume,
    SessionStart,
    UserInputCompleted,
    UserInputRequested,
    UserMessage,
)
from jumpseat_terminal import commands
from jumpseat_terminal.feed import Feed
from jumpseat_terminal.mentions import completions, find_attachments
from jumpseat_terminal.opening import connect, find_session, open_session
from jumpseat_terminal.options import PICK, Settings
from jumpseat_terminal.paint import NARROW
from jumpseat_terminal.questions import Questions
from jumpseat_terminal.safe import one_line
from jumpseat_terminal.screen import Screen

FAILED: Final = 1
REPLAYED_PROMPTS: Final = 10
"""Number of prompts of a resumed session that are shown again, with all that followed them."""
AUTO_MODE: Final = "auto mode"
"""Key of the open question about a change to the model ``auto``."""


def main(settings: Settings) -> int:
    """Run a chat until the user leaves, and return the exit code."""
    if os.environ.get("TERM", "dumb") == "dumb":
        print(
            "error: chat needs a terminal with cursor control; otherwise use: jumpseat run -p '...'",
            file=sys.stderr,
        )
        return FAILED
    # Log lines on stderr would disturb the screen.
    logging.getLogger("jumpseat_client").addHandler(logging.NullHandler())
    chat = Chat(settings)
    try:
        anyio.run(chat.run)
    except KeyboardInterrupt:
        return 130
    except JumpseatClientError as error:
        chat.failure = str(error)
    if chat.failure is not None:
        print(f"error: {chat.failure}", file=sys.stderr)
        return FAILED
    if chat.has_prompts:
        print(f"\nResume with: jumpseat chat --resume {chat.session.id[:8]}")
    return 0


class Chat:
    """A run of ``jumpseat chat``. ``session`` is the current session.

    The screen calls the methods of :class:`~jumpseat_terminal.screen.ScreenDelegate`; commands use
    :class:`~jumpseat_terminal.commands.Chat`.
    """

    client: Client
    session: Session
    _tasks: TaskGroup

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.failure: str | None = None
        self.server_commands: list[dict[str, Any]] = []
        self.screen = Screen(self, colour=not os.environ.get("NO_COLOR"))
        self.feed = Feed(self.screen.write, self.screen.painter)
        self._questions = Questions(self.screen, self.feed, settings)
        self._ready = False
        self._created_here = True
        # Open questions by request id or question text, to withdraw those that are settled elsewhere.
        self._open_questions: dict[str, anyio.CancelScope] = {}
        self._input_questions: dict[str, str] = {}

    @property
    def has_prompts(self) -> bool:
        """Return whether the session has prompts, and so is worth resuming."""
        return self._ready and bool(self.feed.prompts)

    async def run(self) -> None:
        """Show the screen until the user leaves.

        Raises:
            JumpseatClientError: the server could not be started, or ended.
        """
        async with connect(self.settings) as self.client, anyio.create_task_group() as self._tasks:
            print(
                self.screen.painter().notice(f"jumpseat {self.client.server_version}", "bold"), end="", flush=True
            )
            self.client.on_request("userInput.request", self._handle_input)
            self.client.on_request("autoModeSwitch.request", self._handle_auto_mode)
            self._tasks.start_soon(self._start)
            self._tasks.start_soon(self._watch_connection)
            self._tasks.start_soon(self._handle_signals)
            await self.screen.run()
            self._tasks.cancel_scope.cancel()
            await self._leave_session()

    # --- sessions -----------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        try:
            session_id = await find_session(self.client, self.settings)
            if self.settings.resume == PICK:
                session_id = await commands.pick_session(self)
            await self.change_session(session_id)
        except JumpseatClientError as error:
            self.failure = str(error)
            self.screen.leave()

    async def change_session(self, session_id: str | None) -> None:
        """Switch to another session, or to a new one.

        Raises:
            JumpseatClientError: the session cannot be opened.
        """
        if self._ready and session_id == self.session.id:
            return
        await self._leave_session()
        self.feed = Feed(self.screen.write, self.screen.painter)
        self._questions = Questions(self.screen, self.feed, self.settings)
        self.session = await open_session(
            self.client,
            self.settings,
            session_id,
            on_event=self._on_event,
            on_permission=self._questions.ask_permission,
            extra={"requestUserInput": True, "requestElicitation": True, "requestAutoModeSwitch": True},
        )
        current = await self.session.request("session.model.getCurrent")
        self.feed.model = current.get("modelId")
        self.server_commands = (await self.session.request("session.commands.list"))["commands"]
        self._ready, self._created_here = True, session_id is None
        self._greet()
        if session_id is not None:
            await self._replay()
        self.screen.refresh()

    async def _leave_session(self) -> None:
        if not self._ready:
            return
        self._ready = False
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            try:
                if self.feed.busy:
                    await self.session.abort("the user left")
                if self._created_here and not self.feed.prompts:
                    # Do not keep empty sessions.
                    await self.client.delete_session(self.session.id)
                else:
                    await self.session.detach()
                    self._ready = True
            except JumpseatClientError:
                return

    def _greet(self) -> None:
        self.feed.note(f"{self.status_line()}\n/help lists the commands")
        if self.feed.model is None:
            # In the background: model lists come from providers.
            self._tasks.start_soon(self._report_errors, commands.offer_models(self))

    async def _replay(self) -> None:
        events = await self.session.messages()
        prompts = [at for at, event in enumerate(events) if isinstance(event.payload, UserMessage)]
        first = prompts[-REPLAYED_PROMPTS] if len(prompts) > REPLAYED_PROMPTS else 0
        if first:
            self.feed.note(f"... {len(prompts) - REPLAYED_PROMPTS} earlier prompts")
        model = self.feed.model
        for event in events[first:]:
            self.feed.handle(event)
        self.feed.busy, self.feed.compacting, self.feed.model = False, None, model
        self.feed.calls.clear()
        self.screen.add_history(self.feed.prompts)

    # --- events and requests ------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        self.feed.handle(event)
        match event.payload:
            case SessionStart(context=context) | SessionResume(context=context) if context is not None:
                # A resumed session keeps the folder it was started in.
                self._questions.folder = Path(context.cwd)
            case UserInputRequested(request_id=request_id, question=question):
                self._input_questions[request_id] = question
            case UserInputCompleted(request_id=request_id):
                self._withdraw(self._input_questions.pop(request_id, ""))
            case AutoModeSwitchCompleted():
                self._withdraw(AUTO_MODE)
            case ElicitationRequested() as request:
                self._tasks.start_soon(self._handle_form, request)
            case ElicitationCompleted(request_id=request_id):
                self._withdraw(request_id)
            case _:
                pass
        self.screen.refresh()

    def _withdraw(self, key: str) -> None:
        if key in self._open_questions:
            self._open_questions[key].cancel()

    async def _handle_input(self, params: dict[str, Any]) -> dict[str, Any]:
        key = str(params.get("question", ""))
        answer: dict[str, Any] = {"answer": "", "wasFreeform": True}
        with anyio.CancelScope() as self._open_questions[key]:
            answer = await self._questions.ask_input(params)
        self._open_questions.pop(key, None)
        return answer

    async def _handle_auto_mode(self, params: dict[str, Any]) -> dict[str, Any]:
        answer: AutoModeSwitchAnswer = "no"
        with anyio.CancelScope() as self._open_questions[AUTO_MODE]:
            answer = await self._questions.ask_auto_mode(params)
        self._open_questions.pop(AUTO_MODE, None)
        return {"response": answer}

    async def _handle_form(self, request: ElicitationRequested) -> None:
        with anyio.CancelScope() as self._open_questions[request.request_id]:
            result = await self._questions.ask_form(request)
            self._open_questions.pop(request.request_id, None)
            await self._report_errors(
                self.session.request(
                    "session.ui.handlePendingElicitation", requestId=request.request_id, result=result
                )
            )
        self._open_questions.pop(request.request_id, None)

    async def _watch_connection(self) -> None:
        try:
            async with self.client.notifications() as notifications:
                async for _ in notifications:
                    pass
        except ServerGoneError as error:
            self.failure = str(error)
            self.screen.leave()

    async def _handle_signals(self) -> None:
        if sys.platform == "win32":
            # Windows has no SIGHUP, and asyncio cannot receive SIGTERM there.
            return
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
            async for _ in signals:
                self.screen.leave()

    # --- for the screen -----------------------------------------------------------------------------------------

    def live_text(self, height: int) -> str:
        return self.feed.live_text(height)

    def activity(self) -> str:
        return self.feed.activity()

    def status_line(self) -> str:
        """Return model, context usage and folder for the last line of the screen."""
        if not self._ready:
            return "starting"
        folder, home = str(self._questions.folder), str(Path.home())
        if self.screen.painter().width < NARROW:
            folder = self._questions.folder.name
        elif folder == home or folder.startswith(home + os.sep):
            folder = "~" + folder[len(home) :]
        used = f" · {self.feed.context_used:.0%} of context" if self.feed.context_used is not None else ""
        return f"{one_line(self.feed.model or 'no model')}{used} · {one_line(folder)}"

    def submit(self, text: str) -> None:
        self._tasks.start_soon(self._submit, text)

    def interrupt(self) -> bool:
        if not (self._ready and (self.feed.busy or self.feed.compacting)):
            return False
        self._tasks.start_soon(self._report_errors, self.session.abort("the user cancelled"))
        return True

    def expand(self) -> None:
        if self.feed.expanded:
            self.feed.show(self.feed.expanded)
        self.feed.expanded = None

    def completions(self, text: str) -> tuple[int, list[str]]:
        """Return the start of the last word of ``text``, and its completions: commands, or files after an @."""
        if not text.startswith("/") or any(char.isspace() for char in text):
            return completions(text, self._questions.folder)
        names = dict.fromkeys([*commands.COMMANDS, *(command["name"] for command in self.server_commands)])
        return 0, [f"/{name}" for name in names if f"/{name}".startswith(text.lower())]

    async def _submit(self, text: str) -> None:
        command = commands.parse(text)
        if not self._ready:
            self.feed.note("still starting", "yellow")
        elif command is not None:
            await self._report_errors(commands.run(self, *command))
        else:
            if self.feed.busy:
                self.feed.queued += 1
            attached = find_attachments(text, self._questions.folder)
            await self._report_errors(self.session.send(text, attachments=attached))

    async def _report_errors(self, call: Any) -> None:
        """Await a call to the server, and show its errors."""
        try:
            await call
        except ServerGoneError:
            return
        except JumpseatClientError as error:
            self.feed.show(self.screen.painter().error(str(error)))
