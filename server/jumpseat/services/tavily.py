"""Search the web with the Tavily service.

API: ``POST /search`` with the query and options; the response is ``{results: [{title, url, content, score}]}``.
https://docs.tavily.com
"""

from __future__ import annotations

from typing import Any, Final, cast

from jumpseat.services.caller import ServiceCaller
from jumpseat.tools.web import Hit, WebError

BASE_URL: Final = "https://api.tavily.com"


OPTIONS: Final = {"search_depth": "advanced", "chunks_per_source": 3, "max_results": 5}
"""The default options of a request, overridden by the configuration."""


class TavilySearcher:
    """Searches the web through Tavily."""

    def __init__(self, caller: ServiceCaller) -> None:
        self._caller = caller

    @property
    def url(self) -> str:
        return f"{self._caller.url}/search"

    async def search(self, query: str, domains: list[str]) -> list[Hit]:
        """Return the best results; see :meth:`jumpseat.tools.web.Searcher.search`."""
        body = {**OPTIONS, **self._caller.options, "query": query}
        if domains:
            body["include_domains"] = domains
        results: Any = (await self._caller.post("/search", body)).get("results")
        if not isinstance(results, list):
            raise WebError("The service tavily failed: expected an array of results.")
        found = (
            cast("dict[str, Any]", result) for result in cast("list[Any]", results) if isinstance(result, dict)
        )
        return [
            Hit(str(result.get("title") or result["url"]), result["url"], str(result.get("content") or ""))
            for result in found
            if isinstance(result.get("url"), str)
        ]
