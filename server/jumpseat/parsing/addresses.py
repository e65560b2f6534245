"""Tell addresses on the public internet from others."""

from __future__ import annotations

import ipaddress
from typing import Final, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

# A public address, but it serves metadata and credentials to virtual machines in Azure.
_AZURE_HOST: Final = ipaddress.ip_address("168.63.129.16")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
# The special-purpose networks that not every supported Python version treats as private.
_SPECIAL: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24"),
        *("::/96", "64:ff9b:1::/48", "2001::/23", "2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fec0::/10"),
    )
)


def is_public(address: Address) -> bool:
    """Return whether ``address`` is on the public internet; an embedded IPv4 address is checked instead."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    if address == _AZURE_HOST or any(address in network for network in _SPECIAL):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved
