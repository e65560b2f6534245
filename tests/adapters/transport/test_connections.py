"""Connections to providers against real sockets: kept, closed by the provider, full in one direction."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
import pytest
from anyio.abc import SocketAttribute
from anyio.abc import SocketStream as Peer

from jumpseat.adapters.transport.connections import DirectConnections
from jumpseat.adapters.transport.errors import ReadTimeout, RemoteProtocolError
from jumpseat.adapters.transport.messages import Limits, Request
from jumpseat.adapters.transport.socket_stream import SocketStream
from jumpseat.adapters.transport.url import parse_url

pytestmark = pytest.mark.anyio

WAIT_S = 5
LIMITS: Final[Limits] = {"connect": WAIT_S, "read": WAIT_S, "write": WAIT_S, "pool": None}
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


@asynccontextmanager
async def serving(handle: Callable[[Peer], Awaitable[None]]) -> AsyncGenerator[int]:
    """Serve connections with ``handle`` on a port of loopback, and yield the port."""

    async def serve(peer: Peer) -> None:
        async with peer:
            await handle(peer)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, serve)
        yield listener.extra(SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


async def post(connections: DirectConnections, port: int, *parts: bytes) -> int:
    parts = parts or (b"{}",)
    fields = [(b"Host", b"127.0.0.1"), (b"Content-Length", b"%d" % sum(map(len, parts)))]
    request = Request("POST", parse_url(f"http://127.0.0.1:{port}/v1"), fields, parts, dict(LIMITS))
    response = await connections.send(request)
    async for _ in response.body:
        pass
    await response.body.aclose()
    return response.status


@pytest.fixture
async def connections() -> AsyncGenerator[DirectConnections]:
    connections = DirectConnections(None)
    yield connections
    await connections.aclose()


@asynccontextmanager
async def connected(port: int) -> AsyncGenerator[SocketStream]:
    stream = await SocketStream.connect("127.0.0.1", port, WAIT_S)
    yield stream
    stream.close()


async def request_from(peer: Peer) -> bytes:
    """Read one request with the body ``{}``."""
    received = b""
    while not received.endswith(b"\r\n\r\n{}"):
        received += await peer.receive()
    return received


async def test_a_small_request_is_sent_at_once_with_its_head(connections: DirectConnections) -> None:
    first: list[bytes] = []

    async def answer(peer: Peer) -> None:
        first.append(await peer.receive())
        await peer.send(EMPTY)

    async with serving(answer) as port:
        assert await post(connections, port) == 204

    assert first[0].startswith(b"POST /v1 HTTP/1.1\r\n")
    assert first[0].endswith(b"\r\n\r\n{}")


async def test_a_request_in_parts_arrives_whole(connections: DirectConnections) -> None:
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


async def test_a_connection_that_the_provider_has_closed_is_not_used_again(connections: DirectConnections) -> None:
    peers: list[int] = []
    closed = anyio.Event()

    async def answer_once(peer: Peer) -> None:
        await request_from(peer)
        peers.append(1)
        await peer.send(EMPTY)
        await peer.aclose()
        closed.set()

    async with serving(answer_once) as port:
        assert await post(connections, port) == 204
        await closed.wait()
        assert await post(connections, port) == 204

    assert len(peers) == 2


@pytest.mark.parametrize(
    "head", [b"Content-Length: 2\r\n\r\nok", b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"]
)
async def test_bytes_after_a_response_are_not_taken_for_the_next_one(
    connections: DirectConnections, head: bytes
) -> None:
    async def answer(peer: Peer) -> None:
        await request_from(peer)
        await peer.send(b"HTTP/1.1 200 OK\r\n" + head + b"HTTP/1.1 500 Internal Server Error\r\n\r\n")
        await anyio.sleep_forever()

    async with serving(answer) as port:
        assert [await post(connections, port) for _ in range(2)] == [200, 200]


async def test_endless_informational_responses_end_the_request(connections: DirectConnections) -> None:
    async def answer(peer: Peer) -> None:
        await request_from(peer)
        with suppress(anyio.BrokenResourceError):
            while True:
                await peer.send(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)

    async with serving(answer) as port:
        with anyio.fail_after(WAIT_S), pytest.raises(RemoteProtocolError, match="informational"):
            await post(connections, port)


async def test_a_refusal_of_a_large_request_is_read_although_the_request_is_not(
    connections: DirectConnections,
) -> None:
    async def refuse(peer: Peer) -> None:
        await peer.receive(16)
        await peer.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
        await anyio.sleep_forever()

    with anyio.fail_after(WAIT_S):
        async with serving(refuse) as port:
            assert await post(connections, port, b" " * (32 << 20)) == 413


async def test_a_peer_is_not_read_faster_than_its_bytes_are_used() -> None:
    sent = 0

    async def flood(peer: Peer) -> None:
        nonlocal sent
        while True:
            await peer.send(b"x" * (1 << 20))
            sent += 1

    with anyio.fail_after(WAIT_S):
        async with serving(flood) as port, connected(port) as stream:
            taken = 0
            while taken < 64 << 20:
                taken += len(await stream.read(WAIT_S))
                # What neither side has taken fits into the buffers of the two sockets.
                assert (sent << 20) - taken < 16 << 20


async def test_the_end_of_a_peer_in_the_middle_of_data_comes_after_the_data() -> None:
    async def send_a_part(peer: Peer) -> None:
        await peer.send(b"part")

    async with serving(send_a_part) as port, connected(port) as stream:
        assert [await stream.read(WAIT_S) for _ in range(2)] == [b"part", b""]


async def test_a_read_without_data_ends_at_its_limit() -> None:
    async with serving(lambda _peer: anyio.sleep_forever()) as port, connected(port) as stream:
        with pytest.raises(ReadTimeout):
            await stream.read(0.01)
