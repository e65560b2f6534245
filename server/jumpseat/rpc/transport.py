"""The bytes of one connection, over stdio pipes or a TCP socket, and its messages in the log.

Messages are written once per turn of the event loop, all together. asyncio's transport buffers the bytes that the
peer has not read. Three limits on this buffer protect others from a peer that stops reading: above ``BUSY_BYTES``
producers wait, above ``LOSSY_BYTES`` deltas are held and joined, above ``BROKEN_BYTES`` the connection is closed.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import stat
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple, Protocol, cast

import anyio
import anyio.to_thread
import orjson
from msgspec import Struct

from jumpseat.errors import JumpseatError
from jumpseat.parsing.json_text import read_json
from jumpseat.system.log_fields import fields
from jumpseat_protocol.envelope import FrameDecoder, FramingError, LineDecoder, frame_header

log = logging.getLogger(__name__)

AT_ONCE_S: Final = 0.01
"""The time for messages of one client, in seconds, after which those of others have their turn."""
BUSY_BYTES: Final = 1 << 20
LOSSY_BYTES: Final = 8 << 20
BROKEN_BYTES: Final = 256 << 20


class Decoder(Protocol):
    """Splits a stream of bytes into messages, each of which has at most ``max_body_bytes``."""

    max_body_bytes: int

    def feed(self, data: bytes) -> Iterable[bytes | FramingError]: ...


class Framing(Struct, frozen=True):
    """The separation of messages: by headers, or by line ends. ``header`` takes the number of bytes of a body.

    ``last`` is sent before this side closes the connection.
    """

    decoder: Callable[[], Decoder]
    header: Callable[[int], bytes]
    end: bytes
    last: bytes = b""


HEADERS: Final = Framing(FrameDecoder, frame_header, b"")
LINES: Final = Framing(LineDecoder, lambda _body_bytes: b"", b"\n")


class Wire(asyncio.Protocol):
    """The transport of one peer.

    ``on_body`` takes each message; ``on_close`` is called once, at the end. ``on_read`` is called when the peer has
    read most of the bytes, after more than ``BUSY_BYTES`` were unread. ``on_end`` is called when the peer sends no
    more, and may still read; it closes the connection soon. Without it, that is the end of the connection.
    """

    def __init__(
        self,
        on_body: Callable[[bytes], None],
        on_framing_error: Callable[[FramingError], None],
        on_close: Callable[[], None],
        framing: Framing = HEADERS,
        on_read: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self._on_read = on_read
        self._on_end = on_end
        self._on_body = on_body
        self._on_framing_error = on_framing_error
        self._on_close = on_close
        self._decoder = framing.decoder()
        self._framing = framing
        self._out: asyncio.WriteTransport | None = None
        self._parts: list[bytes | memoryview] = []
        self._queued_bytes = 0
        self._broken_bytes = BROKEN_BYTES
        self._drained = anyio.Event()
        self._drained.set()
        self._paused = False
        self._closed = False
        self._received: deque[bytes] = deque()
        self._items: Iterator[bytes | FramingError] = iter(())
        # What happens once all messages are handled, if the transport has ended.
        self._at_end: Callable[[], None] | None = None
        self.behind = False
        """Whether messages that have arrived wait until others have had their turn."""
        self.failure: str | None = None
        """The reason why the connection has ended, if it is no end that the peer wanted."""

    # --- asyncio calls these ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.set_write_buffer_limits(high=BUSY_BYTES, low=BUSY_BYTES // 4)
        self._out = transport

    def data_received(self, data: bytes) -> None:
        if self._closed:
            return
        self._received.append(data)
        if not self.behind:
            self._handle_received()

    def _handle_received(self) -> None:
        """Handle messages for a while; the rest of them waits until other clients have had their turn."""
        was_behind, self.behind = self.behind, False
        until = time.monotonic() + AT_ONCE_S
        while not self._closed:
            item = next(self._items, None)
            if item is None:
                if not self._received:
                    break
                self._items = iter(self._decoder.feed(self._received.popleft()))
            elif isinstance(item, bytes):
                self._on_body(item)
            else:
                self._on_framing_error(item)
            if time.monotonic() > until and not self._closed:
                self.behind = True
                break
        if self.behind != was_behind and isinstance(self._out, asyncio.Transport) and not self._closed:
            # A pipe for writing calls itself a transport, too, but reads nothing.
            with suppress(NotImplementedError):
                (self._out.pause_reading if self.behind else self._out.resume_reading)()
        if self.behind:
            asyncio.get_running_loop().call_soon(self._handle_received)
        elif self._at_end is not None:
            self._at_end()

    def eof_received(self) -> bool:
        """Return whether the connection stays open for sending."""
        # asyncio closes both directions of TLS.
        has_tls = self._out is not None and self._out.get_extra_info("ssl_object") is not None
        if self.behind and not has_tls:
            self._at_end = self._end_later
        elif self._on_end is None or has_tls:
            self._handle_loss()
        elif not self._closed:
            self._on_end()
        return not self._closed

    def _end_later(self) -> None:
        if not self.eof_received() and self._out is not None:
            self._out.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.behind and not self._closed:
            # Messages that have arrived count; the responses are not read.
            self._out, self._at_end = None, self._handle_loss
            self._drained.set()
        else:
            self._handle_loss()

    def pause_writing(self) -> None:
        self._paused = True
        if self._drained.is_set():
            self._drained = anyio.Event()

    def resume_writing(self) -> None:
        self._paused = False
        self._drained.set()
        self._on_read()

    # --- the connection calls these -----------------------------------------------------------------------------

    def send(self, *body: bytes | memoryview) -> None:
        """Queue a message, given in parts, without blocking. After the end of the connection it is dropped.

        Nothing is raised.
        """
        if self._closed or self._out is None:
            return
        size = sum(map(len, body))
        if size > BUSY_BYTES:
            # Joined, the parts of a large message would be copied.
            self.flush()
            for part in (self._framing.header(size), *body, self._framing.end):
                self._write(part)
            return
        if not self._parts:
            asyncio.get_running_loop().call_soon(self.flush)
        self._parts += (self._framing.header(size), *body, self._framing.end)
        self._queued_bytes += size
        if self._queued_bytes > min(BUSY_BYTES, self._broken_bytes):
            self.flush()

    @property
    def open(self) -> bool:
        """Return whether the connection has not ended."""
        return not self._closed

    @property
    def unsent(self) -> bool:
        """Return whether messages are queued."""
        self.flush()
        return self._out is not None and self._out.get_write_buffer_size() > 0

    @property
    def busy(self) -> bool:
        """Return whether more than ``BUSY_BYTES`` are waiting for the peer to read."""
        return not self._drained.is_set()

    @property
    def lossy(self) -> bool:
        """Return whether more than ``LOSSY_BYTES`` are waiting, so that deltas should wait."""
        # The size is asked for only then, because this is called for every delta.
        return self._paused and self._out is not None and self._out.get_write_buffer_size() > LOSSY_BYTES

    async def drain(self) -> None:
        """Wait until the peer has read most of the queued bytes. Return at once if the connection is closed."""
        if self._parts:
            self.flush()
        await self._drained.wait()

    async def wait_until_sent(self) -> None:
        """Wait until no queued bytes are left, or the connection is closed. Nothing more may be sent."""
        if self.unsent and self._out is not None:
            # From now on, drained means that the buffer is empty.
            self._out.set_write_buffer_limits(high=0)
        await self._drained.wait()

    def limit(self, message_bytes: int, unread_bytes: int = BROKEN_BYTES) -> None:
        """Refuse longer messages from now on, and close the connection when the peer leaves more bytes unread."""
        self._decoder.max_body_bytes = message_bytes
        self._broken_bytes = unread_bytes

    def abort(self) -> None:
        """Close both sides at once, without sending the queued messages."""
        if self._out is not None:
            self._out.abort()
        self._handle_loss()

    def close(self) -> None:
        """Send the queued messages and close this side."""
        self.flush()
        if self._out is not None:
            if self._framing.last and not self._out.is_closing():
                self._out.write(self._framing.last)
            self._out.close()
        self._handle_loss()

    def flush(self) -> None:
        """Hand the queued messages to the transport."""
        if not self._parts:
            return
        data = b"".join(self._parts)
        self._parts.clear()
        self._queued_bytes = 0
        self._write(data)

    def _write(self, data: bytes | memoryview) -> None:
        if self._out is None or self._closed:
            return
        self._out.write(data)
        if self._out.get_write_buffer_size() > self._broken_bytes:
            log.error("a client has stopped reading: closing its connection")
            self._out.abort()
            self._handle_loss()

    def fail(self, reason: str) -> None:
        """End the connection, whose file cannot be used any more."""
        self.failure = self.failure or reason
        self._handle_loss()

    def _handle_loss(self) -> None:
        if not self._closed:
            self._closed = True
            self._drained.set()
            self._on_close()


class Stdio(NamedTuple):
    """The files of the protocol. They are kept here: a file that nothing refers to is closed."""

    stdin: io.FileIO
    stdout: io.FileIO


def take_stdio() -> Stdio:
    """Reserve stdin and stdout for the protocol. From here on fd 1 is stderr, so that stray prints are harmless.

    Raises:
        JumpseatError: stdin or stdout is closed, or cannot be used in its direction.
    """
    # The interpreter looks when it starts. Later, something else may have been opened as 0 or 1.
    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - not if closed
        raise JumpseatError("stdin and stdout must be open: the protocol uses them")
    taken = Stdio(_open(0, "rb"), _open(1, "wb"))
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    # What a tool prints is read in a log, also if the process ends abruptly.
    cast("io.TextIOWrapper", sys.stdout).reconfigure(line_buffering=True)
    return taken


def _open(fd: int, mode: Literal["rb", "wb"]) -> io.FileIO:
    """Return a copy of stdin or stdout."""
    name = ("stdin", "stdout")[fd]
    try:
        if sys.platform != "win32":
            import fcntl

            access = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
            if access == (os.O_WRONLY if fd == 0 else os.O_RDONLY):
                raise JumpseatError(f"{name} cannot be {'read' if fd == 0 else 'written'}: the protocol uses it")
        return os.fdopen(os.dup(fd), mode, buffering=0)
    except OSError as error:
        raise JumpseatError(f"cannot use {name}: {error.strerror or error}") from None


async def open_stdio(wire: Wire, stdio: Stdio) -> None:
    """Connect ``wire`` to two files of any kind: pipes, sockets, terminals, plain files, the null device."""
    loop = asyncio.get_running_loop()
    if _is_polled(stdio.stdout):
        await loop.connect_write_pipe(lambda: wire, stdio.stdout)
    else:
        wire.connection_made(_FileWriter(stdio.stdout, wire.fail))
    if _is_polled(stdio.stdin):
        await loop.connect_read_pipe(lambda: _Input(wire), stdio.stdin)
    else:
        await _read_file(wire, stdio.stdin)


class _Input(asyncio.Protocol):
    """The read side of ``wire``: its end is not the end of the connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def data_received(self, data: bytes) -> None:
        self._wire.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wire.eof_received()


def _is_polled(file: io.FileIO) -> bool:
    """Return whether asyncio can wait for a file. It takes all devices for pipes, but polls terminals only."""
    kind = os.fstat(file.fileno()).st_mode
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or file.isatty()


async def _read_file(wire: Wire, file: io.FileIO) -> None:
    try:
        while data := await anyio.to_thread.run_sync(file.read, 1 << 16):
            wire.data_received(data)
    except OSError as error:
        wire.fail(f"cannot read stdin: {error.strerror or error}")
    wire.eof_received()


class _FileWriter(asyncio.WriteTransport):
    """A file as a transport. Writing does not block, so nothing is queued."""

    def __init__(self, file: io.FileIO, fail: Callable[[str], None]) -> None:
        super().__init__()
        self._file = file
        self._fail = fail

    def write(self, data: bytes | bytearray | memoryview) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            self._fail(f"cannot write to stdout: {error.strerror or error}")

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: nothing is buffered."""

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        """Do nothing: the file is closed with the process."""

    def abort(self) -> None:
        """Do nothing: the file is closed with the process."""


_messages = logging.getLogger("jumpseat.wire")

MASK: Final = "[redacted]"

LONGEST_CHARS: Final = 4000
"""The length from which a message is cut."""

_CREDENTIAL: Final = re.compile(
    r"token|key|secret|pass(?:w|phrase|$)|pwd|authorization|credential|cookie|signature|bearer|jwt|connection_?string",
    re.IGNORECASE,
)
# All members of these hold values that may be credentials, whatever their names are.
_CREDENTIALS: Final = re.compile(r"(?:headers|env|environment)$", re.IGNORECASE)
# An argument of a program that is only a name: what follows it, or stands in it, may be a credential.
_FLAG: Final = re.compile(r"--[A-Za-z][\w-]*|-[A-Za-z]|(--[A-Za-z][\w-]*=).*", re.DOTALL)
# The name and the password in a URL, the same in one without a scheme, and the parameters of its query.
_USER: Final = re.compile(r":/+[^/?#\s]*@")
_BARE_USER: Final = re.compile(r"^\s*/*[^/?#\s]*@")
_ADDRESS: Final = re.compile(r"ur[li]$|address|endpoint|host", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"([?&][^=&?#\s]+=)[^&?#\s]+")


def log_message(label: Callable[[], str], direction: str, body: bytes, mask: Callable[[str], str]) -> None:
    """Log one message; ``direction`` is ``received`` or ``sent``. ``mask`` removes known secrets from a string."""
    if _messages.isEnabledFor(logging.DEBUG):
        _messages.debug(direction, extra=fields(client=label(), bytes=len(body), body=_masked(body, mask)))


def _masked(body: bytes, mask: Callable[[str], str]) -> str:
    try:
        value = read_json(body)
    except orjson.JSONDecodeError:
        return "(not JSON)"
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    # The params of these methods are secrets, under names that tell nothing.
    is_secret = str(members.get("method")).startswith("secrets.")
    shown = {**members, "params": MASK} if is_secret else _mask(value, mask)
    text = orjson.dumps(shown, default=str).decode()
    return text if len(text) <= LONGEST_CHARS else text[:LONGEST_CHARS] + "..."


def _mask(value: Any, mask: Callable[[str], str], name: str = "", *, all_members: bool = False) -> Any:
    if isinstance(value, dict):
        inside = all_members or _CREDENTIALS.search(name) is not None
        members = cast("dict[str, Any]", value)
        return {mask(key): _mask(item, mask, key, all_members=inside) for key, item in members.items()}
    if isinstance(value, list):
        return [_mask(item, mask, name, all_members=all_members) for item in cast("list[Any]", value)]
    if not isinstance(value, str) or not value:
        return value
    if all_members or _CREDENTIAL.search(name):
        return MASK
    if name == "args":
        flag = _FLAG.fullmatch(value)
        return MASK if flag is None else f"{flag[1]}{MASK}" if flag[1] else value
    value = _USER.sub(f"://{MASK}@", mask(value))
    if _ADDRESS.search(name):
        value = _BARE_USER.sub(f"{MASK}@", value)
    return _PARAMETER.sub(_mask_parameter, value)


def _mask_parameter(found: re.Match[str]) -> str:
    return f"{found[1]}{MASK}" if _CREDENTIAL.search(found[1]) else found[0]
