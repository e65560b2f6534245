"""Jina Reader: pages as text, fetched and tidied up by a service. The key is optional.

Wire: ``POST /`` with ``{url}`` and a header that says the form; the answer is ``{code, data}``, and a code other
than 200 an error. https://jina.ai/reader
"""

from __future__ import annotations

from typing import Any, Final, cast

import httpx

from jumpseat.services.addresses import Guard
from jumpseat.services.caller import ServiceCaller
from jumpseat.services.direct import parse_url
from jumpseat.tools.web import Page, WebError

BASE_URL: Final = "https://r.jina.ai"
KEY: Final = "JINA_API_KEY"


class JinaFetcher:
    def __init__(self, caller: ServiceCaller, guard: Guard) -> None:
        self._caller = caller
        self._guard = guard

    async def fetch(self, url: str, *, raw: bool) -> Page:
        """The page at ``url``; see :meth:`jumpseat.tools.web.Fetcher.fetch`."""
        parsed = parse_url(url)
        # The service cannot reach what is private, but must not learn of it either.
        await self._guard.check_name(parsed.host, parsed.port or 80)
        target = str(parsed.copy_with(userinfo=b"", fragment=None))
        form = "html" if raw else "markdown"
        answer = await self._caller.post("/", {"url": target}, {"X-Return-Format": form})
        data: Any = answer.get("data")
        if answer.get("code", 200) != 200 or not isinstance(data, dict):
            said = answer.get("readableMessage") or answer.get("message") or f"code {answer.get('code')}"
            raise WebError(f"The service jina failed on {target}: {str(said)[:300]}.")
        page = cast("dict[str, Any]", data)
        text = next((page[name] for name in ("content", "text", "html") if isinstance(page.get(name), str)), "")
        return Page(_url(page.get("url"), target), "text/html" if raw else "text/markdown", text)


def _url(found: Any, asked: str) -> str:
    try:
        return str(httpx.URL(found)) if isinstance(found, str) and found else asked
    except httpx.InvalidURL:
        return asked
