"""The wires of the clumsy model, from the server's side: OpenAI's chat and Responses, Anthropic's messages.

Requests are read here, because a black box puts its own things into them; answers are written by the wires of
``jumpseat_testkit``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from jumpseat.adapters.wire import as_list, as_object
from jumpseat.cli.lab.clumsy import Asked, Said
from jumpseat.cli.lab.offers import Tool
from jumpseat_testkit.model.anthropic_wire import AnthropicWire
from jumpseat_testkit.model.calls import Answer, CallPiece, Piece, TextPiece, Tokens
from jumpseat_testkit.model.chat_wire import ChatWire
from jumpseat_testkit.model.responses_wire import ResponsesWire
from jumpseat_testkit.model.wires import Wire

Json: TypeAlias = dict[str, Any]
Usage: TypeAlias = tuple[int, int]
"""Tokens of the prompt, and how many of them were cached."""

MODEL: Final = "clumsy"

_WRITERS: Final[Mapping[str, type[Wire]]] = {
    "chat/completions": ChatWire,
    "responses": ResponsesWire,
    "messages": AnthropicWire,
}
WIRES: Final = tuple(_WRITERS)


def read(wire: str, body: Json) -> Asked:
    """Read a request."""
    given: Any = body.get("input" if wire == "responses" else "messages") or []
    rows: list[Json] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    prompts: list[str] = []
    results: list[str] = []
    for row in rows:
        kind, role = row.get("type", "message"), row.get("role")
        if role == "assistant" or kind in ("function_call", "custom_tool_call", "reasoning"):
            results = []
        elif kind in ("function_call_output", "custom_tool_call_output"):
            results.append(_text(row.get("output")))
        elif role == "tool":
            results.append(_text(row.get("content")))
        elif role == "user":
            parts = _parts(row.get("content"))
            results += [_text(part.get("content")) for part in parts if part.get("type") == "tool_result"]
            prompts.append("".join(_text(part.get("text")) for part in parts))
            # Hints of an agent come as words of the user, too.
            results += prompts[-1:] if len(prompts) > 1 else []
    tools = [as_object(each.get("function", each)) for each in map(as_object, as_list(body.get("tools")))]
    offered = [
        Tool(str(each.get("name", "")), each.get("parameters") or each.get("input_schema") or {}) for each in tools
    ]
    return Asked(prompts, [result for result in results if result], [tool for tool in offered if tool.name])


def in_order(body: Json) -> str:
    """Return a request as the text that a provider caches by its beginning: tools, instructions, messages."""
    parts = [body.get(key) for key in ("tools", "system", "instructions", "messages", "input")]
    return json.dumps([part for part in parts if part], ensure_ascii=False)


def write(wire: str, said: Said, number: int, usage: Usage) -> Json:
    """Write an answer that is not streamed."""
    return _WRITERS[wire](MODEL).whole(_answer(wire, said, number, usage))


def stream(wire: str, said: Said, number: int, usage: Usage) -> Iterator[str]:
    """Yield the events of a streamed answer."""
    writer, answer = _WRITERS[wire](MODEL), _answer(wire, said, number, usage)
    pieces: tuple[Piece, ...] = (*answer.calls, answer)
    if said.text and not said.name:
        pieces = (TextPiece(said.text), answer)
    for piece in pieces:
        for name, data in writer.encode(piece):
            text = data if isinstance(data, str) else json.dumps(data)
            yield (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


def _answer(wire: str, said: Said, number: int, usage: Usage) -> Answer:
    prompt, cached = usage
    # Only Anthropic counts the cached tokens apart from the others.
    given = prompt - cached if wire == "messages" else prompt
    tokens = Tokens(given, (len(said.text) + len(said.arguments)) // 4 + 1, cached)
    if said.name:
        call = CallPiece(f"call_{number:04}", said.name, said.arguments)
        return Answer("", calls=(call,), stop_reason="tool_use", usage=tokens)
    return Answer(said.text, usage=tokens)


def _parts(content: Any) -> list[Json]:
    """Return content as parts, whose texts are in ``text``."""
    return [as_object(part) for part in as_list(content)] or [{"type": "text", "text": content}]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in _parts(content))
    return content if isinstance(content, str) else ""
