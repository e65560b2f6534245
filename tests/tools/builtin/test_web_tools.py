"""``web_fetch`` and ``web_search`` from the model's point of view, with a fake web."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.blocks import ImageBlock, ToolUseBlock
from jumpseat.tools.builtin import builtin_tools
from jumpseat.tools.orchestrator.environment import Environment
from jumpseat.tools.tool import Prepared, ToolOutcome
from jumpseat.tools.web import Fetcher, Hit, Page, Searcher, WebError
from jumpseat_protocol.permissions import UrlPermission
from tests.tools.session import tool_named, tool_session

pytestmark = pytest.mark.anyio

URL = "https://site.example/page"


class Pages:
    """A web with one page and one search result."""

    url = "https://search.example/search"

    def __init__(self, page: Page | WebError, hits: list[Hit] | WebError | None = None) -> None:
        self._page = page
        self._hits = hits
        self.requests: list[Any] = []

    def fetcher(self) -> Fetcher:
        return self

    def can_search(self) -> bool:
        return self._hits is not None

    def searcher(self) -> Searcher:
        return self

    async def fetch(self, url: str, *, raw: bool) -> Page:
        self.requests.append((url, raw))
        if isinstance(self._page, WebError):
            raise self._page
        return self._page

    async def search(self, query: str, domains: list[str]) -> list[Hit]:
        self.requests.append((query, domains))
        if isinstance(self._hits, WebError):
            raise self._hits
        return self._hits or []


async def prepared(web: Pages, name: str, **arguments: Any) -> Prepared | ToolOutcome:
    async with tool_session(Path("/"), web=web) as ctx:
        return await tool_named(name).prepare(ctx, ToolUseBlock("call_1", name, "", arguments))


async def call(web: Pages, name: str, **arguments: Any) -> ToolOutcome:
    ready = await prepared(web, name, **arguments)
    return ready if isinstance(ready, ToolOutcome) else await ready.run()


def text_page(text: str, media_type: str = "text/plain") -> Pages:
    return Pages(Page(URL, media_type, text))


async def test_html_is_shown_as_markdown_unless_raw_is_set() -> None:
    web = text_page("<h1>Hi</h1><p>a <a href='/b'>link</a>", "text/html")
    shown = await call(web, "web_fetch", url=URL)
    assert shown.text == f"Contents of {URL}:\n# Hi\n\na [link](https://site.example/b)"
    shown = await call(web, "web_fetch", url=URL, raw=True)
    assert shown.text == f"Contents of {URL}:\n<h1>Hi</h1><p>a <a href='/b'>link</a>"
    assert web.requests == [(URL, False), (URL, True)]


async def test_a_long_page_is_shown_in_parts() -> None:
    web = text_page("0123456789" * 3000)
    first = (await call(web, "web_fetch", url=URL)).text
    assert first.endswith("6789\n\n[Characters 0 to 5000 of 30000. Continue with start_index: 5000.]")
    part = (await call(web, "web_fetch", url=URL, start_index=12, max_length=3)).text
    assert part == f"Contents of {URL}:\n234\n\n[Characters 12 to 15 of 30000. Continue with start_index: 15.]"
    most = (await call(web, "web_fetch", url=URL, max_length=10**9)).text
    assert most.endswith("[Characters 0 to 20000 of 30000. Continue with start_index: 20000.]")
    last = (await call(web, "web_fetch", url=URL, start_index=29_998)).text
    assert last == f"Contents of {URL}:\n89"
    beyond = await call(web, "web_fetch", url=URL, start_index=30_000)
    assert (beyond.ok, beyond.text) == (
        False,
        f"start_index 30000 is beyond the end of {URL}, which has 30000 characters.",
    )


async def test_images_reach_the_model() -> None:
    outcome = await call(Pages(Page(URL, "image/png", picture=b"png")), "web_fetch", url=URL)
    data = base64.b64encode(b"png").decode()
    assert outcome.images == [ImageBlock(data, "image/png", label=f"Image at {URL}")]
    assert outcome.text == f"Fetched the image {URL}"


async def test_a_page_without_text_a_redirect_and_a_failure_are_reported() -> None:
    empty = await call(text_page("<script>x</script>", "text/html"), "web_fetch", url=URL)
    assert empty.text == f"{URL} has no text. Set raw: true to see its source."
    moved = await call(Pages(Page(URL, "", redirected_to="https://other.example/")), "web_fetch", url=URL)
    assert moved.text == f"{URL} redirects to another site. To follow it, fetch https://other.example/"
    broken = await call(Pages(WebError("Not today.")), "web_fetch", url=URL)
    assert (broken.text, broken.status) == ("Not today.", "failure")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://site.example/",
        "site.example",
        "javascript:alert(1)",
        "https://",
        "https:///x",
        "https://user:pw@site.example/",
        "https://good.example\\@evil.example/",
        "https://good.example\\.evil.example/",
        "https://site.example/a b",
        "https://site.example\n.evil.example/",
        "",
    ],
)
async def test_a_url_whose_host_parsers_may_disagree_on_is_not_fetched(url: str) -> None:
    web = text_page("x")
    outcome = await call(web, "web_fetch", url=url)
    assert outcome.text == (
        "Invalid arguments for `web_fetch`: url: expected an http or https URL without white space or user name"
    )
    assert web.requests == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "url: required, but missing"),
        ({"url": URL, "max_length": 0}, "max_length: expected at least 1"),
        ({"url": URL, "start_index": -1}, "start_index: expected at least 0"),
    ],
)
async def test_invalid_arguments_are_reported(arguments: dict[str, Any], problem: str) -> None:
    assert (await call(text_page("x"), "web_fetch", **arguments)).text == (
        f"Invalid arguments for `web_fetch`: {problem}"
    )


async def test_a_fetch_asks_permission_for_its_url_and_a_search_for_that_of_the_service() -> None:
    web = Pages(Page(URL, "text/plain", "x"), [])
    fetch = await prepared(web, "web_fetch", url=f" {URL}\n")
    search = await prepared(web, "web_search", query="tea", domains=["a.example", "b.example"])
    assert isinstance(fetch, Prepared)
    assert isinstance(search, Prepared)
    assert fetch.permission == UrlPermission(intention=f"Fetch {URL}", url=URL)
    assert search.permission == UrlPermission(
        intention="Search the web on a.example, b.example for: tea", url="https://search.example/search"
    )
    assert web.requests == []


async def test_search_results_are_shown_with_their_urls() -> None:
    hits = [Hit("One", "https://a.example", " text "), Hit("Two", "https://b.example", "x" * 3000)]
    web = Pages(Page(URL, ""), hits)
    outcome = await call(web, "web_search", query="tea")
    assert outcome.text == f"One\nhttps://a.example\ntext\n\nTwo\nhttps://b.example\n{'x' * 2000}"
    assert web.requests == [("tea", [])]
    assert (await call(Pages(Page(URL, ""), []), "web_search", query="tea")).text == (
        "Nothing was found. Try other words."
    )
    failed = await call(Pages(Page(URL, ""), WebError("No key.")), "web_search", query="tea")
    assert (failed.text, failed.ok) == ("No key.", False)


def offered(web: Pages | None) -> list[str]:
    tools = Environment(builtin_tools, dict, web=web).builtin_tools()
    return [name for name in tools if name.startswith("web_")]


def test_there_is_no_search_without_a_service() -> None:
    assert offered(None) == []
    assert offered(text_page("x")) == ["web_fetch"]
    assert offered(Pages(Page(URL, ""), [])) == ["web_fetch", "web_search"]
