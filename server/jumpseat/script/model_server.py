"""Serve a scripted model over HTTP on loopback, with the API that most servers can call: OpenAI chat completions.

The model plays a script of :mod:`jumpseat.adapters.scripted`. The endpoints are ``POST .../chat/completions``,
streamed or not, and ``GET .../models``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias

import h11

from jumpseat.adapters.scripted import Script, ScriptedModel
from jumpseat.agent.model import ModelEvent, ModelRequest
from jumpseat.errors import JumpseatError, ProviderError
from jumpseat.script.chat_wire import ChunkEncoder, complete_response, read_request

JsonObject: TypeAlias = dict[str, Any]

MODEL: Final = "scripted"
"""The listed model; requests may name any other."""
_MAX_BODY_BYTES: Final = 64 * 1024 * 1024


class Answering(Protocol):
    """A model of another kind."""

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]: ...


class ModelServer:
    """A scripted model's HTTP server, an async context manager; or that of a model of another kind.

    ``url`` is the base URL for a provider. ``requests`` are the received bodies, in order.
    """

    def __init__(self, model: Script | Answering) -> None:
        self.url = ""
        self.requests: list[JsonObject] = []
        self._model: Answering = ScriptedModel(model) if isinstance(model, Script) else model
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

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
        if method != "POST" or not path.endswith("/chat/completions"):
            await connection.send_error(404, f"unknown endpoint {method} {path}")
            return
        try:
            fields = json.loads(body)
            request = read_request(fields)
        except (ValueError, TypeError):
            await connection.send_error(400, "expected a JSON object with an array of messages")
            return
        self.requests.append(fields)
        try:
            async with self._model.stream(request) as stream:
                if request.stream:
                    await _send_stream(connection, stream, request.model)
                else:
                    await connection.send_json(complete_response([event async for event in stream], request.model))
        except ProviderError as error:
            if not connection.begun:
                await connection.send_error(error.status or 502, str(error), error.code, error.retry_after_s)
        except JumpseatError as error:
            await connection.send_error(400, str(error))


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

    async def send_error(
        self, status: int, message: str, code: str | None = None, retry_after_s: float | None = None
    ) -> None:
        error = {"message": message, "type": "scripted", "code": code}
        await self.send_json({"error": error}, status, retry_after_s)

    async def begin_stream(self) -> None:
        await self._send(h11.Response(status_code=200, headers=[("Content-Type", "text/event-stream")]))

    async def send_event(self, data: str) -> None:
        await self._send(h11.Data(data=f"data: {data}\n\n".encode()))

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


async def _send_stream(connection: _Connection, stream: AsyncIterator[ModelEvent], model: str) -> None:
    chunks = ChunkEncoder(model)
    # The status is sent with the first event: until then, the script may still answer with an error.
    async for event in stream:
        if not connection.begun:
            await connection.begin_stream()
        for chunk in chunks.encode(event):
            await connection.send_event(json.dumps(chunk))
    await connection.send_event("[DONE]")
    await connection.end_stream()
