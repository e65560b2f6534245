"""Connections to providers against real sockets: kept, closed by either side, cancelled, in any number."""

from __future__ import annotations

import gc
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
import httpcore2
import pytest
from anyio.abc import SocketAttribute
from anyio.abc import SocketStream as Peer
from anyio.streams.tls import TLSStream

from jumpseat.adapters.adapter import Network
from jumpseat.adapters.transport.connections import MOST_KEPT, Connections
from jumpseat.adapters.transport.failures import FAILURES
from jumpseat.adapters.transport.messages import Limits, Request, Response
from jumpseat.adapters.transport.url import parse_url
from tests.support.certificates import certificate as certificate
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio

LIMITS: Final[Limits] = {"connect": WAIT_S, "read": WAIT_S, "write": WAIT_S, "pool": None}
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


@asynccontextmanager
async def serving(handle: Callable[[Peer], Awaitable[None]]) -> AsyncGenerator[int]:
    """Serve connections with ``handle`` on a port of loopback, and yield the port."""

    async def serve(peer: Peer) -> None:
        async with peer:
            await handle(peer)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1", backlog=512) as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, serve)
        yield listener.extra(SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


async def begin(connections: Connections, url: str, *parts: bytes) -> Response:
    parts = parts or (b"{}",)
    fields = [(b"Host", b"127.0.0.1"), (b"Content-Length", b"%d" % sum(map(len, parts)))]
    return await connections.send(Request("POST", parse_url(url), fields, parts, dict(LIMITS)))


async def post(connections: Connections, port: int, *parts: bytes) -> int:
    response = await begin(connections, f"http://127.0.0.1:{port}/v1", *parts)
    async for _ in response.body:
        pass
    await response.body.aclose()
    return response.status


@pytest.fixture
async def connections() -> AsyncGenerator[Connections]:
    connections = Connections()
    yield connections
    await connections.aclose()


async def request_from(peer: Peer) -> bytes:
    """Read one request with the body ``{}``."""
    received = b""
    while not received.endswith(b"\r\n\r\n{}"):
        received += await peer.receive()
    return received


async def test_a_request_in_parts_arrives_whole(connections: Connections) -> None:
    parts = [b"", b"[", *(bytes([97 + number % 26]) * (number**3) for number in range(80)), b"]", b"\0{}"]
    received = bytearray()

    async def answer(peer: Peer) -> None:
        while not received.endswith(b"\0{}"):
            received.extend(await peer.receive())
        await peer.send(EMPTY)

    with anyio.fail_after(WAIT_S):
        async with serving(answer) as port:
            assert await post(connections, port, *parts) == 204

    assert received.partition(b"\r\n\r\n")[2] == b"".join(parts)


async def test_a_connection_is_used_again_unless_the_provider_has_closed_it(connections: Connections) -> None:
    peers: list[int] = []
    closed = anyio.Event()

    async def answer_twice(peer: Peer) -> None:
        peers.append(1)
        for _ in range(2):
            await request_from(peer)
            await peer.send(EMPTY)
        await peer.aclose()
        closed.set()

    with anyio.fail_after(WAIT_S):
        async with serving(answer_twice) as port:
            assert [await post(connections, port) for _ in range(2)] == [204, 204]
            assert len(peers) == 1
            await closed.wait()
            assert await post(connections, port) == 204
    assert len(peers) == 2


@pytest.mark.parametrize(("end", "is_broken"), [(b"0\r\n\r\n", False), (b"no chunk\r\n", True)])
async def test_chunks_that_arrive_together_are_returned_together(
    connections: Connections, end: bytes, is_broken: bool
) -> None:
    words = [b"word %d " % number for number in range(100)]
    body = b"".join(b"%x\r\n%b\r\n" % (len(word), word) for word in words)
    peers: list[int] = []

    async def answer(peer: Peer) -> None:
        peers.append(1)
        with suppress(anyio.EndOfStream):
            while True:
                await request_from(peer)
                await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + end)

    with anyio.fail_after(WAIT_S):
        async with serving(answer) as port:
            for _ in range(2):
                response = await begin(connections, f"http://127.0.0.1:{port}/")
                pieces: list[bytes] = []
                failures = 0
                try:
                    async for piece in response.body:
                        pieces.append(piece)
                except httpcore2.RemoteProtocolError:
                    failures += 1
                await response.body.aclose()
                assert b"".join(pieces) == b"".join(words)
                assert len(pieces) < len(words)
                assert failures == is_broken
    assert len(peers) == (2 if is_broken else 1)


async def test_more_responses_stream_at_once_than_connections_are_kept(connections: Connections) -> None:
    number = MOST_KEPT + 20
    streaming = 0
    all_streaming = anyio.Event()

    async def answer(peer: Peer) -> None:
        await request_from(peer)
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
        await all_streaming.wait()
        await peer.send(b"0\r\n\r\n")

    async def stream(port: int) -> None:
        nonlocal streaming
        response = await begin(connections, f"http://127.0.0.1:{port}/")
        async for _ in response.body:
            streaming += 1
            if streaming == number:
                all_streaming.set()
        await response.body.aclose()

    with anyio.fail_after(WAIT_S):
        async with serving(answer) as port, anyio.create_task_group() as tasks:
            for _ in range(number):
                tasks.start_soon(stream, port)
    assert streaming == number


async def test_a_refusal_of_a_large_request_is_read_if_the_rest_is_dropped(
    connections: Connections,
) -> None:
    async def refuse(peer: Peer) -> None:
        await peer.receive(16)
        await peer.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
        # As servers do that close without losing their answer: whatever comes is dropped.
        async for _ in peer:
            pass

    with anyio.fail_after(WAIT_S):
        async with serving(refuse) as port:
            assert await post(connections, port, b" " * (32 << 20)) == 413


@contextmanager
def garbage_kept() -> Generator[None]:
    """Prevent the garbage collector from closing forgotten connections."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Held:
    """Counts the connections that a server has accepted and that the client has not closed."""

    def __init__(self) -> None:
        self.open = 0
        self.accepted = 0
        self.changed = anyio.Event()

    async def hold(self, peer: Peer) -> None:
        self.open += 1
        self.accepted += 1
        self._notify()
        with suppress(anyio.BrokenResourceError):
            async for _ in peer:
                pass
        self.open -= 1
        self._notify()

    def _notify(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    async def until_closed(self) -> None:
        while self.open:
            await self.changed.wait()


async def test_connects_that_are_cancelled_while_they_succeed_leave_nothing_open(connections: Connections) -> None:
    held = _Held()

    async def ask(port: int, turns: int) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(begin, connections, f"http://127.0.0.1:{port}/")
            # A connect takes a few turns of the event loop, so it is cancelled in each of its steps.
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    with garbage_kept():
        async with serving(held.hold) as port:
            with anyio.fail_after(WAIT_S):
                for turns in range(240):
                    await ask(port, turns % 12)
                async with await anyio.connect_tcp("127.0.0.1", port):
                    # The server has seen all earlier connections once it has seen this one.
                    pass
                await held.until_closed()
    assert held.accepted


async def test_a_cancelled_tls_handshake_leaves_nothing_open(connections: Connections) -> None:
    held = _Held()
    with garbage_kept():
        async with serving(held.hold) as port, anyio.create_task_group() as tasks:
            with anyio.fail_after(WAIT_S):
                tasks.start_soon(begin, connections, f"https://127.0.0.1:{port}/")
                await held.changed.wait()
                tasks.cancel_scope.cancel()
            with anyio.fail_after(WAIT_S, shield=True):
                await held.until_closed()


async def test_the_certificate_of_a_proxy_and_its_login_are_used(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    received: list[bytes] = []

    async def answer(peer: Peer) -> None:
        stream = await TLSStream.wrap(peer, server_side=True, ssl_context=context, standard_compatible=False)
        received.append(await stream.receive())
        await stream.send(EMPTY)

    async with serving(answer) as port:
        proxied = Connections(Network(proxy=f"https://me:hid%40den@127.0.0.1:{port}", ca_file=str(cert)))
        with anyio.fail_after(WAIT_S):
            response = await begin(proxied, "http://model.invalid/v1")
            await response.body.aclose()
            await proxied.aclose()
    assert response.status == 204
    assert received[0].startswith(b"POST http://model.invalid/v1 HTTP/1.1\r\n")
    # "me:hid@den"
    assert b"Proxy-Authorization: Basic bWU6aGlkQGRlbg==\r\n" in received[0]


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
async def test_a_socks_proxy_is_given_the_name_of_the_host(scheme: str) -> None:
    received: list[bytes] = []

    async def answer(peer: Peer) -> None:
        # RFC 1928: version, methods; then version, command, reserved, kind of address, address, port.
        received.append(await peer.receive())
        await peer.send(b"\x05\x00")
        received.append(await peer.receive())
        await peer.send(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50")
        received.append(await request_from(peer))
        await peer.send(EMPTY)

    async with serving(answer) as port:
        proxied = Connections(Network(proxy=f"{scheme}://127.0.0.1:{port}"))
        with anyio.fail_after(WAIT_S):
            response = await begin(proxied, "http://model.invalid/v1")
            await response.body.aclose()
            await proxied.aclose()
    assert response.status == 204
    assert received[:2] == [b"\x05\x01\x00", b"\x05\x01\x00\x03\x0dmodel.invalid\x00\x50"]


def test_every_exception_of_the_library_has_an_error() -> None:
    exceptions = {
        member
        for member in map(vars(httpcore2).get, httpcore2.__all__)
        if isinstance(member, type) and issubclass(member, Exception)
    }

    # The pool handles the exception for a connection that is in use.
    assert exceptions - {httpcore2.ConnectionNotAvailable} == {
        kind for kind in FAILURES if kind.__module__ == "httpcore2"
    }
