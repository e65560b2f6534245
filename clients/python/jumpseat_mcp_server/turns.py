"""The turns of sessions, which go on between the requests of a client that answers questions in a new request."""

from __future__ import annotations

import logging
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final, Literal
from uuid import uuid4

import anyio
import mcp.types as types
from anyio.abc import TaskGroup

from jumpseat_client import Client, JumpseatClientError, PermissionRequest, Session
from jumpseat_mcp_server.questions import decision_of, form_of
from jumpseat_protocol.events import (
    AssistantMessage,
    SessionError,
    SessionIdle,
    ToolExecutionStart,
    UserMessage,
)
from jumpseat_protocol.permissions import PermissionDecision

log = logging.getLogger(__name__)

Status = Literal["completed", "failed", "cancelled"]
UNANSWERED_S: Final = 900.0
"""The time for the answer to a question, in seconds; then the call is rejected."""


class Question:
    """An open question of a turn."""

    def __init__(self, request: PermissionRequest) -> None:
        self.id = uuid4().hex
        self.form = form_of(request)
        self.decision: PermissionDecision | None = None
        self.answered = anyio.Event()

    def answer(self, answer: types.ElicitResult | None) -> None:
        """Answer the question; ``None`` if nobody can be asked."""
        if not self.answered.is_set():
            self.decision = decision_of(answer)
            self.answered.set()


class Turn:
    """A prompt of a session, and what has become of it. ``id`` cannot be guessed."""

    def __init__(self, session_id: str) -> None:
        self.id = uuid4().hex
        self.session_id = session_id
        self.message_id: str | None = None
        """The id of the prompt, once the session has it."""
        self.began = self.changed = _now()
        """The times of the beginning and of the last change, in ISO 8601."""
        self.status: Status | None = None
        self.text = ""
        self.questions: dict[str, Question] = {}
        self.steps: list[str] = []
        self._news = anyio.Event()

    @property
    def done(self) -> bool:
        return self.status is not None

    def change(self) -> None:
        """Wake whoever waits for something new."""
        self.changed = _now()
        self._news.set()
        self._news = anyio.Event()

    async def wait(self) -> None:
        """Wait for a step, a question or the end."""
        await self._news.wait()

    async def ask(self, request: PermissionRequest) -> PermissionDecision:
        """Ask whether a call may run."""
        question = Question(request)
        self.questions[question.id] = question
        self.change()
        try:
            with anyio.move_on_after(UNANSWERED_S):
                await question.answered.wait()
        finally:
            del self.questions[question.id]
        return question.decision or decision_of(None)


class Turns:
    """The sessions of this program, and their running turns."""

    def __init__(self, client: Client, tasks: TaskGroup) -> None:
        self._client = client
        self._tasks = tasks
        self._sessions: dict[str, Session] = {}
        self._running: dict[str, Turn] = {}

    async def start(self, prompt: str, folder: str, model: str | None) -> Turn:
        """Create a session and send its first prompt.

        Raises:
            JumpseatClientError: the session cannot be created.
        """
        asks = _Asks()
        session = await self._client.create_session(
            on_permission=asks.ask, working_directory=folder, model=model, client_name="mcp-server"
        )
        return self._begin(session, asks, prompt)

    async def go_on(self, session_id: str, prompt: str) -> Turn:
        """Send another prompt to a session.

        Raises:
            JumpseatClientError: there is no such session.
        """
        if (running := self._of_session(session_id)) is not None:
            raise BusyError(f"session {running.session_id} still works on a prompt")
        asks = _Asks()
        session = await self._client.resume_session(session_id, on_permission=asks.ask)
        return self._begin(session, asks, prompt)

    def _begin(self, session: Session, asks: _Asks, prompt: str) -> Turn:
        turn = asks.turn = Turn(session.id)
        self._sessions[session.id] = session
        self._running[turn.id] = turn
        self._tasks.start_soon(self._run, session, turn, prompt)
        return turn

    def find(self, turn_id: str) -> Turn | None:
        """Return a turn that has not been told to its client; ``None`` if there is none."""
        return self._running.get(turn_id)

    def of_message(self, session_id: str, message_id: str) -> Turn | None:
        """Return the turn of a prompt, unless its client has been told the result or has never been told its id."""
        turns = self._running.values()
        return next((one for one in turns if (one.session_id, one.message_id) == (session_id, message_id)), None)

    def forget(self, turn: Turn) -> None:
        """Forget a turn whose result has been told."""
        self._running.pop(turn.id, None)

    def _of_session(self, session_id: str) -> Turn | None:
        turns = self._running.values()
        return next((turn for turn in turns if turn.session_id == session_id and not turn.done), None)

    async def _run(self, session: Session, turn: Turn, prompt: str) -> None:
        failed = ""
        aborted = False
        try:
            async with aclosing(session.stream(prompt)) as events:
                async for event in events:
                    match event.payload:
                        case UserMessage(message_id=id_) if turn.message_id is None:
                            turn.message_id = id_
                            turn.change()
                        case AssistantMessage(content=content) if event.agent_id is None and content:
                            turn.text = content
                        case ToolExecutionStart(tool_name=name) if event.agent_id is None:
                            turn.steps.append(name)
                            turn.change()
                        case SessionError() as error:
                            failed = error.reason
                        case SessionIdle(aborted=True):
                            aborted = True
                        case _:
                            pass
        except JumpseatClientError as error:
            failed = str(error)
        turn.status = "failed" if failed else "cancelled" if aborted else "completed"
        turn.text = failed or turn.text
        turn.change()

    async def abort(self, turn: Turn) -> None:
        """Stop a turn whose caller has gone or has cancelled."""
        for question in list(turn.questions.values()):
            question.answer(None)
        session = self._sessions.get(turn.session_id)
        if session is not None and not turn.done:
            try:
                await session.abort("cancelled by the calling agent")
            except JumpseatClientError as error:
                log.info("session %s cannot be stopped: %s", turn.session_id, error)


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


class BusyError(JumpseatClientError):
    """A session has a prompt already."""


class _Asks:
    """The permission handler of a session, whose turn is known later."""

    turn: Turn | None = None

    async def ask(self, request: PermissionRequest) -> PermissionDecision:
        return decision_of(None) if self.turn is None else await self.turn.ask(request)
