"""The sources of Gemini's answers: pages that a search has found, and citations with offsets in bytes."""

from __future__ import annotations

from typing import Any

from jumpseat.adapters.wire import as_count, as_list, as_object, as_text
from jumpseat.agent.blocks import Citation, JsonObject, SearchResult


def grounded_citations(
    grounding: JsonObject, sources: list[JsonObject], provider: str
) -> list[tuple[Citation, int, Any]]:
    """Return the citations of an answer with their starts and ends, in bytes of UTF-8.

    ``sources`` are texts that the model may have recited.
    """
    found: list[tuple[Citation, int, Any]] = []
    chunks = as_list(grounding.get("groundingChunks"))
    for item in as_list(grounding.get("groundingSupports")):
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
                provider=provider,
                provider_data={"chunk": chunk, "support": support},
            )
            # A missing start is zero: the wire omits zeros.
            found.append((citation, as_count(segment.get("startIndex")), segment.get("endIndex")))
    for source in sources:
        citation = Citation(
            kind="citation_source",
            url=as_text(source.get("uri")) or None,
            title=as_text(source.get("title")) or None,
            provider=provider,
            provider_data=source,
        )
        found.append((citation, as_count(source.get("startIndex")), source.get("endIndex")))
    return found


def grounding_results(grounding: JsonObject) -> list[SearchResult]:
    """Return the pages of a search. The wire has no texts of pages: citations quote the answer itself."""
    pages = [as_object(as_object(item).get("web")) for item in as_list(grounding.get("groundingChunks"))]
    return [
        SearchResult(as_text(page.get("title")) or None, as_text(page.get("uri")) or None) for page in pages if page
    ]


def byte_to_character(encoded: bytes, offset: Any) -> int | None:
    """Convert a byte offset to a character offset; ``None`` if the text ends before it."""
    if not isinstance(offset, int) or not 0 <= offset <= len(encoded):
        return None
    return len(encoded[:offset].decode("utf-8", "ignore"))
