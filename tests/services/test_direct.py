"""Fetching pages directly, from a loopback server with well-formed and broken responses."""

from __future__ import annotations

import gzip
import ssl
from pathlib import Path

import anyio
import pytest

from jumpseat.adapters.transport import network
from jumpseat.services.addresses import HostPolicy
from jumpseat.services.direct import DirectFetcher
from jumpseat.tools.web import Page, WebError
from tests.support.certificates import certificate as certificate
from tests.support.host_names import resolve_names
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, Reply, SeenRequest, text_reply

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n rest"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def fetcher(policy: HostPolicy | None = None, *, max_bytes: int = 100_000, timeout_s: float = 30) -> DirectFetcher:
    return DirectFetcher(policy or HostPolicy(allow_private=True), max_bytes=max_bytes, timeout_s=timeout_s)


async def fetched(*replies: Reply, path: str = "/", max_bytes: int = 100_000) -> Page:
    async with ModelServer(*replies) as server:
        return await fetcher(max_bytes=max_bytes).fetch(server.url + path, raw=False)


async def failure(*replies: Reply, max_bytes: int = 100_000, timeout_s: float = 30) -> str:
    async with ModelServer(*replies) as server:
        with pytest.raises(WebError) as caught:
            await fetcher(max_bytes=max_bytes, timeout_s=timeout_s).fetch(server.url, raw=False)
        return str(caught.value).replace(server.url, "URL")


def goes_to(where: str, status: int = 302) -> Reply:
    return Reply(status=status, headers={"Location": where})


async def test_a_page_is_requested_with_the_headers_of_a_program() -> None:
    async with ModelServer(text_reply("<p>hi", content_type="text/html; charset=utf-8")) as server:
        page = await fetcher().fetch(f"{server.url}/a?b=c#d", raw=False)
        assert page == Page(f"{server.url}/a?b=c#d", "text/html", "<p>hi")
        (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/a?b=c")
    assert request.headers["host"] == server.url.removeprefix("http://")
    assert request.headers["user-agent"].startswith("jumpseat/")
    assert not {"cookie", "authorization", "referer"} & request.headers.keys()


async def test_a_name_is_resolved_once_and_the_request_goes_to_that_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ModelServer(text_reply("hello")) as server:
        port = int(server.url.rpartition(":")[2])
        names = {"pages.example": ["127.0.0.1"]}
        looked_up = resolve_names(monkeypatch, names)
        page = await fetcher(HostPolicy(hosts=["pages.example"])).fetch(f"http://pages.example:{port}/x", raw=False)
        assert (page.text, page.url) == ("hello", f"http://pages.example:{port}/x")
        assert server.requests[0].headers["host"] == f"pages.example:{port}"
    # httpcore passes the address, which needs no lookup.
    assert [name for name in looked_up if name != "127.0.0.1"] == ["pages.example"]


async def test_the_next_address_is_tried_if_one_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ModelServer(text_reply("hello")) as server:
        port = int(server.url.rpartition(":")[2])
        resolve_names(
            monkeypatch, {name: [name] for name in ("127.0.0.2", "127.0.0.1")} | {"h": ["127.0.0.2", "127.0.0.1"]}
        )
        assert (await fetcher().fetch(f"http://h:{port}/", raw=False)).text == "hello"


async def test_no_connection_to_a_private_address_is_opened() -> None:
    async with ModelServer(text_reply("secret")) as server:
        with pytest.raises(WebError, match=r"The host '127.0.0.1' is not on the public internet"):
            await fetcher(HostPolicy()).fetch(server.url, raw=False)
        assert server.requests == []


async def test_a_certificate_is_verified_against_the_name_not_the_address(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    async with ModelServer(text_reply("hello"), tls=context) as server:
        port = int(server.url.rpartition(":")[2])
        assert (await fetcher().fetch(server.url, raw=False)).text == "hello"
        resolve_names(monkeypatch, {"127.0.0.1": ["127.0.0.1"], "other.example": ["127.0.0.1"]})
        with pytest.raises(WebError, match=r"Cannot connect to other\.example: .*[Hh]ostname mismatch"):
            await fetcher().fetch(f"https://other.example:{port}/", raw=False)
        assert len(server.requests) == 1


async def test_redirects_on_the_same_site_are_followed() -> None:
    page = await fetched(goes_to("/b?x=1", 301), goes_to("c", 307), text_reply("there"), path="/a/z")
    assert (page.text, page.url.rpartition("/")[2], page.redirected_to) == ("there", "c", None)


async def test_too_many_redirects_are_an_error() -> None:
    assert await failure(*[goes_to("/again")] * 9) == "127.0.0.1 redirects more than 5 times."
    assert (await fetched(*[goes_to("/again")] * 5, text_reply("there"))).text == "there"


async def test_a_redirect_to_another_site_is_reported_and_not_followed() -> None:
    async with ModelServer(text_reply("other")) as other, ModelServer(goes_to(f"{other.url}/x")) as server:
        page = await fetcher().fetch(server.url, raw=False)
        assert page.redirected_to == f"{other.url}/x"
        assert other.requests == []


@pytest.mark.parametrize("where", ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://x", "javascript:alert(1)"])
async def test_redirects_to_other_schemes_are_refused(where: str) -> None:
    assert await failure(goes_to(where)) == f"127.0.0.1 redirects to an invalid URL: {where!r}."


async def test_each_redirect_is_checked_like_the_first_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ModelServer(goes_to("/next"), text_reply("secret")) as server:
        port = int(server.url.rpartition(":")[2])
        names = {"127.0.0.1": ["127.0.0.1"], "turn.example": ["127.0.0.1"]}
        resolve_names(monkeypatch, names)

        class Turning(HostPolicy):
            async def addresses(self, host: str, port: int) -> list[str]:
                found = await super().addresses(host, port)
                # The name now resolves to another address.
                names["turn.example"] = ["169.254.169.254"]
                return found

        policy = Turning(hosts=["127.0.0.1"])
        with pytest.raises(WebError, match=r"turn\.example.* is not on the public internet"):
            await fetcher(policy).fetch(f"http://turn.example:{port}/", raw=False)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("grüße".encode(), "text/plain; charset=utf-8", "grüße"),
        ("grüße".encode("latin-1"), "text/plain; charset=ISO-8859-1", "grüße"),
        ("grüße".encode("latin-1"), "text/plain", "grüße"),
        ("grüße".encode(), "text/plain", "grüße"),
        ("\ufeffgrüße".encode(), "text/plain", "grüße"),
        ("grüße".encode("utf-16"), "text/plain", "grüße"),
        ("日本語".encode("shift_jis"), "text/html; charset='Shift_JIS'", "日本語"),
        (b'<meta charset="euc-kr">' + "한국".encode("euc-kr"), "text/html", '<meta charset="euc-kr">한국'),
        (b"a\xffb", "text/plain; charset=utf-8", "aÿb"),
        (b"fine", "text/plain; charset=zip", "fine"),
        (b"fine", "text/plain; charset=no-such", "fine"),
        (b"fine", "text/plain; charset=mac-nonsense", "fine"),
        (b'{"a": 1}', "application/json", '{"a": 1}'),
        (b"<a/>", "application/atom+xml", "<a/>"),
    ],
)
async def test_texts_are_decoded_in_their_character_set(body: bytes, content_type: str, text: str) -> None:
    page = await fetched(Reply([body], headers={"Content-Type": content_type}))
    assert (page.text, page.media_type) == (text, content_type.partition(";")[0])


async def test_a_response_without_a_type_is_sniffed() -> None:
    assert (await fetched(Reply([b" <!DOCTYPE html><p>x"]))).media_type == "text/html"
    assert (await fetched(Reply([b"plain"]))).media_type == "text/plain"
    assert (await fetched(Reply([PNG]))).picture == PNG
    assert await failure(Reply([b"\x7fELF\0\0\0"])) == (
        "URL is not a text file (unknown type). Download it in the shell if you need it."
    )


async def test_images_are_recognized_by_their_content() -> None:
    page = await fetched(Reply([PNG], headers={"Content-Type": "image/jpeg"}))
    assert (page.media_type, page.picture) == ("image/png", PNG)
    assert "is not a text file (image/x-icon)" in await failure(
        Reply([b"\0\0"], headers={"Content-Type": "image/x-icon"})
    )


@pytest.mark.parametrize("kind", ["application/pdf", "video/mp4", "application/zip", "font/woff2", "x" * 200])
async def test_binaries_are_refused_before_they_are_read(kind: str) -> None:
    reply = Reply([b"x"], headers={"Content-Type": kind}, ending="hang")
    assert await failure(reply) == f"URL is not a text file ({kind[:80]}). Download it in the shell if you need it."


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_compressed_pages_are_decompressed(encoding: str) -> None:
    text = b"hello " * 1000
    body = gzip.compress(text) if encoding == "gzip" else text
    headers = {"Content-Encoding": encoding, "Content-Type": "text/plain"}
    assert (await fetched(Reply([body[:5], body[5:]], headers=headers))).text == text.decode()


async def test_a_response_that_is_too_large_is_not_read_to_its_end() -> None:
    large = "URL is larger than 1000 bytes. Download it in the shell and read parts of the file."
    assert await failure(Reply([b"x" * 600] * 2, ending="hang"), max_bytes=1000) == large
    bomb = gzip.compress(b"\0" * 50_000_000)
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/plain"}
    assert await failure(Reply([bomb], headers=headers), max_bytes=1000) == large


@pytest.mark.parametrize(
    ("headers", "body", "reason"),
    [
        ({"Content-Encoding": "br"}, b"x", "URL has an unsupported Content-Encoding: 'br', expected gzip."),
        ({"Content-Encoding": "gzip"}, b"no gzip", "URL has an invalid body: expected gzip data."),
    ],
)
async def test_an_unknown_content_encoding_is_an_error(headers: dict[str, str], body: bytes, reason: str) -> None:
    assert await failure(Reply([body], headers=headers)) == reason


async def test_error_statuses_and_broken_responses_are_reported() -> None:
    assert await failure(text_reply("gone", status=404)) == "URL returned HTTP 404 Scripted."
    assert await failure(Reply(status=302)) == "URL returned HTTP 302 Scripted."
    assert "connection to" in await failure(Reply([b"x"], headers={"Content-Type": "text/plain"}, ending="cut"))
    assert "connection to" in await failure(Reply(silent=True, ending="cut"))


async def test_a_stalled_response_times_out() -> None:
    slow = Reply([b"x"], headers={"Content-Type": "text/plain"}, ending="hang")
    assert await failure(slow, timeout_s=0.25) == "Fetching URL took longer than 0.25 s."
    assert await failure(Reply(silent=True, ending="hang"), timeout_s=0.25) == (
        "Fetching URL took longer than 0.25 s."
    )


async def test_a_refused_connection_is_reported() -> None:
    async with ModelServer() as server:
        url = server.url
    with pytest.raises(WebError, match=r"Cannot connect to 127\.0\.0\.1: "):
        await fetcher().fetch(url, raw=False)


async def test_a_cancelled_fetch_closes_its_connection() -> None:
    async with ModelServer(Reply([b"x"], ending="hang")) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: fetcher().fetch(server.url, raw=False))
            while not server.requests:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(WAIT_S):
            await server.wait_for_hang_up()


def _never(_host: str) -> bool:
    return False


async def test_a_proxy_is_used_except_for_private_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: SeenRequest) -> Reply:
        return text_reply(f"{request.method} {request.path}")

    async with ModelServer(answer=answer) as proxy:
        monkeypatch.setattr(network, "_is_loopback", _never)
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        found = fetcher(HostPolicy())
        resolve_names(monkeypatch, {"127.0.0.1": ["127.0.0.1"], "wiki.example": ["10.0.0.1"]})
        page = await found.fetch("http://pages.example/x?y", raw=False)
        assert page.text == "GET http://pages.example/x?y"
        for host in ("wiki.example", "intranet", "127.0.0.1"):
            with pytest.raises(WebError, match="is not on the public internet"):
                await found.fetch(f"http://{host}/", raw=False)
        assert len(proxy.requests) == 1
