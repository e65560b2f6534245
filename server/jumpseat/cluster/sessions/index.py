"""The entries of all sessions in lists: followed by a watch, and kept in a table on the disk.

The table is an SQLite file that lasts as long as the replica: millions of sessions would fill the memory.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel
import orjson
from anyio.abc import TaskGroup
from msgspec import Struct

from jumpseat.cluster.nats.buckets import SKIPPED, skipping
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.nats.names import session_of, token_of
from jumpseat.errors import StoreUnavailableError
from jumpseat.store.session.table import Entry
from jumpseat.system.private_files import create_private_folder

if TYPE_CHECKING:
    import sqlite3

log = logging.getLogger(__name__)

CATCH_UP_S: Final = 2.0
"""Longest time that a list waits for changes by other replicas."""
AGAIN_S: Final = 1.0
"""Time after which a change is written again that the disk has refused."""
PAGE: Final = 1000
"""Rows that are read at once: other changes may come between pages."""
_LATEST_NS: Final = (1 << 63) - 1
_SCHEMA: Final = (
    "PRAGMA journal_mode=MEMORY",
    "PRAGMA synchronous=OFF",
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, changed_ns INTEGER NOT NULL, created_by TEXT, host TEXT,"
    " metadata BLOB, cwd TEXT, size INTEGER NOT NULL, named INTEGER NOT NULL, usage BLOB)",
)
_ORDERS: Final = (
    # Sessions that were never prompted are in no list.
    "CREATE INDEX changed ON sessions (changed_ns) WHERE metadata IS NOT NULL",
    "CREATE INDEX in_folder ON sessions (cwd, changed_ns) WHERE metadata IS NOT NULL",
    "CREATE INDEX by_creator ON sessions (created_by, changed_ns)",
)
_ONE: Final = "SELECT * FROM sessions WHERE id = ?"
_PAGE: Final = "SELECT * FROM sessions WHERE id > ? AND changed_ns < ? ORDER BY id LIMIT ?"
_BEGINNING: Final = "SELECT id, created_by FROM sessions WHERE id >= ? AND id < ? ORDER BY id"
_NO_CREATOR: Final = "SELECT 1 FROM sessions WHERE created_by IS NULL LIMIT 1"
_NEXT_CREATOR: Final = "SELECT min(created_by) FROM sessions WHERE created_by > ?"
_NEXT_CWD: Final = "SELECT min(cwd) FROM sessions WHERE cwd > ? AND metadata IS NOT NULL"
_LISTED: Final = "SELECT created_by, metadata, changed_ns FROM sessions WHERE metadata IS NOT NULL"
_OF_ALL: Final = f"{_LISTED} ORDER BY changed_ns DESC"
_IN_FOLDER: Final = f"{_LISTED} AND cwd = ? ORDER BY changed_ns DESC"
_BY_CREATOR: Final = f"{_LISTED} AND created_by IS ? ORDER BY changed_ns DESC"
_PUT: Final = "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_USAGE: Final = (
    "SELECT id, created_by, usage FROM sessions WHERE id > ? AND changed_ns >= ? AND usage IS NOT NULL"
    " ORDER BY id LIMIT ?"
)


class IndexEntry(Struct, frozen=True):
    """A session in the index.

    ``host`` is set if the session's files are on one host. ``size`` is that of all of its files in bytes; ``named``
    says whether the user has named the session. ``usage`` has its days as JSON, see
    :mod:`jumpseat.store.session.daily_usage`; entries of earlier versions have none.
    """

    session_id: str
    changed_ns: int
    created_by: str | None
    host: str | None
    metadata: bytes | None
    cwd: str | None
    size: int = 0
    named: bool = False
    usage: bytes | None = None


class Index:
    """The sessions of the cluster. ``folder`` has the table; without a folder, the table is in memory."""

    def __init__(self, stream: JetStream, tasks: TaskGroup, folder: Path | None = None) -> None:
        self._stream = stream
        self._tasks = tasks
        self._folder = folder
        self._open: sqlite3.Connection | None = None
        self._closed = False
        self._revision = 0
        self._news = anyio.Event()
        self._known = anyio.Event()

    async def start(self) -> None:
        """Read the index, and follow its changes."""
        self._tasks.start_soon(self._watch)
        await self._known.wait()

    def close(self) -> None:
        """Follow no more changes, and close the table."""
        self._closed = True
        if self._open is not None:
            self._open.close()

    @property
    def _table(self) -> sqlite3.Connection:
        if self._closed:
            # Requests may still be under way while a replica leaves.
            raise StoreUnavailableError
        if self._open is None:
            import sqlite3

            name = ":memory:"
            if self._folder is not None:
                create_private_folder(self._folder)
                name = str(self._folder / "index.db")
            self._open = sqlite3.connect(name, isolation_level=None)
            for statement in _SCHEMA:
                self._open.execute(statement)
        return self._open

    # --- reading --------------------------------------------------------------------------------------------------

    def get(self, session_id: str) -> IndexEntry | None:
        """Return the entry of a session, as far as this replica knows."""
        row = self._table.execute(_ONE, (session_id,)).fetchone()
        return _entry(row) if row is not None else None

    def all(self, before_ns: int = _LATEST_NS) -> Iterator[IndexEntry]:
        """Yield all entries, or those that have not changed since ``before_ns``, in the order of their ids."""
        last = ""
        while True:
            rows = self._table.execute(_PAGE, (last, before_ns, PAGE)).fetchall()
            yield from map(_entry, rows)
            if len(rows) < PAGE:
                return
            last = rows[-1][0]

    def beginning_with(self, prefix: str) -> Iterator[tuple[str, str | None]]:
        """Yield the sessions whose ids begin with ``prefix``, each with its creator, in the order of their ids."""
        return iter(self._table.execute(_BEGINNING, (prefix, f"{prefix}\U0010ffff")))

    def creators(self) -> list[str | None]:
        """Return the names of the tokens that have created sessions, ``None`` for those without."""
        # Each step is one look into the index: SQLite would read all of it for DISTINCT.
        found: list[str | None] = [None] if self._table.execute(_NO_CREATOR).fetchone() is not None else []
        last: str | None = ""
        while (last := self._table.execute(_NEXT_CREATOR, (last,)).fetchone()[0]) is not None:
            found.append(last)
        return found

    def cwds(self) -> list[str]:
        """Return the working directories of the sessions that were prompted."""
        found: list[str] = []
        last: str | None = ""
        while (last := self._table.execute(_NEXT_CWD, (last,)).fetchone()[0]) is not None:
            found.append(last)
        return found

    def entries(
        self, created_by: Iterable[str | None] | None = None, cwds: Sequence[str] | None = None
    ) -> Iterator[Entry]:
        """Yield the sessions that were prompted, the last changed first.

        ``created_by`` chooses those of some tokens. ``cwds`` may leave out those of other working directories.
        """
        if created_by is not None:
            each = [self._table.execute(_BY_CREATOR, (name,)) for name in created_by]
            found = heapq.merge(*each, key=lambda row: -row[2])
        elif cwds is not None:
            each = [self._table.execute(_IN_FOLDER, (cwd,)) for cwd in cwds]
            found = heapq.merge(*each, key=lambda row: -row[2])
        else:
            found = self._table.execute(_OF_ALL)
        return (Entry(creator, metadata) for creator, metadata, _ in found)

    async def usages(self, since_ns: int) -> AsyncIterator[tuple[str | None, bytes]]:
        """Yield creator and usage of the sessions that have changed since a time, with pauses between pages."""
        last = ""
        while True:
            rows = self._table.execute(_USAGE, (last, since_ns, PAGE)).fetchall()
            for _, created_by, usage in rows:
                yield created_by, usage
            if len(rows) < PAGE:
                return
            last = rows[-1][0]
            await anyio.lowlevel.checkpoint()

    async def catch_up(self) -> None:
        """Wait until all changes are known that were stored before the call.

        Raises:
            StoreError: NATS does not answer.
        """
        last = await self._stream.last_revision(self._stream.names.index)
        with anyio.move_on_after(CATCH_UP_S):
            while self._revision < last:
                await self._news.wait()

    # --- writing --------------------------------------------------------------------------------------------------

    async def put(self, entry: IndexEntry) -> None:
        """Store an entry; waits for NATS."""
        value = {
            "changedNs": entry.changed_ns,
            "createdBy": entry.created_by,
            "host": entry.host,
            "cwd": entry.cwd,
            "size": entry.size,
            "named": entry.named,
            "usage": orjson.Fragment(entry.usage) if entry.usage is not None else None,
            "metadata": orjson.Fragment(entry.metadata) if entry.metadata is not None else None,
        }
        await self._stream.put_surely(self._stream.names.index, token_of(entry.session_id), value)

    async def remove(self, session_id: str, message_id: str) -> None:
        """Remove the entry of a session."""
        key, bucket = token_of(session_id), self._stream.names.index
        revision, value = await self._stream.value(bucket, key)
        if value is not None:
            await self._stream.set_value(bucket, key, None, revision, message_id)

    async def _watch(self) -> None:
        # One transaction, and sorting at its end, take a fraction of the time.
        self._table.execute("BEGIN")
        async for change in self._stream.watch(self._stream.names.index):
            if self._closed:
                return
            if change is None:
                if not self._known.is_set():
                    for statement in (*_ORDERS, "COMMIT"):
                        self._table.execute(statement)
                    self._known.set()
                continue
            key, value, revision = change
            with skipping(self._stream.names.index, key):
                if value is not SKIPPED:
                    await self._write(session_of(key), value)
            self._revision = max(self._revision, revision)
            self._news.set()
            self._news = anyio.Event()

    async def _write(self, session_id: str, value: dict[str, Any] | None) -> None:
        """Write a change to the table, as soon as the disk takes it."""
        import sqlite3

        row = _row(session_id, value) if value is not None else None
        while not self._closed:
            try:
                self._apply(session_id, row)
            except sqlite3.Error as error:
                log.error("the list of sessions cannot be written: %s", error)
                await anyio.sleep(AGAIN_S)
            else:
                return

    def _apply(self, session_id: str, row: tuple[Any, ...] | None) -> None:
        if row is not None:
            self._table.execute(_PUT, row)
        else:
            self._table.execute("DELETE FROM sessions WHERE id = ?", (session_id,))


def _row(session_id: str, value: dict[str, Any]) -> tuple[Any, ...]:
    """Return the row of an entry.

    Raises:
        TypeError: a member has another type than expected.
        OverflowError: a number is too large.
    """
    metadata, usage = value.get("metadata"), value.get("usage")
    if not isinstance(metadata, dict | None) or not isinstance(usage, dict | None):
        raise TypeError("metadata, usage: expected an object")
    return (
        session_id,
        _number(value.get("changedNs")),
        _text(value.get("createdBy")),
        _text(value.get("host")),
        orjson.dumps(metadata) if metadata is not None else None,
        _text(value.get("cwd")),
        _number(value.get("size")),
        # Earlier versions did not tell.
        bool(value.get("named", True)),
        orjson.dumps(usage) if usage is not None else None,
    )


def _text(value: Any) -> str | None:
    if not isinstance(value, str | None):
        raise TypeError("expected a string")
    return value


def _number(value: Any) -> int:
    number = int(value or 0)
    if abs(number) >= 1 << 63:
        raise OverflowError("expected a number of 64 bits")
    return number


def _entry(
    row: tuple[str, int, str | None, str | None, bytes | None, str | None, int, int, bytes | None],
) -> IndexEntry:
    session_id, changed_ns, created_by, host, metadata, cwd, size, named, usage = row
    return IndexEntry(session_id, changed_ns, created_by, host, metadata, cwd, size, bool(named), usage)
