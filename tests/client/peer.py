"""A fake server under the control of the test: it reads the client's messages and sends what the test scripts."""

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
from jumpseat_protocol.envelope import FrameDecoder, encode_frame
from tests.support.limits import WAIT_S

SESSION = "5f0c1c5e-0000-4000-8000-000000000001"


class Peer:
    def __init__(self, send: MemoryObjectSendStream[bytes], receive: MemoryObjectReceiveStream[bytes]) -> None:
        self._send = send
        self._receive = receive
        self._decoder = FrameDecoder()
        self._messages: list[dict[str, Any]] = []

    def send(self, **message: Any) -> None:
        self.send_bytes(encode_frame(orjson.dumps({"jsonrpc": "2.0", **message})))

    def send_bytes(self, data: bytes) -> None:
        self._send.send_nowait(data)

    def emit(self, kind: str, data: dict[str, Any], **envelope: Any) -> None:
        """Send an event of the test's session."""
        event = {"id": f"e-{kind}", "timestamp": "2026-01-01T00:00:00.000Z", "parentId": None, **envelope}
        params = {"sessionId": SESSION, "event": {**event, "type": kind, "data": data}}
        self.send(method="session.event", params=params)

    async def receive(self) -> dict[str, Any]:
        """Return the client's next message; waits at most 5 seconds for it."""
        with anyio.fail_after(WAIT_S):
            while not self._messages:
                for body in self._decoder.feed(await self._receive.receive()):
                    assert isinstance(body, bytes)
                    self._messages.append(orjson.loads(body))
        return self._messages.pop(0)

    async def answer(self, method: str, result: Any) -> dict[str, Any]:
        """Respond to the next message, which must be a request of ``method``, and return its parameters."""
        request = await self.receive()
        assert request["method"] == method, request
        self.send(id=request["id"], result=result)
        return request["params"]

    async def answer_create(self) -> dict[str, Any]:
        opened = {"sessionId": SESSION, "workspacePath": "/w", "startTime": "2026-01-01T00:00:00.000Z"}
        opened |= {"isRemote": False, "mode": "interactive", "capabilities": {"ui": {}}}
        return await self.answer("session.create", opened)

    def disconnect(self) -> None:
        self._send.close()


@asynccontextmanager
async def connected(on_message: MessageTap | None = None) -> AsyncGenerator[tuple[Client, Peer]]:
    """Yield a client that has completed the handshake with a :class:`Peer`."""
    to_client, from_peer = anyio.create_memory_object_stream[bytes](math.inf)
    to_peer, from_client = anyio.create_memory_object_stream[bytes](math.inf)
    with to_client, from_peer, to_peer, from_client:
        peer = Peer(to_client, from_client)
        # The id of the client's first request is known, so its response can be queued beforehand.
        peer.send(id=1, result={"ok": True, "protocolVersion": 3, "version": "1.2.3"})
        async with open_client(StapledObjectStream(to_peer, from_peer), on_message=on_message) as client:
            assert (await peer.receive())["method"] == "connect"
            yield client, peer
