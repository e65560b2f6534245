"""Anthropic's Messages API, and servers that speak it.

Options of the endpoint (``Endpoint.options``):

=================== ============== =====================================================================
option              default        meaning
=================== ============== =====================================================================
``prompt_caching``  true           whether to mark the unchanging parts of requests for the cache
``thinking``        by model name  ``adaptive`` (effort levels) or ``budget`` (tokens): how to ask for it
``citations``       true           whether documents are sent with citations switched on
``think_tags``      not Anthropic  whether ``<think>`` at the beginning of an answer encloses reasoning
``context_editing`` false          whether the provider clears old results of tools, in place of the server
``body``            ``{}``         more fields for the body; they win
=================== ============== =====================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from hashlib import blake2s
from types import MappingProxyType
from typing import Any, Final, cast
from urllib.parse import urlsplit

from jumpseat.adapters.adapter import Decoder, Endpoint
from jumpseat.adapters.capabilities import hosted
from jumpseat.adapters.wire import arguments_object, as_list, as_object, decode_text, hosted_as_text
from jumpseat.adapters.wires.base import JsonAdapter
from jumpseat.adapters.wires.messages_decoder import EDITOR, MessagesDecoder
from jumpseat.adapters.wires.schema_copies import output_schema
from jumpseat.adapters.wires.tool_schema import called_tools, object_parameters
from jumpseat.agent.blocks import (
    NATIVE,
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
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
    UserMessage,
)
from jumpseat.agent.encoded_history import WrittenParts
from jumpseat.agent.model import (
    ContextEditing,
    EditsContext,
    ModelRequest,
    StructuredOutput,
    ToolChoice,
    ToolSpec,
)

NAME: Final = "anthropic"
API_VERSION: Final = "2023-06-01"

DEFAULT_MAX_TOKENS: Final = 8192
"""The limit of output tokens; the wire has no default."""

MAX_CALL_ID: Final = 64
"""The longest id of a call, in characters, that Bedrock accepts."""

THINKING_BUDGETS: Final[Mapping[str, int]] = {
    "minimal": 1024,
    "low": 2000,
    "medium": 5000,
    "high": 12000,
    "xhigh": 24000,
    "max": 32000,
}
"""Tokens of thinking for each effort, on models that take budgets."""


_MIN_BUDGET: Final = 1024
_CACHE: Final = {"type": "ephemeral"}

EDITING_BETA: Final = "context-management-2025-06-27"
"""The feature to name for :func:`context_management`."""

BETAS: Final[Mapping[str, str]] = {
    "web_fetch_20250910": "web-fetch-2025-09-10",
    "code_execution_20250825": "code-execution-2025-08-25",
}
"""The feature to name in ``anthropic-beta`` for each tool type that needs one."""

HOSTED: Final[Mapping[str, JsonObject]] = {
    "web_search": {"type": "web_search_20250305", "name": "web_search"},
    "url_context": {"type": "web_fetch_20250910", "name": "web_fetch"},
    "code_execution": {"type": "code_execution_20250825", "name": "code_execution"},
    "bash": {"type": "bash_20250124", "name": "bash"},
    "text_editor": {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
}

_CLAUDE: Final = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
TEXT_EDITOR: Final = "text_editor"
"""Our name for the native editor."""

_OWN_HOST: Final = "api.anthropic.com"

_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_-]")
_EDITED_BY: Final = frozenset({"view", "create", "edit"})


class MessagesAdapter(JsonAdapter):
    """``<base_url>/v1/messages``. An API key goes as ``x-api-key``, a bearer token as ``Authorization``."""

    name: str = NAME
    option_names = frozenset({"prompt_caching", "thinking", "citations", "think_tags", "context_editing", "body"})
    hosted: Mapping[str, JsonObject] = HOSTED
    cites_as = "anthropic"
    key_header = "x-api-key"
    wire_headers = MappingProxyType({"anthropic-version": API_VERSION})

    def structured_output(self, model: str) -> StructuredOutput:
        version = claude_version(model)
        new = version is not None and (version >= (4, 5) or (version == (4, 1) and "opus" in model))
        return "always" if new else "never"

    def url(self, endpoint: Endpoint, request: ModelRequest) -> str:
        return messages_url(endpoint.base_url)

    def headers(self, endpoint: Endpoint, request: ModelRequest) -> dict[str, str]:
        """Return the headers, which name the beta features that the request needs."""
        headers = super().headers(endpoint, request)
        wanted = [BETAS[kind] for tool in hosted_tools_to_wire(request) if (kind := tool["type"]) in BETAS]
        if self.edits_context(endpoint) and request.context_editing is not None:
            wanted.append(EDITING_BETA)
        if wanted:
            name = next((name for name in headers if name.lower() == "anthropic-beta"), "anthropic-beta")
            given = [beta.strip() for beta in headers.get(name, "").split(",") if beta.strip()]
            headers[name] = ",".join(dict.fromkeys([*given, *wanted]))
        return headers

    def edits_context(self, endpoint: Endpoint) -> EditsContext | None:
        return "clears" if self.options(endpoint).get("context_editing") is True else None

    def decoder(self, request: ModelRequest) -> Decoder:
        native = {"bash": "bash", "text_editor": EDITOR}
        wanted = frozenset(
            native[tool.name] for tool in request.hosted_tools if tool.name in native and not tool.untranslated
        )
        names = {EDITOR: TEXT_EDITOR} if _has_untranslated_editor(request) else {}
        return MessagesDecoder(self.signature, request, wanted, names)

    def decoder_at(self, endpoint: Endpoint, request: ModelRequest) -> Decoder:
        decoder = self.decoder(request)
        wanted = self.options(endpoint).get("think_tags", urlsplit(endpoint.base_url).hostname != _OWN_HOST)
        if not wanted:
            return decoder
        # Imported for servers of other models only.
        from jumpseat.adapters.wires.think_tags import ThinkTagDecoder, opened_by_prompt

        return ThinkTagDecoder(decoder, self.signature, opened_by_prompt(wanted, request.messages))

    def body(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        options = self.options(endpoint)
        max_tokens, thinking = _thinking(request, options, self.signature)
        body: JsonObject = {"model": request.model, "max_tokens": max_tokens}
        if request.system.strip():
            body["system"] = [{"type": "text", "text": request.system}]
        body["messages"] = messages_to_wire(request, self.signature, citations=bool(options.get("citations", True)))
        if tools := tools_to_wire(request):
            body["tools"] = tools
            choice = tool_choice_to_wire(request.tool_choice)
            if choice is not None:
                if _has_untranslated_editor(request) and choice.get("name") == TEXT_EDITOR:
                    choice["name"] = EDITOR
                body["tool_choice"] = choice
        elif tools := [tool_to_wire(request, tool) for tool in called_tools(request.messages)]:
            # Bedrock refuses a conversation with calls in a request without tools.
            body |= {"tools": tools, "tool_choice": {"type": "none"}}
        output: JsonObject = {}
        if thinking is not None:
            body["thinking"] = thinking
            if thinking["type"] == "adaptive":
                output["effort"] = request.reasoning_effort
        if request.response_format is not None:
            output["format"] = {"type": "json_schema", "schema": output_schema(request.response_format.schema)}
        if output:
            body["output_config"] = output
        body["stream"] = request.stream
        if self.edits_context(endpoint) and request.context_editing is not None:
            body["context_management"] = context_management(request.context_editing)
        if options.get("prompt_caching", True):
            _mark_cache(body)
        body.update(as_object(options.get("body")))
        _remove_sampling_beside_thinking(body)
        return body


def context_management(editing: ContextEditing) -> JsonObject:
    """Write the field that has old results of tools cleared.

    https://platform.claude.com/docs/en/build-with-claude/context-editing
    """
    edit: JsonObject = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": editing.begin},
        "keep": {"type": "tool_uses", "value": editing.kept},
        "clear_at_least": {"type": "input_tokens", "value": editing.at_least},
    }
    if editing.spared:
        edit["exclude_tools"] = [*editing.spared]
    return {"edits": [edit]}


def _remove_sampling_beside_thinking(body: JsonObject) -> None:
    """Remove settings that the wire refuses together with thinking.

    https://platform.claude.com/docs/en/build-with-claude/extended-thinking#feature-compatibility
    """
    if as_object(body.get("thinking")).get("type") not in ("enabled", "adaptive"):
        return
    if body.get("temperature") != 1:
        body.pop("temperature", None)
    body.pop("top_k", None)
    top_p = body.get("top_p")
    if isinstance(top_p, int | float) and not 0.95 <= top_p <= 1:
        del body["top_p"]


def messages_url(base_url: str) -> str:
    """Return the URL of the Messages API; ``base_url`` may end in ``/v1`` or not."""
    base = base_url.rstrip("/")
    if base.endswith("/v1/messages"):
        return base
    return f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"


def tools_to_wire(request: ModelRequest) -> list[JsonObject]:
    """Write all tools, except those of ours that a native tool of the model replaces."""
    native = {tool.name for tool in request.hosted_tools}
    hidden = {"bash"} & native | (_EDITED_BY if "text_editor" in native else frozenset[str]())
    return [
        *(tool_to_wire(request, tool) for tool in request.tools if tool.name not in hidden),
        *hosted_tools_to_wire(request),
    ]


def hosted_tools_to_wire(request: ModelRequest) -> list[JsonObject]:
    """Write the native and hosted tools, which their ``type`` identifies."""
    return [{**form, **options} for form, options in hosted(HOSTED, request)]


def tool_to_wire(request: ModelRequest, tool: ToolSpec) -> JsonObject:
    """Write one tool."""
    schema = request.write_schema(tool, object_parameters)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def tool_choice_to_wire(choice: ToolChoice | None) -> JsonObject | None:
    """Write the choice of tools."""
    if choice is None:
        return None
    wire: JsonObject
    match choice.mode:
        case "auto":
            wire = {"type": "auto"}
        case "required":
            wire = {"type": "any"}
        case "none":
            return {"type": "none"}
        case "specific":
            wire = {"type": "tool", "name": choice.name}
    if choice.parallel is not None:
        wire["disable_parallel_tool_use"] = not choice.parallel
    return wire


def messages_to_wire(request: ModelRequest, provider: str, *, citations: bool) -> list[JsonObject]:
    """Write the conversation as messages of alternating roles, with neighbours of one role merged.

    Blocks signed by ``provider`` go back unchanged.
    """
    editor = EDITOR if _has_untranslated_editor(request) else TEXT_EDITOR
    write = partial(_content, provider=provider, vision=request.vision, citations=citations, editor=editor)
    written = request.write_each(("messages", provider, request.vision, citations, editor), write)
    wire: list[JsonObject] = []
    for message, content in zip(request.messages, written, strict=True):
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        if not content:
            continue
        if wire and wire[-1]["role"] == role:
            wire[-1]["content"] += content
        elif not wire and role == "assistant":
            # The wire requires a user message first; a shortened conversation may begin with an answer.
            wire.append({"role": "user", "content": [{"type": "text", "text": "(earlier conversation left out)"}]})
            wire.append({"role": role, "content": content})
        else:
            wire.append({"role": role, "content": content})
    return wire


def _has_untranslated_editor(request: ModelRequest) -> bool:
    """Return whether the caller runs the native editor, whose name differs from ours."""
    return any(tool.name == TEXT_EDITOR and tool.untranslated for tool in request.hosted_tools)


def _call_id(tool_use_id: str) -> str:
    """Return the id of a call as the wire allows it; a digest keeps a changed id distinct."""
    allowed = _NOT_ALLOWED.sub("_", tool_use_id)[:MAX_CALL_ID]
    if allowed == tool_use_id and allowed:
        return allowed
    digest = blake2s(tool_use_id.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{allowed[: MAX_CALL_ID - len(digest) - 1] or 'call'}_{digest}"


def _content(message: Message, *, provider: str, vision: bool, citations: bool, editor: str) -> list[JsonObject]:
    """Write the blocks of one message. ``editor`` is the name of the native editor in calls."""
    match message:
        case UserMessage():
            return [
                part for block in message.blocks for part in _user_block(block, vision=vision, citations=citations)
            ]
        case AssistantMessage():
            parts = (_assistant_block(block, provider, editor) for block in message.blocks)
            return _without_last_thinking([part for part in parts if part is not None])
        case ToolMessage():
            return [_tool_result(result, vision=vision) for result in message.results]


def _without_last_thinking(parts: list[JsonObject]) -> list[JsonObject]:
    """Leave out thinking at the end of an answer, as of one that was cut off: the wire refuses it there."""
    while parts and parts[-1]["type"] in ("thinking", "redacted_thinking"):
        parts.pop()
    return parts


def _user_block(block: UserBlock, *, vision: bool, citations: bool) -> list[JsonObject]:
    match block:
        case TextBlock():
            return _texts(block.text)
        case ImageBlock():
            return _image(block) if vision else []
        case DocumentBlock():
            return [_document(block, citations=citations)]


def _assistant_block(block: AssistantBlock, provider: str, editor: str) -> JsonObject | None:
    match block:
        case TextBlock():
            if not block.text.strip():
                # The wire refuses blank text.
                return None
            part: JsonObject = {"type": "text", "text": block.text}
            # Citations of web search must come back, because later answers build on them. Others refer to
            # documents that may have left the conversation.
            cited = [
                c.provider_data
                for c in block.citations
                if c.provider == provider and c.kind == "web_search_result_location" and c.provider_data
            ]
            if cited:
                part["citations"] = cited
            return part
        case ReasoningBlock():
            # Thinking is accepted only with its signature, which no other provider can give.
            return _replay_block(block, provider)
        case ToolUseBlock():
            if block.provider == provider and (native := as_object(as_object(block.provider_data).get(NATIVE))):
                return {**native, "type": "tool_use", "id": _call_id(block.id)}
            name = editor if block.name == TEXT_EDITOR else block.name
            return {"type": "tool_use", "id": _call_id(block.id), "name": name, "input": arguments_object(block)}
        case HostedToolUseBlock() | HostedToolResultBlock():
            replay = _replay_block(block, provider)
            if replay is not None:
                return replay
            text = hosted_as_text(block)
            return {"type": "text", "text": text} if text.strip() else None


def _replay_block(
    block: ReasoningBlock | HostedToolUseBlock | HostedToolResultBlock, provider: str
) -> JsonObject | None:
    """Return the block exactly as ``provider`` sent it; ``None`` if another provider did."""
    raw: Any = block.provider_data
    return dict(cast("JsonObject", raw)) if block.provider == provider and isinstance(raw, dict) else None


def _tool_result(result: ToolResultBlock, *, vision: bool) -> JsonObject:
    wire: JsonObject = {"type": "tool_result", "tool_use_id": _call_id(result.tool_use_id)}
    images = [part for image in result.images for part in _image(image)] if vision else []
    if images:
        wire["content"] = [*_texts(result.text), *images]
    elif result.text.strip():
        wire["content"] = result.text
    if result.is_error:
        wire["is_error"] = True
    return wire


def _texts(text: str) -> list[JsonObject]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _image(image: ImageBlock) -> list[JsonObject]:
    source = {"type": "base64", "media_type": image.mime_type, "data": image.data}
    return [*_texts(image.label or ""), {"type": "image", "source": source}]


def _document(document: DocumentBlock, *, citations: bool) -> JsonObject:
    source: JsonObject
    if document.mime_type.startswith("text/"):
        source = {"type": "text", "media_type": "text/plain", "data": decode_text(document.data)}
    else:
        source = {"type": "base64", "media_type": document.mime_type, "data": document.data}
    wire: JsonObject = {"type": "document", "source": source}
    if document.title:
        wire["title"] = document.title
    if citations:
        wire["citations"] = {"enabled": True}
    return wire


def _mark_cache(body: JsonObject) -> None:
    """Mark the ends of the parts that stay the same from call to call: tools, system, conversation so far.

    The end of the conversation at the previous call is marked too: the cache looks back over twenty blocks only,
    and a turn with many calls has more. These are the four marks that the wire allows.
    """
    ends = [as_list(body.get("tools")), as_list(body.get("system"))]
    ends += [message["content"] for message in body["messages"] if message["role"] == "user"][-2:]
    for blocks in ends:
        if blocks:
            blocks[-1] = _marked(blocks[-1])


def _marked(block: JsonObject | WrittenParts) -> JsonObject | WrittenParts:
    """Return a copy of a block with the mark, because the block may be an object of the conversation."""
    if isinstance(block, WrittenParts):
        return block.with_field("cache_control", _CACHE)
    return {**block, "cache_control": _CACHE}


def _thinking(request: ModelRequest, options: Mapping[str, Any], provider: str) -> tuple[int, JsonObject | None]:
    """Return the limit of output tokens, and the ``thinking`` field."""
    wanted = request.max_output_tokens
    effort = request.reasoning_effort
    forced = request.tool_choice is not None and request.tool_choice.mode in ("required", "specific")
    plain = wanted or DEFAULT_MAX_TOKENS
    # Thinking is not allowed with a forced tool choice.
    if effort is None or effort in ("none", "off") or forced:
        return plain, None
    mode = options.get("thinking") or ("adaptive" if _is_adaptive(request.model) else "budget")
    if mode == "adaptive":
        return wanted or DEFAULT_MAX_TOKENS * 4, {"type": "adaptive"}
    if _answers_unthinking_call(request.messages, provider):
        return plain, None
    budget = THINKING_BUDGETS.get(effort, THINKING_BUDGETS["medium"])
    if wanted is None:
        return DEFAULT_MAX_TOKENS + budget, {"type": "enabled", "budget_tokens": budget}
    # The limit includes thinking: leave at least half of it for the answer.
    budget = min(budget, wanted // 2)
    if budget < _MIN_BUDGET:
        return plain, None
    return wanted, {"type": "enabled", "budget_tokens": budget}


def claude_version(model: str) -> tuple[int, int] | None:
    """Return the version in the name of a Claude model, ``None`` for a name without one."""
    match = _CLAUDE.search(model)
    return (int(match.group(1)), int(match.group(2) or 0)) if match is not None else None


def _is_adaptive(model: str) -> bool:
    """Return whether a model takes effort levels instead of budgets, as models from 4.6 on do."""
    version = claude_version(model)
    return version is not None and version >= (4, 6)


def _answers_unthinking_call(messages: list[Message], provider: str) -> bool:
    """Return whether the request ends with results of a call without thinking before it.

    The wire refuses to begin thinking there. This happens after a change of the model or the effort.
    """
    if not messages or not isinstance(messages[-1], ToolMessage):
        return False
    last = next((m for m in reversed(messages) if isinstance(m, AssistantMessage)), None)
    return last is None or not any(
        isinstance(block, ReasoningBlock) and _replay_block(block, provider) is not None for block in last.blocks
    )
