"""Anthropic messages from the provider's side: parse requests, encode responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from jumpseat_protocol.json_values import as_list, as_object, as_text, parse_arguments
from jumpseat_testkit.model.calls import (
    Answer,
    CallPiece,
    ModelCall,
    Piece,
    ReasoningPiece,
    Said,
    TextPiece,
    Tokens,
)
from jumpseat_testkit.model.wires import JsonObject, ServerEvent, Wire, text_of

_STOPS: Final = ("end_turn", "tool_use", "max_tokens", "refusal", "stop_sequence", "pause_turn")


class AnthropicWire(Wire):
    """One response of ``/messages``."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._begun = False
        self._place = -1
        # The kind of the open block, and the id of its call.
        self._open_block: tuple[str, str] | None = None

    @staticmethod
    def read(fields: JsonObject) -> ModelCall:
        if not isinstance(fields.get("messages"), list):
            raise ValueError("messages: expected an array")
        messages: list[Said] = []
        for message in map(as_object, as_list(fields["messages"])):
            content = message.get("content")
            if message.get("role") == "assistant":
                messages.append(Said("assistant", text_of(content)))
                continue
            blocks = list(map(as_object, as_list(content)))
            results = [block for block in blocks if block.get("type") == "tool_result"]
            if results:
                messages.append(Said("tool", text_of(results[-1].get("content"), "")))
            if (text := text_of(content)) or not results:
                messages.append(Said("user", text))
        return ModelCall(
            as_text(fields.get("model")),
            text_of(fields.get("system")),
            messages,
            [as_text(as_object(tool).get("name")) for tool in as_list(fields.get("tools"))],
            fields.get("stream") is True,
        )

    def whole(self, answer: Answer) -> JsonObject:
        content: list[JsonObject] = []
        if answer.reasoning:
            content.append({"type": "thinking", "thinking": answer.reasoning, "signature": ""})
        if answer.text:
            content.append({"type": "text", "text": answer.text})
        content += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": parse_arguments(call.arguments) or {}}
            for call in answer.calls
        ]
        usage = _usage(answer.usage)
        return {**self._message(), "content": content, "stop_reason": _stop(answer), "usage": usage}

    def encode(self, piece: Piece) -> Iterator[ServerEvent]:
        if not self._begun:
            self._begun = True
            # The usage of the input is known at the end only, which is allowed to correct it.
            yield _event("message_start", message={**self._message(), "usage": _usage(None)})
        match piece:
            case TextPiece():
                yield from self._block("text", {"type": "text", "text": ""})
                yield self._delta({"type": "text_delta", "text": piece.text})
            case ReasoningPiece():
                yield from self._block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                yield self._delta({"type": "thinking_delta", "thinking": piece.text})
            case CallPiece():
                block: dict[str, Any] = {"type": "tool_use", "id": piece.id, "name": piece.name, "input": {}}
                yield from self._block("tool_use", block, piece.id)
                yield self._delta({"type": "input_json_delta", "partial_json": piece.arguments})
            case Answer():
                yield from self._end_block()
                delta = {"stop_reason": _stop(piece), "stop_sequence": None}
                yield _event("message_delta", delta=delta, usage=_usage(piece.usage))
                yield _event("message_stop")

    def failure(self, message: str, code: str | None) -> JsonObject:
        return {"type": "error", "error": {"type": code or "api_error", "message": message}}

    def _message(self) -> JsonObject:
        head = {"id": "msg_scripted", "type": "message", "role": "assistant", "model": self._model}
        return {**head, "content": [], "stop_reason": None, "stop_sequence": None}

    def _block(self, kind: str, block: JsonObject, call: str = "") -> Iterator[ServerEvent]:
        """Begin a block, unless the last one goes on."""
        if self._open_block == (kind, call):
            return
        yield from self._end_block()
        self._open_block = kind, call
        self._place += 1
        yield _event("content_block_start", index=self._place, content_block=block)

    def _end_block(self) -> Iterator[ServerEvent]:
        if self._open_block is None:
            return
        self._open_block = None
        yield _event("content_block_stop", index=self._place)

    def _delta(self, delta: JsonObject) -> ServerEvent:
        return _event("content_block_delta", index=self._place, delta=delta)


def _event(kind: str, **members: Any) -> ServerEvent:
    return kind, {"type": kind, **members}


def _stop(answer: Answer) -> str:
    return answer.stop_reason if answer.stop_reason in _STOPS else "refusal"


def _usage(usage: Tokens | None) -> JsonObject:
    usage = usage or Tokens()
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }
