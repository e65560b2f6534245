"""``jumpseat chat``: connects a session to the screen."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Final, Unpack

import anyio
from anyio.abc import TaskGroup

from jumpseat_client import Client, Event, JumpseatClientError, PromptOptions, ServerGoneError, Session
from jumpseat_protocol.events import (
    SessionModeChanged,
    SessionModelChange,
    SessionResume,
    SessionStart,
    UserMessage,
)
from jumpseat_protocol.safe import one_line
from jumpseat_terminal.commands import table
from jumpseat_terminal.commands.models import offer_models
from jumpseat_terminal.commands.sessions import pick_session
from jumpseat_terminal.feed import Call, Feed
from jumpseat_terminal.mentions import completions, find_attachments
from jumpseat_terminal.modes import ModeName, Modes
from jumpseat_terminal.opening import UnknownToolError, connect, find_session, open_session
from jumpseat_terminal.options import PICK, USAGE_ERROR, Settings
from jumpseat_terminal.own_shell import OwnCommand
from jumpseat_terminal.paint import NARROW
from jumpseat_terminal.questions import Questions
from jumpseat_terminal.screen import Screen, Suggestion
from jumpseat_terminal.server_questions import ServerQuestions
from jumpseat_transcript.user_commands import UserCommand, join_prompt
from jumpseat_transcript.words import with_tilde

FAILED: Final = 1
REPLAYED_PROMPTS: Final = 10
"""Number of prompts of a resumed session that are shown again, with all that followed them."""


def main(settings: Settings) -> int:
    """Run a chat until the user leaves, and return the exit code."""
    if os.environ.get("TERM", "dumb") == "dumb":
        print(
            "error: chat needs a terminal with cursor control; otherwise use: jumpseat run '...'",
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
        return chat.exit_code
    if chat.has_prompts:
        print(f"\nResume with: jumpseat chat --resume {chat.session.id[:8]}")
    return 0


class Chat:
    """A run of ``jumpseat chat``. ``session`` is the current session.

    The screen calls the methods of :class:`~jumpseat_terminal.screen.ScreenDelegate`; commands use
    :class:`~jumpseat_terminal.commands.base.Chat`.
    """

    client: Client
    session: Session
    modes: Modes
    _tasks: TaskGroup

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.failure: str | None = None
        self.exit_code = FAILED
        self.server_commands: list[dict[str, Any]] = []
        self.screen = Screen(self, colour=not os.environ.get("NO_COLOR"))
        self.feed = Feed(self.screen.write, self.screen.painter)
        self.questions = Questions(self.screen, self.feed, settings)
        self._ready = False
        self._created_here = True
        self._asked = ServerQuestions(self)
        self._own_command: OwnCommand | None = None
        # Sent before there was a session.
        self._early: list[str] = []
        # Commands of the user that the model has not seen yet.
        self._own_commands: list[UserCommand] = []

    @property
    def has_prompts(self) -> bool:
        """Return whether the session has prompts, and so is worth resuming."""
        return self._ready and bool(self.feed.prompts)

    @property
    def folder(self) -> Path:
        """The session's working directory."""
        return self.questions.folder

    async def run(self) -> None:
        """Show the screen until the user leaves.

        Raises:
            JumpseatClientError: the server could not be started, or ended.
        """
        async with connect(self.settings) as self.client, anyio.create_task_group() as self._tasks:
            print(
                self.screen.painter().notice(f"jumpseat {self.client.server_version}", "bold"), end="", flush=True
            )
            self.client.on_request("userInput.request", self._asked.ask_input)
            self.client.on_request("autoModeSwitch.request", self._asked.ask_auto_mode)
            self.client.on_request("exitPlanMode.request", self._asked.ask_plan)
            self._tasks.start_soon(self._start)
            self._tasks.start_soon(self._watch_connection)
            self._tasks.start_soon(self._handle_signals)
            await self.screen.run()
            if self._own_command is not None:
                self._own_command.cancel()
            self._tasks.cancel_scope.cancel()
            await self._leave_session()

    # --- sessions -----------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        try:
            session_id = await find_session(self.client, self.settings)
            if self.settings.resume == PICK:
                session_id = await pick_session(self)
                if session_id is None:
                    self.screen.leave()
                    return
            await self.change_session(session_id or None)
        except JumpseatClientError as error:
            self.failure = str(error)
            self.exit_code = USAGE_ERROR if isinstance(error, UnknownToolError) else FAILED
            self.screen.leave()

    async def change_session(self, session_id: str | None) -> None:
        """Switch to another session, or to a new one.

        Raises:
            JumpseatClientError: the session cannot be opened.
        """
        if self._ready and session_id == self.session.id:
            return
        await self._leave_session()
        # Prompts wait for the new session; if it cannot be opened, they go to the one before.
        was_ready, self._ready = self._ready, False
        self._take_back_queued()
        self.feed = Feed(self.screen.write, self.screen.painter)
        self.questions = Questions(self.screen, self.feed, self.settings)
        self._own_commands.clear()
        try:
            self.session = await self._open(session_id)
        except JumpseatClientError:
            self._ready = was_ready
            self._submit_early()
            raise
        self.modes = Modes(self.session, yolo=self.settings.yolo)
        self.modes.session_mode = await self.session.request("session.mode.get")
        current = await self.session.request("session.model.getCurrent")
        self.feed.model = current.get("modelId")
        self.server_commands = (await self.session.request("session.commands.list"))["commands"]
        self._ready, self._created_here = True, session_id is None
        self._greet()
        if session_id is not None:
            await self._replay()
        self.screen.starting = False
        self.screen.refresh()
        self._submit_early()

    async def _open(self, session_id: str | None) -> Session:
        return await open_session(
            self.client,
            self.settings,
            session_id,
            on_event=self._on_event,
            on_permission=self.questions.ask_permission,
            extra={
                "requestUserInput": True,
                "requestElicitation": True,
                "requestAutoModeSwitch": True,
                "requestExitPlanMode": True,
            },
        )

    def _submit_early(self) -> None:
        """Submit what was entered while no session was open."""
        early, self._early = self._early, []
        for text in early:
            self.submit(text)

    async def _leave_session(self) -> None:
        if not self._ready:
            return
        self._ready = False
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            try:
                if self.feed.busy:
                    await self.session.abort("the user left")
                # The session may stay live, and be resumed with the usual mode.
                await self.modes.accept_edits(False)
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
            self._tasks.start_soon(self.report_errors, offer_models(self))

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
        self._asked.follow(event.payload)
        match event.payload:
            case SessionStart(context=context) | SessionResume(context=context) if context is not None:
                # A resumed session keeps the folder it was started in.
                self.questions.folder = Path(context.cwd)
            case SessionModeChanged(new_mode=mode) if self._ready:
                self.modes.session_mode = mode
            case SessionModelChange() if self._ready and not self.feed.busy:
                # These waited for a model.
                waiting, self.feed.queued = self.feed.queued, []
                for text in waiting:
                    self.submit(text)
            case _:
                pass
        self.screen.refresh()

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
            waiting = f", then sends: {one_line(self._early[0])}" if self._early else ""
            return f"starting{waiting}"
        folder = self.folder.name if self.screen.painter().width < NARROW else with_tilde(str(self.folder))
        used = f" · {self.feed.context_used:.0%} of context" if self.feed.context_used is not None else ""
        return f"{one_line(self.feed.model or 'no model')}{used} · {one_line(folder)}"

    def mode(self) -> str:
        return self.modes.shown() if self._ready else ""

    def change_mode(self) -> None:
        if self._ready:
            self._tasks.start_soon(self.report_errors, self._change_mode(self.modes.following()))

    def submit(self, text: str) -> None:
        self._tasks.start_soon(self._submit, text)

    def interrupt(self) -> bool:
        if self._own_command is not None:
            self._own_command.cancel()
            return True
        if not (self._ready and (self.feed.busy or self.feed.compacting)):
            return self._take_back_queued()
        self._tasks.start_soon(self.report_errors, self.session.abort("the user cancelled"))
        # The server drops the prompts that wait. The user decides what becomes of them.
        self._take_back_queued()
        return True

    def _take_back_queued(self) -> bool:
        """Put the prompts that wait back into the input; return whether there are any."""
        waiting = self.feed.take_queued()
        if waiting:
            self.screen.asking.add_to_draft(waiting)
        return bool(waiting)

    def expand(self) -> None:
        self.feed.show_full()

    def completions(self, text: str) -> tuple[int, list[Suggestion]]:
        """Return the start of the last word of ``text``, and its completions: commands, or files after an @."""
        if not text.startswith("/") or any(char.isspace() for char in text):
            start, found = completions(text, self.folder)
            return start, [Suggestion(word) for word in found]
        known = table.described(self.server_commands).items()
        return 0, [Suggestion(f"/{name}", about) for name, about in known if f"/{name}".startswith(text.lower())]

    async def send(self, prompt: str, **options: Unpack[PromptOptions]) -> None:
        """Send a prompt, with the files that it mentions and the commands that the user has run before it."""
        if self.feed.busy:
            self.feed.queued.append(options.get("display_prompt") or prompt)
        attached = find_attachments(prompt, self.folder)
        commands, self._own_commands = self._own_commands, []
        options["attachments"] = attached
        await self.session.send(join_prompt(prompt, commands), **options)

    async def _submit(self, text: str) -> None:
        command = table.parse(text)
        if not self._ready:
            self._early.append(text)
        elif text.startswith("!"):
            await self._run_own_command(text[1:].strip())
        elif command is not None:
            await self.report_errors(table.run(self, *command))
        else:
            await self.report_errors(self._send_with_model(text))

    async def _send_with_model(self, prompt: str) -> None:
        """Send a prompt. Without a model, it waits until one is chosen."""
        if self.feed.model is None:
            # Another program may have set up a model.
            current = await self.session.request("session.model.getCurrent")
            self.feed.model = current.get("modelId")
        if self.feed.model is None:
            self.feed.queued.append(prompt)
            self.feed.note(
                "There is no model yet. Your prompt is sent as soon as you choose one with /connect.", "yellow"
            )
        else:
            await self.send(prompt)

    async def _run_own_command(self, line: str) -> None:
        """Run a command of the user's own in the session's folder."""
        if not line:
            self.feed.note("Expected a command after the exclamation mark.", "yellow")
            return
        if self.settings.server is not None:
            self.feed.note("! runs commands on this machine, but the session's folder is the server's.", "yellow")
            return
        if self._own_command is not None:
            self.feed.note("Your last command is still running; ctrl-c ends it.", "yellow")
            return
        shown = Call("!", {"command": line}, running=True)

        def changed() -> None:
            shown.output = own.output
            self.screen.refresh()

        self._own_command = own = OwnCommand(line, self.folder, changed)
        self.feed.own_command = shown
        try:
            done = await own.run()
        except OSError as error:
            self.feed.show(self.screen.painter().error(f"cannot run the command: {error.strerror or error}"))
            return
        finally:
            self._own_command = self.feed.own_command = None
        self.feed.show_own_command(done)
        self._own_commands.append(done)
        self.screen.refresh()

    async def _change_mode(self, mode: ModeName) -> None:
        await self.modes.change(mode)
        self.screen.refresh()

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run ``work`` beside everything else, until the chat ends."""
        self._tasks.start_soon(work)

    async def report_errors(self, call: Awaitable[Any]) -> None:
        """Await a call to the server, and show its errors."""
        try:
            await call
        except ServerGoneError:
            return
        except JumpseatClientError as error:
            self.feed.show(self.screen.painter().error(str(error)))
