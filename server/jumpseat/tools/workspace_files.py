"""The files that the file tools work on: on disk, or in the buffers of the user's editor.

Permission is given for the place that a path resolves to, and no link that is created on the way afterwards is
followed (:mod:`jumpseat.system.nofollow`).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import anyio.to_thread
from msgspec import Struct

from jumpseat.agent.client import EditorFiles
from jumpseat.errors import ClientCallError
from jumpseat.system.nofollow import (
    CAN_WALK,
    LinkInPathError,
    create_file,
    delete_file,
    mode_of,
    open_folder,
    open_place,
    replace_file,
)
from jumpseat.system.regular_files import read_whole


class BufferConflictError(OSError):
    """A tool has changed the file, and the user's editor has other text, which may be unsaved."""

    def __init__(self, path: str) -> None:
        super().__init__(
            errno.EBUSY,
            "a command has changed it, and the user's editor has another text of it, perhaps with unsaved changes."
            " An edit would lose one of them: ask the user to save or to reload the file, or change it with bash",
            path,
        )


class FileEdit(Struct, frozen=True):
    """A change of a file that a tool has made: its content before (``None``: new) and after (``None``: deleted).

    With ``kept`` unset, the contents are not known, and only ``existed`` and ``exists`` say what has happened.
    ``mode`` is that of the file before, if it is known. ``place`` is where ``path`` resolved to.
    """

    path: Path
    place: Path
    before: bytes | None
    after: bytes | None
    existed: bool
    exists: bool
    kept: bool = True
    mode: int | None = None


Changed: TypeAlias = Callable[[FileEdit], None]

LARGEST_READ: Final = 64 * 1024 * 1024
"""Largest file that is read as a whole."""

LARGEST_BYTES: Final = 8 * 1024 * 1024
"""Larger files are read from disk: they are rarely open, and an editor would send them as a whole."""


class Files:
    """Reads and writes files through ``editor``, if there is one; whether a file exists is decided by the disk.

    A path for which permission was given is opened where it resolved to then, whatever links were made since.
    ``changed`` is called after each change.
    """

    def __init__(self, editor: EditorFiles | None = None, changed: Changed | None = None) -> None:
        self._editor = editor
        self._changed = changed
        self._unsaved: dict[Path, str] = {}
        self._conflicts: set[Path] = set()
        self._judged: dict[Path, Path] = {}

    def settle(self, path: Path, place: Path) -> None:
        """Record that permission was given for ``path`` while it resolved to ``place``."""
        self._judged[path] = place

    def place(self, path: Path) -> Path:
        """Return where a path resolved to when permission was given, else where it resolves to now."""
        return self._judged.get(path) or Path(os.path.realpath(path))

    def open_for_reading(self, path: Path) -> int:
        """Open a file or folder for reading and return the descriptor, which the caller closes.

        Raises:
            OSError: the file cannot be opened.
        """
        return open_place(self.place(path))

    async def open(self, path: Path) -> None:
        """Ask the editor for unsaved changes to a file; reads use them until the file is opened again."""
        self._unsaved.pop(path, None)
        self._conflicts.discard(path)
        if self._editor is None or self._leads_elsewhere(path):
            return
        found = await anyio.to_thread.run_sync(_text, path, abandon_on_cancel=True)
        if found is None:
            return
        text = await self._editor.read(path)
        state = "saved" if text is None else self._editor.history.judge(path, found.saved, text, found.changed_ns)
        if state == "unsaved" and text is not None:
            self._unsaved[path] = text
        elif state == "conflict":
            self._conflicts.add(path)

    def unsaved(self, path: Path) -> bytes | None:
        """Return the unsaved content of an opened file; ``None`` if the file on the disk counts."""
        text = self._unsaved.get(path)
        return None if text is None else text.encode("utf-8", "surrogateescape")

    def in_conflict(self, path: Path) -> bool:
        """Return whether an opened file was changed by a tool while the editor has other text of it."""
        return path in self._conflicts

    def mode(self, path: Path) -> int | None:
        """Return the mode of a file or folder; ``None`` if there is none.

        Raises:
            OSError: the path cannot be looked at.
        """
        return mode_of(self.place(path))

    def read(self, path: Path, largest: int = LARGEST_READ) -> bytes:
        """Return the content of a file, with unsaved changes if it was opened. Blocks while the disk is read.

        Raises:
            BufferConflictError: see :meth:`in_conflict`.
            OSError: the file cannot be read, is not a regular file or has more than ``largest`` bytes.
        """
        if self.in_conflict(path):
            raise BufferConflictError(str(path))
        unsaved = self.unsaved(path)
        if unsaved is not None:
            return unsaved
        with open(self.open_for_reading(path), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file", str(path))
            content = file.read(largest + 1)
        if len(content) > largest:
            raise OSError(errno.EFBIG, f"it is larger than {largest} bytes", str(path))
        return content

    async def replace(self, path: Path, data: bytes, mode: int) -> None:
        """Replace the content of a file and keep its mode.

        Raises:
            OSError: the file cannot be written.
        """
        before = await anyio.to_thread.run_sync(self.read, path) if self._changed is not None else b""
        if not await self._write_in_editor(path, data):
            replace_file(self.place(path), data, mode)
        await self._remember(path, data)
        if self._changed is not None:
            self._changed(FileEdit(path, self.place(path), before, data, existed=True, exists=True))

    async def create(self, path: Path, data: bytes, mode: int | None = None) -> None:
        """Create a file, with ``mode`` unless the editor writes it, and its parent folders.

        Raises:
            FileExistsError: the path exists, or a parent is a file; ``filename`` is the existing path.
            OSError: the file cannot be written.
        """
        _refuse_existing(path)
        place = self.place(path)
        try:
            if self._editor is not None and CAN_WALK:
                with open_folder(place.parent, make=0o777):
                    pass
            elif self._editor is not None:
                place.parent.mkdir(parents=True, exist_ok=True)
            if not await self._write_in_editor(path, data):
                create_file(place, data, mode)
        except FileExistsError as error:
            if error.filename == str(place):
                error.filename = str(path)
            raise
        await self._remember(path, data)
        if self._changed is not None:
            self._changed(FileEdit(path, place, None, data, existed=False, exists=True))

    def delete(self, path: Path) -> None:
        """Delete a file.

        Raises:
            OSError: the file cannot be deleted.
        """
        delete_file(self.place(path))

    async def remove(self, path: Path) -> None:
        """Delete a file and report the change.

        Raises:
            OSError: the file cannot be deleted.
        """
        place, mode = self.place(path), await anyio.to_thread.run_sync(self.mode, path)
        before = await anyio.to_thread.run_sync(self.read, path) if self._changed is not None else b""
        await anyio.to_thread.run_sync(self.delete, path)
        if self._changed is not None:
            self._changed(FileEdit(path, place, before, None, existed=True, exists=False, mode=mode))

    async def _remember(self, path: Path, data: bytes) -> None:
        """Record a text that was written, unless the editor has it in the buffer only."""
        if self._editor is None:
            return
        text = data.decode("utf-8", "surrogateescape")
        found = await anyio.to_thread.run_sync(_text, path, abandon_on_cancel=True)
        # Imported late: few clients are editors that lend their buffers.
        from jumpseat.agent.buffer_history import same_text

        if found is not None and same_text(found.saved, text):
            self._editor.history.wrote(path, text, self._unsaved.get(path))

    async def _write_in_editor(self, path: Path, data: bytes) -> bool:
        if self._editor is None:
            return False
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return False
        if self._leads_elsewhere(path):
            raise LinkInPathError(str(path))
        try:
            return await self._editor.write(path, text)
        except ClientCallError as error:
            raise OSError(errno.EIO, f"the editor did not write the file ({error})", str(path)) from None

    def _leads_elsewhere(self, path: Path) -> bool:
        """Return whether the editor, which is given the path and follows links, would open another file."""
        return os.path.realpath(path) != str(self.place(path))


class _Found(Struct):
    saved: str
    changed_ns: tuple[int, int]


def _text(path: Path) -> _Found | None:
    """Return the text of a file that an editor may have open; ``None`` if it is binary, large or missing."""
    try:
        status = os.stat(path)
        data = read_whole(path, LARGEST_BYTES)
    except (OSError, ValueError):
        return None
    if b"\0" in data:
        return None
    return _Found(data.decode("utf-8", "surrogateescape"), (status.st_mtime_ns, status.st_ctime_ns))


def _refuse_existing(path: Path) -> None:
    # A dangling link counts as existing.
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
