"""WebSocket clients and the page: the protocol, the hosts and origins that are served, tokens and limits."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import os
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

from jumpseat.network.site import NOT_BUILT, Site
from jumpseat.network.web_socket import WebSocketNewcomer
from jumpseat.rpc.connection import FIRST_MESSAGE_BYTES
from jumpseat.rpc.transport import Framing, Wire
from jumpseat.store.user.page_access import CHALLENGE_S, LOGIN_S, PASS_S, PageAccess
from tests.support.cases import all_cases
from tests.support.limits import WAIT_S
from tests.support.server import JsonObject, RunningServer, calls, request, running_server, scripted

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def web_server(folder: Path, **options: Any) -> AsyncGenerator[tuple[RunningServer, int]]:
    """Run a server with a TCP port and a WebSocket port, and yield the second."""
    args = ("--ws-port", str(options.pop("web_port", 0)), *options.pop("args", ()))
    async with running_server(folder, tcp=True, args=args, **options) as server:
        line = await server.next_line()
        yield server, int(line.removeprefix("jumpseat serves WebSocket clients on port "))


def socket(port: int, **options: Any) -> connect:
    return connect(f"ws://127.0.0.1:{port}/rpc", proxy=None, **options)


async def call(
    client: ClientConnection, method: str, params: JsonObject | None = None, number: int = 1
) -> JsonObject:
    """Send a request and return its response."""
    await client.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}))
    with anyio.fail_after(WAIT_S):
        while True:
            message: JsonObject = json.loads(await client.recv())
            if message.get("id") == number and "method" not in message:
                return message


async def test_requests_before_the_end_of_the_input_get_their_responses(tmp_path: Path) -> None:
    async with web_server(tmp_path) as (_, port), socket(port) as client:
        await call(client, "connect")
        for number in (2, 3):
            await client.send(json.dumps(request(number, "session.create", {})))
        client.transport.write_eof()
        with anyio.fail_after(WAIT_S):
            answered = {json.loads(message).get("id") async for message in client}
        assert {2, 3} <= answered


async def test_a_message_in_many_small_frames_arrives_before_the_next_one(tmp_path: Path) -> None:
    async with web_server(tmp_path) as (_, port), socket(port) as client:
        await call(client, "connect")
        text = "é" * 20_000
        message = json.dumps(request(2, "ping", {"message": text}), ensure_ascii=False)

        async def pieces() -> AsyncGenerator[str]:
            for piece in message:
                yield piece
            yield ""

        await client.send(pieces())
        await client.send(json.dumps(request(3, "ping", {"message": "next"})))
        answers = [json.loads(await client.recv()) for _ in range(2)]
        assert [answer["id"] for answer in answers] == [2, 3]
        assert text in answers[0]["result"]["message"]


async def get(
    port: int, path: str, host: str | None = None, *, method: str = "GET"
) -> tuple[int, dict[str, str], str]:
    """Send a request and return the status, the headers by their lower-case names and the body."""
    head = f"{method} {path} HTTP/1.1\r\nHost: {host or f'127.0.0.1:{port}'}\r\n\r\n"
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(head.encode())
        received = b""
        with anyio.fail_after(WAIT_S):
            try:
                while True:
                    received += await stream.receive()
            except anyio.EndOfStream:
                pass
    start, _, body = received.decode().partition("\r\n\r\n")
    status, *lines = start.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(status.split()[1]), headers, body


async def test_a_web_socket_client_and_a_tcp_client_share_a_session(tmp_path: Path) -> None:
    async with (
        web_server(tmp_path) as (server, port),
        server.connect() as wire,
        socket(port) as client,
    ):
        assert (await call(client, "connect"))["result"]["protocolVersion"] == 3
        session = await wire.create(scripted({"text": "Hello!"}))
        joined = await call(client, "session.resume", {"sessionId": session}, 2)
        assert joined["result"]["sessionId"] == session
        await client.send(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 3,
                    "method": "session.send",
                    "params": {"sessionId": session, "prompt": "Hi"},
                }
            )
        )
        await wire.event("assistant.message", content="Hello!")
        with anyio.fail_after(WAIT_S):
            while json.loads(await client.recv()).get("params", {}).get("event", {}).get("type") != "session.idle":
                pass
        # Large messages, and messages in parts, are as good as others.
        text = "x" * 300_000
        body = json.dumps({"jsonrpc": "2.0", "id": 4, "method": "ping", "params": {"message": text}})
        await client.send([body[:1000], body[1000:]])
        with anyio.fail_after(WAIT_S):
            assert len(json.loads(await client.recv())["result"]["message"]) > len(text)


async def test_pages_of_other_hosts_and_origins_are_refused(tmp_path: Path) -> None:
    async with web_server(tmp_path, args=("--ws-origin", "https://agents.example.org")) as (_, port):
        refused: dict[str, JsonObject] = {
            "another port": {"origin": Origin("http://127.0.0.1:1")},
            "another name of this machine": {"origin": Origin(f"http://localhost:{port}")},
            "another scheme": {"origin": Origin(f"https://127.0.0.1:{port}")},
            "a sandboxed page": {"origin": Origin("null")},
            "a page of the web": {"origin": Origin("https://evil.example")},
        }
        with all_cases() as case:
            for name, options in refused.items():
                with case(name):
                    with pytest.raises(InvalidStatus) as error:
                        await socket(port, **options)
                    assert error.value.response.status_code == 403
        for origin in (f"http://127.0.0.1:{port}", "https://agents.example.org"):
            async with socket(port, origin=Origin(origin)) as client:
                assert "result" in await call(client, "connect")
        # The name of another site that resolves to this machine.
        assert (await get(port, "/", host="evil.example"))[0] == 403
        assert (await get(port, "/about.json", host=f"evil.example:{port}"))[0] == 403
        assert (await get(port, "/about.json", host=f"localhost:{port}"))[0] == 200
        assert (await get(port, "/about.json", host="agents.example.org"))[0] == 200


async def test_the_page_is_read_only_and_tells_strangers_nothing_of_the_server(tmp_path: Path) -> None:
    async with web_server(tmp_path, token="sesame") as (_, port):
        status, headers, body = await get(port, "/about.json")
        assert status == 200
        assert json.loads(body).keys() == {"name", "id"}
        length = headers["content-length"]
        status, headers, body = await get(port, "/about.json", method="HEAD")
        assert (status, headers["content-length"], body) == (200, length, "")
        with all_cases() as case:
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
                for path, wanted in {"/about.json": (405, "GET, HEAD"), "/none": (404, None)}.items():
                    with case(f"{method} {path}"):
                        status, headers, _ = await get(port, path, method=method)
                        assert (status, headers.get("allow")) == wanted
            for method, path in (
                ("PUT", "/acp"),
                ("HEAD", "/acp"),
                ("PUT", "/ahp"),
                ("POST", "/rpc"),
                ("HEAD", "/rpc"),
            ):
                with case(f"{method} {path}"):
                    assert (await get(port, path, method=method))[0] == 405


async def test_a_web_socket_client_needs_the_token_before_anything_else(tmp_path: Path) -> None:
    async with web_server(tmp_path, token="sesame") as (_, port):
        async with socket(port) as client:
            assert "AUTHENTICATION_FAILED" in (await call(client, "session.list"))["error"]["message"]
            assert "AUTHENTICATION_FAILED" in (await call(client, "connect", {"token": "no"}))["error"]["message"]
            assert "result" in await call(client, "connect", {"token": "sesame"})
        # Before that, messages are small, as over TCP.
        async with socket(port) as client:
            await client.send(json.dumps({"method": "connect", "params": {"token": "x" * FIRST_MESSAGE_BYTES}}))
            with pytest.raises(ConnectionClosed), anyio.fail_after(WAIT_S):
                await client.recv()
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * 20_000 + b"\r\n")
            with anyio.fail_after(WAIT_S):
                assert b"431" in await stream.receive()


async def test_a_pass_opens_the_page_once_and_its_login_also_after_a_restart(tmp_path: Path) -> None:
    access = PageAccess(tmp_path / "home")
    async with web_server(tmp_path, token="sesame") as (server, port):
        text = access.add_pass(server.process.pid)
        async with socket(port) as client, socket(port) as other:
            assert "result" in await call(client, "connect", {"token": text})
            assert "error" in await call(other, "connect", {"token": text})
            origin = f"http://127.0.0.1:{port}"
            login = (await call(client, "jumpseat.web.login", {"origin": origin}))["result"]
        elsewhere = access.add_pass(os.getpid())
        async with socket(port) as client:
            assert "error" in await call(client, "connect", {"token": elsewhere})
        assert [(one.pid, one.url) for one in access.servers()] == [
            (server.process.pid, f"http://127.0.0.1:{port}")
        ]
    assert access.servers() == []
    async with web_server(tmp_path, token="sesame", web_port=port) as (_, port), socket(port) as client:
        token = await prove(port, login, origin)
        assert "error" in await call(client, "connect", {"token": token + "x"})
        token = await prove(port, login, origin)
        assert "result" in await call(client, "connect", {"token": token})
        async with socket(port) as other:
            assert "error" in await call(other, "connect", {"token": token})
    async with web_server(tmp_path, token="sesame") as (_, other_port):
        # A program at the old port passes on what the page sends.
        path = f"/login?id={login['id']}&nonce=n"
        for host in (f"127.0.0.1:{port}", f"127.0.0.1:{other_port}"):
            assert (await get(other_port, path, host=host))[0] == 404


async def prove(port: int, login: JsonObject, origin: str) -> str:
    """Return the token of a page, after the server has proved that it knows the login."""

    status, _, body = await get(port, f"/login?id={login['id']}&nonce=n1", host=f"127.0.0.1:{port}")
    assert status == 200
    answer = json.loads(body)
    assert answer["proof"] == page_proof(login["key"], origin, "n1", answer["nonce"], who="server")
    return f"login-{login['id']}.{answer['nonce']}.{page_proof(login['key'], origin, 'n1', answer['nonce'])}"


def page_proof(key: str, origin: str, page_nonce: str, server_nonce: str, *, who: str = "page") -> str:
    text = "\n".join((who, origin, page_nonce, server_nonce))
    digest = hmac.digest(key.encode(), text.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


async def test_passes_and_logins_expire(tmp_path: Path) -> None:
    now = time.time()
    access = PageAccess(tmp_path, lambda: now)
    late, login = access.add_pass(os.getpid()), access.add_login("http://a")
    now += PASS_S + 1
    assert not access.accepts(late)
    challenge = access.challenge(login.id, "n", "http://a")
    assert challenge is not None
    proof = page_proof(login.key, "http://a", "n", challenge.nonce)
    assert not access.accepts(f"login-{login.id}.{challenge.nonce}.")
    challenge = access.challenge(login.id, "n", "http://a")
    assert challenge is not None
    proof = page_proof(login.key, "http://a", "n", challenge.nonce)
    assert access.accepts(f"login-{login.id}.{challenge.nonce}.{proof}")
    assert access.challenge(login.id, "n", "http://b") is None
    now += LOGIN_S - 1
    late_challenge = access.challenge(login.id, "n", "http://a")
    assert late_challenge is not None
    now += CHALLENGE_S + 1
    proof = page_proof(login.key, "http://a", "n", late_challenge.nonce)
    assert not access.accepts(f"login-{login.id}.{late_challenge.nonce}.{proof}")
    assert access.challenge(login.id, "n", "http://a") is None
    assert access.challenge("../../../../etc/passwd", "n", "http://a") is None
    access.add_login("http://a")
    assert len(list((tmp_path / "web").iterdir())) == 1
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "web").iterdir()} == {0o600}


async def test_the_page_runs_no_scripts_of_others_and_is_in_no_frame(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>page</title>")
    (tmp_path / "app-5EQZK2V7.js").write_text("1")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/index.html").write_text("no")
    site = Site(static=tmp_path)
    page = site.get("/?x", "localhost:1")
    policy = page.headers["Content-Security-Policy"]
    assert page.status == 200
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "connect-src 'self' ws://localhost:1;" in policy
    assert page.headers["X-Frame-Options"] == "DENY"
    script = site.get("/app-5EQZK2V7.js", "localhost:1")
    assert script.body == b"1"
    # The name of a script tells its content, and the page the name.
    assert "immutable" in script.headers["Cache-Control"]
    assert page.headers["Cache-Control"] == "no-cache"
    for path in ("/secret/index.html", "/../index.html", "//etc/passwd", "/%2e%2e/x", "/secret", "/none.js"):
        assert site.get(path, "localhost:1").status == 404
    assert site.get("/", "h").body != NOT_BUILT.encode()
    assert Site(static=tmp_path / "none").get("/", "h").body == NOT_BUILT.encode()


async def test_sessions_are_described_and_keep_the_usage_of_their_calls(tmp_path: Path) -> None:
    usage = {"input": 100, "output": 20, "cache_read": 60}
    async with web_server(tmp_path) as (server, port), server.connect() as wire, socket(port) as client:
        await call(client, "connect")
        session = await wire.create(
            scripted(calls("bash", command="true") | {"usage": usage}, {"text": "ok"}), requestPermission=True
        )
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        question = await wire.event("permission.requested")

        async def describe() -> JsonObject:
            response = await call(client, "jumpseat.web.describe", {"sessionIds": [session, "unknown"]}, 7)
            (found,) = response["result"]["sessions"]
            return found

        found = await describe()
        assert (found["state"], found["openQuestions"], found["clients"]) == ("working", 1, 1)
        await wire.call(
            "session.permissions.handlePendingPermissionRequest",
            {"sessionId": session, "requestId": question["data"]["requestId"], "result": {"kind": "approve-once"}},
        )
        await wire.event("session.idle")
        found = await describe()
        assert (found["state"], found["usage"]["scripted"]["usage"]["inputTokens"]) == ("idle", 100)
        response = await call(client, "jumpseat.web.modelCalls", {"sessionId": session}, 8)
        first, last = response["result"]["calls"]
        assert (first["inputTokens"], first["cacheReadTokens"], first["finishReason"]) == (100, 60, "tool_use")
        assert last["purpose"] == "turn"
        many = await call(client, "jumpseat.web.describe", {"sessionIds": ["x"] * 201}, 9)
        assert "at most 200" in many["error"]["message"]


async def test_a_server_that_ends_says_that_it_goes_away(tmp_path: Path) -> None:
    async with web_server(tmp_path) as (server, port), socket(port) as client:
        await call(client, "connect")
        server.signal(signal.SIGTERM)
        with anyio.fail_after(WAIT_S):
            await client.wait_closed()
        assert client.close_code == 1001


class SilentClient:
    """A client of the server that sends nothing. See :class:`jumpseat.network.listener.Newcomer`."""

    admitted = True

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.wire = Wire(lambda _body: None, lambda _error: None, self.ended.set)

    async def wait_until_settled(self) -> None:
        pass

    def abort(self) -> None:
        self.wire.abort()


async def test_a_peer_that_answers_no_pings_is_gone_and_one_that_does_stays() -> None:
    clients: list[SilentClient] = []

    def connected(framing: Framing) -> SilentClient:
        clients.append(SilentClient())
        return clients[-1]

    site = Site()
    server = await asyncio.get_running_loop().create_server(
        lambda: WebSocketNewcomer(site, connected, "a test", ping_s=0.5), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    request = f"GET /rpc HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    request += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    async with socket(port, ping_interval=None) as answering, await anyio.connect_tcp("127.0.0.1", port) as silent:
        await silent.send(request.encode())
        received = b""
        with anyio.fail_after(WAIT_S), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                received += await silent.receive()
        assert received.count(b"\x89\x00") == 2
        assert clients[1].ended.is_set()
        assert not clients[0].ended.is_set()
        assert answering.close_code is None
    server.close()
