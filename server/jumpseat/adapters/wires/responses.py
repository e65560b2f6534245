"""OpenAI's Responses API, and servers that speak it.

The provider stores nothing (``store`` is false): every request carries the whole conversation, and reasoning goes
back in the encrypted form it came in. ``call_id`` connects calls and results; the ids of items are not used,
because some servers give an item another id in each event.

Options of the endpoint (``Endpoint.options``), for servers that need them:

====================== ================== =============================================================
option                 default            meaning
====================== ================== =============================================================
``system_role``        ``instructions``   ``system`` or ``developer``: the system message as first input
``reasoning``          by model name      whether the model reasons; others refuse the fields for reasoning
``hosted_tools``       ``[]``             tools that the provider runs itself (``[{"type": "web_search"}]``)
``custom_tools``       ``true``           whether models whose family takes free-form tools are offered them
``think_tags``         not at OpenAI      whether ``<think>`` at the beginning of an answer encloses reasoning
``context_editing``    ``false``          whether the provider compacts long conversations, before the server does
``body``               ``{}``             more fields for the body; they win
====================== ================== =============================================================
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from hashlib import blake2s
from typing import Any, ClassVar, Final

from jumpseat.adapters.adapter import Decoder, Endpoint
from jumpseat.adapters.capabilities import hosted
from jumpseat.adapters.wire import (
    arguments_text,
    as_list,
    as_object,
    as_text,
    data_url,
    document_text,
    hosted_as_text,
)
from jumpseat.adapters.wires.chat import PathAdapter, is_openai, named_schema
from jumpseat.adapters.wires.responses_decoder import ResponsesDecoder, free_form_tools, replayable
from jumpseat.adapters.wires.tool_schema import object_parameters
from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    DocumentBlock,
    HostedToolResultBlock,
    HostedToolUseBlock,
    ImageBlock,
    JsonObject,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import EditsContext, ModelRequest, ToolChoice, ToolSpec

ENCRYPTED: Final = "reasoning.encrypted_content"

MAX_CALL_ID: Final = 64
"""The wire refuses longer call ids, which other providers produce."""

_REASONING_MODELS: Final = re.compile(
    r"(?:^|/)(?:o[1-9]|gpt-(?:[5-9]|\d\d)|codex|grok-4)(?![a-z0-9])", re.IGNORECASE
)


class ResponsesAdapter(PathAdapter):
    """Responses at ``<base_url>/responses``."""

    name: str = "openai_responses"
    option_names = frozenset(
        {"system_role", "reasoning", "hosted_tools", "custom_tools", "think_tags", "context_editing", "body"}
    )
    path: ClassVar[str] = "/responses"
    hosted: Mapping[str, JsonObject] = {
        "web_search": {"type": "web_search"},
        "code_execution": {"type": "code_interpreter", "container": {"type": "auto"}},
        "file_search": {"type": "file_search"},
    }

    def decoder(self, request: ModelRequest) -> Decoder:
        return ResponsesDecoder(self.signature, request)

    def body(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        options = self.options(endpoint)
        role = options.get("system_role")
        body: JsonObject = {"model": request.model}
        if request.system and not role:
            body["instructions"] = request.system
        free_form = {} if options.get("custom_tools") is False else free_form_tools(request.tools)
        body["input"] = self.input(request, free_form)
        if request.system and role:
            body["input"].insert(0, message_item(str(role), request.system))
        wanted = [{**form, **more} for form, more in hosted(self.hosted, request)]
        kinds = {tool["type"] for tool in wanted}
        configured = [
            tool for tool in as_list(options.get("hosted_tools")) if as_object(tool).get("type") not in kinds
        ]
        ours = (
            custom_tool_to_wire(tool) if tool.name in free_form else tool_to_wire(request, tool)
            for tool in request.tools
        )
        tools = [*ours, *wanted, *configured]
        if tools:
            body["tools"] = tools
            if request.tool_choice is not None:
                body["tool_choice"] = tool_choice_to_wire(request.tool_choice, free_form)
                if request.tool_choice.parallel is not None:
                    body["parallel_tool_calls"] = request.tool_choice.parallel
        body["stream"] = request.stream
        body["store"] = False
        if self.edits_context(endpoint) and request.context_editing is not None:
            # https://developers.openai.com/api/docs/guides/compaction
            body["context_management"] = [
                {"type": "compaction", "compact_threshold": request.context_editing.begin}
            ]
        body.update(_reasoning_fields(request, options.get("reasoning")))
        more = ["code_interpreter_call.outputs"] if "code_interpreter" in kinds else []
        if "web_search" in kinds and is_openai(endpoint.base_url):
            # Other servers may refuse a value that they do not know.
            more.append("web_search_call.action.sources")
        if more:
            # The output of the code and the pages found come only on request.
            body["include"] = [*body.get("include", []), *more]
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = request.max_output_tokens
        if request.response_format is not None:
            body["text"] = {"format": {"type": "json_schema", **named_schema(request.response_format)}}
        body.update(as_object(options.get("body")))
        return body

    def edits_context(self, endpoint: Endpoint) -> EditsContext | None:
        return "compacts" if self.options(endpoint).get("context_editing") is True else None

    def input(self, request: ModelRequest, free_form: Mapping[str, str]) -> list[JsonObject]:
        """Write the conversation as items; ``free_form`` are the free-form tools, with their arguments.

        What the provider has compacted is left out: its last compaction stands for that.
        """
        write = partial(self.message_items, vision=request.vision, free_form=free_form)
        begin = 0 if request.context_editing is None else self._last_compaction(request.messages)
        form = (type(self), self.signature, request.vision, frozenset(free_form), begin)
        return request.write(form, request.messages[begin:] if begin else request.messages, write)

    def _last_compaction(self, messages: Sequence[Message]) -> int:
        """Return the number of the last message with a compaction of this provider; 0 without any."""
        for number in range(len(messages) - 1, -1, -1):
            message = messages[number]
            if isinstance(message, AssistantMessage) and any(map(self._is_compaction, message.blocks)):
                return number
        return 0

    def _is_compaction(self, block: AssistantBlock) -> bool:
        if not isinstance(block, ReasoningBlock) or block.provider != self.signature:
            return False
        return as_object(as_object(block.provider_data).get("item")).get("type") == "compaction"

    def message_items(self, message: Message, *, vision: bool, free_form: Mapping[str, str]) -> list[JsonObject]:
        """Write one message."""
        match message:
            case UserMessage():
                return user_items(message, vision=vision)
            case AssistantMessage():
                return self.assistant_items(message, free_form)
            case ToolMessage():
                return tool_result_items(message, vision=vision, free_form=free_form)

    def assistant_items(self, message: AssistantMessage, free_form: Mapping[str, str]) -> list[JsonObject]:
        """Write an answer in its order; reasoning that led to a call stands before that call."""
        calls = {block.id for block in message.tool_uses()}
        before_call: dict[str, list[JsonObject]] = {}
        items: list[JsonObject] = []
        texts: list[str] = []

        def end_text() -> None:
            if any(texts):
                items.append(message_item("assistant", "".join(texts)))
            texts.clear()

        for block in message.blocks:
            match block:
                case TextBlock():
                    texts.append(block.text)
                case ReasoningBlock():
                    kept = as_object(block.provider_data) if block.provider == self.signature else {}
                    item = replayable(as_object(kept.get("item")))
                    call = as_text(kept.get("before"))
                    if item and call in calls:
                        before_call.setdefault(call, []).append(item)
                    elif item:
                        end_text()
                        items.append(item)
                case ToolUseBlock():
                    end_text()
                    items += before_call.pop(block.id, [])
                    items.append(call_item(block, free_form))
                case HostedToolUseBlock() | HostedToolResultBlock():
                    own = block.provider == self.signature
                    item = replayable(as_object(block.provider_data)) if own else {}
                    if not item and not (own and isinstance(block, HostedToolResultBlock)):
                        text = hosted_as_text(block)
                        item = message_item("assistant", text) if text else {}
                    if item:
                        end_text()
                        items.append(item)
        end_text()
        return _without_lone_reasoning(items)


def _without_lone_reasoning(items: list[JsonObject]) -> list[JsonObject]:
    """Leave out reasoning at the end of an answer, as of one that was cut off: the wire requires its next item."""
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    return items


def _reasoning_fields(request: ModelRequest, reasons: Any) -> JsonObject:
    """Write the effort, and request reasoning in a form that can be sent back."""
    if reasons is None:
        reasons = request.reasoning_effort is not None or _REASONING_MODELS.search(request.model) is not None
    if not reasons:
        return {}
    wanted: JsonObject = {}
    if request.reasoning_effort is not None:
        wanted["effort"] = request.reasoning_effort
    if request.reasoning_summary not in (None, "none"):
        wanted["summary"] = request.reasoning_summary
    fields: JsonObject = {"include": [ENCRYPTED]}
    if wanted:
        fields["reasoning"] = wanted
    return fields


def tool_to_wire(request: ModelRequest, tool: ToolSpec) -> JsonObject:
    """Write one function definition."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": request.write_schema(tool, object_parameters),
        # By default the wire makes every schema strict, which turns optional properties into required ones.
        "strict": bool(tool.strict),
    }


def custom_tool_to_wire(tool: ToolSpec) -> JsonObject:
    """Write the definition of a free-form tool."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": tool.grammar}
    return {"type": "custom", "name": tool.name, "description": tool.description, "format": grammar}


def call_item(block: ToolUseBlock, free_form: Mapping[str, str]) -> JsonObject:
    """Write a call: as free text if its tool is free-form in this request, whatever wire the call came from."""
    call = {"call_id": _call_id(block.id), "name": block.name}
    if block.name not in free_form:
        return {"type": "function_call", **call, "arguments": arguments_text(block)}
    text = (block.arguments or {}).get(free_form[block.name])
    return {"type": "custom_tool_call", **call, "input": text if isinstance(text, str) else block.arguments_json}


def tool_choice_to_wire(choice: ToolChoice, free_form: Collection[str]) -> str | JsonObject:
    """Write the choice of tools."""
    kind = "custom" if choice.name in free_form else "function"
    return {"type": kind, "name": choice.name} if choice.mode == "specific" else choice.mode


def message_item(role: str, content: str | list[JsonObject]) -> JsonObject:
    """Write a message as an input item."""
    return {"type": "message", "role": role, "content": content}


def user_items(message: UserMessage, *, vision: bool) -> list[JsonObject]:
    """Write one user message, or none if it has only images and the model takes none."""
    parts: list[JsonObject] = []
    for block in message.blocks:
        match block:
            case TextBlock():
                parts.append(_text_part(block.text))
            case ImageBlock():
                if vision:
                    parts += image_parts(block)
            case DocumentBlock():
                parts.append(document_part(block))
    if not parts:
        return []
    if all(part["type"] == "input_text" for part in parts):
        return [message_item("user", "\n".join(part["text"] for part in parts))]
    return [message_item("user", parts)]


def tool_result_items(message: ToolMessage, *, vision: bool, free_form: Collection[str]) -> list[JsonObject]:
    """Write the results in call order, then one user message for each result with images.

    The wire takes images in results too, but many servers that speak it do not.
    """
    items: list[JsonObject] = [
        {
            "type": "custom_tool_call_output" if result.tool_name in free_form else "function_call_output",
            "call_id": _call_id(result.tool_use_id),
            "output": result.text,
        }
        for result in message.results
    ]
    if vision:
        for result in message.results:
            parts = [part for image in result.images for part in image_parts(image)]
            if parts:
                items.append(message_item("user", parts))
    return items


def image_parts(image: ImageBlock) -> list[JsonObject]:
    """Write an image, after its label if it has one."""
    label = [_text_part(image.label)] if image.label else []
    return [
        *label,
        {"type": "input_image", "detail": "auto", "image_url": data_url(image.data, image.mime_type)},
    ]


def document_part(document: DocumentBlock) -> JsonObject:
    """Write a document: text as text, anything else as a file."""
    if (text := document_text(document)) is not None:
        return _text_part(text)
    return {
        "type": "input_file",
        "filename": document.title or "document",
        "file_data": data_url(document.data, document.mime_type),
    }


def _text_part(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def _call_id(tool_use_id: str) -> str:
    """Return the id of a call, replaced by a stable digest if it is too long for the wire."""
    if len(tool_use_id) <= MAX_CALL_ID:
        return tool_use_id
    return f"call_{blake2s(tool_use_id.encode(), digest_size=12).hexdigest()}"
