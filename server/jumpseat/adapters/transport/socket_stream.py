"""The bytes of one connection to a provider.

anyio's streams enter a cancel scope and yield to the event loop for each read and write, which takes longer than
decoding an answer of a few words.
"""

from __future__ import annotations

import asyncio
import re
import select
import ssl
import sys
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import anyio

from jumpseat.adapters.transport.errors import (
    ConnectError,
    ConnectTimeout,
    ReadError,
    ReadTimeout,
    TimeoutException,
    WriteTimeout,
)

_UNREAD_BYTES: Final = 256 * 1024
"""With more bytes, nothing is received until they are read."""
_WRITTEN_AT_ONCE: Final = 64 * 1024
"""The bytes that are handed to the transport before it has to take them."""
_HAPPY_EYEBALLS_S: Final = 0.25
"""The time after which the next address of a host is tried beside the first one (RFC 8305)."""

_ERROR_NUMBER: Final = re.compile(r"\[Errno (\d+)\]")


class SocketStream(asyncio.Protocol):
    """A TCP connection, with TLS after :meth:`start_tls`. One task at a time may use it.

    Time limits are in seconds, and ``None`` is no limit. Failures are those of ``errors.py``.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received: deque[bytes] = deque()
        self._received_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._reading_paused = False
        self._writing_paused = False
        self._ended = False
        self._error: Exception | None = None

    @classmethod
    async def connect(cls, host: str, port: int, timeout: float | None) -> SocketStream:
        """Connect to the first address of ``host`` that answers.

        Raises:
            ConnectError: no address could be reached.
            ConnectTimeout: none answered in time.
        """
        loop = asyncio.get_running_loop()
        with _connecting(), anyio.fail_after(timeout):
            try:
                _, stream = await loop.create_connection(cls, host, port, happy_eyeballs_delay=_HAPPY_EYEBALLS_S)
            except OSError as error:
                raise _typed(error) from None
        return stream

    async def start_tls(self, context: ssl.SSLContext, host: str, timeout: float | None) -> None:
        """Continue with TLS; the certificate has to be that of ``host``.

        Raises:
            ConnectError: the handshake failed.
            ConnectTimeout: the handshake took too long.
        """
        assert self._transport is not None
        with _connecting(), anyio.fail_after(timeout):
            try:
                self._transport = await asyncio.get_running_loop().start_tls(
                    self._transport, self, context, server_hostname=host
                )
            except BaseException:
                self.close()
                raise
            if self._transport is None:
                raise OSError("the connection was closed during the TLS handshake")

    @property
    def is_silent(self) -> bool:
        """Return whether the peer has neither sent anything that is unread nor closed the connection."""
        if self._transport is None or self._ended or self._received:
            return False
        # The event loop may not have seen the end yet.
        return not _is_readable(self._transport.get_extra_info("socket").fileno())

    async def send(self, data: bytes, timeout: float | None) -> None:
        """Send ``data``, and wait while the peer takes nothing. Return early if the peer answers or hangs up.

        Raises:
            WriteTimeout: the peer took nothing for too long.
        """
        if self._transport is None or self._ended:
            return
        # In pieces, because the transport copies what the system does not take at once.
        rest = memoryview(data)
        while len(rest) > _WRITTEN_AT_ONCE and not self._ended and not self._received:
            self._transport.write(rest[:_WRITTEN_AT_ONCE])
            rest = rest[_WRITTEN_AT_ONCE:]
            await self._wait_until_taken(timeout)
        if not self._ended:
            self._transport.write(rest)
            await self._wait_until_taken(timeout)

    async def _wait_until_taken(self, timeout: float | None) -> None:
        # A provider may refuse a request before it has read all of it.
        while self._writing_paused and not self._ended and not self._received:
            await self._wait(timeout, WriteTimeout)

    async def read(self, timeout: float | None) -> bytes:
        """Return the next bytes; none at the end.

        Raises:
            ReadError: the connection broke.
            ReadTimeout: nothing came in time.
        """
        if not self._received and not self._ended:
            await self._wait(timeout, ReadTimeout)
        if not self._received:
            if self._error is not None:
                raise ReadError(str(self._error)) from self._error
            return b""
        data = self._received.popleft()
        self._received_bytes -= len(data)
        if self._reading_paused and self._received_bytes < _UNREAD_BYTES and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    def close(self) -> None:
        """Close the connection at once, without sending what the peer has not taken."""
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio calls these ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received.append(data)
        self._received_bytes += len(data)
        if self._received_bytes >= _UNREAD_BYTES and not self._reading_paused and self._transport is not None:
            self._reading_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._ended = True
        self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._error = self._error or exc
        self._wake()

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._wake()

    # ------------------------------------------------------------------------------------------------------------

    async def _wait(self, timeout: float | None, error: type[TimeoutException]) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = None if timeout is None else loop.call_later(timeout, _expire, waiter, error)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _expire(waiter: asyncio.Future[None], error: type[TimeoutException]) -> None:
    if not waiter.done():
        waiter.set_exception(error("timed out"))


def _is_readable(fd: int) -> bool:
    if sys.platform == "win32":
        return bool(select.select([fd], [], [], 0)[0])
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


@contextmanager
def _connecting() -> Generator[None]:
    try:
        yield
    except TimeoutError as error:
        raise ConnectTimeout(str(error)) from error
    except OSError as error:
        raise ConnectError(str(error)) from error


def _typed(error: OSError) -> OSError:
    """Return the common error of all addresses of a host, which asyncio only joins into a text."""
    numbers = set(_ERROR_NUMBER.findall(str(error))) if error.errno is None else set[str]()
    return OSError(int(numbers.pop()), str(error)) if len(numbers) == 1 else error
