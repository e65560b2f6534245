"""Autopilot mode: a session continues by itself until its model calls ``task_complete``, up to a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias, TypeGuard, cast

import orjson
from msgspec import Struct

from jumpseat.agent.clock import utc_now
from jumpseat.agent.projection import Appliers, Projection
from jumpseat.agent.session.metrics import Metrics
from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol import events

ObjectiveStatus: TypeAlias = Literal["active", "paused", "completed"]

LIMIT_REACHED: Final = "the limit on continuations was reached"
MODE_LEFT: Final = "autopilot mode was left"

_MOST: Final = 2**53 - 1
"""The largest integer that every client can read."""


class Objective(Struct):
    """A task on which the session works until it is done. ``tokens`` are those of input and output.

    ``next_id`` is the id of the objective that follows, ``resumes`` counts how often a paused one became active.
    """

    id: int
    text: str
    status: ObjectiveStatus
    created_at: str
    next_id: int
    turns: int = 0
    continuations: int = 0
    tokens: int = 0
    nano_aiu: int = 0
    resumes: int = 0
    summary: str | None = None
    pause_reason: str | None = None

    @classmethod
    def create(cls, number: int, text: str) -> Objective:
        """Return a new, active objective."""
        number = min(number, _MOST)
        return cls(number, text, "active", utc_now(), min(number + 1, _MOST))

    def encode(self) -> str:
        """Return the content of the file."""
        current = {
            "id": self.id,
            "objective": self.text,
            "status": self.status,
            "autopilotOrigin": "objective",
            "continuationCount": self.continuations,
            "turnCount": self.turns,
            "tokenCount": self.tokens,
            "creditCountNanoAiu": str(self.nano_aiu),
            "resumeCount": self.resumes,
            "createdAt": self.created_at,
            "updatedAt": utc_now(),
            **({"completionSummary": self.summary} if self.summary is not None else {}),
            **({"pauseReason": self.pause_reason} if self.pause_reason is not None else {}),
        }
        return orjson.dumps({"version": 1, "nextId": self.next_id, "current": current}).decode()

    @classmethod
    def decode(cls, content: str) -> Objective | None:
        """Parse the file; ``None`` if it is not as the protocol defines it.

        The former status ``cap_reached`` is read as paused.
        """
        try:
            whole: Any = orjson.loads(content)
            current = cast("dict[str, Any]", whole["current"])
            text, number, written = current["objective"], current["id"], current["status"]
        except (ValueError, KeyError, TypeError):
            return None
        status, reason = (
            ("paused", LIMIT_REACHED) if written == "cap_reached" else (written, _text(current, "pauseReason"))
        )
        if status not in ("active", "paused", "completed") or not isinstance(text, str) or not _is_count(number):
            return None
        return cls(
            number,
            text,
            status,
            _text(current, "createdAt") or utc_now(),
            max(_count(whole, "nextId"), min(number + 1, _MOST)),
            _count(current, "turnCount"),
            _count(current, "continuationCount"),
            _count(current, "tokenCount"),
            _credits(current.get("creditCountNanoAiu")),
            _count(current, "resumeCount"),
            _text(current, "completionSummary"),
            reason if status == "paused" else None,
        )

    def work(self, tokens: int, nano_aiu: int) -> None:
        """Count a turn and its usage."""
        self.turns = min(self.turns + 1, _MOST)
        self.tokens = min(self.tokens + tokens, _MOST)
        self.nano_aiu = min(self.nano_aiu + nano_aiu, _MOST)

    def resume(self) -> None:
        """Make a paused objective active."""
        self.status, self.pause_reason, self.resumes = "active", None, min(self.resumes + 1, _MOST)

    def pause(self, reason: str) -> None:
        """Stop the work on the objective until it is resumed."""
        self.status, self.pause_reason = "paused", reason

    def complete(self, summary: str) -> None:
        """End the work on the objective."""
        self.status, self.summary = "completed", summary


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _count(table: dict[str, Any], key: str) -> int:
    value = table.get(key)
    return value if _is_count(value) else 0


def _text(table: dict[str, Any], key: str) -> str | None:
    value = table.get(key)
    return value if isinstance(value, str) else None


def _credits(value: Any) -> int:
    """Parse a count of credits, which the file has as a string of digits."""
    if not isinstance(value, str) or not (value.isascii() and value.isdigit()) or len(value) > len(str(_MOST)):
        return 0
    return min(int(value), _MOST)


SOURCE: Final = "system"
"""The source of the messages that make the model continue."""

_CONTINUE: Final = (
    "You are in autopilot mode, and task_complete was not called. If work is left, go on with it now, without"
    " asking: decide open questions yourself and note your assumptions. If everything is done and checked, or"
    " nothing more can be done, call task_complete with a summary that says so."
)

StopReason: TypeAlias = Literal["completed", "limit", "disabled", "rejected", "aborted", "error"]
"""The reason why a prompt is not continued: ``limit`` is that on continuations."""


class ObjectiveFile(Protocol):
    """The file of the objective; its content is ``None`` if there is no file."""

    def read_objective(self) -> str | None:
        """Return the content."""
        ...

    def write_objective(self, content: str | None) -> None:
        """Replace the content.

        Raises:
            StoreError: the file cannot be written.
        """
        ...


class Autopilot(Projection):
    """The autopilot of one session. ``most`` limits the continuations of one prompt, whatever clients ask for.

    It is not ``available`` to sub-agents.

    Its methods concern the running prompt, unless they are about the objective. A prompt in another mode is
    followed too, because the mode may change while it runs.
    """

    def __init__(
        self,
        settings: SessionSettings,
        metrics: Metrics,
        file: ObjectiveFile,
        emit: Callable[[events.EventPayload], object],
        *,
        most: int,
        available: bool = True,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._file = file
        self._emit = emit
        self._most = most
        self._available = available
        self._continues = 0
        self._summary: str | None = None
        self._reached = False
        self._reason: StopReason = "completed"
        # The tokens and credits of the session when the usage of the objective was last counted.
        self._counted = (0, 0)
        # The prompts that have ended in another mode since the session was idle.
        self._ended: list[tuple[str, StopReason]] = []
        self._last_id = 0

    @property
    def on(self) -> bool:
        """Return whether the session is in autopilot mode."""
        return self._available and self._settings.mode == "autopilot"

    def _count_objective(self, payload: events.SessionAutopilotObjectiveChanged) -> None:
        self._last_id = max(self._last_id, payload.id or 0)

    appliers: ClassVar[Appliers] = {events.SessionAutopilotObjectiveChanged: _count_objective}

    # --- a prompt -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a prompt. In autopilot mode, it resumes a paused objective."""
        self._continues, self._reason, self._reached = 0, "completed", False
        self.reopen()
        objective = self.objective if self.on else None
        if objective is not None and objective.status == "active":
            # Counts what was used since its last turn: that turn may have been aborted.
            return
        self._counted = self._usage()
        if objective is not None and objective.status == "paused":
            objective.resume()
            self._change(objective, "update")

    def complete(self, summary: str) -> None:
        """Record that the model has called ``task_complete``."""
        self._summary = summary

    def reopen(self) -> None:
        """Forget that the task is complete: there is more to do."""
        self._summary = None

    def end_turn(self, *, again: bool) -> None:
        """Publish what a turn has changed: the task may be complete, unless the model is called ``again``."""
        if again:
            # A hook has refused the call of `task_complete`.
            self.reopen()
        usage, before = self._usage(), self._counted
        self._counted = usage
        objective = self._active_objective()
        if self._summary is not None:
            number = objective.id if objective is not None else None
            self._emit(events.SessionTaskComplete(summary=self._summary, success=True, objective_id=number))
        if objective is None:
            return
        objective.work(*(max(0, now - then) for now, then in zip(usage, before, strict=True)))
        if self._summary is not None:
            self._reached = True
            objective.complete(self._summary)
            self._change(objective, "update")
        else:
            self._file.write_objective(objective.encode())

    @property
    def is_complete(self) -> bool:
        """Return whether the running prompt is complete."""
        return self._summary is not None

    @property
    def has_reached_objective(self) -> bool:
        """Return whether the running prompt has completed the objective, with which autopilot mode ends."""
        return self.on and self._reached

    def continuation(self) -> str | None:
        """Return the text that makes the model continue a prompt at whose end it has not called ``task_complete``.

        ``None`` ends the prompt.
        """
        if not self.on or self.is_complete:
            return None
        if not self._settings.options.autopilot.continuation_enabled:
            self._reason = "disabled"
            return None
        objective = self._active_objective()
        most = (
            self._most if objective is not None else min(self._settings.options.autopilot.max_continues, self._most)
        )
        if self._continues >= most:
            self._reason = "limit"
            if objective is not None:
                objective.pause(LIMIT_REACHED)
                self._change(objective, "update")
            return None
        self._continues += 1
        if objective is None:
            return _CONTINUE
        objective.continuations += 1
        self._file.write_objective(objective.encode())
        return f"{_CONTINUE}\n\nThe objective is:\n{objective.text}"

    def end(self, message_ids: Iterable[str], reason: StopReason | None = None) -> None:
        """Publish that a prompt in autopilot mode is not continued; ``message_ids`` are those of its messages.

        ``reason`` is a failure, or a call that the user has rejected. A prompt in another mode is published if the
        session becomes idle in autopilot mode: clients wait for that event then.
        """
        stopped: StopReason = reason or ("completed" if self.is_complete else self._reason)
        if self._available:
            self._ended.extend((message_id, stopped) for message_id in message_ids)
        if self.on:
            self.settle()

    def settle(self) -> None:
        """Publish the prompts that have ended, if the session is in autopilot mode when it becomes idle."""
        ended, self._ended = self._ended, []
        if self.on:
            for message_id, reason in ended:
                self._emit(events.SessionAutopilotStopped(reason=reason, request_id=message_id))

    def _usage(self) -> tuple[int, int]:
        return self._metrics.tokens, self._metrics.nano_aiu

    # --- the objective ------------------------------------------------------------------------------------------

    @property
    def objective(self) -> Objective | None:
        """Return the objective, if there is a valid one."""
        content = self._file.read_objective()
        return None if content is None else Objective.decode(content)

    def set_objective(self, text: str) -> Objective:
        """Give the session a new objective, with an id that none has had before.

        Raises:
            StoreError: it cannot be stored.
        """
        known = self.objective
        objective = Objective.create(max(known.next_id if known is not None else 1, self._last_id + 1), text)
        self._counted = self._usage()
        self._change(objective, "create")
        return objective

    def clear_objective(self) -> bool:
        """Remove the objective; returns ``False`` if there is none.

        Raises:
            StoreError: it cannot be removed.
        """
        existed = self._file.read_objective() is not None
        if existed:
            self._file.write_objective(None)
            self._emit(events.SessionAutopilotObjectiveChanged(operation="delete"))
        return existed

    def leave(self) -> None:
        """Pause the objective, because the session leaves autopilot mode.

        Raises:
            StoreError: it cannot be stored.
        """
        objective = self.objective
        if objective is not None and objective.status == "active":
            objective.pause(MODE_LEFT)
            self._change(objective, "update")

    def _active_objective(self) -> Objective | None:
        """Return the objective that the session works on."""
        objective = self.objective if self.on else None
        return objective if objective is not None and objective.status == "active" else None

    def _change(self, objective: Objective, operation: Literal["create", "update"]) -> None:
        self._file.write_objective(objective.encode())
        status = objective.status
        self._emit(events.SessionAutopilotObjectiveChanged(operation=operation, id=objective.id, status=status))
