"""Connections to providers through proxies: those of httpx, which is imported with the first one."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, cast

import anyio
import httpx

from jumpseat.adapters.transport import errors
from jumpseat.adapters.transport.connections import MOST_KEPT, REUSE_S
from jumpseat.adapters.transport.errors import TransportError
from jumpseat.adapters.transport.messages import CLOSE_S, Headers, Request, Response

_ERRORS: Final[dict[type[Exception], type[TransportError]]] = {
    httpx.ConnectTimeout: errors.ConnectTimeout,
    httpx.ReadTimeout: errors.ReadTimeout,
    httpx.WriteTimeout: errors.WriteTimeout,
    httpx.ConnectError: errors.ConnectError,
    httpx.ReadError: errors.ReadError,
    httpx.WriteError: errors.WriteError,
    httpx.LocalProtocolError: errors.LocalProtocolError,
    httpx.RemoteProtocolError: errors.RemoteProtocolError,
    httpx.ProxyError: errors.ProxyError,
    httpx.UnsupportedProtocol: errors.UnsupportedProtocol,
    httpx.TimeoutException: errors.TimeoutException,
    httpx.NetworkError: errors.NetworkError,
}


class ProxiedConnections:
    """The connections through one proxy; ``tls`` is for https, to the provider or to the proxy."""

    def __init__(self, proxy: str, tls: ssl.SSLContext | None) -> None:
        """Configure the connections without opening any.

        Raises:
            OSError: the URL of the proxy is invalid.
        """
        self._proxy = proxy
        # Connections without TLS never verify a certificate, but httpx requires a context even for plain http.
        verify = tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._transport = httpx.AsyncHTTPTransport(
            verify=verify,
            trust_env=False,
            # Unlimited, like direct connections.
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=MOST_KEPT, keepalive_expiry=REUSE_S
            ),
            proxy=_parse_proxy(proxy, verify),
        )

    async def send(self, request: Request) -> Response:
        with self._failures():
            response = await self._transport.handle_async_request(
                httpx.Request(
                    request.method,
                    str(request.url),
                    headers=request.fields,
                    # As a stream, because httpx would look for the headers of each body.
                    stream=httpx.ByteStream(request.body),
                    extensions={"timeout": request.limits},
                )
            )
        return Response(response.status_code, Headers.decode(response.headers.raw), _Body(response, self._failures))

    async def aclose(self) -> None:
        await self._transport.aclose()

    @contextmanager
    def _failures(self) -> Generator[None]:
        try:
            yield
        except httpx.TransportError as error:
            kind = next((ours for theirs, ours in _ERRORS.items() if isinstance(error, theirs)), TransportError)
            failure = kind(str(error))
            failure.proxy = self._proxy
            raise failure from error
        except httpx.InvalidURL as error:
            raise errors.InvalidURL(str(error)) from error


class _Body:
    """The body of a response, with the errors of the transport."""

    def __init__(self, response: httpx.Response, failures: Callable[[], AbstractContextManager[None]]) -> None:
        self._response = response
        self._failures = failures

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._failures():
            async for piece in cast("httpx.AsyncByteStream", self._response.stream):
                yield piece

    async def aclose(self) -> None:
        with anyio.move_on_after(CLOSE_S, shield=True):
            await self._response.aclose()


def _parse_proxy(url: str, tls: ssl.SSLContext) -> httpx.Proxy:
    try:
        return httpx.Proxy(url, ssl_context=tls if url.startswith("https:") else None)
    except (ValueError, httpx.InvalidURL):
        # The URL is left out, because it may contain a password.
        raise OSError(
            "invalid proxy in the environment or the adapter: expected an http, https or socks5 URL"
        ) from None
