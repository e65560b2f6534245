"""The time and the usage of the runs of a session: a prompt, and all that follows until the session is idle.

Each moment of a run counts once, as the first of these that applies: it waits for a person, a model answers, a tool
runs, or none of them. So parallel calls count once, and a call that waits for its approval counts as waiting. The
times cannot be had from the log, which has neither the questions of models nor the end of a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from jumpseat.agent.clock import utc_now
from jumpseat.agent.interfaces import RunUsage
from jumpseat.agent.session.metrics import ModelUsage
from jumpseat_protocol import events

Phase: TypeAlias = Literal["waiting", "model", "tools", "other"]

_ASKING: Final = (
    events.PermissionRequested,
    events.UserInputRequested,
    events.ExitPlanModeRequested,
    events.ElicitationRequested,
    events.AutoModeSwitchRequested,
)
_ANSWERED: Final = (
    events.PermissionCompleted,
    events.UserInputCompleted,
    events.ExitPlanModeCompleted,
    events.ElicitationCompleted,
    events.AutoModeSwitchCompleted,
)
_CALLING: Final = (events.TurnStart, events.SessionCompactionStart)
_CALLED: Final = (events.AssistantMessage, events.TurnEnd, events.SessionCompactionComplete)
_COUNTED: Final = frozenset[type[Any]](
    {
        *_ASKING,
        *_ANSWERED,
        *_CALLING,
        *_CALLED,
        events.UserMessage,
        events.ToolExecutionStart,
        events.ToolExecutionComplete,
        events.SessionIdle,
        events.SessionShutdown,
    }
)


class RunClock:
    """Counts the runs of one session. ``used`` returns its usage by model, ``keep`` stores a run that has ended."""

    def __init__(
        self,
        used: Callable[[], Mapping[str, ModelUsage]],
        keep: Callable[[RunUsage], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._used = used
        self._keep = keep
        self._now = now
        self._run: _Running | None = None

    def note(self, event: events.Event) -> None:
        """Note an event of the session or of one of its sub-agents, when it happens."""
        payload = event.payload
        if type(payload) not in _COUNTED:
            return
        if isinstance(payload, events.UserMessage):
            if event.agent_id is None and payload.is_prompt and payload.delivery != "steering":
                self._begin(payload.interaction_id or event.id)
        elif self._run is not None:
            if isinstance(payload, (events.SessionIdle, events.SessionShutdown)):
                self._end()
            else:
                self._run.note(payload, event.agent_id, self._now())

    def running(self) -> tuple[RunUsage, Phase] | None:
        """Return the run that goes on, as it is now, and what it does."""
        if self._run is None:
            return None
        self._run.count(self._now())
        return self._run.with_usage(_sum(self._used())), self._run.phase

    def _begin(self, interaction_id: str) -> None:
        if self._run is not None:
            if self._run.usage.interaction_id == interaction_id:
                return
            self._end()
        usage = RunUsage(interaction_id=interaction_id, started_at=utc_now())
        self._run = _Running(usage, _sum(self._used()), self._now())

    def _end(self) -> None:
        if (run := self._run) is None:
            return
        run.count(self._now())
        self._run = None
        usage = run.with_usage(_sum(self._used()))
        usage.ended_at = utc_now()
        self._keep(usage)


class _Running(Struct):
    """The run that goes on. ``before`` is the usage of the session until then, ``since_s`` the last count."""

    usage: RunUsage
    before: ModelUsage
    since_s: float
    phase: Phase = "other"
    _left_ms: float = 0.0
    _questions: set[str] = field(default_factory=set[str])
    _models: set[str | None] = field(default_factory=set[str | None])
    # Models may use an id again, also while the first call runs.
    _calls: list[tuple[str | None, str]] = field(default_factory=list[tuple[str | None, str]])

    def note(self, payload: Any, agent_id: str | None, now_s: float) -> None:
        """Count the time until an event, and change the phase with it."""
        self.count(now_s)
        if isinstance(payload, _ASKING):
            if not (isinstance(payload, events.PermissionRequested) and payload.resolved_by_hook):
                self._questions.add(payload.request_id)
        elif isinstance(payload, _ANSWERED):
            self._questions.discard(payload.request_id)
        elif isinstance(payload, _CALLING):
            self._models.add(agent_id)
        elif isinstance(payload, _CALLED):
            self._models.discard(agent_id)
        elif isinstance(payload, events.ToolExecutionStart):
            self._calls.append((agent_id, payload.tool_call_id))
        elif (call := (agent_id, payload.tool_call_id)) in self._calls:
            self._calls.remove(call)
        self.phase = (
            "waiting" if self._questions else "model" if self._models else "tools" if self._calls else "other"
        )

    def count(self, now_s: float) -> None:
        """Add the time since the last event to that of the phase."""
        # What is left of a millisecond counts later: thousands of short phases must not disappear.
        passed_ms = (now_s - self.since_s) * 1000 + self._left_ms
        whole = int(passed_ms)
        self.since_s, self._left_ms = now_s, passed_ms - whole
        usage = self.usage
        match self.phase:
            case "waiting":
                usage.waiting_ms += whole
            case "model":
                usage.model_ms += whole
            case "tools":
                usage.tools_ms += whole
            case "other":
                usage.other_ms += whole

    def with_usage(self, now: ModelUsage) -> RunUsage:
        """Return the run with the tokens and the cost since its beginning."""
        spent, usage = now.minus(self.before), self.usage
        usage.input_tokens, usage.output_tokens = spent.input_tokens, spent.output_tokens
        usage.cache_read_tokens, usage.cost_usd = spent.cache_read_tokens, spent.dollars
        return usage


def _sum(used: Mapping[str, ModelUsage]) -> ModelUsage:
    total = ModelUsage()
    for one in used.values():
        total = total.plus(one)
    return total
