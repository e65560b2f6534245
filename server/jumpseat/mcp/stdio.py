"""Transport to servers that run as child processes: the process group, its three pipes, and its end.

The package's own transport reads lines of any length, lets the server inherit our stderr and waits seconds for its
end. This one limits the size of messages, logs stderr, and leaves no process of the group behind.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from jumpseat.parsing.json_text import read_json
from jumpseat.sandbox.session import Confined, SessionSandbox
from jumpseat.sandbox.session_network import Reach
from jumpseat.system.descendants import PREFIX
from jumpseat.system.process_groups import kill_group, start_group, terminate_group, terminate_members
from jumpseat_protocol.mcp_servers import McpServerConfig

log = logging.getLogger(__name__)

MAX_LINE_BYTES: Final = 32 * 1024 * 1024
"""Largest size of a message from a server."""

MAX_INVALID_LINES: Final = 1000
"""Consecutive lines on stdout that are not messages, after which the server is given up."""

CLOSE_S: Final = 0.5
"""Time between closing the server's stdin and SIGTERM."""

TERMINATE_S: Final = 1.0
"""Time between SIGTERM and SIGKILL."""

POLL_S: Final = 0.05
"""Interval at which a shortened time limit is noticed."""

STDERR_LINES: Final = 5
STDERR_LINE_BYTES: Final = 500
DRAIN_S: Final = 0.25
STDERR_LOGGED: Final = 200
"""Lines of a server's stderr that are logged; the rest is read and dropped."""

INHERITED: Final = frozenset(
    {
        "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER",
        "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP",
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
        "APPDATA", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "USERPROFILE",
    }
)  # fmt: skip
"""Variables that a server inherits from our environment; others, API keys among them, must be set explicitly."""

Incoming: TypeAlias = SessionMessage | Exception
Streams: TypeAlias = tuple[ReadStream[Incoming], WriteStream[SessionMessage]]


_ID: Final = rb'"id" ?: ?(?:(\d{1,15})(?!\d)|"([^"\\]{1,100})")'
_LARGE_BYTES: Final = 1 << 16
_END_BYTES: Final = 256
"""The ends of a message that cannot be parsed, in which its id is looked for."""


class ServerFailedError(Exception):
    """The server cannot be run or violated the protocol; the text may be shown to the user."""


def child_environment(environ: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: the inherited variables of ``environ``, overridden by ``given``."""
    prefixes = ("LC_", "XDG_", PREFIX)
    inherited = {name: value for name, value in environ.items() if name in INHERITED or name.startswith(prefixes)}
    return {**inherited, **given}


class Child:
    """The process of a server.

    ``problem`` is the reason why the server was given up, if it was. ``mask`` removes secrets from its stderr. With
    ``has_namespace``, the process is that of a sandbox.
    """

    def __init__(
        self, process: Process, mask: Callable[[str], str], name: str, *, has_namespace: bool = False
    ) -> None:
        self._process = process
        self._terminate = terminate_members if has_namespace else terminate_group
        self._mask = mask
        self._name = name
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._logged = 0
        self._drained = anyio.Event()
        self.problem: str | None = None

    async def stderr_tail(self) -> str:
        """Return the last lines of the server's stderr, after waiting a moment for all of it to be read."""
        with anyio.move_on_after(DRAIN_S):
            await self._drained.wait()
        return "\n".join(self._stderr)

    async def read_stderr(self) -> None:
        """Read the server's stderr to its end, log it and keep its last lines."""
        assert self._process.stderr is not None
        try:
            async for line in _lines(self._process.stderr, STDERR_LINE_BYTES, cut=True):
                text = self._mask(line.decode(errors="replace").strip())
                if not text:
                    continue
                self._stderr.append(text)
                self._logged += 1
                if self._logged <= STDERR_LOGGED:
                    # A server may write what it was called with.
                    log.debug("MCP server %s: %s", self._name, text)
        finally:
            self._drained.set()

    async def end(self, close_s: Callable[[], float]) -> None:
        """End the process group: close its stdin, then send SIGTERM, then SIGKILL. Shielded and bounded.

        ``close_s`` returns the time that the server has to exit; it is polled, because it shrinks when jumpseat
        itself ends.
        """
        process = self._process
        with anyio.CancelScope(shield=True):
            if process.stdin is not None:
                with (
                    suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError),
                    anyio.move_on_after(0.1),
                ):
                    await process.stdin.aclose()
            await self._wait(close_s)
            if process.returncode is None:
                self._signal(self._terminate)
                await self._wait(lambda: min(TERMINATE_S, close_s()))
            # Needed even if the leader has exited: other processes of its group may still run.
            self._signal(kill_group)
            with anyio.move_on_after(1.0):
                await process.aclose()

    async def _wait(self, limit_s: Callable[[], float]) -> None:
        began = anyio.current_time()
        while self._process.returncode is None and (left := began + limit_s() - anyio.current_time()) > 0:
            with anyio.move_on_after(min(left, POLL_S)):
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
    sandbox: SessionSandbox | None = None,
) -> AsyncGenerator[tuple[Streams, Child], None]:
    """Run a server as a child process; the stream of its messages ends when the process has closed its stdout.

    Raises:
        ServerFailedError: the process cannot be started.
    """
    confined = await _confine(config, cwd, environ, sandbox)
    try:
        async with _running(confined, name, mask, close_s) as running:
            yield running
    finally:
        if sandbox is not None:
            sandbox.abandon(confined)


@asynccontextmanager
async def _running(
    confined: Confined, name: str, mask: Callable[[str], str], close_s: Callable[[], float]
) -> AsyncGenerator[tuple[Streams, Child], None]:
    try:
        process = await start_group(confined.command, confined.cwd, confined.environ)
    except OSError as error:
        raise ServerFailedError(f"cannot run {confined.command[0]!r}: {error.strerror or error}") from None
    child = Child(process, mask, name, has_namespace=confined.has_processes)
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


async def _confine(
    config: McpServerConfig, cwd: Path, environ: Mapping[str, str], sandbox: SessionSandbox | None
) -> Confined:
    command = [config.command or "", *(config.args or [])]
    folder = cwd / config.cwd if config.cwd else cwd
    variables = child_environment(environ, config.env or {})
    if sandbox is None or sandbox.mode == "off":
        return Confined(command, variables, folder)
    if "/" not in command[0] and shutil.which(command[0], path=variables.get("PATH")) is None:
        # The program of the sandbox would fail with its own text.
        raise ServerFailedError(f"cannot run {command[0]!r}: No such file or directory")
    try:
        reach = Reach(approved=True, command=command[0])
        # A server starts once: it can wait some milliseconds for a sandbox that does not fail.
        return await sandbox.confine(command, folder, variables, reach=reach, vanishing=True)
    except OSError as error:
        raise ServerFailedError(str(error)) from None


async def _read(process: Process, messages: MemoryObjectSendStream[Incoming], child: Child) -> None:
    assert process.stdout is not None
    invalid = 0
    with messages, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        try:
            async for line in _lines(process.stdout, MAX_LINE_BYTES):
                if not line.strip():
                    continue
                found = read_messages(line)
                # Some servers print banners on stdout; that is harmless as long as messages follow.
                invalid = 0 if found else invalid + 1
                if invalid > MAX_INVALID_LINES:
                    child.problem = "its output is not that of an MCP server"
                    return
                for message in found:
                    await messages.send(SessionMessage(message))
        except ServerFailedError as error:
            child.problem = str(error)


def read_messages(line: bytes) -> list[JSONRPCMessage]:
    """Parse a message, or an array of them; lone surrogates and bytes that are not UTF-8 become U+FFFD.

    An invalid response becomes an error for its request. What else is invalid is left out.
    """
    # What is wrong with a large message would take long to describe.
    if len(line) <= _LARGE_BYTES:
        with suppress(ValueError):
            return [jsonrpc_message_adapter.validate_json(line, by_name=False)]
    try:
        data: Any = read_json(line.decode("utf-8", "replace").encode())
    except ValueError:
        return [] if (reply := unreadable_reply(line)) is None else [reply]
    found = [_read_message(item) for item in (cast("list[Any]", data) if isinstance(data, list) else [data])]
    return [message for message in found if message is not None]


def _read_message(data: Any) -> JSONRPCMessage | None:
    if isinstance(data, dict) and isinstance(cast("dict[str, Any]", data).get("id"), dict | list):
        return None
    try:
        return jsonrpc_message_adapter.validate_python(data, by_name=False)
    except ValueError:
        return unreadable_reply(data)


def unreadable_reply(data: Any) -> JSONRPCError | None:
    """Return an error for the request that an invalid message answers, ``None`` if it answers none.

    ``data`` is a JSON value, or the text of a message that is no JSON or is nested too deeply.
    """
    if isinstance(data, bytes | str):
        return _reply_in(data if isinstance(data, bytes) else data.encode("utf-8", "replace"))
    record = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    request_id = record.get("id")
    if isinstance(request_id, float) and request_id.is_integer():
        request_id = int(request_id)
    if not isinstance(request_id, int | str) or "method" in record:
        return None
    told = f": {text}" if isinstance(text := record.get("error"), str) else ""
    error = ErrorData(code=PARSE_ERROR, message=f"the response is not a JSON-RPC message{told}")
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


def _reply_in(text: bytes) -> JSONRPCError | None:
    # The members of the message itself are at its ends, around the result.
    ends = (text[:_END_BYTES], text[-_END_BYTES:])
    if not text.lstrip().startswith(b"{") or any(b'"method"' in end for end in ends):
        return None
    found = [*re.findall(_ID, ends[0])[:1], *re.findall(_ID, ends[1])[-1:]]
    if not found:
        return None
    number, name = found[0]
    error = ErrorData(code=PARSE_ERROR, message="the response is invalid JSON, or nested too deeply")
    return JSONRPCError(jsonrpc="2.0", id=int(number) if number else name.decode("utf-8", "replace"), error=error)


async def _write(process: Process, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None
    with messages, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async for message in messages:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await process.stdin.send(text.encode() + b"\n")


async def _lines(stream: ByteReceiveStream, longest: int, *, cut: bool = False) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a stream, without their ends; with ``cut``, lines are cut after ``longest`` bytes.

    Raises:
        ServerFailedError: a line is longer than ``longest`` bytes, without ``cut``.
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
                raise ServerFailedError(f"the server sent a message of more than {longest // (1024 * 1024)} MiB")
    if parts and (last := b"".join(parts)):
        yield last
