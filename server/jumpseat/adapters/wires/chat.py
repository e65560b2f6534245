"""OpenAI chat completions, and the servers that are compatible with them.

Requests are strict, for the strictest servers; the decoder is tolerant, for the loosest. A dialect of this wire
subclasses :class:`ChatAdapter` and overrides what differs.

Options of the endpoint (``Endpoint.options``), for servers that need them:

====================== ===================== ==========================================================
option                 default               meaning
====================== ===================== ==========================================================
``system_role``        ``"system"``          role of the system message (``developer``, ``user``)
``max_tokens_field``   by host               name of the field that limits the output
``stream_usage``       true                  whether to ask for usage in a stream
``reasoning_effort``   true                  whether the server knows ``reasoning_effort``
``replay_reasoning``   true                  whether to send reasoning back to the server that produced it
``think_tags``         true, not at OpenAI   whether ``<think>`` at the beginning of an answer encloses reasoning
``body``               ``{}``                more fields for the body; they win
====================== ===================== ==========================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final
from urllib.parse import urlsplit

from jumpseat.adapters.adapter import Decoder, Endpoint
from jumpseat.adapters.capabilities import hosted
from jumpseat.adapters.wire import (
    arguments_text,
    as_object,
    data_url,
    document_text,
    hosted_as_text,
    messages_before_tool_loop,
)
from jumpseat.adapters.wires.base import JsonAdapter
from jumpseat.adapters.wires.chat_decoder import ChatDecoder
from jumpseat.adapters.wires.chat_quirks import short_id
from jumpseat.adapters.wires.think_tags import ThinkTagDecoder, opened_by_prompt
from jumpseat.adapters.wires.tool_schema import called_tools, object_parameters
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
from jumpseat.agent.model import ModelRequest, ResponseFormat, ToolChoice, ToolSpec

_SEARCH_MODEL: Final = re.compile(r"-search-(?:preview|api)(?![a-z])", re.IGNORECASE)
_OWN_HOST: Final = "api.openai.com"
_OWN_HOSTS: Final = ".openai.azure.com"


MAX_CALL_ID: Final = 40
"""The longest id of a call, in characters, that OpenAI accepts."""


class PathAdapter(JsonAdapter):
    """An adapter that posts to ``path`` below the base URL."""

    path: ClassVar[str]
    cites_as = "openai"
    """Dialects have citations in this form too, whichever model is behind them."""

    def url(self, endpoint: Endpoint, request: ModelRequest) -> str:
        return f"{endpoint.base_url.rstrip('/')}{self.path}"

    def decoder_at(self, endpoint: Endpoint, request: ModelRequest) -> Decoder:
        decoder = self.decoder(request)
        wanted = self.options(endpoint).get("think_tags", not is_openai(endpoint.base_url))
        if not wanted:
            return decoder
        return ThinkTagDecoder(decoder, self.signature, opened_by_prompt(wanted, request.messages))


class ChatAdapter(PathAdapter):
    """Chat completions at ``<base_url>/chat/completions``."""

    name: str = "openai"
    option_names = frozenset(
        {
            "system_role",
            "max_tokens_field",
            "stream_usage",
            "reasoning_effort",
            "replay_reasoning",
            "think_tags",
            "body",
        }
    )
    path: ClassVar[str] = "/chat/completions"
    has_strict_tools: ClassVar[bool] = True
    """True if a tool can require arguments that match its schema exactly."""

    def decoder(self, request: ModelRequest) -> Decoder:
        return ChatDecoder(self.signature, request)

    def body(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        options = self.options(endpoint)
        body: JsonObject = {"model": request.model, "messages": self.messages(endpoint, request)}
        if tools := self.tools(endpoint, request):
            body["tools"] = tools
        if request.tools and request.tool_choice is not None:
            body |= self.tool_choice_fields(request.tool_choice)
        if not request.tools and (
            called := [tool_to_wire(request, tool) for tool in called_tools(request.messages)]
        ):
            # Gateways to Anthropic and Bedrock refuse a conversation with calls in a request without tools.
            body |= {"tools": called, "tool_choice": "none"}
        body["stream"] = request.stream
        if request.stream and options.get("stream_usage", True):
            body["stream_options"] = {"include_usage": True}
        body |= self.reasoning_fields(endpoint, request)
        if request.max_output_tokens is not None:
            default = "max_completion_tokens" if is_openai(endpoint.base_url) else "max_tokens"
            body[str(options.get("max_tokens_field", default))] = request.max_output_tokens
        if request.response_format is not None:
            body["response_format"] = self.response_format_to_wire(request.response_format)
        for _, more in hosted(self.hosted_by(request.model) if not self.hosted else {}, request):
            body["web_search_options"] = more
        body |= self.extra_fields(endpoint, request)
        body.update(as_object(options.get("body")))
        return body

    def hosted_by(self, model: str) -> Mapping[str, JsonObject]:
        # Models with this name search the web for every prompt; the field sets the options.
        return self.hosted or ({"web_search": {}} if _SEARCH_MODEL.search(model) else {})

    def tools(self, endpoint: Endpoint, request: ModelRequest) -> list[JsonObject]:
        strict = self.has_strict_tools
        return [tool_to_wire(request, tool, strict=strict and tool.strict is True) for tool in request.tools]

    def tool_choice_fields(self, choice: ToolChoice) -> JsonObject:
        fields: JsonObject = {"tool_choice": tool_choice_to_wire(choice)}
        if choice.parallel is not None:
            fields["parallel_tool_calls"] = choice.parallel
        return fields

    def reasoning_fields(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        if request.reasoning_effort is None or not self.options(endpoint).get("reasoning_effort", True):
            return {}
        return {"reasoning_effort": request.reasoning_effort}

    def response_format_to_wire(self, wanted: ResponseFormat) -> JsonObject:
        """Write the field for structured output."""
        return {"type": "json_schema", "json_schema": named_schema(wanted)}

    def extra_fields(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        """Return the fields of a dialect; those of the option ``body`` win over them."""
        return {}

    def messages(self, endpoint: Endpoint, request: ModelRequest) -> list[JsonObject]:
        """Write the whole conversation, with the one system message first."""
        options = self.options(endpoint)
        wire: list[JsonObject] = []
        if request.system:
            wire.append({"role": str(options.get("system_role", "system")), "content": request.system})
        # OpenAI itself refuses unknown fields, and never sends the reasoning that they would carry.
        replay = bool(options.get("replay_reasoning", True)) and not is_openai(endpoint.base_url)
        count = messages_before_tool_loop(request.messages)
        form = (type(self), self.signature, request.vision, replay)
        for current, messages in ((False, request.messages[:count]), (True, request.messages[count:])):
            write = partial(self.message_to_wire, vision=request.vision, replay=replay, current=current)
            wire += request.write((*form, current), messages, write)
        return wire

    def message_to_wire(self, message: Message, *, vision: bool, replay: bool, current: bool) -> list[JsonObject]:
        """Write one message. ``replay`` returns its reasoning; ``current`` marks messages of the tool loop."""
        match message:
            case UserMessage():
                return user_to_wire(message, vision=vision)
            case AssistantMessage():
                entry = self.assistant_to_wire(message)
                if replay:
                    entry |= self.reasoning_to_wire(message, current=current)
                return [entry]
            case ToolMessage():
                return self.results_to_wire(message, vision=vision)

    def assistant_to_wire(self, message: AssistantMessage) -> JsonObject:
        text = message.text()
        if any(isinstance(block, HostedToolUseBlock | HostedToolResultBlock) for block in message.blocks):
            parts = (
                block.text if isinstance(block, TextBlock) else self._hosted_text(block) for block in message.blocks
            )
            text = "\n\n".join(part for part in parts if part)
        calls = [self.tool_use_to_wire(block) for block in message.tool_uses()]
        # Null content is valid only beside calls; some servers require the field.
        entry: JsonObject = {"role": "assistant", "content": text or (None if calls else "")}
        if calls:
            entry["tool_calls"] = calls
        return entry

    def _hosted_text(self, block: AssistantBlock) -> str:
        """Describe another provider's hosted tool; the own one's are only known from the text that cites them."""
        own = isinstance(block, HostedToolUseBlock | HostedToolResultBlock) and block.provider == self.signature
        return "" if own else hosted_as_text(block)

    def results_to_wire(self, message: ToolMessage, *, vision: bool) -> list[JsonObject]:
        """Write the results in call order, then one user message for each result with images."""
        wire: list[JsonObject] = [
            {"role": "tool", "tool_call_id": call_id(result.tool_use_id), "content": result.text}
            for result in message.results
        ]
        if vision:
            for result in message.results:
                parts = [part for image in result.images for part in image_parts(image)]
                if parts:
                    wire.append({"role": "user", "content": parts})
        return wire

    def tool_use_to_wire(self, block: ToolUseBlock) -> JsonObject:
        call: JsonObject = {
            "id": call_id(block.id),
            "type": "function",
            "function": {"name": block.name, "arguments": arguments_text(block)},
        }
        if block.provider == self.signature:
            # Signatures that a replayed call must carry (Gemini behind this wire).
            call |= as_object(block.provider_data)
        return call

    def reasoning_to_wire(self, message: AssistantMessage, *, current: bool) -> JsonObject:
        """Write the fields that return a message's reasoning to the server that produced it.

        ``current`` marks messages of the current tool loop. Plain text goes back only there: servers that read it
        at all drop or refuse it for finished turns. Signed and encrypted forms always go back.
        """
        fields: JsonObject = {}
        for block in message.blocks:
            if isinstance(block, ReasoningBlock) and block.provider == self.signature:
                data = as_object(block.provider_data)
                fields |= {key: data[key] for key in ("reasoning_details", "reasoning_opaque") if key in data}
                name = data.get("field")
                if isinstance(name, str) and block.text and (current or "reasoning_opaque" in data):
                    fields[name] = block.text
        return fields


def call_id(tool_use_id: str) -> str:
    """Return the id of a call, replaced by a stable digest if it is too long for OpenAI.

    The ids of LiteLLM that carry a signature are left alone: LiteLLM needs them back.
    """
    if len(tool_use_id) <= MAX_CALL_ID or "__thought__" in tool_use_id:
        return tool_use_id
    return f"call_{short_id(tool_use_id, 24)}"


def is_openai(base_url: str) -> bool:
    """Return whether OpenAI or Azure OpenAI serves ``base_url``."""
    host = urlsplit(base_url).hostname or ""
    return host == _OWN_HOST or host.endswith(_OWN_HOSTS)


def tool_to_wire(request: ModelRequest, tool: ToolSpec, *, strict: bool = False) -> JsonObject:
    """Write one function definition."""
    function: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "parameters": request.write_schema(tool, object_parameters),
    }
    return {"type": "function", "function": {**function, "strict": True} if strict else function}


def tool_choice_to_wire(choice: ToolChoice) -> str | JsonObject:
    """Write the choice of tools."""
    if choice.mode == "specific":
        return {"type": "function", "function": {"name": choice.name}}
    return choice.mode


def named_schema(wanted: ResponseFormat) -> JsonObject:
    """Write the schema of the answer. With ``strict`` it is a copy in the form that strict mode requires."""
    schema: JsonObject = {"name": re.sub(r"[^A-Za-z0-9_-]", "_", wanted.name)[:64] or "answer"}
    if wanted.description is not None:
        schema["description"] = wanted.description
    schema["schema"] = wanted.schema
    if wanted.strict:
        # Imported here: few requests have a format.
        from jumpseat.adapters.wires.schema_copies import strict_schema

        schema["schema"] = strict_schema(wanted.schema)
    if wanted.strict is not None:
        schema["strict"] = wanted.strict
    return schema


def user_to_wire(message: UserMessage, *, vision: bool) -> list[JsonObject]:
    """Write one user message, or none if it has only images and the model takes none."""
    parts: list[JsonObject] = []
    for block in message.blocks:
        match block:
            case TextBlock():
                parts.append({"type": "text", "text": block.text})
            case ImageBlock():
                if vision:
                    parts += image_parts(block)
            case DocumentBlock():
                parts.append(document_part(block))
    if not parts:
        return []
    if all(part["type"] == "text" for part in parts):
        # Every server understands a plain string.
        return [{"role": "user", "content": "\n".join(part["text"] for part in parts)}]
    return [{"role": "user", "content": parts}]


def image_parts(image: ImageBlock) -> list[JsonObject]:
    """Write an image, after its label if it has one."""
    label: list[JsonObject] = [{"type": "text", "text": image.label}] if image.label else []
    return [*label, {"type": "image_url", "image_url": {"url": data_url(image.data, image.mime_type)}}]


def document_part(document: DocumentBlock) -> JsonObject:
    """Write a document: text as text, anything else as a file."""
    if (text := document_text(document)) is not None:
        return {"type": "text", "text": text}
    return {
        "type": "file",
        "file": {
            "filename": document.title or "document",
            "file_data": data_url(document.data, document.mime_type),
        },
    }
