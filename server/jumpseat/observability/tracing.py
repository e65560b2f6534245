"""Traces by the GenAI conventions of OpenTelemetry, with the names that the Copilot SDKs know.

One trace per prompt: ``invoke_agent`` with ``chat`` for each model call and ``execute_tool`` for each tool call,
below that ``permission`` and ``external_tool`` for the questions to clients. Loaded only if telemetry is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Token
from typing import Final, TypeAlias

from msgspec import Struct, field
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from jumpseat.agent.observation import ModelCall, PromptRun, Question, Record, ToolCall, TraceContext, headers_of
from jumpseat.errors import JumpseatError
from jumpseat.observability import content
from jumpseat_protocol.version import __version__

AGENT_ID: Final = "jumpseat.default"

Attribute: TypeAlias = str | int | float | bool | Sequence[str]

_RUN: Final = "jumpseat-prompt"


class _Run(Struct):
    """The sums of one prompt, for its span."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    finish_reasons: list[str] = field(default_factory=list[str])
    output: str | None = None


class _Active(Struct, frozen=True):
    span: Span
    token: Token[Context]
    run: _Run | None = None


class Traces:
    """Makes spans of records. ``mask`` removes secrets; with ``capture``, spans have the content of messages."""

    def __init__(self, tracer: Tracer, mask: Callable[[str], str], *, capture: bool) -> None:
        self._tracer = tracer
        self._mask = mask
        self._capture = capture
        self._propagator = TraceContextTextMapPropagator()
        self._active: dict[int, _Active] = {}

    def begin(self, record: Record) -> None:
        """Start the span of a record; spans that begin in the same task, or in tasks of it, are its children."""
        match record:
            case PromptRun():
                span = self._begin_prompt(record)
                run = _Run()
                context = otel_context.set_value(_RUN, run, trace.set_span_in_context(span))
                self._active[id(record)] = _Active(span, otel_context.attach(context), run)
                return
            case ModelCall():
                span = self._start(
                    f"chat {record.resolved.wire_name}", SpanKind.CLIENT, self._of_model_call(record)
                )
            case ToolCall():
                span = self._start(f"execute_tool {record.tool}", SpanKind.INTERNAL, self._of_tool_call(record))
            case Question():
                span = self._start(*_of_question(record))
        self._active[id(record)] = _Active(span, otel_context.attach(trace.set_span_in_context(span)))

    def end(self, record: Record) -> None:
        """End the span of a record."""
        active = self._active.pop(id(record))
        otel_context.detach(active.token)
        span = active.span
        match record:
            case PromptRun():
                self._end_prompt(record, active)
            case ModelCall():
                self._end_model_call(record, span)
            case ToolCall():
                self._end_tool_call(record, span)
            case Question():
                name = "github.copilot.permission.result" if record.asks_for == "permission" else "jumpseat.result"
                span.set_attribute(name, record.result or "cancelled")
        span.end()

    def trace_context(self) -> TraceContext | None:
        """Return the context of the running span."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        if "traceparent" not in carrier:
            return None
        return TraceContext(traceparent=carrier["traceparent"], tracestate=carrier.get("tracestate"))

    # --- prompts ------------------------------------------------------------------------------------------------

    def _begin_prompt(self, record: PromptRun) -> Span:
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": record.session_id,
            "gen_ai.agent.id": f"custom:{record.agent}" if record.agent else AGENT_ID,
            "gen_ai.agent.version": __version__,
            "github.copilot.agent.type": "custom" if record.agent else "builtin",
            "github.copilot.interaction_id": record.interaction_id,
        }
        if record.agent:
            attributes["gen_ai.agent.name"] = record.agent
        if record.model:
            attributes["gen_ai.request.model"] = record.model
        if self._capture:
            attributes["gen_ai.input.messages"] = self._mask(content.user_text(record.text))
        opened_in = self._span_context(record.opened_in)
        return self._tracer.start_span(
            f"invoke_agent {record.agent}" if record.agent else "invoke_agent",
            # A prompt without its own trace begins one: the request that queued it may be long over.
            self._propagator.extract(dict(headers_of(record.parent)), Context()),
            SpanKind.INTERNAL,
            attributes,
            [Link(opened_in)] if opened_in is not None and record.parent is None else None,
        )

    def _end_prompt(self, record: PromptRun, active: _Active) -> None:
        span, run = active.span, active.run
        assert run is not None
        span.set_attribute("github.copilot.turn_count", run.turns)
        span.set_attribute("gen_ai.usage.input_tokens", run.input_tokens)
        span.set_attribute("gen_ai.usage.output_tokens", run.output_tokens)
        if run.finish_reasons:
            span.set_attribute("gen_ai.response.finish_reasons", run.finish_reasons[-1:])
        if run.output is not None:
            span.set_attribute("gen_ai.output.messages", run.output)
        if record.error_type is not None:
            _fail(span, record.error_type)

    def _span_context(self, parent: TraceContext | None) -> SpanContext | None:
        if parent is None:
            return None
        context = self._propagator.extract(dict(headers_of(parent)), Context())
        found = trace.get_current_span(context).get_span_context()
        return found if found.is_valid else None

    # --- model calls --------------------------------------------------------------------------------------------

    def _of_model_call(self, record: ModelCall) -> dict[str, Attribute]:
        request = record.request
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": record.resolved.model.adapter_name,
            "gen_ai.request.model": record.resolved.wire_name,
            "gen_ai.request.stream": request.stream,
            "jumpseat.purpose": record.purpose,
            "jumpseat.attempt": record.attempt,
        }
        if record.session_id is not None:
            attributes["gen_ai.conversation.id"] = record.session_id
        if record.turn_id is not None:
            attributes["github.copilot.turn_id"] = record.turn_id
            attributes["github.copilot.initiator"] = "user" if record.turn_id == "0" else "agent"
        if record.interaction_id is not None:
            attributes["github.copilot.interaction_id"] = record.interaction_id
        if request.max_output_tokens is not None:
            attributes["gen_ai.request.max_tokens"] = request.max_output_tokens
        if request.tools:
            tools = content.tool_definitions(request, content=self._capture)
            attributes["gen_ai.tool.definitions"] = self._mask(tools)
        if self._capture:
            attributes["gen_ai.input.messages"] = self._mask(content.new_messages(request))
            if request.system:
                attributes["gen_ai.system_instructions"] = self._mask(content.instructions(request.system))
        return attributes

    def _end_model_call(self, record: ModelCall, span: Span) -> None:
        if record.first_ms is not None:
            span.set_attribute("gen_ai.response.time_to_first_chunk", record.first_ms / 1000)
        span.set_attribute("github.copilot.server_duration", record.ms)
        if record.error is not None:
            error = record.error
            _fail(span, error.error_type if isinstance(error, JumpseatError) else type(error).__name__)
            return
        completed = record.completed
        if completed is None:
            span.add_event("github.copilot.session.abort", {"github.copilot.abort_reason": "user_initiated"})
            return
        reason = FINISH_REASONS.get(completed.stop_reason, completed.stop_reason)
        span.set_attribute("gen_ai.response.finish_reasons", [reason])
        span.set_attribute("gen_ai.response.model", completed.model or record.resolved.wire_name)
        if completed.response_id is not None:
            span.set_attribute("gen_ai.response.id", completed.response_id)
        usage = completed.usage
        if usage is not None:
            span.set_attribute("gen_ai.usage.input_tokens", usage.input_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", usage.output_tokens)
            if usage.cache_read_tokens:
                span.set_attribute("gen_ai.usage.cache_read.input_tokens", usage.cache_read_tokens)
            if usage.cache_write_tokens:
                span.set_attribute("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens)
            if (cost := record.resolved.cost_of(usage)) is not None:
                span.set_attribute("jumpseat.cost_usd", cost)
        output = self._mask(content.answer(completed.message, reason)) if self._capture else None
        if output is not None:
            span.set_attribute("gen_ai.output.messages", output)
        run = otel_context.get_value(_RUN)
        if isinstance(run, _Run) and record.purpose == "turn":
            run.turns += 1
            run.finish_reasons.append(reason)
            run.output = output
            if usage is not None:
                run.input_tokens += usage.input_tokens
                run.output_tokens += usage.output_tokens

    # --- tool calls ---------------------------------------------------------------------------------------------

    def _of_tool_call(self, record: ToolCall) -> dict[str, Attribute]:
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.conversation.id": record.session_id,
            "gen_ai.tool.name": record.tool,
            "gen_ai.tool.call.id": record.call_id,
            "gen_ai.tool.type": "function",
        }
        if self._capture:
            attributes["gen_ai.tool.call.arguments"] = self._mask(content.encode(record.arguments))
        return attributes

    def _end_tool_call(self, record: ToolCall, span: Span) -> None:
        if record.server is not None:
            span.set_attribute("jumpseat.mcp.server", record.server)
        if self._capture and record.description is not None:
            span.set_attribute("gen_ai.tool.description", record.description)
        if record.decision is not None:
            span.set_attribute("jumpseat.permission.decision", record.decision)
            span.set_attribute("jumpseat.permission.decided_by", record.decided_by or "")
        if record.exit_code is not None:
            span.set_attribute("process.exit.code", record.exit_code)
        if self._capture and record.status:
            span.set_attribute("gen_ai.tool.call.result", self._mask(record.result))
        if record.status != "success":
            _fail(span, record.status or "cancelled")

    # --- all ----------------------------------------------------------------------------------------------------

    def _start(self, name: str, kind: SpanKind, attributes: dict[str, Attribute]) -> Span:
        return self._tracer.start_span(name, kind=kind, attributes=attributes)


FINISH_REASONS: Final = {"end_turn": "stop", "tool_use": "tool_call", "max_tokens": "length"}
"""The conventions' names for the reasons of the end of an answer; others are passed on."""


def _of_question(record: Question) -> tuple[str, SpanKind, dict[str, Attribute]]:
    attributes: dict[str, Attribute] = {"gen_ai.conversation.id": record.session_id}
    if record.asks_for == "permission":
        attributes["github.copilot.permission.kind"] = record.kind
        return "permission", SpanKind.INTERNAL, attributes
    attributes["github.copilot.external_tool.name"] = record.tool or ""
    attributes["github.copilot.external_tool.call_id"] = record.call_id or ""
    return f"external_tool {record.tool}", SpanKind.INTERNAL, attributes


def _fail(span: Span, error_type: str) -> None:
    span.set_attribute("error.type", error_type)
    span.add_event("gen_ai.client.operation.exception", {"exception.type": error_type})
    span.set_status(Status(StatusCode.ERROR, error_type))
