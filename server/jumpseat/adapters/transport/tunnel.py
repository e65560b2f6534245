"""Model traffic through a client, which makes the HTTP requests on the server's behalf.

A client that controls the network (for example behind a proxy, or with credentials that only it has) registers once
per process. From then on, every provider request is forwarded to that client, which returns the response under the
request's id. The tunnel is a route, so adapters, time limits and error handling stay the same.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Final

import anyio
from msgspec import Struct, field

from jumpseat.adapters.transport.messages import Headers, Request, Response
from jumpseat.agent.client import Client
from jumpseat.errors import ClientCallError, ProviderTransportError
from jumpseat_protocol.callbacks import HttpRequestChunkParams, HttpRequestStartParams
from jumpseat_protocol.llm_inference import HttpResponseChunkParams, HttpResponseStartParams

CANCEL_TIMEOUT_S: Final = 1.0
"""Time limit for notifying the client of a cancelled or finished request."""
MAIN_AGENT: Final = "main"
INTERACTION: Final = "conversation-agent"
SUB_AGENT_INTERACTION: Final = "conversation-subagent"
SWITCHING_PROTOCOLS: Final = 101
BODY_HEADERS: Final = frozenset({"content-length", "content-type"})
# The client sends the decoded body, to which these headers no longer apply.
DROPPED_RESPONSE_HEADERS: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class _PendingRequest(Struct):
    """A request and the part of its response received so far. With ``socket``, every chunk is a message."""

    socket: bool = False
    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    chunks: list[bytes] = field(default_factory=list[bytes])
    complete: bool = False
    failure: str | None = None
    changed: anyio.Event = field(default_factory=anyio.Event)

    def notify(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()


class Tunnel:
    """A route that forwards every request to ``client``."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._open: dict[str, _PendingRequest] = {}

    async def send(self, request: Request) -> Response:
        request_id = str(uuid.uuid4())
        pending = self._open[request_id] = _PendingRequest(socket=request.socket)
        try:
            await self._forward(request_id, request)
            while pending.status is None and pending.failure is None:
                await pending.changed.wait()
            if pending.status is None:
                raise _failed(pending.failure)
        except BaseException:
            await self.cancel(request_id, pending)
            raise
        body = _Body(self, request_id, pending)
        if pending.socket and pending.status == SWITCHING_PROTOCOLS:
            return Response(
                200,
                Headers([("content-type", "text/event-stream")]),
                body,
                finish=partial(self._finish_socket, request_id, pending),
            )
        return Response(pending.status, Headers(pending.headers), body)

    async def aclose(self) -> None:
        pass

    async def _forward(self, request_id: str, request: Request) -> None:
        socket, agent, session_id = request.socket, request.agent, request.session_id
        headers: dict[str, list[str]] = {}
        for name, value in request.headers.pairs:
            if not socket or name not in BODY_HEADERS:
                headers.setdefault(name, []).append(value)
        headers["accept-encoding"] = ["identity"]
        url = str(request.url)
        main = MAIN_AGENT if session_id is not None else None
        interaction = INTERACTION if session_id is not None else None
        try:
            await self.client.start_http_request(
                HttpRequestStartParams(
                    request_id=request_id,
                    session_id=session_id,
                    agent_id=main if agent is None else agent.id,
                    parent_agent_id=None if agent is None else agent.parent or main,
                    interaction_type=interaction if agent is None else SUB_AGENT_INTERACTION,
                    method="GET" if socket else request.method,
                    url=f"ws{url.removeprefix('http')}" if socket else url,
                    headers=headers,
                    transport="websocket" if socket else "http",
                )
            )
            await self.client.send_http_chunk(
                HttpRequestChunkParams(
                    request_id=request_id,
                    data=request.body.decode("utf-8", "replace"),
                    end=None if socket else True,
                )
            )
        except ClientCallError as error:
            raise _failed(str(error)) from None

    async def _finish_socket(self, request_id: str, pending: _PendingRequest) -> None:
        """Close a socket whose response is complete."""
        if pending.complete or pending.failure is not None:
            return
        pending.complete = True
        with anyio.move_on_after(CANCEL_TIMEOUT_S, shield=True), suppress(ClientCallError):
            await self.client.send_http_chunk(HttpRequestChunkParams(request_id=request_id, data="", end=True))

    async def cancel(self, request_id: str, pending: _PendingRequest) -> None:
        """Drop a request, and tell the client to cancel it if its response is incomplete."""
        self._open.pop(request_id, None)
        if pending.complete or pending.failure is not None:
            return
        # A disconnected client has nothing left to cancel.
        with anyio.move_on_after(CANCEL_TIMEOUT_S, shield=True), suppress(ClientCallError):
            await self.client.send_http_chunk(
                HttpRequestChunkParams(request_id=request_id, data="", cancel=True, cancel_reason="aborted")
            )

    # --- responses from the client ------------------------------------------------------------------------------

    def response_started(self, params: HttpResponseStartParams) -> bool:
        """Take the status and headers of a response; return ``False`` if no request is waiting for them."""
        pending = self._open.get(params.request_id)
        if pending is None or pending.status is not None:
            return False
        pending.status = params.status
        pending.headers = [
            (name, value)
            for name, values in params.headers.items()
            if name.lower() not in DROPPED_RESPONSE_HEADERS
            for value in values
        ]
        pending.notify()
        return True

    def response_chunk(self, params: HttpResponseChunkParams) -> bool:
        """Accept a chunk of a response, its end or its error; return ``False`` if no request is waiting for it."""
        pending = self._open.get(params.request_id)
        if pending is None or pending.complete or pending.failure is not None:
            return False
        try:
            data = base64.b64decode(params.data, validate=True) if params.binary else params.data.encode()
        except binascii.Error:
            pending.failure = "the client sent a chunk that is not valid base64"
        else:
            if data:
                pending.chunks.append(_sse_event(data) if pending.socket else data)
        if params.error is not None:
            pending.failure = params.error.message
        pending.complete = pending.complete or params.end
        pending.notify()
        return True

    def close(self) -> None:
        """Fail all open requests because the client has disconnected."""
        for pending in self._open.values():
            pending.failure = pending.failure or "the client that makes the requests has disconnected"
            pending.notify()


class _Body:
    """The body of a response, yielded as the client sends it."""

    def __init__(self, tunnel: Tunnel, request_id: str, pending: _PendingRequest) -> None:
        self._tunnel = tunnel
        self._request_id = request_id
        self._exchange = pending

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending = self._exchange
        while True:
            while pending.chunks:
                yield pending.chunks.pop(0)
            if pending.failure is not None:
                raise _failed(pending.failure)
            if pending.complete:
                return
            await pending.changed.wait()

    async def aclose(self) -> None:
        await self._tunnel.cancel(self._request_id, self._exchange)


def _sse_event(message: bytes) -> bytes:
    """Frame a WebSocket message as a server-sent event."""
    return b"data: " + message.replace(b"\n", b"\ndata: ") + b"\n\n"


def _failed(reason: str | None) -> ProviderTransportError:
    error = ProviderTransportError(f"the request made by the client failed: {reason or 'no reason given'}")
    # The client retries by itself; an error from it is final.
    error.retryable = False
    return error
