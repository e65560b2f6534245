"""Repair malformed tool calls where their meaning is certain, and explain the problem elsewhere.

Incomplete arguments are never completed: a call that is cut off is not run, however little seems to be missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, cast

import orjson
from msgspec.structs import replace

from jumpseat.agent.blocks import AssistantMessage, JsonObject, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import Completed, ModelRequest, ToolSpec
from jumpseat.agent.model_calls.xml_tools.schemas import as_schema

MAX_REPAIRED_CHARS: Final = 1024 * 1024
MAX_NAME_CHARS: Final = 1024

_SPACE: Final = re.compile(r"\s*")
_FENCED: Final = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*\Z", re.DOTALL | re.IGNORECASE)
# A string (the last one may be open), or a trailing comma: commas in strings are left alone.
_TRAILING_COMMA: Final = re.compile(r"(\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z))|,(?=\s*[}\]])", re.DOTALL)

# What models write around the name of a tool: spaces and quotes, a namespace, a number, and tokens of their format.
_NOISE: Final = re.compile(
    r"[\s\"'`]*(?:(?:functions?|tools?|default_api)[.:/])?(.*?)[\s\"'`]*(?::\d+)?(?:\(\))?(?:<\|.*)?\s*",
    re.DOTALL | re.IGNORECASE,
)


MAX_WRITTEN: Final = 200_000
"""The length up to which a text is searched for calls, in characters."""

_MARKS: Final = (
    *("</", "<|", "[TOOL_CALLS]"),
    *(f"{quote}{name}{quote}" for quote in "\"'" for name in ("name", "tool", "function", "tool_name")),
)


def may_have_calls(text: str) -> bool:
    """Return whether a text that a model wrote may contain calls, for ``written_calls.py`` to find."""
    return len(text) <= MAX_WRITTEN and any(mark in text for mark in _MARKS)


def repair_calls(
    completed: Completed, request: ModelRequest, deferred: Callable[[], Sequence[ToolSpec]] = tuple
) -> Completed:
    """Repair the calls in an answer to ``request``; those that cannot be repaired get a ``problem``.

    ``deferred`` are tools that can be called, too, although the request has none of them.
    """
    if not completed.message.tool_uses():
        return completed
    tools = {tool.name: tool for tool in (*request.tools, *deferred())}
    cut_off = completed.message.tool_uses()[-1] if completed.stop_reason == "max_tokens" else None
    blocks = [
        _repair_call(block, tools, cut_off=block is cut_off) if isinstance(block, ToolUseBlock) else block
        for block in completed.message.blocks
    ]
    if all(block is before for block, before in zip(blocks, completed.message.blocks, strict=True)):
        return completed
    return replace(completed, message=AssistantMessage(blocks))


def _repair_call(call: ToolUseBlock, tools: Mapping[str, ToolSpec], *, cut_off: bool) -> ToolUseBlock:
    bare = _bare(call.name)
    if call.name not in tools and (name := offered_name(call.name, tools)) is not None:
        call = replace(call, name=name, dialect=None if bare == name else bare)
    if "*** " in call.arguments_json and call.problem is None and not cut_off:
        # Few calls look like a patch.
        from jumpseat.agent.model_calls.dialects import as_patch

        call = as_patch(call, bare, tools)
    if call.arguments is None and call.problem is None:
        call = _repair_text(call, cut_off=cut_off)
    if call.arguments is not None and not _is_complete(call.arguments, tools.get(call.name)):
        # Few models need it.
        from jumpseat.agent.model_calls.dialects import translate

        call = translate(call, bare, tools)
    if call.arguments and call.name in tools and None in call.arguments.values():
        call = _without_nulls(call, tools[call.name].parameters)
    return call


def offered_name(name: str, tools: Collection[str]) -> str | None:
    """Return the only one of ``tools`` that a name with noise can mean, or ``None``."""
    bare = _bare(name).casefold()
    found = [tool for tool in tools if tool.casefold() == bare]
    return found[0] if len(found) == 1 else None


def _bare(name: str) -> str:
    noisy = _NOISE.fullmatch(name) if len(name) <= MAX_NAME_CHARS else None
    return noisy[1] if noisy is not None else name


def _is_complete(arguments: JsonObject, tool: ToolSpec | None) -> bool:
    """Return whether arguments have all names that a tool requires, and no name that it does not know."""
    if tool is None:
        return False
    required: Any = tool.parameters.get("required") or ()
    return (
        arguments.keys() >= {*required} and arguments.keys() <= as_schema(tool.parameters.get("properties")).keys()
    )


def _without_nulls(call: ToolUseBlock, schema: JsonObject) -> ToolUseBlock:
    """Leave out the optional arguments that are null where the schema does not allow that."""
    properties = as_schema(schema.get("properties"))
    required: Any = schema.get("required") or ()
    arguments = {
        name: value
        for name, value in (call.arguments or {}).items()
        if value is not None or name in required or name not in properties or _takes_null(properties[name])
    }
    if arguments == call.arguments:
        return call
    return replace(call, arguments=arguments, arguments_json=canonical_json(arguments))


def _takes_null(schema: Any) -> bool:
    """Return whether a schema may allow null; one that says nothing about its type, or refers to another, may."""
    described = as_schema(schema)
    kinds, choices = described.get("type"), described.get("enum")
    if isinstance(choices, list):
        return None in choices
    if kinds is not None:
        return "null" in kinds
    variants: Any = described.get("anyOf", described.get("oneOf"))
    return variants is None or any(_takes_null(variant) for variant in variants)


def _repair_text(call: ToolUseBlock, *, cut_off: bool) -> ToolUseBlock:
    if cut_off:
        problem = (
            f"`{call.name}` was not run: its arguments were cut off by the limit on output tokens."
            " Send less in one call, or split it into several calls."
        )
        return replace(call, problem=problem)
    arguments = repair_arguments(call.arguments_json)
    if arguments is None:
        problem = (
            f"The arguments of `{call.name}` are not a JSON object{_reason(call.arguments_json)}."
            " Send the call again with valid JSON."
        )
        return replace(call, problem=problem)
    # The provider's own data for the call is as malformed as the text.
    return replace(
        call, arguments=arguments, arguments_json=canonical_json(arguments), provider=None, provider_data=None
    )


def repair_arguments(text: str) -> JsonObject | None:
    """Parse arguments leniently and return the object; ``None`` if the meaning of ``text`` is not certain.

    Accepted are objects in fenced code blocks or encoded as a JSON string, repetitions of the same object, line
    breaks and tabs in strings, and trailing commas.
    """
    if len(text) > MAX_REPAIRED_CHARS:
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
        # Integers beyond 64 bits become floats and lone surrogates are refused: the wire takes neither.
        value = orjson.loads(json.dumps(value))
    except (ValueError, RecursionError):
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None


def _lenient(text: str) -> Any:
    """Parse a JSON value or repetitions of the same object.

    Raises:
        ValueError: ``text`` is not JSON, or contains different values.
    """
    text = text.strip()
    value, end = _DECODER.raw_decode(text)
    while isinstance(value, dict) and end < len(text):
        gap = _SPACE.match(text, end)
        other, end = _DECODER.raw_decode(text, gap.end() if gap else end)
        if other != value:
            raise ValueError("different objects")
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
    kinds = {"list": "an array", "str": "a string", "bool": "a boolean", "NoneType": "null"}
    return f" but {kinds.get(type(cast('object', value)).__name__, 'a number')}"
