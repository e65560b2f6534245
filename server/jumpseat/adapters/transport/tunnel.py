"""Model traffic through a client: the host makes the HTTP requests, the server says which.

A host that owns the network (a proxy it must go through, a login only it has) registers once per process; from
then on every request to a provider becomes requests to that client, and its answers come back by the request's id.
To httpx this is one more transport, so adapters, time limits and errors stay what they are.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio
import httpx

from jumpseat.agent.client import Client
from jumpseat.errors import ClientCallError, ProviderTransportError
from jumpseat_protocol.callbacks import HttpRequestChunkParams, HttpRequestStartParams
from jumpseat_protocol.llm_inference import HttpResponseChunkParams, HttpResponseStartParams

CANCEL_S: Final = 1.0
"""How long telling the client of a cancelled request may take."""
SESSION: Final = "jumpseat_session"
"""The httpx extension that carries the session a request is made for."""
SOCKET: Final = "jumpseat_socket"
"""The httpx extension of a request that is a message on a WebSocket; its answer is read as an event stream."""
FINISH: Final = "jumpseat_finish"
"""The httpx extension of such an answer: to be called when it is complete, for a socket does not end by itself."""
VEIL: Final = "jumpseat_veil"
"""The httpx extension that carries what hides the secrets of a call from whoever writes it down."""
MAIN_AGENT: Final = "main"
INTERACTION: Final = "conversation-agent"
SWITCHING_PROTOCOLS: Final = 101
OF_A_BODY: Final = frozenset({"content-length", "content-type"})
# The client hands on what it has decoded already, so these would be untrue.
UNTRUE: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


@dataclass(slots=True)
class _Exchange:
    """One request and what has come back of its answer. On a ``socket``, every chunk is a message."""

    socket: bool = False
    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    chunks: list[bytes] = field(default_factory=list[bytes])
    complete: bool = False
    failure: str | None = None
    news: anyio.Event = field(default_factory=anyio.Event)

    def tell(self) -> None:
        self.news.set()
        self.news = anyio.Event()


class Tunnel(httpx.AsyncBaseTransport):
    """Sends every request through ``client``."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._open: dict[str, _Exchange] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request_id = str(uuid.uuid4())
        exchange = self._open[request_id] = _Exchange(socket=bool(request.extensions.get(SOCKET)))
        body = await request.aread()
        try:
            await self._send(request_id, request, body, socket=exchange.socket)
            while exchange.status is None and exchange.failure is None:
                await exchange.news.wait()
            if exchange.status is None:
                raise _failed(exchange.failure)
        except BaseException:
            await self.cancel(request_id, exchange)
            raise
        stream = _Body(self, request_id, exchange)
        if exchange.socket and exchange.status == SWITCHING_PROTOCOLS:
            return httpx.Response(
                200,
                headers={"content-type": "text/event-stream"},
                stream=stream,
                extensions={FINISH: partial(self._hang_up, request_id, exchange)},
            )
        return httpx.Response(exchange.status, headers=exchange.headers, stream=stream)

    async def _send(self, request_id: str, request: httpx.Request, body: bytes, *, socket: bool) -> None:
        headers: dict[str, list[str]] = {}
        for name, value in request.headers.multi_items():
            if not socket or name not in OF_A_BODY:
                headers.setdefault(name, []).append(value)
        headers["accept-encoding"] = ["identity"]
        url = str(request.url)
        session_id = request.extensions.get(SESSION)
        try:
            await self.client.start_http_request(
                HttpRequestStartParams(
                    request_id=request_id,
                    session_id=session_id,
                    agent_id=MAIN_AGENT if session_id is not None else None,
                    interaction_type=INTERACTION if session_id is not None else None,
                    method="GET" if socket else request.method,
                    url=f"ws{url.removeprefix('http')}" if socket else url,
                    headers=headers,
                    transport="websocket" if socket else "http",
                )
            )
            await self.client.send_http_chunk(
                HttpRequestChunkParams(
                    request_id=request_id, data=body.decode("utf-8", "replace"), end=None if socket else True
                )
            )
        except ClientCallError as error:
            raise _failed(str(error)) from None

    async def _hang_up(self, request_id: str, exchange: _Exchange) -> None:
        """Close a socket whose answer is complete."""
        if exchange.complete or exchange.failure is not None:
            return
        exchange.complete = True
        with anyio.move_on_after(CANCEL_S, shield=True), suppress(ClientCallError):
            await self.client.send_http_chunk(HttpRequestChunkParams(request_id=request_id, data="", end=True))

    async def cancel(self, request_id: str, exchange: _Exchange) -> None:
        """Forget a request; the client is told where its answer was still awaited."""
        self._open.pop(request_id, None)
        if exchange.complete or exchange.failure is not None:
            return
        # Who is gone has nothing left to cancel.
        with anyio.move_on_after(CANCEL_S, shield=True), suppress(ClientCallError):
            await self.client.send_http_chunk(
                HttpRequestChunkParams(request_id=request_id, data="", cancel=True, cancel_reason="aborted")
            )

    # --- what the client answers --------------------------------------------------------------------------------

    def response_started(self, params: HttpResponseStartParams) -> bool:
        """Take the head of an answer; ``False`` where nobody waits for it."""
        exchange = self._open.get(params.request_id)
        if exchange is None or exchange.status is not None:
            return False
        exchange.status = params.status
        exchange.headers = [
            (name, value)
            for name, values in params.headers.items()
            if name.lower() not in UNTRUE
            for value in values
        ]
        exchange.tell()
        return True

    def response_chunk(self, params: HttpResponseChunkParams) -> bool:
        """Take a piece of an answer, its end or its failure; ``False`` where nobody waits for it."""
        exchange = self._open.get(params.request_id)
        if exchange is None or exchange.complete or exchange.failure is not None:
            return False
        try:
            data = base64.b64decode(params.data, validate=True) if params.binary else params.data.encode()
        except binascii.Error:
            exchange.failure = "the client sent a chunk that is no base64"
        else:
            if data:
                exchange.chunks.append(_as_event(data) if exchange.socket else data)
        if params.error is not None:
            exchange.failure = params.error.message
        exchange.complete = exchange.complete or params.end
        exchange.tell()
        return True

    def close(self) -> None:
        """The client is gone: what waits for it fails."""
        for exchange in self._open.values():
            exchange.failure = exchange.failure or "the client that makes the requests is gone"
            exchange.tell()


class _Body(httpx.AsyncByteStream):
    def __init__(self, tunnel: Tunnel, request_id: str, exchange: _Exchange) -> None:
        self._tunnel = tunnel
        self._request_id = request_id
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._exchange
        while True:
            while exchange.chunks:
                yield exchange.chunks.pop(0)
            if exchange.failure is not None:
                raise _failed(exchange.failure)
            if exchange.complete:
                return
            await exchange.news.wait()

    async def aclose(self) -> None:
        await self._tunnel.cancel(self._request_id, self._exchange)


def _as_event(message: bytes) -> bytes:
    return b"data: " + message.replace(b"\n", b"\ndata: ") + b"\n\n"


def _failed(reason: str | None) -> ProviderTransportError:
    error = ProviderTransportError(f"the request made by the client failed: {reason or 'no reason given'}")
    # The client has its own ways of trying again, and has failed for good.
    error.retryable = False
    return error
