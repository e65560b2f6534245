"""Fetch pages as text with the Jina Reader service. The key is optional.

API: ``POST /`` with ``{url}`` and a header that selects the format; the response is ``{code, data}``, where a code
other than 200 is an error. https://jina.ai/reader
"""

from __future__ import annotations

from typing import Any, Final, cast

import httpx2

from jumpseat.services.addresses import HostPolicy
from jumpseat.services.caller import ServiceCaller
from jumpseat.services.direct import parse_url
from jumpseat.tools.web import Page, WebError

BASE_URL: Final = "https://r.jina.ai"


class JinaFetcher:
    """Fetches pages through Jina Reader, after checking that the host is allowed."""

    def __init__(self, caller: ServiceCaller, policy: HostPolicy) -> None:
        self._caller = caller
        self._policy = policy

    async def fetch(self, url: str, *, raw: bool) -> Page:
        """Fetch the page at ``url``; see :meth:`jumpseat.tools.web.Fetcher.fetch`."""
        parsed = parse_url(url)
        # The service cannot reach private hosts, but must not learn their names either.
        await self._policy.check_name(parsed.host, parsed.port or 80)
        target = str(parsed.copy_with(userinfo=b"", fragment=None))
        form = "html" if raw else "markdown"
        answer = await self._caller.post("/", {"url": target}, {"X-Return-Format": form})
        data: Any = answer.get("data")
        if answer.get("code", 200) != 200 or not isinstance(data, dict):
            message = answer.get("readableMessage") or answer.get("message") or f"code {answer.get('code')}"
            raise WebError(f"The service jina failed on {target}: {str(message)[:300]}.")
        page = cast("dict[str, Any]", data)
        text = next((page[name] for name in ("content", "text", "html") if isinstance(page.get(name), str)), "")
        return Page(_url(page.get("url"), target), "text/html" if raw else "text/markdown", text)


def _url(value: Any, requested: str) -> str:
    """Return the final URL reported by the service, or the requested one if it is missing or invalid."""
    try:
        return str(httpx2.URL(value)) if isinstance(value, str) and value else requested
    except httpx2.InvalidURL:
        return requested
