"""The files that a server has open, and what it says about all files of its project.

For each file, the diagnostics that are known are kept with the text that they belong to. What a server says later
is compared with them, so that only new diagnostics are told.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import anyio.to_thread
from msgspec import Struct, field

from jumpseat.lsp.delta import Diagnostic, Lines, brought

log = logging.getLogger(__name__)

MOST_DIAGNOSTICS: Final = 2000
"""More diagnostics of one file are not compared."""

MOST_OF_ALL: Final = 20_000
"""Diagnostics of all files that are kept. Those of further files are not compared."""

MOST_FILES: Final = 5000
"""Files about which a server may say something."""

LONGEST_MESSAGE: Final = 2000
"""Characters of a message that are kept."""


Hidden: TypeAlias = tuple[tuple[str, str, str], str]
"""The identity of a diagnostic, and the text of its line."""


class Document(Struct):
    """An open file. ``stamp`` is the state of the file on the disk when ``text`` was read."""

    path: Path
    language: str
    text: str
    version: int = 1
    stamp: tuple[int, int] | None = None
    used: int = 0


class File(Struct):
    """The known facts about a file, open or not.

    ``known`` are the diagnostics before the last change, which belong to ``known_text``; ``None``: not known yet.
    ``pushed`` and ``pulled`` are the latest ones; ``version`` is that of the text that ``pushed`` belongs to, and
    ``fresh`` is whether the server has said something since the last change. ``told`` were shown to the model.
    ``hidden`` are old ones, with their lines, that are missing since a change that has brought errors: the checker
    may come back to them once these are repaired.
    ``assumed``: nothing was said about the text before the first change.
    """

    known: list[Diagnostic] | None = None
    known_text: str | None = None
    pushed: list[Diagnostic] = field(default_factory=list[Diagnostic])
    pulled: list[Diagnostic] = field(default_factory=list[Diagnostic])
    version: int | None = None
    fresh: bool = False
    heard_at: float = 0.0
    assumed: bool = False
    flooded: bool = False
    told: set[Diagnostic] = field(default_factory=set[Diagnostic])
    hidden: set[Hidden] = field(default_factory=set[Hidden])

    @property
    def latest(self) -> list[Diagnostic]:
        if not self.pulled or not self.pushed:
            return self.pulled or self.pushed
        return list(dict.fromkeys([*self.pulled, *self.pushed]))


class _Compared(Struct, frozen=True):
    """A file at one moment: what was known about it, and what is said now about ``text``."""

    path: Path
    told: set[Diagnostic]
    known: list[Diagnostic]
    latest: list[Diagnostic]
    known_text: str
    text: str
    names: Mapping[str, str]
    hidden: set[Hidden]
    doubtful: set[Diagnostic]


class _Passed(Struct, frozen=True):
    """A file whose change has brought errors, perhaps elsewhere: what was known before it, and what is after it.

    ``is_old``: that may still be what a build has found before the change, at the places of then.
    """

    file: File
    known: list[Diagnostic]
    latest: list[Diagnostic]
    known_text: str
    text: str
    is_old: bool


class Documents:
    """The files of one running server. With ``warnings``, diagnostics of this kind are kept, too."""

    def __init__(self, *, warnings: bool) -> None:
        self._worst = 2 if warnings else 1
        self.open: dict[Path, Document] = {}
        self._files: dict[Path, File] = {}
        self._kept = 0
        self._late: list[tuple[Path, Diagnostic]] = []
        # The new names by the old ones, if the last change is a rename.
        self.names: Mapping[str, str] = {}
        # Whether the errors of builds were there before the last change is known: builds read the disk.
        self.knows_builds = True
        # Until then, what builds have found, which is pushed, may belong to a text before the last change.
        self._builds_are_old_until = -math.inf
        # Whether a change was sent since the last state before one was taken.
        self._is_changed = False
        self.heard = anyio.Event()
        self.heard_at = 0.0

    @property
    def builds_are_old(self) -> bool:
        """Return whether what builds have found may belong to a text before the last change."""
        return anyio.current_time() < self._builds_are_old_until

    @property
    def settles(self) -> bool:
        """Return whether a build has just ended, so that the server has not said yet all that it has found."""
        return self.builds_are_old and self._builds_are_old_until < math.inf

    def changed(self) -> None:
        """Note that a change was sent, and that a build of it will begin."""
        self._is_changed = True
        self.begin_build()

    def begin_build(self) -> None:
        """Note that a build of the present texts has begun, or will begin."""
        self._builds_are_old_until = math.inf

    def end_build(self, settles_s: float) -> None:
        """Note that it has ended; what it has found is known after this time."""
        self._builds_are_old_until = anyio.current_time() + settles_s

    def file(self, path: Path) -> File:
        """Return what is known about a file."""
        return self._files.setdefault(path, File())

    def forget(self, path: Path) -> None:
        """Remove a file that was deleted."""
        self.open.pop(path, None)
        if (file := self._files.pop(path, None)) is not None:
            self._kept -= len(file.pushed) + len(file.pulled)

    def push(self, path: Path, version: int | None, diagnostics: Sequence[Any]) -> None:
        """Take what a server says by itself."""
        if path not in self._files and len(self._files) >= MOST_FILES:
            return
        file, document = self.file(path), self.open.get(path)
        if version is not None and document is not None and version < document.version:
            # It belongs to an earlier text.
            self.hear()
            return
        file.pushed = self._taken(path, file.pushed, diagnostics)
        file.version, file.fresh, file.heard_at = version, True, anyio.current_time()
        self.hear()

    def pull(self, path: Path, diagnostics: Sequence[Any]) -> None:
        """Take what a server has answered."""
        file = self.file(path)
        file.pulled, file.fresh = self._taken(path, file.pulled, diagnostics), True
        file.heard_at = anyio.current_time()
        self.hear()

    def hear(self) -> None:
        """Note that the server has said something."""
        self.heard_at = anyio.current_time()
        self.wake()

    def wake(self) -> None:
        """Let those who wait for ``heard`` look again."""
        self.heard.set()
        self.heard = anyio.Event()

    def _taken(self, path: Path, earlier: Sequence[Diagnostic], diagnostics: Sequence[Any]) -> list[Diagnostic]:
        """Return the diagnostics of lsprotocol that count, in place of earlier ones; none if there are too many."""
        file = self.file(path)
        self._kept -= len(earlier)
        is_flooded = len(diagnostics) > min(MOST_DIAGNOSTICS, MOST_OF_ALL - self._kept)
        if is_flooded and not file.flooded:
            file.flooded = True
            log.warning("a language server has too many diagnostics to compare: %d of %s", len(diagnostics), path)
        taken = [
            Diagnostic(
                found.range.start.line,
                found.range.start.character,
                (found.message if isinstance(found.message, str) else found.message.value)[:LONGEST_MESSAGE],
                int(found.severity or 1),
                found.source or "",
                "" if found.code is None else str(found.code),
            )
            for found in (() if file.flooded else diagnostics)
            if (found.severity or 1) <= self._worst
        ]
        self._kept += len(taken)
        return taken

    async def begin(self) -> None:
        """Take the state before a change: what was said about the present texts is known from here on."""
        late, compared = self._late, self._compared()
        is_old, self._is_changed = self.builds_are_old and self._is_changed, False
        is_broken = bool(late) or any(file.told for file in self._files.values())
        passed: list[_Passed] = []
        for path, file in self._files.items():
            document = self.open.get(path)
            if document is not None and not file.fresh:
                continue
            text = "" if document is None else document.text
            if file.known and (is_old or (is_broken and file.known != file.latest)):
                known_text = text if file.known_text is None else file.known_text
                passed.append(_Passed(file, file.known, file.latest, known_text, text, is_old))
            elif file.hidden:
                there = {one.identity for one in file.latest}
                file.hidden = {found for found in file.hidden if found[0] not in there}
            file.known, file.told, file.assumed = file.latest, set(), False
            file.known_text = None if document is None else text
        if passed:
            await anyio.to_thread.run_sync(_hide, passed)
        self._late = await self._brought(late, compared)

    def change(self, path: Path) -> None:
        """Note that the text of a file has been sent, so that what was said about it is old."""
        self.file(path).fresh = False

    def keep(self, path: Path) -> None:
        """Note that what was said about the text of a file before also holds for the present one."""
        self.file(path).fresh = True

    async def take(self, changing: Collection[Path] = ()) -> list[tuple[Path, Diagnostic]]:
        """Return the new diagnostics that were not taken before, but for those of files that are ``changing``.

        The server has not been shown the last text of these: what it has said may be repaired.
        """
        late = self._late
        held = [found for found in late if found[0] in changing]
        found = await self._brought([found for found in late if found[0] not in changing], self._compared(changing))
        if self._late is late:
            self._late = held
        return found

    def _compared(self, besides: Collection[Path] = ()) -> list[_Compared]:
        """Return the files about which there may be something new."""
        compared: list[_Compared] = []
        for path, file in self._files.items():
            if path in besides:
                continue
            document = self.open.get(path)
            if file.flooded or not file.fresh or (file.known is None and document is not None):
                continue
            if latest := file.pulled if self.builds_are_old else file.latest:
                text = "" if document is None else document.text
                known_text = text if file.known_text is None else file.known_text
                known = file.known or []
                doubtful = set(latest) if file.assumed else set[Diagnostic]()
                if not self.knows_builds:
                    doubtful.update(file.pushed)
                    doubtful.difference_update(file.pulled)
                compared.append(
                    _Compared(path, file.told, known, latest, known_text, text, self.names, file.hidden, doubtful)
                )
        return compared

    async def _brought(
        self, late: Sequence[tuple[Path, Diagnostic]], compared: Sequence[_Compared]
    ) -> list[tuple[Path, Diagnostic]]:
        """Return what files bring, after what earlier changes have brought if it is still there.

        Compared in a thread, since a server may say much about a large file.
        """
        latest = {path: self.file(path).latest for path, _ in late}
        still, new = await anyio.to_thread.run_sync(_compare, late, latest, compared)
        # Something else may have been told meanwhile.
        found = [*still]
        for file, diagnostics in new:
            untold = [one for one in diagnostics if one not in file.told]
            file.told.update(untold)
            found.extend((file.path, one) for one in untold)
        return found


def _compare(
    late: Sequence[tuple[Path, Diagnostic]],
    latest: dict[Path, list[Diagnostic]],
    compared: Sequence[_Compared],
) -> tuple[list[tuple[Path, Diagnostic]], list[tuple[_Compared, list[Diagnostic]]]]:
    there = {path: {found.identity for found in diagnostics} for path, diagnostics in latest.items()}
    still = [(path, found) for path, found in late if found.identity in there[path]]
    return still, [(one, _new(one)) for one in compared]


def _new(file: _Compared) -> list[Diagnostic]:
    """Return what a change has brought, but for old ones that only come back, and for those in doubt elsewhere."""
    if file.latest == file.known:
        # A busy server may say once more what it has said about the text before, at the old places.
        return []
    lines = Lines(file.known_text, file.text)
    return [
        one
        for one in brought(file.known, file.latest, lines, file.names)
        if lines.has_changed(one.line)
        or (one not in file.doubtful and (one.identity, lines.new_text(one.line)) not in file.hidden)
    ]


def _hide(passed: Sequence[_Passed]) -> None:
    """Note the old diagnostics that a change with errors has hidden, and which of them are there again."""
    for one in passed:
        back = Lines(one.text, one.known_text)
        gone = one.known if one.is_old else brought(one.latest, one.known, back)
        there = {found.identity for found in one.latest}
        still = {found for found in one.file.hidden if found[0] not in there}
        still.update((found.identity, back.new_text(found.line)) for found in gone)
        one.file.hidden = still if len(still) <= MOST_DIAGNOSTICS else set()
