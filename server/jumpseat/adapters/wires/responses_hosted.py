"""Blocks for the tools that a server of the Responses API runs itself."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.wire import as_list, as_object, as_text, cited_pages, dump_json, parse_arguments, search_rows
from jumpseat.agent.blocks import (
    AssistantBlock,
    HostedToolResultBlock,
    HostedToolUseBlock,
    JsonObject,
    SearchResult,
    TextBlock,
)

SEARCH: Final = "web_search_call"
"""The kind of items that are web searches."""


def hosted_blocks(kind: str, raw: JsonObject, provider: str) -> list[AssistantBlock]:
    """Return the blocks of a hosted tool. The call holds the raw item, including the result, for replay."""
    item_id = as_text(raw.get("id"))
    name = as_text(raw.get("name")) or kind.removesuffix("_call")
    found: list[AssistantBlock] = [HostedToolUseBlock(item_id, name, _hosted_input(raw), provider, raw)]
    text, is_error = _hosted_result(raw)
    if kind == SEARCH and not is_error:
        action = as_object(raw.get("action"))
        urls = [as_text(as_object(source).get("url")) for source in as_list(action.get("sources"))]
        pages = [SearchResult(url=url) for url in urls if url]
        found.append(HostedToolResultBlock(item_id, text, provider, results=pages))
    elif text:
        found.append(HostedToolResultBlock(item_id, text, provider, is_error))
    return found


def with_search_results(blocks: list[AssistantBlock]) -> list[AssistantBlock]:
    """Complete the results of searches by the pages that the answer cites; a search without any has no result.

    The wire has the addresses of the pages in the call, and only on request; their titles are in the citations.
    Cited pages that no search lists belong to the last search.
    """
    searches = [b for b in blocks if isinstance(b, HostedToolResultBlock) and b.results is not None]
    if not searches:
        return blocks
    cited = cited_pages(citation for b in blocks if isinstance(b, TextBlock) for citation in b.citations)
    titles = {page.url: page.title for page in cited}
    listed = {page.url for search in searches for page in search.results or []}
    searches[-1].results = [*(searches[-1].results or []), *(page for page in cited if page.url not in listed)]
    for search in searches:
        for page in search.results or []:
            page.title = page.title or titles.get(page.url)
        search.text = search.text or search_rows(search.results or [])
    empty = [search for search in searches if not search.text]
    return [block for block in blocks if block not in empty]


def _hosted_input(raw: JsonObject) -> JsonObject:
    """Return the input of a hosted tool, from the field of its kind."""
    given = as_object(raw.get("action")) or parse_arguments(as_text(raw.get("arguments")))
    return given or {key: raw[key] for key in ("queries", "code", "input") if raw.get(key)}


def _hosted_result(raw: JsonObject) -> tuple[str, bool]:
    """Return a readable form of a hosted tool's result, and whether the tool failed."""
    error = raw.get("error")
    if error:
        return as_text(error) or as_text(as_object(error).get("message")) or dump_json(error), True
    output = raw.get("output")
    if isinstance(output, str):
        return output, False
    rows: list[str] = []
    for value in as_list(output) or as_list(raw.get("outputs")) or as_list(raw.get("results")):
        entry = as_object(value)
        title = as_text(entry.get("filename")) or as_text(entry.get("title"))
        text = as_text(entry.get("logs")) or as_text(entry.get("text")) or as_text(entry.get("url"))
        if title or text:
            rows.append(f"{title}: {text}" if title and text else title or text)
    return "\n".join(rows), raw.get("status") == "failed"
