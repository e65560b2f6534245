"""The shell commands of one session, running and finished, and the reports of their output to the model.

No process outlives :meth:`Shells.close`, or the cancellation of the task group.
Permissions are not decided here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import TaskGroup

from jumpseat.agent.client import EditorTerminals
from jumpseat.agent.interfaces import EXITED, RUNNING
from jumpseat.errors import ClientRefusedError
from jumpseat.sandbox.session import SETTLE_S, SessionSandbox, StillConfinedError
from jumpseat.sandbox.session_network import Reach
from jumpseat.tools.running_commands import RunningCommand
from jumpseat.tools.shell.process import BASH, GRACE_S, QUIET, Shell, bash_outside, git_settings, spawn
from jumpseat.tools.tool import ToolContext, ToolOutcome, failure

if TYPE_CHECKING:
    from jumpseat.tools.shell.ready_sandbox import ReadySandbox

log = logging.getLogger(__name__)

FINISHED_KEPT: Final = 32
"""Limit of the finished commands that are kept for their unread output."""

LEAVING: Final = frozenset({
    "abduco", "at", "batch", "crontab", "daemon", "daemonize", "dtach", "screen", "setsid", "start-stop-daemon",
    "systemd-run", "tmux", "zellij",
})  # fmt: skip
"""Programs that run others outside of the process group of the command: nobody knows when those end."""


class Shells:
    """Implements :class:`jumpseat.tools.running_commands.CommandRunner`.

    Each command is supervised by a task in ``task_group``; cancelling the group kills the commands.
    """

    def __init__(
        self,
        task_group: TaskGroup,
        terminals: Callable[[], EditorTerminals | None] = lambda: None,
        make_sandbox: Callable[[], SessionSandbox] | None = None,
        on_leave: Callable[[Shell], None] | None = None,
    ) -> None:
        """``terminals`` returns the terminals of the user's editor, in which commands without input run, unless the
        session requires the sandbox, which ``make_sandbox`` makes for the first command. ``on_leave`` is called
        with each command that is left running; its end has to be told to the model.
        """
        self._make_sandbox = make_sandbox
        self._made_sandbox: SessionSandbox | None = None
        self._ready: ReadySandbox | None = None
        self._task_group = task_group
        self._terminals = terminals
        self._on_leave = on_leave
        self._shells: dict[str, Shell] = {}
        self._next_id = 0
        self._closed = False
        self._has_left = False

    @property
    def sandbox(self) -> SessionSandbox | None:
        """The sandbox of the session; ``None`` if the server has none."""
        if self._made_sandbox is None and self._make_sandbox is not None:
            self._made_sandbox = self._make_sandbox()
        return self._made_sandbox

    def __iter__(self) -> Iterator[Shell]:
        """Iterate over the known shells, oldest first."""
        return iter(tuple(self._shells.values()))

    def get(self, shell_id: str) -> Shell | None:
        return self._shells.get(shell_id)

    async def probe(self) -> None:
        """Find out whether commands can be confined."""
        if self.sandbox is not None:
            await self.sandbox.probe()

    def confines(self) -> bool | None:
        """Return whether the next command will be confined; ``None`` if the sandbox is off."""
        return None if self.sandbox is None else self.sandbox.confines()

    @property
    def may_leave(self) -> bool:
        """Return whether commands that cannot work in a sandbox run outside, if they are approved."""
        return self.sandbox is not None and self.sandbox.mode == "auto"

    def may_move(self) -> bool:
        """Return whether a command runs that may move files and folders, or replace them by links."""
        return self._has_left or any(shell.alive and not _only_reads(shell.command) for shell in self)

    @property
    def has_confined(self) -> bool:
        """Return whether confined commands run that may change the session's folders."""
        return self.sandbox is not None and self.sandbox.has_running

    @property
    def sandbox_counts(self) -> bool:
        """Return whether confined commands are asked about as such; see :attr:`SessionSandbox.counts`."""
        return self.sandbox is None or self.sandbox.counts

    async def start(
        self,
        command: str,
        *,
        cwd: Path,
        environ: dict[str, str],
        stdin: bool = False,
        call_id: str | None = None,
        outside: bool = False,
        hosts: Sequence[str] | None = None,
    ) -> Shell:
        """Start ``command``; see :meth:`jumpseat.tools.running_commands.CommandRunner.start`."""
        if self._closed:
            raise anyio.ClosedResourceError
        if outside and self.has_confined:
            raise StillConfinedError
        if outside and self.sandbox is not None:
            await self.sandbox.finish()
        reach = Reach(hosts is not None, tuple(hosts or ()), command, call_id)
        sandbox = None if outside or self.sandbox is None or self.sandbox.mode == "off" else self.sandbox
        shell = None
        if call_id is not None and not stdin and (sandbox is None or sandbox.mode != "require"):
            shell = await self._in_terminal(command, cwd, environ, call_id, sandbox, reach)
        # Cancellation between fork and registration would lose the process.
        with anyio.CancelScope(shield=True):
            if shell is None:
                shell = await self._start(command, cwd, environ, sandbox, reach, stdin=stdin)
            if not self._closed:
                return shell
            # The session was closed while the command started.
            await shell.stop(0)
        raise anyio.ClosedResourceError

    async def settle(self) -> None:
        """Examine what the commands of a turn have left, as far as that was left out after each of them."""
        if self._made_sandbox is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(SETTLE_S):
                await self._made_sandbox.finish("turn")

    def leave(self, shell: RunningCommand) -> bool:
        """Leave a command running in the background; return whether the model will be told about its end."""
        shell.in_background = True
        known = self._shells.get(shell.id)
        if known is None or self._on_leave is None or shell.detached:
            return False
        self._on_leave(known)
        return True

    def release(self, shell: RunningCommand) -> None:
        """Forget a finished command whose end has been reported; one with background processes stays listed."""
        if shell.finished and not shell.alive:
            self._shells.pop(shell.id, None)

    async def close(self, grace_s: float = GRACE_S) -> None:
        """End all commands. Not cancellable, but bounded by the two waits of :meth:`Shell.stop`."""
        self._closed = True
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for shell in self:
                    tasks.start_soon(shell.stop, grace_s)
                if self._ready is not None:
                    tasks.start_soon(self._ready.close)
            self._shells.clear()
            if self._made_sandbox is not None:
                await self._made_sandbox.close()

    async def _start(
        self,
        command: str,
        cwd: Path,
        environ: dict[str, str],
        sandbox: SessionSandbox | None,
        reach: Reach,
        *,
        stdin: bool,
    ) -> Shell:
        if sandbox is not None:
            # Imported here, because most processes never run a command.
            from jumpseat.tools.shell.confined import start_sandboxed
            from jumpseat.tools.shell.ready_sandbox import ReadySandbox

            if self._ready is None:
                self._ready = ReadySandbox(sandbox, self._task_group)
            shell_id = str(self._next_id)
            return self._register(
                await start_sandboxed(shell_id, command, cwd, environ, sandbox, self._ready, reach, stdin=stdin)
            )
        folders = [cwd] if self.sandbox is None else self.sandbox.opened
        line = bash_outside(command, environ, folders)
        process, output_fd, input_fd = await spawn(line, cwd, environ, stdin=stdin)
        return self._register(Shell(str(self._next_id), command, process, output_fd, input_fd))

    async def _in_terminal(
        self,
        command: str,
        cwd: Path,
        environ: dict[str, str],
        call_id: str,
        sandbox: SessionSandbox | None,
        reach: Reach,
    ) -> Shell | None:
        """Start ``command`` in a terminal of the editor; return ``None`` if there is none.

        Raises:
            ClientCallError: the editor did not answer, so the command may have begun.
        """
        terminals = self._terminals()
        if terminals is None:
            return None
        # Imported here, because most sessions have no editor.
        from jumpseat.tools.shell.sandbox_report import SandboxReport
        from jumpseat.tools.shell.terminal import TerminalShell

        words, variables, report = [*BASH, command], QUIET | git_settings({}, outside=sandbox is None), None
        if sandbox is not None:
            confined = await sandbox.confine(words, cwd, environ | variables, reach=reach)
            report = SandboxReport(sandbox, confined)
            if report.confined:
                words, variables = confined.command, _changes(environ, confined.environ)
        opened = False
        try:
            terminal = await terminals.run(call_id, words, cwd, variables)
            opened = True
        except ClientRefusedError as error:
            log.warning("the editor refused a terminal, running the command without one: %s", error)
            return None
        finally:
            if not opened and report is not None:
                with anyio.CancelScope(shield=True):
                    await report.settle()
        return self._register(TerminalShell(str(self._next_id), command, terminal, report))

    def _register(self, shell: Shell) -> Shell:
        self._next_id += 1
        self._shells[shell.id] = shell
        if shell.confined is None and self.sandbox is not None and self.sandbox.mode != "off":
            shell.confined = False
        self._has_left = self._has_left or (not shell.holds_processes and _leaves_its_group(shell.command))
        self._task_group.start_soon(shell.supervise, name=f"shell {shell.id}")
        self._drop_old()
        return shell

    def _drop_old(self) -> None:
        finished = [shell for shell in self if shell.finished]
        for shell in finished[: max(0, len(finished) - FINISHED_KEPT)]:
            self.release(shell)


def _only_reads(command: str) -> bool:
    # Imported with the first command.
    from jumpseat.agent.shell.syntax import parse_shell

    line = parse_shell(command)
    return line.certain and all(segment.command.read_only for segment in line.segments)


def _leaves_its_group(command: str) -> bool:
    from jumpseat.agent.shell.commands import program_name
    from jumpseat.agent.shell.syntax import parse_shell

    line = parse_shell(command)
    return any(words[0] is not None and program_name([words[0]]) in LEAVING for words in line.possible_commands)


def _changes(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """Return the variables that a sandbox sets or changes; those that it removes are empty."""
    removed = dict.fromkeys((name for name in before if name not in after), "")
    return removed | {name: value for name, value in after.items() if before.get(name) != value}


PARTIAL_INTERVAL_S: Final = 0.1

PARTIAL_LIMIT_BYTES: Final = 64 * 1024
"""Each partial output repeats the whole text: a command that writes much must not flood the connection."""

REFUSED: Final = "the sandbox refused"

OUTSIDE: Final = (
    "<if the command needs that, call bash again with a reason in `unsandboxed`: the user is asked whether it may"
    " run outside of the sandbox>"
)

LONGEST_WAIT_S: Final = 3600.0


async def follow(shell: RunningCommand, partial: Callable[[str], None], seconds: float) -> None:
    """Wait up to ``seconds`` for the end of the command, passing its output so far to ``partial``.

    The wait ends early if the command is moved to the background.
    """
    shown = 0

    def show() -> None:
        nonlocal shown
        if shell.output_bytes != shown:
            shown = shell.output_bytes
            partial(shell.output(PARTIAL_LIMIT_BYTES))

    # In this order a NaN becomes zero.
    with anyio.move_on_after(max(0.0, min(seconds, LONGEST_WAIT_S))):
        while not shell.finished and not shell.leaves_call:
            await shell.news(shown)
            show()
            with anyio.move_on_after(PARTIAL_INTERVAL_S):
                await shell.wait()
    show()


def report(shell: RunningCommand) -> str:
    """Return the unread output and the state of the command, for the model."""
    output = shell.unread().rstrip("\r\n")
    if shell.finished:
        shell.reported = True
        status = f"{EXITED}{shell.exit_code}>"
    else:
        status = f"{RUNNING}{shell.id}; go on with read_bash, end it with stop_bash>"
    return "\n".join(filter(None, (output, status, *_explained(shell))))


def _explained(shell: RunningCommand) -> list[str]:
    """Return the lines about the sandbox, for the model."""
    messages = shell.messages
    refused = any(message.startswith(REFUSED) for message in messages)
    return [f"<{message}>" for message in messages] + ([OUTSIDE] if refused else [])


def unknown_shell(ctx: ToolContext, shell_id: str) -> ToolOutcome:
    """Return the failure of a call with a ``shellId`` that does not exist."""
    known = ", ".join(shell.id for shell in ctx.shells) or "none"
    return failure(
        f"There is no shell {shell_id!r}: it never existed, or its end has been reported. Shells: {known}."
    )
