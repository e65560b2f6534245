"""A command that runs in a terminal of the user's editor; its output is polled."""

from __future__ import annotations

import contextlib
from typing import Final

import anyio

from jumpseat.agent.client import EditorTerminal
from jumpseat.errors import ClientCallError
from jumpseat.sandbox.session import SETTLE_S
from jumpseat.tools.shell.process import GRACE_S, OutputBuffer, Shell
from jumpseat.tools.shell.sandbox_report import SandboxReport

POLL_INTERVAL_S: Final = 0.5
"""Interval at which the output is polled; the user sees it in the editor at once."""
END_TIMEOUT_S: Final = 2.0
"""Longest wait for the editor at the end of a command."""
HUNG_UP: Final = 129
"""Exit code of a command whose editor has failed or disconnected, as after SIGHUP."""
MOST_FAILURES: Final = 3
"""Failures to read the output, one after the other, after which the editor is given up."""


UNKNOWN: Final = (
    "how the command ended is not known, and it may still run; look at its effects before you run it once more"
)


class TerminalShell(Shell):
    """A command without standard input, whose processes the editor ends.

    ``report`` is the report of the sandbox, if the command is in one.
    """

    def __init__(
        self, shell_id: str, command: str, terminal: EditorTerminal, report: SandboxReport | None = None
    ) -> None:
        self._begin(shell_id, command)
        self._input_fd = None
        self._terminal = terminal
        self._seen = ""
        self._problem: str | None = None
        self._report = report
        self.confined = report.confined if report is not None else None

    @property
    def messages(self) -> list[str]:
        told = [] if self._report is None else self._report.messages(self)
        return told if self._problem is None else [*told, self._problem]

    @property
    def alive(self) -> bool:
        return not self.finished

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """Ask the editor to end the command. Not cancellable, but bounded."""
        with anyio.CancelScope(shield=True):
            if not self.finished:
                with anyio.move_on_after(max(grace_s, 0.1)), contextlib.suppress(ClientCallError):
                    await self._terminal.kill()
                    await self._finished.wait()
            self._scope.cancel()
            await self._closed.wait()

    async def supervise(self) -> None:
        """Poll the output until the command ends, then release the terminal."""
        exit_code = HUNG_UP
        try:
            with self._scope:
                exit_code = await self._until_end()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(END_TIMEOUT_S):
                with contextlib.suppress(ClientCallError):
                    await self._read_output()
                with contextlib.suppress(ClientCallError):
                    await self._terminal.release()
            if self._report is not None:
                with anyio.CancelScope(shield=True), anyio.move_on_after(SETTLE_S):
                    await self._report.settle()
            if not self.finished:
                self._finish_with(exit_code)
            self._closed.set()

    async def _until_end(self) -> int:
        """Return the exit code, which an editor that cannot wait for the command may tell with the output."""
        code: int | None = None
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                nonlocal code
                try:
                    code = await self._terminal.wait()
                except ClientCallError as error:
                    self._problem = f"the editor cannot wait for the command: {error}"
                else:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(wait)
            failures = 0
            while code is None:
                await anyio.sleep(POLL_INTERVAL_S)
                try:
                    code = await self._read_output()
                    failures = 0
                except ClientCallError as error:
                    failures += 1
                    if self._problem is not None or failures == MOST_FAILURES:
                        self._problem = f"the editor has failed ({error}): {UNKNOWN}"
                        break
            tasks.cancel_scope.cancel()
        if code is None:
            return HUNG_UP
        self._problem = None
        return code

    async def _read_output(self) -> int | None:
        """Take the new output; return the exit code of a command that has ended.

        Raises:
            ClientCallError: the editor has failed.
        """
        output = await self._terminal.output()
        text = output.text
        new = text[len(self._seen) :] if not output.truncated and text.startswith(self._seen) else text
        if new:
            if len(new) == len(text) and self._seen:
                # The beginning was dropped or overwritten: start again with the current text.
                self._output = OutputBuffer()
            self._output.append(new.encode("utf-8", "replace"))
            self._seen = text
            self._notify()
        return output.exit_code
