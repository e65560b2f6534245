"""One session's log: a file of events, one JSON object per line, append-only.

Each event is one ``write(2)`` before anybody hears of it, so killing the process loses nothing that was
announced. Bringing it to the disk (``fsync``) guards against the machine failing; it happens a moment after the
session has fallen idle, in a worker thread.
``log_repair.py`` mends a last line that a crash has torn.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.to_thread
import orjson
from anyio.abc import TaskGroup

from jumpseat.errors import StoreError
from jumpseat_protocol.events import Event

log = logging.getLogger(__name__)

QUIET_S: Final = 0.2
"""How long a session must be quiet before its log is synced and let go of."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What a log holds: the events as JSON values, and how many bytes of a torn last line were cut off."""

    records: list[dict[str, Any]]
    torn_bytes: int


class FileEventLog:
    """Appends to ``path``; the descriptor is open only while the session is busy, and a moment longer.

    ``on_quiet`` hears when it is let go of.
    """

    def __init__(self, path: Path, tasks: TaskGroup, on_quiet: Callable[[], None] | None = None) -> None:
        self.path = path
        self._tasks = tasks
        self._on_quiet = on_quiet
        self._fd: int | None = None
        self._written = 0
        self._waiting = False

    def append(self, event: Event) -> None:
        line = event.encode() + b"\n"
        try:
            if self._fd is None:
                # Windows would write each line end as two bytes without O_BINARY.
                binary = getattr(os, "O_BINARY", 0)
                self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | binary, 0o600)
            written = os.write(self._fd, line)
            self._written += 1
            if written < len(line):
                # A full disk takes a part: take it back, or the next line would be glued to it.
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
                raise OSError("the disk is full")
        except OSError as error:
            raise StoreError(f"cannot write the session log: {error.strerror or error}") from error

    def sync_soon(self) -> None:
        if self._fd is not None and not self._waiting:
            self._waiting = True
            self._tasks.start_soon(self._sync_when_quiet)

    async def _sync_when_quiet(self) -> None:
        """Sync once nothing has been written for a moment: prompts that follow each other share one."""
        seen = -1
        while seen != self._written:
            seen = self._written
            await anyio.sleep(QUIET_S)
        self._waiting = False
        await self.save()

    def sync(self) -> None:
        """Bring everything to the disk now; for the end of a session."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._tell_quiet()
            _sync_and_close(fd)

    def _tell_quiet(self) -> None:
        if self._on_quiet is not None:
            self._on_quiet()

    async def save(self) -> None:
        """Bring everything to the disk now, off the loop."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._tell_quiet()
            await anyio.to_thread.run_sync(_sync_and_close, fd)

    def close(self) -> None:
        """Let go of the file as it is; for a log that is about to be removed."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def changed_s(self) -> float | None:
        """When it was last written, in Unix time; ``None`` where there is no file."""
        try:
            return self.path.stat().st_mtime
        except OSError:
            return None

    def size_bytes(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


def _sync_and_close(fd: int) -> None:
    try:
        os.fsync(fd)
    except OSError as error:
        log.error("a session log could not be synced: %s", error.strerror or error)
    finally:
        os.close(fd)


def read_log(path: Path) -> Replay:
    """Read a log as it is, without changing it. Lines that are no JSON objects are left out.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Replay([], 0)
    except OSError as error:
        raise StoreError(f"cannot read the session log: {error.strerror or error}") from error
    complete, _, torn = data.rpartition(b"\n")
    records = [record for line in complete.split(b"\n") if (record := parse_record(line)) is not None]
    if torn and (whole := parse_record(torn)) is not None:
        # Only the line's end is missing: the event itself is all there.
        return Replay([*records, whole], 0)
    return Replay(records, len(torn))


def parse_record(line: bytes) -> dict[str, Any] | None:
    """Parse a line of a log; return ``None`` unless it is a JSON object with a string ``type``."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if isinstance(record, dict) and isinstance(cast("dict[str, Any]", record).get("type"), str):
        return cast("dict[str, Any]", record)
    return None
