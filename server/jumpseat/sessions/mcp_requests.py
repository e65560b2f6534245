"""Requests that pass between clients, MCP servers and sessions: to a server, and of a server to the model."""

from __future__ import annotations

import re
from typing import Any, Final

from jumpseat.agent.blocks import AssistantMessage, ImageBlock, Message, TextBlock, UserMessage
from jumpseat.agent.model import ModelRequest
from jumpseat.agent.observation import ModelCall, whole_answer
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.mcp.host import McpHost
from jumpseat.mcp.loading import load
from jumpseat.sessions.context import Context


def mcp_host(ctx: Context, session_id: str, otherwise: str) -> McpHost:
    """Return the MCP host of a session.

    Raises:
        InvalidRequestError: the session has no MCP servers; ``otherwise`` is the message.
    """
    host = ctx.mcp.get(ctx.registry.live(session_id))
    if host is None or not host.present:
        raise InvalidRequestError(otherwise)
    return host


async def loaded_mcp_host(ctx: Context, session_id: str, server_name: str) -> McpHost:
    """Return the MCP host of a session, after importing the ``mcp`` package, whose types requests are made of.

    Raises:
        InvalidRequestError: the session has no MCP servers.
    """
    host = mcp_host(ctx, session_id, f"MCP server {server_name!r} is not connected")
    await load()
    return host


_UNKNOWN: Final = re.compile(
    r"(unknown|no such) resource|resource\b(?:(?!resource\b).)*\b(not found|unknown)", re.IGNORECASE
)
RESOURCE_NOT_FOUND: Final = -32002
"""MCP's code for a resource that does not exist; older servers only say so."""


async def request_mcp_server(
    host: McpHost, server: str, request: Any, result: Any, *, unknown: str | None = None
) -> dict[str, Any]:
    """Send a request of the ``mcp`` package to a server and return its result as JSON, with MCP's own field names.

    ``unknown`` is the message if the server does not have the resource of the request.

    Raises:
        InvalidRequestError: the server is not connected, refused the request, or did not answer in time.
    """
    connection = host.connection_to(server)
    from jumpseat.mcp.client import CallTimeoutError, RefusedError, ServerGoneError
    from jumpseat.mcp.results import as_json

    try:
        return as_json(await connection.ask(request, result))
    except RefusedError as error:
        is_unknown = error.code == RESOURCE_NOT_FOUND or _UNKNOWN.search(str(error)) is not None
        if unknown is not None and is_unknown:
            raise InvalidRequestError(f"{unknown}: {error}") from None
        raise InvalidRequestError(f"MCP server {server!r} refused: {error}") from None
    except CallTimeoutError:
        raise InvalidRequestError(f"MCP server {server!r} did not answer in time") from None
    except ServerGoneError:
        raise InvalidRequestError(f"MCP server {server!r} is not connected: it ended before it answered") from None


def page_params(cursor: str | None) -> Any:
    """Return the params of a paginated MCP request; ``None`` for the first page."""
    import mcp.types as types

    return types.PaginatedRequestParams(cursor=cursor) if cursor else None


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
