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
"""Exit code of a command whose editor has disconnected, as after SIGHUP."""


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
        self._report = report
        self.confined = report.confined if report is not None else None

    @property
    def messages(self) -> list[str]:
        return [] if self._report is None else self._report.messages(self)

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
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._poll)
                    exit_code = await self._wait()
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(END_TIMEOUT_S):
                await self._read_output()
                with contextlib.suppress(ClientCallError):
                    await self._terminal.release()
            if self._report is not None:
                with anyio.CancelScope(shield=True), anyio.move_on_after(SETTLE_S):
                    await self._report.settle()
            if not self.finished:
                self._finish_with(exit_code)
            self._closed.set()

    async def _wait(self) -> int:
        try:
            return await self._terminal.wait()
        except ClientCallError:
            return HUNG_UP

    async def _poll(self) -> None:
        while True:
            await anyio.sleep(POLL_INTERVAL_S)
            await self._read_output()

    async def _read_output(self) -> None:
        try:
            text, truncated = await self._terminal.output()
        except ClientCallError:
            return
        new = text[len(self._seen) :] if not truncated and text.startswith(self._seen) else text
        if new:
            if len(new) == len(text) and self._seen:
                # The beginning was dropped or overwritten: start again with the current text.
                self._output = OutputBuffer()
            self._output.append(new.encode("utf-8", "replace"))
            self._seen = text
            self._notify()
