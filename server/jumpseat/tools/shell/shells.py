"""The shell commands of one session, running and finished.

Nothing of them outlives :meth:`Shells.close`, or the cancellation of the task group they were built with.
How a command came to be allowed, and how its output is worded for the model, is decided elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from jumpseat.agent.editor import EditorTerminals
from jumpseat.errors import ClientCallError
from jumpseat.tools.running_commands import RunningCommand
from jumpseat.tools.shell.process import GRACE_S, QUIET, Shell, spawn

log = logging.getLogger(__name__)

FINISHED_KEPT: Final = 32
"""Finished commands whose output nobody has fetched yet."""


class Shells:
    """The shells of one session, running and finished but not yet read.

    Each command is supervised by a task in ``task_group``; cancelling the group kills the commands.
    """

    def __init__(
        self, task_group: TaskGroup, terminals: Callable[[], EditorTerminals | None] = lambda: None
    ) -> None:
        """``terminals`` gives those of an editor, where commands run that read nothing."""
        self._task_group = task_group
        self._terminals = terminals
        self._shells: dict[str, Shell] = {}
        self._next_id = 0
        self._closed = False

    def __iter__(self) -> Iterator[Shell]:
        """The known shells, oldest first."""
        return iter(tuple(self._shells.values()))

    def get(self, shell_id: str) -> Shell | None:
        return self._shells.get(shell_id)

    async def start(
        self, command: str, *, cwd: Path, environ: dict[str, str], stdin: bool = False, call_id: str | None = None
    ) -> Shell:
        """Run ``command`` in ``bash -c``. Without ``stdin`` it reads from the null device.

        For a tool call it runs in a terminal of the editor, where one lends any and no ``stdin`` is needed.

        Raises:
            OSError: bash or the working directory is missing, or the system refuses another process.
            ValueError: the command or the environment holds a NUL character.
            anyio.ClosedResourceError: the session is closing.
        """
        if self._closed:
            raise anyio.ClosedResourceError
        shell = await self._in_terminal(command, cwd, call_id) if call_id is not None and not stdin else None
        # Cancellation between fork and registration would lose the process.
        with anyio.CancelScope(shield=True):
            if shell is None:
                shell = await self._start(command, cwd, environ, stdin=stdin)
            if not self._closed:
                return shell
            # Closing did not see this one yet.
            await shell.stop(0)
        raise anyio.ClosedResourceError

    def release(self, shell: RunningCommand) -> None:
        """Forget ``shell`` now that its end has been told; one that left processes behind stays listed."""
        if shell.finished and not shell.alive:
            self._shells.pop(shell.id, None)

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Kill everything. Not interruptible, but bounded by the two waits of :meth:`Shell.stop`."""
        self._closed = True
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for shell in self:
                    tasks.start_soon(shell.stop, grace_s)
        self._shells.clear()

    async def _start(self, command: str, cwd: Path, environ: dict[str, str], *, stdin: bool) -> Shell:
        process, output_fd, input_fd = await spawn(command, cwd, environ, stdin=stdin)
        return self._register(Shell(str(self._next_id), command, process, output_fd, input_fd))

    async def _in_terminal(self, command: str, cwd: Path, call_id: str) -> Shell | None:
        """``None`` where no editor lends a terminal."""
        terminals = self._terminals()
        if terminals is None:
            return None
        # Loaded late: most sessions have no editor.
        from jumpseat.tools.shell.terminal import TerminalShell

        try:
            terminal = await terminals.run(call_id, command, cwd, QUIET)
        except ClientCallError as error:
            log.warning("the editor gave no terminal, the command runs without: %s", error)
            return None
        return self._register(TerminalShell(str(self._next_id), command, terminal))

    def _register(self, shell: Shell) -> Shell:
        self._next_id += 1
        self._shells[shell.id] = shell
        self._task_group.start_soon(shell.supervise, name=f"shell {shell.id}")
        self._drop_old()
        return shell

    def _drop_old(self) -> None:
        finished = [shell for shell in self if shell.finished]
        for shell in finished[: max(0, len(finished) - FINISHED_KEPT)]:
            self.release(shell)
