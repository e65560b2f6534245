"""OpenAI chat completions from the provider's side: parse requests, encode responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jumpseat_protocol.json_values import as_list, as_object, as_text
from jumpseat_testkit.model.calls import Answer, CallPiece, ModelCall, Piece, ReasoningPiece, Said, TextPiece
from jumpseat_testkit.model.wires import JsonObject, ServerEvent, Wire, text_of

_FINISH: Final = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
    "content_filter": "content_filter",
}


class ChatWire(Wire):
    """One response of ``/chat/completions``."""

    def __init__(self, model: str) -> None:
        self._head = {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": model}
        self._model = model
        self._begun = False
        self._calls: list[str] = []

    @staticmethod
    def read(fields: JsonObject) -> ModelCall:
        if not isinstance(fields.get("messages"), list):
            raise ValueError("messages: expected an array")
        system: list[str] = []
        messages: list[Said] = []
        for message in map(as_object, as_list(fields["messages"])):
            role = message.get("role")
            text = text_of(message.get("content"), "" if role == "tool" else "\n")
            match role:
                case "system" | "developer":
                    system.append(text)
                case "assistant":
                    messages.append(Said("assistant", text))
                case "tool":
                    if messages and messages[-1].role == "tool":
                        messages.pop()
                    messages.append(Said("tool", text))
                case _:
                    messages.append(Said("user", text))
        tools = [as_object(as_object(tool).get("function")) for tool in as_list(fields.get("tools"))]
        return ModelCall(
            as_text(fields.get("model")),
            "\n\n".join(system),
            messages,
            [as_text(tool.get("name")) for tool in tools],
            fields.get("stream") is True,
        )

    def whole(self, answer: Answer) -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": answer.text}
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        if answer.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in answer.calls
            ]
        return {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": 0,
            "model": self._model,
            "choices": [{"index": 0, "message": message, "finish_reason": _finish(answer)}],
            "usage": _usage(answer),
        }

    def encode(self, piece: Piece) -> Iterator[ServerEvent]:
        if not self._begun:
            self._begun = True
            yield self._chunk({"role": "assistant", "content": ""})
        match piece:
            case TextPiece():
                yield self._chunk({"content": piece.text})
            case ReasoningPiece():
                yield self._chunk({"reasoning_content": piece.text})
            case CallPiece():
                new = piece.id not in self._calls
                self._calls += [piece.id] if new else []
                function: JsonObject = {"name": piece.name} if new else {}
                call: JsonObject = {"id": piece.id, "type": "function"} if new else {}
                call |= {
                    "index": self._calls.index(piece.id),
                    "function": {**function, "arguments": piece.arguments},
                }
                yield self._chunk({"tool_calls": [call]})
            case Answer():
                yield None, {**self._chunk({}, _finish(piece))[1], "usage": _usage(piece)}
                yield None, "[DONE]"

    def failure(self, message: str, code: str | None) -> JsonObject:
        return {"error": {"message": message, "type": "scripted", "code": code}}

    def _chunk(self, delta: JsonObject, finish: str | None = None) -> tuple[None, JsonObject]:
        return None, {**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _finish(answer: Answer) -> str:
    return _FINISH.get(answer.stop_reason, "stop")


def _usage(answer: Answer) -> JsonObject | None:
    usage = answer.usage
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
