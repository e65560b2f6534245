"""Call the model: stream its deltas to clients, retry failed calls, and announce the answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.agent.conversation import tokens
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.conversation.provider_blocks import citations_of, provider_blocks
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import (
    MOST_CALLS,
    TOO_MANY_CALLS,
    BlockCompleted,
    Completed,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolOrigin,
    Usage,
)
from jumpseat.agent.model_calls.answer_so_far import AnswerSoFar
from jumpseat.agent.model_calls.arguments import repair_calls
from jumpseat.agent.model_calls.auto_mode import SwitchToAutoError, auto_mode_for, is_model_limit
from jumpseat.agent.model_calls.call_ids import distinct_id, distinguish_calls
from jumpseat.agent.model_calls.refused_media import may_refuse_media, reductions, settle, with_notes
from jumpseat.agent.model_calls.requests import (
    with_tool_protocol,
    with_written_calls,
    without_native_tools,
)
from jumpseat.agent.model_calls.structured import with_response_format
from jumpseat.agent.observation import ModelCall, Watch, whole_answer
from jumpseat.agent.secrets import Delta, MaskedDeltas
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.errors import (
    JumpseatError,
    ProviderError,
    ProviderLoadingError,
    ProviderProtocolError,
    ProviderRequestError,
    ProviderToolsError,
    StoreError,
)
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import ErrorOccurredOutput

log = logging.getLogger(__name__)

A = TypeVar("A")

Call: TypeAlias = Callable[[ResolvedModel, ModelRequest], Awaitable[A]]
"""Calls a model with a request."""

DELTAS_PER_DRAIN: Final = 64
"""The number of deltas after which slow clients are waited for."""

LONG_ARGUMENTS_CHARS: Final = 64 * 1024


class Answer(Struct):
    """An answer with the ids of its deltas, and its timing in milliseconds."""

    completed: Completed
    message_id: str
    reasoning_id: str
    duration_ms: int
    first_token_ms: int | None


async def ask_model(
    session: Session, prompt: Prompt, resolved: ResolvedModel, request: ModelRequest, turn_id: str
) -> Answer:
    """Call the model and return its answer.

    A provider that rejects tools gets them as text instead, and one that rejects pictures or documents gets notes.

    Raises:
        SwitchToAutoError: the user wants to continue with another model.
        ProviderError: all attempts failed.
    """
    return await _call_with_fallback(
        session, resolved, request, lambda ready, sent: _call_model(session, prompt, ready, sent, turn_id)
    )


async def ask_quietly(session: Session, resolved: ResolvedModel, request: ModelRequest) -> Completed:
    """Call the model outside a turn, without deltas and hooks, and return its answer.

    Raises:
        ProviderError: all attempts failed.
    """
    return await _call_with_fallback(
        session, resolved, request, lambda ready, sent: _call_quietly(session, ready, sent)
    )


async def _call_with_fallback(session: Session, resolved: ResolvedModel, request: ModelRequest, call: Call[A]) -> A:
    """Run ``call`` with a model and a request that the provider accepts."""
    try:
        return await _call_with_media(session, resolved, request, call)
    except ProviderError as error:
        resolved.explain_failure(error)
        raise


async def _call_with_media(session: Session, resolved: ResolvedModel, request: ModelRequest, call: Call[A]) -> A:
    """Run ``call``; again with ever fewer pictures and documents as long as those may be rejected."""
    try:
        return await _call_with_editing(session, resolved, request, call)
    except ProviderError as error:
        if not may_refuse_media(error, request):
            raise
        refused = error
    for reduction in reductions(request, refused):
        try:
            answer = await _call_with_editing(session, resolved, reduction.request, call)
        except ProviderError as error:
            if not may_refuse_media(error, request):
                raise
        else:
            settle(session, resolved, reduction, refused)
            return answer
    raise refused


async def _call_with_editing(session: Session, resolved: ResolvedModel, request: ModelRequest, call: Call[A]) -> A:
    """Run ``call``; once more without the request for context editing if that is rejected."""
    try:
        return await _call_with_tools(session, resolved, request, call)
    except ProviderRequestError as error:
        if not _refuses_editing(error, request):
            raise
        refused = error
    answer = await _call_with_tools(session, resolved, replace(request, context_editing=None), call)
    from jumpseat.agent.model_calls.context_editing import settle_refusal

    settle_refusal(session, resolved, refused)
    return answer


def _refuses_editing(error: ProviderError, request: ModelRequest) -> bool:
    if request.context_editing is None:
        return False
    # Imported late: off by default.
    from jumpseat.agent.model_calls.context_editing import is_refusal

    return is_refusal(error)


async def _call_with_tools(session: Session, resolved: ResolvedModel, request: ModelRequest, call: Call[A]) -> A:
    """Run ``call``; once more without native tools if those are rejected."""
    request = with_notes(request)
    try:
        return await call(_ready(resolved, request), request)
    except ProviderToolsError as error:
        other = without_native_tools(resolved) if request.tools else None
        if other is None:
            raise
        text = f"{resolved.info.id} rejects tools ({error}). It is asked again, to call them as XML in its text."
        session.emit(events.SessionWarning(warning_type="tool_protocol", message=text))
    answer = await call(_ready(other, request), request)
    session.services.models.learn(resolved, tools=False)
    return answer


def _ready(resolved: ResolvedModel, request: ModelRequest) -> ResolvedModel:
    """Return the model with all that it does not do itself: tools, calls in its text, the response format."""
    return with_response_format(with_written_calls(with_tool_protocol(resolved)), request)


async def _call_quietly(session: Session, resolved: ResolvedModel, request: ModelRequest) -> Completed:
    policy = session.services.retry
    attempt = 0
    while True:
        attempt += 1
        call = ModelCall(
            session_id=session.id,
            purpose="summary",
            resolved=resolved,
            request=request,
            attempt=attempt,
            agent_id=None if session.identity is None else session.identity.id,
        )
        try:
            completed = await whole_answer(session.services.observers, call)
        except ProviderError as error:
            _report_failure(session, call, error)
            wait_s = policy.wait_s(error, attempt)
            if wait_s is None:
                raise
        else:
            assert completed is not None, "a model stream must end in Completed or raise"
            return completed
        await anyio.sleep(wait_s)


def _report_failure(session: Session, call: ModelCall, error: ProviderError) -> None:
    session.emit(
        events.ModelCallFailure(
            source="top_level" if session.identity is None else "subagent",
            model=call.resolved.wire_name,
            status_code=error.status,
            error_code=error.code,
            error_type=error.error_type,
            error_message=str(error),
            duration_ms=int(call.ms),
        )
    )


async def _call_model(
    session: Session, prompt: Prompt, resolved: ResolvedModel, request: ModelRequest, turn_id: str
) -> Answer:
    """Call the model with retries. An answer that breaks after clients have seen text of it is continued.

    Raises:
        SwitchToAutoError: the user wants to continue with another model.
        ProviderError: all attempts failed.
    """
    policy = session.services.retry
    attempt = 0
    # The retries left that the errorOccurred hook has requested; ``None`` until it was called, once per call.
    retries_left: int | None = None
    # Whether the user was asked to switch to another model, once per call.
    switch_offered = False
    streamed = AnswerSoFar()
    wait_s: float | None = 0.0
    while True:
        attempt += 1
        call = ModelCall(
            session_id=session.id,
            purpose="turn",
            resolved=resolved,
            request=streamed.next_request(request),
            attempt=attempt,
            turn_id=turn_id,
            interaction_id=prompt.interaction_id,
            agent_id=None if session.identity is None else session.identity.id,
        )
        try:
            if wait_s:
                await anyio.sleep(wait_s)
            with (watch := session.services.observers.watch(call)):
                call.completed = completed = await _stream_answer(session, streamed, watch)
        except anyio.get_cancelled_exc_class():
            if session.settings.options.keep_interrupted_answers:
                _keep_interrupted(session, prompt, resolved, streamed, turn_id)
            raise
        except ProviderError as error:
            _report_failure(session, call, error)
            if isinstance(error, ProviderToolsError) and request.tools and without_native_tools(resolved):
                raise
            if not error.retryable and may_refuse_media(error, request):
                raise
            if _refuses_editing(error, request):
                raise
            if is_model_limit(error) and not streamed.anything and not switch_offered:
                switch_offered = True
                if (auto := await auto_mode_for(session, resolved, error)) is not None:
                    raise SwitchToAutoError(auto) from None
            wait_s = None if retries_left is not None else policy.wait_s(error, attempt)
            if wait_s is not None and attempt == 1 and isinstance(error, ProviderLoadingError):
                text = f"The server is loading {resolved.info.id}. Waiting for it."
                session.emit(events.SessionInfo(info_type="model_loading", message=text))
            if wait_s is None and retries_left is None:
                output = await report_error(session, error, recoverable=error.retryable)
                retries_left = (output.retry_count or 1) if output.error_handling == "retry" else 0
            if wait_s is None and retries_left:
                retries_left -= 1
                wait_s = policy.pause_s(error, attempt)
            if wait_s is None:
                error.attempts = attempt
                _keep_partial(session, prompt, resolved, streamed, turn_id)
                raise
        else:
            completed = await _repaired(session, request, streamed.completed(completed))
            return Answer(
                distinguish_calls(session, completed),
                streamed.message_id,
                streamed.reasoning_id,
                int(call.ms),
                None if call.first_ms is None else int(call.first_ms),
            )


async def _repaired(session: Session, request: ModelRequest, completed: Completed) -> Completed:
    """Repair the calls in an answer: long arguments that are not valid in a thread, because it takes a while."""
    calls = completed.message.tool_uses()
    if any(call.arguments is None and len(call.arguments_json) > LONG_ARGUMENTS_CHARS for call in calls):
        unlisted = session.tools.unlisted_specs()
        return await anyio.to_thread.run_sync(repair_calls, completed, request, lambda: unlisted)
    return repair_calls(completed, request, session.tools.unlisted_specs)


async def report_error(session: Session, error: JumpseatError, *, recoverable: bool) -> ErrorOccurredOutput:
    """Call the errorOccurred hook for an error that would end the run, and show its notification to the user."""
    output = await session.hooks.error_occurred(str(error), recoverable=recoverable)
    if output.user_notification:
        session.emit(events.SessionInfo(info_type="notification", message=output.user_notification))
    return output


def _emit_delta(session: Session, streamed: AnswerSoFar, delta: Delta) -> None:
    match delta:
        case TextDelta():
            begun = streamed.has_text
            if text := streamed.add(delta.text):
                if not begun:
                    session.emit(events.MessageStart(message_id=streamed.message_id))
                session.emit(events.MessageDelta(message_id=streamed.message_id, delta_content=text))
        case ReasoningDelta():
            session.emit(events.ReasoningDelta(reasoning_id=streamed.reasoning_id, delta_content=delta.text))
        case ToolCallDelta():
            session.emit(
                events.ToolCallDelta(
                    tool_call_id=distinct_id(session, delta.id),
                    tool_name=delta.name or None,
                    input_delta=delta.arguments,
                )
            )


async def _stream_answer(session: Session, streamed: AnswerSoFar, watch: Watch[ModelCall]) -> Completed:
    if any(client.behind for client in session.clients):
        # Otherwise, the results of many large tool calls would wait for a client that reads slowly.
        await session.drain_clients()
    deltas = 0
    masked = MaskedDeltas(session.services.secrets) if session.services.secrets else None
    call = watch.record
    begun: set[str] = set()
    async with call.resolved.model.stream(call.request) as stream:
        async for event in stream:
            if isinstance(event, ToolCallDelta):
                begun.add(event.id)
            count = len(event.message.tool_uses()) if isinstance(event, Completed) else len(begun)
            if count > MOST_CALLS:
                raise ProviderProtocolError(TOO_MANY_CALLS)
            if isinstance(event, Completed):
                for rest in masked.flush() if masked else ():
                    _emit_delta(session, streamed, rest)
                return event
            if isinstance(event, BlockCompleted):
                # Sessions do not request these.
                continue
            _emit_delta(session, streamed, masked.feed(event) if masked else event)
            if not streamed.anything:
                streamed.anything = True
                call.first_ms = watch.since_start_ms()
            deltas += 1
            if deltas % DELTAS_PER_DRAIN == 0:
                await session.drain_clients()
    raise AssertionError("a model stream must end in Completed or raise")


def _keep_interrupted(
    session: Session, prompt: Prompt, resolved: ResolvedModel, streamed: AnswerSoFar, turn_id: str
) -> None:
    """Log the streamed part of an aborted answer; the run ends in any case, also if that cannot be written."""
    try:
        _keep_partial(session, prompt, resolved, streamed, turn_id, interrupted=True)
    except StoreError as error:
        log.error("session %s: cannot write an interrupted answer to the log: %s", session.id, error)


def _keep_partial(
    session: Session,
    prompt: Prompt,
    resolved: ResolvedModel,
    streamed: AnswerSoFar,
    turn_id: str,
    *,
    interrupted: bool = False,
) -> None:
    """Log the streamed text of an incomplete answer, so that the model can continue from it.

    Reasoning is left out, because providers accept it only complete and signed, and so are incomplete tool calls.
    """
    if streamed.text.strip():
        session.emit(
            events.AssistantMessage(
                message_id=streamed.message_id,
                content=streamed.text,
                tool_requests=[],
                model=resolved.wire_name,
                turn_id=turn_id,
                interaction_id=prompt.interaction_id,
                originating_message_id=prompt.id,
                interrupted=True if interrupted else None,
            )
        )


def publish_answer(
    session: Session,
    prompt: Prompt,
    resolved: ResolvedModel,
    estimate: tokens.TokenEstimate,
    answer: Answer,
    turn_id: str,
) -> events.Event:
    """Emit the events of an answer and return that of its message.

    ``estimate`` is the size of the request, or of the conversation if that was compacted meanwhile.
    """
    completed = answer.completed
    message = completed.message
    model = completed.model or resolved.wire_name
    reasoning = message.reasoning()
    if reasoning:
        session.emit(events.Reasoning(reasoning_id=answer.reasoning_id, content=reasoning))
    usage = completed.usage or Usage()
    output_tokens = usage.output_tokens or tokens.of_answer(message)
    event = session.emit(
        events.AssistantMessage(
            message_id=answer.message_id,
            content=message.text(),
            tool_requests=_tool_requests(session, message.tool_uses()),
            model=model,
            turn_id=turn_id,
            interaction_id=prompt.interaction_id,
            output_tokens=output_tokens,
            reasoning_text=reasoning or None,
            citations=citations_of(message, resolved),
            provider_blocks=provider_blocks(message),
            originating_message_id=prompt.id,
        )
    )
    session.emit(
        events.AssistantUsage(
            model=model,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            reasoning_tokens=usage.reasoning_tokens or None,
            cost_usd=resolved.cost_of(completed.usage),
            duration=answer.duration_ms,
            time_to_first_token_ms=answer.first_token_ms,
            initiator="user"
            if turn_id == "0" and prompt.source is None and prompt.notification is None
            else "agent",
            finish_reason=completed.stop_reason,
            content_filter_triggered=completed.stop_reason == "content_filter" or None,
            num_tool_calls=len(message.tool_uses()),
            is_byok=resolved.byok,
            copilot_usage=events.CopilotUsage(total_nano_aiu=usage.nano_aiu) if usage.nano_aiu else None,
        )
    )
    session.emit(
        events.SessionUsageInfo(
            current_tokens=estimate.total + output_tokens,
            messages_length=estimate.messages + 1,
            token_limit=resolved.known.token_limit,
            system_tokens=estimate.system,
            conversation_tokens=estimate.conversation + output_tokens,
            tool_definitions_tokens=estimate.tools,
        )
    )
    return event


def _tool_requests(session: Session, calls: list[ToolUseBlock]) -> list[events.ToolRequest]:
    described = session.tools.described(calls) if calls else []
    return [_tool_request(call, *about) for call, about in zip(calls, described, strict=True)]


def _tool_request(call: ToolUseBlock, origin: ToolOrigin | None, intention: str | None) -> events.ToolRequest:
    arguments = call.arguments if call.arguments is not None else {}
    exact = call.arguments_json if call.arguments_json != canonical_json(arguments) else None
    return events.ToolRequest(
        tool_call_id=call.id,
        name=call.name,
        arguments=arguments,
        arguments_json=exact,
        intention_summary=intention,
        mcp_server_name=origin.server if origin else None,
        mcp_tool_name=origin.tool if origin else None,
    )
