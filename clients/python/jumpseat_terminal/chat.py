"""``jumpseat chat``: a session, and a screen to talk with it."""

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
from jumpseat_terminal.mentions import completions, mentioned
from jumpseat_terminal.opening import connect, find_session, open_session
from jumpseat_terminal.options import PICK, Settings
from jumpseat_terminal.paint import NARROW
from jumpseat_terminal.questions import Questions
from jumpseat_terminal.safe import one_line
from jumpseat_terminal.screen import Screen

FAILED: Final = 1
REPLAYED_PROMPTS: Final = 10
AUTO_MODE: Final = "auto mode"
"""So much of a resumed session is shown again."""


def main(settings: Settings) -> int:
    """Talk until the user leaves; returns the exit code."""
    if os.environ.get("TERM", "dumb") == "dumb":
        print("error: this terminal cannot move its cursor; there is: jumpseat run -p '...'", file=sys.stderr)
        return FAILED
    # What the client would log belongs on no screen that somebody writes on.
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
    if chat.worth_resuming:
        print(f"\nGo on with it: jumpseat chat --resume {chat.session.id[:8]}")
    return 0


class Chat:
    """One run of the program. ``session`` is the one that is talked with now.

    The methods that :class:`~jumpseat_terminal.screen.Talk` names are called by the screen.
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
        self._own = True
        # What stands open on the screen, by the question or the id: to take it away when it is settled elsewhere.
        self._open: dict[str, anyio.CancelScope] = {}
        self._inputs: dict[str, str] = {}

    @property
    def worth_resuming(self) -> bool:
        """Whether anything was said in the session."""
        return self._ready and bool(self.feed.prompts)

    async def run(self) -> None:
        """Show the screen until the user leaves.

        Raises:
            JumpseatClientError: there is no server.
        """
        async with connect(self.settings) as self.client, anyio.create_task_group() as self._tasks:
            print(
                self.screen.painter().notice(f"jumpseat {self.client.server_version}", "bold"), end="", flush=True
            )
            self.client.on_request("userInput.request", self._input)
            self.client.on_request("autoModeSwitch.request", self._auto_mode)
            self._tasks.start_soon(self._start)
            self._tasks.start_soon(self._watch)
            self._tasks.start_soon(self._obey_signals)
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
        """Leave the session for another one, or for a new one.

        Raises:
            JumpseatClientError: the other one cannot be opened.
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
            on_event=self._see,
            on_permission=self._questions.permission,
            extra={"requestUserInput": True, "requestElicitation": True, "requestAutoModeSwitch": True},
        )
        current = await self.session.request("session.model.getCurrent")
        self.feed.model = current.get("modelId")
        self.server_commands = (await self.session.request("session.commands.list"))["commands"]
        self._ready, self._own = True, session_id is None
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
                if self._own and not self.feed.prompts:
                    # Nobody would look for it.
                    await self.client.delete_session(self.session.id)
                else:
                    await self.session.detach()
                    self._ready = True
            except JumpseatClientError:
                return

    def _greet(self) -> None:
        self.feed.note(f"{self.standing()}\n/help lists the commands")
        if self.feed.model is None:
            # Lists come from providers: nobody waits for them.
            self._tasks.start_soon(self._try, commands.find_model(self))

    async def _replay(self) -> None:
        events = await self.session.messages()
        prompts = [at for at, event in enumerate(events) if isinstance(event.payload, UserMessage)]
        first = prompts[-REPLAYED_PROMPTS] if len(prompts) > REPLAYED_PROMPTS else 0
        if first:
            self.feed.note(f"... {len(prompts) - REPLAYED_PROMPTS} earlier prompts")
        model = self.feed.model
        for event in events[first:]:
            self.feed.take(event)
        self.feed.busy, self.feed.compacting, self.feed.model = False, None, model
        self.feed.calls.clear()
        self.screen.remember(self.feed.prompts)

    # --- what comes ---------------------------------------------------------------------------------------------

    def _see(self, event: Event) -> None:
        self.feed.take(event)
        match event.payload:
            case SessionStart(context=context) | SessionResume(context=context) if context is not None:
                # A session that goes on does so where it was begun.
                self._questions.folder = Path(context.cwd)
            case UserInputRequested(request_id=request_id, question=question):
                self._inputs[request_id] = question
            case UserInputCompleted(request_id=request_id):
                self._settle(self._inputs.pop(request_id, ""))
            case AutoModeSwitchCompleted():
                self._settle(AUTO_MODE)
            case ElicitationRequested() as asked:
                self._tasks.start_soon(self._form, asked)
            case ElicitationCompleted(request_id=request_id):
                self._settle(request_id)
            case _:
                pass
        self.screen.refresh()

    def _settle(self, key: str) -> None:
        if key in self._open:
            self._open[key].cancel()

    async def _input(self, params: dict[str, Any]) -> dict[str, Any]:
        key = str(params.get("question", ""))
        answer: dict[str, Any] = {"answer": "", "wasFreeform": True}
        with anyio.CancelScope() as self._open[key]:
            answer = await self._questions.input(params)
        self._open.pop(key, None)
        return answer

    async def _auto_mode(self, params: dict[str, Any]) -> dict[str, Any]:
        answer: AutoModeSwitchAnswer = "no"
        with anyio.CancelScope() as self._open[AUTO_MODE]:
            answer = await self._questions.auto_mode(params)
        self._open.pop(AUTO_MODE, None)
        return {"response": answer}

    async def _form(self, asked: ElicitationRequested) -> None:
        with anyio.CancelScope() as self._open[asked.request_id]:
            result = await self._questions.form(asked)
            self._open.pop(asked.request_id, None)
            await self._try(
                self.session.request(
                    "session.ui.handlePendingElicitation", requestId=asked.request_id, result=result
                )
            )
        self._open.pop(asked.request_id, None)

    async def _watch(self) -> None:
        try:
            async with self.client.notifications() as notifications:
                async for _ in notifications:
                    pass
        except ServerGoneError as error:
            self.failure = str(error)
            self.screen.leave()

    async def _obey_signals(self) -> None:
        if sys.platform == "win32":
            # There is no SIGHUP, and asyncio cannot receive SIGTERM.
            return
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
            async for _ in signals:
                self.screen.leave()

    # --- for the screen -----------------------------------------------------------------------------------------

    def live(self, height: int) -> str:
        return self.feed.live(height)

    def doing(self) -> str:
        return self.feed.doing()

    def standing(self) -> str:
        """Model, context and place, for the last line."""
        if not self._ready:
            return "starting"
        folder, home = str(self._questions.folder), str(Path.home())
        if self.screen.painter().width < NARROW:
            folder = self._questions.folder.name
        elif folder == home or folder.startswith(home + os.sep):
            folder = "~" + folder[len(home) :]
        used = f" · {self.feed.context_used:.0%} of context" if self.feed.context_used is not None else ""
        return f"{one_line(self.feed.model or 'no model')}{used} · {one_line(folder)}"

    def entered(self, text: str) -> None:
        self._tasks.start_soon(self._entered, text)

    def interrupted(self) -> bool:
        if not (self._ready and (self.feed.busy or self.feed.compacting)):
            return False
        self._tasks.start_soon(self._try, self.session.abort("the user cancelled"))
        return True

    def unfold(self) -> None:
        if self.feed.unfolded:
            self.feed.show(self.feed.unfolded)
        self.feed.unfolded = None

    def completions(self, text: str) -> tuple[int, list[str]]:
        """Where the last word of ``text`` begins, and what could stand there: commands, or files behind an @."""
        if not text.startswith("/") or any(char.isspace() for char in text):
            return completions(text, self._questions.folder)
        names = dict.fromkeys([*commands.COMMANDS, *(one["name"] for one in self.server_commands)])
        return 0, [f"/{name}" for name in names if f"/{name}".startswith(text.lower())]

    async def _entered(self, text: str) -> None:
        command = commands.parse(text)
        if not self._ready:
            self.feed.note("still starting", "yellow")
        elif command is not None:
            await self._try(commands.run(self, *command))
        else:
            if self.feed.busy:
                self.feed.queued += 1
            attached = mentioned(text, self._questions.folder)
            await self._try(self.session.send(text, attachments=attached))

    async def _try(self, call: Any) -> None:
        """Wait for a call to the server; what goes wrong with it is shown."""
        try:
            await call
        except ServerGoneError:
            return
        except JumpseatClientError as error:
            self.feed.show(self.screen.painter().error(str(error)))
