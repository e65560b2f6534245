"""The services behind the web tools: the requests to them, and their documented responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumpseat.config import Config, load_config
from jumpseat.errors import ConfigError
from jumpseat.services.web import ConfiguredWeb
from jumpseat.tools.web import Hit, Page, WebError
from tests.support.model_server import ModelServer, Reply, json_reply, text_reply

pytestmark = pytest.mark.anyio

READ = {
    "code": 200,
    "status": 20000,
    "data": {
        "title": "Example Domain",
        "description": "",
        "url": "https://1.1.1.1/page",
        "content": "# Example Domain\n\nFor use in documents.",
        "usage": {"tokens": 42},
    },
    "meta": {"usage": {"tokens": 42}},
}
FOUND = {
    "query": "who is Leo Messi?",
    "answer": None,
    "images": [],
    "results": [
        {
            "title": "Lionel Messi",
            "url": "https://en.example.org/Messi",
            "content": "Lionel Andrés Messi is a footballer.",
            "score": 0.98,
            "raw_content": None,
        },
        {"url": "https://b.example", "content": None, "score": 0.5},
        {"title": "without an address"},
    ],
    "response_time": "1.67",
    "request_id": "123e4567",
}


def web(environ: dict[str, str] | None = None, **config: Any) -> ConfiguredWeb:
    return ConfiguredWeb(Config.model_validate(config), environ or {})


def jina(server: ModelServer, environ: dict[str, str] | None = None, **service: Any) -> ConfiguredWeb:
    return web(
        environ,
        services={"jina": {"base_url": f"{server.url}/", **service}},
        tools={"web_fetch": {"service": "jina", "max_bytes": 2048}},
    )


def tavily(server: ModelServer, environ: dict[str, str] | None = None, **service: Any) -> ConfiguredWeb:
    return web(environ, services={"tavily": {"base_url": server.url, **service}})


async def test_jina_fetches_a_page_as_markdown() -> None:
    async with ModelServer(json_reply(READ)) as server:
        configured = jina(server, {"JINA_API_KEY": "jina-key"})
        page = await configured.fetcher().fetch("https://user:pw@1.1.1.1/page#part", raw=False)
        await configured.aclose()
        (request,) = server.requests
    assert page == Page("https://1.1.1.1/page", "text/markdown", "# Example Domain\n\nFor use in documents.")
    assert (request.method, request.path, request.json) == ("POST", "/", {"url": "https://1.1.1.1/page"})
    sent = {name: request.headers[name] for name in ("accept", "authorization", "x-return-format")}
    assert sent == {
        "accept": "application/json",
        "authorization": "Bearer jina-key",
        "x-return-format": "markdown",
    }


async def test_jina_needs_no_key_and_returns_the_source_on_request() -> None:
    async with ModelServer(json_reply({"code": 200, "data": {"html": "<p>x", "url": "::"}})) as server:
        configured = jina(server)
        page = await configured.fetcher().fetch("https://1.1.1.1/", raw=True)
        await configured.aclose()
        (request,) = server.requests
    assert page == Page("https://1.1.1.1/", "text/html", "<p>x")
    assert request.headers["x-return-format"] == "html"
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (
            json_reply(
                {"code": 422, "name": "ParamValidationError", "readableMessage": "ParamValidationError(url)"}
            ),
            "The service jina failed on https://1.1.1.1/: ParamValidationError(url).",
        ),
        (json_reply({"code": 200, "data": None}), "The service jina failed on https://1.1.1.1/: code 200."),
        (json_reply([1]), "The service jina failed: expected a JSON object."),
        (
            json_reply({"message": "Invalid key jina_5f2c81"}, status=401),
            "The service jina failed: HTTP 401 Unauthorized: ",
        ),
        (text_reply("<html>"), "The service jina failed: "),
        (text_reply("x" * 5000, content_type="application/json"), "The service jina failed: "),
        (Reply([b"{"], ending="cut"), "The service jina failed: "),
    ],
)
async def test_an_error_of_a_service_is_reported_without_its_key(reply: Reply, reason: str) -> None:
    async with ModelServer(reply) as server:
        configured = jina(server, {"JINA_API_KEY": "jina_5f2c81"})
        with pytest.raises(WebError) as caught:
            await configured.fetcher().fetch("https://1.1.1.1/", raw=False)
        await configured.aclose()
    assert str(caught.value).startswith(reason)
    assert "jina_5f2c81" not in str(caught.value)


async def test_private_addresses_are_not_sent_to_a_service() -> None:
    async with ModelServer() as server:
        configured = jina(server)
        for url in (
            "http://127.0.0.1/",
            "http://localhost:8080/x",
            "http://169.254.169.254/latest",
            "http://wiki/",
        ):
            with pytest.raises(WebError, match="is not on the public internet"):
                await configured.fetcher().fetch(url, raw=False)
        assert server.requests == []


async def test_tavily_searches_and_its_results_are_returned() -> None:
    async with ModelServer(json_reply(FOUND), json_reply(FOUND)) as server:
        configured = tavily(server, {"TAVILY_API_KEY": "tvly-key"}, options={"max_results": 3, "topic": "news"})
        assert configured.can_search()
        searcher = configured.searcher()
        assert searcher.url == f"{server.url}/search"
        hits = await searcher.search("who is Leo Messi?", [])
        await searcher.search("x", ["en.example.org"])
        await configured.aclose()
        first, second = server.requests
    assert hits == [
        Hit("Lionel Messi", "https://en.example.org/Messi", "Lionel Andrés Messi is a footballer."),
        Hit("https://b.example", "https://b.example", ""),
    ]
    options = {"search_depth": "advanced", "chunks_per_source": 3, "max_results": 3, "topic": "news"}
    assert (first.method, first.path, first.headers["authorization"]) == ("POST", "/search", "Bearer tvly-key")
    assert first.json == {**options, "query": "who is Leo Messi?"}
    assert second.json == {**options, "query": "x", "include_domains": ["en.example.org"]}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (
            json_reply({"detail": {"error": "Unauthorized: missing or invalid API key."}}, status=401),
            "The service tavily failed: HTTP 401 Unauthorized: Unauthorized: missing or invalid API key.",
        ),
        (
            json_reply({"detail": {"error": "This request exceeds your plan's set usage limit."}}, status=432),
            "The service tavily failed: HTTP 432: This request exceeds your plan's set usage limit.",
        ),
        (json_reply({"results": "none"}), "The service tavily failed: expected an array of results."),
    ],
)
async def test_an_error_of_tavily_is_reported(reply: Reply, reason: str) -> None:
    async with ModelServer(reply) as server:
        configured = tavily(server, {"TAVILY_API_KEY": "tvly-key"})
        with pytest.raises(WebError) as caught:
            await configured.searcher().search("x", [])
        await configured.aclose()
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("entry", "environ", "key"),
    [
        (None, {"TAVILY_API_KEY": "from-variable"}, "from-variable"),
        ("MY_KEY", {"MY_KEY": "from-mine", "TAVILY_API_KEY": "no"}, "from-mine"),
        ("cmd:echo from-command", {"PATH": "/usr/bin:/bin"}, "from-command"),
        ("file:KEYFILE", {}, "from-file"),
        ({"value": "cmd:echo from-table", "cache_s": 60}, {"PATH": "/usr/bin:/bin"}, "from-table"),
    ],
)
async def test_a_key_has_the_same_sources_as_those_of_adapters(
    entry: Any, environ: dict[str, str], key: str, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("from-file\n")
    if entry == "file:KEYFILE":
        entry = f"file:{tmp_path / 'key'}"
    async with ModelServer(json_reply(FOUND)) as server:
        configured = tavily(server, environ, **({} if entry is None else {"api_key": entry}))
        await configured.searcher().search("x", [])
        await configured.aclose()
        assert server.requests[0].headers["authorization"] == f"Bearer {key}"


async def test_a_missing_key_is_named_and_nothing_is_sent() -> None:
    async with ModelServer() as server:
        configured = tavily(server)
        with pytest.raises(WebError, match="the environment variable 'TAVILY_API_KEY' is not set"):
            await configured.searcher().search("x", [])
        assert server.requests == []


def test_a_search_is_available_with_its_key_or_its_table() -> None:
    assert not web().can_search()
    assert not web({"TAVILY_API_KEY": ""}).can_search()
    assert web({"TAVILY_API_KEY": "k"}).can_search()
    assert web(services={"tavily": {}}).can_search()
    assert not web({"JINA_API_KEY": "k"}, services={"jina": {}}).can_search()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[services.google]", "services.google"),
        ("[services.jina]\nkey = 1", "services.jina.key"),
        ("[tools.web_fetch]\nservice = 'curl'", "tools.web_fetch.service"),
        ("[tools.web_fetch]\nmax_bytes = 1", "tools.web_fetch.max_bytes"),
        ("[tools.web_fetch]\ntimeout_s = inf", "tools.web_fetch.timeout_s"),
        ("[tools]\nlint = 1", "lint: expected the table of a declared tool"),
    ],
)
def test_invalid_configurations_of_services_and_tools_are_refused(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match=problem):
        load_config(tmp_path)
