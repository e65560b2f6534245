"""The wires of the clumsy model, from the server's side: OpenAI's chat and Responses, Anthropic's messages.

Each reads a request to what the model needs of it, and writes an answer, streamed or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from jumpseat.adapters.wire import as_list, as_object
from jumpseat.cli.lab.clumsy import Asked, Said
from jumpseat.cli.lab.offers import Tool

Json: TypeAlias = dict[str, Any]
Usage: TypeAlias = tuple[int, int]
"""Tokens of the prompt, and how many of them were cached."""

WIRES: Final = ("chat/completions", "responses", "messages")


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
    writers = {"chat/completions": _chat, "responses": _responses, "messages": _messages}
    return writers[wire](said, number, usage, (len(said.text) + len(said.arguments)) // 4 + 1)


def stream(wire: str, said: Said, number: int, usage: Usage) -> Iterator[str]:
    """Yield the events of a streamed answer."""
    whole = write(wire, said, number, usage)
    if wire == "chat/completions":
        yield from _chat_stream(whole)
        yield "data: [DONE]\n\n"
        return
    events = _responses_stream(said, whole) if wire == "responses" else _messages_stream(said, whole)
    for sequence, event in enumerate(events):
        yield _event(event | ({"sequence_number": sequence} if wire == "responses" else {}), event["type"])


def _chat(said: Said, number: int, usage: Usage, completion: int) -> Json:
    message: Json = {"role": "assistant", "content": said.text or None}
    if said.name:
        function = {"name": said.name, "arguments": said.arguments}
        message["tool_calls"] = [{"id": f"call_{number:04}", "type": "function", "function": function}]
    prompt, cached = usage
    return {
        "id": f"lab-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": "clumsy",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if said.name else "stop"}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def _chat_stream(whole: Json) -> Iterator[str]:
    choice: Json = whole["choices"][0]
    for place, call in enumerate(choice["message"].get("tool_calls", ())):
        call["index"] = place
    head: Json = {**whole, "object": "chat.completion.chunk"}
    del head["usage"]
    yield _event({**head, "choices": [{"index": 0, "delta": choice["message"], "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    yield _event({**head, "choices": [], "usage": whole["usage"]})


def _responses(said: Said, number: int, usage: Usage, completion: int) -> Json:
    item: Json = {"id": f"item_{number}", "status": "completed"}
    if said.name:
        call_id = f"call_{number:04}"
        item |= {"type": "function_call", "call_id": call_id, "name": said.name, "arguments": said.arguments}
    else:
        content: list[Json] = [{"type": "output_text", "text": said.text, "annotations": []}]
        item |= {"type": "message", "role": "assistant", "content": content}
    prompt, cached = usage
    return {
        "id": f"lab_{number}",
        "object": "response",
        "created_at": 0,
        "model": "clumsy",
        "status": "completed",
        "output": [item],
        "usage": {
            "input_tokens": prompt,
            "output_tokens": completion,
            "total_tokens": prompt + completion,
            "input_tokens_details": {"cached_tokens": cached},
        },
    }


def _responses_stream(said: Said, whole: Json) -> Iterator[Json]:
    item: Json = whole["output"][0]
    place = {"output_index": 0, "item_id": item["id"]}
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    empty: Json = {"arguments": ""} if said.name else {"content": []}
    begun: Json = {**item, "status": "in_progress", **empty}
    yield {"type": "response.output_item.added", "output_index": 0, "item": begun}
    if said.name:
        yield {"type": "response.function_call_arguments.delta", **place, "delta": said.arguments}
        yield {"type": "response.function_call_arguments.done", **place, "arguments": said.arguments}
    else:
        yield {"type": "response.output_text.delta", **place, "content_index": 0, "delta": said.text}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": whole}


def _messages(said: Said, number: int, usage: Usage, completion: int) -> Json:
    block: Json = {"type": "text", "text": said.text}
    if said.name:
        arguments = _parsed(said.arguments)
        block = {"type": "tool_use", "id": f"call_{number:04}", "name": said.name, "input": arguments}
    prompt, cached = usage
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "clumsy",
        "content": [block] if said.name or said.text else [],
        "stop_reason": "tool_use" if said.name else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": prompt - cached,
            "output_tokens": completion,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
        },
    }


def _messages_stream(said: Said, whole: Json) -> Iterator[Json]:
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    blocks: list[Json] = whole["content"]
    for block in blocks:
        start: Json = {**block, **({"input": {}} if said.name else {"text": ""})}
        delta = {"type": "text_delta", "text": said.text}
        if said.name:
            delta = {"type": "input_json_delta", "partial_json": said.arguments}
        yield {"type": "content_block_start", "index": 0, "content_block": start}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": whole["usage"]}
    yield {"type": "message_stop"}


def _event(value: Json, name: str = "") -> str:
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(value)}\n\n"


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return {"raw": arguments}


def _parts(content: Any) -> list[Json]:
    """Return content as parts, whose texts are in ``text``."""
    return [as_object(part) for part in as_list(content)] or [{"type": "text", "text": content}]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in _parts(content))
    return content if isinstance(content, str) else ""
