"""A connection that is cut anywhere in the frames of a conversation: nothing is lost, and nothing comes twice.

``AHP_CUTS`` is the number of cuts, which are spread over the frames of both directions, and are before, in and
behind them in turn. With twice as many as the server sends frames, every frame is reached.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute, SocketStream
from websockets.exceptions import ConnectionClosed

from tests.ahp.client import Client, check_equal, connected, door_server, raw
from tests.support.server import calls

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]

CUTS: Final = int(os.environ.get("AHP_CUTS", "9"))
SCRIPT: Final = {
    "prompts": [
        {
            "when": "work",
            "turns": [
                {"reasoning": "Hm.", **calls("create", path="a/made.txt", file_text="x")},
                calls("bash", "call-2", command="echo one; rm -f nothing"),
                {"deltas": ["Made ", "it"]},
            ]
            * (CUTS + 1),
        }
    ]
}
IN_SESSION: Final = 50
"""The cuts in one session: the terminals of commands that have ended are kept for a while only."""
PLACES: Final = ("before a frame", "in its header", "in its body", "behind it")


class Cut:
    """Passes bytes on until a place in the frames of one direction, where it ends both sides at once."""

    def __init__(self, frame: int, place: str) -> None:
        self.frame = frame
        self.place = place
        self.happened = False
        self.passed = 0

    def allowed(self, data: bytes) -> int:
        """Return how many of the bytes of whole frames are passed on, and count the frames."""
        at = 0
        while at < len(data):
            size, header = frame_size(data[at:])
            if self.frame == 0:
                self.happened = True
                return (
                    at
                    + {PLACES[0]: 0, PLACES[1]: 1, PLACES[2]: header + (size - header) // 2, PLACES[3]: size}[
                        self.place
                    ]
                )
            self.frame -= 1
            self.passed += 1
            at += size
        return at


def frame_size(data: bytes) -> tuple[int, int]:
    """Return the size of the first frame of a WebSocket, and that of its header; zero if more bytes are needed."""
    if len(data) < 2:
        return 0, 0
    kind, masked = data[1] & 127, data[1] & 128
    extra = {126: 2, 127: 8}.get(kind, 0)
    header = 2 + extra + (4 if masked else 0)
    length = int.from_bytes(data[2 : 2 + extra]) if extra else kind
    return (header + length, header) if len(data) >= 2 + extra and len(data) >= header + length else (0, header)


async def pump(source: ByteStream, target: ByteStream, cut: Cut, ended: anyio.Event) -> None:
    """Pass the handshake on, and then whole frames."""
    data, is_open = b"", False
    try:
        while True:
            data += await source.receive()
            if not is_open:
                head, end, rest = data.partition(b"\r\n\r\n")
                if not end:
                    continue
                await target.send(head + end)
                data, is_open = rest, True
            whole = 0
            while (size := frame_size(data[whole:])[0]) > 0:
                whole += size
            frames, data = data[:whole], data[whole:]
            if count := cut.allowed(frames):
                await target.send(frames[:count])
            if cut.happened:
                return
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
    finally:
        ended.set()


@asynccontextmanager
async def cutting(port: int, to_server: Cut, to_client: Cut) -> AsyncGenerator[int]:
    """Run a proxy for one connection to a server, and yield its port."""

    async def serve(client: SocketStream) -> None:
        async with client, await anyio.connect_tcp("127.0.0.1", port) as server, anyio.create_task_group() as tasks:
            ended = anyio.Event()
            tasks.start_soon(pump, client, server, to_server, ended)
            tasks.start_soon(pump, server, client, to_client, ended)
            await ended.wait()
            tasks.cancel_scope.cancel()

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, serve)
        yield listener.extra(SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


async def talk(port: int, session: str, turn: str) -> Client:
    """Join a session, have a turn, and return the client, whose connection has been cut at the latest then."""
    async with raw(port, "a") as client:
        try:
            await client.initialize()
            await client.join(session)
            await finish(client, turn)
        except ConnectionClosed:
            pass
        client.abort()
    return client


async def finish(client: Client, turn: str) -> None:
    """Begin a turn if need be, approve its calls, and wait for its end."""
    while True:
        await client.join_parts()
        chat = client.states[client.chat]
        if (active := chat.get("activeTurn")) is None:
            if any(one["id"] == turn for one in chat["turns"]):
                return
            await client.prompt(turn, "work")
        elif needed := client.states[client.session].get("inputNeeded"):
            call = needed[0]["toolCall"]["toolCallId"]
            sent = await client.dispatch(
                "chat/toolCallConfirmed", turnId=active["id"], toolCallId=call, approved=True
            )
            await client.echo(sent)
        else:
            await client.any_action()


@pytest.mark.timeout(120 + 10 * CUTS)
async def test_cuts_in_the_frames_of_a_conversation(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT, limit_s=100 + 10 * CUTS) as (_, port), connected(port, "b") as b:
        await b.create()
        uncut = Cut(-1, ""), Cut(-1, "")
        async with cutting(port, *uncut) as proxy:
            await talk(proxy, b.session, "t0")
        begun = 0
        for number in range(1, CUTS + 1):
            if number % IN_SESSION == 0:
                await b.create()
                begun = number
            # Not before the client has joined: then it has nothing to come back to.
            firsts, place, turn = (4, 5), PLACES[number // 2 % len(PLACES)], f"t{number}"
            direction, at = number % 2, number // 2 / (CUTS // 2 + 1)
            first, last = firsts[direction], uncut[direction].passed
            cuts = [Cut(-1, ""), Cut(-1, "")]
            cuts[direction] = Cut(first + int(at * (last - first)), place)
            async with cutting(port, *cuts) as proxy:
                a = await talk(proxy, b.session, turn)
            async with raw(port, "a") as again:
                assert await again.reconnect(a) == "replay"
                await finish(again, turn)
                await check_equal(port, again)
                await b.settle()
                assert again.states[b.chat] == b.states[b.chat]
                wanted = [f"t{n}" for n in range(begun, number + 1)]
                assert [one["id"] for one in b.states[b.chat]["turns"]] == wanted
                texts = [part.get("content") for part in b.states[b.chat]["turns"][-1]["responseParts"]]
                assert texts[-1] == "Made it"
        print(f"{CUTS} cuts, {uncut[0].passed} frames to the server, {uncut[1].passed} frames to the client")
