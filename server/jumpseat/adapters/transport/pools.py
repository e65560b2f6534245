"""The routes to providers over the network: one each for direct and proxied connections, with and without TLS."""

from __future__ import annotations

import ssl

import anyio.to_thread

from jumpseat.adapters.adapter import Network
from jumpseat.adapters.transport.connections import DirectConnections
from jumpseat.adapters.transport.errors import UnsupportedProtocol
from jumpseat.adapters.transport.messages import Request, Response, Route
from jumpseat.adapters.transport.network import Proxies, tls_context


class Pools:
    """Connection pools, one for each route: direct or through a proxy, with or without TLS.

    Certificates are loaded for the first https URL only: loading takes 20 ms and some memory, which users of local
    models are spared.
    """

    def __init__(self, network: Network | None = None) -> None:
        self._network = network or Network()
        self._proxies = Proxies.from_environment()
        self._tls: ssl.SSLContext | None = None
        self._pools: dict[tuple[str | None, bool], Route] = {}

    async def send(self, request: Request) -> Response:
        url = request.url
        if url.scheme not in ("http", "https") or not url.host:
            raise UnsupportedProtocol("expected an http or https URL")
        proxy = self._network.proxy or self._proxies.for_url(url)
        secure = url.scheme == "https" or (proxy or "").startswith("https:")
        if secure and self._tls is None:
            # In a thread: all sessions would wait for it.
            tls = await anyio.to_thread.run_sync(tls_context, self._network)
            self._tls = self._tls or tls
        pool = self._pools.get((proxy, secure))
        if pool is None:
            pool = self._pools[proxy, secure] = self._pool(proxy, self._tls if secure else None)
        return await pool.send(request)

    def _pool(self, proxy: str | None, tls: ssl.SSLContext | None) -> Route:
        if not proxy:
            return DirectConnections(tls)
        from jumpseat.adapters.transport.proxied import ProxiedConnections

        return ProxiedConnections(proxy, tls)

    async def aclose(self) -> None:
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.aclose()
