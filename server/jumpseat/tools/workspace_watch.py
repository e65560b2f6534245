"""The changes that shell commands make in a workspace, found by comparing its files before and after a command.

A scan costs one ``stat`` per file; only files whose ``stat`` differs are read. Files that git ignores, links, and
workspaces with very many files are not watched. The contents from before a command are in a nameless temporary
file, which disappears with the process.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO, Final, NamedTuple

import anyio
import anyio.to_thread
from msgspec import Struct

from jumpseat.system.nofollow import open_place
from jumpseat.tools.files import is_ignored
from jumpseat.tools.workspace_files import FileEdit

log = logging.getLogger(__name__)

MOST_FILES: Final = 20_000
"""Limit of the files of a workspace that is watched."""
MOST_WITHOUT_CONTENTS: Final = 5000
"""The same where only the fact of a change is of interest."""
LARGEST_BYTES: Final = 1024 * 1024
"""Largest file whose content is kept."""
LARGEST_TOTAL: Final = 256 * 1024 * 1024
"""Limit of all contents that are kept; those of further files are not."""
SCAN_S: Final = 10.0
"""Time after which a scan gives up."""
RACY_NS: Final = 50_000_000
"""Files changed this shortly before a scan are read again: their ``stat`` might not show a later change."""

_SKIPPED: Final = frozenset({".git", ".hg", ".svn", ".jj"})


class Signature(NamedTuple):
    """The part of a file's ``stat`` that shows a change."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int
    mode: int


class _Known(Struct):
    """A file at the last scan; ``place`` is where its content is in the pack, ``None`` if that is not kept."""

    signature: Signature
    digest: bytes
    place: tuple[int, int] | None
    racy: bool


class _TooMuchError(Exception):
    """A workspace is too large to be watched."""


class WorkspaceWatch:
    """The watch over one session's workspace.

    ``record`` gets the changes of a command, in a thread. ``ignored`` lists the paths that git ignores. ``folder``
    is that of the session, if it has one; the folder of all sessions is never part of a workspace. ``is_running``
    returns whether a command of the session still runs. ``warn`` tells the user, once, that a workspace is too
    large.
    """

    def __init__(
        self,
        record: Callable[[Sequence[FileEdit]], None],
        ignored: Callable[[Path], Awaitable[frozenset[str]]],
        folder: Path | None,
        is_running: Callable[[], bool],
        warn: Callable[[str], None],
    ) -> None:
        self._record = record
        self._ignored = ignored
        self._folder = folder
        self._is_running = is_running
        self._warn = warn
        self._root: Path | None = None
        self._place = Path()
        self._too_large: Path | None = None
        self._left_out: frozenset[str] = frozenset()
        self._known: dict[str, _Known] = {}
        self._pack: IO[bytes] | None = None
        self._packed = 0
        self._watching = False
        self._lock = anyio.Lock()
        self._most_files = MOST_FILES
        self._reads = True

    def without_contents(self) -> WorkspaceWatch:
        """Compare files by their ``stat`` alone, and give up earlier: for the fact of a change."""
        self._reads, self._most_files = False, MOST_WITHOUT_CONTENTS
        return self

    async def begin(self, root: Path) -> None:
        """Look at the workspace before a command runs; earlier changes are those of the user."""
        async with self._lock:
            if root == self._too_large:
                return
            place = Path(await anyio.to_thread.run_sync(os.path.realpath, root))
            if self._watching and (root, place) == (self._root, self._place):
                await self._compare(recorded=True)
                return
            if (root, place) != (self._root, self._place) or self._packed > 2 * LARGEST_TOTAL:
                self._reset(root)
                self._place = place
            await self._compare(recorded=False)
            self._watching = self._root is not None

    async def end(self) -> None:
        """Record the changes since the last look. The watch continues while a command runs in the background."""
        async with self._lock:
            if self._watching:
                await self._compare(recorded=True)
                self._watching = self._root is not None and self._is_running()

    async def settle(self) -> None:
        """Record the changes of commands at the end of a prompt; later ones are not recorded."""
        async with self._lock:
            if self._watching:
                await self._compare(recorded=True)
                self._watching = False

    def close(self) -> None:
        """Forget everything."""
        self._reset(None)
        self._watching = False

    def _reset(self, root: Path | None) -> None:
        self._root = root
        self._known, self._packed = {}, 0
        if self._pack is not None:
            self._pack.close()
            self._pack = None

    async def _compare(self, *, recorded: bool) -> None:
        root = self._root
        if root is None:
            return
        try:
            if not recorded:
                self._left_out = await self._ignored(root)
            found = await self._changes(root, recorded=recorded)
            if any(not change.existed for change in found):
                # A command may have made what git ignores, such as the folder of installed packages.
                self._left_out |= await self._ignored(root)
                found = [change for change in found if change.existed or not self._is_left_out(root, change.path)]
            if found:
                await anyio.to_thread.run_sync(self._record, found)
        except _TooMuchError as error:
            self._too_large = root
            self._reset(None)
            self._warn(f"Changes that commands make in {str(root)!r} are not tracked: {error}.")
        except OSError as error:
            log.warning("the workspace cannot be watched: %s", error)
            self._reset(None)

    async def _changes(self, root: Path, *, recorded: bool) -> list[FileEdit]:
        try:
            return await anyio.to_thread.run_sync(self._scan, root, recorded)
        except _TooMuchError:
            self._left_out |= await self._ignored(root)
            return await anyio.to_thread.run_sync(self._scan, root, recorded)

    def _is_left_out(self, root: Path, path: Path) -> bool:
        return is_ignored(os.path.relpath(path, root), self._left_out)

    def _scan(self, root: Path, recorded: bool) -> list[FileEdit]:
        """Remember the state of all files; return their changes since the last scan if they are ``recorded``."""
        deadline = time.monotonic() + SCAN_S
        started_ns = time.time_ns()
        files: dict[str, Signature] = {}
        for name, signature in _walk(str(self._place), self._folder and str(self._folder.parent), self._left_out):
            files[name] = signature
            if len(files) > self._most_files:
                raise _TooMuchError(f"it has more than {self._most_files} files")
            if time.monotonic() > deadline:
                raise _TooMuchError("listing its files takes too long")
        found: list[FileEdit] = []
        for name, signature in files.items():
            known = self._known.get(name)
            if known is not None and known.signature == signature and not known.racy:
                continue
            now = self._look(self._place / name, signature, started_ns, can_read=time.monotonic() < deadline)
            if known is None or known.digest != now.digest:
                if recorded:
                    found.append(self._found(name, known, now))
                self._known[name] = now
            else:
                known.signature, known.racy = now.signature, now.racy
        for name in [name for name in self._known if name not in files]:
            known = self._known.pop(name)
            if recorded and not os.path.lexists(self._place / name):
                found.append(self._found(name, known, None))
        return found

    def _look(self, path: Path, signature: Signature, now_ns: int, *, can_read: bool) -> _Known:
        racy = signature.mtime_ns > now_ns - RACY_NS or signature.ctime_ns > now_ns - RACY_NS
        if self._reads and can_read and signature.size <= LARGEST_BYTES and self._packed <= 2 * LARGEST_TOTAL:
            content = _read(path)
            if content is not None:
                return _Known(signature, sha256(content).digest(), self._keep(content), racy)
        return _Known(signature, repr(signature).encode(), None, False)

    def _keep(self, content: bytes) -> tuple[int, int] | None:
        if self._pack is None:
            self._pack = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 (closed by _reset)
        self._pack.seek(self._packed)
        self._pack.write(content)
        place = (self._packed, len(content))
        self._packed += len(content)
        return place

    def _found(self, name: str, known: _Known | None, now: _Known | None) -> FileEdit:
        assert self._root is not None
        kept = all(state is None or state.place is not None for state in (known, now))
        return FileEdit(
            self._root / name,
            self._place / name,
            self._content(known) if kept else None,
            self._content(now) if kept else None,
            existed=known is not None,
            exists=now is not None,
            kept=kept,
            mode=stat.S_IMODE(known.signature.mode) if known is not None else None,
        )

    def _content(self, known: _Known | None) -> bytes | None:
        if known is None or known.place is None or self._pack is None:
            return None
        self._pack.seek(known.place[0])
        return self._pack.read(known.place[1])


def _read(place: Path) -> bytes | None:
    """Return the content of a regular file of at most :data:`LARGEST_BYTES`; ``None`` for anything else."""
    try:
        with open(open_place(place), "rb") as file:
            content = file.read(LARGEST_BYTES + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except (OSError, ValueError):
        return None
    return None if content is None or len(content) > LARGEST_BYTES else content


def _walk(root: str, excluded: str | None, left_out: frozenset[str]) -> Iterator[tuple[str, Signature]]:
    """Yield the regular files below ``root`` by their relative paths."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            entries = os.scandir(os.path.join(root, folder))
        except OSError:
            continue
        with entries:
            for entry in entries:
                name = folder + entry.name
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in _SKIPPED and f"{name}/" not in left_out and entry.path != excluded:
                            folders.append(f"{name}/")
                        continue
                    state = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISREG(state.st_mode) and name not in left_out:
                    yield (
                        name,
                        Signature(state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino, state.st_mode),
                    )
