"""The editor's buffers and terminals, for the tools of a session, as far as the editor offers them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio

from jumpseat.acp.editor.editor import Editor
from jumpseat.acp.translation.params import ExitStatus, FileText, Nothing, TerminalCreated, TerminalOutput
from jumpseat.agent.buffer_history import BufferHistory
from jumpseat.agent.client import TerminalText
from jumpseat.errors import ClientCallError, ClientRefusedError
from jumpseat_protocol.wire import WireModel

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 10.0
"""For one request about a file or a terminal; some editors do not answer methods that they do not know."""
OUTPUT_BYTES: Final = 4 * 1024 * 1024
"""The output that an editor keeps of one command."""

SIGNALS: Final = {"SIGHUP": 1, "SIGINT": 2, "SIGKILL": 9, "SIGPIPE": 13, "SIGTERM": 15}

R = TypeVar("R", bound=WireModel)


class LentFiles:
    """Files as the editor has them, unsaved changes included. See :class:`jumpseat.agent.client.EditorFiles`."""

    def __init__(self, editor: Editor, session_id: str) -> None:
        self.history = BufferHistory()
        self._editor = editor
        self._session_id = session_id

    async def read(self, path: Path) -> str | None:
        if not self._editor.capabilities.fs.read_text_file:
            return None
        try:
            params = {"sessionId": self._session_id, "path": str(path)}
            return (await _ask(self._editor, "fs/read_text_file", params, FileText)).content
        except ClientCallError as error:
            log.info("the editor did not return a file, so it is read from the disk: %s", error)
            return None

    async def write(self, path: Path, text: str) -> bool:
        if not self._editor.capabilities.fs.write_text_file:
            return False
        params = {"sessionId": self._session_id, "path": str(path), "content": text}
        await _ask(self._editor, "fs/write_text_file", params, Nothing)
        return True


class LentTerminals:
    """The editor's terminals, for one session. See :class:`jumpseat.agent.client.EditorTerminals`.

    ``show`` takes the ids of a tool call and of the terminal that shows its output.
    """

    def __init__(
        self, editor: Editor, session_id: str, show: Callable[[str, str], None], timeout_s: float = TIMEOUT_S
    ) -> None:
        self._editor = editor
        self._session_id = session_id
        self._show = show
        self._timeout_s = timeout_s
        self._is_silent = False

    async def run(self, call_id: str, command: Sequence[str], cwd: Path, environ: dict[str, str]) -> LentTerminal:
        if self._is_silent:
            raise ClientRefusedError("the editor did not answer when it was asked for a terminal before")
        params: dict[str, Any] = {
            "sessionId": self._session_id,
            "command": command[0],
            "args": list(command[1:]),
            "env": [{"name": name, "value": value} for name, value in environ.items()],
            "cwd": str(cwd),
            "outputByteLimit": OUTPUT_BYTES,
        }
        creation = _Creation(self._editor, params)
        # A task of its own: the editor may create the terminal after the caller was cancelled, or has given up.
        self._editor.connection.tasks.start_soon(creation.run)
        with anyio.move_on_after(self._timeout_s):
            terminal = await creation.terminal()
            self._show(call_id, terminal.id)
            return terminal
        self._is_silent = True
        raise ClientCallError(f"the editor did not open a terminal within {self._timeout_s:g} seconds")


class _Creation:
    """A request for a terminal. The terminal is released at once where its caller does not wait any more."""

    def __init__(self, editor: Editor, params: dict[str, Any]) -> None:
        self._editor = editor
        self._params = params
        self._answered = anyio.Event()
        self._terminal: LentTerminal | None = None
        self._error: ClientCallError | None = None
        self._abandoned = False

    async def run(self) -> None:
        """Send the request."""
        try:
            created = await self._editor.connection.ask("terminal/create", self._params, TerminalCreated)
            self._terminal = LentTerminal(self._editor, self._params["sessionId"], created.terminal_id)
        except ClientCallError as error:
            self._error = error
        self._answered.set()
        if self._abandoned:
            await self._release()

    async def _release(self) -> None:
        if self._terminal is not None:
            with suppress(ClientCallError):
                await self._terminal.release()

    async def terminal(self) -> LentTerminal:
        """Wait for the terminal.

        Raises:
            ClientCallError: the editor did not create one.
        """
        try:
            await self._answered.wait()
        except anyio.get_cancelled_exc_class():
            self._abandoned = True
            if self._answered.is_set():
                self._editor.connection.tasks.start_soon(self._release)
            raise
        if self._terminal is None:
            raise self._error or ClientCallError("the editor did not create a terminal")
        return self._terminal


class LentTerminal:
    """A terminal that the editor created. See :class:`jumpseat.agent.client.EditorTerminal`."""

    def __init__(self, editor: Editor, session_id: str, terminal_id: str) -> None:
        self.id = terminal_id
        self._editor = editor
        self._params = {"sessionId": session_id, "terminalId": terminal_id}

    async def output(self) -> TerminalText:
        answer = await _ask(self._editor, "terminal/output", self._params, TerminalOutput)
        status = answer.exit_status
        return TerminalText(answer.output, answer.truncated, None if status is None else _exit_code(status))

    async def wait(self) -> int:
        return _exit_code(await self._editor.connection.ask("terminal/wait_for_exit", self._params, ExitStatus))

    async def kill(self) -> None:
        await _ask(self._editor, "terminal/kill", self._params, Nothing)

    async def release(self) -> None:
        await _ask(self._editor, "terminal/release", self._params, Nothing)


def _exit_code(status: ExitStatus) -> int:
    return 128 + SIGNALS.get(status.signal or "", 9) if status.exit_code is None else status.exit_code


async def _ask(editor: Editor, method: str, params: dict[str, Any], result: type[R]) -> R:
    with anyio.move_on_after(TIMEOUT_S):
        return await editor.connection.ask(method, params, result)
    raise ClientCallError(f"the editor did not answer {method!r} within {TIMEOUT_S:.0f} seconds")
