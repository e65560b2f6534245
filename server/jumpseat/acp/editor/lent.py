"""What the editor lends to the tools: its buffers and its terminals, as far as it offers them."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio

from jumpseat.acp.translation.params import ExitStatus, FileText, Nothing, TerminalCreated, TerminalOutput
from jumpseat.errors import ClientCallError
from jumpseat_protocol.wire import WireModel

if TYPE_CHECKING:
    from jumpseat.acp.editor.context import AcpContext
    from jumpseat.acp.editor.view import SessionView

log = logging.getLogger(__name__)

PATIENCE_S: Final = 10.0
"""How long an editor may take for a file or a terminal; some do not answer what they do not know."""
OUTPUT_BYTES: Final = 4 * 1024 * 1024

SIGNALS: Final = {"SIGHUP": 1, "SIGINT": 2, "SIGKILL": 9, "SIGPIPE": 13, "SIGTERM": 15}

R = TypeVar("R", bound=WireModel)


class LentFiles:
    """The editor's texts of one session. See :class:`jumpseat.agent.editor.EditorFiles`."""

    def __init__(self, door: AcpContext, session_id: str) -> None:
        self._door = door
        self._session_id = session_id

    async def read(self, path: Path) -> str | None:
        if not self._door.capabilities.fs.read_text_file:
            return None
        try:
            params = {"sessionId": self._session_id, "path": str(path)}
            return (await _ask(self._door, "fs/read_text_file", params, FileText)).content
        except ClientCallError as error:
            log.info("the editor did not say what is in a file, the disk counts: %s", error)
            return None

    async def write(self, path: Path, text: str) -> bool:
        if not self._door.capabilities.fs.write_text_file:
            return False
        params = {"sessionId": self._session_id, "path": str(path), "content": text}
        await _ask(self._door, "fs/write_text_file", params, Nothing)
        return True


class LentTerminals:
    """The editor's terminals, for one session. See :class:`jumpseat.agent.editor.EditorTerminals`."""

    def __init__(self, door: AcpContext, view: SessionView) -> None:
        self._door = door
        self._view = view

    async def run(self, call_id: str, command: str, cwd: Path, environ: dict[str, str]) -> LentTerminal:
        session_id = self._view.session_id
        params: dict[str, Any] = {
            "sessionId": session_id,
            "command": "bash",
            "args": ["--noprofile", "--norc", "-c", command],
            "env": [{"name": name, "value": value} for name, value in environ.items()],
            "cwd": str(cwd),
            "outputByteLimit": OUTPUT_BYTES,
        }
        opening = _Opening(self._door, params)
        # In a task of its own: an editor that is asked for a terminal may open one, whatever becomes of the caller.
        self._door.connection.tasks.start_soon(opening.ask)
        terminal = await opening.opened()
        self._view.show_terminal(call_id, terminal.id)
        return terminal


class _Opening:
    """The question for one terminal. What comes of it goes back at once where nobody waits for it any more."""

    def __init__(self, door: AcpContext, params: dict[str, Any]) -> None:
        self._door = door
        self._params = params
        self._answered = anyio.Event()
        self._terminal: LentTerminal | None = None
        self._error: ClientCallError | None = None
        self._unwanted = False

    async def ask(self) -> None:
        try:
            created = await _ask(self._door, "terminal/create", self._params, TerminalCreated)
            self._terminal = LentTerminal(self._door, self._params["sessionId"], created.terminal_id)
        except ClientCallError as error:
            self._error = error
        self._answered.set()
        if self._unwanted and self._terminal is not None:
            with suppress(ClientCallError):
                await self._terminal.release()

    async def opened(self) -> LentTerminal:
        """The terminal.

        Raises:
            ClientCallError: the editor opened none.
        """
        try:
            await self._answered.wait()
        except anyio.get_cancelled_exc_class():
            self._unwanted = True
            raise
        if self._terminal is None:
            raise self._error or ClientCallError("the editor opened no terminal")
        return self._terminal


class LentTerminal:
    """One of them."""

    def __init__(self, door: AcpContext, session_id: str, terminal_id: str) -> None:
        self.id = terminal_id
        self._door = door
        self._params = {"sessionId": session_id, "terminalId": terminal_id}

    async def output(self) -> tuple[str, bool]:
        answer = await _ask(self._door, "terminal/output", self._params, TerminalOutput)
        return answer.output, answer.truncated

    async def wait(self) -> int:
        status = await self._door.connection.ask("terminal/wait_for_exit", self._params, ExitStatus)
        if status.exit_code is not None:
            return status.exit_code
        return 128 + SIGNALS.get(status.signal or "", 9)

    async def kill(self) -> None:
        await _ask(self._door, "terminal/kill", self._params, Nothing)

    async def release(self) -> None:
        await _ask(self._door, "terminal/release", self._params, Nothing)


async def _ask(door: AcpContext, method: str, params: dict[str, Any], result: type[R]) -> R:
    with anyio.move_on_after(PATIENCE_S):
        return await door.connection.ask(method, params, result)
    raise ClientCallError(f"the editor did not answer {method!r} within {PATIENCE_S:.0f} seconds")
