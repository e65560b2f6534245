"""Run the sampling requests of MCP servers with a session's model, if a client has allowed them.

A request has the form of the ``params`` of MCP's ``sampling/createMessage``, a response that of its result.
"""

from __future__ import annotations

from typing import Any

from jumpseat.agent.blocks import AssistantMessage, ImageBlock, Message, TextBlock, UserMessage
from jumpseat.agent.model import ModelRequest
from jumpseat.agent.observation import ModelCall, whole_answer
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.mcp.loading import load


async def sample(session: Session, raw_request: dict[str, Any]) -> dict[str, Any]:
    """Send a sampling request to the session's model and return its response.

    Raises:
        InvalidRequestError: the request is invalid, or has content that cannot be sent to the model.
        BudgetError: a budget of the session is used up.
        ProviderError: the model call failed.
    """
    await load()
    import mcp.types as types
    from pydantic import ValidationError

    try:
        params = types.CreateMessageRequestParams.model_validate(raw_request)
    except ValidationError:
        raise InvalidRequestError("invalid sampling request") from None
    resolved = await session.services.models.resolve(session.settings, ask_token=session.clients.ask_token)
    await session.admit(resolved)
    request = ModelRequest(
        resolved.wire_name,
        params.system_prompt or "",
        [_message(message) for message in params.messages],
        stream=False,
        vision=resolved.info.vision is not False,
        max_output_tokens=min(params.max_tokens, resolved.info.max_output_tokens or params.max_tokens),
        session_id=session.id,
    )
    call = ModelCall(session_id=session.id, purpose="sampling", resolved=resolved, request=request)
    answer = await whole_answer(session.services.observers, call)
    if answer is None:
        raise InvalidRequestError("the model ended without a response")
    text = "".join(block.text for block in answer.message.blocks if isinstance(block, TextBlock))
    return {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": answer.model or resolved.wire_name,
        "stopReason": "maxTokens" if answer.stop_reason == "max_tokens" else "endTurn",
    }


def _message(message: Any) -> Message:
    blocks: list[Any] = []
    for block in message.content_as_list:
        match block.type:
            case "text":
                blocks.append(TextBlock(block.text))
            case "image" if message.role == "user":
                blocks.append(ImageBlock(block.data, block.mime_type))
            case _:
                raise InvalidRequestError(f"content of type {block.type!r} cannot be sent to the model")
    return UserMessage(blocks) if message.role == "user" else AssistantMessage(blocks)
