"""The files that are shown to a server, as texts of the editor's side of the protocol.

Those of the disk count until a change brings another text, and again as soon as something else writes them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread
from msgspec import Struct, field

from jumpseat.lsp.documents import Document, Documents
from jumpseat.lsp.related import related_files, words_of
from jumpseat.system.regular_files import read_whole

if TYPE_CHECKING:
    from jumpseat.lsp.client import Client

MOST_OPEN: Final = 40
MOST_RELATED: Final = 15
LARGEST_FILE: Final = 2 * 1024 * 1024


class Change(Struct, frozen=True):
    """A file before and after a change; ``None`` where there is no file. A rename has new names by the old ones."""

    before: str | None
    after: str | None
    names: Mapping[str, str] = field(default_factory=dict[str, str])


class OpenFiles:
    """The files of ``documents``, which ``client`` opens, changes and closes.

    ``languages`` are by file extension.
    """

    def __init__(self, client: Client, root: Path, languages: Mapping[str, str], documents: Documents) -> None:
        self._client = client
        self._root = root
        self._languages = languages
        self._documents = documents
        self._used = 0

    async def synchronize(self, besides: Collection[Path] = ()) -> None:
        """Send the texts of open files that something else has changed on the disk."""
        for path, document in list(self._documents.open.items()):
            if path in besides:
                continue
            try:
                if _stamp(path) == document.stamp:
                    continue
                text, stamp = await anyio.to_thread.run_sync(_read, path)
            except (OSError, ValueError):
                self._close(path)
                continue
            document.stamp = stamp
            self.set_text(path, text)

    async def open(self, path: Path) -> None:
        """Open a file with its text of the disk, unless it is open.

        Raises:
            OSError, ValueError: it cannot be read, or is too large.
        """
        if path not in self._documents.open:
            text, stamp = await anyio.to_thread.run_sync(_read, path)
            self._open(path, text).stamp = stamp

    def set_text(self, path: Path, text: str) -> None:
        """Send the text of a file, if it is another one; opens the file if necessary."""
        document = self._documents.open.get(path)
        if document is None:
            self._open(path, text)
        elif document.text != text:
            document.text, document.version = text, document.version + 1
            self._documents.change(path)
            self._client.change(path, document.version, text)

    async def open_related(self, path: Path, change: Change) -> None:
        """Open files that may use what a change of another one takes away."""
        words = words_of(path, change.before or "", change.after or "")
        related = await anyio.to_thread.run_sync(
            related_files, self._root, path, self._languages.keys(), words, MOST_RELATED, abandon_on_cancel=True
        )
        for other in related:
            self._used += 1
            if (document := self._documents.open.get(other)) is not None:
                document.used = self._used
                continue
            try:
                await self.open(other)
            except (OSError, ValueError):
                continue

    def close_oldest(self, besides: Collection[Path]) -> None:
        """Close the files that were not used for the longest time, if too many are open."""
        used = sorted(self._documents.open.values(), key=lambda document: document.used)
        for document in used[: max(0, len(used) - MOST_OPEN)]:
            if document.path not in besides:
                self._close(document.path)

    def apply(self, path: Path, change: Change) -> None:
        """Send the text after a change, or that the file was deleted."""
        if change.after is None:
            self._close(path)
            self._documents.forget(path)
            self._client.touch(path, "deleted", None)
            if (other := next(iter(self._documents.open.values()), None)) is not None:
                # Some servers look at other files only when something is saved.
                self._client.save(other.path, other.text)
            return
        is_new = path not in self._documents.open
        if is_new:
            file = self._documents.file(path)
            file.known, file.known_text = [], ""
        self.set_text(path, change.after)
        self._documents.open[path].stamp = _stamp_of_text(path, change.after)
        self._client.touch(path, "created" if is_new else "changed", change.after)

    def _open(self, path: Path, text: str) -> Document:
        self._used += 1
        language = self._languages[path.suffix.lower()]
        document = self._documents.open[path] = Document(path, language, text, used=self._used)
        self._documents.change(path)
        self._client.open(path, language, text)
        return document

    def _close(self, path: Path) -> None:
        if self._documents.open.pop(path, None) is not None:
            self._client.close(path)


def _read(path: Path) -> tuple[str, tuple[int, int]]:
    """Return the text of a file, and its state.

    Raises:
        OSError, ValueError: the file cannot be read, or is too large.
    """
    stamp = _stamp(path)
    return read_whole(path, LARGEST_FILE).decode("utf-8", "replace"), stamp


def _stamp(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


def _stamp_of_text(path: Path, text: str) -> tuple[int, int] | None:
    """Return the state of a file if it has this text, as far as its size shows."""
    try:
        stamp = _stamp(path)
    except OSError:
        return None
    return stamp if stamp[1] == len(text.encode("utf-8", "replace")) else None
