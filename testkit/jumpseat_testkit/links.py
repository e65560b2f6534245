"""The bytes between a player and its server: pipes of a process, TCP, or a WebSocket."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream, Process

from jumpseat_testkit.patterns import ScriptError

CLOSED: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
_RETRY_S: Final = 0.05


class Link(Protocol):
    """A connection to a server. Iterating yields received bytes until the server closes it."""

    async def send(self, data: bytes) -> None: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def close_input(self) -> None:
        """Tell the server that the client sends no more."""
        ...

    async def close(self) -> None:
        """Close both directions."""
        ...


class Pipes:
    """The standard input and output of a process."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout

    async def send(self, data: bytes) -> None:
        await self._input.send(data)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._output)

    async def close_input(self) -> None:
        await self._input.aclose()

    async def close(self) -> None:
        """Leave the pipes to the process, whose end closes them."""


class Tcp:
    """A TCP connection."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._stream)

    async def close_input(self) -> None:
        await self._stream.send_eof()

    async def close(self) -> None:
        await self._stream.aclose()


class WebSocket:
    """A WebSocket, whose messages are yielded whole."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def send(self, data: bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        # Text, as the protocols have it; bytes that are no text can only be sent as such.
        try:
            message: str | bytes = data.decode()
        except UnicodeDecodeError:
            message = data
        try:
            await self._connection.send(message)
        except ConnectionClosed:
            raise anyio.BrokenResourceError from None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        from websockets.exceptions import ConnectionClosed

        try:
            async for message in self._connection:
                yield message.encode() if isinstance(message, str) else message
        except ConnectionClosed:
            # A connection that breaks off ends as one that is closed.
            return

    async def close_input(self) -> None:
        await self._connection.close()

    async def close(self) -> None:
        await self._connection.close()


def scheme_of(url: str) -> str:
    """Return ``ws``, ``wss`` or ``tcp``.

    Raises:
        ScriptError: the URL has another scheme.
    """
    scheme = url.partition("://")[0]
    if scheme not in ("ws", "wss", "tcp"):
        raise ScriptError(f"invalid URL {url!r}: expected one that begins with ws://, wss:// or tcp://")
    return scheme


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


async def connect(url: str, seconds: float, has_ended: Callable[[], bool] = lambda: False) -> Link:
    """Connect to a server, which may be about to listen for as long as ``seconds``, or until it ``has_ended``.

    Raises:
        ScriptError: the URL is invalid, or nobody listens there.
    """
    scheme = scheme_of(url)
    failure: Exception | None = None
    with anyio.move_on_after(seconds):
        while not has_ended():
            try:
                return await (_connect_tcp(url) if scheme == "tcp" else _connect_web_socket(url))
            except OSError as error:
                failure = error
            await anyio.sleep(_RETRY_S)
    how = "the server has ended" if has_ended() else failure or "no answer"
    raise ScriptError(f"cannot connect to {url!r} within {seconds:g} s: {how}")


async def _connect_tcp(url: str) -> Link:
    try:
        address = urlsplit(url)
        host, port = address.hostname, address.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise ScriptError(f"invalid URL {url!r}: expected tcp://HOST:PORT")
    return Tcp(await anyio.connect_tcp(host, port))


async def _connect_web_socket(url: str) -> Link:
    try:
        from websockets.asyncio.client import connect as connect_web_socket
        from websockets.exceptions import InvalidHandshake, InvalidURI
    except ImportError:
        raise ScriptError("scripts over WebSocket need the package 'websockets'") from None
    try:
        return WebSocket(await connect_web_socket(url, max_size=None, proxy=None))
    except InvalidURI:
        raise ScriptError(f"invalid URL {url!r}") from None
    except InvalidHandshake as error:
        raise ScriptError(f"{url!r} refused the connection: {error}") from None
