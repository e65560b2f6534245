"""Answers of a model for MCP servers, where a client has allowed them."""

from __future__ import annotations

from typing import Any

import anyio

from jumpseat.agent.blocks import AssistantMessage, ImageBlock, Message, TextBlock, UserMessage
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.handlers.context import Context
from jumpseat.mcp.loading import load
from jumpseat_protocol.mcp import (
    HandlePendingSamplingParams,
    McpCancelSamplingResult,
    McpRequestParams,
    McpSamplingParams,
    McpSamplingResult,
)
from jumpseat_protocol.server import SuccessResult


def handle_pending_sampling(ctx: Context, params: HandlePendingSamplingParams) -> SuccessResult:
    """The first answer to a server's request wins; one without a response refuses it."""
    host = ctx.mcp.of(ctx.registry.live(params.session_id))
    questions = host.questions if host else None
    return SuccessResult(
        success=questions is not None and questions.samplings.answer(params.request_id, params.response)
    )


async def execute_sampling(ctx: Context, params: McpSamplingParams) -> McpSamplingResult:
    """Have the session's model answer what a server has asked; what it says goes to the client, not to the server.

    Only a request that is open is run: that the client asks for it is the permission.
    """
    session = ctx.registry.live(params.session_id)
    host = ctx.mcp.of(session)
    questions = host.questions if host else None
    open_ones = questions.samplings.open() if questions else []
    wanted = (params.server_name, params.mcp_request_id)
    if host is None or all((one.question.server, one.question.mcp_request_id) != wanted for one in open_ones):
        return McpSamplingResult(action="failure", error="There is no such sampling request.")
    if params.request_id in host.sampling_runs:
        return McpSamplingResult(action="failure", error="This sampling request is being run already.")
    with anyio.CancelScope() as scope:
        host.sampling_runs[params.request_id] = scope
        try:
            return McpSamplingResult(action="success", result=await _answer(session, params.request))
        except JumpseatError as error:
            return McpSamplingResult(action="failure", error=f"The sampling request failed: {error}")
        finally:
            del host.sampling_runs[params.request_id]
    return McpSamplingResult(action="cancelled")


def cancel_sampling_execution(ctx: Context, params: McpRequestParams) -> McpCancelSamplingResult:
    host = ctx.mcp.of(ctx.registry.live(params.session_id))
    scope = host.sampling_runs.get(params.request_id) if host else None
    if scope is not None:
        scope.cancel()
    return McpCancelSamplingResult(cancelled=scope is not None)


async def _answer(session: Session, raw: dict[str, Any]) -> dict[str, Any]:
    await load()
    import mcp.types as types
    from pydantic import ValidationError

    try:
        wanted = types.CreateMessageRequestParams.model_validate(raw)
    except ValidationError:
        raise InvalidRequestError("the request is not one for sampling") from None
    resolved = await session.services.models.resolve(session.settings, ask_token=session.clients.ask_token)
    request = ModelRequest(
        resolved.wire_name,
        wanted.systemPrompt or "",
        [_message(one) for one in wanted.messages],
        stream=False,
        vision=resolved.info.vision is not False,
        max_output_tokens=min(wanted.maxTokens, resolved.info.max_output_tokens or wanted.maxTokens),
        session_id=session.id,
    )
    async with resolved.model.stream(request) as events:
        async for event in events:
            if isinstance(event, Completed):
                text = "".join(block.text for block in event.message.blocks if isinstance(block, TextBlock))
                return {
                    "role": "assistant",
                    "content": {"type": "text", "text": text},
                    "model": event.model or resolved.wire_name,
                    "stopReason": "maxTokens" if event.stop_reason == "max_tokens" else "endTurn",
                }
    raise InvalidRequestError("the model ended without an answer")


def _message(one: Any) -> Message:
    blocks: list[Any] = []
    for block in one.content_as_list:
        match block.type:
            case "text":
                blocks.append(TextBlock(block.text))
            case "image" if one.role == "user":
                blocks.append(ImageBlock(block.data, block.mimeType))
            case _:
                raise InvalidRequestError(f"content of type {block.type!r} cannot be put to the model")
    return UserMessage(blocks) if one.role == "user" else AssistantMessage(blocks)
