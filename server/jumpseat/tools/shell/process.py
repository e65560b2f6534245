"""A shell command: its process, its output and its exit.

A command leads its own process group, and no process of that group outlives :meth:`Shell.stop` or the cancellation
of the supervising task.
"""

from __future__ import annotations

import codecs
import errno
import os
import select
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process

from jumpseat.agent.interfaces import CommandOutput
from jumpseat.system.process_groups import group_exists, group_members, kill_group, terminate_group
from jumpseat.system.programs import find_program

OUTPUT_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""Output kept per command; the oldest is dropped first."""

GRACE_S: Final = 1.0
"""Time between SIGTERM and SIGKILL."""

KILL_WAIT_S: Final = 1.0
"""Longest wait for processes that SIGKILL does not end at once (uninterruptible I/O)."""

DRAIN_S: Final = 0.25
"""Longest wait for the end of the output after the command's exit: a background child may hold the pipe open."""

QUIET: Final = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""Environment variables that keep programs from waiting for a person."""


class Shell:
    """A shell command.

    ``finished``: the command has exited; ``alive``: a process of its group still runs; ``confined``: whether it
    is in a sandbox, ``None`` if the sandbox is off. For the other attributes, see
    :class:`jumpseat.agent.interfaces.BackgroundCommand`.
    """

    def __init__(self, shell_id: str, command: str, process: Process, output_fd: int, input_fd: int | None) -> None:
        self._begin(shell_id, command)
        self._process = process
        self._output_fd = output_fd
        self._input_fd = input_fd

    def _begin(self, shell_id: str, command: str) -> None:
        self.id = shell_id
        self.command = command
        self.description = ""
        self.in_background = self.detached = self.interactive = self.reported = self.cancelled = False
        self.confined: bool | None = None
        self.exit_code: int | None = None
        self._output = OutputBuffer()
        self._started_at = time.monotonic()
        self._ended_at: float | None = None
        self._news = anyio.Event()
        self._finished = anyio.Event()
        self._eof = anyio.Event()
        self._closed = anyio.Event()
        self._scope = anyio.CancelScope()
        self._writing = False
        self._moved = False

    @property
    def finished(self) -> bool:
        return self._finished.is_set()

    @property
    def leaves_call(self) -> bool:
        """Return whether the call that waits for the command has to end before it."""
        return self._moved and not self.in_background

    def move_to_background(self) -> None:
        """End the call that waits for the command, if any does."""
        self._moved = True
        self._notify()

    @property
    def messages(self) -> list[str]:
        """Return what the sandbox did and refused, for the model."""
        return []

    @property
    def alive(self) -> bool:
        """Return whether any process of the group still runs, including background children."""
        return self._process.returncode is None or group_runs(self._process.pid)

    @property
    def holds_processes(self) -> bool:
        """Return whether no process of the command can leave its group unseen."""
        return False

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def has_stdin(self) -> bool:
        return self._input_fd is not None and not self.finished

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._started_at

    @property
    def ended_s(self) -> float | None:
        return None if self._ended_at is None else time.monotonic() - self._ended_at

    @property
    def output_bytes(self) -> int:
        """Return the number of bytes written so far, dropped ones included: it changes exactly on new output."""
        return self._output.total

    @property
    def unread_bytes(self) -> int:
        return self._output.unread

    def output(self, limit: int | None = None) -> str:
        """Return all output so far, or its last ``limit`` bytes."""
        return self._output.text(limit, final=self.finished)

    def unread(self) -> str:
        """Return the output since the last call."""
        return self._output.take(final=self.finished)

    def output_from(self, start: int | None, limit: int) -> CommandOutput | None:
        """Return at most ``limit`` bytes of output from offset ``start``, by default the oldest that is kept.

        The text ends with a whole character. The result is ``None`` if the output at ``start`` is not kept.
        """
        part = self._output.part(start, limit, final=self.finished)
        return None if part is None else CommandOutput(*part, self.finished and part[1] == self._output.total)

    async def wait(self) -> None:
        """Wait until the command itself has exited."""
        await self._finished.wait()

    async def news(self, seen: int) -> None:
        """Wait for more than ``seen`` bytes of output, the exit of the command, or the end of the call's wait."""
        while self._output.total == seen and not self.finished and not self.leaves_call:
            await self._news.wait()

    async def write(self, text: str, *, eof: bool = False) -> None:
        """Write to the command's standard input, and close it afterwards if ``eof``.

        Raises:
            OSError: the command has closed its standard input, or has none.
        """
        if self._input_fd is None or self.finished or self._writing:
            raise BrokenPipeError
        rest = memoryview(text.encode("utf-8", "replace"))
        self._writing = True
        try:
            while rest:
                try:
                    rest = rest[os.write(self._input_fd, rest) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._input_fd)
        finally:
            self._writing = False
            if eof or self._closed.is_set():
                self._close_input()

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """End the process group with SIGTERM, then SIGKILL. Not cancellable, but bounded."""
        with anyio.CancelScope(shield=True):
            await self._end_group(grace_s)
            with anyio.move_on_after(DRAIN_S):
                await self._finished.wait()
            # A process that has left the group may hold the pipe open for ever.
            self._scope.cancel()
            await self._closed.wait()

    async def supervise(self) -> None:
        """Read the output until the group ends; kill the group on cancellation."""
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._pump)
                    await self._wait_exit()
                    with anyio.move_on_after(DRAIN_S):
                        await self._eof.wait()
                    self._finish()
                    await self._eof.wait()
                    # Background children without this pipe must still end with the session.
                    await self._wait_last()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end_group(GRACE_S)
                with anyio.move_on_after(KILL_WAIT_S):
                    await self._process.wait()
            self._finish()
            os.close(self._output_fd)
            self._closed.set()
            if not self._writing:
                self._close_input()

    async def _wait_exit(self) -> None:
        """Wait until the command itself has exited."""
        await self._process.wait()

    async def _wait_last(self) -> None:
        """Wait until no background process is left."""
        await self._group_end(1, 1)

    async def _pump(self) -> None:
        while True:
            await anyio.wait_readable(self._output_fd)
            try:
                data = os.read(self._output_fd, 65536)
            except BlockingIOError:
                continue
            if not data:
                self._eof.set()
                return
            self._output.append(data)
            self._notify()

    def _finish(self) -> None:
        if not self.finished:
            self._finish_with(self._code())

    def _code(self) -> int:
        code = self._process.returncode
        # As shells report signals; a process that survived SIGKILL counts as killed.
        return 137 if code is None else 128 - code if code < 0 else code

    def _finish_with(self, exit_code: int) -> None:
        self.exit_code = exit_code
        self._ended_at = time.monotonic()
        self._finished.set()
        self._notify()

    def _notify(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def _end_group(self, grace_s: float) -> None:
        for send, timeout_s in ((terminate_group, grace_s), (kill_group, KILL_WAIT_S)):
            if not self.alive:
                return
            try:
                send(self._process.pid)
            except (ProcessLookupError, PermissionError):
                # The group has ended, or belongs to another user (sudo).
                return
            with anyio.move_on_after(timeout_s):
                await self._group_end(0.005, 0.05)

    async def _group_end(self, pause_s: float, longest_pause_s: float) -> None:
        """Poll until no process of the group runs: only parents are notified by the system."""
        while self.alive:
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, longest_pause_s)

    def _close_input(self) -> None:
        if self._input_fd is not None:
            os.close(self._input_fd)
            self._input_fd = None


class OutputBuffer:
    """The last :data:`OUTPUT_LIMIT_BYTES` of a command's output, and the position up to which it was read."""

    def __init__(self, limit: int = OUTPUT_LIMIT_BYTES) -> None:
        self.total = 0
        self._limit = limit
        self._kept = bytearray()
        self._read = 0

    @property
    def unread(self) -> int:
        return self.total - self._read

    def append(self, data: bytes) -> None:
        self._kept += data
        self.total += len(data)
        if len(self._kept) > self._limit:
            del self._kept[: len(self._kept) - self._limit]

    def text(self, limit: int | None = None, *, final: bool) -> str:
        start = 0 if limit is None else max(0, self.total - limit)
        return self._from(start, final=final)[0]

    def take(self, *, final: bool) -> str:
        text, self._read = self._from(self._read, final=final)
        return text

    def part(self, start: int | None, limit: int, *, final: bool) -> tuple[str, int] | None:
        first_kept = self.total - len(self._kept)
        begin = first_kept if start is None else start
        if not first_kept <= begin <= self.total:
            return None
        data = bytes(self._kept[begin - first_kept : begin - first_kept + limit])
        text, used = codecs.utf_8_decode(data, "replace", final and begin + len(data) == self.total)
        return text, begin + used

    def _from(self, start: int, *, final: bool) -> tuple[str, int]:
        """Return the text from offset ``start`` and its end offset, which is before any incomplete character."""
        first_kept = self.total - len(self._kept)
        begin = max(start, first_kept)
        text, used = codecs.utf_8_decode(self._kept[begin - first_kept :], "replace", final)
        if begin > start:
            text = f"[{begin - start} bytes of earlier output dropped]\n{text}"
        return text, begin + used


BASH: Final = ("bash", "--noprofile", "--norc", "-c")


def bash_outside(command: str, environ: Mapping[str, str], folders: Iterable[Path]) -> list[str]:
    """Return the command line for a command outside of the sandbox; bash itself is not that of a project.

    ``folders`` are those that confined commands could write to.

    Raises:
        OSError: there is no bash.
    """
    program = find_program(BASH[0], environ, folders)
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), BASH[0])
    return [program, *BASH[1:], command]


async def spawn(
    line: list[str], cwd: Path, environ: dict[str, str], *, stdin: bool
) -> tuple[Process, int, int | None]:
    """Start a command line; return the process, the descriptor of its output and that of its input.

    Raises:
        OSError: the command cannot be started, or the platform has no bash tool.
    """
    if sys.platform == "win32":
        raise OSError("the bash tool is not available on Windows")
    with Pipes(stdin=stdin) as pipes:
        process = await pipes.start(line, cwd, non_interactive(environ, outside=True), stdin=pipes.input_read)
    return process, pipes.output_read, pipes.input_write


class Pipes:
    """The pipes of a command. Leaving the block closes the command's ends, and all of them after an exception.

    The pipes are not those of the event loop, whose transports wait for background children that inherited them
    and cannot be closed reliably while such children live.
    """

    def __init__(self, *, stdin: bool) -> None:
        self.output_read, self._output_write = os.pipe()
        self.input_read, self.input_write = os.pipe() if stdin else (subprocess.DEVNULL, None)
        if sys.platform != "win32":  # Windows has no such pipes, and no bash tool.
            os.set_blocking(self.output_read, False)
            if self.input_write is not None:
                os.set_blocking(self.input_write, False)

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        ends = [self._output_write, *([self.input_read] if self.input_write is not None else ())]
        if error is not None:
            ends += [self.output_read, *([self.input_write] if self.input_write is not None else ())]
        for fd in ends:
            os.close(fd)

    async def start(
        self,
        command: list[str],
        cwd: Path,
        environ: dict[str, str],
        *,
        stdin: int,
        stderr: int = subprocess.STDOUT,
        inherited: tuple[int, ...] = (),
    ) -> Process:
        """Start ``command`` with these pipes, in its own process group."""
        with shortened(command) as (line, files):
            return await anyio.open_process(
                line,
                stdin=stdin,
                stdout=self._output_write,
                stderr=stderr,
                cwd=cwd,
                env=environ,
                start_new_session=True,
                pass_fds=(*inherited, *files),
            )


@contextmanager
def shortened(command: list[str]) -> Generator[tuple[list[str], tuple[int, ...]], None, None]:
    """Yield a command line without the shell that would begin its sandbox, and the descriptors to pass on instead.

    Raises:
        OSError: a file of the sandbox cannot be read.
    """
    if not os.path.isabs(command[0]):
        yield command, ()
        return
    # Imported with the first confined command.
    from jumpseat.sandbox.bubblewrap import without_shell

    with without_shell(command) as found:
        yield found


def non_interactive(environ: dict[str, str], *, outside: bool = False) -> dict[str, str]:
    """Keep programs from waiting for a person, bash from running start-up scripts or going elsewhere with ``cd``,
    and git from using a repository that is part of another one's files. ``outside`` is explained at
    :func:`git_settings`.
    """
    left_out = ("BASH_ENV", "CDPATH", "ENV", "PROMPT_COMMAND")
    quiet = {name: value for name, value in environ.items() if name not in left_out}
    return quiet | {"TERM": "dumb"} | QUIET | git_settings(environ, outside=outside)


def git_settings(environ: dict[str, str], *, outside: bool = False) -> dict[str, str]:
    """Return the variables that add settings of git, for a command of the model.

    A repository that is part of another one's files is not used. ``outside`` of the sandbox, git starts no program
    that a repository names to watch files, or to check signatures.
    """
    count = environ.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isascii() and count.isdigit() else 0
    settings = {"safe.bareRepository": "explicit"}
    if outside:
        settings |= {"core.fsmonitor": "false", "log.showSignature": "false"}
    variables = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (name, value) in enumerate(settings.items(), start=first):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def has_no_writer(pipe: int) -> bool:
    """Return whether each process has closed the other end of a pipe, even if some of it is unread."""
    if sys.platform == "win32":
        return False
    found = select.poll()
    found.register(pipe, 0)
    return any(event & select.POLLHUP for _, event in found.poll(0))


def group_runs(leader: int) -> bool:
    """Return whether the process group of the reaped process ``leader`` still has a running member."""
    if sys.platform == "win32":
        return False
    try:
        os.kill(leader, 0)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    else:
        # The kernel reuses a number only when its group is empty: this is an unrelated process.
        return False
    if not group_exists(leader):
        return False
    # Where nothing reaps orphans (a container without an init), a group of zombies never disappears.
    try:
        return bool(group_members(leader))
    except OSError:
        return True
