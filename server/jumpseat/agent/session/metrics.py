"""Usage, code changes and runs of a session, counted from its events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Struct, field

from jumpseat.agent.clock import utc_now
from jumpseat.agent.interfaces import RunUsage
from jumpseat.agent.projection import Appliers, Projection
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


class ModelUsage(Struct):
    """The calls of one model, and their tokens."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    dollars: float | None = None

    def add(self, call: events.AssistantUsage | events.CompactionTokensUsed) -> None:
        """Count one call, without its reasoning tokens."""
        self.calls += 1
        self.input_tokens += call.input_tokens
        self.output_tokens += call.output_tokens
        self.cache_read_tokens += call.cache_read_tokens
        self.cache_write_tokens += call.cache_write_tokens

    def add_cost(self, dollars: float | None) -> None:
        """Add the cost of a call, if it is known."""
        if dollars is not None:
            self.dollars = (self.dollars or 0.0) + dollars

    def wire(self) -> dict[str, Any]:
        """Return the wire form: ``{requests: {count, cost}, usage: {...}, costUsd?}``.

        ``costUsd``, an addition of this server, is missing if no price is known.
        """
        known = {} if self.dollars is None else {"costUsd": self.dollars}
        return {
            "requests": {"count": self.calls, "cost": 0},
            "usage": {
                "inputTokens": self.input_tokens,
                "outputTokens": self.output_tokens,
                "cacheReadTokens": self.cache_read_tokens,
                "cacheWriteTokens": self.cache_write_tokens,
                "reasoningTokens": self.reasoning_tokens,
            },
            **known,
        }

    def minus(self, part: ModelUsage) -> ModelUsage:
        """Return what is left without ``part``."""
        return ModelUsage(
            calls=self.calls - part.calls,
            input_tokens=self.input_tokens - part.input_tokens,
            output_tokens=self.output_tokens - part.output_tokens,
            cache_read_tokens=self.cache_read_tokens - part.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens - part.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens - part.reasoning_tokens,
            dollars=None if self.dollars is None else self.dollars - (part.dollars or 0.0),
        )

    def plus(self, earlier: ModelUsage) -> ModelUsage:
        """Return the sum of both."""
        known = [dollars for dollars in (self.dollars, earlier.dollars) if dollars is not None]
        return ModelUsage(
            calls=self.calls + earlier.calls,
            input_tokens=self.input_tokens + earlier.input_tokens,
            output_tokens=self.output_tokens + earlier.output_tokens,
            cache_read_tokens=self.cache_read_tokens + earlier.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + earlier.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + earlier.reasoning_tokens,
            dollars=sum(known) if known else None,
        )


class Metrics(Struct, Projection):
    """Counters that are updated with every event of a session.

    Usage events are not in the log, so usage counts from the opening of the session in this process; ``earlier`` is
    that before. Diffs are in the log, so code changes count from the start of the session. ``files_count`` is the
    number of changed files that a host has set.
    """

    user_requests: int = 0
    api_ms: int = 0
    last_input_tokens: int = 0
    last_output_tokens: int = 0
    nano_aiu: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    files: dict[str, None] = field(default_factory=dict[str, None])
    files_count: int | None = None
    models: dict[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    earlier: dict[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])

    def apply_of_agent(self, payload: events.EventPayload | events.UnknownPayload) -> None:
        """Update the counters with an event of a sub-agent, which says nothing about the user's requests."""
        requests, last = self.user_requests, (self.last_input_tokens, self.last_output_tokens)
        self.apply(payload)
        self.user_requests, (self.last_input_tokens, self.last_output_tokens) = requests, last

    def models_wire(self) -> dict[str, Any]:
        """Return the usage of each model in wire form, by name."""
        return {name: usage.wire() for name, usage in self.models.items()}

    def total(self) -> dict[str, ModelUsage]:
        """Return the usage of each model from the start of the session."""
        unused = ModelUsage()
        names = [*self.earlier, *(name for name in self.models if name not in self.earlier)]
        return {name: self.models.get(name, unused).plus(self.earlier.get(name, unused)) for name in names}

    @property
    def tokens(self) -> int:
        """Return the tokens of input and output of all calls in this process."""
        return sum(used.input_tokens + used.output_tokens for used in self.models.values())

    def set_code_changes(self, added: int, removed: int, files: int | None) -> None:
        """Replace the counts of changed lines, and of files if that is known, by those of a host."""
        self.lines_added, self.lines_removed = added, removed
        self.files_count = self.files_count if files is None else files

    def add(self, other: Metrics) -> None:
        """Add the usage of another session in this process."""
        self.api_ms += other.api_ms
        self.nano_aiu += other.nano_aiu
        self.models |= {name: used.plus(self._of_model(name)) for name, used in other.models.items()}

    def subtract(self, part: Metrics) -> None:
        """Take away the usage of a part of the session."""
        self.api_ms -= part.api_ms
        self.nano_aiu -= part.nano_aiu
        self.models |= {name: self._of_model(name).minus(used) for name, used in part.models.items()}

    def count_compaction(self, used: events.CompactionTokensUsed, dollars: float | None) -> None:
        """Count a call without a usage event, such as that for a summary; ``dollars`` is its cost, if known."""
        self.api_ms += used.duration or 0
        self.nano_aiu += used.copilot_usage.total_nano_aiu if used.copilot_usage else 0
        of_model = self._of_model(used.model or "")
        of_model.add(used)
        of_model.add_cost(dollars)

    def _of_model(self, name: str) -> ModelUsage:
        return self.models.setdefault(name, ModelUsage())

    def _count_call(self, call: events.AssistantUsage) -> None:
        self.user_requests += call.initiator == "user"
        self.api_ms += call.duration
        self.nano_aiu += call.copilot_usage.total_nano_aiu if call.copilot_usage else 0
        self.last_input_tokens = call.input_tokens
        self.last_output_tokens = call.output_tokens
        used = self._of_model(call.model)
        used.add(call)
        used.reasoning_tokens += call.reasoning_tokens or 0
        used.add_cost(call.cost_usd)

    def _count_result(self, payload: events.ToolExecutionComplete) -> None:
        if payload.success and payload.result is not None and payload.result.detailed_content is not None:
            self._count_diff(payload.result.detailed_content)

    def _count_diff(self, diff: str) -> None:
        """Count the changes in a unified diff of one file; other texts are ignored."""
        before, _, rest = diff.partition("\n")
        after, _, hunks = rest.partition("\n")
        if not before.startswith("--- ") or not after.startswith("+++ b/"):
            return
        self.files[after.removeprefix("+++ b")] = None
        self.lines_added += f"\n{hunks}".count("\n+")
        self.lines_removed += f"\n{hunks}".count("\n-")

    appliers: ClassVar[Appliers] = {events.AssistantUsage: _count_call, events.ToolExecutionComplete: _count_result}


class RunClock:
    """Counts the time and the usage of the runs of one session: a prompt, and all until the session is idle.

    Each moment of a run counts once, as the first of these that applies: it waits for a person, a model answers, a
    tool runs, or none of them. So parallel calls count once, and a call that waits for its approval counts as
    waiting. The times cannot be had from the log, which has neither the questions of models nor the end of a run.
    ``used`` returns the usage by model, ``keep`` stores a run that has ended.
    """

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
