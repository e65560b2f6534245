"""What lists show of the sessions of the whole cluster, held in memory and followed by a watch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import anyio
import orjson
from anyio.abc import TaskGroup

from jumpseat.cluster.jetstream import JetStream
from jumpseat.cluster.names import session_of, token_of
from jumpseat.store.session_table import Entry
from jumpseat_protocol.lazy_dataclasses import dataclass

CATCH_UP_S: Final = 2.0
"""Longest time that a list waits for changes by other replicas."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A session in the index.

    ``host`` is set if the session's files are on one host. ``size`` is that of all of its files in bytes; ``named``
    says whether the user has named the session.
    """

    session_id: str
    changed_ns: int
    created_by: str | None
    host: str | None
    metadata: bytes | None
    cwd: str | None
    size: int = 0
    named: bool = False


class Index:
    """The sessions of the cluster, by id."""

    def __init__(self, stream: JetStream, tasks: TaskGroup) -> None:
        self._stream = stream
        self._tasks = tasks
        self._entries: dict[str, IndexEntry] = {}
        self._sorted: list[Entry] | None = None
        self._revision = 0
        self._news = anyio.Event()
        self._known = anyio.Event()
        self.on_removed: list[Callable[[str], None]] = []

    async def start(self) -> None:
        """Read the index, and follow its changes."""
        self._tasks.start_soon(self._watch)
        await self._known.wait()

    def get(self, session_id: str) -> IndexEntry | None:
        """Return the entry of a session, as far as this replica knows."""
        return self._entries.get(session_id)

    def all(self) -> list[IndexEntry]:
        """Return all entries, in no particular order."""
        return list(self._entries.values())

    def entries(self) -> list[Entry]:
        """Return the sessions that were prompted, the last changed first."""
        if self._sorted is None:
            prompted = [entry for entry in self._entries.values() if entry.metadata is not None]
            prompted.sort(key=lambda entry: entry.changed_ns, reverse=True)
            self._sorted = [Entry(entry.created_by, entry.metadata) for entry in prompted]
        return self._sorted

    async def catch_up(self) -> None:
        """Wait until all changes are known that were stored before the call.

        Raises:
            StoreError: NATS does not answer.
        """
        last = await self._stream.last_revision(self._stream.names.index)
        with anyio.move_on_after(CATCH_UP_S):
            while self._revision < last:
                await self._news.wait()

    async def put(self, entry: IndexEntry) -> None:
        """Store an entry; waits for NATS."""
        value = {
            "changedNs": entry.changed_ns,
            "createdBy": entry.created_by,
            "host": entry.host,
            "cwd": entry.cwd,
            "size": entry.size,
            "named": entry.named,
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
        async for change in self._stream.watch(self._stream.names.index):
            if change is None:
                self._known.set()
                continue
            key, value, revision = change
            self._apply(session_of(key), value)
            self._revision = max(self._revision, revision)
            self._sorted = None
            self._news.set()
            self._news = anyio.Event()

    def _apply(self, session_id: str, value: dict[str, Any] | None) -> None:
        if value is None:
            if self._entries.pop(session_id, None) is not None:
                for callback in self.on_removed:
                    callback(session_id)
            return
        metadata = value.get("metadata")
        self._entries[session_id] = IndexEntry(
            session_id,
            int(value.get("changedNs") or 0),
            value.get("createdBy"),
            value.get("host"),
            # Copied into a block of its own size: that of orjson stays much larger.
            bytes(bytearray(orjson.dumps(metadata))) if metadata is not None else None,
            value.get("cwd"),
            int(value.get("size") or 0),
            # Earlier versions did not tell.
            bool(value.get("named", True)),
        )
