"""The text for the model: descriptions of its tools with examples, and earlier calls and results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import orjson

from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
    UserMessage,
)
from jumpseat.agent.model import ToolChoice, ToolSpec
from jumpseat.agent.model_calls.xml_tools.schemas import (
    as_schema,
    items_of,
    kind_of,
    properties_of,
    property_of,
    resolve,
)

_MAX_LEVELS: Final = 3
_XML_NAME: Final = re.compile(r"[^\W\d][\w.-]*\Z")
_RESULT_TAG: Final = re.compile(r"<(?=/?tool_result)")

_HOW: Final = """\
# Tools

You can call tools. To do so, end your answer with a block of this form; nothing may follow it:

<tools>
  <tool name="first_tool">
    <some_parameter>value</some_parameter>
  </tool>
  <tool name="second_tool">
    <some_text><![CDATA[text with <, > or &, verbatim]]></some_text>
  </tool>
</tools>

- A block may contain several calls, as long as none needs the result of another.
- Put code and every text that may contain <, > or & into CDATA, and escape nothing there.
- An array has one <item> per entry. Leave out parameters that you do not need.
- The results come in the next message, in <tool_result> elements. Never write these yourself.
- Every such block is run, so do not write one to explain something.
"""


def instructions(tools: list[ToolSpec], choice: ToolChoice | None) -> str:
    """Return the part of the system message about tools."""
    parts = [_HOW]
    if choice is not None:
        if choice.mode == "required":
            parts.append("Your next answer must call at least one tool.\n")
        elif choice.mode == "specific":
            parts.append(f"Your next answer must call `{choice.name}`.\n")
        if choice.parallel is False:
            parts.append("Call one tool at a time: a block contains one call.\n")
    parts += [_describe_tool(tool) for tool in tools]
    return "\n".join(parts)


def _describe_tool(tool: ToolSpec) -> str:
    schema = tool.parameters
    shown = {name: _example(as_schema(raw), schema, 1) for name, raw in _example_properties(schema)}
    lines = [f"## {tool.name}", *([tool.description.strip()] if tool.description else [])]
    lines += _parameters(schema, schema, 1)
    return "\n".join([*lines, "", "<tools>", _call(tool.name, shown, schema), "</tools>", ""])


def _parameters(schema: JsonObject, root: JsonObject, level: int) -> Iterator[str]:
    """Yield one line for each property, followed by those of nested properties."""
    required: Any = resolve(schema, root).get("required")
    for name, raw in properties_of(schema, root).items():
        prop = resolve(as_schema(raw), root)
        facts = ", ".join(_describe_type(prop, root, needed=isinstance(required, list) and name in required))
        about = " ".join(str(prop.get("description") or "").split())
        yield f"{'  ' * (level - 1)}- {name} ({facts}){f': {about}' if about else ''}"
        if level < _MAX_LEVELS:
            inner = items_of(prop, root) if kind_of(prop, root) == "array" else prop
            yield from _parameters(inner, root, level + 1)


def _example_properties(schema: JsonObject) -> Iterator[tuple[str, Any]]:
    """Yield the properties for the example of a call: required ones, and those with a non-obvious form."""
    required: Any = schema.get("required")
    odd = False
    for name, raw in properties_of(schema, schema).items():
        needed = isinstance(required, list) and name in required
        named = _XML_NAME.match(name) is not None
        if needed or (not named and not odd) or kind_of(as_schema(raw), schema) in ("array", "object"):
            yield name, raw
        odd = odd or not named


def _describe_type(schema: JsonObject, root: JsonObject, *, needed: bool) -> Iterator[str]:
    kind = kind_of(schema, root)
    if isinstance(schema.get("enum"), list):
        yield "one of " + " | ".join(_text_of(value) for value in schema["enum"])
    elif kind == "array":
        yield f"array of {_plural(kind_of(items_of(schema, root), root))}"
    elif kind == "scalar":
        yield "value"
    elif kind == "any":
        yield "JSON"
    else:
        yield kind
    yield "required" if needed else "optional"


def _plural(kind: str) -> str:
    return {"any": "JSON values", "scalar": "values"}.get(kind, f"{kind}s")


def _example(schema: JsonObject, root: JsonObject, level: int) -> Any:
    """Return an example value: one listed in the schema, or else one of its type."""
    schema = resolve(schema, root)
    for key in ("examples", "enum"):
        listed: Any = schema.get(key)
        if isinstance(listed, list) and listed:
            return cast("list[Any]", listed)[0]
    for key in ("const", "default"):
        if schema.get(key) is not None:
            return schema[key]
    match kind_of(schema, root):
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "array":
            return [_example(items_of(schema, root), root, level + 1)] if level < _MAX_LEVELS else []
        case "object":
            if level == _MAX_LEVELS:
                return {}
            properties = properties_of(schema, root)
            return {name: _example(as_schema(raw), root, level + 1) for name, raw in properties.items()}
        case "any":
            return {}
        case _:
            return "text"


# --- earlier calls and results ------------------------------------------------------------------------------------


def as_text(messages: Iterable[Message], tools: Mapping[str, JsonObject], *, vision: bool) -> list[Message]:
    """Convert calls and results to text, so that only user and assistant messages alternate."""
    out: list[Message] = []
    for message in messages:
        match message:
            case AssistantMessage():
                if any(isinstance(block, ToolUseBlock) for block in message.blocks):
                    message = AssistantMessage(list(_calls_to_text(message.blocks, tools)))
                if out and isinstance(last := out[-1], AssistantMessage):
                    out[-1] = AssistantMessage([*last.blocks, *message.blocks])
                else:
                    out.append(message)
            case ToolMessage():
                _user(out, list(_results(message.results, vision=vision)))
            case UserMessage():
                _user(out, message.blocks)
    return out


def _user(out: list[Message], blocks: list[UserBlock]) -> None:
    """Append results or a prompt to the last user message, since such models require alternating roles."""
    if out and isinstance(last := out[-1], UserMessage):
        out[-1] = UserMessage([*last.blocks, *blocks])
    else:
        out.append(UserMessage(blocks))


def _calls_to_text(blocks: list[AssistantBlock], tools: Mapping[str, JsonObject]) -> Iterator[AssistantBlock]:
    """Yield the blocks of an answer, with one text for each sequence of calls."""
    calls: list[ToolUseBlock] = []
    for block in blocks:
        if isinstance(block, ToolUseBlock):
            calls.append(block)
            continue
        if calls:
            yield TextBlock(_calls_text(calls, tools))
            calls = []
        yield block
    if calls:
        yield TextBlock(_calls_text(calls, tools))


def _calls_text(calls: list[ToolUseBlock], tools: Mapping[str, JsonObject]) -> str:
    parts: list[str] = []
    written: list[str] = []
    for call in calls:
        arguments = _arguments(call)
        if arguments is not None:
            written.append(_call(call.name, arguments, tools.get(call.name, {})))
            continue
        parts += _block(written)
        written = []
        parts.append(call.arguments_json)
    return "\n".join(["", *parts, *_block(written)])


def _block(calls: list[str]) -> list[str]:
    return ["<tools>", *calls, "</tools>"] if calls else []


def _arguments(call: ToolUseBlock) -> JsonObject | None:
    if call.arguments or call.arguments_json.strip() in ("", "{}"):
        return call.arguments or {}
    try:
        given = orjson.loads(call.arguments_json)
    except ValueError:
        return None
    return cast("JsonObject", given) if isinstance(given, dict) else None


def _call(name: str, arguments: JsonObject, schema: JsonObject) -> str:
    if not arguments:
        return f'  <tool name="{_attribute(name)}"/>'
    lines = [f'  <tool name="{_attribute(name)}">']
    for key, value in arguments.items():
        if value is not None:
            lines.append(_parameter(key, value, property_of(schema, schema, key), schema, "    "))
    return "\n".join([*lines, "  </tool>"])


def _parameter(key: str, value: Any, schema: JsonObject, root: JsonObject, indent: str) -> str:
    content = _content(value, schema, root, indent)
    if _XML_NAME.match(key):
        return f"{indent}<{key}>{content}</{key}>"
    return f'{indent}<parameter name="{_attribute(key)}">{content}</parameter>'


def _content(value: Any, schema: JsonObject, root: JsonObject, indent: str) -> str:
    """Return a value as elements where the schema describes them, or else as JSON."""
    kind, inner = kind_of(schema, root), indent + "  "
    if kind == "array" and isinstance(value, list) and value:
        one_of = items_of(schema, root)
        lines = [_parameter("item", item, one_of, root, inner) for item in cast("list[Any]", value)]
        return "\n".join(["", *lines, indent])
    if kind == "object" and isinstance(value, dict) and value:
        table = cast("JsonObject", value)
        if table.keys() <= properties_of(schema, root).keys() and all(_XML_NAME.match(key) for key in table):
            lines = [
                _parameter(key, value, property_of(schema, root, key), root, inner) for key, value in table.items()
            ]
            return "\n".join(["", *lines, indent])
    text = _text_of(value)
    if "<" in text or "&" in text or text != text.strip():
        # A text that contains the end of a section is split into two sections.
        return f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>"
    return text


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def _results(results: list[ToolResultBlock], *, vision: bool) -> Iterator[UserBlock]:
    texts: list[str] = []
    images: list[ImageBlock] = []
    for result in results:
        status = "error" if result.is_error else "success"
        # A tool's output must not be able to close its result and open another one.
        text = _RESULT_TAG.sub("&lt;", result.text)
        head = f'name="{_attribute(result.tool_name)}" id="{_attribute(result.tool_use_id)}" status="{status}"'
        texts.append(f"<tool_result {head}>\n{text}\n</tool_result>")
        images += result.images
    yield TextBlock("\n".join(texts))
    if vision:
        yield from images
