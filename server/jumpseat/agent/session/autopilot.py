"""Autopilot mode: a session goes on by itself until its model calls ``task_complete``, up to a limit.

An *objective* is a task that the session keeps in a file until it is done. The protocol defines the file: a JSON
object ``{version, nextId, current}``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

import orjson

from jumpseat.agent.clock import utc_now
from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol import events

CONTINUES_FOR_OBJECTIVE: Final = 50
"""Limit on the continuations of one prompt that works on an objective."""
SOURCE: Final = "system"
"""The source of the messages that make the model continue."""

_CONTINUE: Final = (
    "You are in autopilot mode, and task_complete was not called. If work is left, go on with it now, without"
    " asking: decide open questions yourself and note your assumptions. If everything is done and checked, or"
    " nothing more can be done, call task_complete with a summary that says so."
)

StopReason: TypeAlias = Literal["completed", "limit", "disabled", "rejected", "aborted", "error"]
"""The reason why a prompt is not continued: ``limit`` is that on continuations."""


@dataclass(slots=True)
class Objective:
    """A task on which the session works until it is done."""

    id: int
    text: str
    status: Literal["active", "paused", "cap_reached", "completed"]
    created_at: str
    turns: int = 0
    continuations: int = 0
    summary: str | None = None

    def encode(self) -> str:
        """Return the content of the file."""
        current = {
            "id": self.id,
            "objective": self.text,
            "status": self.status,
            "autopilotOrigin": "objective",
            "continuationCount": self.continuations,
            "turnCount": self.turns,
            "tokenCount": 0,
            "creditCountNanoAiu": "0",
            "resumeCount": 0,
            "createdAt": self.created_at,
            "updatedAt": utc_now(),
            **({"completionSummary": self.summary} if self.summary is not None else {}),
        }
        return orjson.dumps({"version": 1, "nextId": self.id + 1, "current": current}).decode()

    @classmethod
    def decode(cls, content: str) -> Objective | None:
        """Parse the file, which clients may write; ``None`` if it is not as the protocol defines it."""
        try:
            whole: Any = orjson.loads(content)
            current = cast("dict[str, Any]", whole["current"])
            status, text, number = current["status"], current["objective"], current["id"]
        except (ValueError, KeyError, TypeError):
            return None
        if status not in ("active", "paused", "cap_reached", "completed"):
            return None
        if not isinstance(text, str) or not isinstance(number, int) or isinstance(number, bool):
            return None
        summary = current.get("completionSummary")
        return cls(
            number,
            text,
            status,
            str(current.get("createdAt") or utc_now()),
            _count(current.get("turnCount")),
            _count(current.get("continuationCount")),
            summary if isinstance(summary, str) else None,
        )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


class Autopilot:
    """The autopilot of one session. ``read`` and ``write`` are for the file of the objective; ``None`` is no file.

    Raises of ``write``: ``StoreError``.
    """

    def __init__(
        self,
        settings: SessionSettings,
        read: Callable[[], str | None],
        write: Callable[[str | None], None],
        emit: Callable[[events.EventPayload], object],
    ) -> None:
        self._settings = settings
        self._read = read
        self._write = write
        self._emit = emit
        self._continues = 0
        self._summary: str | None = None
        self._reason: StopReason = "completed"

    @property
    def on(self) -> bool:
        """Return whether the session is in autopilot mode."""
        return self._settings.mode == "autopilot"

    # --- a prompt -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a prompt."""
        self._continues, self._summary, self._reason = 0, None, "completed"
        objective = self.objective
        if objective is not None and objective.status == "cap_reached":
            objective.status = "active"
            self._change(objective, "update")

    def complete(self, summary: str) -> None:
        """Record that the model has called ``task_complete``."""
        self._summary = summary

    def end_turn(self) -> None:
        """Publish what a turn has changed: the task may be complete."""
        objective = self.objective if self.on else None
        if objective is not None and objective.status == "active":
            objective.turns += 1
        if self._summary is not None:
            number = objective.id if objective is not None else None
            self._emit(events.SessionTaskComplete(summary=self._summary, success=True, objective_id=number))
        if objective is not None and objective.status == "active":
            if self._summary is not None:
                objective.status, objective.summary = "completed", self._summary
                self._change(objective, "update")
            else:
                self._write(objective.encode())

    @property
    def is_complete(self) -> bool:
        """Return whether the running prompt is complete."""
        return self._summary is not None

    def continuation(self) -> str | None:
        """Return the text that makes the model continue a prompt at whose end it has not called ``task_complete``.

        ``None`` ends the prompt.
        """
        if not self.on:
            return None
        if not self._settings.autopilot_continuation:
            self._reason = "disabled"
            return None
        objective = self.objective
        active = objective is not None and objective.status == "active"
        most = CONTINUES_FOR_OBJECTIVE if active else self._settings.autopilot_continues
        if self._continues >= most:
            self._reason = "limit"
            if active and objective is not None:
                objective.status = "cap_reached"
                self._change(objective, "update")
            return None
        self._continues += 1
        if not active or objective is None:
            return _CONTINUE
        objective.continuations += 1
        self._write(objective.encode())
        return f"{_CONTINUE}\n\nThe objective is:\n{objective.text}"

    def stopped(self, reason: StopReason | None = None) -> StopReason:
        """Return why the prompt is not continued; ``reason`` is a failure, or a call that the user has rejected."""
        return reason or ("completed" if self.is_complete else self._reason)

    # --- the objective ------------------------------------------------------------------------------------------

    @property
    def objective(self) -> Objective | None:
        """Return the objective, if there is a valid one."""
        content = self._read()
        return None if content is None else Objective.decode(content)

    def set_objective(self, text: str) -> Objective:
        """Give the session a new objective.

        Raises:
            StoreError: it cannot be stored.
        """
        known = self.objective
        objective = Objective((known.id + 1) if known is not None else 1, text, "active", utc_now())
        self._change(objective, "create")
        return objective

    def _change(self, objective: Objective, operation: Literal["create", "update"]) -> None:
        self._write(objective.encode())
        status = objective.status
        self._emit(events.SessionAutopilotObjectiveChanged(operation=operation, id=objective.id, status=status))
