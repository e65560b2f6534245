"""A server that is a child process: its process group, its three pipes, and its end.

The package's own transport reads lines of any length, hands the server our stderr and waits seconds for its end;
this one bounds what a server may say, keeps its stderr for the log, and leaves nothing of its group behind.
"""

from __future__ import annotations

import logging
import subprocess
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage

from jumpseat.process_groups import kill_group, terminate_group
from jumpseat_protocol.mcp import McpServerConfig

log = logging.getLogger(__name__)

MAX_LINE_BYTES: Final = 32 * 1024 * 1024
"""The longest message a server may send."""

MAX_NOISE: Final = 1000
"""Lines in a row on stdout that are no messages, before the server is given up."""

CLOSE_S: Final = 0.5
"""Between the end of its stdin and SIGTERM, where there is time."""

TERMINATE_S: Final = 1.0
"""Between SIGTERM and SIGKILL."""

LOOK_AGAIN_S: Final = 0.05
"""How soon it is noticed that there is less time than there was."""

STDERR_LINES: Final = 5
STDERR_LINE_BYTES: Final = 500
DRAIN_S: Final = 0.25
STDERR_LOGGED: Final = 200
"""Lines of a server's stderr that reach the log; a server may be as talkative as it likes."""

INHERITED: Final = frozenset(
    {
        "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER",
        "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP",
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
        "APPDATA", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "USERPROFILE",
    }
)  # fmt: skip
"""What a server gets of our environment; the rest, and all keys with it, must be given to it by name."""

Incoming: TypeAlias = SessionMessage | Exception
Streams: TypeAlias = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


class ServerFailedError(Exception):
    """The server cannot be run, or said what it should not; the text may be shown."""


def child_environment(environ: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server."""
    kept = {name: value for name, value in environ.items() if name in INHERITED or name.startswith(("LC_", "XDG_"))}
    return {**kept, **given}


class Child:
    """The process of a server. ``problem`` tells why it is given up; what it says on stderr is kept masked."""

    def __init__(self, process: Process, mask: Callable[[str], str], name: str) -> None:
        self._process = process
        self._mask = mask
        self._name = name
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._logged = 0
        self._drained = anyio.Event()
        self.problem: str | None = None

    async def last_words(self) -> str:
        """The end of its stderr, as soon as all of it has been read."""
        with anyio.move_on_after(DRAIN_S):
            await self._drained.wait()
        return "\n".join(self._stderr)

    async def read_stderr(self) -> None:
        assert self._process.stderr is not None
        try:
            async for line in _lines(self._process.stderr, STDERR_LINE_BYTES, cut=True):
                text = self._mask(line.decode(errors="replace").strip())
                if not text:
                    continue
                self._stderr.append(text)
                self._logged += 1
                if self._logged <= STDERR_LOGGED:
                    log.info("MCP server %s: %s", self._name, text)
        finally:
            self._drained.set()

    async def end(self, close_s: Callable[[], float]) -> None:
        """Ask it to go, then make it: nothing of its process group is left. Not interruptible, but bounded.

        ``close_s`` is asked again while it is waited for: it becomes less where all of the server ends.
        """
        process = self._process
        with anyio.CancelScope(shield=True):
            if process.stdin is not None:
                with (
                    suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError),
                    anyio.move_on_after(0.1),
                ):
                    await process.stdin.aclose()
            await self._ended_within(close_s)
            if process.returncode is None:
                self._signal(terminate_group)
                await self._ended_within(lambda: min(TERMINATE_S, close_s()))
            # Also where the leader has gone: it may have left others behind.
            self._signal(kill_group)
            with anyio.move_on_after(1.0):
                await process.aclose()

    async def _ended_within(self, limit_s: Callable[[], float]) -> None:
        began = anyio.current_time()
        while self._process.returncode is None and (left := began + limit_s() - anyio.current_time()) > 0:
            with anyio.move_on_after(min(left, LOOK_AGAIN_S)):
                await self._process.wait()

    def _signal(self, send: Callable[[int], None]) -> None:
        with suppress(ProcessLookupError, PermissionError):
            send(self._process.pid)


@asynccontextmanager
async def stdio_streams(
    config: McpServerConfig,
    *,
    name: str,
    cwd: Path,
    environ: Mapping[str, str],
    mask: Callable[[str], str],
    close_s: Callable[[], float] = lambda: CLOSE_S,
) -> AsyncGenerator[tuple[Streams, Child], None]:
    """Run a server. Its incoming stream ends when it has gone; :attr:`Child.problem` may then tell why.

    Raises:
        ServerFailedError: it cannot be started.
    """
    process = await _spawn(config, cwd, environ)
    child = Child(process, mask, name)
    send_in, incoming = anyio.create_memory_object_stream[Incoming]()
    outgoing, take_out = anyio.create_memory_object_stream[SessionMessage]()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(child.read_stderr)
            tasks.start_soon(_read, process, send_in, child)
            tasks.start_soon(_write, process, take_out)
            try:
                yield (incoming, outgoing), child
            finally:
                tasks.cancel_scope.cancel()
    finally:
        for stream in (send_in, incoming, outgoing, take_out):
            stream.close()
        await child.end(close_s)


async def _spawn(config: McpServerConfig, cwd: Path, environ: Mapping[str, str]) -> Process:
    command = [config.command or "", *(config.args or [])]
    spawned: list[Process] = []
    # Interrupted between fork and the beginning of its care, it would be lost.
    with anyio.CancelScope(shield=True):
        try:
            spawned.append(
                await anyio.open_process(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=cwd / config.cwd if config.cwd else cwd,
                    env=child_environment(environ, config.env or {}),
                    start_new_session=True,
                )
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ServerFailedError(f"cannot run {command[0]!r}: {reason}") from None
    return spawned[0]


async def _read(process: Process, messages: MemoryObjectSendStream[Incoming], child: Child) -> None:
    assert process.stdout is not None
    noise = 0
    with messages, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        try:
            async for line in _lines(process.stdout, MAX_LINE_BYTES):
                if not line.strip():
                    continue
                try:
                    message = JSONRPCMessage.model_validate_json(line)
                except ValueError:
                    # Servers print banners on stdout; that is not fatal as long as messages follow.
                    noise += 1
                    if noise > MAX_NOISE:
                        child.problem = "its output is not that of an MCP server"
                        return
                    continue
                noise = 0
                await messages.send(SessionMessage(message))
        except ServerFailedError as error:
            child.problem = str(error)


async def _write(process: Process, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None
    with messages, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async for message in messages:
            text = message.message.model_dump_json(by_alias=True, exclude_none=True)
            await process.stdin.send(text.encode() + b"\n")


async def _lines(stream: ByteReceiveStream, longest: int, *, cut: bool = False) -> AsyncGenerator[bytes, None]:
    """The lines of a stream. One that is too long is cut, or ends it all.

    Raises:
        ServerFailedError: a line is too long.
    """
    parts: list[bytes] = []
    size = 0
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async for chunk in stream:
            first, *rest = chunk.split(b"\n")
            if piece := first[: max(0, longest - size)] if cut else first:
                parts.append(piece)
                size += len(piece)
            for line in rest:
                yield b"".join(parts)
                parts = [line[:longest] if cut else line]
                size = len(parts[0])
            if size > longest:
                raise ServerFailedError(f"it sent a message of more than {longest // (1024 * 1024)} MiB")
    if parts and (last := b"".join(parts)):
        yield last
