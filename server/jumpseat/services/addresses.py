"""Decide which hosts a model may reach: those on the public internet, and more if the operator allows it."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from typing import Final

import anyio

from jumpseat.parsing.addresses import is_public
from jumpseat.tools.web import WebError

_INTERNAL: Final = (".local", ".internal", ".intranet", ".lan", ".home.arpa", ".localhost", ".localdomain")


class PrivateHostError(WebError):
    """The host is not on the public internet, and the operator has not allowed it."""


class HostPolicy:
    """Checks hosts before they are contacted.

    ``hosts`` are names, addresses and networks that are allowed although private; a name includes its subdomains.
    With ``allow_private``, every host is allowed.
    """

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
        """Resolve ``host`` and return its addresses, all of which are allowed.

        The caller must connect to one of these addresses rather than to the name, which may resolve differently the
        next time.

        Raises:
            WebError: the name does not resolve, or one of its addresses is not allowed.
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
        """Check a host that a proxy or service will resolve.

        Raises:
            WebError: the host is not allowed, as far as it can be resolved here.
        """
        host = host.lower().rstrip(".")
        try:
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            # Behind a proxy, public names may not resolve here, so only names that look internal are refused.
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


def _refusal(host: str) -> PrivateHostError:
    # The address is left out: the model must not learn the addresses of internal names.
    return PrivateHostError(
        f"The host {host!r} is not on the public internet, so it cannot be fetched. The operator can allow it."
    )
