"""The content of spans: messages, instructions and tools as JSON, in the form of the GenAI conventions.

https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
"""

from __future__ import annotations

from typing import Any

import orjson

from jumpseat.agent.blocks import (
    AssistantMessage,
    Block,
    JsonObject,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
)
from jumpseat.agent.model import ModelRequest


def encode(value: Any) -> str:
    """Return compact JSON."""
    return orjson.dumps(value, default=str).decode()


def new_messages(request: ModelRequest) -> str:
    """Return the messages of a request that no earlier request of the conversation had."""
    messages = request.messages
    last_answer = max(
        (place for place, message in enumerate(messages) if isinstance(message, AssistantMessage)), default=-1
    )
    return encode([_message(message) for message in messages[last_answer + 1 :]])


def answer(message: AssistantMessage, finish_reason: str) -> str:
    """Return the messages of an answer."""
    return encode([{**_message(message), "finish_reason": finish_reason}])


def user_text(text: str) -> str:
    """Return the messages of a prompt."""
    return encode([{"role": "user", "parts": [{"type": "text", "content": text}]}])


def instructions(system: str) -> str:
    """Return the parts of a system message."""
    return encode([{"type": "text", "content": system}])


def tool_definitions(request: ModelRequest, *, content: bool) -> str:
    """Return the tools of a request: with ``content`` also their descriptions and parameters."""
    return encode(
        [
            {"type": "function", "name": tool.name}
            | ({"description": tool.description, "parameters": tool.parameters} if content else {})
            for tool in request.tools
        ]
    )


def _message(message: Message) -> JsonObject:
    blocks = message.results if isinstance(message, ToolMessage) else message.blocks
    return {"role": message.role, "parts": [_part(block) for block in blocks]}


def _part(block: Block) -> JsonObject:
    match block:
        case TextBlock():
            return {"type": "text", "content": block.text}
        case ReasoningBlock():
            return {"type": "reasoning", "content": block.text}
        case ToolUseBlock():
            return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.arguments}
        case ToolResultBlock():
            return {"type": "tool_call_response", "id": block.tool_use_id, "response": block.text}
        case _:
            # Images and documents are too large for a trace.
            return {"type": type(block).__name__.removesuffix("Block").lower()}
