"""The files that the file tools work on: those on the disk, or as an editor has them that lends its buffers."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from jumpseat.agent.editor import EditorFiles
from jumpseat.errors import ClientCallError
from jumpseat.tools.nofollow import create_file, open_place, replace_file

LARGEST_BYTES: Final = 8 * 1024 * 1024
"""Larger files are read from the disk: nobody has them open, and they would go over the wire as a whole."""


class Files:
    """``editor`` is whoever has the files open, if anybody has. What exists is for the disk to say.

    A path that was judged is opened where it led then, whatever links have been made since.
    """

    def __init__(self, editor: EditorFiles | None = None) -> None:
        self._editor = editor
        self._unsaved: dict[Path, bytes] = {}
        self._judged: dict[Path, Path] = {}

    def settle(self, path: Path, place: Path) -> None:
        """Take note that permission was given for ``path`` where it leads to ``place``."""
        self._judged[path] = place

    def place(self, path: Path) -> Path:
        """Where a path leads: as it was judged, else now."""
        return self._judged.get(path) or Path(os.path.realpath(path))

    def look(self, path: Path) -> int:
        """A descriptor of a file or folder to read, which is the caller's to close.

        Raises:
            OSError: it cannot be opened.
        """
        return open_place(self.place(path))

    async def open(self, path: Path) -> None:
        """Learn how the editor has a file, for what is read of it until it is opened again."""
        self._unsaved.pop(path, None)
        if self._editor is None or (saved := _text(path)) is None:
            return
        text = await self._editor.read(path)
        # Editors have line ends of their own; that alone is no difference.
        if text is not None and text.replace("\r\n", "\n") != saved.replace("\r\n", "\n"):
            self._unsaved[path] = text.encode("utf-8", "surrogateescape")

    def unsaved(self, path: Path) -> bytes | None:
        """An opened file as the editor has it; ``None`` where that is what the disk has."""
        return self._unsaved.get(path)

    def read(self, path: Path) -> bytes:
        """The whole of a file, as the editor has it where it was opened.

        Raises:
            OSError: it cannot be read.
        """
        unsaved = self.unsaved(path)
        if unsaved is not None:
            return unsaved
        with open(self.look(path), "rb") as file:
            return file.read()

    async def replace(self, path: Path, data: bytes, mode: int) -> None:
        """Change a file as a whole, with the rights that it has.

        Raises:
            OSError: it cannot be written.
        """
        if not await self._written_by_editor(path, data):
            replace_file(self.place(path), data, mode)

    async def create(self, path: Path, data: bytes) -> None:
        """Make a file, and the folders on the way to it.

        Raises:
            FileExistsError: there is something already; ``filename`` says where.
            OSError: it cannot be written.
        """
        _refuse_existing(path)
        place = self.place(path)
        try:
            if self._editor is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            if not await self._written_by_editor(path, data):
                create_file(place, data)
        except FileExistsError as error:
            if error.filename == str(place):
                error.filename = str(path)
            raise

    async def _written_by_editor(self, path: Path, data: bytes) -> bool:
        if self._editor is None:
            return False
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return False
        try:
            return await self._editor.write(path, text)
        except ClientCallError as error:
            raise OSError(errno.EIO, f"the editor did not write it ({error})", str(path)) from None


def _text(path: Path) -> str | None:
    """A file that an editor may have open; ``None`` for all that is no text, or large, or not there."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_BYTES:
            return None
        data = path.read_bytes()
    except (OSError, ValueError):
        return None
    return None if b"\0" in data else data.decode("utf-8", "surrogateescape")


def _refuse_existing(path: Path) -> None:
    # A link that leads nowhere is something, too.
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
