"""The citations of an answer, in the form that clients know.

The protocol names two providers, by whose form citations are known. Those of another form stay with their blocks
(``provider_blocks``): clients check the name against a closed list, and would refuse the whole event for an unknown
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jumpseat.agent.blocks import AssistantMessage, Citation, TextBlock
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat_protocol.events import CitationReference, Citations, CitationSource, CitationSpan

LOCATIONS: Final[Mapping[str, tuple[str, str, str]]] = {
    "char_location": ("char", "startIndex", "endIndex"),
    "page_location": ("page", "startPage", "endPage"),
    "content_block_location": ("block", "startBlock", "endBlock"),
}
"""Kinds of citations whose offsets are places in a document, and what the protocol calls these."""


def citations_of(message: AssistantMessage, resolved: ResolvedModel) -> Citations | None:
    """What ``message``, an answer of that model, cites; ``None`` where that is nothing, or in a form of its own."""
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
    """Which part of its block a citation stands for: all of it, unless it says otherwise."""
    start, end = citation.start, citation.end
    if citation.kind in LOCATIONS or start is None or end is None or not 0 <= start <= end <= length:
        return 0, length
    return start, end


def _location(citation: Citation) -> dict[str, Any] | None:
    if citation.kind not in LOCATIONS or citation.start is None or citation.end is None:
        return None
    kind, start, end = LOCATIONS[citation.kind]
    return {"type": kind, start: citation.start, end: citation.end}
