"""All traffic to providers, once for every adapter.

:class:`HttpTransport` owns the one connection pool of the process; :class:`HttpModel` binds it to an adapter and an
endpoint and is what the loop calls. Nothing is retried here. Import this module when the first model is needed, not
before: it brings httpx with it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Protocol, cast

import anyio
import httpx
import orjson

from jumpseat.adapters.adapter import Endpoint, HttpRequest, Network, Outcome, PreparedCall, Timeouts
from jumpseat.adapters.caller import Caller
from jumpseat.adapters.failures import Redactor
from jumpseat.adapters.transport.http_events import Events
from jumpseat.adapters.transport.http_response import Answer, Limits, opened
from jumpseat.adapters.transport.pools import Pools
from jumpseat.adapters.transport.tunnel import SESSION, SOCKET, VEIL
from jumpseat.adapters.wire import parse_json
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import Capabilities, ModelEvent, ModelRequest
from jumpseat.errors import ProviderError, ProviderProtocolError, ProviderRequestError

ENDED_GRACE_S: Final = 5.0
"""How long an adapter may take to tidy up after a call, also one that was cancelled."""

LOOKUP_TIMEOUTS: Final = Timeouts(connect=5.0, first_byte=15.0, idle=15.0, total=30.0)
"""Lists and accounts are quick to answer or not worth waiting for."""


class TransportMiddleware(Protocol):
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
        detour: TransportMiddleware | None = None,
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
        def veil() -> Redactor:
            return Redactor(headers=[headers])

        answer = Answer(veil, url, limits)
        async with opened(answer, lambda limits: self.send(method, url, headers, content, limits, veil=veil)):
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
        limits: Limits,
        session_id: str | None = None,
        *,
        socket: bool = False,
        veil: Callable[[], Redactor] | None = None,
    ) -> httpx.Response:
        """Send one request and return when the headers of the answer are there.

        ``limits`` are ``connect``, ``read`` and ``write`` in seconds, kept by reference. Errors are those of httpx.
        ``socket`` asks for a WebSocket, which only a client that makes the requests can give. ``veil`` makes what
        hides the secrets of the call from a detour that writes it down.
        """
        if self._client is None:
            # trust_env is off because Pools reads the environment, at no cost where TLS is never used.
            route = self._route or Pools(self._network)
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

    async def written(self, request: ModelRequest) -> tuple[HttpRequest, Redactor]:
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

    async def _begun(self, request: ModelRequest) -> PreparedCall:
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

        def veil() -> Redactor:
            return _veil(endpoint, request, exchange)

        answer = Answer(veil, call.url, exchange.timeouts or self._timeouts)
        transport = self._transport if exchange.network is None else self._transport.by(exchange.network)
        if exchange.instead is not None:
            transport = self._transport.along(exchange.instead.route())

        async def send(limits: Limits) -> httpx.Response:
            return await transport.send(
                call.method,
                call.url,
                call.headers,
                content,
                limits,
                request.session_id,
                socket=call.socket,
                veil=veil,
            )

        try:
            async with opened(answer, send):
                await answer.check_status()
                events = Events(
                    answer,
                    exchange.decoder,
                    stream=request.stream,
                    max_answer_bytes=transport.max_answer_bytes,
                    max_body_bytes=transport.max_body_bytes,
                )
                yield events
                if events.complete:
                    # Only now, so that the end of the answer never waits for the end of its transfer.
                    await answer.drain()
        finally:
            if exchange.ended is not None:
                with anyio.move_on_after(ENDED_GRACE_S, shield=True):
                    await exchange.ended(answer.outcome)


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


def _veil(endpoint: Endpoint, request: ModelRequest, exchange: PreparedCall | None) -> Redactor:
    sent: Mapping[str, str] = exchange.request.headers if exchange is not None else {}
    secrets = exchange.secrets if exchange is not None else ()
    credentials = {
        name: value
        for name, value in sent.items()
        if name.lower() in ("authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key")
    }
    return Redactor(
        (endpoint.api_key, endpoint.bearer_token, *secrets), (endpoint.headers, request.headers, credentials)
    )
