"""Calls that a model writes in the form that it was trained on, as text: JSON or XML in known wrappers.

A server with a parser for the model turns them into calls. Only complete calls of offered tools count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.agent.blocks import AssistantMessage, JsonObject, TextBlock, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.agent.model_calls.arguments import may_have_calls, offered_name, repair_arguments
from jumpseat.agent.model_calls.xml_tools.arguments import read_calls
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner

Call: TypeAlias = tuple[str, JsonObject]
_Tools: TypeAlias = Mapping[str, JsonObject]

MAX_DEPTH: Final = 8
"""Limit of the wrappers in each other."""

# Hermes and Qwen: <tool_call>; Qwen3-Coder: <function=name>; Mistral: [TOOL_CALLS]; Llama: <|python_tag|>.
_BEGINNINGS: Final = (
    r"^[ \t]*```[ \t]*+(?P<code>[\w-]*)[ \t]*\n"
    r"|<(?P<wrapper>tool_calls?|function_calls?|tools)>"
    r"|<function=(?P<function>[^<>\s]+)>"
    r"|\[TOOL_CALLS\]|<\|(?:python_tag|tool_call)\|>"
)
_MARK: Final = "[TOOL_CALLS]"
_CODE_END: Final = re.compile(r"\n[ \t]*```")
_PARAMETER: Final = re.compile(r"<(/?)parameter(?:=([\w.-]+))?>")
_LABELS: Final = ("", "json", "xml", "tool_call", "tool_calls", "tool_code")
_NAMES: Final = ("name", "tool_name", "tool", "function")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input", "tool_input")
_BETWEEN: Final = re.compile(r"[\s,;]*")
# Mistral's newer form: the name, and its arguments.
_MARKED: Final = re.compile(r"\s*+([\w.-]+)\s*+(?:\[CALL_ID\][^\[{]*+)?(?:\[ARGS\])?\s*+(?=\{)")


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


def find_calls(text: str, tools: _Tools, depth: int = 0) -> tuple[list[Call], str]:
    """Return the calls in ``text``, and the rest of it. ``tools`` are the schemas of the offered tools by name.

    JSON without a wrapper must be the whole text, and a code block must end it: others may be examples.
    """
    if not may_have_calls(text):
        return [], text
    if (calls := _of_json(text, tools)) is not None:
        return calls, ""
    found = [(form, calls) for form in _forms(text, tools) if (calls := _calls_of(form, tools, depth))]
    end = len(text)
    for at, (form, _) in reversed(list(enumerate(found))):
        if form.begins["code"] is not None and text[form.end : end].strip():
            del found[at]
        else:
            end = form.begins.start()
    rest, at = "", 0
    for form, _ in found:
        rest, at = rest + text[at : form.begins.start()], form.end
    return [call for _, calls in found for call in calls], (rest + text[at:]).strip() if found else text


class _Form(Struct, frozen=True):
    """A part of a text that may hold calls: its beginning, its contents, and the offset of its end in the text."""

    begins: re.Match[str]
    inner: str
    end: int


def _forms(text: str, tools: _Tools) -> Iterator[_Form]:
    """Yield the forms in a text, among them an element with the name of a tool."""
    names = "|".join(map(re.escape, tools)) or r"(?!)"
    beginnings = re.compile(rf"{_BEGINNINGS}|^[ \t]*<(?P<tool>{names})>", re.MULTILINE)
    # The ends that are missing in the rest of the text, which is searched once for each.
    missing: set[str] = set()
    at = 0
    while begins := beginnings.search(text, at):
        at = begins.end()
        if begins["code"] is not None:
            closing = _CODE_END.search(text, at) if "```" not in missing else None
            if closing is None:
                missing.add("```")
                continue
            yield _Form(begins, text[at : closing.start()], at := closing.end())
            continue
        name = begins["wrapper"] or begins["tool"] or (begins["function"] and "function")
        end = f"</{name}>"
        found = text.find(end, at) if name and end not in missing else -1
        if found >= 0:
            yield _Form(begins, text[at:found], at := found + len(end))
        elif name is None or begins["wrapper"]:
            # The answer may end without the closing tag.
            yield _Form(begins, text[at:], len(text))
            return
        else:
            missing.add(end)


def _calls_of(form: _Form, tools: _Tools, depth: int) -> list[Call]:
    begins, inner = form.begins, form.inner
    if (label := begins["code"]) is not None:
        return _inside(inner, tools, depth) if label.lower() in _LABELS else []
    if begins["wrapper"]:
        return _inside(inner, tools, depth)
    if begins["function"]:
        given = repair_arguments(inner)
        if given is not None:
            name = offered_name(begins["function"], tools)
            return [(name, given)] if name is not None else []
        return _of_xml(begins["function"], inner, tools)
    if begins["tool"]:
        return _of_xml(begins["tool"], inner, tools)
    return _of_json(inner, tools) or list(_of_marked(inner, tools))


def _inside(text: str, tools: _Tools, depth: int) -> list[Call]:
    """Return the calls in a wrapper that contains nothing else."""
    calls, rest = find_calls(text, tools, depth + 1) if depth < MAX_DEPTH else ([], text)
    return [] if rest else calls


def _of_marked(text: str, tools: _Tools) -> Iterator[Call]:
    at = 0
    while named := _MARKED.match(text, at):
        try:
            value, at = json.JSONDecoder(strict=False).raw_decode(text, named.end())
        except (ValueError, RecursionError):
            return
        if (name := offered_name(named[1], tools)) is not None:
            yield name, value
        at += len(_MARK) if text.startswith(_MARK, at) else 0


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
