"""Check the addresses of a login, which an unknown server names."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from enum import IntEnum

import anyio
import httpx2

from jumpseat.parsing.addresses import is_public


class NearerError(Exception):
    """An address is nearer than the server that names it; the text says so."""


class _Reach(IntEnum):
    """The reach of a host: the internet, the network around this machine, or this machine alone."""

    PUBLIC = 0
    PRIVATE = 1
    LOCAL = 2


class Endpoints:
    """Refuses requests to hosts that are not reached from where the server at ``url`` is.

    A server on the internet could otherwise have requests sent to services of this machine and its network.
    """

    def __init__(self, url: str) -> None:
        self._host = httpx2.URL(url).host
        self._reach: _Reach | None = None

    async def check(self, url: httpx2.URL | str) -> None:
        """Check an address that the server has named.

        Raises:
            NearerError: its host is nearer than the server.
        """
        host = httpx2.URL(url).host
        if host == self._host:
            return
        if self._reach is None:
            self._reach = await _reach_of(self._host, min)
        if await _reach_of(host, max) > self._reach:
            raise NearerError(f"the server sends logins to {host}, which is not on the public internet")

    async def check_request(self, request: httpx2.Request) -> None:
        """Check a request before it is sent: a hook for clients."""
        await self.check(request.url)


async def _reach_of(host: str, choose: Callable[[list[_Reach]], _Reach]) -> _Reach:
    """Return who reaches a host. Behind a proxy, public names may not resolve here."""
    try:
        found = await anyio.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return _Reach.PUBLIC
    return choose([_reach_of_address(str(entry[4][0])) for entry in found])


def _reach_of_address(text: str) -> _Reach:
    address = ipaddress.ip_address(text.partition("%")[0])
    inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = inner or address
    if is_public(address):
        return _Reach.PUBLIC
    # Services for virtual machines are at link-local addresses.
    is_local = address.is_loopback or address.is_unspecified or address.is_link_local
    return _Reach.LOCAL if is_local else _Reach.PRIVATE
