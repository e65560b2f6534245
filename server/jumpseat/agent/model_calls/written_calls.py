"""Calls that a model writes in the form that it was trained on, as text: JSON or XML in known wrappers.

A server with a parser for the model turns them into calls. Only complete calls of offered tools count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast
from uuid import uuid4

from msgspec.structs import replace

from jumpseat.agent.blocks import AssistantMessage, JsonObject, TextBlock, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.agent.model_calls.arguments import may_have_calls, offered_name, repair_arguments
from jumpseat.agent.model_calls.xml_tools.arguments import read_calls
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner

Call: TypeAlias = tuple[str, JsonObject]
_Tools: TypeAlias = Mapping[str, JsonObject]

# Hermes and Qwen: <tool_call>; Qwen3-Coder: <function=name>; Mistral: [TOOL_CALLS]; Llama: <|python_tag|>.
_FORMS: Final = (
    r"^[ \t]*```[ \t]*(?P<label>[\w-]*)[ \t]*\n(?P<code>.*?)\n[ \t]*```"
    r"|<(?P<tag>tool_calls?|function_calls?|tools)>(?P<inner>.*?)(?:</(?P=tag)>|\Z)"
    r"|<function=(?P<function>[^<>\s]+)>(?P<given>.*?)</function>"
    r"|(?P<mark>\[TOOL_CALLS\]|<\|(?:python_tag|tool_call)\|>)(?P<after>.*)"
)
_PARAMETER: Final = re.compile(r"<(/?)parameter(?:=([\w.-]+))?>")
_LABELS: Final = ("", "json", "xml", "tool_call", "tool_calls", "tool_code")
_NAMES: Final = ("name", "tool_name", "tool", "function")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input", "tool_input")
_BETWEEN: Final = re.compile(r"[\s,;]*")
# Mistral's newer form: the name, and its arguments.
_MARKED: Final = re.compile(r"\s*([\w.-]+)\s*(?:\[CALL_ID\][^\[{]*)?(?:\[ARGS\])?\s*(?=\{)")


def take_written_calls(completed: Completed, request: ModelRequest) -> Completed:
    """Convert the calls in the text of an answer to ``request`` that has no others."""
    choice = request.tool_choice
    if completed.message.tool_uses() or not request.tools or (choice is not None and choice.mode == "none"):
        return completed
    calls, rest = find_calls(completed.message.text(), {tool.name: tool.parameters for tool in request.tools})
    if not calls:
        return completed
    if choice is not None and choice.parallel is False:
        calls = calls[:1]
    blocks = [block for block in completed.message.blocks if not isinstance(block, TextBlock)]
    text = [TextBlock(rest)] if rest else []
    uses = [ToolUseBlock(f"call_{uuid4().hex}", name, canonical_json(given), given) for name, given in calls]
    return replace(completed, message=AssistantMessage([*blocks, *text, *uses]), stop_reason="tool_use")


def find_calls(text: str, tools: _Tools) -> tuple[list[Call], str]:
    """Return the calls in ``text``, and the rest of it. ``tools`` are the schemas of the offered tools by name.

    JSON without a wrapper must be the whole text, and a code block must end it: others may be examples.
    """
    if not may_have_calls(text):
        return [], text
    if (calls := _of_json(text, tools)) is not None:
        return calls, ""
    found: list[tuple[re.Match[str], list[Call]]] = []
    for match in _pattern(tools).finditer(text):
        if calls := _of_match(match, tools):
            found.append((match, calls))
    end = len(text)
    for at, (match, _) in reversed(list(enumerate(found))):
        if match["code"] is not None and text[match.end() : end].strip():
            del found[at]
        else:
            end = match.start()
    rest, at = "", 0
    for match, _ in found:
        rest, at = rest + text[at : match.start()], match.end()
    return [call for _, calls in found for call in calls], (rest + text[at:]).strip() if found else text


def _pattern(tools: _Tools) -> re.Pattern[str]:
    """Return the pattern of all forms, among them an element with the name of a tool."""
    names = "|".join(map(re.escape, tools)) or r"(?!)"
    return re.compile(rf"{_FORMS}|^[ \t]*<(?P<tool>{names})>(?P<body>.*?)</(?P=tool)>", re.DOTALL | re.MULTILINE)


def _of_match(match: re.Match[str], tools: _Tools) -> list[Call]:
    if (code := match["code"]) is not None:
        return _inside(code, tools) if match["label"].lower() in _LABELS else []
    if (inner := match["inner"]) is not None:
        return _inside(inner, tools)
    if match["function"] is not None:
        given = repair_arguments(match["given"])
        if given is not None:
            name = offered_name(match["function"], tools)
            return [(name, given)] if name is not None else []
        return _of_xml(match["function"], match["given"], tools)
    if (after := match["after"]) is not None:
        return _of_json(after, tools) or list(_of_marked(after, tools))
    return _of_xml(match["tool"], match["body"], tools)


def _inside(text: str, tools: _Tools) -> list[Call]:
    """Return the calls in a wrapper that contains nothing else."""
    calls, rest = find_calls(text, tools)
    return [] if rest else calls


def _of_marked(text: str, tools: _Tools) -> Iterator[Call]:
    while named := _MARKED.match(text):
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(text, named.end())
        except ValueError:
            return
        if (name := offered_name(named[1], tools)) is not None:
            yield name, value
        text = text[end:].removeprefix("[TOOL_CALLS]")


def _of_xml(name: str, body: str, tools: _Tools) -> list[Call]:
    """Return the call with elements as arguments: the schema decides about their types."""
    offered = offered_name(name, tools)
    if offered is None:
        return []
    key = ""

    def element(tag: re.Match[str]) -> str:
        nonlocal key
        key = tag[2] or key
        return f"<{tag[1]}{key}>"

    scanner = Scanner(tools)
    block = f'<tools><tool name="{offered}">{_PARAMETER.sub(element, body)}</tool></tools>'
    pieces = [*scanner.feed(block), *scanner.finish()]
    written = [
        call
        for piece in pieces
        if not isinstance(piece, str) and piece.problem is None
        for tool in piece.tools
        for call in read_calls(tool)
    ]
    return [(call.name, call.arguments) for call in written if call.arguments is not None]


def _of_json(text: str, tools: _Tools) -> list[Call] | None:
    """Return the calls in a text of JSON alone; ``None`` if it is anything else."""
    text = text.strip()
    if not text.startswith(("{", "[")):
        return None
    calls: list[Call] = []
    at = 0
    try:
        while at < len(text):
            value, at = json.JSONDecoder(strict=False).raw_decode(text, at)
            for item in cast("list[Any]", value) if isinstance(value, list) else [value]:
                calls.append(_to_call(item, tools))
            between = _BETWEEN.match(text, at)
            at = between.end() if between is not None else at
    except (ValueError, RecursionError):
        return None
    return calls or None


def _to_call(value: Any, tools: _Tools) -> Call:
    """Raise ``ValueError`` if ``value`` is no call of an offered tool."""
    if not isinstance(value, dict):
        raise ValueError("not an object")
    written = cast("JsonObject", value)
    if isinstance(function := written.get("function"), dict):
        written = cast("JsonObject", function)
    name = next((name for key in _NAMES if isinstance(name := written.get(key), str)), "")
    arguments = next((written[key] for key in _ARGUMENTS if key in written), None)
    if isinstance(arguments, str):
        arguments = repair_arguments(arguments)
    offered = offered_name(name, tools)
    if offered is None or not isinstance(arguments, dict):
        raise ValueError("not a call of an offered tool")
    return offered, cast("JsonObject", arguments)
