"""Google's Gemini API: ``generateContent`` and ``streamGenerateContent``.

An answer is a list of parts. Some carry a signature, which must come back on the very same part: a call keeps its
own, a text's is kept in a reasoning block of its own that tells the place (``start``, ``end``: character offsets in
the text of the message; ``calls``: how many calls came before it).

Options of the endpoint (``Endpoint.options``):

====================== ================== ==================================================================
option                 default            meaning
====================== ================== ==================================================================
``thinking``           by model name      ``level`` or ``budget``: how to ask for it; ``none``: not at all
``hosted_tools``       ``[]``             tools that the provider runs itself: ``google_search``,
                                          ``code_execution``, ``url_context``, or their wire form
``json_schema``        false              whether schemas go as they are, not as the subset of OpenAPI
``body``               ``{}``             more fields for the body; they win, objects are merged
====================== ================== ==================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Any, ClassVar, Final, cast
from urllib.parse import quote, urlsplit

from jumpseat.adapters.adapter import Decoder, Endpoint, HttpRequest, Wire
from jumpseat.adapters.capabilities import hosted
from jumpseat.adapters.failures import failure_of_event
from jumpseat.adapters.gemini_schema import inlined, openapi_parameters, openapi_subset
from jumpseat.adapters.tool_schema import object_parameters
from jumpseat.adapters.wire import (
    as_count,
    as_list,
    as_object,
    as_text,
    decode_text,
    dump_json,
    hosted_as_text,
    merge_headers,
    parse_arguments,
    parse_json,
)
from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    Citation,
    DocumentBlock,
    HostedToolResultBlock,
    HostedToolUseBlock,
    ImageBlock,
    JsonObject,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import (
    Completed,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    ResponseFormat,
    StopReason,
    StructuredOutput,
    TextDelta,
    ToolCallDelta,
    ToolChoice,
    ToolSpec,
    Usage,
)
from jumpseat.errors import ProviderFilterError, ProviderProtocolError, ProviderRequestError

NAME: Final = "gemini"

THINKING_BUDGETS: Final[Mapping[str, int]] = {
    "minimal": 1024,
    "low": 1024,
    "medium": 8192,
    "high": 24576,
    "xhigh": 24576,
    "max": 24576,
}
"""Tokens of thinking for each effort, on models that are asked by budget: as at Google's OpenAI-like endpoint."""

DYNAMIC_BUDGET: Final = -1
"""The model decides."""

FILTERS: Final = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "ESCALATION",
        "MODEL_ARMOR",
        "PUP_LIMITED_DISABLED",
    }
)
"""``finishReason`` of an answer that a filter ended."""

FAILURES: Final = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "NO_IMAGE"})
"""``finishReason`` of an answer that the model spoiled: another attempt may get a good one."""

HOSTED: Final[Mapping[str, JsonObject]] = {
    "web_search": {"googleSearch": {}},
    "url_context": {"urlContext": {}},
    "code_execution": {"codeExecution": {}},
}
HOSTED_TOOLS: Final[Mapping[str, JsonObject]] = {**HOSTED, "google_search": HOSTED["web_search"]}

UNSIGNED: Final = "skip_thought_signature_validator"
"""What the API takes for a signature on a call that another model made."""

CONCATENATED: Final = re.compile(r"\}\s*\{")
"""What may be the border between two objects."""

_MODEL: Final = re.compile(r"gemini-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)", re.IGNORECASE)
_NOT_THINKING: Final = re.compile(r"image|tts|audio|live|embedding", re.IGNORECASE)
_LATEST: Final = (99, 0)
_NEW: Final = re.compile(r"gemini-(?:[3-9]|\d\d)(?!\d)|gemini-.*latest", re.IGNORECASE)


class GeminiAdapter(Wire):
    """``<base_url>/models/<model>:generateContent``. A key goes as ``x-goog-api-key``, never in the URL."""

    name: ClassVar[str] = NAME
    default_base_url: ClassVar[str | None] = "https://generativelanguage.googleapis.com/v1beta"
    key_env: ClassVar[str | None] = "GEMINI_API_KEY"
    hosted: ClassVar[Mapping[str, JsonObject]] = HOSTED

    def structured_output(self, model: str) -> StructuredOutput:
        return "always" if _NEW.search(model) else "without_tools"

    def request(self, endpoint: Endpoint, request: ModelRequest) -> HttpRequest:
        method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
        # Tuned models and those of publishers bring the collection they are in.
        model = request.model if "/" in request.model else f"models/{request.model}"
        return HttpRequest(
            url=f"{api_root(endpoint.base_url)}/{quote(model, safe='/:@')}:{method}",
            headers=api_headers(endpoint, request),
            body=self._body(endpoint, request),
        )

    def decoder(self, request: ModelRequest) -> Decoder:
        return GenerateContentDecoder(self.signature, request)

    def _body(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        options = endpoint.options
        as_is = bool(options.get("json_schema"))
        body: JsonObject = {"contents": contents_to_wire(request, self.signature)}
        if request.system.strip():
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        tools: list[JsonObject] = []
        config: JsonObject = {}
        if request.tools:
            tools.append({"functionDeclarations": [tool_to_wire(tool, as_is=as_is) for tool in request.tools]})
            if request.tool_choice is not None:
                config["functionCallingConfig"] = tool_choice_to_wire(request.tool_choice)
        own = [dict.fromkeys(form, more) for form, more in hosted(HOSTED, request)]
        for tool in as_list(options.get("hosted_tools")):
            form = HOSTED_TOOLS.get(tool, {tool: {}}) if isinstance(tool, str) else as_object(tool)
            if all(form.keys() != one.keys() for one in own):
                own.append(form)
        tools += own
        if own and request.tools:
            # Without it the API takes either functions or tools of its own.
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
    """The base of all paths; a bare host gets the version of the API."""
    base = base_url.rstrip("/")
    return base if urlsplit(base).path.strip("/") else f"{base}/v1beta"


def api_headers(endpoint: Endpoint, request: ModelRequest) -> dict[str, str]:
    """The headers of a call; a bearer token is one of Google's OAuth and wins over the key."""
    if endpoint.bearer_token:
        auth = {"Authorization": f"Bearer {endpoint.bearer_token}"}
    else:
        auth = {"x-goog-api-key": endpoint.api_key} if endpoint.api_key else {}
    return merge_headers(
        {
            "Content-Type": "application/json",
            "Accept": "text/event-stream" if request.stream else "application/json",
            "User-Agent": endpoint.user_agent,
        },
        auth,
        endpoint.headers,
        request.headers,
    )


def merged_body(body: JsonObject, more: JsonObject) -> JsonObject:
    """``body`` with ``more``, whose values win; objects are merged, for settings share one with what we set."""
    for key, value in more.items():
        known = body.get(key)
        body[key] = merged_body(dict(as_object(known)), as_object(value)) if _objects(known, value) else value
    return body


def _objects(*values: Any) -> bool:
    return all(isinstance(value, dict) for value in values)


# --- models and their thinking ------------------------------------------------------------------------------------


def generation_of(model: str) -> tuple[int, int] | None:
    """The version of a Gemini model by its name, ``None`` where the name does not tell."""
    match = _MODEL.search(model)
    if match is not None:
        return int(match.group(1)), int(match.group(2) or 0)
    return _LATEST if re.search(r"gemini-.*latest", model, re.IGNORECASE) else None


def thinking_level(model: str, effort: str) -> str | None:
    """The level for an effort, among those that the model has; ``None`` for an effort that is unheard of.

    No model with levels can be told not to think: ``none`` is the least that there is.
    """
    version = generation_of(model)
    flash, lite = "flash" in model.lower(), "flash-lite" in model.lower()
    match effort:
        case "none" | "off" | "minimal":
            return "minimal" if lite or (flash and version is not None and version < (3, 7)) else "low"
        case "medium":
            return "high" if version == (3, 0) and not flash else "medium"
        case "low" | "high":
            return effort
        case "xhigh" | "max":
            return "high"
        case _:
            return None


def thinks(model: str) -> bool:
    """Whether a model is known to think: others refuse the question."""
    version = generation_of(model)
    return version is not None and version >= (2, 5) and not _NOT_THINKING.search(model)


def thinking_config(request: ModelRequest, how: Any) -> JsonObject:
    """How much to think, and whether to tell the thoughts; empty where the model is not to be asked."""
    effort = request.reasoning_effort
    if how == "none" or (how is None and not thinks(request.model) and effort is None):
        return {}
    quiet = effort in ("none", "off")
    config: JsonObject = {"includeThoughts": not quiet and request.reasoning_summary != "none"}
    if effort is None:
        return config
    version = generation_of(request.model)
    if how == "budget" or (how is None and version is not None and version < (3, 0)):
        config["thinkingBudget"] = _budget(request, effort, quiet=quiet)
    elif level := thinking_level(request.model, effort):
        config["thinkingLevel"] = level
    return config


def _budget(request: ModelRequest, effort: str, *, quiet: bool) -> int:
    if quiet:
        # The large model of that generation always thinks; this is its least.
        return 128 if "pro" in request.model.lower() else 0
    budget = THINKING_BUDGETS.get(effort, DYNAMIC_BUDGET)
    if request.max_output_tokens is not None and budget > 0:
        # The limit counts thoughts too: leave half of it for the answer.
        budget = min(budget, max(request.max_output_tokens // 2, 512))
    return budget


# --- requests -----------------------------------------------------------------------------------------------------


def tool_to_wire(tool: ToolSpec, *, as_is: bool = False) -> JsonObject:
    """One function declaration; one without parameters says nothing of them."""
    wire: JsonObject = {"name": tool.name, "description": tool.description}
    if as_is:
        if tool.parameters:
            wire["parametersJsonSchema"] = object_parameters(tool.parameters)
    elif parameters := openapi_parameters(tool.parameters):
        wire["parameters"] = parameters
    return wire


def tool_choice_to_wire(choice: ToolChoice) -> JsonObject:
    """How freely the model may call tools. Whether in parallel cannot be said."""
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
    """Structured output."""
    schema = wanted.schema if as_is else openapi_subset(inlined(wanted.schema))
    field_name = "responseJsonSchema" if as_is else "responseSchema"
    return {"responseMimeType": "application/json", field_name: schema}


def contents_to_wire(request: ModelRequest, provider: str) -> list[JsonObject]:
    """The conversation. It begins with the user; results stand alone, right after their calls.

    What ``provider`` made goes back as it came.
    """
    version = generation_of(request.model)
    signed = version is not None and version >= (3, 0)
    wire: list[JsonObject] = []
    mergeable: str | None = None
    for message in request.messages:
        match message:
            case UserMessage():
                role, parts = "user", user_parts(message, vision=request.vision)
            case AssistantMessage():
                role, parts = "model", assistant_parts(message, provider, signed=signed)
            case ToolMessage():
                role, parts = "user", result_parts(message, vision=request.vision, nested=signed)
        if not parts:
            continue
        if not wire and role == "model":
            wire.append({"role": "user", "parts": [{"text": "(earlier conversation left out)"}]})
        kind = "results" if isinstance(message, ToolMessage) else role
        if kind == mergeable != "results":
            wire[-1]["parts"] += parts
        else:
            wire.append({"role": role, "parts": parts})
        mergeable = kind
    return wire


def user_parts(message: UserMessage, *, vision: bool) -> list[JsonObject]:
    """What the user said and gave."""
    parts: list[JsonObject] = []
    for block in message.blocks:
        match block:
            case TextBlock():
                parts += _texts(block.text)
            case ImageBlock():
                if vision:
                    parts += [*_texts(block.label or ""), _inline(block.data, block.mime_type)]
            case DocumentBlock():
                if block.mime_type.startswith("text/"):
                    text = decode_text(block.data)
                    parts += _texts(f"{block.title}\n{text}" if block.title else text)
                else:
                    parts += [*_texts(block.title or ""), _inline(block.data, block.mime_type)]
    return parts


def result_parts(message: ToolMessage, *, vision: bool, nested: bool) -> list[JsonObject]:
    """The results in call order; ``nested`` puts their images into them, else they follow all of the results."""
    parts: list[JsonObject] = []
    images: list[JsonObject] = []
    for result in message.results:
        # As text, even where the text is JSON: the model is to see it to the byte.
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
    """What the model said, each signature of ``provider`` on its part.

    ``signed`` tells that the model wants one on the first call of every answer.
    """
    marks = _Marks(message, provider)
    parts: list[JsonObject] = []
    calls = 0
    for block in message.blocks:
        match block:
            case TextBlock():
                parts += marks.text(block.text, calls)
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
                parts += marks.empty(calls)
            case HostedToolUseBlock() | HostedToolResultBlock():
                if block.provider != provider:
                    parts += _texts(hosted_as_text(block))
                elif own_part := as_object(as_object(block.provider_data).get("part")):
                    parts.append(own_part)
    return parts + marks.empty(None)


def arguments_to_wire(block: ToolUseBlock) -> JsonObject:
    """The arguments of a call as the object that they must be."""
    if block.arguments is not None:
        return block.arguments
    if not block.arguments_json.strip():
        return {}
    first = parse_arguments(first_object(block.arguments_json) or block.arguments_json)
    # The wire takes objects only; the model should still see what it wrote.
    return {"invalid_json": block.arguments_json} if first is None else first


def first_object(text: str) -> str | None:
    """The first of several JSON objects that stand one after the other; ``None`` where there are not several.

    Models do write them, and mean the first.
    """
    if not CONCATENATED.search(text):
        return None
    try:
        value, end = json.JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError):
        return None
    return text[:end] if isinstance(value, dict) and text[end:].strip() else None


class _Marks:
    """The signatures of a message's texts, in the order of their places."""

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
        """The parts of the next text, after ``calls`` calls; a signed one ends where it ended."""
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
                # The text was put together anew, and not from the same pieces.
                continue
            parts += _texts(text[done - begin : mark_start - begin])
            parts.append({"text": text[mark_start - begin : mark_end - begin], "thoughtSignature": signature})
            done = mark_end
        return parts + _texts(text[done - begin :])

    def empty(self, calls: int | None) -> list[JsonObject]:
        """Signatures that stood alone after ``calls`` calls; ``None``: those that are left."""
        found = [mark for mark in self._waiting if mark[0] == mark[1] and (calls is None or 0 < mark[2] <= calls)]
        self._waiting = [mark for mark in self._waiting if mark not in found]
        return [{"text": "", "thoughtSignature": signature} for _, _, _, signature in found]


def _texts(text: str) -> list[JsonObject]:
    # A part without text is refused.
    return [{"text": text}] if text.strip() else []


def _inline(data: str, mime_type: str) -> JsonObject:
    return {"inlineData": {"mimeType": mime_type, "data": data}}


# --- answers ------------------------------------------------------------------------------------------------------


def usage_from_wire(usage: Any) -> Usage | None:
    """``usageMetadata`` of an answer, ``None`` where there is none."""
    node = as_object(usage)
    if not node:
        return None
    return usage_of(
        prompt=as_count(node.get("promptTokenCount")),
        tool_use=as_count(node.get("toolUsePromptTokenCount")),
        output=as_count(node.get("candidatesTokenCount")),
        thoughts=as_count(node.get("thoughtsTokenCount")),
        cached=as_count(node.get("cachedContentTokenCount")),
        total=as_count(node.get("totalTokenCount")),
    )


def usage_of(*, prompt: int, tool_use: int, output: int, thoughts: int, cached: int, total: int) -> Usage:
    """Counts in our terms. Thoughts that only the total tells of are found by what is missing in it."""
    read = prompt + tool_use
    if not thoughts:
        thoughts = max(total - read - output, 0)
    return Usage(
        input_tokens=read, output_tokens=output + thoughts, cache_read_tokens=cached, reasoning_tokens=thoughts
    )


@dataclass(slots=True)
class _Said:
    """A run of text or of thoughts. ``start`` is its offset, in characters, in all the text of the answer."""

    thought: bool
    start: int = 0
    pieces: list[str] = field(default_factory=list[str])
    signature: str | None = None


class GenerateContentDecoder:
    """Reads one answer, whole or streamed, of which only the first candidate counts.

    ``provider`` is the name that its blocks carry. Calls come whole. Missing ids, or one id for several
    calls, become ids of our own.
    """

    def __init__(self, provider: str, request: ModelRequest) -> None:
        self._provider = provider
        self._turn = len(request.messages)
        self._run: _Said | None = None
        self._blocks: list[_Said | AssistantBlock] = []
        self._ids: set[str] = set()
        self._hosted_id = ""
        self._calls = 0
        self._feedback: JsonObject = {}
        self._grounding: JsonObject = {}
        self._urls: list[JsonObject] = []
        self._sources: list[JsonObject] = []
        self._reason: str | None = None
        self._reason_text = ""
        self._usage: Any = None
        self._model: str | None = None
        self._response_id: str | None = None
        self._begun = False
        self._completed = False

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        if not data or self._completed:
            return []
        if data == "[DONE]":
            return self.finish() if self._begun else []
        chunk = parse_json(data)
        events: list[ModelEvent] = []
        if type(chunk) is list:
            for item in cast("list[Any]", chunk):
                self._take(as_object(item), events)
        else:
            self._take(chunk, events)
        return events

    def finish(self) -> list[ModelEvent]:
        if self._completed:
            return []
        last = self._blocks[-1] if self._blocks else None
        if self._reason is None and not self._feedback and not isinstance(last, ToolUseBlock):
            # A call is whole when it comes, so an answer may end after it without saying so.
            said = "in the middle of its answer" if self._begun else "before it said anything"
            raise ProviderProtocolError(f"the provider ended the stream {said}")
        return self._complete()

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        self._take(body, [])
        if not self._begun and not self._feedback:
            raise ProviderProtocolError("expected at least one candidate in the provider's answer")
        return self._complete()

    def _take(self, chunk: JsonObject, events: list[ModelEvent]) -> None:
        """What one piece of the answer adds."""
        if "error" in chunk:
            raise failure_of_event(chunk)
        candidates = chunk.get("candidates")
        if candidates:
            self._begun = True
            candidate = candidates[0]
            content = candidate.get("content")
            if content:
                for part in content.get("parts") or ():
                    text = part.get("text")
                    if text and len(part) == 1:
                        # Nearly every part of a long answer.
                        run = self._run
                        if run is None or run.thought:
                            run = self._begin(thought=False)
                        run.pieces.append(text)
                        events.append(TextDelta(text))
                    else:
                        self._part(part, events)
            if len(candidate) > 2 or not content or "index" not in candidate:
                # More than its text and its number.
                self._note(candidate)
        usage = chunk.get("usageMetadata")
        if usage:
            self._usage = usage
        if self._response_id is None:
            self._response_id = as_text(chunk.get("responseId")) or None
            self._model = as_text(chunk.get("modelVersion")) or self._model
        if "promptFeedback" in chunk:
            feedback = as_object(chunk["promptFeedback"])
            if feedback.get("blockReason"):
                self._feedback = feedback

    def _note(self, candidate: JsonObject) -> None:
        """What a candidate says about itself."""
        reason = candidate.get("finishReason")
        if reason and reason != "FINISH_REASON_UNSPECIFIED":
            self._reason = str(reason)
        self._reason_text = as_text(candidate.get("finishMessage")) or self._reason_text
        grounding = as_object(candidate.get("groundingMetadata"))
        # The sources may come before what they support.
        self._grounding |= {key: value for key, value in grounding.items() if value}
        urls = as_object(candidate.get("urlContextMetadata")).get("urlMetadata")
        self._urls += [as_object(item) for item in as_list(urls)]
        sources = as_object(candidate.get("citationMetadata"))
        for item in as_list(sources.get("citationSources")) or as_list(sources.get("citations")):
            self._sources.append(as_object(item))

    def _begin(self, *, thought: bool) -> _Said:
        run = self._run = _Said(thought)
        self._blocks.append(run)
        return run

    def _part(self, part: JsonObject, events: list[ModelEvent]) -> None:
        """A part that is more than a piece of text."""
        signature = as_text(part.get("thoughtSignature")) or None
        if "functionCall" in part:
            self._call(as_object(part["functionCall"]), signature, events)
        elif "executableCode" in part or "toolCall" in part:
            self._hosted_use(part)
        elif "codeExecutionResult" in part or "toolResponse" in part:
            self._hosted_result(part)
        elif "text" in part or part.get("thought") or signature:
            text = as_text(part.get("text"))
            thought = bool(part.get("thought"))
            # A signature belongs to its part alone.
            run = self._run if self._run and self._run.thought == thought and not signature else None
            if not text and not signature:
                return
            run = run or self._begin(thought=thought)
            if text:
                run.pieces.append(text)
                events.append(ReasoningDelta(text) if thought else TextDelta(text))
            if signature:
                run.signature = signature
                self._run = None
        elif part:
            # Pictures, and what is yet to be invented: kept raw and given back.
            self._run = None
            self._blocks.append(HostedToolResultBlock(self._hosted_id, "", self._provider, False, {"part": part}))

    def _call(self, call: JsonObject, signature: str | None, events: list[ModelEvent]) -> None:
        self._run = None
        self._calls += 1
        call_id = as_text(call.get("id"))
        if not call_id or call_id in self._ids:
            call_id = self._made_up_id()
        self._ids.add(call_id)
        name, given = as_text(call.get("name")), call.get("args")
        if isinstance(given, str):
            # Servers that only look like this one.
            written = first_object(given) or given
        else:
            written = dump_json(given) if given is not None else ""
        events.append(ToolCallDelta(call_id, name, written))
        data = {"thoughtSignature": signature} if signature else None
        arguments = cast("JsonObject", given) if isinstance(given, dict) else parse_arguments(written)
        self._blocks.append(ToolUseBlock(call_id, name, written, arguments, self._provider if data else None, data))

    def _hosted_use(self, part: JsonObject) -> None:
        self._run = None
        code = as_object(part.get("executableCode"))
        call = code or as_object(part.get("toolCall"))
        self._hosted_id = as_text(call.get("id")) or self._made_up_id()
        name = "code_execution" if code else as_text(call.get("toolType")).lower()
        given = {key: code[key] for key in ("language", "code") if key in code} or as_object(call.get("args"))
        self._blocks.append(HostedToolUseBlock(self._hosted_id, name, given, self._provider, {"part": part}))

    def _hosted_result(self, part: JsonObject) -> None:
        self._run = None
        result = as_object(part.get("codeExecutionResult"))
        answer = result or as_object(part.get("toolResponse"))
        use_id = as_text(answer.get("id")) or self._hosted_id
        if result:
            text, is_error = as_text(result.get("output")), result.get("outcome") != "OUTCOME_OK"
        else:
            text, is_error = dump_json(as_object(answer.get("response"))), False
        self._blocks.append(HostedToolResultBlock(use_id, text, self._provider, is_error, {"part": part}))

    def _made_up_id(self) -> str:
        """An id for a call that came without: unique in its conversation, and the same each time it is decoded."""
        seed = f"{self._turn}|{self._response_id}|{len(self._blocks)}"
        return f"call_{blake2s(seed.encode(), digest_size=12).hexdigest()}"

    # --- the end ------------------------------------------------------------------------------------------------

    def _complete(self) -> list[ModelEvent]:
        self._completed = True
        blocks = self._finished_blocks()
        self._fail_where_nothing_came(blocks)
        message = AssistantMessage([*self._hosted_blocks(), *blocks])
        usage = usage_from_wire(self._usage)
        return [Completed(message, self._stop_reason(), usage, self._model, self._response_id)]

    def _fail_where_nothing_came(self, blocks: list[AssistantBlock]) -> None:
        reason = self._reason or ""
        if self._feedback and not blocks:
            code = str(self._feedback["blockReason"])
            text = as_text(self._feedback.get("blockReasonMessage"))
            raise ProviderFilterError(_sentence("the provider blocked the prompt", code, text), code=code)
        if reason in FAILURES and not self._calls:
            raise ProviderProtocolError(
                _sentence("the model's answer is not of the form it should have", reason, self._reason_text),
                code=reason,
            )
        if reason == "MISSING_THOUGHT_SIGNATURE":
            raise ProviderRequestError(
                _sentence("the provider refused the request", reason, self._reason_text), code=reason
            )
        if not any(isinstance(block, (TextBlock, ToolUseBlock)) for block in blocks):
            if reason in FILTERS:
                raise ProviderFilterError(
                    _sentence("the provider blocked the answer", reason, self._reason_text), code=reason
                )
            if reason == "OTHER":
                raise ProviderProtocolError(
                    _sentence("the provider gave no answer", reason, self._reason_text), code=reason
                )

    def _stop_reason(self) -> StopReason:
        if self._reason in ("MAX_TOKENS", "CONTINUATION"):
            return "max_tokens"
        if self._calls:
            return "tool_use"
        return "content_filter" if self._reason in FILTERS or self._feedback else "end_turn"

    def _finished_blocks(self) -> list[AssistantBlock]:
        """The blocks in their order: one for each run of text, whatever pieces and signatures it came in."""
        blocks: list[AssistantBlock] = []
        texts: list[tuple[TextBlock, int]] = []
        place = calls = 0
        for item in self._blocks:
            if not isinstance(item, _Said):
                calls += isinstance(item, ToolUseBlock)
                blocks.append(item)
                continue
            text = "".join(item.pieces)
            if item.thought:
                data = {"thoughtSignature": item.signature} if item.signature else None
                blocks.append(ReasoningBlock(text, self._provider, data))
                continue
            if text:
                if texts and blocks[-1] is texts[-1][0]:
                    texts[-1][0].text += text
                else:
                    texts.append((TextBlock(text), place))
                    blocks.append(texts[-1][0])
            if item.signature:
                mark: JsonObject = {"thoughtSignature": item.signature, "start": place, "end": place + len(text)}
                if calls:
                    mark["calls"] = calls
                # Before the text that goes on, so that it stays one block.
                goes_on = bool(texts) and blocks[-1] is texts[-1][0]
                blocks.insert(len(blocks) - goes_on, ReasoningBlock("", self._provider, mark))
            place += len(text)
        if self._grounding or self._sources:
            self._cite(texts)
        return blocks

    def _cite(self, texts: list[tuple[TextBlock, int]]) -> None:
        """Put the citations into the blocks that they are about; offsets come in bytes of UTF-8."""
        said = "".join(block.text for block, _ in texts)
        encoded = said.encode("utf-8", "replace")
        for citation, start, end in self._citations():
            first = byte_to_character(encoded, start)
            last = byte_to_character(encoded, end)
            quoted = citation.cited_text
            if first is None or last is None:
                first = last = None
            if quoted and (first is None or last is None or said[first:last] != quoted):
                # Offsets count from the start of a part, and of which is not always told. The text itself is sure.
                found = said.find(quoted)
                first, last = (found, found + len(quoted)) if found >= 0 else (None, None)
            home = next((pair for pair in reversed(texts) if first is not None and pair[1] <= first), None)
            home = home or (texts[0] if texts else None)
            if home is None:
                return
            if first is not None and last is not None:
                citation.start, citation.end = first - home[1], last - home[1]
                citation.cited_text = quoted or said[first:last]
            home[0].citations.append(citation)

    def _citations(self) -> list[tuple[Citation, int, Any]]:
        found: list[tuple[Citation, int, Any]] = []
        chunks = as_list(self._grounding.get("groundingChunks"))
        for item in as_list(self._grounding.get("groundingSupports")):
            support = as_object(item)
            segment = as_object(support.get("segment"))
            for number in as_list(support.get("groundingChunkIndices")):
                chunk = as_object(chunks[number]) if isinstance(number, int) and 0 <= number < len(chunks) else {}
                source = next((as_object(value) for value in chunk.values() if isinstance(value, dict)), chunk)
                citation = Citation(
                    kind="grounding_support",
                    url=as_text(source.get("uri")) or None,
                    title=as_text(source.get("title")) or None,
                    cited_text=as_text(segment.get("text")) or None,
                    provider=self._provider,
                    provider_data={"chunk": chunk, "support": support},
                )
                # A start that is missing is the beginning: zeros are left out on this wire.
                found.append((citation, as_count(segment.get("startIndex")), segment.get("endIndex")))
        for source in self._sources:
            citation = Citation(
                kind="citation_source",
                url=as_text(source.get("uri")) or None,
                title=as_text(source.get("title")) or None,
                provider=self._provider,
                provider_data=source,
            )
            found.append((citation, as_count(source.get("startIndex")), source.get("endIndex")))
        return found

    def _hosted_blocks(self) -> list[AssistantBlock]:
        """What the provider looked up, of which the answer's metadata tell and no part does."""
        blocks: list[AssistantBlock] = []
        queries = as_list(self._grounding.get("webSearchQueries"))
        seen = {block.name for block in self._blocks if isinstance(block, HostedToolUseBlock)}
        if queries and not any("search" in name for name in seen):
            sources = [
                as_object(as_object(item).get("web")) for item in as_list(self._grounding.get("groundingChunks"))
            ]
            rows = [f"{as_text(one.get('title'))} ({as_text(one.get('uri'))})" for one in sources if one]
            use_id = f"{self._made_up_id()}_search"
            blocks.append(HostedToolUseBlock(use_id, "google_search", {"queries": queries}, self._provider))
            blocks.append(HostedToolResultBlock(use_id, "\n".join(rows), self._provider))
        if self._urls and "url_context" not in seen:
            use_id = f"{self._made_up_id()}_urls"
            urls = [as_text(one.get("retrievedUrl")) for one in self._urls]
            states = [
                as_text(one.get("urlRetrievalStatus")).removeprefix("URL_RETRIEVAL_STATUS_").lower()
                for one in self._urls
            ]
            rows = [f"{url}: {state}" for url, state in zip(urls, states, strict=True)]
            failed = "success" not in states
            blocks.append(HostedToolUseBlock(use_id, "url_context", {"urls": urls}, self._provider))
            blocks.append(HostedToolResultBlock(use_id, "\n".join(rows), self._provider, failed))
        return blocks


def byte_to_character(encoded: bytes, offset: Any) -> int | None:
    """The offset in characters of a place that is given in bytes; ``None`` where the text ends before it."""
    if not isinstance(offset, int) or not 0 <= offset <= len(encoded):
        return None
    return len(encoded[:offset].decode("utf-8", "ignore"))


def _sentence(what: str, code: str, text: str) -> str:
    return f"{what} ({code}): {text}" if text else f"{what} ({code})"
