"""When confined commands, and tools that edit files, could write to which folder, across sessions and processes.

What a model has changed in a folder must not be run outside of the sandbox unasked, in no later session either.
The system notes when a file was last changed (``st_ctime``), and no command can set that time. So the spans of time
in which commands ran tell their changes from those of a person, and nothing has to be looked at after a command.

A folder has one record. While commands of a process run in it, its ``open`` has the process, and from when; the
exact spans are written when a session ends.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, cast

from msgspec import Struct, field

log = logging.getLogger(__name__)

T = TypeVar("T")

SLACK_NS: Final = 50_000_000
"""The clock of file systems is up to 10 ms behind."""

JOINED_NS: Final = 1_000_000_000
"""Spans with less between them become one."""

MAX_SPANS: Final = 500
"""Limit of the spans of one folder; the earliest are joined."""

FOR_EVER: Final = 1 << 63

Span = tuple[int, int]
"""Beginning and end, in nanoseconds since the epoch."""


class Record(Protocol):
    """A JSON object on disk that several processes change. Its methods block, and raise ``OSError`` or its kind."""

    def read(self) -> dict[str, Any]:
        """Return the object, empty if there is none."""
        ...

    def change(self, change: Callable[[dict[str, Any]], T]) -> T:
        """Change the object under a lock."""
        ...


class _Folder(Struct):
    """The known facts about a folder: commands that run, since when, and spans that are not stored."""

    running: int = 0
    since: int = 0
    spans: list[Span] = field(default_factory=list[Span])
    stored: bool = False


class CommandTimes:
    """The times of all folders; ``record_of`` returns the record of a name. Its methods block on the file system.

    Without ``record_of``, they are known in this process only.
    """

    def __init__(self, record_of: Callable[[str], Record] | None = None) -> None:
        self._record_of = record_of
        self._folders: dict[str, _Folder] = {}
        self._lock = threading.Lock()
        self._process = f"{os.getpid()}.{time.time_ns()}"

    def record(self, folder: Path | str) -> Record | None:
        """Return the record of a folder, which has what is known about its programs, too."""
        if self._record_of is None:
            return None
        return self._record_of(hashlib.sha256(os.fsencode(folder)).hexdigest()[:32])

    def begin(self, folders: Iterable[Path]) -> None:
        """Note that a command begins that may write to ``folders``, which are real paths."""
        now = time.time_ns()
        with self._lock:
            for name in map(str, folders):
                folder = self._folders.setdefault(name, _Folder())
                if folder.running == 0:
                    folder.since = now
                folder.running += 1
                self._store_begin(name, folder)

    def end(self, folders: Iterable[Path]) -> None:
        """Note that a command has ended, after :meth:`begin` with the same folders."""
        now = time.time_ns()
        with self._lock:
            for folder in filter(None, map(self._folders.get, map(str, folders))):
                folder.running -= 1
                if folder.running == 0:
                    folder.spans = _joined([*folder.spans, (folder.since, now)])

    def note(self, folder: Path, moment_ns: int) -> None:
        """Note that a tool has changed a file in ``folder`` at a moment. Does not block; :meth:`store` follows."""
        with self._lock:
            found = self._folders.setdefault(str(folder), _Folder(since=moment_ns))
            found.spans = _joined([*found.spans, (moment_ns, moment_ns)])

    def store(self, folder: Path) -> None:
        """Store what was noted about ``folder``."""
        name = str(folder)
        with self._lock:
            found = self._folders.get(name)
            if found is None or not found.spans:
                return
            spans = found.spans

            def change(values: dict[str, Any]) -> None:
                values["folder"] = name
                values["spans"] = _joined([*_spans(values), *spans])

            if self._change(name, change):
                found.spans = []

    def flush(self, folders: Iterable[Path]) -> None:
        """Store the spans of ``folders`` in which no command runs any more."""
        with self._lock:
            for name in map(str, folders):
                folder = self._folders.get(name)
                if folder is None or folder.running or not folder.stored:
                    continue
                spans = folder.spans

                def change(values: dict[str, Any], name: str = name, spans: list[Span] = spans) -> None:
                    values["folder"] = name
                    values["spans"] = _joined([*_spans(values), *spans])
                    _open(values).pop(self._process, None)

                if self._change(name, change):
                    del self._folders[name]

    def spans(self, folder: Path | str) -> list[Span]:
        """Return when commands could write to a folder, those of folders around it excluded."""
        name = str(folder)
        with self._lock:
            own = self._folders.get(name, _Folder())
            found = [*own.spans, *([(own.since, FOR_EVER)] if own.running else [])]
            record = self.record(name)
            values = record.read() if record is not None else {}
            if _ended(values) - {self._process}:
                self._change(name, self._close_ended)
                values = record.read() if record is not None else {}
        others = [(since, FOR_EVER) for process, since in _open(values).items() if process != self._process]
        return [*_spans(values), *others, *found]

    def _store_begin(self, name: str, folder: _Folder) -> None:
        if folder.stored:
            return

        def change(values: dict[str, Any]) -> None:
            self._close_ended(values)
            values["folder"] = name
            values["open"] = {**_open(values), self._process: folder.since}

        folder.stored = self._change(name, change)

    def _close_ended(self, values: dict[str, Any]) -> None:
        """Close the spans of processes that have ended without doing so: their commands have ended, too."""
        now, spans = time.time_ns(), _spans(values)
        opened = _open(values)
        for process in _ended(values) - {self._process}:
            spans.append((opened.pop(process), now))
        values["open"], values["spans"] = opened, _joined(spans)

    def _change(self, name: str, change: Callable[[dict[str, Any]], None]) -> bool:
        """Change the record of a folder; return whether that succeeded."""
        record = self.record(name)
        if record is None:
            return False
        try:
            record.change(change)
        except Exception as error:
            # Commands still run: what they change is known as long as this process lives.
            log.error("cannot store when commands ran in %s: %s", name, error)
            return False
        return True


def is_within(moment_ns: int, spans: Iterable[Span]) -> bool:
    """Return whether a file that was last changed then may have been changed by a command."""
    return any(begin - SLACK_NS <= moment_ns <= end + SLACK_NS for begin, end in spans)


def _joined(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for begin, end in sorted((min(span), max(span)) for span in spans):
        if found and begin - found[-1][1] < JOINED_NS:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    if len(found) > MAX_SPANS:
        early = found[: len(found) - MAX_SPANS + 1]
        found = [(early[0][0], early[-1][1]), *found[len(early) :]]
    return found


def _spans(values: dict[str, Any]) -> list[Span]:
    found: Any = values.get("spans")
    pairs = cast("list[list[int]]", found) if isinstance(found, list) else []
    return [(pair[0], pair[1]) for pair in pairs]


def _open(values: dict[str, Any]) -> dict[str, int]:
    found: Any = values.get("open")
    return dict(cast("dict[str, int]", found)) if isinstance(found, dict) else {}


def _ended(values: dict[str, Any]) -> set[str]:
    """Return the processes in a record that run no more."""
    return {name for name in _open(values) if not _runs(name.partition(".")[0])}


def _runs(process: str) -> bool:
    if sys.platform == "win32":
        # There, the call would end the process; and nothing is confined.
        return False
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except OSError:
        # It belongs to another user: the number was given to another process.
        return False
    return True
