"""Google's Gemini API: ``generateContent`` and ``streamGenerateContent``.

An answer is a list of parts. Some carry a signature, which must come back on the same part. A call keeps its own;
that of a text is kept in a separate reasoning block with its place (``start``, ``end``: character offsets in the
text of the message; ``calls``: the number of calls before it).

Options of the endpoint (``Endpoint.options``):

====================== ================== ==================================================================
option                 default            meaning
====================== ================== ==================================================================
``thinking``           by model name      ``level`` or ``budget``: the form of the field; ``none``: no field
``hosted_tools``       ``[]``             tools that the provider runs itself: ``google_search``,
                                          ``code_execution``, ``url_context``, or their wire form
``json_schema``        false              whether schemas are sent as JSON Schema, not as the subset of OpenAPI
``body``               ``{}``             more fields for the body; they win, objects are merged
====================== ================== ==================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlsplit

from jumpseat.adapters.adapter import Decoder, Endpoint
from jumpseat.adapters.capabilities import hosted
from jumpseat.adapters.wire import (
    arguments_object,
    as_count,
    as_list,
    as_object,
    as_text,
    document_text,
    hosted_as_text,
    parse_arguments,
)
from jumpseat.adapters.wires.base import JsonAdapter
from jumpseat.adapters.wires.gemini_schema import inline_schema, openapi_parameters, openapi_subset
from jumpseat.adapters.wires.gemini_thinking import generation_of, thinking_config
from jumpseat.adapters.wires.generate_content_decoder import GenerateContentDecoder, first_object
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
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import ModelRequest, ResponseFormat, StructuredOutput, ToolChoice, ToolSpec

NAME: Final = "gemini"
KEY_HEADER: Final = "x-goog-api-key"

HOSTED: Final[Mapping[str, JsonObject]] = {
    "web_search": {"googleSearch": {}},
    "url_context": {"urlContext": {}},
    "code_execution": {"codeExecution": {}},
}
HOSTED_TOOLS: Final[Mapping[str, JsonObject]] = {**HOSTED, "google_search": HOSTED["web_search"]}

UNSIGNED: Final = "skip_thought_signature_validator"
"""The signature that the API accepts on a call of another model."""

_NEW: Final = re.compile(r"gemini-(?:[3-9]|\d\d)(?!\d)|gemini-(?:(?!gemini-).)*latest", re.IGNORECASE)


class GenerateContentAdapter(JsonAdapter):
    """``<base_url>/models/<model>:generateContent``. A key goes as ``x-goog-api-key``, never in the URL."""

    name: str = NAME
    key_header = KEY_HEADER
    option_names = frozenset({"thinking", "hosted_tools", "json_schema", "body"})
    hosted: Mapping[str, JsonObject] = HOSTED
    limits_calls: bool = False

    def structured_output(self, model: str) -> StructuredOutput:
        return "always" if _NEW.search(model) else "without_tools"

    def url(self, endpoint: Endpoint, request: ModelRequest) -> str:
        method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
        # The names of tuned models and of publishers' models include their collection.
        model = request.model if "/" in request.model else f"models/{request.model}"
        return f"{api_root(endpoint.base_url)}/{quote(model, safe='/:@')}:{method}"

    def decoder(self, request: ModelRequest) -> Decoder:
        return GenerateContentDecoder(self.signature, request)

    def body(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        options = self.options(endpoint)
        as_is = bool(options.get("json_schema"))
        body: JsonObject = {"contents": contents_to_wire(request, self.signature)}
        if request.system.strip():
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        tools: list[JsonObject] = []
        config: JsonObject = {}
        if request.tools:
            functions = [tool_to_wire(request, tool, as_is=as_is) for tool in request.tools]
            tools.append({"functionDeclarations": functions})
            if request.tool_choice is not None:
                config["functionCallingConfig"] = tool_choice_to_wire(request.tool_choice)
        own = [dict.fromkeys(form, more) for form, more in hosted(HOSTED, request)]
        for tool in as_list(options.get("hosted_tools")):
            form = HOSTED_TOOLS.get(tool, {tool: {}}) if isinstance(tool, str) else as_object(tool)
            if all(form.keys() != tool.keys() for tool in own):
                own.append(form)
        tools += own
        if own and request.tools:
            # Without it the API takes either functions or hosted tools.
            config["includeServerSideToolInvocations"] = True
        if tools:
            body["tools"] = tools
        if config:
            body["toolConfig"] = config
        generation: JsonObject = {}
        if request.max_output_tokens is not None:
            generation["maxOutputTokens"] = request.max_output_tokens
        thinking = thinking_config(request, options.get("thinking"))
        if thinking:
            generation["thinkingConfig"] = thinking
        if request.response_format is not None:
            generation |= response_format_to_wire(request.response_format, as_is=as_is)
        if generation:
            body["generationConfig"] = generation
        return merged_body(body, as_object(options.get("body")))


def api_root(base_url: str) -> str:
    """Return the base of all paths; a bare host gets the version of the API."""
    base = base_url.rstrip("/")
    return base if urlsplit(base).path.strip("/") else f"{base}/v1beta"


def merged_body(body: JsonObject, more: JsonObject) -> JsonObject:
    """Merge ``more``, whose values win, into ``body``; objects are merged, because settings share some with us."""
    for key, value in more.items():
        known = body.get(key)
        body[key] = merged_body(dict(as_object(known)), as_object(value)) if _objects(known, value) else value
    return body


def _objects(*values: Any) -> bool:
    return all(isinstance(value, dict) for value in values)


# --- requests -----------------------------------------------------------------------------------------------------


def tool_to_wire(request: ModelRequest, tool: ToolSpec, *, as_is: bool = False) -> JsonObject:
    """Write one function declaration, without ``parameters`` if it has none."""
    wire: JsonObject = {"name": tool.name, "description": tool.description}
    translate, key = (_json_schema, "parametersJsonSchema") if as_is else (openapi_parameters, "parameters")
    parameters = request.write_schema(tool, translate)
    return wire if parameters is None else {**wire, key: parameters}


def _json_schema(schema: JsonObject) -> JsonObject | None:
    return object_parameters(schema) if schema else None


def tool_choice_to_wire(choice: ToolChoice) -> JsonObject:
    """Write the choice of tools. The wire has no field for parallel calls."""
    match choice.mode:
        case "auto":
            return {"mode": "AUTO"}
        case "required":
            return {"mode": "ANY"}
        case "none":
            return {"mode": "NONE"}
        case "specific":
            return {"mode": "ANY", "allowedFunctionNames": [choice.name]}


def response_format_to_wire(wanted: ResponseFormat, *, as_is: bool = False) -> JsonObject:
    """Write the fields for structured output."""
    schema = wanted.schema if as_is else openapi_subset(inline_schema(wanted.schema))
    field_name = "responseJsonSchema" if as_is else "responseSchema"
    return {"responseMimeType": "application/json", field_name: schema}


def contents_to_wire(request: ModelRequest, provider: str) -> list[JsonObject]:
    """Write the conversation. It begins with the user; results stand alone, right after their calls.

    Blocks signed by ``provider`` go back unchanged.
    """
    version = generation_of(request.model)
    signed = version is not None and version >= (3, 0)
    wire: list[JsonObject] = []
    mergeable: str | None = None
    write = partial(message_parts, provider=provider, vision=request.vision, signed=signed)
    written = request.write_each(("contents", provider, request.vision, signed), write)
    for message, parts in zip(request.messages, written, strict=True):
        if not parts:
            continue
        role = "model" if isinstance(message, AssistantMessage) else "user"
        if not wire and role == "model":
            wire.append({"role": "user", "parts": [{"text": "(earlier conversation left out)"}]})
        kind = "results" if isinstance(message, ToolMessage) else role
        if kind == mergeable != "results":
            wire[-1]["parts"] += parts
        else:
            wire.append({"role": role, "parts": parts})
        mergeable = kind
    return wire


def message_parts(message: Message, *, provider: str, vision: bool, signed: bool) -> list[JsonObject]:
    """Write the parts of one message; ``signed`` marks models that require signatures on calls."""
    match message:
        case UserMessage():
            return user_parts(message, vision=vision)
        case AssistantMessage():
            return assistant_parts(message, provider, signed=signed)
        case ToolMessage():
            return result_parts(message, vision=vision, nested=signed)


def user_parts(message: UserMessage, *, vision: bool) -> list[JsonObject]:
    """Write the parts of a user message."""
    parts: list[JsonObject] = []
    for block in message.blocks:
        match block:
            case TextBlock():
                parts += _texts(block.text)
            case ImageBlock():
                if vision:
                    parts += [*_texts(block.label or ""), _inline(block.data, block.mime_type)]
            case DocumentBlock():
                if (text := document_text(block)) is not None:
                    parts += _texts(text)
                else:
                    parts += [*_texts(block.title or ""), _inline(block.data, block.mime_type)]
    return parts


def result_parts(message: ToolMessage, *, vision: bool, nested: bool) -> list[JsonObject]:
    """Write the results in call order; ``nested`` puts images into their results, else they follow all results."""
    parts: list[JsonObject] = []
    images: list[JsonObject] = []
    for result in message.results:
        # As text, even if the text is JSON: the model should see it byte for byte.
        response = {"error" if result.is_error else "output": result.text}
        wire: JsonObject = {"id": result.tool_use_id, "name": result.tool_name, "response": response}
        if vision and result.images:
            if nested:
                wire["parts"] = [_inline(image.data, image.mime_type) for image in result.images]
            else:
                for image in result.images:
                    images += [*_texts(image.label or ""), _inline(image.data, image.mime_type)]
        parts.append({"functionResponse": wire})
    return parts + images


def assistant_parts(message: AssistantMessage, provider: str, *, signed: bool) -> list[JsonObject]:
    """Write the parts of an answer, with each signature of ``provider`` on its part.

    ``signed`` marks models that require a signature on the first call of each answer.
    """
    signatures = _Signatures(message, provider)
    parts: list[JsonObject] = []
    calls = 0
    for block in message.blocks:
        match block:
            case TextBlock():
                parts += signatures.text(block.text, calls)
            case ReasoningBlock():
                data = as_object(block.provider_data) if block.provider == provider else {}
                if "thoughtSignature" in data and "start" not in data:
                    parts.append(
                        {"text": block.text, "thought": True, "thoughtSignature": data["thoughtSignature"]}
                    )
            case ToolUseBlock():
                part: JsonObject = {
                    "functionCall": {"id": block.id, "name": block.name, "args": arguments_to_wire(block)}
                }
                own = as_object(block.provider_data) if block.provider == provider else {}
                if "thoughtSignature" in own:
                    part["thoughtSignature"] = own["thoughtSignature"]
                elif signed and not calls:
                    part["thoughtSignature"] = UNSIGNED
                parts.append(part)
                calls += 1
                parts += signatures.empty(calls)
            case HostedToolUseBlock() | HostedToolResultBlock():
                if block.provider != provider:
                    parts += _texts(hosted_as_text(block))
                elif own_part := as_object(as_object(block.provider_data).get("part")):
                    parts.append(own_part)
    return parts + signatures.empty(None)


def arguments_to_wire(block: ToolUseBlock) -> JsonObject:
    """Return the arguments of a call as an object."""
    first = first_object(block.arguments_json) if block.arguments is None else None
    return arguments_object(block) if first is None else parse_arguments(first) or {}


class _Signatures:
    """The signatures of a message's texts, in order of their places."""

    def __init__(self, message: AssistantMessage, provider: str) -> None:
        length = len(message.text())
        self._waiting: list[tuple[int, int, int, str]] = []
        self._place = 0
        for block in message.blocks:
            if isinstance(block, ReasoningBlock) and block.provider == provider:
                data = as_object(block.provider_data)
                start, end = data.get("start"), data.get("end")
                if isinstance(start, int) and isinstance(end, int) and 0 <= start <= end <= length:
                    calls, signature = as_count(data.get("calls")), as_text(data.get("thoughtSignature"))
                    self._waiting.append((start, end, calls, signature))
        self._waiting.sort(key=lambda mark: mark[0])

    def text(self, text: str, calls: int) -> list[JsonObject]:
        """Write the parts of the next text, after ``calls`` calls; a signed part ends where it ended originally."""
        begin, end = self._place, self._place + len(text)
        self._place = end
        parts: list[JsonObject] = []
        done = begin
        while self._waiting and self._waiting[0][1] <= end:
            mark_start, mark_end, mark_calls, signature = self._waiting[0]
            if mark_start == mark_end and mark_calls > calls:
                break
            del self._waiting[0]
            if mark_start < done:
                # The text was joined from different pieces.
                continue
            parts += _texts(text[done - begin : mark_start - begin])
            parts.append({"text": text[mark_start - begin : mark_end - begin], "thoughtSignature": signature})
            done = mark_end
        return parts + _texts(text[done - begin :])

    def empty(self, calls: int | None) -> list[JsonObject]:
        """Write the signatures without text after ``calls`` calls; with ``None``, all that remain."""
        found = [mark for mark in self._waiting if mark[0] == mark[1] and (calls is None or 0 < mark[2] <= calls)]
        self._waiting = [mark for mark in self._waiting if mark not in found]
        return [{"text": "", "thoughtSignature": signature} for _, _, _, signature in found]


def _texts(text: str) -> list[JsonObject]:
    # The API refuses a part without text.
    return [{"text": text}] if text.strip() else []


def _inline(data: str, mime_type: str) -> JsonObject:
    return {"inlineData": {"mimeType": mime_type, "data": data}}
