"""Autopilot mode: a session goes on by itself until its model calls ``task_complete``, up to a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol, TypeAlias

from jumpseat.agent.session.metrics import Metrics
from jumpseat.agent.session.objective import LIMIT_REACHED, MODE_LEFT, Objective
from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol import events

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


class Autopilot:
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

    def apply(self, payload: events.EventPayload | events.UnknownPayload) -> None:
        """Count the objectives in the events of the session."""
        if isinstance(payload, events.SessionAutopilotObjectiveChanged):
            self._last_id = max(self._last_id, payload.id or 0)

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
