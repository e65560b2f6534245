"""Google's Interactions API, whose conversations are lists of steps.

The provider stores nothing (``store`` is false): every request carries all steps, and thoughts go back with their
signature. Reasoning that led to a call stands before that call.

Options of the endpoint (``Endpoint.options``):

====================== ================== ==================================================================
option                 default            meaning
====================== ================== ==================================================================
``thinking``           by model name      ``level``: the model thinks; ``none``: no field for thinking
``hosted_tools``       ``[]``             tools that the provider runs itself: ``google_search``,
                                          ``code_execution``, ``url_context``, or their wire form
``body``               ``{}``             more fields for the body; they win, objects are merged
====================== ================== ==================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from jumpseat.adapters.adapter import Decoder, Endpoint
from jumpseat.adapters.capabilities import hosted
from jumpseat.adapters.wire import as_list, as_object, as_text, document_text, hosted_as_text
from jumpseat.adapters.wires.base import JsonAdapter
from jumpseat.adapters.wires.gemini_schema import inline_schema
from jumpseat.adapters.wires.gemini_thinking import thinking_level, thinks
from jumpseat.adapters.wires.generate_content import KEY_HEADER, api_root, arguments_to_wire, merged_body
from jumpseat.adapters.wires.interactions_decoder import InteractionDecoder
from jumpseat.adapters.wires.tool_schema import object_parameters
from jumpseat.agent.blocks import (
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
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import ModelRequest, ToolChoice, ToolSpec

NAME: Final = "gemini_interactions"

_MODES: Final[Mapping[str, str]] = {"auto": "auto", "required": "any", "none": "none"}

HOSTED: Final[Mapping[str, JsonObject]] = {
    "web_search": {"type": "google_search"},
    "url_context": {"type": "url_context"},
    "code_execution": {"type": "code_execution"},
}


class InteractionsAdapter(JsonAdapter):
    """``<base_url>/interactions``, with the keys of ``generateContent``."""

    name: str = NAME
    key_header = KEY_HEADER
    option_names = frozenset({"thinking", "hosted_tools", "body"})
    hosted: Mapping[str, JsonObject] = HOSTED
    limits_calls: bool = False

    def url(self, endpoint: Endpoint, request: ModelRequest) -> str:
        return f"{api_root(endpoint.base_url)}/interactions{'?alt=sse' if request.stream else ''}"

    def decoder(self, request: ModelRequest) -> Decoder:
        return InteractionDecoder(self.signature, request)

    def body(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        options = self.options(endpoint)
        body: JsonObject = {"model": request.model, "input": steps_to_wire(request, self.signature)}
        if request.system.strip():
            body["system_instruction"] = request.system
        tools = [tool_to_wire(request, tool) for tool in request.tools]
        own = [{**form, **more} for form, more in hosted(HOSTED, request)]
        for tool in as_list(options.get("hosted_tools")):
            form = {"type": tool} if isinstance(tool, str) else as_object(tool)
            if all(form.get("type") != tool["type"] for tool in own):
                own.append(form)
        tools += own
        if tools:
            body["tools"] = tools
        config = generation_config(request, options.get("thinking"))
        if config:
            body["generation_config"] = config
        if request.response_format is not None:
            schema = inline_schema(request.response_format.schema)
            body["response_format"] = {"type": "text", "mime_type": "application/json", "schema": schema}
        body["stream"] = request.stream
        body["store"] = False
        return merged_body(body, as_object(options.get("body")))


def tool_to_wire(request: ModelRequest, tool: ToolSpec) -> JsonObject:
    """Write one function."""
    parameters = request.write_schema(tool, _inlined_parameters)
    return {"type": "function", "name": tool.name, "description": tool.description, "parameters": parameters}


def _inlined_parameters(schema: JsonObject) -> JsonObject:
    """Convert the parameters of a function; the wire takes no references, and not all keywords."""
    return inline_schema(object_parameters(schema))


def tool_choice_to_wire(choice: ToolChoice) -> str | JsonObject:
    """Write the choice of tools. The wire has no field for parallel calls."""
    if choice.mode == "specific":
        return {"allowed_tools": {"mode": "any", "tools": [choice.name]}}
    return _MODES[choice.mode]


def generation_config(request: ModelRequest, mode: Any) -> JsonObject:
    """Write limits, thinking, and the choice of tools."""
    config: JsonObject = {}
    if request.max_output_tokens is not None:
        config["max_output_tokens"] = request.max_output_tokens
    effort = request.reasoning_effort
    if mode != "none" and (mode is not None or effort is not None or thinks(request.model)):
        level = thinking_level(request.model, effort) if effort is not None else None
        if level is not None:
            config["thinking_level"] = level
        quiet = effort in ("none", "off") or request.reasoning_summary == "none"
        config["thinking_summaries"] = "none" if quiet else "auto"
    if request.tools and request.tool_choice is not None:
        config["tool_choice"] = tool_choice_to_wire(request.tool_choice)
    return config


def steps_to_wire(request: ModelRequest, provider: str) -> list[JsonObject]:
    """Write the conversation as steps; blocks signed by ``provider`` go back unchanged."""
    write = partial(message_steps, provider=provider, vision=request.vision)
    return request.write(("interactions", provider, request.vision), request.messages, write)


def message_steps(message: Message, *, provider: str, vision: bool) -> list[JsonObject]:
    """Write one message."""
    match message:
        case UserMessage():
            content = user_content(message, vision=vision)
            return [{"type": "user_input", "content": content}] if content else []
        case AssistantMessage():
            return assistant_steps(message, provider)
        case ToolMessage():
            return [result_step(result, vision=vision) for result in message.results]


def user_content(message: UserMessage, *, vision: bool) -> list[JsonObject]:
    """Write the content of a user message."""
    content: list[JsonObject] = []
    for block in message.blocks:
        match block:
            case TextBlock():
                content += _texts(block.text)
            case ImageBlock():
                content += _image(block) if vision else []
            case DocumentBlock():
                if (text := document_text(block)) is not None:
                    content += _texts(text)
                else:
                    content += _texts(block.title or "")
                    content.append({"type": "document", "data": block.data, "mime_type": block.mime_type})
    return content


def assistant_steps(message: AssistantMessage, provider: str) -> list[JsonObject]:
    """Write an answer in its order; reasoning that led to a call stands before that call."""
    calls = {block.id for block in message.tool_uses()}
    before_call: dict[str, list[JsonObject]] = {}
    steps: list[JsonObject] = []
    for block in message.blocks:
        match block:
            case TextBlock():
                steps += _output(block.text)
            case ReasoningBlock():
                kept = as_object(block.provider_data) if block.provider == provider else {}
                step, call = as_object(kept.get("step")), as_text(kept.get("before"))
                if step and call in calls:
                    before_call.setdefault(call, []).append(step)
                elif step:
                    steps.append(step)
            case ToolUseBlock():
                steps += before_call.pop(block.id, [])
                own = as_object(block.provider_data) if block.provider == provider else {}
                call_step: JsonObject = {
                    "type": "function_call",
                    "id": block.id,
                    "name": block.name,
                    "arguments": arguments_to_wire(block),
                }
                steps.append(call_step | own)
            case HostedToolUseBlock() | HostedToolResultBlock():
                own_step = as_object(block.provider_data) if block.provider == provider else {}
                steps += [own_step] if own_step else _output(hosted_as_text(block))
    return steps


def result_step(result: ToolResultBlock, *, vision: bool) -> JsonObject:
    """Write the result of one call."""
    content: list[JsonObject] = [{"type": "text", "text": result.text}]
    if vision:
        for image in result.images:
            content += _image(image)
    step: JsonObject = {"type": "function_result", "call_id": result.tool_use_id, "name": result.tool_name}
    step["result"] = content
    if result.is_error:
        step["is_error"] = True
    return step


def _texts(text: str) -> list[JsonObject]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _image(image: ImageBlock) -> list[JsonObject]:
    return [*_texts(image.label or ""), {"type": "image", "data": image.data, "mime_type": image.mime_type}]


def _output(text: str) -> list[JsonObject]:
    content = _texts(text)
    return [{"type": "model_output", "content": content}] if content else []
