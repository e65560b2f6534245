"""Metrics about prompts, model calls and tool calls, by the names of OpenTelemetry's GenAI conventions.

:class:`Measurements` translates records into values; a :class:`Sink` keeps them: for Prometheus, or for
OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Final, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from jumpseat.agent.observation import ModelCall, PromptRun, Question, Record, ToolCall, TraceContext
from jumpseat.errors import JumpseatError

Attributes: TypeAlias = Mapping[str, str | bool]

SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Boundaries of durations, as recommended by the GenAI conventions."""
TOKENS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
COUNTS: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128)

MOST_VALUES: Final = 200
"""The number of different values that one attribute may have; further ones are counted as ``other``.

Clients name models, and models name tools: without a limit, they could fill the memory."""


class Instrument(Struct, frozen=True):
    """A histogram or a counter. ``name`` is that of OpenTelemetry, ``attributes`` the names of its attributes."""

    name: str
    kind: Literal["histogram", "counter"]
    unit: str
    description: str
    attributes: tuple[str, ...]
    boundaries: tuple[float, ...] = ()


_MODEL: Final = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type")

MODEL_DURATION: Final = Instrument(
    "gen_ai.client.operation.duration", "histogram", "s", "Duration of model calls.", _MODEL, SECONDS
)
FIRST_CHUNK: Final = Instrument(
    "gen_ai.client.operation.time_to_first_chunk",
    "histogram",
    "s",
    "Time to the first chunk of streamed answers.",
    _MODEL[:3],
    SECONDS,
)
TOKEN_USAGE: Final = Instrument(
    "gen_ai.client.token.usage",
    "histogram",
    "{token}",
    "Tokens of model calls.",
    (*_MODEL[:3], "gen_ai.token.type"),
    TOKENS,
)
COST: Final = Instrument("jumpseat.cost", "counter", "USD", "Cost of model calls, where it is known.", _MODEL[1:3])
AGENT_DURATION: Final = Instrument(
    "gen_ai.invoke_agent.duration", "histogram", "s", "Duration of prompts.", ("error.type",), SECONDS
)
AGENT_MODEL_CALLS: Final = Instrument(
    "gen_ai.invoke_agent.inference_calls",
    "histogram",
    "{inference_call}",
    "Model calls per prompt.",
    ("error.type",),
    COUNTS,
)
AGENT_TOOL_CALLS: Final = Instrument(
    "gen_ai.invoke_agent.tool_calls", "histogram", "{tool_call}", "Tool calls per prompt.", ("error.type",), COUNTS
)
TURNS: Final = Instrument("github.copilot.agent.turn.count", "counter", "{turn}", "Turns of all prompts.", ())
TOOL_DURATION: Final = Instrument(
    "gen_ai.execute_tool.duration",
    "histogram",
    "s",
    "Duration of tool calls, questions to people included.",
    ("gen_ai.tool.name", "error.type"),
    SECONDS,
)
TOOL_COUNT: Final = Instrument(
    "github.copilot.tool.call.count", "counter", "{call}", "Tool calls.", ("gen_ai.tool.name", "success")
)
TOOL_DECISIONS: Final = Instrument(
    "jumpseat.tool.decisions", "counter", "{call}", "Decisions about tool calls.", ("decision", "by", "kind")
)
QUESTION_DURATION: Final = Instrument(
    "jumpseat.question.duration",
    "histogram",
    "s",
    "Time until clients answered a question.",
    ("asks_for", "kind"),
    SECONDS,
)

INSTRUMENTS: Final = (
    MODEL_DURATION,
    FIRST_CHUNK,
    TOKEN_USAGE,
    COST,
    AGENT_DURATION,
    AGENT_MODEL_CALLS,
    AGENT_TOOL_CALLS,
    TURNS,
    TOOL_DURATION,
    TOOL_COUNT,
    TOOL_DECISIONS,
    QUESTION_DURATION,
)


class Sink(Protocol):
    """Keeps the values of instruments."""

    def add(self, instrument: Instrument, value: float, attributes: Attributes) -> None:
        """Record a value of a histogram, or add it to a counter; every attribute of the instrument is given."""
        ...


class _Run(Struct):
    """The calls of one prompt so far."""

    model_calls: int = 0
    tool_calls: int = 0


class _Values(Struct):
    """The values that attributes have had."""

    by_name: dict[str, set[str]] = field(default_factory=lambda: dict[str, set[str]]())

    def limited(self, name: str, value: str) -> str:
        """Return ``value``, or ``other`` if there are too many."""
        known = self.by_name.setdefault(name, set())
        if value in known or len(known) < MOST_VALUES:
            known.add(value)
            return value
        return "other"


class Measurements:
    """Measures for some sinks."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = sinks
        self._values = _Values()
        # The tasks of a prompt inherit its counts.
        self._run = ContextVar[_Run | None]("jumpseat_measured_run", default=None)

    def begin(self, record: Record) -> None:
        """Count for the prompt that begins, or for the running one."""
        run = self._run.get()
        match record:
            case PromptRun():
                self._run.set(_Run())
            case ModelCall() if run is not None:
                run.model_calls += 1
            case ToolCall() if run is not None:
                run.tool_calls += 1
            case _:
                pass

    def end(self, record: Record) -> None:
        """Measure what has ended."""
        match record:
            case PromptRun():
                self._measure_prompt(record)
            case ModelCall():
                self._measure_model_call(record)
            case ToolCall():
                self._measure_tool_call(record)
            case Question():
                asked = {"asks_for": record.asks_for, "kind": record.kind}
                self._add(QUESTION_DURATION, record.ms / 1000, asked)

    def trace_context(self) -> TraceContext | None:
        """Return ``None``: metrics are no trace."""
        return None

    def _measure_prompt(self, record: PromptRun) -> None:
        run = self._run.get() or _Run()
        self._run.set(None)
        error = {"error.type": "aborted" if record.aborted else record.error_type or ""}
        self._add(AGENT_DURATION, record.ms / 1000, error)
        self._add(AGENT_MODEL_CALLS, run.model_calls, error)
        self._add(AGENT_TOOL_CALLS, run.tool_calls, error)

    def _measure_model_call(self, record: ModelCall) -> None:
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": record.resolved.model.adapter_name,
            "gen_ai.request.model": record.resolved.wire_name,
        }
        self._add(MODEL_DURATION, record.ms / 1000, {**attributes, "error.type": _error_type(record)})
        if record.first_ms is not None:
            self._add(FIRST_CHUNK, record.first_ms / 1000, attributes)
        if record.completed is None:
            return
        if record.purpose == "turn":
            self._add(TURNS, 1, {})
        usage = record.completed.usage
        if usage is not None:
            self._add(TOKEN_USAGE, usage.input_tokens, {**attributes, "gen_ai.token.type": "input"})
            self._add(TOKEN_USAGE, usage.output_tokens, {**attributes, "gen_ai.token.type": "output"})
            if (cost := record.resolved.cost_of(usage)) is not None:
                del attributes["gen_ai.operation.name"]
                self._add(COST, cost, attributes)

    def _measure_tool_call(self, record: ToolCall) -> None:
        ok = record.status == "success"
        # A model may invent names of tools.
        tool = record.tool if record.description is not None else "unknown"
        error = "" if ok else record.status or "cancelled"
        self._add(TOOL_DURATION, record.ms / 1000, {"gen_ai.tool.name": tool, "error.type": error})
        self._add(TOOL_COUNT, 1, {"gen_ai.tool.name": tool, "success": ok})
        if record.decision is not None:
            decided = {"decision": record.decision, "by": record.decided_by or "", "kind": record.kind or ""}
            self._add(TOOL_DECISIONS, 1, decided)

    def _add(self, instrument: Instrument, value: float, attributes: Attributes) -> None:
        limited = {
            name: found if isinstance(found, bool) else self._values.limited(name, found)
            for name, found in attributes.items()
        }
        for sink in self._sinks:
            sink.add(instrument, value, limited)


def _error_type(record: ModelCall) -> str:
    if record.error is not None:
        return record.error.error_type if isinstance(record.error, JumpseatError) else type(record.error).__name__
    return "" if record.completed is not None else "cancelled"
