"""Convert the citations of an answer to their wire form.

The protocol has a closed list of two providers, and clients reject a whole event that names another one. Citations
in the format of other providers are therefore stored with their blocks only (``provider_blocks``).
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
