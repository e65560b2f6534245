"""The files that a server has open, and what it says about all files of its project.

For each file, the diagnostics that are known are kept with the text that they belong to. What a server says later
is compared with them, so that only new diagnostics are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
from msgspec import Struct, field

from jumpseat.lsp.delta import Diagnostic, Lines, brought

MOST_DIAGNOSTICS: Final = 2000
"""More diagnostics of one file are not compared."""

MOST_FILES: Final = 5000
"""Files about which a server may say something."""


class Document(Struct):
    """An open file. ``stamp`` is the state of the file on the disk when ``text`` was read."""

    path: Path
    language: str
    text: str
    version: int = 1
    stamp: tuple[int, int] | None = None
    used: int = 0


class File(Struct):
    """What is known about a file, open or not.

    ``known`` are the diagnostics before the last change, which belong to ``known_text``; ``None``: not known yet.
    ``pushed`` and ``pulled`` are the latest ones; ``version`` is that of the text that ``pushed`` belongs to, and
    ``fresh`` is whether the server has said something since the last change. ``told`` were shown to the model.
    """

    known: list[Diagnostic] | None = None
    known_text: str | None = None
    pushed: list[Diagnostic] = field(default_factory=list[Diagnostic])
    pulled: list[Diagnostic] = field(default_factory=list[Diagnostic])
    version: int | None = None
    fresh: bool = False
    flooded: bool = False
    told: set[Diagnostic] = field(default_factory=set[Diagnostic])

    @property
    def latest(self) -> list[Diagnostic]:
        return [*self.pulled, *(found for found in self.pushed if found not in self.pulled)]


class Documents:
    """The files of one running server. With ``warnings``, diagnostics of this kind are kept, too."""

    def __init__(self, *, warnings: bool) -> None:
        self._worst = 2 if warnings else 1
        self.open: dict[Path, Document] = {}
        self._files: dict[Path, File] = {}
        self._late: list[tuple[Path, Diagnostic]] = []
        # The new names by the old ones, if the last change is a rename.
        self.names: Mapping[str, str] = {}
        self.heard = anyio.Event()
        self.heard_at = 0.0

    def file(self, path: Path) -> File:
        """Return what is known about a file."""
        return self._files.setdefault(path, File())

    def forget(self, path: Path) -> None:
        """Remove a file that was deleted."""
        self.open.pop(path, None)
        self._files.pop(path, None)

    def push(self, path: Path, version: int | None, diagnostics: Sequence[Any]) -> None:
        """Take what a server says by itself."""
        if path not in self._files and len(self._files) >= MOST_FILES:
            return
        file, document = self.file(path), self.open.get(path)
        if version is not None and document is not None and version < document.version:
            # It belongs to an earlier text.
            self.hear()
            return
        file.flooded = file.flooded or len(diagnostics) > MOST_DIAGNOSTICS
        file.pushed = [] if file.flooded else self._taken(diagnostics)
        file.version, file.fresh = version, True
        self.hear()

    def pull(self, path: Path, diagnostics: Sequence[Any]) -> None:
        """Take what a server has answered."""
        file = self.file(path)
        file.flooded = file.flooded or len(diagnostics) > MOST_DIAGNOSTICS
        file.pulled, file.fresh = [] if file.flooded else self._taken(diagnostics), True
        self.hear()

    def hear(self) -> None:
        """Note that the server has said something."""
        self.heard_at = anyio.current_time()
        self.heard.set()
        self.heard = anyio.Event()

    def _taken(self, diagnostics: Sequence[Any]) -> list[Diagnostic]:
        """Return the diagnostics of lsprotocol that count."""
        return [
            Diagnostic(
                found.range.start.line,
                found.range.start.character,
                found.message if isinstance(found.message, str) else found.message.value,
                int(found.severity or 1),
                found.source or "",
                "" if found.code is None else str(found.code),
            )
            for found in diagnostics
            if (found.severity or 1) <= self._worst
        ]

    def begin(self) -> None:
        """Take the state before a change: what was said about the present texts is known from here on."""
        self._late = self.take()
        for path, file in self._files.items():
            document = self.open.get(path)
            if file.known is None and document is not None and not file.fresh:
                continue
            if document is None or file.fresh:
                file.known, file.told = file.latest, set()
                file.known_text = None if document is None else document.text

    def change(self, path: Path) -> None:
        """Note that the text of a file has been sent, so that what was said about it is old."""
        self.file(path).fresh = False

    def take(self) -> list[tuple[Path, Diagnostic]]:
        """Return the new diagnostics that were not taken before."""
        late = [(path, found) for path, found in self._late if self._is_still_there(path, found)]
        self._late = []
        return [*late, *self._new()]

    def _is_still_there(self, path: Path, found: Diagnostic) -> bool:
        return any(found.identity == now.identity for now in self.file(path).latest)

    def _new(self) -> Iterator[tuple[Path, Diagnostic]]:
        for path, file in self._files.items():
            if file.flooded or not file.fresh or not (latest := file.latest):
                continue
            document = self.open.get(path)
            if file.known is None and document is not None:
                continue
            after = "" if document is None else document.text
            lines = Lines(after if file.known_text is None else file.known_text, after)
            for found in brought(file.known or [], latest, lines, self.names):
                if found not in file.told:
                    file.told.add(found)
                    yield path, found
