"""The changes by commands to the files of programs that are started outside of the sandbox.

Each start that is allowed records the contents of these files. A file whose contents are others at the next start
was changed by a command if the system says that it, or a folder that it is in, was last changed while one ran
(:mod:`jumpseat.sandbox.command_times`). Anything else is the work of a person, and no question is asked about it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from jumpseat.sandbox.command_times import CommandTimes, Span, is_within
from jumpseat.sandbox.reached_files import CommandLine, reached_files
from jumpseat.system.file_trees import walk

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of a larger file, the beginning and the size are compared."""

MAX_PACKAGE_FILES: Final = 200_000
_FILES: Final = "files"
_ACCEPTED: Final = "accepted"
_KEPT: Final = (".bin", ".pnpm")
"""The folders with a dot in a folder of packages that are no caches."""

TOO_MANY: Final = "more files than can be compared"


class Start(Struct, frozen=True):
    """A program that is to be started outside: what it may load, and what of that commands have changed.

    ``now`` are the contents by path, as they are recorded, and ``changed`` paths relative to the working directory.
    """

    folder: str
    now: dict[str, list[Any]]
    looked_ns: int
    changed: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """A text that stands for the contents."""
        contents = sorted((path, values[0]) for path, values in self.now.items() if isinstance(values[0], str))
        return hashlib.sha256(repr(contents).encode("utf-8", "surrogateescape")).hexdigest()


class StartedPrograms:
    """The programs of all sessions that are started outside. Its methods block on the file system."""

    def __init__(self, times: CommandTimes) -> None:
        self._times = times

    def look(self, line: CommandLine, folders: Sequence[Path]) -> Start | None:
        """Return what a program may load from ``folders``; ``None`` if nothing. The first has the record."""
        reached = reached_files(line, folders)
        if not reached:
            return None
        folder, looked_ns = os.path.realpath(folders[0]), time.time_ns()
        known = self._known(folder)
        now = {path: found for path in sorted(reached.files) if (found := _file(path, known.get(path))) is not None}
        now |= {path: _package(path) for path in sorted(reached.packages)}
        roots = {os.path.realpath(one) for one in folders}
        around = {str(above): _identity(above) for path in now for above in Path(path).parents}
        spans = _Spans(self._times)
        moved = {
            above
            for above, identity in around.items()
            if above not in roots
            and identity[1:] != known.get(above, [])[1:]
            and is_within(identity[0], spans.of(above))
        }
        changed = [
            path
            for path, values in now.items()
            if known.get(path, [None])[0] != values[0]
            and (is_within(values[1], spans.of(path)) or not moved.isdisjoint(map(str, Path(path).parents)))
        ]
        names = [os.path.relpath(path, folder) for path in changed]
        if not reached.complete and spans.any_after(self._accepted(folder), roots):
            names.append(TOO_MANY)
        kept = {above: identity for above, identity in around.items() if above not in roots}
        return Start(folder, now | kept, looked_ns, tuple(names))

    def accept(self, start: Start) -> None:
        """Record the contents with which a program is started.

        Raises:
            Exception: that of the record.
        """
        record = self._times.record(start.folder)
        if record is None:
            return

        def change(values: dict[str, Any]) -> None:
            known = values.get(_FILES)
            before = cast("dict[str, Any]", known) if isinstance(known, dict) else {}
            kept = {path: found for path, found in before.items() if os.path.lexists(path)}
            values["folder"] = start.folder
            values[_FILES], values[_ACCEPTED] = {**kept, **start.now}, start.looked_ns

        record.change(change)

    def _accepted(self, folder: str) -> int:
        record = self._times.record(folder)
        moment: Any = record.read().get(_ACCEPTED) if record is not None else None
        return moment if isinstance(moment, int) else 0

    def _known(self, folder: str) -> dict[str, list[Any]]:
        record = self._times.record(folder)
        known: Any = record.read().get(_FILES) if record is not None else None
        values = cast("dict[str, Any]", known) if isinstance(known, dict) else {}
        return {
            path: cast("list[Any]", found) for path, found in values.items() if isinstance(found, list) and found
        }


class _Spans:
    """The times of commands in the folders around files, each read once."""

    def __init__(self, times: CommandTimes) -> None:
        self._times = times
        self._own: dict[str, list[Span]] = {}

    def of(self, path: str) -> list[Span]:
        return [span for folder in map(str, Path(path).parents) for span in self._of(folder)]

    def _of(self, folder: str) -> list[Span]:
        if folder not in self._own:
            self._own[folder] = self._times.spans(folder)
        return self._own[folder]

    def any_after(self, moment_ns: int, folders: Iterable[str]) -> bool:
        return any(end > moment_ns for folder in folders for _, end in self.of(f"{folder}/file"))


def _identity(folder: Path) -> list[Any]:
    """Return when a folder was last changed or moved, and what says whether it is the same folder."""
    try:
        status = os.lstat(folder)
    except OSError:
        return [0]
    return [status.st_ctime_ns, status.st_ino, status.st_dev]


def _file(path: str, known: list[Any] | None) -> list[Any] | None:
    """Return the digest of a file or link, and when it was last changed, with what says that it is the same."""
    try:
        status = os.lstat(path)
        identity = [status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev]
        if known is not None and known[1:] == identity:
            return known
        if stat.S_ISLNK(status.st_mode):
            return [f"link {os.readlink(path)}", *identity]
        if not stat.S_ISREG(status.st_mode):
            return [f"mode {status.st_mode}", *identity]
        digest = hashlib.sha256(str(status.st_size).encode())
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            left = MAX_BYTES
            while left > 0 and (data := file.read(min(left, 1 << 20))):
                digest.update(data)
                left -= len(data)
        return [digest.hexdigest(), *identity]
    except OSError:
        return None


def _package(folder: str) -> list[Any]:
    """Return a digest of what is in a folder of packages, and when the latest change was."""
    digest, latest = hashlib.sha256(), 0
    for path, status in islice(sorted(_entries(folder), key=itemgetter(0)), MAX_PACKAGE_FILES):
        latest = max(latest, status.st_ctime_ns)
        values = path, status.st_ctime_ns, status.st_size, status.st_mode
        digest.update(repr(values).encode("utf-8", "surrogateescape"))
    return [digest.hexdigest(), latest]


def _entries(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    for path, folders, names in walk(folder):
        parts = path[len(folder) :].split("/")
        if "__pycache__" in parts or (len(parts) > 1 and parts[1].startswith(".") and parts[1] not in _KEPT):
            continue
        for name in sorted((*names, *folders)):
            if name == "__pycache__" or (path == folder and name.startswith(".") and name not in _KEPT):
                continue
            try:
                status = os.lstat(found := f"{path}/{name}")
            except OSError:
                continue
            # A folder whose entries are the same may have changed because of caches in it.
            if not stat.S_ISDIR(status.st_mode):
                yield found, status
