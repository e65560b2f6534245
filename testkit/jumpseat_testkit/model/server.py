"""Serve a scripted model over HTTP on loopback, with the APIs that agents call.

The endpoints are ``POST .../chat/completions``, ``POST .../responses`` and ``POST .../messages``, streamed or not,
and ``GET .../models``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import h11

from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.model.anthropic_wire import AnthropicWire
from jumpseat_testkit.model.calls import Answer, Answering, ModelFailureError, Piece
from jumpseat_testkit.model.chat_wire import ChatWire
from jumpseat_testkit.model.responses_wire import ResponsesWire
from jumpseat_testkit.model.script import Script
from jumpseat_testkit.model.scripted import ScriptedAnswers
from jumpseat_testkit.model.wires import JsonObject, ServerEvent, Wire

MODEL: Final = "scripted"
"""The listed model; requests may name any other."""
_MAX_BODY_BYTES: Final = 64 * 1024 * 1024
_WIRES: Final[Mapping[str, type[Wire]]] = {
    "/chat/completions": ChatWire,
    "/responses": ResponsesWire,
    "/messages": AnthropicWire,
}


class ModelServer:
    """A scripted model's HTTP server, an async context manager; or that of a model of another kind.

    ``url`` is the base URL for an OpenAI-compatible provider, ``anthropic_url`` that for the SDK of Anthropic,
    which adds ``/v1`` itself. ``requests`` are the received bodies, in order.
    """

    def __init__(self, model: Script | Answering) -> None:
        self.url = ""
        self.requests: list[JsonObject] = []
        self._model: Answering = ScriptedAnswers(model) if isinstance(model, Script) else model
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def anthropic_url(self) -> str:
        return self.url.removesuffix("/v1")

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = _Connection(reader, writer)
        try:
            while (request := await connection.request()) is not None:
                await self._answer(connection, *request)
                if not connection.next_cycle():
                    return
        except (ConnectionError, asyncio.IncompleteReadError, h11.ProtocolError):
            pass
        except asyncio.CancelledError:
            # Cancelled only when the server stops; asyncio.streams would log the error.
            pass
        finally:
            self._tasks.discard(task)
            with suppress(ConnectionError):
                writer.close()

    async def _answer(self, connection: _Connection, method: str, path: str, body: bytes) -> None:
        if method == "GET" and path.endswith("/models"):
            await connection.send_json({"object": "list", "data": [{"id": MODEL, "object": "model"}]})
            return
        kind = next((wire for end, wire in _WIRES.items() if path.endswith(end)), None)
        if method != "POST" or kind is None:
            failure = ChatWire(MODEL).failure(f"unknown endpoint {method} {path}", None)
            await connection.send_json(failure, 404)
            return
        try:
            fields = as_object(json.loads(body))
            call = kind.read(fields)
        except ValueError as error:
            problem = f"expected a JSON object with messages: {error}"
            await connection.send_json(kind(MODEL).failure(problem, None), 400)
            return
        self.requests.append(fields)
        wire = kind(call.model)
        try:
            async with self._model.stream(call) as pieces:
                if call.stream:
                    await _send_stream(connection, pieces, wire)
                else:
                    await connection.send_json(wire.whole(await _whole(pieces)))
        except ModelFailureError as error:
            if error.status is None or connection.begun:
                # The connection breaks: without a status, the script wants it so.
                raise ConnectionAbortedError from None
            await connection.send_json(wire.failure(str(error), error.code), error.status, error.retry_after_s)


class _Connection:
    """An HTTP connection, serving one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.begun = False
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)

    async def request(self) -> tuple[str, str, bytes] | None:
        """Read the next request; return its method, path and body, or ``None`` at the end of the connection."""
        head: h11.Request | None = None
        body = b""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(65536))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
                if len(body) > _MAX_BODY_BYTES:
                    return None
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return head.method.decode(), head.target.decode().partition("?")[0], body
            else:
                return None

    async def send_json(self, value: Any, status: int = 200, retry_after_s: float | None = None) -> None:
        data = json.dumps(value).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(data)))]
        if retry_after_s is not None:
            headers.append(("Retry-After", f"{retry_after_s:g}"))
        await self._send(h11.Response(status_code=status, headers=headers), h11.Data(data=data), h11.EndOfMessage())

    async def begin_stream(self) -> None:
        await self._send(h11.Response(status_code=200, headers=[("Content-Type", "text/event-stream")]))

    async def send_event(self, event: ServerEvent) -> None:
        name, data = event
        head = f"event: {name}\n" if name is not None else ""
        text = data if isinstance(data, str) else json.dumps(data)
        await self._send(h11.Data(data=f"{head}data: {text}\n\n".encode()))

    async def end_stream(self) -> None:
        await self._send(h11.EndOfMessage())

    async def _send(self, *events: h11.Event) -> None:
        self.begun = True
        for event in events:
            self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()

    def next_cycle(self) -> bool:
        """Prepare for the next request; return whether the connection is kept alive."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        self.begun = False
        return True


async def _send_stream(connection: _Connection, pieces: AsyncIterator[Piece], wire: Wire) -> None:
    # The status is sent with the first piece: until then, the script may still answer with an error.
    async for piece in pieces:
        if not connection.begun:
            await connection.begin_stream()
        for event in wire.encode(piece):
            await connection.send_event(event)
    await connection.end_stream()


async def _whole(pieces: AsyncIterator[Piece]) -> Answer:
    last: Piece | None = None
    async for piece in pieces:
        last = piece
    assert isinstance(last, Answer)
    return last
