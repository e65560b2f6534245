"""Publish an answer of the model: its message, its usage and cost, and the size of the context."""

from __future__ import annotations

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.agent.conversation import tokens
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.conversation.provider_blocks import citations_of, provider_blocks
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Usage
from jumpseat.agent.model_calls.model_call import Answer
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat_protocol import events


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
            tool_requests=[_tool_request(session, call) for call in message.tool_uses()],
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
            token_limit=resolved.known.window,
            system_tokens=estimate.system,
            conversation_tokens=estimate.conversation + output_tokens,
            tool_definitions_tokens=estimate.tools,
        )
    )
    return event


def _tool_request(session: Session, call: ToolUseBlock) -> events.ToolRequest:
    arguments = call.arguments if call.arguments is not None else {}
    exact = call.arguments_json if call.arguments_json != canonical_json(arguments) else None
    origin = session.tools.origin(call.name)
    return events.ToolRequest(
        tool_call_id=call.id,
        name=call.name,
        arguments=arguments,
        arguments_json=exact,
        intention_summary=session.tools.intention(call),
        mcp_server_name=origin.server if origin else None,
        mcp_tool_name=origin.tool if origin else None,
    )
