"""Decoder for answers of Anthropic's Messages API, whole or streamed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.adapters.failures import failure_of_event
from jumpseat.adapters.wire import (
    as_count,
    as_list,
    as_object,
    as_text,
    dump_json,
    nano_aiu,
    parse_arguments,
    parse_object,
)
from jumpseat.adapters.wires.base import AnswerDecoder
from jumpseat.agent.blocks import (
    NATIVE,
    AssistantBlock,
    Citation,
    HostedToolResultBlock,
    HostedToolUseBlock,
    JsonObject,
    ReasoningBlock,
    SearchResult,
    TextBlock,
    ToolUseBlock,
)
from jumpseat.agent.model import (
    BlockCompleted,
    Cleared,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from jumpseat.errors import ProviderProtocolError

EDITOR: Final = "str_replace_based_edit_tool"
"""The name that the native editor tool must have."""

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": "end_turn",
    "pause_turn": "pause_turn",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_use",
    "refusal": "refusal",
}


class _Part(Struct):
    """A content block in progress. ``wire`` is its raw form, ``json`` the text of its input."""

    wire: JsonObject
    text: list[str] = field(default_factory=list[str])
    json: list[str] = field(default_factory=list[str])
    signature: list[str] = field(default_factory=list[str])
    citations: list[JsonObject] = field(default_factory=list[JsonObject])


class MessagesDecoder(AnswerDecoder):
    """Decodes one answer, whole or streamed; ``provider`` is the signature of its blocks.

    Blocks of unknown kinds are kept raw and replayed. Calls of ``native`` tools, which the model was trained on,
    become calls of ours; they are replayed unchanged. ``names`` are other names for tools of the wire.
    """

    def __init__(
        self,
        provider: str,
        request: ModelRequest,
        native: frozenset[str] = frozenset(),
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(provider, request)
        self._native = native
        self._names = names
        self._parts: dict[int, _Part] = {}
        self._usage: JsonObject = {}
        self._nano_aiu = 0
        self._cleared: Cleared | None = None
        self._stop_reason: str | None = None

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        if not data or data == "[DONE]" or self._completed:
            return []
        chunk = parse_object(data)
        match chunk.get("type") or event:
            case "content_block_delta":
                return self._delta(chunk)
            case "content_block_start":
                return self._start(as_count(chunk.get("index")), as_object(chunk.get("content_block")))
            case "message_start":
                self._note_head(as_object(chunk.get("message")))
            case "message_delta":
                self._note_usage(chunk.get("usage"))
                self._nano_aiu = nano_aiu(chunk)
                self._note_edits(chunk)
                reason = as_object(chunk.get("delta")).get("stop_reason")
                self._stop_reason = as_text(reason) or self._stop_reason
            case "message_stop":
                return self._complete()
            case "content_block_stop" if self._announces:
                return self._announce(as_count(chunk.get("index")))
            case "error":
                raise failure_of_event(chunk)
            case _:
                # ping, content_block_stop, and unknown events, which the wire asks to ignore.
                if chunk.get("error"):
                    raise failure_of_event(chunk)
        return []

    def finish(self) -> list[ModelEvent]:
        if self._completed:
            return []
        if self._stop_reason is None:
            raise self._cut_off(self._parts)
        return self._complete()

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        if body.get("error") or body.get("type") == "error":
            raise failure_of_event(body)
        if not isinstance(body.get("content"), list):
            raise ProviderProtocolError("expected a list of content blocks in the provider's answer")
        self._note_head(body)
        self._stop_reason = as_text(body.get("stop_reason")) or None
        self._nano_aiu = nano_aiu(body)
        self._note_edits(body)
        for index, block in enumerate(as_list(body.get("content"))):
            self._parts[index] = _Part(self._renamed(as_object(block)))
        return self._complete()

    def _note_head(self, head: JsonObject) -> None:
        super()._note_head(head)
        self._note_usage(head.get("usage"))

    def _note_edits(self, part: JsonObject) -> None:
        edits = [
            as_object(edit) for edit in as_list(as_object(part.get("context_management")).get("applied_edits"))
        ]
        tokens = sum(as_count(edit.get("cleared_input_tokens")) for edit in edits)
        if tokens:
            self._cleared = Cleared(sum(as_count(edit.get("cleared_tool_uses")) for edit in edits), tokens)

    def _note_usage(self, usage: Any) -> None:
        # Counts are totals, not increments; a missing or null field keeps its earlier value.
        self._usage |= {key: value for key, value in as_object(usage).items() if value is not None}

    def _start(self, index: int, block: JsonObject) -> list[ModelEvent]:
        block = self._renamed(block)
        self._parts[index] = _Part(block)
        match block.get("type"):
            case "text":
                text = as_text(block.get("text"))
                return [TextDelta(text)] if text else []
            case "thinking":
                text = as_text(block.get("thinking"))
                return [ReasoningDelta(text)] if text else []
            case "tool_use":
                if self._is_editor(block):
                    # Its arguments decide which of our tools it becomes.
                    return []
                return [ToolCallDelta(as_text(block.get("id")), as_text(block.get("name")), "")]
            case _:
                return []

    def _delta(self, chunk: JsonObject) -> list[ModelEvent]:
        delta = chunk["delta"]
        index = chunk.get("index", 0)
        part = self._parts.get(index)
        kind = delta.get("type")
        if part is None:
            # Some gateways omit the start of a block; the delta gives its kind.
            part = self._parts[index] = _Part({"type": "thinking" if kind == "thinking_delta" else "text"})
        match kind:
            case "text_delta":
                text = delta["text"]
                part.text.append(text)
                return [TextDelta(text)] if text else []
            case "input_json_delta":
                text = as_text(delta.get("partial_json"))
                part.json.append(text)
                if text and part.wire.get("type") == "tool_use" and not self._is_editor(part.wire):
                    return [ToolCallDelta(as_text(part.wire.get("id")), as_text(part.wire.get("name")), text)]
            case "thinking_delta":
                text = as_text(delta.get("thinking"))
                part.text.append(text)
                return [ReasoningDelta(text)] if text else []
            case "signature_delta":
                part.signature.append(as_text(delta.get("signature")))
            case "citations_delta":
                part.citations.append(as_object(delta.get("citation")))
            case "compaction_delta":
                part.text.append(as_text(delta.get("content")))
            case _:
                pass
        return []

    def _is_editor(self, block: JsonObject) -> bool:
        return EDITOR in self._native and block.get("name") == EDITOR

    def _renamed(self, block: JsonObject) -> JsonObject:
        """Return a call of a tool with another name under that name."""
        name = as_text(block.get("name"))
        return {**block, "name": self._names[name]} if name in self._names else block

    def _announce(self, index: int) -> list[ModelEvent]:
        """Announce the block at ``index``; none from a call on that is translated at the end."""
        part = self._parts.get(index)
        block = _to_block(part, self._provider) if part is not None else None
        if isinstance(block, ToolUseBlock) and block.name in self._native:
            self._announces = False
        return [BlockCompleted(block)] if block is not None and self._announces else []

    def _complete(self) -> list[ModelEvent]:
        self._completed = True
        events: list[ModelEvent] = []
        parts = [self._parts[index] for index in sorted(self._parts)]
        blocks = [block for part in parts if (block := _to_block(part, self._provider)) is not None]
        stop = STOP_REASONS.get(self._stop_reason or "end_turn", "end_turn")
        if stop == "end_turn" and any(isinstance(block, ToolUseBlock) for block in blocks):
            stop = "tool_use"
        for index, block in enumerate(blocks):
            if isinstance(block, ToolUseBlock) and block.name in self._native:
                blocks[index] = call = _translate_call(block, self._provider)
                if block.name == EDITOR:
                    events.append(ToolCallDelta(call.id, call.name, call.arguments_json))
        completed = self._complete_with(blocks, stop, self._usage_total())
        events.append(completed if self._cleared is None else replace(completed, cleared=self._cleared))
        return events

    def _usage_total(self) -> Usage | None:
        usage = self._usage
        if not usage:
            return None
        read = as_count(usage.get("cache_read_input_tokens"))
        written = as_count(usage.get("cache_creation_input_tokens"))
        return Usage(
            # The wire counts cached tokens apart from the input; our input includes them.
            input_tokens=as_count(usage.get("input_tokens")) + read + written,
            output_tokens=as_count(usage.get("output_tokens")),
            cache_read_tokens=read,
            cache_write_tokens=written,
            nano_aiu=self._nano_aiu,
        )


def _to_block(part: _Part, provider: str) -> AssistantBlock | None:
    """Convert a finished content block to neutral form; ``None`` for empty text."""
    raw = dict(part.wire)
    kind = as_text(raw.get("type"))
    if kind == "text":
        text = as_text(raw.get("text")) + "".join(part.text)
        citations = [*as_list(raw.get("citations")), *part.citations]
        return (
            TextBlock(text, [_citation(as_object(item), provider) for item in citations])
            if text or citations
            else None
        )
    if kind == "thinking":
        raw["thinking"] = as_text(raw.get("thinking")) + "".join(part.text)
        raw["signature"] = as_text(raw.get("signature")) + "".join(part.signature)
        return ReasoningBlock(raw["thinking"], provider, raw if raw["signature"] else None)
    if kind == "redacted_thinking":
        return ReasoningBlock("", provider, raw)
    if part.text:
        raw["content"] = as_text(raw.get("content")) + "".join(part.text)
    text = "".join(part.json)
    if kind == "tool_use":
        given = as_object(raw.get("input"))
        written = text or (dump_json(given) if given else "")
        return ToolUseBlock(as_text(raw.get("id")), as_text(raw.get("name")), written, parse_arguments(written))
    if kind.endswith("tool_use"):
        raw["input"] = (parse_arguments(text) if text else None) or as_object(raw.get("input"))
        return HostedToolUseBlock(as_text(raw.get("id")), as_text(raw.get("name")), raw["input"], provider, raw)
    readable, is_error = _hosted_result(raw)
    found = _search_results(raw) if kind == "web_search_tool_result" else None
    code = as_text(as_object(raw.get("content")).get("error_code")) or None
    return HostedToolResultBlock(as_text(raw.get("tool_use_id")), readable, provider, is_error, raw, found, code)


def _translate_call(call: ToolUseBlock, provider: str) -> ToolUseBlock:
    """Convert a call of a native tool to a call of ours; return any other call unchanged."""
    given = call.arguments or {}
    path = given.get("path")
    match call.name, given.get("command"):
        case "bash", _ if given.get("restart") is True:
            # Each of our commands has its own shell: there is nothing to restart.
            name, ours = "bash", {"command": ":", "description": "Start a new shell"}
        case str(editor), "view" if editor == EDITOR:
            name, ours = "view", {"path": path, "view_range": given.get("view_range")}
        case str(editor), "create" if editor == EDITOR:
            name, ours = "create", {"path": path, "file_text": given.get("file_text", "")}
        case str(editor), "str_replace" if editor == EDITOR:
            name = "edit"
            ours = {"path": path, "old_str": given.get("old_str"), "new_str": given.get("new_str", "")}
        case str(editor), "insert" if editor == EDITOR:
            text = given.get("insert_text", given.get("new_str"))
            name = "edit"
            ours = {"path": path, "old_str": "", "new_str": text, "insert_line": given.get("insert_line")}
        case _:
            return call
    ours = {key: value for key, value in ours.items() if value is not None}
    native = {NATIVE: {"name": call.name, "input": given}}
    return ToolUseBlock(call.id, name, dump_json(ours), ours, provider, native)


def _hosted_result(raw: JsonObject) -> tuple[str, bool]:
    """Return a readable form of a hosted tool's result, and whether the tool failed."""
    content = raw.get("content")
    if isinstance(content, str):
        return content, False
    node = as_object(content)
    code = as_text(node.get("error_code"))
    if code:
        return code, True
    if node:
        return as_text(node.get("stdout")) or as_text(node.get("url")) or dump_json(node), False
    rows: list[str] = []
    for item in as_list(content):
        entry = as_object(item)
        title, url = as_text(entry.get("title")), as_text(entry.get("url"))
        row = f"{title} ({url})" if title and url else title or url or as_text(entry.get("text"))
        if row:
            rows.append(row)
    return "\n".join(rows), bool(raw.get("is_error"))


def _search_results(raw: JsonObject) -> list[SearchResult]:
    """Return the pages that a web search has found. Their texts are encrypted, so that there are no snippets."""
    pages = [as_object(item) for item in as_list(raw.get("content"))]
    return [
        SearchResult(*(as_text(page.get(key)) or None for key in ("title", "url", "page_age"))) for page in pages
    ]


def _citation(raw: JsonObject, provider: str) -> Citation:
    start = raw.get("start_char_index", raw.get("start_page_number", raw.get("start_block_index")))
    end = raw.get("end_char_index", raw.get("end_page_number", raw.get("end_block_index")))
    return Citation(
        kind=as_text(raw.get("type")),
        url=as_text(raw.get("url")) or as_text(raw.get("source")) or None,
        title=as_text(raw.get("title")) or as_text(raw.get("document_title")) or None,
        cited_text=as_text(raw.get("cited_text")) or None,
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
        provider=provider,
        provider_data=raw,
    )
