"""A question beside the conversation, which the model sees; neither question nor answer becomes part of it.

It may be asked while a turn runs. Its events are ephemeral, and the model calls no tools.
"""

from __future__ import annotations

import time
from typing import Final

import anyio

from jumpseat.agent.blocks import TextBlock, ToolMessage, UserMessage
from jumpseat.agent.clock import new_id
from jumpseat.agent.conversation import tokens
from jumpseat.agent.model import Completed, ModelRequest, TextDelta, ToolChoice, Usage
from jumpseat.agent.model_calls.requests import find_model, with_tool_protocol
from jumpseat.agent.observation import ModelCall
from jumpseat.agent.secrets import MaskedEvents
from jumpseat.agent.session import limits
from jumpseat.agent.session.session import Session
from jumpseat.errors import ProviderError
from jumpseat_protocol import events

SYSTEM: Final = (
    "Answer a question of the user about the conversation so far, or about anything else. Answer from what you know"
    " and see, briefly, and call no tools. The question is not part of the conversation, and the work in it goes on"
    " regardless."
)


async def ask_aside(session: Session, question: str) -> str:
    """Ask ``question``, publish the answer while it streams, and return it.

    Raises:
        JumpseatError: the model cannot be resolved, or gave no answer.
    """
    request_id = new_id()
    limits.check(session)
    resolved = await find_model(session)
    await session.admit(resolved)
    messages = session.conversation.messages()
    # Providers reject a conversation with tool calls if the request has no tools.
    has_calls = any(isinstance(message, ToolMessage) for message in messages)
    settings = session.settings
    request = ModelRequest(
        model=resolved.wire_name,
        system=SYSTEM,
        messages=[*messages, UserMessage([TextBlock(question)])],
        tools=session.tools.specs() if has_calls else [],
        tool_choice=ToolChoice("none") if has_calls else None,
        vision=resolved.info.vision is not False and resolved.model.capabilities(resolved.wire_name).images,
        reasoning_effort=settings.for_model().options.reasoning_effort,
        max_output_tokens=resolved.info.max_output_tokens,
        settings=settings.options.adapter_settings,
        session_id=session.id,
    )
    resolved = with_tool_protocol(resolved) if has_calls else resolved
    session.emit(events.EphemeralQuery(request_id=request_id, phase="started"))
    policy, attempt = session.services.retry, 0
    while True:
        attempt += 1
        call = ModelCall(
            session_id=session.id, purpose="side_question", resolved=resolved, request=request, attempt=attempt
        )
        shown: list[str] = []
        try:
            completed = await _stream(session, call, request_id, shown)
        except ProviderError as error:
            wait_s = None if shown else policy.wait_s(error, attempt)
            if wait_s is None:
                error.attempts = attempt
                resolved.explain_failure(error)
                raise
            await anyio.sleep(wait_s)
        else:
            answer = session.services.secrets(completed.message.text())
            session.emit(events.EphemeralQuery(request_id=request_id, phase="completed", answer=answer))
            return answer


async def _stream(session: Session, call: ModelCall, request_id: str, shown: list[str]) -> Completed:
    started = time.monotonic()
    with session.services.observers.watch(call):
        async with call.resolved.model.stream(call.request) as stream:
            async for event in MaskedEvents(aiter(stream), session.services.secrets):
                if isinstance(event, TextDelta) and event.text:
                    shown.append(event.text)
                    session.emit(events.EphemeralQuery(request_id=request_id, phase="chunk", chunk=event.text))
                elif isinstance(event, Completed):
                    call.completed = event
                    _count(session, call, event, int((time.monotonic() - started) * 1000))
                    return event
    raise AssertionError("a model stream must end in Completed or raise")


def _count(session: Session, call: ModelCall, completed: Completed, duration_ms: int) -> None:
    """Count the tokens of the call for the session."""
    usage = completed.usage or Usage()
    session.metrics.count_compaction(
        events.CompactionTokensUsed(
            input_tokens=usage.input_tokens or tokens.of_request(call.request).total,
            output_tokens=usage.output_tokens or tokens.of_answer(completed.message),
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            model=completed.model or call.resolved.wire_name,
            duration=duration_ms,
            copilot_usage=events.CopilotUsage(total_nano_aiu=usage.nano_aiu) if usage.nano_aiu else None,
        ),
        call.resolved.cost_of(completed.usage),
    )
