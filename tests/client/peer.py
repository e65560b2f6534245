"""A server played by the test: it reads what the client sends and says what the test wants it to say."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.streams.stapled import StapledObjectStream

from jumpseat_client import Client, MessageTap, open_client
from jumpseat_protocol.framing import FrameDecoder, encode_frame

SESSION = "5f0c1c5e-0000-4000-8000-000000000001"


class Peer:
    def __init__(self, send: MemoryObjectSendStream[bytes], receive: MemoryObjectReceiveStream[bytes]) -> None:
        self._send = send
        self._receive = receive
        self._decoder = FrameDecoder()
        self._messages: list[dict[str, Any]] = []

    def say(self, **message: Any) -> None:
        self.say_bytes(encode_frame(orjson.dumps({"jsonrpc": "2.0", **message})))

    def say_bytes(self, data: bytes) -> None:
        self._send.send_nowait(data)

    def emit(self, kind: str, data: dict[str, Any], **envelope: Any) -> None:
        """An event of the one session."""
        event = {"id": f"e-{kind}", "timestamp": "2026-01-01T00:00:00.000Z", "parentId": None, **envelope}
        params = {"sessionId": SESSION, "event": {**event, "type": kind, "data": data}}
        self.say(method="session.event", params=params)

    async def hear(self) -> dict[str, Any]:
        """The next message of the client, as soon as there is one."""
        with anyio.fail_after(5):
            while not self._messages:
                for body in self._decoder.feed(await self._receive.receive()):
                    assert isinstance(body, bytes)
                    self._messages.append(orjson.loads(body))
        return self._messages.pop(0)

    async def answer(self, method: str, result: Any) -> dict[str, Any]:
        """Answer the next message, which must be a request of ``method``; returns its parameters."""
        request = await self.hear()
        assert request["method"] == method, request
        self.say(id=request["id"], result=result)
        return request["params"]

    async def answer_create(self) -> dict[str, Any]:
        opened = {"sessionId": SESSION, "workspacePath": "/w", "startTime": "2026-01-01T00:00:00.000Z"}
        opened |= {"isRemote": False, "mode": "interactive", "capabilities": {"ui": {}}}
        return await self.answer("session.create", opened)

    def hang_up(self) -> None:
        self._send.close()


@asynccontextmanager
async def connected(on_message: MessageTap | None = None) -> AsyncGenerator[tuple[Client, Peer]]:
    """A client that has shaken hands with a :class:`Peer`."""
    to_client, from_peer = anyio.create_memory_object_stream[bytes](math.inf)
    to_peer, from_client = anyio.create_memory_object_stream[bytes](math.inf)
    with to_client, from_peer, to_peer, from_client:
        peer = Peer(to_client, from_client)
        # The client's first request is known beforehand, so its answer may wait in the stream already.
        peer.say(id=1, result={"ok": True, "protocolVersion": 3, "version": "1.2.3"})
        async with open_client(StapledObjectStream(to_peer, from_peer), on_message=on_message) as client:
            assert (await peer.hear())["method"] == "connect"
            yield client, peer
