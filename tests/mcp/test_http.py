"""HTTP to MCP servers: proxies, certificates, and the errors that decide about logins."""

from __future__ import annotations

import gzip
import ssl
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import httpx2
import mcp.types as types
import pytest
import trustme
from anyio.abc import SocketAttribute, SocketStream

from jumpseat.mcp.client import McpClient, RefusedError, ServerCallbacks, ServerGoneError, open_client
from jumpseat.mcp.http import http_streams
from jumpseat.mcp.negotiation import negotiate
from jumpseat.mcp.probe import probe
from jumpseat_protocol.mcp_servers import McpServerConfig
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, Reply, SeenRequest, event_stream, json_reply
from tests.support.server import JsonObject

pytestmark = pytest.mark.anyio
VARIABLES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def answer(request: SeenRequest) -> Reply:
    """Answer as a server of the newest revision with one tool."""
    message: JsonObject = request.json if request.method == "POST" else {}
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    results: JsonObject = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **hints},
        "tools/list": {"tools": [{"name": "go", "inputSchema": {"type": "object"}}], **hints},
        "tools/call": {"resultType": "input_required", "requestState": "again"},
    }
    if (result := results.get(message.get("method", ""))) is None:
        return json_reply({}, status=405)
    return json_reply({"jsonrpc": "2.0", "id": message["id"], "result": result})


@asynccontextmanager
async def connected(url: str, tls: ssl.SSLContext | None = None) -> AsyncGenerator[McpClient, None]:
    callbacks = ServerCallbacks(
        notified=lambda _: None, sampling=_refuse, elicitation=_refuse, roots=lambda: list[str]()
    )
    with anyio.fail_after(WAIT_S):
        async with (
            http_streams(McpServerConfig(url=url), httpx2.Auth(), tls) as streams,
            open_client(streams, callbacks, anyio.Event()) as client,
        ):
            await negotiate(client, discover=True)
            yield client


async def tools(url: str, tls: ssl.SSLContext | None = None) -> list[str]:
    """Connect to a server and return the names of its tools."""
    async with connected(url, tls) as client:
        return [tool.name for tool in (await client.list_tools(None, timeout_s=WAIT_S)).tools]


async def _refuse(*_: object) -> None:
    raise AssertionError


def tls_server(authority: trustme.CA, host: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    present(authority, host, context)
    return context


def present(authority: trustme.CA, host: str, context: ssl.SSLContext) -> None:
    """Add a certificate for ``host`` to a context."""
    issued = authority.issue_cert(host)
    with issued.private_key_and_cert_chain_pem.tempfile() as path:
        context.load_cert_chain(path)


def trust(authority: trustme.CA, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))


@asynccontextmanager
async def tunnel(port: int) -> AsyncGenerator[tuple[str, list[str]], None]:
    """Run a proxy whose tunnels all lead to ``port``; yield its URL and a list of the heads of its requests."""
    heads: list[str] = []

    async def copy(source: SocketStream, target: SocketStream) -> None:
        try:
            async for chunk in source:
                await target.send(chunk)
            await target.send_eof()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass

    async def serve(stream: SocketStream) -> None:
        async with stream, await anyio.connect_tcp("127.0.0.1", port) as server:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            heads.append(head.decode())
            await stream.send(b"HTTP/1.1 200 OK\r\n\r\n")
            async with anyio.create_task_group() as directions:
                directions.start_soon(copy, stream, server)
                await copy(server, stream)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}", heads
        tasks.cancel_scope.cancel()


# --- proxies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "http_proxy"])
async def test_a_server_is_reached_through_the_proxy(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    async with ModelServer(answer=answer) as proxy:
        monkeypatch.setenv(variable, proxy.url)
        assert await tools("http://tickets.invalid/mcp") == ["go"]
    assert {request.path for request in proxy.requests} == {"http://tickets.invalid/mcp"}


async def test_a_server_that_is_exempt_is_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ModelServer(answer=answer) as server, ModelServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert await tools(f"{server.url}/mcp") == ["go"]
    assert proxy.requests == []


async def test_a_server_with_a_private_authority_is_reached_through_a_tunnel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: trustme.CA
) -> None:
    trust(authority, tmp_path, monkeypatch)
    async with (
        ModelServer(answer=answer, tls=tls_server(authority, "tickets.invalid")) as server,
        tunnel(int(server.url.rpartition(":")[2])) as (proxy, heads),
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy.replace("http://", "http://me:pass@"))
        assert await tools("https://tickets.invalid/mcp") == ["go"]
    assert heads[0].startswith("CONNECT tickets.invalid:443 ")
    assert "proxy-authorization: basic " in heads[0].lower()
    assert all("proxy-authorization" not in request.headers for request in server.requests)


async def test_a_probe_goes_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ModelServer(json_reply({}, status=401)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        assert (await probe(McpServerConfig(url="http://tickets.invalid/mcp"), None)).status == "needs-auth"


# --- certificates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_a_private_authority_is_trusted_if_the_environment_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: trustme.CA, variable: str
) -> None:
    if variable == "SSL_CERT_FILE":
        trust(authority, tmp_path, monkeypatch)
    else:
        monkeypatch.setenv(variable, str(hashed(authority, tmp_path)))
    async with ModelServer(answer=answer, tls=tls_server(authority, "127.0.0.1")) as server:
        assert await tools(f"{server.url}/mcp") == ["go"]


def hashed(authority: trustme.CA, folder: Path) -> Path:
    """Write the certificate under the name that OpenSSL looks for, the hash of its subject."""
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    command = ["openssl", "x509", "-hash", "-noout", "-in", str(folder / "ca.pem")]
    name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    (folder / "ca.pem").rename(folder / f"{name}.0")
    return folder


async def test_a_private_authority_is_not_trusted_otherwise(authority: trustme.CA) -> None:
    async with ModelServer(answer=answer, tls=tls_server(authority, "127.0.0.1")) as server:
        with pytest.raises(ExceptionGroup) as caught:
            await tools(f"{server.url}/mcp")
    assert "certificate verify failed" in str(leaf(caught.value))
    assert server.requests == []


async def test_a_client_certificate_is_presented(authority: trustme.CA) -> None:
    demanding = tls_server(authority, "127.0.0.1")
    demanding.verify_mode = ssl.CERT_REQUIRED
    pem = authority.cert_pem.bytes().decode()
    demanding.load_verify_locations(cadata=pem)
    context = ssl.create_default_context(cadata=pem)
    async with ModelServer(answer=answer, tls=demanding) as server:
        with pytest.raises(ExceptionGroup):
            await tools(f"{server.url}/mcp", context)
        present(authority, "client.invalid", context)
        assert await tools(f"{server.url}/mcp", context) == ["go"]


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403, 500, 503])
async def test_an_error_keeps_its_status(status: int) -> None:
    async with ModelServer(answer=lambda _: json_reply({}, status=status)) as server:
        with pytest.raises(ExceptionGroup) as caught:
            await tools(f"{server.url}/mcp")
    error = leaf(caught.value)
    assert isinstance(error, httpx2.HTTPStatusError)
    assert error.response.status_code == status


async def test_a_server_that_asks_for_nothing_but_repetition_is_given_up() -> None:
    params = types.CallToolRequestParams(name="go")
    async with ModelServer(answer=answer) as server, connected(f"{server.url}/mcp") as client:
        with pytest.raises(RefusedError, match="asked for input more than 10 times"):
            await client.ask(types.CallToolRequest(params=params), types.CallToolResult, timeout_s=WAIT_S)
    calls = [request.json for request in server.requests if request.headers.get("mcp-method") == "tools/call"]
    assert len(calls) == 10
    assert ["requestState" in call["params"] for call in calls[:2]] == [False, True]


async def test_an_error_of_the_server_is_not_taken_for_the_end_of_the_connection() -> None:
    # Servers made with the TypeScript SDK use the code that the package has for lost connections.
    def busy(request: SeenRequest) -> Reply:
        if request.headers.get("mcp-method") != "tools/list":
            return answer(request)
        error = {"code": types.CONNECTION_CLOSED, "message": "too busy"}
        return json_reply({"jsonrpc": "2.0", "id": request.json["id"], "error": error}, status=400)

    async with ModelServer(answer=busy) as server, connected(f"{server.url}/mcp") as client:
        with pytest.raises(RefusedError, match="too busy"):
            await client.list_tools(None, timeout_s=WAIT_S)


async def test_a_response_that_breaks_off_is_a_lost_connection() -> None:
    def breaking(request: SeenRequest) -> Reply:
        return event_stream() if request.headers.get("mcp-method") == "tools/list" else answer(request)

    async with ModelServer(answer=breaking) as server, connected(f"{server.url}/mcp") as client:
        with pytest.raises(ServerGoneError):
            await client.list_tools(None, timeout_s=WAIT_S)


def reply_to_list(body: bytes, content_type: str, **headers: str) -> Callable[[SeenRequest], Reply]:
    """Return the behaviour of a server that answers the request for its tools with ``body``."""

    def reply(request: SeenRequest) -> Reply:
        if request.headers.get("mcp-method") != "tools/list":
            return answer(request)
        data = body.replace(b"ID", str(request.json["id"]).encode())
        return Reply([gzip.compress(data) if headers else data], headers={"Content-Type": content_type, **headers})

    return reply


LIST = (
    rb'{"jsonrpc": "2.0", "id": ID, "result": {"tools": [{"name": "go", "description": "cut \ud83d", "inputSchema":'
    b' {"type": "object"}}], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}'
)
FORMS = {"application/json": b"%s", "text/event-stream": b"event: message\r\ndata: %s\r\n\r\n"}


@pytest.mark.parametrize("content_type", [*FORMS])
@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "gzip"}], ids=["plain", "compressed"])
async def test_half_an_emoji_loses_no_reply(content_type: str, headers: dict[str, str]) -> None:
    reply = reply_to_list(FORMS[content_type] % LIST, content_type, **headers)
    async with ModelServer(answer=reply) as server, connected(f"{server.url}/mcp") as client:
        listed = await client.list_tools(None, timeout_s=WAIT_S)
    assert [tool.description for tool in listed.tools] == ["cut \ufffd"]


@pytest.mark.parametrize("content_type", [*FORMS])
async def test_a_small_reply_that_expands_to_a_large_one_is_refused(content_type: str) -> None:
    # Empty lines end the messages of a stream, but not of a plain body.
    filler = b" " * 50_000_000 if content_type == "text/event-stream" else b" \n\n" * 20_000_000
    reply = reply_to_list(b"data: " + filler + LIST, content_type, **{"Content-Encoding": "gzip"})
    async with ModelServer(answer=reply) as server:
        with pytest.raises((ServerGoneError, RefusedError, ExceptionGroup)) as caught:
            async with connected(f"{server.url}/mcp") as client:
                await client.list_tools(None, timeout_s=WAIT_S)
    # The package hides the reason where a stream ends.
    error = leaf(caught.value)
    assert isinstance(error, ServerGoneError) or "more than 32 MiB" in str(error)


def leaf(error: BaseException) -> BaseException:
    """Return the first error in a group that is not about the end of the connection."""
    if isinstance(error, BaseExceptionGroup):
        found = [leaf(exception) for exception in cast("BaseExceptionGroup[BaseException]", error).exceptions]
        return next((error for error in found if isinstance(error, httpx2.HTTPError)), found[0])
    return error
