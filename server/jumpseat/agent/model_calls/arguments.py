"""Arguments that a model has written badly: mended where what it meant is beyond doubt, else told what is wrong.

Nothing is ever completed: what an answer's end has cut off is not run, however little seems to be missing.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Final, cast

import orjson

from jumpseat.agent.blocks import AssistantMessage, JsonObject, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import Completed

MAX_MENDED_CHARS: Final = 1024 * 1024

_SPACE: Final = re.compile(r"\s*")
_FENCED: Final = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*\Z", re.DOTALL | re.IGNORECASE)
# A string (the last one may be open), or a comma that nothing follows: what is in strings stays.
_TRAILING_COMMA: Final = re.compile(r"(\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z))|,(?=\s*[}\]])", re.DOTALL)


def mended(completed: Completed) -> Completed:
    """An answer in which every call has arguments, or the problem with them."""
    calls = completed.message.tool_uses()
    if all(call.arguments is not None or call.problem is not None for call in calls):
        return completed
    cut_off = calls[-1] if completed.stop_reason == "max_tokens" else None
    blocks = [
        _mended(block, cut_off=block is cut_off)
        if isinstance(block, ToolUseBlock) and block.arguments is None and block.problem is None
        else block
        for block in completed.message.blocks
    ]
    return replace(completed, message=AssistantMessage(blocks))


def _mended(call: ToolUseBlock, *, cut_off: bool) -> ToolUseBlock:
    if cut_off:
        problem = (
            f"The arguments of `{call.name}` were cut off by the limit of output tokens, and it was not run."
            " Send less in one call, or the same in several."
        )
        return replace(call, problem=problem)
    arguments = repaired(call.arguments_json)
    if arguments is None:
        problem = (
            f"The arguments of `{call.name}` are not a JSON object{_reason(call.arguments_json)}."
            " Send the call again with valid JSON."
        )
        return replace(call, problem=problem)
    # What the provider keeps of the call in its own words is as wrong as the text was.
    return replace(
        call, arguments=arguments, arguments_json=canonical_json(arguments), provider=None, provider_data=None
    )


def repaired(text: str) -> JsonObject | None:
    """The object that ``text`` is meant to be; ``None`` where that is not certain.

    Mended are a code block around it, an object that is written as a JSON string, or several times the same, line
    breaks and tabs within strings, and commas after the last entry.
    """
    if len(text) > MAX_MENDED_CHARS:
        return None
    if fenced := _FENCED.match(text):
        text = fenced[1]
    try:
        try:
            value = _lenient(text)
        except ValueError:
            value = _lenient(_TRAILING_COMMA.sub(lambda match: match[1] or "", text))
        if isinstance(value, str):
            value = _lenient(value)
        # Numbers that are too large and halves of characters are not for the wire.
        value = orjson.loads(json.dumps(value))
    except (ValueError, RecursionError):
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None


def _lenient(text: str) -> Any:
    """The value of ``text``, which may say the same object several times."""
    text = text.strip()
    value, end = _DECODER.raw_decode(text)
    while isinstance(value, dict) and end < len(text):
        gap = _SPACE.match(text, end)
        other, end = _DECODER.raw_decode(text, gap.end() if gap else end)
        if other != value:
            raise ValueError("two objects")
    if end < len(text):
        raise ValueError("more than one value")
    return cast("Any", value)


def _refuse(name: str) -> Any:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=_refuse)


def _reason(text: str) -> str:
    try:
        value: Any = orjson.loads(text)
    except ValueError as error:
        return f": {str(error)[:100]}"
    kinds = {"list": "a list", "str": "a string", "bool": "a truth", "NoneType": "null"}
    return f" but {kinds.get(type(cast('object', value)).__name__, 'a number')}"
