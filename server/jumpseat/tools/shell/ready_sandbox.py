"""A sandbox that is started before its command is known.

Starting a sandbox takes several times as long as a short command. So after a command, the sandbox of the next one
is started in advance, and a bash in it waits for the text. It serves only a command that would get the same sandbox
anew: with the same view, environment and working directory, and with all mounts still in place. If a protected
file is replaced outside of the sandbox, its mount is gone.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from contextlib import suppress
from typing import Final

import anyio
import anyio.to_thread
from anyio.abc import Process, TaskGroup

from jumpseat.sandbox.session import Confined, SessionSandbox
from jumpseat.system.process_groups import kill_group
from jumpseat.tools.shell.process import BASH, KILL_WAIT_S, Pipes

log = logging.getLogger(__name__)

READY_S: Final = 60.0
"""Time after which a sandbox is ended that no command has used."""

START_S: Final = 10.0
"""Time limit for starting a sandbox."""

MAX_TEXT_BYTES: Final = 4096
"""Length limit of the commands that are passed to a waiting bash, which reads each byte with its own call."""

_UNREADABLE: Final = re.compile(r"[\0-\x08\x0b-\x1f\x7f\ud800-\udfff]")
"""Characters that the ``read`` of some versions of bash changes."""

_WAIT: Final = (
    'printf . >&{ready} && exec {ready}>&- && IFS= read -r -d "" -u {text} && exec {text}<&-'
    ' && exec bash --noprofile --norc -c "$REPLY" 2>&1'
)
"""The line of a waiting bash, whose own messages, such as a warning about a missing locale, are discarded."""

_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")


class ReadySandbox:
    """The sandbox that waits for the next command of a session. ``tasks`` runs the task that keeps it."""

    def __init__(self, sandbox: SessionSandbox, tasks: TaskGroup) -> None:
        self._sandbox = sandbox
        self._tasks = tasks
        self._next: _Next | None = None
        self._all: set[_Next] = set()
        self._closed = False

    def prepare(self, confined: Confined) -> None:
        """Start a sandbox like that of ``confined``, a command that has ended, unless there is one already."""
        # A bash that waits would change the variable if it is exported.
        if self._closed or self._next is not None or not self._sandbox.may_prepare(confined):
            return
        if confined.has_processes and "REPLY" not in confined.environ:
            self._next = _Next(confined)
            self._all.add(self._next)
            self._tasks.start_soon(self._keep, self._next, name="ready sandbox")

    async def take(self, confined: Confined, command: str) -> tuple[Process, int] | None:
        """Run ``command`` in the ready sandbox; return its process and the descriptor of its output.

        Waits for a sandbox that is being started. Returns ``None`` if there is none that is equal to the one of
        ``confined``.
        """
        if self._next is None or len(command) > MAX_TEXT_BYTES or _UNREADABLE.search(command):
            return None
        found, self._next = self._next, None
        found.claimed = True
        try:
            if not found.fits(confined):
                return None
            await found.started.wait()
            waiting = found.waiting
            if waiting is None:
                return None
            # Not interrupted, because the command may have begun.
            with anyio.CancelScope(shield=True):
                waiting.taken = await anyio.to_thread.run_sync(waiting.run, command)
            return (waiting.process, waiting.output) if waiting.taken else None
        finally:
            found.decided.set()

    async def close(self) -> None:
        """End the sandbox. Not cancellable, but bounded."""
        self._closed = True
        for found in tuple(self._all):
            found.scope.cancel()
            with anyio.CancelScope(shield=True):
                await found.ended.wait()

    async def _keep(self, found: _Next) -> None:
        try:
            with found.scope, self._sandbox.slot() as free:
                if free:
                    with anyio.move_on_after(START_S):
                        found.waiting = await _start(found.confined)
                found.started.set()
                if found.waiting is not None:
                    with anyio.move_on_after(READY_S):
                        # Now the model answers: at the end of the turn, the search would delay the user.
                        await self._sandbox.finish("answer")
                        await found.decided.wait()
        finally:
            with anyio.CancelScope(shield=True):
                found.started.set()
                if found.claimed:
                    await found.decided.wait()
                elif self._next is found:
                    self._next = None
                if found.waiting is not None:
                    await found.waiting.close()
                self._all.discard(found)
                found.ended.set()


class _Next:
    """The sandbox for the next command, like that of ``confined``.

    ``waiting`` is the sandbox itself, if it could be ``started``. A command has ``claimed`` the sandbox before it
    is ``decided`` whether the sandbox is used.
    """

    def __init__(self, confined: Confined) -> None:
        self.confined = confined
        self.waiting: _Waiting | None = None
        self.claimed = False
        self.started, self.decided, self.ended = anyio.Event(), anyio.Event(), anyio.Event()
        self.scope = anyio.CancelScope()

    def fits(self, confined: Confined) -> bool:
        """Return whether a new sandbox for ``confined`` would be the same as this one."""
        mine = self.confined
        return confined.enter == mine.enter and confined.cwd == mine.cwd and confined.environ == mine.environ


class _Waiting:
    """A sandbox with a bash that waits for its command.

    ``text`` is the pipe from which bash reads the command, and ``mounts`` the open table of mounts in the sandbox.
    """

    def __init__(self, confined: Confined, process: Process, output: int, text: int, mounts: int) -> None:
        self.process = process
        self.output = output
        self.taken = False
        self._confined = confined
        self._text = text
        self._mounts = mounts
        self._table = b""
        self._folder: tuple[int, int] | None = None

    def remember(self, folder: str) -> bool:
        """Remember the mounts, and the identity of the working directory, which is ``folder``.

        Returns whether everything in the view is mounted.
        """
        self._table, self._folder = _read(self._mounts), _identity(folder)
        mounted = {_ESCAPED.sub(_unescape, line.split(b" ", 5)[4]) for line in self._table.splitlines()}
        return mounted.issuperset(os.fsencode(path) for path, _ in self._confined.view.accesses())

    def run(self, command: str) -> bool:
        """Run ``command`` if nothing in the sandbox has changed; return whether it runs.

        Blocks on the file system.
        """
        try:
            if _read(self._mounts) != self._table or _identity(self._confined.cwd) != self._folder:
                return False
            os.write(self._text, os.fsencode(command) + b"\0")
        except OSError:
            return False
        return True

    async def close(self) -> None:
        """Close the descriptors; end the sandbox unless a command has taken it."""
        os.close(self._text)
        os.close(self._mounts)
        if not self.taken:
            os.close(self.output)
            await end_sandbox(self.process)


async def _start(confined: Confined) -> _Waiting | None:
    """Start a sandbox; return ``None`` if it cannot be started, or its mounts cannot be watched."""
    if sys.platform != "linux":
        return None
    try:
        process, ready, files = await _spawn(confined)
    except (OSError, ValueError) as error:
        log.info("no sandbox can be kept ready: %s", error)
        return None
    waiting = None
    try:
        await anyio.wait_readable(ready)
        if os.read(ready, 1):
            bash = _only_child(_only_child(process.pid))
            mounts = os.open(f"/proc/{bash}/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
            files.append(mounts)
            found = _Waiting(confined, process, *files)
            waiting = found if found.remember(f"/proc/{bash}/cwd") else None
    except (OSError, ValueError) as error:
        log.info("no sandbox can be kept ready: %s", error)
    finally:
        os.close(ready)
        if waiting is None:
            for file in files:
                os.close(file)
            with anyio.CancelScope(shield=True):
                await end_sandbox(process)
    return waiting


async def _spawn(confined: Confined) -> tuple[Process, int, list[int]]:
    """Start a sandbox in which bash waits for its command.

    Returns the process, the pipe that tells that bash waits, and the pipes of the output and of the command.

    Raises:
        OSError, ValueError: the sandbox cannot be started.
    """
    ready, ready_write = os.pipe()
    text_read, text = os.pipe()
    started: list[Process] = []
    try:
        # Cancellation between fork and return would lose the process.
        with Pipes(stdin=False) as pipes, anyio.CancelScope(shield=True):
            started.append(
                await pipes.start(
                    [*confined.enter, *BASH, _WAIT.format(ready=ready_write, text=text_read)],
                    confined.cwd,
                    confined.environ,
                    stdin=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    inherited=(ready_write, text_read),
                )
            )
        return started[0], ready, [pipes.output_read, text]
    finally:
        for file in (ready_write, text_read, *(() if started else (ready, text))):
            os.close(file)


async def end_sandbox(process: Process) -> None:
    """End a sandbox that no command uses. Bounded."""
    with suppress(ProcessLookupError, PermissionError):
        kill_group(process.pid)
    with anyio.move_on_after(KILL_WAIT_S):
        await process.wait()


def _only_child(process: int) -> int:
    """Return the child of the process of a sandbox, or of the first process in the sandbox.

    Raises:
        OSError, ValueError: there is no such process, or the kernel does not list children.
    """
    with open(f"/proc/{process}/task/{process}/children", "rb") as file:
        return int(file.read())


def _read(descriptor: int) -> bytes:
    """Return a file of ``/proc`` as it is now."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    parts: list[bytes] = []
    while part := os.read(descriptor, 65536):
        parts.append(part)
    return b"".join(parts)


def _identity(folder: str | os.PathLike[str]) -> tuple[int, int]:
    status = os.stat(folder)
    return status.st_dev, status.st_ino


def _unescape(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8)])
