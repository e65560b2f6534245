"""Which addresses of the network a model may reach: those of the public internet, unless the operator says more."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from typing import Final, TypeAlias

import anyio

from jumpseat.tools.web import WebError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

# Public by its number, but it answers machines in Azure with what concerns them alone.
_AZURE_HOST: Final = ipaddress.ip_address("168.63.129.16")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
# Whatever the version of Python at hand knows of them.
_SPECIAL: Final = tuple(
    ipaddress.ip_network(network) for network in ("192.0.0.0/24", "::/96", "64:ff9b:1::/48", "fec0::/10")
)

_INTERNAL: Final = (".local", ".internal", ".intranet", ".lan", ".home.arpa", ".localhost", ".localdomain")


class Guard:
    """``hosts`` are names, addresses and networks that may be reached although they are private; a name stands for
    its sub-domains too. ``allow_private`` lets everything be reached."""

    def __init__(self, *, allow_private: bool = False, hosts: Iterable[str] = ()) -> None:
        self._allow_private = allow_private
        self._names: list[str] = []
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for host in hosts:
            try:
                self._networks.append(ipaddress.ip_network(host.strip("[]"), strict=False))
            except ValueError:
                self._names.append(host.lower().strip("."))

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of ``host``, all of which may be reached.

        Whoever connects must use one of these, not the name: it may have others the next time it is asked.

        Raises:
            WebError: the name does not exist, or one of its addresses may not be reached.
        """
        try:
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise WebError(f"The host {host!r} cannot be found. Check the URL.") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        for address in addresses:
            self._check(host, address)
        return addresses

    async def check_name(self, host: str, port: int) -> None:
        """Judge a host that somebody else will look up: a proxy, or a service.

        Raises:
            WebError: it may not be reached, as far as can be told from here.
        """
        host = host.lower().rstrip(".")
        try:
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            # Behind a proxy, names of the internet may not be known here. Those of the house have to be.
            if not self._names_allowed(host) and ("." not in host or host.endswith(_INTERNAL)):
                raise _refusal(host) from None
            return
        for entry in found:
            self._check(host, str(entry[4][0]))

    def _check(self, host: str, text: str) -> None:
        if self._allow_private or self._names_allowed(host):
            return
        address = ipaddress.ip_address(text.partition("%")[0])
        if not is_public(address) and not any(address in network for network in self._networks):
            raise _refusal(host)

    def _names_allowed(self, host: str) -> bool:
        host = host.lower().rstrip(".")
        return self._allow_private or any(host == name or host.endswith(f".{name}") for name in self._names)


def is_public(address: Address) -> bool:
    """Whether ``address`` is one of the public internet, also where it only stands for another one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    if address == _AZURE_HOST or any(address in network for network in _SPECIAL):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _refusal(host: str) -> WebError:
    # Not the address: what names of the house stand for is not for the model.
    return WebError(
        f"The host {host!r} is not on the public internet, so it is not visited. The operator can allow it."
    )
