"""OpenAI chat completions from the provider's side: parse requests, encode responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from jumpseat.adapters.wire import as_list, as_object, as_text, parse_arguments
from jumpseat.agent.blocks import (
    AssistantMessage,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
    UserMessage,
)
from jumpseat.agent.model import (
    BlockCompleted,
    Completed,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolSchema,
    ToolSpec,
)

_FINISH: Final = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
    "content_filter": "content_filter",
}


def read_request(body: Any) -> ModelRequest:
    """Parse the body of a request.

    Raises:
        ValueError: the body has no array of messages.
    """
    fields = as_object(body)
    if not isinstance(fields.get("messages"), list):
        raise ValueError("messages: expected an array")
    system: list[str] = []
    messages: list[Message] = []
    for field in map(as_object, as_list(fields["messages"])):
        content = field.get("content")
        match field.get("role"):
            case "system" | "developer":
                system.append(_text(content))
            case "assistant":
                calls = [_call(as_object(call)) for call in as_list(field.get("tool_calls"))]
                messages.append(AssistantMessage([*([TextBlock(_text(content))] if content else []), *calls]))
            case "tool":
                result = ToolResultBlock(as_text(field.get("tool_call_id")), "", _text(content))
                if messages and isinstance(messages[-1], ToolMessage):
                    messages[-1].results.append(result)
                else:
                    messages.append(ToolMessage([result]))
            case _:
                messages.append(UserMessage(_user_blocks(content)))
    tools = [as_object(as_object(tool).get("function")) for tool in as_list(fields.get("tools"))]
    return ModelRequest(
        model=as_text(fields.get("model")),
        system="\n\n".join(system),
        messages=messages,
        tools=[
            ToolSpec(
                as_text(tool.get("name")),
                as_text(tool.get("description")),
                ToolSchema.of(as_object(tool.get("parameters"))),
            )
            for tool in tools
        ],
        stream=fields.get("stream") is True,
    )


def complete_response(events: list[ModelEvent], model: str) -> JsonObject:
    """Encode a response that is not streamed."""
    completed = events[-1]
    assert isinstance(completed, Completed)
    message: JsonObject = {"role": "assistant", "content": completed.message.text()}
    if reasoning := completed.message.reasoning():
        message["reasoning_content"] = reasoning
    if calls := completed.message.tool_uses():
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_json}}
            for call in calls
        ]
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(completed)}],
        "usage": _usage(completed),
    }


class ChunkEncoder:
    """Encodes the chunks of one streamed response."""

    def __init__(self, model: str) -> None:
        self._head = {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": model}
        self._begun = False
        self._calls: list[str] = []

    def encode(self, event: ModelEvent) -> Iterator[JsonObject]:
        """Yield the chunks for ``event``."""
        if not self._begun:
            self._begun = True
            yield self._chunk({"role": "assistant", "content": ""})
        match event:
            case TextDelta():
                yield self._chunk({"content": event.text})
            case ReasoningDelta():
                yield self._chunk({"reasoning_content": event.text})
            case Completed():
                yield {**self._chunk({}, _finish(event)), "usage": _usage(event)}
            case ToolCallDelta():
                new = event.id not in self._calls
                self._calls += [event.id] if new else []
                function: JsonObject = {"name": event.name} if new else {}
                call: JsonObject = {"id": event.id, "type": "function"} if new else {}
                call |= {
                    "index": self._calls.index(event.id),
                    "function": {**function, "arguments": event.arguments},
                }
                yield self._chunk({"tool_calls": [call]})
            case BlockCompleted():
                # The requests of this server announce no blocks.
                pass

    def _chunk(self, delta: JsonObject, finish: str | None = None) -> JsonObject:
        return {**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _finish(completed: Completed) -> str:
    return _FINISH.get(completed.stop_reason, "stop")


def _usage(completed: Completed) -> JsonObject | None:
    usage = completed.usage
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _call(call: JsonObject) -> ToolUseBlock:
    function = as_object(call.get("function"))
    arguments = as_text(function.get("arguments"))
    return ToolUseBlock(
        as_text(call.get("id")), as_text(function.get("name")), arguments, parse_arguments(arguments)
    )


def _user_blocks(content: Any) -> list[UserBlock]:
    if not isinstance(content, list):
        return [TextBlock(_text(content))]
    blocks: list[UserBlock] = []
    for part in map(as_object, as_list(content)):
        if part.get("type") == "text":
            blocks.append(TextBlock(as_text(part.get("text"))))
        elif part.get("type") == "image_url":
            kind, _, data = as_text(as_object(part.get("image_url")).get("url")).partition(",")
            blocks.append(ImageBlock(data, kind.removeprefix("data:").removesuffix(";base64")))
    return blocks


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(as_text(as_object(part).get("text")) for part in as_list(content))
    return as_text(content)
