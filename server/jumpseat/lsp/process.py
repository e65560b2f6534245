"""The process of a language server, its messages and its end.

pygls would start the process itself, read messages of any size, and wait for an end that may never come. Here, a
message and its rate are limited, and the process group is killed as a whole.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
import tempfile
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
import anyio.to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from jumpseat.sandbox.session import Confined, SessionSandbox
from jumpseat.system.process_groups import kill_group, start_group

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""Largest message of a server."""

MAX_HEADER_BYTES: Final = 4096

PERIOD_S: Final = 10.0
MAX_MESSAGES: Final = 20_000
MAX_BYTES: Final = 64 * 1024 * 1024
"""The messages, and their bytes, that a server may send in a period."""

MAX_UNREAD_BYTES: Final = 64 * 1024 * 1024
"""What a server may leave unread of its input."""

CLOSE_S: Final = 0.2
"""Time for a server to exit by itself."""

TEMP: Final = "{temp}"
"""Stands in arguments for a folder that only this process uses, and that is deleted with it."""


class ServerFailedError(Exception):
    """A server cannot be run, has ended, or violated the protocol."""


class RefusedError(Exception):
    """A server has answered a request with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Peer(Protocol):
    """Takes the messages of a server. Implemented by :class:`jumpseat.lsp.client.Client`."""

    def write_to(self, outgoing: Outgoing) -> None:
        """Send messages there from now on."""
        ...

    def decode(self, body: bytes) -> Any:
        """Return a message; ``None`` for an answer that is no longer awaited. Runs in a thread."""
        ...

    def handle(self, message: Any) -> None:
        """Answer a message, or hand it on."""
        ...

    def give_up(self) -> None:
        """Fail all requests, because the server has ended."""
        ...


class Outgoing:
    """The queue of messages to a server; pygls writes to it."""

    def __init__(self) -> None:
        self._unread = 0
        self._parts: list[bytes] = []
        self._news = anyio.Event()

    def write(self, data: bytes) -> None:
        """Queue bytes; drop them if the server does not read, so that it counts as one that does not answer."""
        if self._unread + len(data) <= MAX_UNREAD_BYTES:
            self._unread += len(data)
            self._parts.append(data)
            self._news.set()

    def close(self) -> None:
        """Do nothing: the process owns its pipe."""

    async def send_to(self, process: Process) -> None:
        """Send what is queued, for ever."""
        assert process.stdin is not None
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                await self._news.wait()
                self._news = anyio.Event()
                parts, self._parts = self._parts, []
                for part in parts:
                    await process.stdin.send(part)
                    self._unread -= len(part)


@asynccontextmanager
async def running(
    client: Peer,
    command: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    sandbox: SessionSandbox | None,
    *,
    memory_bytes: int,
) -> AsyncGenerator[Callable[[], Any], None]:
    """Run a server for ``client``; yield a function that reads its messages until its end.

    Raises:
        ServerFailedError: the server cannot be started.
    """
    temp = f"jumpseat-{uuid.uuid4().hex}"
    argv = _limited(command, memory_bytes, temp)
    async with AsyncExitStack() as stack:
        confined = Confined(argv, dict(environ), cwd)
        if sandbox is not None and sandbox.mode != "off":
            shown = [cwd, *_folders_of(command[0])]
            try:
                confined = await stack.enter_async_context(sandbox.confined(argv, cwd, environ, shown=shown))
            except OSError as error:
                raise ServerFailedError(str(error)) from None
        try:
            variables = dict(confined.environ)
            if variables != environ:
                variables |= cargo_variables(variables, environ)
            process = await start_group(confined.command, confined.cwd, variables)
        except OSError as error:
            raise ServerFailedError(f"it cannot be run: {error.strerror or error}") from None
        outgoing = Outgoing()
        client.write_to(outgoing)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(outgoing.send_to, process)
                tasks.start_soon(_drain, process)
                try:
                    yield lambda: _read(process, client)
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            client.give_up()
            with anyio.CancelScope(shield=True):
                await _end(process)
                if any(TEMP in argument for argument in command):
                    # In a sandbox, it may be in a folder that vanishes with it.
                    place = Path(variables.get("TMPDIR") or tempfile.gettempdir(), temp)
                    await anyio.to_thread.run_sync(lambda: shutil.rmtree(place, ignore_errors=True))


def _folders_of(program: str) -> list[Path]:
    """Return the folder where a program is installed: in a home folder, a sandbox would hide it."""
    folder = Path(os.path.realpath(program)).parent
    folder = folder.parent if folder.name == "bin" else folder
    return (
        []
        if folder in (Path("/"), Path("/usr"), Path("/usr/local")) or Path.home().is_relative_to(folder)
        else [folder]
    )


def cargo_variables(confined: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return what makes cargo work in a sandbox without a network, where the project is read-only.

    ``confined`` has the variables in the sandbox, and ``environ`` those of the user. Crates are read from where the
    commands of the project keep theirs, if there are any, otherwise from the user's own folder.
    """
    own = Path(environ.get("CARGO_HOME") or Path(environ.get("HOME") or Path.home(), ".cargo"))
    folder = Path(confined.get("CARGO_HOME") or own)
    has_crates = any(folder.glob("registry/cache/*/*.crate"))
    builds = folder if folder != own else Path(confined.get("TMPDIR") or tempfile.gettempdir(), "cargo")
    return {
        "CARGO_HOME": str(own if not has_crates and (own / "registry").is_dir() else folder),
        # Otherwise, it would try for a minute to reach the registry.
        "CARGO_NET_OFFLINE": "true",
        "CARGO_TARGET_DIR": environ.get("CARGO_TARGET_DIR") or str(builds / "target"),
    }


def _limited(command: Sequence[str], memory_bytes: int, temp: str) -> list[str]:
    """Return a command that limits the memory of each process of a server, where the system can.

    The address space would be the wrong measure: Node.js and Java reserve far more than they use. ``temp`` is the
    name of the server's own folder: a sandbox decides where it is.
    """
    if os.name != "posix":
        return [argument.replace(TEMP, str(Path(tempfile.gettempdir(), temp))) for argument in command]
    words = (_word(index, argument, temp) for index, argument in enumerate(command, 1))
    limit = 'ulimit -d "$0" && ' if sys.platform == "linux" else ""
    return ["/bin/sh", "-c", f"{limit}exec {' '.join(words)}", str(memory_bytes // 1024), *command]


def _word(index: int, argument: str, temp: str) -> str:
    """Return what stands for an argument of a shell command."""
    head, found, tail = argument.partition(TEMP)
    if not found:
        return f'"${{{index}}}"'
    return f'{shlex.quote(head)}"${{TMPDIR:-/tmp}}/"{temp}{shlex.quote(tail)}'


async def _drain(process: Process) -> None:
    """Read the stderr of a server, which may be full of the user's code, and drop it."""
    assert process.stderr is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for _ in process.stderr:
            pass


async def _read(process: Process, client: Peer) -> None:
    """Hand the messages of a server on to its client until the server ends.

    Raises:
        ServerFailedError: the server has ended or violated the protocol.
    """
    assert process.stdout is not None
    stream = BufferedByteReceiveStream(process.stdout)
    began, count, size = anyio.current_time(), 0, 0
    while True:
        try:
            length = _length(await stream.receive_until(b"\r\n\r\n", MAX_HEADER_BYTES))
            if length > MAX_MESSAGE_BYTES:
                raise ServerFailedError(f"it sent a message of {length >> 20} MiB")
            body = await stream.receive_exactly(length)
        except (anyio.DelimiterNotFound, ValueError):
            raise ServerFailedError("its output is not that of a language server") from None
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise ServerFailedError("it has ended") from None
        if (now := anyio.current_time()) - began > PERIOD_S:
            began, count, size = now, 0, 0
        count, size = count + 1, size + length
        if count > MAX_MESSAGES or size > MAX_BYTES:
            raise ServerFailedError("it floods its client with messages")
        try:
            # The first message of a kind, and a large one, takes milliseconds.
            message = await anyio.to_thread.run_sync(client.decode, body, abandon_on_cancel=True)
            if message is not None:
                client.handle(message)
        except ServerFailedError:
            raise
        except Exception:
            # One that pygls cannot read, or an answer that comes too late.
            log.debug("a message of a language server was dropped", exc_info=True)


def _length(header: bytes) -> int:
    """Return the length of a message.

    Raises:
        ValueError: the header has none.
    """
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    raise ValueError("no Content-Length")


async def _end(process: Process) -> None:
    """Kill a server and all processes of its group."""
    if process.stdin is not None:
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError), anyio.move_on_after(0.1):
            await process.stdin.aclose()
    with anyio.move_on_after(CLOSE_S):
        await process.wait()
    # Needed even if the leader has exited: other processes of its group may still run.
    with suppress(ProcessLookupError, PermissionError):
        kill_group(process.pid)
    with anyio.move_on_after(1.0):
        await process.aclose()
