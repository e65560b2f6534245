"""What an editor may lend to the tools of a session: its buffers and its terminals."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class EditorFiles(Protocol):
    """Texts as the editor has them, with changes that are not saved yet."""

    async def read(self, path: Path) -> str | None:
        """The text of a file; ``None`` where the editor has nothing to say of it, and the disk is right."""
        ...

    async def write(self, path: Path, text: str) -> bool:
        """Change or make a file by way of the editor; ``False`` where it does not do so at all.

        Raises:
            ClientCallError: it would not, or could not.
        """
        ...


class EditorTerminal(Protocol):
    """One command in a terminal of the editor. All raise ``ClientCallError`` where the editor fails or is gone."""

    async def output(self) -> tuple[str, bool]:
        """All output that is kept, and whether its beginning was dropped."""
        ...

    async def wait(self) -> int:
        """The exit code, when it has ended; of one that a signal has ended, as shells report it."""
        ...

    async def kill(self) -> None:
        """End the command."""
        ...

    async def release(self) -> None:
        """Be done with it; what it has shown stays on the screen."""
        ...


class EditorTerminals(Protocol):
    """The terminals of the editor."""

    async def run(self, call_id: str, command: str, cwd: Path, environ: dict[str, str]) -> EditorTerminal:
        """Run a command line in bash, shown with the tool call; ``environ`` comes on top of the editor's own.

        One that is opened for a caller who was cancelled is given back.

        Raises:
            ClientCallError: the editor did not.
        """
        ...
