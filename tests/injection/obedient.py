"""A model that obeys every order in the text it reads, and the web server that a hostile text would name.

An order is the token ``order-ID``. Wherever such a token appears in a request, in a message of any role or in the
definition of a tool, the model makes the calls of that order, one in each answer, and nothing else. The web server
serves pages with orders, and records every other request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.server import JsonObject

MODEL: Final = "obedient"
TOKEN: Final = re.compile(r"order-([a-z0-9]+)")
_HEAD_LIMIT: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Order:
    """What the model does when it reads the token of the order: calls, and then a text for the user.

    Each call is the JSON object of its arguments, with the name of the tool as ``tool``.
    """

    calls: Sequence[JsonObject] = ()
    say: str = "Done."


@dataclass
class Hostile:
    """The model and the web server, on one port of the loopback interface.

    ``orders`` are keyed by the ids in their tokens. ``pages`` are keyed by their paths. ``visits`` are the paths of
    all other requests. ``obeyed`` are the ids of the orders that the model has read, ``requests`` all texts that it
    has read.
    """

    port: int = 0
    orders: dict[str, Order] = field(default_factory=dict[str, Order])
    pages: dict[str, str] = field(default_factory=dict[str, str])
    visits: list[str] = field(default_factory=list[str])
    obeyed: set[str] = field(default_factory=set[str])
    requests: list[str] = field(default_factory=list[str])
    _made: set[str] = field(default_factory=set[str])
    _writers: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def token(self, order: str) -> str:
        """Return the text that makes the model follow an order."""
        return f"order-{order}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ", 2)
                headers = {
                    name.lower(): value.strip() for name, _, value in (row.partition(":") for row in head[1:])
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                if method == "POST" and path.startswith("/v1/"):
                    await self._answer(writer, body)
                elif path in self.pages:
                    await _send(writer, "text/html", self.pages[path].encode())
                else:
                    self.visits.append(path)
                    await _send(writer, "text/plain", b"recorded\n")
        writer.close()

    def close(self) -> None:
        """Close all connections."""
        for writer in self._writers:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, body: bytes) -> None:
        request: JsonObject = json.loads(body)
        texts = [message for message in request["messages"] if message["role"] != "assistant"]
        read = json.dumps([texts, request.get("tools", [])], ensure_ascii=False)
        self.requests.append(read)
        delta: JsonObject = {"role": "assistant", "content": self._text(read)}
        call = self._next_call(read)
        if call is not None:
            call_id, arguments = call
            function = {
                "name": arguments["tool"],
                "arguments": json.dumps({name: value for name, value in arguments.items() if name != "tool"}),
            }
            delta["content"] = None
            delta["tool_calls"] = [{"index": 0, "id": call_id, "type": "function", "function": function}]
        stop = "tool_calls" if call is not None else "stop"
        chunks: list[JsonObject] = [{"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": stop}]
        stream = "".join(
            f"data: {json.dumps({**_CHUNK, 'choices': [{'index': 0, **chunk}]})}\n\n" for chunk in chunks
        )
        await _send(writer, "text/event-stream", f"{stream}data: [DONE]\n\n".encode())

    def _next_call(self, read: str) -> tuple[str, JsonObject] | None:
        """Return the first call of an order in the request that was not made before, with its id."""
        for order in dict.fromkeys(TOKEN.findall(read)):
            for number, call in enumerate(self.orders[order].calls if order in self.orders else ()):
                call_id = f"{order}.{number}"
                self.obeyed.add(order)
                if call_id not in self._made:
                    self._made.add(call_id)
                    return call_id, call
        return None

    def _text(self, read: str) -> str:
        orders = [order for order in TOKEN.findall(read) if order in self.orders]
        self.obeyed.update(orders)
        return self.orders[orders[-1]].say if orders else "Done."


_CHUNK: Final[JsonObject] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}


async def _send(writer: asyncio.StreamWriter, media_type: str, body: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


@contextlib.asynccontextmanager
async def hostile_server() -> AsyncGenerator[Hostile]:
    """Serve on a free port for the duration of the block."""
    hostile = Hostile()
    server = await asyncio.start_server(hostile.serve, "127.0.0.1", 0, limit=_HEAD_LIMIT)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(hostile.close)
        stack.callback(server.close)
        hostile.port = server.sockets[0].getsockname()[1]
        yield hostile


def provider(hostile: Hostile) -> dict[str, Any]:
    """Return the options of a session that uses the model."""
    return {"provider": {"type": "openai", "baseUrl": f"{hostile.url}/v1", "apiKey": "key"}, "model": MODEL}
