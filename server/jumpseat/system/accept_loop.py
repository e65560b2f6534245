"""Accepts connections for the listeners of this process."""

from __future__ import annotations

import socket

import anyio


async def accept(listening: socket.socket) -> socket.socket:
    """Return the next connection of a socket that does not block; the connection does not block either.

    The ``sock_accept`` of asyncio still accepts a connection when it was cancelled in the same turn of the event
    loop: that connection is lost, and a traceback is logged.

    Raises:
        OSError: a connection cannot be accepted.
    """
    while True:
        await anyio.wait_readable(listening)
        try:
            accepted, _ = listening.accept()
        except BlockingIOError:
            # The peer has disconnected, or another process has accepted the connection.
            continue
        accepted.setblocking(False)
        return accepted
