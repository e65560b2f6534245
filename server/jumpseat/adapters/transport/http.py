"""HTTP traffic to providers, shared by all adapters.

:class:`HttpTransport` owns the connection pools of the process. :class:`HttpModel` binds the transport to a caller
(an adapter and an endpoint); the agent loop calls models through it. Nothing is retried here. Import this module
only when the first model is needed.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Protocol, cast

import anyio
from msgspec.structs import replace

from jumpseat.adapters.adapter import Caller, Endpoint, HttpRequest, Network, Outcome, PreparedCall, Timeouts
from jumpseat.adapters.failures import Redactor
from jumpseat.adapters.key_forms import forms_of, is_dummy
from jumpseat.adapters.transport.http_events import Events
from jumpseat.adapters.transport.http_response import ProviderResponse, open_response
from jumpseat.adapters.transport.messages import Limits, Request, Response, Route
from jumpseat.adapters.transport.url import Url, parse_url
from jumpseat.adapters.wire import parse_json
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.encoded_history import encode_in_parts, plain
from jumpseat.agent.model import Capabilities, ModelEvent, ModelRequest, SubAgentRef
from jumpseat.agent.secrets import MaskedEvents, Secrets
from jumpseat.declared.values import problem_in_json
from jumpseat.errors import ProviderError, ProviderProtocolError, ProviderRequestError, UnwritableBodyError
from jumpseat.parsing.decompression import ACCEPT_ENCODING
from jumpseat_protocol.version import __version__

CREDENTIALS: Final = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key"})
"""The names of headers that carry keys, in lower case."""

ENDED_GRACE_S: Final = 5.0
"""Time limit for ``PreparedCall.ended`` after a call, including a cancelled one."""

_DEFAULT_HEADERS: Final = (
    ("accept", b"Accept", b"*/*"),
    ("accept-encoding", b"Accept-Encoding", ACCEPT_ENCODING.encode()),
    ("connection", b"Connection", b"keep-alive"),
    ("user-agent", b"User-Agent", f"jumpseat/{__version__}".encode()),
)

LOOKUP_TIMEOUTS: Final = Timeouts(connect=5.0, first_byte=15.0, idle=15.0, total=30.0)
"""Limits for model lists and account look-ups, which either answer quickly or are not worth waiting for."""


class TransportMiddleware(Protocol):
    """Intercepts all provider traffic, either in front of the network or in place of it."""

    def wrap(self, route: Route) -> Route:
        """Return the transport to use in place of ``route``."""
        ...

    async def aclose(self) -> None:
        """Finish pending work when the process ends."""
        ...


class HttpTransport:
    """The connections of the process, opened at the first request.

    Use it in one event loop and close it at the end.
    """

    def __init__(
        self,
        timeouts: Timeouts | None = None,
        *,
        max_answer_bytes: int = 256 * 1024 * 1024,
        max_body_bytes: int = 64 * 1024 * 1024,
        middleware: TransportMiddleware | None = None,
    ) -> None:
        """Configure the transport without opening connections.

        Args:
            timeouts: the default limits of a model call.
            max_answer_bytes: the largest streamed response.
            max_body_bytes: the largest response that is buffered as a whole.
            middleware: wraps every route, including the one given to :meth:`set_route`.
        """
        self.timeouts = timeouts or Timeouts()
        self.max_answer_bytes = max_answer_bytes
        self.max_body_bytes = max_body_bytes
        self._opened: Route | None = None
        self._route: Route | None = None
        self._middleware = middleware
        self._network: Network | None = None
        self._others: dict[Network, HttpTransport] = {}

    def with_network(self, network: Network) -> HttpTransport:
        """Return a transport that connects according to ``network``; it is closed together with this one.

        While a route is set, that route makes the connections, and this transport itself is returned.
        """
        if self._route is not None:
            return self
        if network not in self._others:
            other = HttpTransport(
                self.timeouts,
                max_answer_bytes=self.max_answer_bytes,
                max_body_bytes=self.max_body_bytes,
                middleware=self._middleware,
            )
            other._network = network
            self._others[network] = other
        return self._others[network]

    def with_route(self, route: Route) -> HttpTransport:
        """Return a transport for one call that is sent by ``route``. It needs no closing."""
        other = HttpTransport(
            self.timeouts,
            max_answer_bytes=self.max_answer_bytes,
            max_body_bytes=self.max_body_bytes,
            middleware=self._middleware,
        )
        other.set_route(route)
        return other

    def set_route(self, route: Route | None) -> None:
        """Send all further requests by ``route``, or over the network again if ``None``.

        Requests under way are not affected.
        """
        self._route = route
        self._opened = None

    async def aclose(self) -> None:
        """Close all connections. Calls under way fail; a later request opens new connections."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()
        if self._middleware is not None:
            await self._middleware.aclose()
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
        """GET ``url`` and parse the JSON response; ``timeouts`` defaults to :data:`LOOKUP_TIMEOUTS`.

        Raises:
            ProviderError: the connection failed, the status is not 2xx, or the body is not a JSON object or array.
                Values of ``headers`` never appear in the message.
        """
        return await self._json("GET", url, headers, None, timeouts or LOOKUP_TIMEOUTS)

    async def post_json(
        self, url: str, headers: Mapping[str, str], body: JsonObject, *, timeouts: Timeouts | None = None
    ) -> dict[str, Any] | list[Any]:
        """POST ``body`` to ``url`` and parse the JSON response, with the limits and errors of :meth:`get_json`."""
        content = encode_in_parts(body)
        headers = {"Content-Type": "application/json", **headers}
        return await self._json("POST", url, headers, content, timeouts or LOOKUP_TIMEOUTS)

    async def _json(
        self, method: str, url: str, headers: Mapping[str, str], content: Sequence[bytes] | None, limits: Timeouts
    ) -> dict[str, Any] | list[Any]:
        def redactor() -> Redactor:
            return Redactor(headers=[headers])

        response = ProviderResponse(redactor, url, limits)
        async with open_response(
            response, lambda limits: self.send(method, url, headers, content, limits, redactor=redactor)
        ):
            await response.check_status()
            value = parse_json(await response.body(self.max_body_bytes))
            if not isinstance(value, (dict, list)):
                raise ProviderProtocolError(f"expected a JSON object or array from {response.place}")
            return cast("dict[str, Any] | list[Any]", value)

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: Sequence[bytes] | None,
        limits: Limits,
        session_id: str | None = None,
        *,
        agent: SubAgentRef | None = None,
        socket: bool = False,
        redactor: Callable[[], Redactor] | None = None,
    ) -> Response:
        """Send one request and return once the response headers have arrived.

        Args:
            content: the body in parts; ``None`` if it has none.
            limits: ``connect``, ``read`` and ``write`` timeouts in seconds; kept by reference, so that they can be
                changed while the response is read.
            session_id: the session the request is made for, if any.
            agent: the sub-agent of the session that the request is made for, if any.
            socket: send the request as a WebSocket message, which only a client's tunnel supports.
            redactor: creates the redactor of the call's secrets, for a middleware that records the call.

        Raises:
            InvalidURL: the URL cannot be parsed.
            Exception: the request failed; ``failures.py`` lists the exceptions of the network.
        """
        if self._opened is None:
            route = self._route
            if route is None:
                # Its import, and that of the library under it, takes as long as the rest of a first turn.
                from jumpseat.adapters.transport.connections import Connections

                route = Connections(self._network)
            self._opened = self._middleware.wrap(route) if self._middleware else route
        address = parse_url(url)
        return await self._opened.send(
            Request(
                method,
                address,
                _encode_headers(headers, address, content),
                content or (),
                limits,
                session_id,
                agent,
                socket,
                redactor,
            )
        )


class HttpModel:
    """A :class:`~jumpseat.agent.model.Model` that is called over HTTP: a caller and the shared transport."""

    def __init__(self, caller: Caller, transport: HttpTransport, *, timeouts: Timeouts | None = None) -> None:
        """``timeouts`` override those of the transport."""
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
        """The caller that prepares this model's requests."""
        return self._caller

    async def prepare(self, request: ModelRequest) -> tuple[HttpRequest, Redactor]:
        """Return the HTTP request that :meth:`stream` would send, and a redactor of its secrets. Nothing is sent.

        Raises:
            ProviderError: the request cannot be serialized, or no token is available for it.
        """
        prepared = await self._prepare(replace(request, written=None))
        call = prepared.request
        if prepared.on_end is not None:
            await prepared.on_end(Outcome(None))
        redactor = _redactor(self._caller.endpoint, request, prepared)
        return (replace(call, body=_websocket_message(call.body)) if call.socket else call), redactor

    async def _prepare(self, request: ModelRequest) -> PreparedCall:
        endpoint = self._caller.endpoint
        try:
            return await self._caller.prepare(request)
        except ProviderError as error:
            # The message may come from a client or a command, and quote a secret.
            raise _redactor(endpoint, request, None).redact_error(error) from None
        except (TypeError, ValueError) as error:
            raise _unwritable_request(endpoint, request, error) from None

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        """Call the model; see :meth:`jumpseat.agent.model.Model.stream`."""
        endpoint = self._caller.endpoint
        prepared = await self._prepare(request)
        call = prepared.request
        try:
            content = encode_in_parts(_websocket_message(call.body) if call.socket else call.body)
        except (TypeError, ValueError, RecursionError) as error:
            problem = problem_in_json(plain(call.body), "body") or str(error)
            raise _redactor(endpoint, request, prepared).redact_error(
                UnwritableBodyError(
                    f"adapter {self._caller.adapter_name!r}: its request cannot be written as JSON: {problem}"
                )
            ) from None

        if request.written is not None:
            request.written.end()

        def redactor() -> Redactor:
            return _redactor(endpoint, request, prepared)

        response = ProviderResponse(redactor, call.url, prepared.timeouts or self._timeouts)
        transport = self._transport if prepared.network is None else self._transport.with_network(prepared.network)
        if prepared.replacement is not None:
            transport = self._transport.with_route(prepared.replacement.route())

        async def send(limits: Limits) -> Response:
            return await transport.send(
                call.method,
                call.url,
                call.headers,
                content,
                limits,
                request.session_id,
                agent=request.agent,
                socket=call.socket,
                redactor=redactor,
            )

        failed: ProviderError | None = None
        try:
            async with open_response(response, send):
                await response.check_status()
                events = Events(
                    response,
                    prepared.decoder,
                    stream=request.stream,
                    max_answer_bytes=transport.max_answer_bytes,
                    max_body_bytes=transport.max_body_bytes,
                    decode=prepared.decode,
                )
                keys = _keys(endpoint, call)
                yield MaskedEvents(events, keys) if keys else events
                if events.complete:
                    # Drained only now, so that the caller never waits for the end of the transfer.
                    await response.drain()
        except ProviderError as error:
            failed = error
            raise
        finally:
            if prepared.on_end is not None:
                with anyio.move_on_after(ENDED_GRACE_S, shield=True):
                    told = await prepared.on_end(response.outcome)
                    if told and failed is not None:
                        failed.explanation = redactor()(told)[: failed.longest_chars]
            # Its traceback has this frame: together, they would keep the request.
            failed = None


def _encode_headers(
    headers: Mapping[str, str], address: Url, content: Sequence[bytes] | None
) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request, with those that every request has.

    Raises:
        ValueError: the name of a header is not ASCII.
    """
    encoded = [(name.encode("ascii"), value.encode()) for name, value in headers.items()]
    names = {name.lower() for name in headers}
    if "host" not in names:
        encoded.insert(0, (b"Host", address.netloc.encode()))
    encoded += [(name, value) for lower, name, value in _DEFAULT_HEADERS if lower not in names]
    if content is not None and "content-length" not in names:
        encoded.append((b"Content-Length", b"%d" % sum(map(len, content))))
    if address.user or address.password:
        login = base64.b64encode(f"{address.user}:{address.password}".encode())
        encoded = [field for field in encoded if field[0].lower() != b"authorization"]
        encoded.append((b"Authorization", b"Basic " + login))
    return encoded


def _unwritable_request(endpoint: Endpoint, request: ModelRequest, error: Exception) -> ProviderError:
    """Return the error for an invalid base URL, or for a header that HTTP cannot carry."""
    return _redactor(endpoint, request, None).redact_error(
        ProviderRequestError(f"cannot write the request: {error}")
    )


def _websocket_message(body: JsonObject) -> JsonObject:
    """Return a Responses API request as a WebSocket message; ``stream`` is dropped, as responses always stream."""
    return {"type": "response.create", **{name: value for name, value in body.items() if name != "stream"}}


def _keys(endpoint: Endpoint, call: HttpRequest) -> Secrets:
    """Return the keys of a call, which its answer must not repeat."""
    sent = (value.rpartition(" ")[2] for name, value in call.headers.items() if name.lower() in CREDENTIALS)
    keys = {key for key in (endpoint.api_key, endpoint.bearer_token, *sent) if key and not is_dummy(key)}
    secrets = Secrets()
    secrets.add(form for key in keys for form in forms_of(key))
    return secrets


def _redactor(endpoint: Endpoint, request: ModelRequest, prepared: PreparedCall | None) -> Redactor:
    sent: Mapping[str, str] = prepared.request.headers if prepared is not None else {}
    secrets = prepared.secrets if prepared is not None else ()
    credentials = {name: value for name, value in sent.items() if name.lower() in CREDENTIALS}
    return Redactor(
        (endpoint.api_key, endpoint.bearer_token, *secrets), (endpoint.headers, request.headers, credentials)
    )
