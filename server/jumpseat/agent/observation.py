"""Records of what sessions do, for the log, metrics and traces.

The domain describes each prompt, model call, tool call and question as a record, and measures it with
:meth:`Observers.watch`. What becomes of a record is decided by observers, outside of the domain.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat_protocol.permissions import Decider

CallPurpose: TypeAlias = Literal["turn", "summary", "judge", "sampling", "completion", "side_question"]


class TraceContext(Struct, kw_only=True, eq=False):
    """The trace that a client's request belongs to, as in W3C Trace Context."""

    traceparent: str
    tracestate: str | None = None


class PromptRun(Struct, kw_only=True, eq=False):
    """One prompt, from its start to its end.

    ``error_type`` is that of the ``session.error`` which ended it; ``reason`` is set where the cause is neither a
    provider's nor a model's.
    """

    session_id: str
    prompt_id: str
    interaction_id: str
    text: str
    model: str | None
    agent: str | None = None
    parent: TraceContext | None = None
    opened_in: TraceContext | None = None
    aborted: bool = False
    error_type: str | None = None
    reason: str | None = None
    ms: float = 0.0


class ModelCall(Struct, kw_only=True, eq=False):
    """One attempt to call a model.

    ``first_ms`` is the time to the first event of a streamed answer. ``completed`` is the answer, and ``error`` the
    reason why there is none; neither is set if the call was cancelled. ``agent_id`` is that of a sub-agent.
    """

    session_id: str | None
    purpose: CallPurpose
    resolved: ResolvedModel
    request: ModelRequest
    attempt: int = 1
    turn_id: str | None = None
    interaction_id: str | None = None
    agent_id: str | None = None
    first_ms: float | None = None
    completed: Completed | None = None
    error: Exception | None = None
    ms: float = 0.0


class ToolCall(Struct, kw_only=True, eq=False):
    """One call of a tool. ``kind`` is that of the permission it needs, ``decision`` the last one about it.

    ``reason`` is the rule or mode of that decision, if there is one.
    ``description`` is that of the tool, ``None`` if there is no such tool; ``server`` is the tool's MCP server.
    ``status`` is ``success``, or the reason of the failure as in ``tool.execution_complete``; empty if the call was
    cancelled.
    """

    session_id: str
    call_id: str
    tool: str
    arguments: JsonObject | None
    description: str | None = None
    server: str | None = None
    kind: str | None = None
    decision: Literal["allowed", "denied", "rejected"] | None = None
    decided_by: Decider | None = None
    reason: str = ""
    status: str = ""
    exit_code: int | None = None
    result: str = ""
    ms: float = 0.0


class Question(Struct, kw_only=True, eq=False):
    """One question to clients: for permission, or to run a tool of theirs.

    ``result`` is empty if the question was withdrawn.
    """

    session_id: str
    asks_for: Literal["permission", "tool"]
    call_id: str | None
    kind: str
    tool: str | None = None
    result: str = ""
    ms: float = 0.0


Record: TypeAlias = PromptRun | ModelCall | ToolCall | Question

R = TypeVar("R", PromptRun, ModelCall, ToolCall, Question)


class Observer(Protocol):
    """Translates records. Both methods are called in the task that does the work, and must not block or raise."""

    def begin(self, record: Record) -> None:
        """Note that the work begins."""
        ...

    def end(self, record: Record) -> None:
        """Note that the work has ended; the record is complete."""
        ...

    def trace_context(self) -> TraceContext | None:
        """Return the context to send along with requests to others, or ``None`` outside of traces."""
        ...


class Observers(Struct, frozen=True):
    """The observers of the process. Without any, a watched record costs nothing but itself."""

    observers: Sequence[Observer] = ()

    def watch(self, record: R) -> Watch[R]:
        """Measure the work of a ``with`` statement, which completes ``record``."""
        return Watch(record, self.observers)

    def trace_context(self) -> TraceContext | None:
        """Return the trace context of the running work, to send along with requests to others."""
        for observer in self.observers:
            if (context := observer.trace_context()) is not None:
                return context
        return None


class Watch(Struct, Generic[R]):
    """The measurement of one record, as a context manager."""

    record: R
    observers: Sequence[Observer]
    _started: float = 0.0

    def __enter__(self) -> R:
        for observer in self.observers:
            observer.begin(self.record)
        self._started = time.monotonic()
        return self.record

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        record = self.record
        record.ms = self.since_start_ms()
        if isinstance(record, ModelCall) and isinstance(error, Exception):
            record.error = error
        for observer in reversed(self.observers):
            observer.end(record)

    def since_start_ms(self) -> float:
        """Return the time since the work began."""
        return (time.monotonic() - self._started) * 1000


async def whole_answer(observers: Observers, call: ModelCall) -> Completed | None:
    """Call the model and return its whole answer; ``None`` if the stream ended without one.

    Raises:
        ProviderError: the call failed.
    """
    with observers.watch(call):
        async with call.resolved.model.stream(call.request) as stream:
            async for event in stream:
                if isinstance(event, Completed):
                    call.completed = event
                    return event
    return None


def trace_of(traceparent: str | None, tracestate: str | None) -> TraceContext | None:
    """Return the trace that the params of a request name, if any."""
    return None if traceparent is None else TraceContext(traceparent=traceparent, tracestate=tracestate)


def headers_of(context: TraceContext | None) -> Mapping[str, str]:
    """Return a trace context by the names of its members on the wire."""
    if context is None:
        return {}
    if context.tracestate is None:
        return {"traceparent": context.traceparent}
    return {"traceparent": context.traceparent, "tracestate": context.tracestate}
