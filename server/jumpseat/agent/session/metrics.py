"""Usage and code changes of a session, counted from its events."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct, field

from jumpseat.agent.projection import Appliers, Projection
from jumpseat_protocol import events


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
