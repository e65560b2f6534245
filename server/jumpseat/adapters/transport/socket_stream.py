"""The bytes of one connection to a provider, as httpcore's connections expect them.

httpcore's own streams enter a cancel scope and yield to the event loop for each read and write, which takes longer
than decoding an answer of a few words, and they send the head and the body of a request apart.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import anyio
import httpcore

_UNSENT_BYTES: Final = 64 * 1024
"""With more bytes, a request is sent without waiting for its end."""
_UNREAD_BYTES: Final = 256 * 1024
"""With more bytes, nothing is received until they are read."""
_HAPPY_EYEBALLS_S: Final = 0.25
"""The time after which the next address of a host is tried beside the first one (RFC 8305)."""

_ERROR_NUMBER: Final = re.compile(r"\[Errno (\d+)\]")


class SocketStream(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """A TCP connection, with TLS after :meth:`start_tls`. One task at a time may use it.

    What is written is sent by the next :meth:`read`, so that a small request is one packet. Time limits are in
    seconds, and ``None`` is no limit. Failures are the exceptions of httpcore.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
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
            httpcore.ConnectError: no address could be reached.
            httpcore.ConnectTimeout: none answered in time.
        """
        loop = asyncio.get_running_loop()
        with _failing(httpcore.ConnectTimeout, httpcore.ConnectError), anyio.fail_after(timeout):
            try:
                _, stream = await loop.create_connection(cls, host, port, happy_eyeballs_delay=_HAPPY_EYEBALLS_S)
            except OSError as error:
                raise _typed(error) from None
        return stream

    # --- httpcore calls these -----------------------------------------------------------------------------------

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> SocketStream:
        assert self._transport is not None
        with _failing(httpcore.ConnectTimeout, httpcore.ConnectError), anyio.fail_after(timeout):
            try:
                self._transport = await asyncio.get_running_loop().start_tls(
                    self._transport, self, ssl_context, server_hostname=server_hostname
                )
            except BaseException:
                self._abort()
                raise
            if self._transport is None:
                raise OSError("the connection was closed during the TLS handshake")
        return self

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._unsent.append(buffer)
        self._unsent_bytes += len(buffer)
        if self._unsent_bytes > _UNSENT_BYTES:
            await self._send(timeout)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._unsent:
            await self._send(timeout)
        if not self._received and not self._ended:
            await self._wait(timeout, httpcore.ReadTimeout)
        if not self._received:
            if self._error is not None:
                raise httpcore.ReadError(str(self._error)) from self._error
            return b""
        data = self._received.popleft()
        if len(data) > max_bytes:
            self._received.appendleft(data[max_bytes:])
            data = data[:max_bytes]
        self._received_bytes -= len(data)
        if self._reading_paused and self._received_bytes < _UNREAD_BYTES and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    async def aclose(self) -> None:
        self._abort()

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            # An idle connection has nothing to read but its end.
            return self._ended or bool(self._received)
        return None if self._transport is None else self._transport.get_extra_info(info)

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

    async def _send(self, timeout: float | None) -> None:
        data = b"".join(self._unsent)
        self._unsent.clear()
        self._unsent_bytes = 0
        if self._transport is None or self._ended:
            # The reader learns of the end, perhaps from an error response that was sent before it.
            return
        self._transport.write(data)
        # A provider may refuse a request before it has read all of it.
        while self._writing_paused and not self._ended and not self._received:
            await self._wait(timeout, httpcore.WriteTimeout)

    async def _wait(self, timeout: float | None, error: type[httpcore.TimeoutException]) -> None:
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

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _expire(waiter: asyncio.Future[None], error: type[httpcore.TimeoutException]) -> None:
    if not waiter.done():
        waiter.set_exception(error())


@contextmanager
def _failing(timeout: type[Exception], failure: type[Exception]) -> Generator[None]:
    try:
        yield
    except TimeoutError as error:
        raise timeout(str(error)) from error
    except OSError as error:
        raise failure(str(error)) from error


def _typed(error: OSError) -> OSError:
    """Return the common error of all addresses of a host, which asyncio only joins into a text."""
    numbers = set(_ERROR_NUMBER.findall(str(error))) if error.errno is None else set[str]()
    return OSError(int(numbers.pop()), str(error)) if len(numbers) == 1 else error
