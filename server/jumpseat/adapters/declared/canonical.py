"""Convert the conversation between blocks and the plain mappings that handlers use, in CodeCompanion's format.

A message has ``role``, ``content`` (text; base64 for images and documents), and where they apply ``reasoning``,
``tools`` (``{calls: [...]}`` on what the model said, ``{call_id, name, is_error}`` on a result), ``context``
(``{mimetype, path}``), ``opts`` and ``_meta`` (``{tag}``). An answer with text and calls is two messages: the text,
which takes the reasoning, and a hidden one with the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from jumpseat.adapters.wire import arguments_text, as_object, as_text, dump_json, hosted_as_text, parse_arguments
from jumpseat.adapters.wires.tool_schema import object_parameters
from jumpseat.agent.blocks import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    JsonObject,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import ModelRequest, ToolSpec

FormatResponse: TypeAlias = Callable[[JsonObject, str], Any]

HIDDEN: Final[Mapping[str, bool]] = {"visible": False}


def messages_of(
    request: ModelRequest, provider: str, roles: Mapping[str, str], format_response: FormatResponse | None
) -> list[JsonObject]:
    """Return the whole conversation with the provider's names of roles.

    Reasoning is included only if it was produced by ``provider``, because no other provider can use it.
    """
    messages: list[JsonObject] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    calls: dict[str, JsonObject] = {}
    for message in request.messages:
        match message:
            case UserMessage():
                messages += _user(message, vision=request.vision)
            case AssistantMessage():
                messages += _assistant(message, provider)
                calls = {use.id: call_of(position, use) for position, use in enumerate(message.tool_uses())}
            case ToolMessage():
                for result in message.results:
                    call = calls.get(result.tool_use_id) or {"id": result.tool_use_id}
                    made = format_response(call, result.text) if format_response is not None else None
                    entry = as_object(made) or {
                        "role": "tool",
                        "content": result.text,
                        "tools": {"call_id": result.tool_use_id, "name": result.tool_name},
                        "opts": dict(HIDDEN),
                    }
                    if result.is_error:
                        entry["tools"] = {**as_object(entry.get("tools")), "is_error": True}
                    messages.append(entry)
                    if request.vision:
                        messages += [
                            _attached("image", image.data, image.mime_type, None) for image in result.images
                        ]
    for entry in messages:
        role = as_text(entry.get("role")).lower()
        entry["role"] = roles.get(role, _USUAL_ROLES.get(role, role))
    return messages


_USUAL_ROLES: Final = {"llm": "assistant"}


def _user(message: UserMessage, *, vision: bool) -> Iterator[JsonObject]:
    text: list[str] = []
    for block in message.blocks:
        match block:
            case TextBlock():
                text.append(block.text)
            case ImageBlock():
                if vision:
                    yield _attached("image", block.data, block.mime_type, block.label)
            case DocumentBlock():
                yield _attached("document", block.data, block.mime_type, block.title)
    if text:
        yield {"role": "user", "content": "\n".join(text)}


def _attached(tag: str, data: str, mime_type: str, path: str | None) -> JsonObject:
    context = {"mimetype": mime_type} if path is None else {"mimetype": mime_type, "path": path}
    return {"role": "user", "content": data, "context": context, "opts": dict(HIDDEN), "_meta": {"tag": tag}}


def _assistant(message: AssistantMessage, provider: str) -> Iterator[JsonObject]:
    said = (block.text if isinstance(block, TextBlock) else hosted_as_text(block) for block in message.blocks)
    text = "\n\n".join(part for part in said if part) if _has_hosted(message) else message.text()
    own = [b for b in message.blocks if isinstance(b, ReasoningBlock) and b.provider == provider]
    reasoning = _reasoning(own[-1]) if own else None
    uses = message.tool_uses()
    if text or not uses:
        entry: JsonObject = {"role": "llm", "content": text}
        if reasoning is not None:
            entry["reasoning"] = reasoning
        yield entry
    if uses:
        entry = {
            "role": "llm",
            "tools": {"calls": [call_of(position, use) for position, use in enumerate(uses)]},
            "opts": dict(HIDDEN),
        }
        if reasoning is not None and not text:
            entry["reasoning"] = reasoning
        yield entry


def _has_hosted(message: AssistantMessage) -> bool:
    return any(hosted_as_text(block) for block in message.blocks)


def _reasoning(block: ReasoningBlock) -> Any:
    """Return the result of ``build_reasoning``, or else the text."""
    return block.provider_data if block.provider_data is not None else {"content": block.text}


def call_of(position: int, use: ToolUseBlock) -> JsonObject:
    """Return a tool call in canonical form, including the provider's extra fields."""
    extra = as_object(use.provider_data)
    return {
        **extra,
        "_index": position,
        "id": use.id,
        "type": "function",
        "function": {"name": use.name, "arguments": arguments_text(use)},
    }


def use_of(call: Mapping[str, Any], provider: str, fallback_id: str) -> ToolUseBlock:
    """Convert a canonical tool call, or one of the form ``{id, name, input}``, into a block."""
    function = as_object(call.get("function"))
    arguments = function.get("arguments", call.get("input", call.get("arguments")))
    text = arguments if isinstance(arguments, str) else dump_json(arguments) if arguments is not None else ""
    extra = {key: value for key, value in call.items() if key not in _CALL_FIELDS}
    return ToolUseBlock(
        as_text(call.get("id")) or fallback_id,
        as_text(function.get("name")) or as_text(call.get("name")),
        text,
        parse_arguments(text),
        provider if extra else None,
        extra or None,
    )


_CALL_FIELDS: Final = frozenset({"_index", "index", "id", "type", "function", "name", "input", "arguments"})


def tools_of(tools: list[ToolSpec]) -> list[JsonObject]:
    """Return the tools as passed to ``build_tools``: a list of tables, each from one name to its definition."""
    return [
        {
            tool.name: {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": object_parameters(tool.parameters),
                    **({"strict": True} if tool.strict else {}),
                },
            }
        }
        for tool in tools
    ]


def reasoning_of(chunks: list[Any]) -> tuple[str, Any]:
    """Return the text of reasoning, and its raw chunks if they contain more than text."""
    text = "".join(c if isinstance(c, str) else as_text(as_object(c).get("content")) for c in chunks)
    plain = all(isinstance(c, str) or set(cast("JsonObject", c)) <= {"content"} for c in chunks)
    return text, None if plain else chunks
