"""Connections to a server that speaks ACP: over a WebSocket, or TCP with one message per line."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import urlsplit

from jumpseat.errors import ConfigError, InvalidRequestError, JumpseatError
from jumpseat_protocol.envelope import MAX_BODY_BYTES

OPEN_S: Final = 20.0
"""The time for a connection to be opened, in seconds."""
DEFAULT_PATH: Final = "/acp"
_FORMS: Final = "expected wss://HOST[:PORT], ws://HOST:PORT, tcps://HOST:PORT or tcp://HOST:PORT"
_WEB: Final = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


class LinkError(JumpseatError):
    """A connection cannot be opened, or has ended."""


class RefusedError(LinkError):
    """The server does not want this client: another attempt would end in the same way."""


class Link(Protocol):
    """An open connection. ``takes_token`` is whether the first request has to contain the token."""

    takes_token: bool

    async def send(self, body: bytes) -> None:
        """Send a message.

        Raises:
            LinkError: the connection has ended.
        """
        ...

    async def receive(self) -> bytes:
        """Return the next message.

        Raises:
            LinkError: the connection has ended.
        """
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


Open: TypeAlias = Callable[[], Awaitable[Link]]


def opener(url: str, token: str | None, authority: str | None = None) -> Open:
    """Return the function that connects to a server. ``authority`` is the file of a certificate authority.

    Raises:
        InvalidRequestError: the URL has another form.
        ConfigError: the file of the authority cannot be used.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.username is not None or parts.query or parts.fragment:
        # Other users of the machine see the arguments of processes.
        raise InvalidRequestError("--connect: expected a URL without a token or a name: the token is in a variable")
    if not parts.hostname or port == -1 or parts.scheme not in (*_WEB, "tcp", "tcps"):
        raise InvalidRequestError(f"--connect: {_FORMS}")
    tls = _context(authority) if parts.scheme in ("wss", "https", "tcps") else None
    if parts.scheme in _WEB:
        path = parts.path if parts.path not in ("", "/") else DEFAULT_PATH
        address = f"{_WEB[parts.scheme]}://{parts.netloc}{path}"
        return lambda: open_web_socket(address, token, tls)
    if port is None or parts.path not in ("", "/"):
        raise InvalidRequestError(f"--connect: {_FORMS}")
    host = parts.hostname
    return lambda: open_tcp(host, port, tls)


def _context(authority: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authority)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"--tls-ca {authority!r}: {error.strerror or error}") from None


def _explain(error: BaseException, *, tls: bool) -> str:
    """Return the reason why a connection failed, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the server is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or 'unknown reason'}): does the server use TLS?"
    if isinstance(error, TimeoutError):
        return f"no answer within {OPEN_S:.0f} s"
    if tls and isinstance(error, ConnectionResetError):
        return "the server has closed the connection: does the server use TLS?"
    if isinstance(error, OSError):
        return f"{error.strerror or error}: is the server running?"
    return str(error)


async def open_tcp(host: str, port: int, tls: ssl.SSLContext | None) -> Link:
    """Connect over TCP.

    Raises:
        LinkError: nothing listens at the address, or TLS fails.
    """
    try:
        async with asyncio.timeout(OPEN_S):
            streams = await asyncio.open_connection(host, port, ssl=tls, limit=MAX_BODY_BYTES)
    except OSError as error:
        refused = RefusedError if isinstance(error, ssl.SSLCertVerificationError) else LinkError
        raise refused(f"cannot connect to {host}:{port}: {_explain(error, tls=tls is not None)}") from None
    return TcpLink(*streams)


class TcpLink:
    """A TCP connection. See :class:`Link`."""

    takes_token = True

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, body: bytes) -> None:
        try:
            self._writer.write(body + b"\n")
            await self._writer.drain()
        except OSError as error:
            raise LinkError(f"the connection has ended: {error.strerror or error}") from None

    async def receive(self) -> bytes:
        try:
            return (await self._reader.readuntil(b"\n"))[:-1]
        except asyncio.IncompleteReadError:
            raise LinkError("the server has closed the connection") from None
        except asyncio.LimitOverrunError:
            raise LinkError("the server has sent a message that is too long") from None
        except OSError as error:
            raise LinkError(f"the connection has ended: {error.strerror or error}") from None

    async def close(self) -> None:
        self._writer.close()


async def open_web_socket(address: str, token: str | None, tls: ssl.SSLContext | None) -> Link:
    """Connect over a WebSocket. Redirects are not followed, because they would take the token elsewhere.

    Raises:
        LinkError: nothing listens at the address, TLS fails, or a package is missing.
        RefusedError: the server refuses the token, or is none.
    """
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidHandshake, InvalidStatus
    except ModuleNotFoundError:
        from jumpseat.system.installation import how_to_add

        raise RefusedError(f"WebSockets need the package 'websockets': {how_to_add('web')}") from None

    class Direct(connect):
        def process_redirect(self, exc: Exception) -> Exception | str:
            return exc

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    given: dict[str, Any] = {"ssl": tls} if tls is not None else {}
    try:
        client = await Direct(
            address,
            additional_headers=headers,
            max_size=MAX_BODY_BYTES,
            open_timeout=OPEN_S,
            compression=None,
            **given,
        )
    except InvalidStatus as error:
        status = error.response.status_code
        if status in (401, 403):
            raise RefusedError(f"{address}: the server refused the connection token, or there is none") from None
        refused = RefusedError if status < 500 else LinkError
        raise refused(f"{address}: expected a WebSocket for ACP, got HTTP status {status}") from None
    except (OSError, InvalidHandshake) as error:
        refused = RefusedError if isinstance(error, ssl.SSLCertVerificationError) else LinkError
        raise refused(f"cannot connect to {address}: {_explain(error, tls=tls is not None)}") from None
    return WebSocketLink(client)


class WebSocketLink:
    """A WebSocket. See :class:`Link`."""

    takes_token = False

    def __init__(self, client: Any) -> None:
        self._client = client

    async def send(self, body: bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._client.send(body, text=True)
        except ConnectionClosed:
            raise LinkError("the server has closed the connection") from None

    async def receive(self) -> bytes:
        from websockets.exceptions import ConnectionClosed

        try:
            return await self._client.recv(decode=False)
        except ConnectionClosed:
            raise LinkError("the server has closed the connection") from None

    async def close(self) -> None:
        await self._client.close()
