"""The user at the other end of a loopback connection, from the kernel's tables of TCP sockets (Linux)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final, TypeAlias

Endpoint: TypeAlias = tuple[IPv4Address | IPv6Address, int]

IS_AVAILABLE: Final = sys.platform == "linux"
"""True if this system has the tables."""

TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
# The kernel does not freeze a table while it is read in pieces, so a row may be missed.
ATTEMPTS: Final = 3


class Owner(Enum):
    """The owner of the socket at the other end."""

    THIS_USER = "this user"
    ANOTHER = "another user"
    UNKNOWN = "unknown"


def endpoint(address: tuple[str | int, ...]) -> Endpoint:
    """Return the IP address and the port of a socket's address; an IPv4-mapped address becomes one of IPv4."""
    ip = ip_address(str(address[0]).partition("%")[0])
    return (ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else ip, int(address[1])


def owner_of_peer(peer: Endpoint, local: Endpoint) -> Owner:
    """Return the owner of the peer's socket of a connection between ``peer`` and ``local`` on this machine.

    Blocks on files: do not call this function in the thread of the event loop.
    """
    if sys.platform != "linux":
        return Owner.UNKNOWN
    for _ in range(ATTEMPTS):
        for table in TABLES:
            try:
                with table.open(encoding="ascii") as rows:
                    owner = find_owner(rows, peer, local, os.geteuid())
            except OSError:
                continue
            if owner is not Owner.UNKNOWN:
                return owner
    return Owner.UNKNOWN


def find_owner(rows: Iterable[str], peer: Endpoint, local: Endpoint, uid: int) -> Owner:
    """Return the owner of the peer's socket in one table; unknown if the table does not list the socket.

    A row has these columns: number, local address, remote address, state, queues, timers, retransmissions, user,
    time-outs, inode.
    """
    connections = set(zip(_encoded(peer), _encoded(local), strict=True))
    for row in rows:
        columns = row.split()
        if len(columns) < 10 or (columns[1], columns[2]) not in connections:
            continue
        # A socket that its process has closed has inode 0, and its row no longer names the user.
        if columns[9] == "0":
            return Owner.ANOTHER
        return Owner.THIS_USER if columns[7] == str(uid) else Owner.ANOTHER
    return Owner.UNKNOWN


def _encoded(address: Endpoint) -> tuple[str, str]:
    """Return an address as in the tables of IPv4 and IPv6, which have 32-bit words in the machine's byte order."""
    ip, port = address
    if isinstance(ip, IPv4Address):
        mapped = IPv6Address(b"\0" * 10 + b"\xff\xff" + ip.packed)
        return f"{_words(ip.packed)}:{port:04X}", f"{_words(mapped.packed)}:{port:04X}"
    encoded = f"{_words(ip.packed)}:{port:04X}"
    return encoded, encoded


def _words(packed: bytes) -> str:
    words = (packed[start : start + 4] for start in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
