"""Connection pools to providers: one each for direct and proxied connections, with and without TLS."""

from __future__ import annotations

import ssl
from typing import Final

import httpx

from jumpseat.adapters.adapter import Network
from jumpseat.adapters.transport.connections import MOST_KEPT, REUSE_S, DirectConnections
from jumpseat.adapters.transport.network import Proxies, tls_context

PROXY: Final = "jumpseat.proxy"
"""The request extension that names the proxy in use."""


class Pools(httpx.AsyncBaseTransport):
    """Connection pools, one for each route: direct or through a proxy, with or without TLS.

    Certificates are loaded for the first https URL only: loading takes 20 ms and some memory, which users of local
    models are spared.
    """

    def __init__(self, network: Network | None = None) -> None:
        self._network = network or Network()
        self._proxies = Proxies.from_environment()
        self._tls: ssl.SSLContext | None = None
        self._pools: dict[tuple[str | None, bool], httpx.AsyncBaseTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.scheme not in ("http", "https") or not request.url.host:
            raise httpx.UnsupportedProtocol("expected an http or https URL")
        proxy = self._network.proxy or self._proxies.for_url(request.url)
        if proxy:
            request.extensions[PROXY] = proxy
        secure = request.url.scheme == "https" or (proxy or "").startswith("https:")
        pool = self._pools.get((proxy, secure))
        if pool is None:
            pool = self._pools[proxy, secure] = self._pool(proxy, secure=secure)
        return await pool.handle_async_request(request)

    def _pool(self, proxy: str | None, *, secure: bool) -> httpx.AsyncBaseTransport:
        if secure and self._tls is None:
            self._tls = tls_context(self._network)
        if not proxy:
            return DirectConnections(self._tls if secure else None)
        # A pool without TLS is used for http URLs only, so it never verifies a certificate.
        verify = self._tls if secure and self._tls is not None else _no_tls()
        return httpx.AsyncHTTPTransport(
            verify=verify,
            trust_env=False,
            # Unlimited, like direct connections.
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=MOST_KEPT, keepalive_expiry=REUSE_S
            ),
            proxy=_proxy(proxy, verify),
        )

    async def aclose(self) -> None:
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.aclose()


def _proxy(url: str, tls: ssl.SSLContext) -> httpx.Proxy:
    try:
        return httpx.Proxy(url, ssl_context=tls if url.startswith("https:") else None)
    except (ValueError, httpx.InvalidURL):
        # The URL is left out, because it may contain a password.
        raise OSError(
            "invalid proxy in the environment or the adapter: expected an http, https or socks5 URL"
        ) from None


def _no_tls() -> ssl.SSLContext:
    """Return a context without any trusted authority: httpx requires a context even for plain http."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
