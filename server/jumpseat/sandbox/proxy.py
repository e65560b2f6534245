"""The proxy between confined commands and the hosts that they may reach: HTTP, and ``CONNECT`` for everything else.

The proxy makes no decisions: one function admits each connection, another opens it. Only the first request of a
client is parsed; the rest is relayed in both directions. https://www.rfc-editor.org/rfc/rfc9110#CONNECT describes
the method, https://www.rfc-editor.org/rfc/rfc9112#section-3.2.2 the requests for other URLs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream
from msgspec import Struct

from jumpseat.sandbox.settings import normalize

if TYPE_CHECKING:
    import h11

log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 256
"""Limit of the connections of one session at a time; others are refused."""

MAX_HEAD_BYTES: Final = 64 * 1024

HEAD_S: Final = 30.0
"""Time limit for a client to send its request."""

CONNECT_S: Final = 30.0
"""Time limit for connecting to a host."""

_HOST: Final = re.compile(r"[a-z0-9_.:-]+")
_OWN_HEADERS: Final = frozenset(
    {b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"host"}
)


class UnreachableError(Exception):
    """A host cannot be reached; the message is the reason."""


class Connect(Protocol):
    """The interface of a function that connects to a host."""

    async def __call__(self, host: str, port: int, *, private: bool, proxy: str | None) -> ByteStream:
        """Connect to ``host``; to an address of a private network only if ``private``.

        ``proxy`` is the address of a proxy to use instead of the proxy in the environment.

        Raises:
            UnreachableError: the host is private, does not exist, or refuses the connection.
        """
        ...


class Target(Struct, frozen=True):
    """A host that a program wants to reach, and the URL to show to a person who decides about it."""

    host: str
    port: int
    url: str


Admit: TypeAlias = Callable[[Target], Awaitable[str | None]]
"""Decides about a connection, and may wait for a person; returns the reason for a refusal, ``None`` to connect."""

Open: TypeAlias = Callable[[Target], Awaitable[ByteStream]]


class _RefusedError(Exception):
    """A request that the proxy answers itself, with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class HostProxy:
    """Serves the connections of one session's commands. ``connect`` raises :class:`UnreachableError`."""

    def __init__(self, admit: Admit, connect: Open) -> None:
        self._admit = admit
        self._connect = connect
        self._places = anyio.CapacityLimiter(MAX_CONNECTIONS)

    async def serve(self, client: ByteStream) -> None:
        """Serve one connection until both sides have closed it."""
        async with client:
            try:
                self._places.acquire_nowait()
            except anyio.WouldBlock:
                return
            try:
                await self._serve(client)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, TimeoutError):
                pass
            except Exception:
                log.exception("the proxy of a sandbox failed")
            finally:
                self._places.release()

    async def _serve(self, client: ByteStream) -> None:
        try:
            with anyio.fail_after(HEAD_S):
                head, rest = await _read_head(client)
            request = _parse(head)
            target = _target(request)
            refused, early = await self._ask(client, target)
            if refused is not None:
                raise _RefusedError(403, refused)
            upstream = await self._open(target)
        except _RefusedError as error:
            await client.send(_response(error.status, str(error)))
            return
        async with upstream:
            if request.method == b"CONNECT":
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                await upstream.send(_forwarded(request, target))
            if rest + early:
                await upstream.send(rest + early)
            await _relay(client, upstream)

    async def _ask(self, client: ByteStream, target: Target) -> tuple[str | None, bytes]:
        """Return the reason for a refusal, and the data that the client sent meanwhile.

        Raises:
            anyio.EndOfStream: the client has disconnected, so that no decision is needed.
        """
        early = bytearray()
        reasons: list[str | None] = []

        async def watch() -> None:
            try:
                while len(early) < MAX_HEAD_BYTES:
                    early.extend(await client.receive())
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            reasons.append(await self._admit(target))
            tasks.cancel_scope.cancel()
        if not reasons:
            raise anyio.EndOfStream
        return reasons[0], bytes(early)

    async def _open(self, target: Target) -> ByteStream:
        try:
            with anyio.fail_after(CONNECT_S):
                return await self._connect(target)
        except TimeoutError:
            raise _RefusedError(504, f"{target.host} did not answer") from None
        except UnreachableError as error:
            raise _RefusedError(502, f"{target.host} cannot be reached: {error}") from None


async def _read_head(client: ByteStream) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        if len(data) > MAX_HEAD_BYTES:
            raise _RefusedError(431, "the request has too many headers")
        data += await client.receive()
    head, end, rest = data.partition(b"\r\n\r\n")
    return head + end, rest


def _parse(head: bytes) -> h11.Request:
    # Imported here, because most processes run no command that connects.
    import h11

    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
    connection.receive_data(head)
    try:
        event = connection.next_event()
    except h11.RemoteProtocolError:
        event = None
    if not isinstance(event, h11.Request):
        raise _RefusedError(400, "expected an HTTP request")
    return event


def _target(request: h11.Request) -> Target:
    text = request.target.decode("ascii", "replace")
    tunnel = request.method == b"CONNECT"
    try:
        parts = urlsplit(f"//{text}" if tunnel else text)
        host, port = normalize(parts.hostname or ""), parts.port or (None if tunnel else 80)
        known = tunnel or parts.scheme == "http"
    except ValueError:
        host, port, known = "", None, False
    if not _HOST.fullmatch(host) or port is None or not known:
        raise _RefusedError(400, "expected CONNECT with a host and a port, or a URL that begins with http://")
    scheme, default_port = ("https", 443) if tunnel else ("http", 80)
    shown = f"[{host}]" if ":" in host else host
    return Target(host, port, f"{scheme}://{shown}/" if port == default_port else f"{scheme}://{shown}:{port}/")


def _forwarded(request: h11.Request, target: Target) -> bytes:
    """Return the head of a request in the form that the host expects. The connection serves one request only."""
    parts = urlsplit(request.target.decode("ascii", "replace"))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = target.url.removeprefix("http://").rstrip("/")
    lines = [b"%s %s HTTP/1.1" % (request.method, path.encode()), b"Host: %s" % host.encode(), b"Connection: close"]
    lines += [b"%s: %s" % (name, value) for name, value in request.headers if name not in _OWN_HEADERS]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _response(status: int, text: str) -> bytes:
    body = f"The sandbox: {text}\n".encode()
    head = (
        f"HTTP/1.1 {status} Refused by the sandbox\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def _relay(client: ByteStream, upstream: ByteStream) -> None:
    async with anyio.create_task_group() as tasks:

        async def copy(source: ByteStream, target: ByteStream) -> None:
            try:
                async for data in source:
                    await target.send(data)
                await target.send_eof()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                tasks.cancel_scope.cancel()

        tasks.start_soon(copy, client, upstream)
        tasks.start_soon(copy, upstream, client)
