"""Connections to a TCP server before their first valid request: HTTP, floods, large messages and other users."""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from jumpseat.network.listener import GREETING_S, Limits, Listener, open_sockets
from jumpseat.network.peer_user import Owner, endpoint, find_owner
from jumpseat.rpc.connection import FIRST_MESSAGE_BYTES, Connection
from tests.support.cases import all_cases, check_each
from tests.support.limits import WAIT_S
from tests.support.server import (
    RunningServer,
    calls,
    frame,
    request,
    running_server,
    scripted,
)

pytestmark = pytest.mark.anyio

ADD_SERVER = frame(request(1, "mcp.config.add", {"name": "evil", "config": {"command": "sh"}}))

FOREIGN = {
    "a form of a web page": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n" + ADD_SERVER,
    "a request line after our header": b"Content-Length: 2\r\nPOST / HTTP/1.1\r\n" + ADD_SERVER,
    "a message in the body of a request": b"POST / HTTP/1.1\r\nContent-Length: 999\r\n\r\n" + ADD_SERVER,
    "a message after a request": b"GET / HTTP/1.1\r\n\r\n" + ADD_SERVER,
    "a header of a browser": b"Content-Length: 999\r\nOrigin: https://evil.example\r\n\r\n" + ADD_SERVER,
    "an upgrade to WebSocket": b"GET /chat HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a method that begins as our header": b"CONTENT-LENGTH / HTTP/1.1\r\n",
    "the start of a request": b"G",
    "the start of a TLS handshake": b"\x16\x03\x01\x02\x00\x01",
    "another shell's input": b"{}\n",
}


async def read_to_end(stream: SocketStream) -> bytes:
    """Return what the server sends until it ends the connection; fails if it does not."""
    received = b""
    # Before the server would end a connection without a request.
    with anyio.fail_after(GREETING_S - 1):
        try:
            while True:
                received += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return received


async def test_bytes_of_another_protocol_close_a_connection_at_once_without_an_answer(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as wire:
        with all_cases() as case:
            for name, data in FOREIGN.items():
                with case(name):
                    async with await anyio.connect_tcp("127.0.0.1", server.port or 0) as stream:
                        await stream.send(data)
                        assert await read_to_end(stream) == b""
        assert (await wire.call("mcp.config.list", {}))["servers"] == {}
        warnings = [line for line in server.stderr.splitlines() if "closed the connection of 127.0.0.1" in line]
        assert len(warnings) == len(FOREIGN)
        assert "evil" not in server.stderr


async def test_a_client_that_sends_an_invalid_header_later_gets_the_reason_and_the_end(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as other:
        with all_cases() as case:
            for header in (
                b"GET / HTTP/1.1\r\n",
                b"Content-Length: x\r\n\r\n",
                b"Content-Length: 268435457\r\n\r\n",
            ):
                with case(header):
                    async with server.connect() as wire:
                        await wire.send(header + ADD_SERVER)
                        with anyio.fail_after(WAIT_S):
                            await wire.ended.wait()
                        assert [message["error"]["code"] for message in wire.messages if "error" in message] == [
                            -32600
                        ]
        assert (await other.call("mcp.config.list", {}))["servers"] == {}


async def test_messages_are_small_before_the_first_valid_request(tmp_path: Path) -> None:
    large = frame(request(2, "ping", {"message": "x" * FIRST_MESSAGE_BYTES}))
    connect = frame(request(1, "connect", {"token": "sesame"}))
    async with running_server(tmp_path, tcp=True, token="sesame") as server:
        for refused in (large, frame(request(1, "connect", {"token": "wrong"})) + large):
            async with server.connect(handshake=False) as wire:
                await wire.send(refused)
                with anyio.fail_after(WAIT_S):
                    await wire.ended.wait()
                assert not [message for message in wire.messages if "result" in message]
        async with server.connect(handshake=False) as wire:
            await wire.send(connect + large)
            assert len((await wire.response(2))["result"]["message"]) > FIRST_MESSAGE_BYTES


async def send_forever(stream: SocketStream, data: bytes) -> None:
    while True:
        await stream.send(data)


async def test_a_client_that_reads_no_refusals_is_closed(tmp_path: Path) -> None:
    """The kernel buffers some megabytes in each direction, the server only a little more.

    A refusal repeats the identifier of its request, and long ones fill these buffers with few requests.
    """
    refused = frame({"jsonrpc": "2.0", "id": "i" * 3000, "method": "ping"}) * 100
    async with running_server(tmp_path, tcp=True, token="sesame") as server:
        before = server.rss_bytes()
        async with await anyio.connect_tcp("127.0.0.1", server.port or 0) as stream:
            with anyio.fail_after(WAIT_S), pytest.raises(anyio.BrokenResourceError):
                await send_forever(stream, refused)
        assert server.rss_bytes() - before < 16 << 20


async def test_a_flood_of_silent_connections_breaks_neither_turns_nor_new_clients(tmp_path: Path) -> None:
    """200 connections, with 120 file handles; a command needs handles of its own."""
    async with (
        running_server(tmp_path, tcp=True, token="sesame", file_handles=120, limit_s=60) as server,
        server.connect(token="sesame") as wire,
        AsyncExitStack() as flood,
    ):
        session = await wire.create(
            scripted(calls("bash", command="echo first"), calls("bash", command="echo second"), {"text": "done"})
        )
        await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        for _ in range(200):
            await flood.enter_async_context(await anyio.connect_tcp("127.0.0.1", server.port or 0))
        events = await wire.prompt(session)
        results = [event["data"]["success"] for event in events if event["type"] == "tool.execution_complete"]
        assert results == [True, True]
        async with server.connect(token="sesame") as late:
            await late.check_alive()


@asynccontextmanager
async def listening(limits: Limits) -> AsyncGenerator[tuple[int, set[Connection]]]:
    """Yield the port of a listener whose connections require a token, and its connections."""
    connections: set[Connection] = set()
    async with anyio.create_task_group() as tasks:

        def connect(peer: str) -> Connection:
            connection = Connection(connections.discard, tasks, str, access=None, peer=peer)
            connections.add(connection)
            return connection

        sockets = await open_sockets(None, 0)
        tasks.start_soon(Listener(connect, lambda: len(connections), limits=limits).run, sockets)
        yield sockets[0].getsockname()[1], connections
        tasks.cancel_scope.cancel()


async def test_a_connection_without_a_valid_request_is_closed_after_a_time() -> None:
    async with listening(Limits(greeting_s=0.25)) as (port, connections):
        for data in (b"", b"Content-Length: 5", frame(request(1, "ping"))[:-1]):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                if data:
                    await stream.send(data)
                assert await read_to_end(stream) == b""
        assert connections == set()


async def test_the_oldest_pending_connection_makes_room_for_a_new_one() -> None:
    async with listening(Limits(pending=2, greeting_s=60)) as (port, connections), AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port)) for _ in range(3)]
        assert await read_to_end(streams[0]) == b""
        for stream in streams[1:]:
            await stream.send(frame(request(1, "ping")))
            assert b"Unhandled method ping" in await stream.receive()
        assert len(connections) == 2


async def test_connections_above_the_limit_are_closed() -> None:
    async with listening(Limits(connections=1, greeting_s=60)) as (port, _), AsyncExitStack() as stack:
        first = await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
        await first.send(frame(request(1, "ping")))
        assert b"Unhandled" in await first.receive()
        second = await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
        assert await read_to_end(second) == b""


async def test_pending_connections_end_with_the_server() -> None:
    async with listening(Limits(greeting_s=60)) as (port, _):
        stream = await anyio.connect_tcp("127.0.0.1", port)
    assert await read_to_end(stream) == b""
    await stream.aclose()


async def test_a_listener_that_ends_while_a_client_connects_logs_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sockets = await open_sockets(None, 0)
    async with anyio.create_task_group() as tasks:

        def connect(peer: str) -> Connection:
            return Connection(lambda _: None, tasks, str, access=None, peer=peer)

        tasks.start_soon(Listener(connect, lambda: 0, limits=Limits()).run, sockets)
        await anyio.wait_all_tasks_blocked()
        with socket.create_connection(sockets[0].getsockname()):
            # In the turn of the event loop that finds the connection, before it is accepted.
            asyncio.get_running_loop().call_soon(tasks.cancel_scope.cancel)
            await anyio.sleep_forever()
    assert caplog.messages == []


async def test_a_port_that_another_program_has_at_one_address_of_loopback_is_not_used() -> None:
    with socket.socket(socket.AF_INET6) as stranger:
        try:
            stranger.bind(("::1", 0))
        except OSError:
            pytest.skip("there is no IPv6")
        stranger.listen()
        with pytest.raises(OSError, match="in use"):
            await open_sockets(None, stranger.getsockname()[1])
    sockets = await open_sockets(None, 0)
    assert len({listening.getsockname()[1] for listening in sockets}) == 1
    for listening in sockets:
        listening.close()


# --- the user at the other end ------------------------------------------------------------------------------------

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def row(local: str, remote: str, uid: int, inode: int) -> str:
    return f"   0: {local} {remote} 01 00000000:00000000 00:00000000 00000000  {uid}  0 {inode} 1 0 20 4 30 -1\n"


@pytest.mark.skipif(sys.byteorder == "big", reason="the rows are those of a little-endian machine")
def test_the_owner_of_a_socket_is_read_from_the_tables_of_the_kernel() -> None:
    four = ("127.0.0.1", 0xA51F), ("127.0.0.1", 0xEA48)
    six = ("::1", 0xA51F, 0, 0), ("::1", 0xEA48, 0, 0)
    mapped = ("::ffff:127.0.0.1", 0xA51F, 0, 0), ("::ffff:127.0.0.1", 0xEA48, 0, 0)
    in_four = "0100007F:A51F", "0100007F:EA48"
    in_six = f"{'0' * 24}01000000:A51F", f"{'0' * 24}01000000:EA48"
    in_mapped = "0000000000000000FFFF00000100007F:A51F", "0000000000000000FFFF00000100007F:EA48"
    cases = {
        "IPv4": (four, row(*in_four, 1000, 7), Owner.THIS_USER),
        "IPv6": (six, row(*in_six, 1000, 7), Owner.THIS_USER),
        "a socket of IPv6 that reaches us over IPv4": (four, row(*in_mapped, 1000, 7), Owner.THIS_USER),
        "an IPv4-mapped address on our side": (mapped, row(*in_four, 1000, 7), Owner.THIS_USER),
        "another user": (four, row(*in_four, 1001, 7), Owner.ANOTHER),
        "a socket that its process has closed": (four, row(*in_four, 1000, 0), Owner.ANOTHER),
        "our own end of the connection": (four, row(in_four[1], in_four[0], 1000, 7), Owner.UNKNOWN),
        "another connection from the same port": (four, row(in_four[0], "0100007F:0050", 1000, 7), Owner.UNKNOWN),
        "no row": (four, "", Owner.UNKNOWN),
        "an unreadable row": (four, "nonsense\n", Owner.UNKNOWN),
    }

    def check(case: tuple[tuple[tuple[str | int, ...], ...], str, Owner]) -> None:
        (peer, local), rows, expected = case
        found = find_owner([HEAD, *rows.splitlines()], endpoint(peer), endpoint(local), 1000)
        assert found is expected

    check_each(cases, check)


@pytest.mark.parametrize("arguments", [("--no-token",), ("--no-auto-update",), ("--server",)], ids=" ".join)
async def test_without_a_token_only_the_same_user_is_served(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Run a client of another user, which requires root."""
    if os.geteuid() != 0:
        pytest.skip("needs root to run a process as another user")
    async with running_server(tmp_path, tcp=True, without_token=arguments) as server:
        for host in ("127.0.0.1", "::1"):
            async with server.connect(host=host) as wire:
                await wire.check_alive()
            assert await talk_as_nobody(server, host) == b""
        assert server.stderr.count("refused a connection of another user") == 2
        assert "listening" not in server.stderr


async def test_another_user_is_served_with_the_token(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to run a process as another user")
    async with running_server(tmp_path, tcp=True, token="sesame") as server:
        assert b"protocolVersion" in await talk_as_nobody(server, "127.0.0.1")


async def talk_as_nobody(server: RunningServer, host: str) -> bytes:
    """Connect and send a handshake as another user; return the first bytes of the answer."""
    handshake = frame(request(1, "connect", {"token": "sesame"})).decode().replace("\r\n", "\\r\\n")
    script = f"exec 3<>/dev/tcp/{host}/{server.port}; printf '{handshake}' >&3; head -c 100 <&3"
    with anyio.fail_after(WAIT_S):
        done = await anyio.run_process(
            ["bash", "-c", script], check=False, cwd="/", stderr=None, user=pwd.getpwnam("nobody").pw_uid
        )
    return done.stdout
