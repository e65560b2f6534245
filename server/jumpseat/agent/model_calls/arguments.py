"""Repair malformed tool calls where their meaning is certain, and explain the problem elsewhere.

Incomplete arguments are never completed: a call that is cut off is not run, however little seems to be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import orjson
from msgspec.structs import replace

from jumpseat.agent.blocks import AssistantMessage, JsonObject, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import Completed, ModelRequest, ToolSpec
from jumpseat.agent.model_calls.xml_tools.schemas import as_schema
from jumpseat_protocol.json_values import MOST_DEPTH, is_too_deep

MOST_ARGUMENTS: Final = 1000
"""Tools have a few; what is done for each one takes time."""


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
        repair_call(block, tools, cut_off=block is cut_off) if isinstance(block, ToolUseBlock) else block
        for block in completed.message.blocks
    ]
    if all(block is before for block, before in zip(blocks, completed.message.blocks, strict=True)):
        return completed
    return replace(completed, message=AssistantMessage(blocks))


def repair_call(call: ToolUseBlock, tools: Mapping[str, ToolSpec], *, cut_off: bool = False) -> ToolUseBlock:
    """Return a call in the terms of ``tools``, with a ``problem`` if its arguments cannot be repaired."""
    if call.arguments is not None and len(call.arguments) > MOST_ARGUMENTS:
        return replace(call, problem=f"A call may have {MOST_ARGUMENTS} arguments, and this one has more.")
    # Imported late, like all that few servers need before the first answer.
    from jumpseat.agent.model_calls.written_calls.repair import bare_name, offered_name

    bare = bare_name(call.name)
    if call.name not in tools and (name := offered_name(call.name, tools)) is not None:
        # Marks of a chat template are not repeated to the model.
        written = call.name.partition("<|")[0].partition(":")[0].strip()
        call = replace(call, name=name, dialect=None if written == name else written)
    if "*** " in call.arguments_json and call.problem is None and not cut_off:
        # Few calls look like a patch.
        from jumpseat.agent.model_calls.dialects import as_patch

        call = as_patch(call, bare, tools)
    if call.arguments is None and call.problem is None:
        call = _repair_text(call, cut_off=cut_off)
    if call.arguments is not None and _may_be_wrapped(call.arguments, tools.get(call.name)):
        call = _unwrapped(call, tools.get(call.name))
    if call.arguments is not None and not _is_complete(call.arguments, tools.get(call.name)):
        # Few models need it.
        from jumpseat.agent.model_calls.dialects import translate

        call = translate(call, bare, tools)
    if call.arguments and call.name in tools and None in call.arguments.values():
        call = _without_nulls(call, tools[call.name].parameters)
    return call


def _may_be_wrapped(arguments: JsonObject, tool: ToolSpec | None) -> bool:
    """Return whether arguments may be within the only one, or have lists or objects written as JSON."""
    properties = {} if tool is None else as_schema(tool.parameters.get("properties"))
    return (len(arguments) == 1 and not arguments.keys() <= properties.keys()) or any(
        isinstance(value, str)
        and value[:1] in ("[", "{")
        and as_schema(properties.get(name)).get("type") != "string"
        for name, value in arguments.items()
    )


def _unwrapped(call: ToolUseBlock, tool: ToolSpec | None) -> ToolUseBlock:
    # Few models need it.
    from jumpseat.agent.model_calls.dialects import unwrapped

    arguments = unwrapped(call.arguments or {}, {} if tool is None else tool.parameters)
    if arguments == call.arguments:
        return call
    return replace(call, arguments=arguments, arguments_json=canonical_json(arguments))


def _is_complete(arguments: JsonObject, tool: ToolSpec | None) -> bool:
    """Return whether arguments have all names that a tool requires, and no name that it does not know."""
    if tool is None:
        return False
    schema = tool.parameters
    required: Any = schema.get("required") or ()
    return arguments.keys() >= {*required} and arguments.keys() <= as_schema(schema.get("properties")).keys()


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
    from jumpseat.agent.model_calls.written_calls.repair import repair_arguments

    arguments = repair_arguments(call.arguments_json)
    if arguments is None or is_too_deep(arguments):
        problem = (
            f"The arguments of `{call.name}` are not a JSON object{_reason(call.arguments_json)}."
            " Send the call again with valid JSON."
        )
        return replace(call, problem=problem)
    # The provider's own data for the call is as malformed as the text.
    return replace(
        call, arguments=arguments, arguments_json=canonical_json(arguments), provider=None, provider_data=None
    )


def _reason(text: str) -> str:
    try:
        value: Any = orjson.loads(text)
    except ValueError as error:
        return f": {str(error)[:100]}"
    if isinstance(value, dict):
        return f" of at most {MOST_DEPTH} levels"
    kinds = {"list": "an array", "str": "a string", "bool": "a boolean", "NoneType": "null"}
    return f" but {kinds.get(type(cast('object', value)).__name__, 'a number')}"
