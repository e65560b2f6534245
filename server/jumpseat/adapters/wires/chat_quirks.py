"""Steps that make messages in wire form acceptable to the stricter dialects of chat completions.

Each step returns new messages and does not change its input. No step merges system messages: a request has one
system text, which the wire sends first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2s
from typing import Any, Final, TypeAlias, cast

from jumpseat.adapters.wire import as_list, as_object, as_text, dump_json
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelRequest

Messages: TypeAlias = list[JsonObject]

_BETWEEN: Final = "\n\n"


def merge_roles(messages: Messages) -> Messages:
    """Merge neighbouring messages of one role, and drop answers without content and calls.

    Tool results stay one message per call, and an answer with calls stays apart from the answer after it.
    """
    merged: Messages = []
    for message in messages:
        role = message["role"]
        if role == "assistant" and not (_has_content(message) or message.get("tool_calls")):
            continue
        last = merged[-1] if merged else None
        if last is None or last["role"] != role or role == "tool" or last.get("tool_calls"):
            merged.append(dict(message))
            continue
        for key, value in message.items():
            if key == "content":
                last[key] = _join(last.get(key), value)
            elif key != "role":
                last[key] = f"{last[key]}{_BETWEEN}{value}" if isinstance(last.get(key), str) else value
    return merged


def string_content(messages: Messages) -> Messages:
    """Replace content by a string, unless it has parts other than text."""
    return [{**message, "content": _as_string(message.get("content"))} for message in messages]


def map_parts(messages: Messages, change: Callable[[JsonObject], JsonObject]) -> Messages:
    """Replace each part of content by the result of ``change``."""
    mapped: Messages = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            parts = [change(as_object(part)) for part in cast("list[Any]", content)]
            message = {**message, "content": parts}
        mapped.append(message)
    return mapped


def file_as_note(part: JsonObject) -> JsonObject:
    """Replace a file by a note that it is left out, for models that take no files."""
    if part.get("type") != "file":
        return part
    return {"type": "text", "text": omission_note(as_text(as_object(part.get("file")).get("filename")))}


def omission_note(document: str) -> str:
    """Return the note in place of a document that the model cannot read."""
    return f"(The document {document or 'without a name'} is left out: this model cannot read its format.)"


def answer_before_user(messages: Messages, text: str) -> Messages:
    """Insert the answer ``text`` wherever a user message directly follows a tool result."""
    answered: Messages = []
    for message in messages:
        if message["role"] == "user" and answered and answered[-1]["role"] == "tool":
            answered.append({"role": "assistant", "content": text})
        answered.append(message)
    return answered


def short_id(call_id: str, length: int = 9) -> str:
    """Return ``call_id`` if it is ``length`` letters and digits, else a digest of it of that form."""
    if re.fullmatch(rf"[A-Za-z0-9]{{{length}}}", call_id):
        return call_id
    return blake2s(call_id.encode()).hexdigest()[:length]


def system_with_schema(request: ModelRequest) -> str:
    """Append the schema of the answer to the system text, for wires that know JSON but no schemas."""
    wanted = request.response_format
    if wanted is None:
        return request.system
    described = f" ({wanted.description})" if wanted.description else ""
    instruction = (
        f"Answer with nothing but one JSON object{described}, valid against this JSON Schema:\n"
        f"{dump_json(wanted.schema)}"
    )
    return f"{request.system}{_BETWEEN}{instruction}" if request.system else instruction


def _has_content(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return bool(content.strip()) if isinstance(content, str) else bool(content)


def _join(first: Any, second: Any) -> Any:
    if not first or (isinstance(first, str) and not first.strip()):
        return second
    if not second or (isinstance(second, str) and not second.strip()):
        return first
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}{_BETWEEN}{second}"
    return [*_as_parts(first), *_as_parts(second)]


def _as_parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)


def _as_string(content: Any) -> Any:
    if content is None:
        return ""
    if isinstance(content, list):
        parts = [as_object(part) for part in cast("list[Any]", content)]
        if all(part.get("type") == "text" for part in parts):
            return "\n".join(as_text(part.get("text")) for part in parts)
    return cast("Any", content)
