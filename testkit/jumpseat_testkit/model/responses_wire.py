"""OpenAI Responses from the provider's side: parse requests, encode responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from jumpseat_protocol.json_values import as_list, as_object, as_text
from jumpseat_testkit.model.calls import Answer, CallPiece, ModelCall, Piece, ReasoningPiece, Said, TextPiece
from jumpseat_testkit.model.wires import JsonObject, ServerEvent, Wire, text_of

_INCOMPLETE: Final = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}
# Items of an answer come together: the call of a model is one answer, however many items it has.
_OF_THE_MODEL: Final = ("reasoning", "function_call", "custom_tool_call")


class ResponsesWire(Wire):
    """One response of ``/responses``."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._number = 0
        self._items: list[JsonObject] = []

    @staticmethod
    def read(fields: JsonObject) -> ModelCall:
        given = fields.get("input")
        if not isinstance(given, list | str):
            raise ValueError("input: expected an array or a string")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else as_list(given)
        system = [as_text(fields["instructions"])] if fields.get("instructions") else []
        messages: list[Said] = []
        for item in map(as_object, items):
            kind, role = item.get("type", "message"), item.get("role")
            if kind in ("function_call_output", "custom_tool_call_output"):
                _join(messages, Said("tool", text_of(item.get("output"), "")))
            elif kind in _OF_THE_MODEL or role == "assistant":
                _join(messages, Said("assistant", text_of(item.get("content"))))
            elif role in ("system", "developer"):
                system.append(text_of(item.get("content")))
            elif kind == "message":
                messages.append(Said("user", text_of(item.get("content"))))
        tools = [as_text(as_object(tool).get("name")) for tool in as_list(fields.get("tools"))]
        stream = fields.get("stream") is True
        return ModelCall(as_text(fields.get("model")), "\n\n".join(system), messages, tools, stream)

    def whole(self, answer: Answer) -> JsonObject:
        for piece in (
            *([ReasoningPiece(answer.reasoning)] if answer.reasoning else []),
            *([TextPiece(answer.text)] if answer.text else []),
            *answer.calls,
        ):
            list(self.encode(piece))
        list(self._end_item())
        return self._response(answer)

    def encode(self, piece: Piece) -> Iterator[ServerEvent]:
        if self._number == 0:
            yield self._event("response.created", response=self._response(None))
        match piece:
            case TextPiece():
                yield from self._open("message", content=[], role="assistant")
                part = self._items[-1]["content"]
                if not part:
                    part.append({"type": "output_text", "text": "", "annotations": []})
                    yield self._at("response.content_part.added", content_index=0, part=dict(part[0]))
                part[0]["text"] += piece.text
                yield self._at("response.output_text.delta", content_index=0, delta=piece.text)
            case ReasoningPiece():
                yield from self._open("reasoning", summary=[])
                part = self._items[-1]["summary"]
                if not part:
                    part.append({"type": "summary_text", "text": ""})
                    yield self._at("response.reasoning_summary_part.added", summary_index=0, part=dict(part[0]))
                part[0]["text"] += piece.text
                yield self._at("response.reasoning_summary_text.delta", summary_index=0, delta=piece.text)
            case CallPiece():
                yield from self._open("function_call", call_id=piece.id, name=piece.name, arguments="")
                self._items[-1]["arguments"] += piece.arguments
                yield self._at("response.function_call_arguments.delta", delta=piece.arguments)
            case Answer():
                yield from self._end_item()
                response = self._response(piece)
                yield self._event(f"response.{response['status']}", response=response)

    def failure(self, message: str, code: str | None) -> JsonObject:
        return {"error": {"message": message, "type": "scripted", "param": None, "code": code}}

    def _open(self, kind: str, **members: Any) -> Iterator[ServerEvent]:
        """Begin an item, unless the last one goes on."""
        last = self._items[-1] if self._items else {}
        if last.get("type") == kind and last.get("call_id") == members.get("call_id"):
            return
        yield from self._end_item()
        item = {"type": kind, "id": f"item_{len(self._items)}", "status": "in_progress", **members}
        self._items.append(item)
        added: dict[str, Any] = {name: [] if isinstance(value, list) else value for name, value in item.items()}
        yield self._event("response.output_item.added", output_index=len(self._items) - 1, item=added)

    def _end_item(self) -> Iterator[ServerEvent]:
        if not self._items or self._items[-1]["status"] == "completed":
            return
        item = self._items[-1]
        item["status"] = "completed"
        match item["type"]:
            case "message":
                part = item["content"][0]
                yield self._at("response.output_text.done", content_index=0, text=part["text"])
                yield self._at("response.content_part.done", content_index=0, part=part)
            case "reasoning":
                part = item["summary"][0]
                yield self._at("response.reasoning_summary_text.done", summary_index=0, text=part["text"])
                yield self._at("response.reasoning_summary_part.done", summary_index=0, part=part)
            case _:
                yield self._at("response.function_call_arguments.done", arguments=item["arguments"])
        yield self._event("response.output_item.done", output_index=len(self._items) - 1, item=item)

    def _at(self, kind: str, **members: Any) -> ServerEvent:
        """Return an event of the last item."""
        place = len(self._items) - 1
        return self._event(kind, item_id=self._items[-1]["id"], output_index=place, **members)

    def _event(self, kind: str, **members: Any) -> ServerEvent:
        number = self._number
        self._number += 1
        return kind, {"type": kind, "sequence_number": number, **members}

    def _response(self, answer: Answer | None) -> JsonObject:
        reason = None if answer is None else _INCOMPLETE.get(answer.stop_reason)
        status = "in_progress" if answer is None else "incomplete" if reason else "completed"
        return {
            "id": "resp_scripted",
            "object": "response",
            "created_at": 0,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": None,
            "metadata": {},
            "model": self._model,
            "output": [] if answer is None else self._items,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": None if answer is None else _usage(answer),
        }


def _join(messages: list[Said], said: Said) -> None:
    """Add a message; items of the same role that follow each other are one."""
    text = said.text
    if messages and messages[-1].role == said.role:
        before = messages.pop()
        text = said.text if said.role == "tool" else before.text + said.text
    messages.append(Said(said.role, text))


def _usage(answer: Answer) -> JsonObject | None:
    usage = answer.usage
    if usage is None:
        return None
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
