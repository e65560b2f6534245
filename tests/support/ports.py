"""Ports of loopback for tests: some that a server can take, and one where nobody listens."""

from __future__ import annotations

import random
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nobody uses.

    They are none of those that the system gives to outgoing connections: a client that connects to such a port
    again and again is connected to itself one day, and the server cannot have the port any more.
    """
    ports: list[int] = []
    while len(ports) < count:
        port = random.randint(10_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in ports:
                ports.append(port)
    return ports


@contextmanager
def closed_port() -> Generator[int]:
    """Reserve a port of loopback that refuses connections, and that nobody else is given meanwhile."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield int(reserved.getsockname()[1])
