"""Repair of servers' results, so that one invalid entry of a list does not cost all others.

The ``mcp`` package refuses a result as a whole. Invalid members that an entry can do without are removed, and so
are entries without a member that they need; in the result of a tool, a text takes their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final, cast

import mcp.types as types
from pydantic import TypeAdapter, ValidationError

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.mcp.input_schema import repair_schema

PROBLEMS: Final = "jumpseat/problems"
"""The member of ``_meta`` in a repaired list of tools that has the problems, as texts for the user."""

MAX_TOOLS: Final = 500
MAX_LIST_BYTES: Final = 2 * 1024 * 1024

MAX_SHOWN: Final = 2000
"""Characters of an unknown content block that the model gets; longer blocks are left out."""

_ENTRIES: Final[Mapping[str, TypeAdapter[Any]]] = {
    "tools": TypeAdapter(types.Tool),
    "resources": TypeAdapter(types.Resource),
    "resourceTemplates": TypeAdapter(types.ResourceTemplate),
    "prompts": TypeAdapter(types.Prompt),
    "contents": TypeAdapter(types.TextResourceContents | types.BlobResourceContents),
}
"""The members of results that are lists of entries."""

_BLOCKS: Final[Mapping[str, TypeAdapter[Any]]] = {
    "text": TypeAdapter(types.TextContent),
    "image": TypeAdapter(types.ImageContent),
    "audio": TypeAdapter(types.AudioContent),
    "resource": TypeAdapter(types.EmbeddedResource),
    "resource_link": TypeAdapter(types.ResourceLink),
}


def repair_result(result: JsonObject) -> None:
    """Repair the result of any request in place."""
    if isinstance(result.get("tools"), list):
        _repair_tools(result)
    for member, adapter in _ENTRIES.items():
        if isinstance(entries := result.get(member), list):
            result[member] = [entry for entry in cast("list[Any]", entries) if _problem(entry, adapter) is None]
    if "structuredContent" in result or "isError" in result:
        result["content"] = result.get("content") or []
    if isinstance(content := result.get("content"), list):
        blocks: list[Any] = [*content]
        if not isinstance(structured := result.get("structuredContent", {}), dict):
            del result["structuredContent"]
            blocks += (
                []
                if structured is None
                else [_text(_written(structured) or "[structured content left out: nested too deeply]")]
            )
        result["content"] = [_repair_block(block) for block in blocks]


def _repair_tools(result: JsonObject) -> None:
    problems: list[str] = []
    # One more than the limit shows that there are more.
    tools = cast("list[Any]", result["tools"])[: MAX_TOOLS + 1]
    sizes = accumulate(len(_written(tool) or "") for tool in tools)
    fitting = sum(size <= MAX_LIST_BYTES for size in sizes)
    if fitting < len(tools):
        problems.append(f"{len(tools) - fitting} are left out: the definitions are larger than 2 MiB")
    result["tools"] = tools[:fitting]
    for number, tool in enumerate(tools[:fitting]):
        if not isinstance(tool, dict):
            problems.append(f"tools.{number} is left out: expected an object")
            continue
        definition = cast("JsonObject", tool)
        if _written(definition) is None:
            definition["inputSchema"] = None
        name = repr(definition.get("name", f"tools.{number}"))
        definition["inputSchema"], found = repair_schema(definition.get("inputSchema"))
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            problems.append(f"{name}: {found[0]}{more}, which is ignored")
        if definition.get("outputSchema") is not None:
            definition["outputSchema"], _ = repair_schema(definition["outputSchema"])
        if (problem := _problem(definition, _ENTRIES["tools"])) is not None:
            problems.append(f"{name} is left out: {problem}")
    meta = result.get("_meta")
    result["_meta"] = {**(cast("JsonObject", meta) if isinstance(meta, dict) else {}), PROBLEMS: problems}


def _problem(entry: Any, adapter: TypeAdapter[Any]) -> str | None:
    """Remove the invalid members that an entry can do without; return the problem of those that it needs."""
    while True:
        try:
            adapter.validate_python(entry, by_name=False)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            member = first["loc"][0] if first["loc"] else None
            if not isinstance(entry, dict) or member not in entry or member in ("name", "uri", "type"):
                return f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}".removeprefix(": ")
            del entry[member]
        else:
            return None


def _repair_block(block: Any) -> JsonObject:
    kind: Any = cast("JsonObject", block).get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str) or (adapter := _BLOCKS.get(kind)) is None:
        shown = _written(block)
        return _text(
            shown if shown and len(shown) <= MAX_SHOWN else f"[content of the unknown type {kind!r:.100} left out]"
        )
    problem = _problem(block, adapter)
    return cast("JsonObject", block) if problem is None else _text(f"[{kind} left out: {problem}]")


def _written(value: Any) -> str | None:
    """Return a value as JSON, ``None`` if it is nested too deeply for that."""
    try:
        return canonical_json(value)
    except TypeError:
        return None


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}
