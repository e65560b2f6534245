"""The buffers and terminals that an editor makes available to the tools of a session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class EditorFiles(Protocol):
    """Files as the editor shows them, including unsaved changes."""

    async def read(self, path: Path) -> str | None:
        """Return the text of a file; ``None`` if the editor does not serve it, so that the file on disk counts."""
        ...

    async def write(self, path: Path, text: str) -> bool:
        """Write a file through the editor; return ``False`` if the editor cannot write files at all.

        Raises:
            ClientCallError: the editor refused or failed to write the file.
        """
        ...


class EditorTerminal(Protocol):
    """A command in a terminal of the editor.

    All methods raise :class:`~jumpseat.errors.ClientCallError` if the editor fails or is disconnected.
    """

    async def output(self) -> tuple[str, bool]:
        """Return the retained output, and whether its beginning was dropped."""
        ...

    async def wait(self) -> int:
        """Wait for the command and return its exit code; 128 + N after signal N, as shells report it."""
        ...

    async def kill(self) -> None:
        """Kill the command."""
        ...

    async def release(self) -> None:
        """Release the terminal; its output stays visible in the editor."""
        ...


class EditorTerminals(Protocol):
    """The terminals of the editor."""

    async def run(self, call_id: str, command: Sequence[str], cwd: Path, environ: dict[str, str]) -> EditorTerminal:
        """Run a program with arguments in a terminal shown with the tool call ``call_id``.

        ``environ`` is added to the editor's own environment. A terminal that opens after its caller was cancelled
        is released.

        Raises:
            ClientCallError: the editor did not open a terminal.
        """
        ...
