"""Convert the blocks of an answer to and from its ``assistant.message`` event in the log.

Most answers are text followed by tool calls, which the event has fields for. Anything else has to be sent back to
the provider unchanged and in order: signed reasoning between calls, hosted tool calls, citations. In that case the
event's ``provider_blocks`` lists all blocks in order::

    {"type": "reasoning", "text": ..., "provider": ..., "data": ...}
    {"type": "text", "length": 12, "citations": [...]}      # the next 12 characters of the message's content
    {"type": "tool_use", "provider": ..., "data": ...}      # the next of the message's calls
    {"type": "hosted_tool_use", "id": ..., "name": ..., "input": ..., "provider": ..., "data": ...}
    {"type": "hosted_tool_result", "id": ..., "text": ..., "is_error": ..., "provider": ..., "data": ...,
     "results": [{"title": ..., "url": ..., "page_age": ..., "snippet": ...}], "error_code": ...}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec.structs import asdict

from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    Citation,
    HostedToolResultBlock,
    HostedToolUseBlock,
    JsonObject,
    ReasoningBlock,
    SearchResult,
    TextBlock,
    ToolUseBlock,
)
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat_protocol import events
from jumpseat_protocol.events import CitationReference, Citations, CitationSource, CitationSpan

_CITATION_FIELDS: Final = frozenset(Citation.__struct_fields__)
_RESULT_FIELDS: Final = frozenset(SearchResult.__struct_fields__)


def provider_blocks(message: AssistantMessage) -> list[JsonObject] | None:
    """Return the ``provider_blocks`` of an answer; ``None`` if text and calls represent it completely."""
    if _is_plain(message):
        return None
    return [_to_record(block) for block in message.blocks if not _is_unsigned(block)]


def _is_unsigned(block: AssistantBlock) -> bool:
    """Return whether ``block`` is reasoning that need not be sent back."""
    return isinstance(block, ReasoningBlock) and block.provider_data is None


def _is_plain(message: AssistantMessage) -> bool:
    """Return whether a message consists of one text and then calls, apart from unsigned reasoning."""
    texts = 0
    called = False
    for block in message.blocks:
        match block:
            case TextBlock():
                texts += 1
                if called or texts > 1 or block.citations:
                    return False
            case ToolUseBlock():
                called = True
                if block.provider_data is not None:
                    return False
            case ReasoningBlock():
                if not _is_unsigned(block):
                    return False
            case HostedToolUseBlock() | HostedToolResultBlock():
                return False
    return True


def _to_record(block: AssistantBlock) -> JsonObject:
    match block:
        case ReasoningBlock():
            return {
                "type": "reasoning",
                "text": block.text,
                "provider": block.provider,
                "data": block.provider_data,
            }
        case TextBlock():
            record: JsonObject = {"type": "text", "length": len(block.text)}
            if block.citations:
                record["citations"] = [_set_fields(citation) for citation in block.citations]
            return record
        case ToolUseBlock():
            if block.provider_data is None:
                return {"type": "tool_use"}
            return {"type": "tool_use", "provider": block.provider, "data": block.provider_data}
        case HostedToolUseBlock():
            return {
                "type": "hosted_tool_use",
                "id": block.id,
                "name": block.name,
                "input": block.input,
                "provider": block.provider,
                "data": block.provider_data,
            }
        case HostedToolResultBlock():
            result: JsonObject = {
                "type": "hosted_tool_result",
                "id": block.tool_use_id,
                "text": block.text,
                "is_error": block.is_error,
                "provider": block.provider,
                "data": block.provider_data,
            }
            if block.results is not None:
                result["results"] = [_set_fields(found) for found in block.results]
            if block.error_code is not None:
                result["error_code"] = block.error_code
            return result


def _set_fields(item: Citation | SearchResult) -> JsonObject:
    return {key: value for key, value in asdict(item).items() if value is not None}


def answer_blocks(payload: events.AssistantMessage, calls: list[ToolUseBlock]) -> list[AssistantBlock]:
    """Restore the blocks of a logged answer; ``calls`` are the calls in its event.

    Text and calls missing from ``provider_blocks`` are appended, since a log may have been written by an older
    server, or edited.
    """
    blocks: list[AssistantBlock] = []
    text, waiting = payload.content, list(calls)
    records = payload.provider_blocks or []
    if not any(raw.get("type") == "text" for raw in records):
        # Reasoning precedes the text if the log does not give its position.
        reasoning = [raw for raw in records if raw.get("type") == "reasoning"]
        blocks += [_reasoning(raw) for raw in reasoning]
        records = [raw for raw in records if raw.get("type") != "reasoning"]
        if text:
            blocks.append(TextBlock(text))
            text = ""
    for raw in records:
        match raw.get("type"):
            case "reasoning":
                blocks.append(_reasoning(raw))
            case "text":
                length = raw.get("length")
                length = length if isinstance(length, int) and length >= 0 else len(text)
                if piece := text[:length]:
                    blocks.append(TextBlock(piece, _citations(raw.get("citations"))))
                text = text[length:]
            case "tool_use" if waiting:
                call = waiting.pop(0)
                call.provider, call.provider_data = raw.get("provider"), raw.get("data")
                blocks.append(call)
            case "hosted_tool_use":
                given: Any = raw.get("input")
                blocks.append(
                    HostedToolUseBlock(
                        str(raw.get("id")),
                        str(raw.get("name")),
                        cast("JsonObject", given) if isinstance(given, dict) else {},
                        str(raw.get("provider")),
                        raw.get("data"),
                    )
                )
            case "hosted_tool_result":
                blocks.append(
                    HostedToolResultBlock(
                        str(raw.get("id")),
                        str(raw.get("text") or ""),
                        str(raw.get("provider")),
                        is_error=bool(raw.get("is_error")),
                        provider_data=raw.get("data"),
                        results=_search_results(raw.get("results")),
                        error_code=raw.get("error_code"),
                    )
                )
            case _:
                pass
    if text:
        blocks.append(TextBlock(text))
    return [*blocks, *waiting]


def _reasoning(raw: JsonObject) -> ReasoningBlock:
    return ReasoningBlock(str(raw.get("text") or ""), raw.get("provider"), raw.get("data"))


def _citations(raw: Any) -> list[Citation]:
    items = cast("list[Any]", raw) if isinstance(raw, list) else []
    tables = (cast("JsonObject", item) for item in items if isinstance(item, dict))
    return [
        Citation(**{key: table[key] for key in table if key in _CITATION_FIELDS})
        for table in tables
        if "kind" in table
    ]


def _search_results(raw: Any) -> list[SearchResult] | None:
    if not isinstance(raw, list):
        return None
    tables = (cast("JsonObject", item) for item in cast("list[Any]", raw) if isinstance(item, dict))
    return [SearchResult(**{key: table[key] for key in table if key in _RESULT_FIELDS}) for table in tables]


LOCATIONS: Final[Mapping[str, tuple[str, str, str]]] = {
    "char_location": ("char", "startIndex", "endIndex"),
    "page_location": ("page", "startPage", "endPage"),
    "content_block_location": ("block", "startBlock", "endBlock"),
}
"""Kinds of citations whose offsets refer to a document, each with the protocol's type and names of the offsets."""


def citations_of(message: AssistantMessage, resolved: ResolvedModel) -> Citations | None:
    """Return the citations of an answer; ``None`` if it has none or their format has no wire form."""
    if not any(isinstance(block, TextBlock) and block.citations for block in message.blocks):
        return None
    provider = resolved.model.capabilities(resolved.wire_name).citations
    if provider is None:
        return None
    sources: dict[tuple[str | None, str | None], CitationSource] = {}
    spans: dict[tuple[int, int], CitationSpan] = {}
    offset = 0
    for block in message.blocks:
        if not isinstance(block, TextBlock):
            continue
        for citation in block.citations:
            key = (citation.url, citation.title)
            source = sources.setdefault(
                key,
                CitationSource(id=str(len(sources) + 1), provider=provider, title=citation.title, url=citation.url),
            )
            start, end = _span(citation, len(block.text))
            span = spans.setdefault(
                (offset + start, offset + end),
                CitationSpan(start_index=offset + start, end_index=offset + end, references=[]),
            )
            span.references.append(
                CitationReference(source_id=source.id, cited_text=citation.cited_text, location=_location(citation))
            )
        offset += len(block.text)
    return Citations(sources=list(sources.values()), spans=list(spans.values())) if sources else None


def _span(citation: Citation, length: int) -> tuple[int, int]:
    """Return the range of its text block that a citation covers, by default the whole block."""
    start, end = citation.start, citation.end
    if citation.kind in LOCATIONS or start is None or end is None or not 0 <= start <= end <= length:
        return 0, length
    return start, end


def _location(citation: Citation) -> dict[str, Any] | None:
    if citation.kind not in LOCATIONS or citation.start is None or citation.end is None:
        return None
    kind, start, end = LOCATIONS[citation.kind]
    return {"type": kind, start: citation.start, end: citation.end}
