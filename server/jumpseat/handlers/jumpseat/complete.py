"""``jumpseat.complete``: one model call outside of any session."""

from __future__ import annotations

from pathlib import Path

from jumpseat.agent.blocks import AssistantMessage, Message, TextBlock, UserMessage
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.agent.model_calls.structured import format_of, with_response_format
from jumpseat.agent.model_calls.tool_protocol import with_tool_protocol
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError, ProviderProtocolError
from jumpseat.sessions.context import Context
from jumpseat_protocol.adapters import CompleteMessage, CompleteParams, CompleteResult, CompleteUsage


async def complete(ctx: Context, params: CompleteParams) -> CompleteResult:
    """Call a model once, without tools. Nothing is stored.

    Raises:
        InvalidRequestError: the prompt is missing or invalid, or both an adapter and a provider are given.
        ProviderError: the call failed. It is not retried.
    """
    system, messages = _conversation(params)
    resolved = await _model(ctx, params)
    request = ModelRequest(
        resolved.wire_name,
        system,
        messages,
        stream=False,
        reasoning_effort=params.reasoning_effort,
        max_output_tokens=params.max_output_tokens or resolved.info.max_output_tokens,
        response_format=format_of(params.response_format),
        settings=params.settings,
    )
    async with with_response_format(with_tool_protocol(resolved), request).model.stream(request) as events:
        async for event in events:
            if isinstance(event, Completed):
                return _result(event, resolved)
    raise ProviderProtocolError("the model ended without a response")


async def _model(ctx: Context, params: CompleteParams) -> ResolvedModel:
    if params.provider is not None and params.adapter is not None:
        raise InvalidRequestError("expected adapter or provider, not both")
    settings = SessionSettings(cwd=Path.cwd(), model=params.model, provider=params.provider)
    settings.adapter_settings = params.settings
    if params.adapter is not None:
        resolved = await ctx.models.of_adapter(params.adapter, params.model, settings)
    else:
        ctx.models.check(settings)
        resolved = await ctx.models.resolve(settings)
    return ctx.models.connections.text_only(resolved)


def _conversation(params: CompleteParams) -> tuple[str, list[Message]]:
    if (params.prompt is None) == (params.messages is None):
        raise InvalidRequestError("expected either prompt or messages")
    given = params.messages or [CompleteMessage(role="user", content=params.prompt or "")]
    system = "\n\n".join(message.content for message in given if message.role == "system")
    messages = [_message(message) for message in given if message.role != "system"]
    if not messages or not isinstance(messages[-1], UserMessage):
        raise InvalidRequestError("messages: expected the last message to have the role 'user'")
    return system, messages


def _message(message: CompleteMessage) -> Message:
    block = TextBlock(message.content)
    return UserMessage([block]) if message.role == "user" else AssistantMessage([block])


def _result(completed: Completed, resolved: ResolvedModel) -> CompleteResult:
    usage = completed.usage
    return CompleteResult(
        text="".join(block.text for block in completed.message.blocks if isinstance(block, TextBlock)),
        model=completed.model or resolved.wire_name,
        stop_reason=completed.stop_reason,
        usage=CompleteUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            reasoning_tokens=usage.reasoning_tokens,
        )
        if usage
        else None,
    )
