"""The ways to providers: direct or through a proxy, with or without TLS, a connection pool for each."""

from __future__ import annotations

import ssl
from typing import Final

import httpx

from jumpseat.adapters.adapter import Network
from jumpseat.adapters.transport.network import Proxies, tls_context

PROXY: Final = "jumpseat.proxy"
"""Extension of a request: the proxy that it goes through."""

_REUSE_S: Final = 60.0


class Pools(httpx.AsyncBaseTransport):
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
