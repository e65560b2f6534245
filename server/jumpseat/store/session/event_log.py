"""The event log of one session: an append-only file with one JSON object per line.

Each event is written in one ``write(2)`` before it is announced, so that killing the process loses no announced
event. ``fsync`` protects against failures of the machine; it runs in a worker thread, a moment after the session
has become idle. :func:`repair_log` mends a last line that a crash has torn.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final, Protocol, cast

import anyio
import anyio.to_thread
import orjson
from anyio.abc import TaskGroup
from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from jumpseat.agent.interfaces import Announcements
from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat_protocol.events import Event

logger = logging.getLogger(__name__)

QUIET_S: Final = 0.2
"""Time without writes after which a log is synced and closed."""

TOGETHER_S: Final = 0.05
"""The time by which a log may be synced early, together with a log that is due, in seconds."""

THREADS: Final = 4
"""The threads among which the logs that are due are divided: disks sync several files at once faster."""


class Log(Protocol):
    """A log that is open."""

    written: int
    """The number of writes so far."""

    def detach(self) -> int | None:
        """Return the open file, which the caller closes; ``None`` if there is none."""
        ...


class LogSyncer:
    """Syncs and closes logs that have not been written for ``QUIET_S``, in a task of ``tasks``."""

    def __init__(self, tasks: TaskGroup, clock: Callable[[], float] = monotonic) -> None:
        self._tasks = tasks
        self._clock = clock
        # The time and the number of writes of each log when it was asked about last, the earliest time first.
        self._waiting: dict[Log, tuple[float, int]] = {}
        self._running = False

    def sync_soon(self, log: Log) -> None:
        """Sync and close a log once it is quiet. Does nothing if that is under way."""
        if log in self._waiting:
            return
        self._waiting[log] = (self._clock(), log.written)
        if not self._running:
            self._running = True
            self._tasks.start_soon(self._run)

    async def _run(self) -> None:
        try:
            while self._waiting:
                earliest, _ = next(iter(self._waiting.values()))
                await anyio.sleep(max(0.0, earliest + QUIET_S - self._clock()))
                await _save([file for log in self._take_quiet() if (file := log.detach()) is not None])
        finally:
            self._running = False

    def _take_quiet(self) -> list[Log]:
        """Remove the logs that are due, and return those that were not written meanwhile; the others wait again."""
        now = self._clock()
        due: list[Log] = []
        for log, (since, _) in self._waiting.items():
            if since + QUIET_S - TOGETHER_S > now:
                break
            due.append(log)
        quiet: list[Log] = []
        for log in due:
            _, written = self._waiting.pop(log)
            if written == log.written:
                quiet.append(log)
            else:
                self._waiting[log] = (now, log.written)
        return quiet


async def _save(files: list[int]) -> None:
    parts = [part for first in range(THREADS) if (part := files[first::THREADS])]
    if len(parts) == 1:
        await anyio.to_thread.run_sync(sync_and_close, parts[0])
        return
    async with anyio.create_task_group() as tasks:
        for part in parts:
            tasks.start_soon(anyio.to_thread.run_sync, sync_and_close, part)


def sync_and_close(files: list[int]) -> None:
    """Sync and close open files, blocking; failures are logged."""
    for fd in files:
        try:
            os.fsync(fd)
        except OSError as error:
            logger.error("cannot sync a session log: %s", error.strerror or error)
        finally:
            os.close(fd)


_BATCH_BYTES: Final = 32 * 1024
_PART_BYTES: Final = 1 << 20
_NO_DATA: Final = Raw(b"{}")


class StoredEvent(Struct, rename="camel", gc=False):
    """An event in a log, with data that are not decoded yet.

    An id or the id of a sub-agent that is no text counts as missing.
    """

    type: str
    id: str | None = None
    agent_id: str | None = None
    data: Raw = _NO_DATA


_SPLITTER: Final = Decoder(StoredEvent)


class Records(Iterable[dict[str, Any]]):
    """The valid events among the lines of a log, parsed by each iteration.

    The lines are in memory, or the first ``size`` bytes of a file, to which more may be appended. The events of a
    long session take many times the memory of its log, most of which would stay with the process.

    Iterations raise ``StoreError`` if the file cannot be read.
    """

    def __init__(self, lines: bytes | Path, size: int | None = None) -> None:
        self._lines = lines
        self._size = len(lines) if isinstance(lines, bytes) else size or 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for lines in self._batches():
            yield from _parse(lines)

    def stored(self) -> Iterator[StoredEvent]:
        """Yield the same events with their data as JSON: for readers of the log that need few of them."""
        for lines in self._batches():
            yield from _split(lines)

    def json(self) -> Iterator[bytes]:
        """Yield the events as elements of a JSON array, as they are in the log, in parts of about a megabyte."""
        part: list[bytes] = []
        size = 0
        for lines in self._batches():
            if len(_parse(lines)) < len(lines):
                lines = [line for line in lines if parse_record(line) is not None]
            if lines:
                part.append(b"".join(lines).rstrip(b"\n").replace(b"\n", b","))
                size += len(part[-1])
            if size > _PART_BYTES:
                yield b",".join(part)
                # The next part begins with a comma.
                part, size = [b""], 0
        if part not in ([], [b""]):
            yield b",".join(part)

    def _batches(self) -> Iterator[list[bytes]]:
        try:
            with BytesIO(self._lines) if isinstance(self._lines, bytes) else self._lines.open("rb") as file:
                while file.tell() < self._size and (lines := file.readlines(_BATCH_BYTES)):
                    beyond = file.tell() - self._size
                    while beyond > 0:
                        beyond -= len(lines.pop())
                    yield lines
        except OSError as error:
            raise StoreError(f"cannot read the session log: {error.strerror or error}") from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records) and list(self) == list(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class FileEventLog:
    """The log at ``path``; the file is open only while the session is busy, and a moment longer.

    ``on_quiet`` is called when the file is closed.
    """

    __slots__ = ("_ended", "_fd", "_on_quiet", "_path", "_syncer", "written")

    def __init__(self, path: Path | str, syncer: LogSyncer, on_quiet: Callable[[], None] | None = None) -> None:
        # Not a Path: a process may have a thousand sessions.
        self._path = str(path)
        self._syncer = syncer
        self._on_quiet = on_quiet
        self._fd: int | None = None
        self.written = 0
        self._ended = False

    @property
    def announcements(self) -> Announcements | None:
        """Nothing: an event is in the file before it is announced."""
        return None

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self._path)

    def append(self, event: Event) -> None:
        """Write an event to the end of the log.

        Raises:
            StoreError: the event cannot be written as a whole, or the log has ended.
        """
        if self._ended:
            raise StoreError("cannot write the session log: the session is closed")
        line = event.encode() + b"\n"
        try:
            if self._fd is None:
                # Windows would write each line end as two bytes without O_BINARY.
                binary = getattr(os, "O_BINARY", 0)
                self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | binary, 0o600)
            written = os.write(self._fd, line)
            self.written += 1
            if written < len(line):
                # A full disk accepts a part: remove it, because the next event would be appended to it.
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
                raise OSError("the disk is full")
        except OSError as error:
            raise StoreError(f"cannot write the session log: {error.strerror or error}") from error

    def sync_soon(self) -> None:
        """Sync and close the file once nothing has been written for a moment."""
        if self._fd is not None:
            self._syncer.sync_soon(self)

    def end(self) -> None:
        """Sync and close the file now, blocking. Nothing can be appended any more: another process may do that."""
        self._ended = True
        self.sync()

    def sync(self) -> None:
        """Sync and close the file now, blocking."""
        if (fd := self.detach()) is not None:
            sync_and_close([fd])

    def detach(self) -> int | None:
        """Return the open file, which the caller syncs and closes; ``None`` if there is none."""
        fd, self._fd = self._fd, None
        if fd is not None and self._on_quiet is not None:
            self._on_quiet()
        return fd

    def open(self) -> IO[bytes]:
        """Open the file for reading; see :class:`jumpseat.store.session.storage.StoredLog`."""
        try:
            return open(self._path, "rb")
        except FileNotFoundError:
            return BytesIO()
        except OSError as error:
            raise StoreError(f"cannot read the session log: {error.strerror or error}") from error

    def read(self) -> Replay:
        """Read the events, like :func:`read_log`."""
        return read_log(self.path)

    def repair(self) -> Replay:
        """See :func:`repair_log`."""
        return repair_log(self.path)

    def truncate(self, event_id: str) -> tuple[Replay, int] | None:
        """See :func:`truncate_log`."""
        return truncate_log(self.path, event_id)

    def exists(self) -> bool:
        """Return whether there is a file."""
        return os.path.exists(self._path)

    async def flush(self) -> None:
        """Do nothing: an event is in the file before it is announced."""

    async def save(self) -> None:
        """Sync and close the file now, in a thread."""
        if (fd := self.detach()) is not None:
            await anyio.to_thread.run_sync(sync_and_close, [fd])

    def close(self) -> None:
        """Close the file without syncing it; for a log that is about to be removed."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def changed_s(self) -> float | None:
        """Return the time of the last write, in Unix time; ``None`` if there is no file."""
        try:
            return os.stat(self._path).st_mtime
        except OSError:
            return None

    def size_bytes(self) -> int:
        """Return the size of the log; 0 if there is no file."""
        try:
            return os.stat(self._path).st_size
        except OSError:
            return 0


class Replay(Struct, frozen=True):
    """The content of a log: its events, and the size of a torn last line, which is left out."""

    records: Records
    torn_bytes: int


def read_log(path: Path) -> Replay:
    """Read a log without changing it; invalid lines are left out, and a missing file is empty.

    Raises:
        StoreError: the log cannot be read.
    """
    try:
        return parse_log(path.read_bytes())
    except FileNotFoundError:
        return Replay(Records(b""), 0)
    except OSError as error:
        raise StoreError(f"cannot read the session log: {error.strerror or error}") from error


def parse_log(data: bytes) -> Replay:
    """Parse the content of a log; invalid lines are left out."""
    end = data.rfind(b"\n") + 1
    # If only the line end is missing, the event itself is complete.
    if end == len(data) or parse_record(data[end:]) is not None:
        return Replay(Records(data), 0)
    return Replay(Records(data[:end]), len(data) - end)


def _parse(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    try:
        values: list[Any] = list(map(orjson.loads, lines))
    except orjson.JSONDecodeError:
        values = [parse_record(line) for line in lines]
    return [value for value in values if value.__class__ is dict and value.get("type").__class__ is str]


def _split(lines: list[bytes]) -> list[StoredEvent]:
    try:
        # JSON is UTF-8, but not all data are looked at.
        b"".join(lines).decode()
        return list(map(_SPLITTER.decode, lines))
    except (DecodeError, UnicodeDecodeError, RecursionError):
        records = (record for line in lines if (record := parse_record(line)) is not None)
        return [stored_event(record) for record in records]


def stored_event(record: dict[str, Any]) -> StoredEvent:
    """Return a valid event of a log."""
    event_id, agent_id = record.get("id"), record.get("agentId")
    return StoredEvent(
        record["type"],
        event_id if isinstance(event_id, str) else None,
        agent_id if isinstance(agent_id, str) else None,
        Raw(orjson.dumps(record.get("data", {}))),
    )


def parse_record(line: bytes) -> dict[str, Any] | None:
    """Parse a line of a log; return ``None`` unless it is a JSON object with a string ``type``."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if isinstance(record, dict) and isinstance(cast("dict[str, Any]", record).get("type"), str):
        return cast("dict[str, Any]", record)
    return None


def truncate_log(path: Path, event_id: str) -> tuple[Replay, int] | None:
    """Remove an event and all later ones; return the rest of the log and the number of removed events.

    The result is ``None`` if the log has no such event.

    Raises:
        InvalidRequestError: the event is the first one, which a log must have.
        StoreError: the log cannot be read or truncated.
    """
    remaining = removed = 0
    cut_at: int | None = None
    offset = 0
    try:
        with path.open("r+b") as file:
            for line in file:
                record = parse_record(line)
                if cut_at is None and record is not None and record.get("id") == event_id:
                    cut_at = offset
                offset += len(line)
                if record is not None:
                    remaining, removed = remaining + (cut_at is None), removed + (cut_at is not None)
            if cut_at is None:
                return None
            if not remaining:
                raise InvalidRequestError("the first event cannot be removed: delete the session instead")
            file.seek(0)
            left = file.read(cut_at)
            file.truncate(cut_at)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot truncate the session log: {error.strerror or error}") from error
    return Replay(Records(left), 0), removed


def repair_log(path: Path) -> Replay:
    """Read a log and repair a last line that a crash has torn: remove it, or add its line end if it is complete.

    Raises:
        StoreError: the log cannot be read or repaired.
    """
    try:
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            if file.read(1) == b"\n":
                # Not read here: a large log would be in memory as a whole.
                return Replay(Records(path, size), 0)
            replay = read_log(path)
            if replay.torn_bytes:
                file.truncate(size - replay.torn_bytes)
            elif size:
                file.seek(size)
                file.write(b"\n")
            return replay
    except (FileNotFoundError, IsADirectoryError):
        return read_log(path)
    except OSError as error:
        raise StoreError(f"cannot repair the session log: {error.strerror or error}") from error
