"""A command that runs in a terminal of the editor, for the tools like any other: its output is asked for."""

from __future__ import annotations

import contextlib
from typing import Final

import anyio

from jumpseat.agent.editor import EditorTerminal
from jumpseat.errors import ClientCallError
from jumpseat.tools.shell.process import GRACE_S, OutputBuffer, Shell

LOOK_S: Final = 0.5
"""How often the output is asked for while the command runs; the person sees it without that."""
PATIENCE_S: Final = 2.0
"""How long an editor is waited for at the end of a command."""
GONE: Final = 129
"""The exit code of a command whose editor is gone: as of one that was hung up on."""


class TerminalShell(Shell):
    """Reads nothing; its processes are the editor's to end."""

    def __init__(self, shell_id: str, command: str, terminal: EditorTerminal) -> None:
        self._begin(shell_id, command)
        self._input_fd = None
        self._terminal = terminal
        self._seen = ""

    @property
    def alive(self) -> bool:
        return not self.finished

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """Have the editor end the command. Not interruptible, but bounded."""
        with anyio.CancelScope(shield=True):
            if not self.finished:
                with anyio.move_on_after(max(grace_s, 0.1)), contextlib.suppress(ClientCallError):
                    await self._terminal.kill()
                    await self._finished.wait()
            self._scope.cancel()
            await self._closed.wait()

    async def supervise(self) -> None:
        """Follow the command to its end, and give the terminal back."""
        exit_code = GONE
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._look_again)
                    exit_code = await self._wait()
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(PATIENCE_S):
                await self._look()
                with contextlib.suppress(ClientCallError):
                    await self._terminal.release()
            if not self.finished:
                self._finish_with(exit_code)
            self._closed.set()

    async def _wait(self) -> int:
        try:
            return await self._terminal.wait()
        except ClientCallError:
            return GONE

    async def _look_again(self) -> None:
        while True:
            await anyio.sleep(LOOK_S)
            await self._look()

    async def _look(self) -> None:
        try:
            text, truncated = await self._terminal.output()
        except ClientCallError:
            return
        new = text[len(self._seen) :] if not truncated and text.startswith(self._seen) else text
        if new:
            if len(new) == len(text) and self._seen:
                # The beginning was dropped or drawn over: what there is now counts.
                self._output = OutputBuffer()
            self._output.append(new.encode("utf-8", "replace"))
            self._seen = text
            self._tell()
