"""Answer the questions that the server asks its client, and withdraw those that are settled elsewhere.

Permission requests are not among them: they come through the client's own handler.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol

import anyio

from jumpseat_client import Session
from jumpseat_protocol.events import (
    AutoModeSwitchAnswer,
    AutoModeSwitchCompleted,
    ElicitationCompleted,
    ElicitationRequested,
    EventPayload,
    ExitPlanModeCompleted,
    UnknownPayload,
    UserInputCompleted,
    UserInputRequested,
)
from jumpseat_terminal.modes import Modes
from jumpseat_terminal.questions import Questions

AUTO_MODE: Final = "auto mode"
"""Key of the open question about a change to the model ``auto``."""
PLAN: Final = "plan"
"""Key of the open question about a plan."""


class Chat(Protocol):
    """The chat that asks the user."""

    @property
    def session(self) -> Session: ...
    @property
    def modes(self) -> Modes: ...
    @property
    def questions(self) -> Questions: ...
    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None: ...
    async def report_errors(self, call: Awaitable[Any]) -> None: ...


class ServerQuestions:
    """The open questions of the server."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        # By request id, question text or one of the keys above.
        self._open: dict[str, anyio.CancelScope] = {}
        self._inputs: dict[str, str] = {}

    def follow(self, payload: EventPayload | UnknownPayload) -> None:
        """Ask what an event asks, and withdraw a question that an event settles."""
        match payload:
            case UserInputRequested(request_id=request_id, question=question):
                self._inputs[request_id] = question
            case UserInputCompleted(request_id=request_id):
                self._withdraw(self._inputs.pop(request_id, ""))
            case AutoModeSwitchCompleted():
                self._withdraw(AUTO_MODE)
            case ExitPlanModeCompleted():
                self._withdraw(PLAN)
            case ElicitationRequested() as request:
                self._chat.start(partial(self._ask_form, request))
            case ElicitationCompleted(request_id=request_id):
                self._withdraw(request_id)
            case _:
                pass

    def _withdraw(self, key: str) -> None:
        if key in self._open:
            self._open[key].cancel()

    async def ask_input(self, params: dict[str, Any]) -> dict[str, Any]:
        """Answer ``userInput.request``."""
        key = str(params.get("question", ""))
        answer: dict[str, Any] = {"answer": "", "wasFreeform": True}
        with anyio.CancelScope() as self._open[key]:
            answer = await self._chat.questions.ask_input(params)
        self._open.pop(key, None)
        return answer

    async def ask_auto_mode(self, params: dict[str, Any]) -> dict[str, Any]:
        """Answer ``autoModeSwitch.request``."""
        answer: AutoModeSwitchAnswer = "no"
        with anyio.CancelScope() as self._open[AUTO_MODE]:
            answer = await self._chat.questions.ask_auto_mode(params)
        self._open.pop(AUTO_MODE, None)
        return {"response": answer}

    async def ask_plan(self, params: dict[str, Any]) -> dict[str, Any]:
        """Answer ``exitPlanMode.request``."""
        answer: dict[str, Any] = {"approved": False}
        with anyio.CancelScope() as self._open[PLAN]:
            answer = await self._chat.questions.ask_plan(params)
        self._open.pop(PLAN, None)
        if answer.get("autoApproveEdits"):
            await self._chat.report_errors(self._chat.modes.accept_edits(True))
        return answer

    async def _ask_form(self, request: ElicitationRequested) -> None:
        with anyio.CancelScope() as self._open[request.request_id]:
            result = await self._chat.questions.ask_form(request)
            self._open.pop(request.request_id, None)
            await self._chat.report_errors(
                self._chat.session.request(
                    "session.ui.handlePendingElicitation", requestId=request.request_id, result=result
                )
            )
        self._open.pop(request.request_id, None)
