"""All traffic to providers: sending, time limits, statuses and streams, once for every adapter.

:class:`HttpTransport` owns the one connection pool of the process; :class:`HttpModel` binds it to an adapter and an
endpoint and is what the loop calls. Nothing is retried here. Import this module when the first model is needed, not
before: it brings httpx with it.
"""

from __future__ import annotations

import json
import math
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from types import TracebackType
from typing import Any, Final, Protocol, cast

import anyio
import httpx
import orjson

from jumpseat.adapters.adapter import Decoder, Endpoint, Exchange, HttpRequest, Network, Outcome, Timeouts
from jumpseat.adapters.caller import Caller
from jumpseat.adapters.failures import Veil, failure_of_response
from jumpseat.adapters.network import Proxies, tls_context
from jumpseat.adapters.sse import EventSplitter, JsonLinesDecoder, SseDecoder, too_large
from jumpseat.adapters.tunnel import FINISH, SESSION, SOCKET, VEIL
from jumpseat.adapters.wire import as_object, dump_json, one_line, parse_json
from jumpseat.agent.blocks import JsonObject, ReasoningBlock, TextBlock, ToolUseBlock
from jumpseat.agent.model import (
    Capabilities,
    Completed,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from jumpseat.errors import ProviderError, ProviderProtocolError, ProviderRequestError, ProviderTransportError

MAX_ERROR_BYTES: Final = 64 * 1024
"""How much of an error's body is read."""

CLOSE_GRACE_S: Final = 0.1
"""How long a complete answer may take to end its transfer, so that its connection can be used again."""

ENDED_GRACE_S: Final = 5.0
"""How long an adapter may take to tidy up after a call, also one that was cancelled."""

_REUSE_S: Final = 60.0

PROXY: Final = "jumpseat.proxy"
"""Extension of a request: the proxy that it goes through."""


LOOKUP_TIMEOUTS: Final = Timeouts(connect=5.0, first_byte=15.0, idle=15.0, total=30.0)
"""Lists and accounts are quick to answer or not worth waiting for."""


class Detour(Protocol):
    """What all traffic goes through before the network, or in its place."""

    def around(self, route: httpx.AsyncBaseTransport) -> httpx.AsyncBaseTransport:
        """The way to go where ``route`` would be gone."""
        ...

    async def aclose(self) -> None:
        """Finish what it has begun; for the end of the process."""
        ...


class HttpTransport:
    """The connections of the process, made at the first request. Use it in one event loop; close it at the end."""

    def __init__(
        self,
        timeouts: Timeouts | None = None,
        *,
        max_answer_bytes: int = 256 * 1024 * 1024,
        max_body_bytes: int = 64 * 1024 * 1024,
        detour: Detour | None = None,
    ) -> None:
        """``max_answer_bytes`` bounds a stream, ``max_body_bytes`` an answer that has to be held as a whole.

        All requests take the ``detour``, those too that :meth:`use` sends another way than over the network.
        """
        self.timeouts = timeouts or Timeouts()
        self.max_answer_bytes = max_answer_bytes
        self.max_body_bytes = max_body_bytes
        self._client: httpx.AsyncClient | None = None
        self._route: httpx.AsyncBaseTransport | None = None
        self._detour = detour
        self._network: Network | None = None
        self._others: dict[Network, HttpTransport] = {}

    def by(self, network: Network) -> HttpTransport:
        """The connections that are made as ``network`` says. They are closed with this transport."""
        if self._route is not None:
            # Whoever makes the requests makes the connections too.
            return self
        if network not in self._others:
            other = HttpTransport(
                self.timeouts,
                max_answer_bytes=self.max_answer_bytes,
                max_body_bytes=self.max_body_bytes,
                detour=self._detour,
            )
            other._network = network
            self._others[network] = other
        return self._others[network]

    def along(self, route: httpx.AsyncBaseTransport) -> HttpTransport:
        """A transport for one call, which goes by ``route``. There is nothing of it to be closed."""
        other = HttpTransport(
            self.timeouts,
            max_answer_bytes=self.max_answer_bytes,
            max_body_bytes=self.max_body_bytes,
            detour=self._detour,
        )
        other.use(route)
        return other

    def use(self, route: httpx.AsyncBaseTransport | None) -> None:
        """Send all further requests by ``route``; ``None`` means the network again. Those under way go on."""
        self._route = route
        self._client = None

    async def aclose(self) -> None:
        """Close all connections; calls that are under way fail. The next request would open new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        if self._detour is not None:
            await self._detour.aclose()
        others, self._others = self._others, {}
        for other in others.values():
            await other.aclose()

    async def __aenter__(self) -> HttpTransport:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def get_json(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        timeouts: Timeouts | None = None,
    ) -> dict[str, Any] | list[Any]:
        """GET ``url`` and parse the answer; without ``timeouts``, those for look-ups hold.

        Raises:
            ProviderError: no connection, a status that is not 2xx, or an answer that is not JSON; values of
                ``headers`` never appear in its text.
        """
        return await self._json("GET", url, headers, None, timeouts or LOOKUP_TIMEOUTS)

    async def post_json(
        self, url: str, headers: Mapping[str, str], body: JsonObject, *, timeouts: Timeouts | None = None
    ) -> dict[str, Any] | list[Any]:
        """POST ``body`` to ``url`` and parse the answer; limits and errors are those of :meth:`get_json`."""
        content = _as_json(body)
        headers = {"Content-Type": "application/json", **headers}
        return await self._json("POST", url, headers, content, timeouts or LOOKUP_TIMEOUTS)

    async def _json(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, limits: Timeouts
    ) -> dict[str, Any] | list[Any]:
        answer = _Answer(lambda: Veil(headers=[headers]), url, limits)
        async with _opened(answer, self, method, headers, content):
            await answer.check_status()
            value = parse_json(await answer.body(self.max_body_bytes))
            if not isinstance(value, (dict, list)):
                raise ProviderProtocolError(f"expected a JSON object or list from {answer.place}")
            return cast("dict[str, Any] | list[Any]", value)

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None,
        limits: dict[str, float | None],
        session_id: str | None = None,
        *,
        socket: bool = False,
        veil: Callable[[], Veil] | None = None,
    ) -> httpx.Response:
        """Send one request and return when the headers of the answer are there.

        ``limits`` are ``connect``, ``read`` and ``write`` in seconds, kept by reference. Errors are those of httpx.
        ``socket`` asks for a WebSocket, which only a client that makes the requests can give. ``veil`` makes what
        hides the secrets of the call from a detour that writes it down.
        """
        if self._client is None:
            # trust_env is off because _Routes reads the environment, at no cost where TLS is never used.
            route = self._route or _Routes(self._network)
            self._client = httpx.AsyncClient(
                transport=self._detour.around(route) if self._detour else route, trust_env=False
            )
        client = self._client
        request = client.build_request(
            method,
            url,
            # httpx would encode text as ASCII and fail with the value in hand.
            headers=[(name.encode("ascii"), value.encode()) for name, value in headers.items()],
            content=content,
            extensions={"timeout": limits, SESSION: session_id, SOCKET: socket, VEIL: veil},
        )
        return await client.send(request, stream=True, follow_redirects=False)


class HttpModel:
    """An :class:`~jumpseat.agent.model.Model` made of a caller and the shared transport."""

    def __init__(self, caller: Caller, transport: HttpTransport, *, timeouts: Timeouts | None = None) -> None:
        """``timeouts`` are those of this model where they differ from the transport's."""
        self._caller = caller
        self._transport = transport
        self._timeouts = timeouts or transport.timeouts

    @property
    def adapter_name(self) -> str:
        return self._caller.adapter_name

    @property
    def signs_as(self) -> str:
        return self._caller.signs_as

    def capabilities(self, model: str) -> Capabilities:
        return self._caller.capabilities(model)

    @property
    def caller(self) -> Caller:
        """What makes its calls ready."""
        return self._caller

    async def written(self, request: ModelRequest) -> tuple[HttpRequest, Veil]:
        """The call that :meth:`stream` would make of ``request``, which is not made, and what hides its secrets.

        Raises:
            ProviderError: the request cannot be written, or no token could be had for it.
        """
        exchange = await self._begun(request)
        call = exchange.request
        if exchange.ended is not None:
            await exchange.ended(Outcome(None))
        veil = _veil(self._caller.endpoint, request, exchange)
        return (replace(call, body=_as_message(call.body)) if call.socket else call), veil

    async def _begun(self, request: ModelRequest) -> Exchange:
        endpoint = self._caller.endpoint
        try:
            return await self._caller.begin(request)
        except ProviderError as error:
            # The text may be somebody else's.
            raise _veil(endpoint, request, None).over(error) from None
        except (TypeError, ValueError) as error:
            raise _unwritable(endpoint, request, error) from None

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        """Call the model; see :meth:`jumpseat.agent.model.Model.stream`."""
        endpoint = self._caller.endpoint
        exchange = await self._begun(request)
        call = exchange.request
        try:
            content = _as_json(_as_message(call.body) if call.socket else call.body)
        except (TypeError, ValueError) as error:
            raise _unwritable(endpoint, request, error) from None

        def veil() -> Veil:
            return _veil(endpoint, request, exchange)

        answer = _Answer(veil, call.url, exchange.timeouts or self._timeouts)
        transport = self._transport if exchange.network is None else self._transport.by(exchange.network)
        if exchange.instead is not None:
            transport = self._transport.along(exchange.instead.route())
        try:
            async with _opened(
                answer, transport, call.method, call.headers, content, request.session_id, socket=call.socket
            ) as answer:
                await answer.check_status()
                events = _Events(answer, exchange.decoder, request, transport)
                yield events
                if events.complete:
                    # Only now, so that the end of the answer never waits for the end of its transfer.
                    await answer.drain()
        finally:
            if exchange.ended is not None:
                with anyio.move_on_after(ENDED_GRACE_S, shield=True):
                    await exchange.ended(answer.outcome)


@asynccontextmanager
async def _opened(
    answer: _Answer,
    transport: HttpTransport,
    method: str,
    headers: Mapping[str, str],
    content: bytes | None,
    session_id: str | None = None,
    *,
    socket: bool = False,
) -> AsyncGenerator[_Answer]:
    """Send a request and hold its answer; leaving releases the connection, also when cancelled."""
    try:
        await answer.open(transport, method, headers, content, session_id, socket=socket)
        yield answer
    except ProviderError as error:
        # One place takes the secrets out of everything that is raised on the way, whoever raised it.
        answer.veil().over(error)
        raise
    finally:
        await answer.close()


class _Answer:
    """One answer while it comes in: its chunks, under the time limits, with httpx's errors made ours."""

    def __init__(self, veil: Callable[[], Veil], url: str, timeouts: Timeouts) -> None:
        """``veil`` makes what hides the secrets of this call; it is called when something fails."""
        self._url = url
        self.veil = veil
        self.outcome = Outcome(None)
        self._timeouts = timeouts
        self._deadline = math.inf if timeouts.total is None else monotonic() + timeouts.total
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._complete = False

    @property
    def place(self) -> str:
        return _place(self._url)

    @property
    def response(self) -> httpx.Response:
        assert self._response is not None
        return self._response

    @property
    def content_type(self) -> str:
        return self.response.headers.get("content-type", "").lower()

    async def open(
        self,
        transport: HttpTransport,
        method: str,
        headers: Mapping[str, str],
        content: bytes | None,
        session_id: str | None,
        *,
        socket: bool,
    ) -> None:
        timeouts = self._timeouts
        limits = {"connect": timeouts.connect, "write": timeouts.first_byte, "read": None, "pool": None}
        first_byte = _shorter(timeouts.first_byte, timeouts.total)
        try:
            with anyio.fail_after(first_byte):
                self._response = await transport.send(
                    method, self._url, headers, content, limits, session_id, socket=socket, veil=self.veil
                )
        except ProviderError:
            raise
        except TimeoutError:
            raise ProviderTransportError(f"{self.place} sent no answer within {first_byte:g} s") from None
        except Exception as error:
            # The cause is cut off: httpx quotes header values, and a traceback would show them.
            raise self._failure(error) from None
        # From here on httpcore times the silences. A scope of ours around every chunk would do too, but costs
        # more than all the decoding of the chunk.
        limits["read"] = _shorter(timeouts.idle, timeouts.total)
        response = self._response
        self.outcome = Outcome(response.status_code, response.headers)
        # The raw stream spares one layer per chunk; only a compressed answer needs the layer that undoes it.
        encoded = response.headers.get("content-encoding", "identity") != "identity"
        stream = response.aiter_bytes() if encoded else cast("httpx.AsyncByteStream", response.stream)
        self._chunks = aiter(stream)

    async def check_status(self) -> None:
        """Raise the error that a status other than 2xx stands for."""
        response = self.response
        if response.is_success:
            return
        try:
            body = await self.body(MAX_ERROR_BYTES, cut=True)
        except ProviderError:
            # The status says enough when its body cannot be had.
            body = b""
        self.outcome = replace(self.outcome, body=body.decode("utf-8", "replace"))
        if response.is_redirect:
            raise ProviderRequestError(
                f"HTTP {response.status_code}: {self.place} sends elsewhere, which is not followed; "
                "check the base URL",
                status=response.status_code,
            )
        raise failure_of_response(response.status_code, response.headers, body)

    async def body(self, limit: int, *, cut: bool = False) -> bytes:
        """The whole body. One larger than ``limit`` bytes is cut there, or refused."""
        pieces: list[bytes] = []
        size = 0
        while (piece := await self.chunk()) is not None:
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                if cut:
                    break
                raise too_large(limit)
        return b"".join(pieces)[:limit]

    async def chunk(self) -> bytes | None:
        """The next piece as it comes from the network, ``None`` at the end.

        Raises:
            ProviderTransportError: silence beyond a limit, or the connection broke.
        """
        assert self._chunks is not None
        try:
            piece = await anext(self._chunks)
        except StopAsyncIteration:
            self._complete = True
            return None
        except Exception as error:
            raise self._failure(error) from None
        if monotonic() > self._deadline:
            raise ProviderTransportError(f"{self.place} sent no complete answer within {self._timeouts.total:g} s")
        return piece

    async def drain(self) -> None:
        """After a complete answer, take the end of the transfer if it is there, so the connection can be kept."""
        if (finish := self.response.extensions.get(FINISH)) is not None:
            await finish()
            return
        try:
            with anyio.move_on_after(CLOSE_GRACE_S):
                while not self._complete and await self.chunk() is not None:
                    pass
        except ProviderError:
            pass

    async def close(self) -> None:
        """Release the connection, at once even while being cancelled."""
        response, self._response = self._response, None
        if response is not None:
            with anyio.move_on_after(1, shield=True):
                await response.aclose()
        self._chunks = None

    def _peer(self, error: httpx.RequestError) -> str:
        """What was being connected to: of a call by way of a proxy, that."""
        proxy = error.request.extensions.get(PROXY)
        return f"the proxy {_place(proxy)} on the way to {self.place}" if proxy else self.place

    def _failure(self, error: Exception) -> ProviderError:
        """What an exception on the way of a request means."""
        if isinstance(error, ProviderError):
            return error
        text = one_line(self.veil()(str(error)), 300) or type(error).__name__
        causes = list(_causes(error))
        if isinstance(error, httpx.ConnectTimeout):
            return ProviderTransportError(
                f"cannot connect to {self._peer(error)} {_within(self._timeouts.connect)}"
            )
        if isinstance(error, httpx.ReadTimeout):
            limit = _shorter(self._timeouts.idle, self._timeouts.total)
            return ProviderTransportError(f"{self.place} sent nothing more {_within(limit)}")
        if isinstance(error, httpx.TimeoutException):
            return ProviderTransportError(f"{self.place} did not take the request in time")
        if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
            return _final(ProviderTransportError(f"cannot trust the certificate of {self.place}: {text}"))
        if isinstance(error, httpx.ConnectError):
            refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
            reason = "connection refused" if refused else text
            handshake = any(isinstance(cause, ssl.SSLError) for cause in causes)
            peer = self.place if handshake else self._peer(error)
            return ProviderTransportError(f"cannot connect to {peer}: {reason}", refused=refused)
        if isinstance(error, (httpx.RemoteProtocolError, httpx.NetworkError)):
            when = "in the middle of its answer" if self._response is not None else "before it answered"
            return ProviderTransportError(f"{self.place} broke the connection {when}: {text}")
        if isinstance(error, httpx.DecodingError):
            return ProviderProtocolError(f"cannot decompress the answer of {self.place}: {text}")
        if isinstance(error, httpx.ProxyError):
            return ProviderTransportError(f"the proxy does not let us to {self.place}: {text}")
        if isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError)):
            # Not the text: httpx quotes header values here.
            return ProviderRequestError(
                f"the URL or a header for {self.place} is not valid ({type(error).__name__})"
            )
        return _final(ProviderTransportError(f"cannot reach {self.place}: {text}"))


class _Events:
    """Iterates over the events of one answer.

    Each network chunk is decoded as a whole; its events are then handed out one by one without touching the network
    or the scheduler. A failure in the middle of a chunk comes after the events before it.
    """

    def __init__(self, answer: _Answer, decoder: Decoder, request: ModelRequest, transport: HttpTransport) -> None:
        self._answer = answer
        self._decoder = decoder
        self._streaming = request.stream
        self._transport = transport
        self._splitter: EventSplitter | None = None
        self._ready: Iterator[ModelEvent] = iter(())
        self._error: ProviderError | None = None
        self._ended = False
        self._begun = False
        self._bytes = 0
        self.complete = False

    def __aiter__(self) -> _Events:
        return self

    async def __anext__(self) -> ModelEvent:
        while True:
            for event in self._ready:
                return event
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._ready = iter(await self._more())

    async def _more(self) -> list[ModelEvent]:
        """The events of the next chunk; sets what comes after them."""
        events: list[ModelEvent] = []
        try:
            if not self._begun:
                self._begun = True
                await self._begin(events)
            else:
                await self._step(events)
        except ProviderError as error:
            self._error = error
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            # A provider may send anything; what a decoder did not foresee is the provider's fault to the user.
            self._error = ProviderProtocolError(
                f"the answer of {self._answer.place} is not of the expected form ({type(error).__name__})"
            )
        if events and type(events[-1]) is Completed:
            self._ended = self.complete = True
        elif self._ended and self._error is None:
            self._error = ProviderProtocolError(f"{self._answer.place} ended its stream before its answer")
        return events if self._streaming else [event for event in events if type(event) is Completed]

    async def _begin(self, events: list[ModelEvent]) -> None:
        """Find out how the answer is written and take its first chunk, or all of it where it is one JSON text."""
        kind = self._answer.content_type
        if "event-stream" in kind:
            self._splitter = SseDecoder()
        elif "ndjson" in kind or "jsonl" in kind or "json-seq" in kind:
            self._splitter = JsonLinesDecoder()
        elif "json" in kind:
            self._whole(await self._answer.body(self._transport.max_body_bytes), events)
            return
        else:
            # Servers forget or mistake the type; the first bytes tell.
            await self._guess(events)
            return
        await self._step(events)

    async def _guess(self, events: list[ModelEvent]) -> None:
        head = b""
        while not head.lstrip() and (piece := await self._answer.chunk()) is not None:
            head += piece
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if start.startswith((b"data", b"event", b"id:", b"retry:", b":")):
            self._splitter = SseDecoder()
            self._take(self._splitter.feed(head), events)
            return
        body = head + await self._answer.body(self._transport.max_body_bytes)
        if start.startswith((b"{", b"[")):
            self._whole(body, events)
            return
        kind = self._answer.content_type or "no content type"
        text = one_line(body[:16_000].decode("utf-8", "replace"))
        raise ProviderProtocolError(
            f"expected JSON or an event stream from {self._answer.place}, got {kind}: {text!r}"
        )

    async def _step(self, events: list[ModelEvent]) -> None:
        assert self._splitter is not None
        piece = await self._answer.chunk()
        if piece is None:
            self._ended = True
            self._take(self._splitter.finish(), events)
            if not events or type(events[-1]) is not Completed:
                events += self._decoder.finish()
            return
        self._bytes += len(piece)
        if self._bytes > self._transport.max_answer_bytes:
            raise too_large(self._transport.max_answer_bytes)
        self._take(self._splitter.feed(piece), events)

    def _take(self, frames: list[tuple[str | None, str]], events: list[ModelEvent]) -> None:
        feed = self._decoder.feed
        for name, data in frames:
            if said := feed(name, data):
                events += said
                if type(said[-1]) is Completed:
                    return

    def _whole(self, body: bytes, events: list[ModelEvent]) -> None:
        value = parse_json(body)
        if isinstance(value, list):
            # A stream in one JSON text, as Gemini writes it where server-sent events are not to be had.
            self._ended = True
            self._take([(None, dump_json(item)) for item in cast("list[Any]", value)], events)
            if not events or type(events[-1]) is not Completed:
                events += self._decoder.finish()
            return
        if not isinstance(value, dict):
            raise ProviderProtocolError(f"expected a JSON object from {self._answer.place}")
        said = self._decoder.whole(as_object(value))
        if len(said) == 1 and type(said[0]) is Completed:
            events += _deltas(said[0])
        events += said


def _unwritable(endpoint: Endpoint, request: ModelRequest, error: Exception) -> ProviderError:
    """A base URL that is none, a value in a schema that JSON does not know."""
    return _veil(endpoint, request, None).over(ProviderRequestError(f"the request cannot be written: {error}"))


def _as_message(body: JsonObject) -> JsonObject:
    """A request as a message of the Responses API; such answers always come in events."""
    return {"type": "response.create", **{name: value for name, value in body.items() if name != "stream"}}


def _as_json(body: JsonObject) -> bytes:
    try:
        return orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        # Half a surrogate pair out of some tool's output, or an integer beyond 64 bits, must not end a session.
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _deltas(done: Completed) -> Iterator[ModelEvent]:
    """A whole answer as the deltas that a caller who asked for a stream expects."""
    for block in done.message.blocks:
        if isinstance(block, TextBlock) and block.text:
            yield TextDelta(block.text)
        elif isinstance(block, ReasoningBlock) and block.text:
            yield ReasoningDelta(block.text)
        elif isinstance(block, ToolUseBlock):
            yield ToolCallDelta(block.id, block.name, block.arguments_json)


class _Routes(httpx.AsyncBaseTransport):
    """One connection pool per route: direct or through a proxy, with or without TLS.

    Certificates are loaded at the first https address: that takes 20 ms and some memory, which a user of a local
    model need not pay.
    """

    def __init__(self, network: Network | None = None) -> None:
        self._network = network or Network()
        self._proxies = Proxies.from_environment()
        self._tls: ssl.SSLContext | None = None
        self._pools: dict[tuple[str | None, bool], httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.scheme not in ("http", "https"):
            raise httpx.UnsupportedProtocol("expected an http or https URL")
        proxy = self._network.proxy or self._proxies.for_url(request.url)
        if proxy:
            request.extensions[PROXY] = proxy
        secure = request.url.scheme == "https" or (proxy or "").startswith("https:")
        pool = self._pools.get((proxy, secure))
        if pool is None:
            pool = self._pools[proxy, secure] = self._pool(proxy, secure=secure)
        return await pool.handle_async_request(request)

    def _pool(self, proxy: str | None, *, secure: bool) -> httpx.AsyncHTTPTransport:
        if secure and self._tls is None:
            self._tls = tls_context(self._network)
        # A pool without TLS only ever sees http addresses, so there is nothing it could fail to verify.
        verify = self._tls if secure and self._tls is not None else _no_tls()
        return httpx.AsyncHTTPTransport(
            verify=verify,
            trust_env=False,
            # No limit: a hundred sessions stream at once, and waiting for a place would look like a slow model.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=_REUSE_S),
            proxy=_proxy(proxy, verify) if proxy else None,
        )

    async def aclose(self) -> None:
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.aclose()


def _proxy(url: str, tls: ssl.SSLContext) -> httpx.Proxy:
    try:
        return httpx.Proxy(url, ssl_context=tls if url.startswith("https:") else None)
    except (ValueError, httpx.InvalidURL):
        # Without the URL, which may hold a password.
        raise OSError("the environment or the adapter names a proxy that is no http, https or socks5 URL") from None


def _no_tls() -> ssl.SSLContext:
    """A context that trusts nobody: httpx wants one even where no TLS is spoken."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _veil(endpoint: Endpoint, request: ModelRequest, exchange: Exchange | None) -> Veil:
    sent: Mapping[str, str] = exchange.request.headers if exchange is not None else {}
    secrets = exchange.secrets if exchange is not None else ()
    credentials = {
        name: value
        for name, value in sent.items()
        if name.lower() in ("authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key")
    }
    return Veil(
        (endpoint.api_key, endpoint.bearer_token, *secrets), (endpoint.headers, request.headers, credentials)
    )


def _place(url: str) -> str:
    """Scheme, host, port and path of ``url``: no user, no password, no query, for those may be secret."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        return "the provider"
    return str(parsed.copy_with(userinfo=b"", query=None, fragment=None)) if parsed.host else "the provider"


def _shorter(first: float | None, second: float | None) -> float | None:
    """The smaller of two limits, of which ``None`` is no limit."""
    return min((limit for limit in (first, second) if limit is not None), default=None)


def _within(limit: float | None) -> str:
    """For errors. The system has limits too, where we have none."""
    return "in time" if limit is None else f"within {limit:g} s"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """``error`` and everything below it, groups included."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", current).exceptions
        waiting += [current.__cause__, current.__context__]


def _final(error: ProviderTransportError) -> ProviderTransportError:
    """Mark a failure that another attempt would meet again."""
    error.retryable = False
    return error
