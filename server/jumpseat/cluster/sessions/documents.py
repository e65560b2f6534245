"""The user's approvals, settings and usage of the day, shared by all replicas.

They are in one bucket, held in memory and followed by a watch.

A change states the revision that it was made from, so that no replica undoes a change of another.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import anyio
import anyio.from_thread
import orjson
from anyio.abc import TaskGroup

from jumpseat.cluster.nats.buckets import SKIPPED, Buckets
from jumpseat.cluster.nats.connection import WrongSequenceError
from jumpseat.errors import StoreError

T = TypeVar("T")

APPROVALS: Final = "approvals"
SETTINGS: Final = "settings"
DAY_USAGE: Final = "day_usage"
MOST_BYTES: Final = 1_000_000
"""The largest document: a value of a bucket is one message."""


class ClusterDocument:
    """A JSON object in the bucket. Implements :class:`jumpseat.store.user.documents.Document`."""

    def __init__(self, stream: Buckets, name: str) -> None:
        self._stream = stream
        self._name = name
        self._values: dict[str, Any] = {}
        self._revision = 0

    def read(self) -> dict[str, Any]:
        """Return the object, as far as this replica knows."""
        return self._values

    def change(self, change: Callable[[dict[str, Any]], T]) -> T:
        """Change the object for all replicas. Called from threads.

        Raises:
            StoreError: NATS does not answer, or the object becomes too large.
        """
        return anyio.from_thread.run(self.change_here, change)

    async def change_here(self, change: Callable[[dict[str, Any]], T]) -> T:
        """Change the object for all replicas, from the event loop's thread.

        Raises:
            StoreError: NATS does not answer, or the object becomes too large.
        """
        bucket = self._stream.names.user
        revision, values = self._revision, self._values
        while True:
            changed = orjson.loads(orjson.dumps(values))
            result = change(changed)
            if len(orjson.dumps(changed)) > MOST_BYTES:
                raise StoreError(f"the stored {self._name} would have more than {MOST_BYTES} bytes")
            try:
                revision = await self._stream.set_value(bucket, self._name, changed, revision, uuid.uuid4().hex)
            except WrongSequenceError:
                revision, found = await self._stream.value(bucket, self._name)
                values = _object(found)
                continue
            self.note(changed, revision)
            return result

    def reload(self) -> None:
        """Do nothing: changes of other replicas are known at once."""

    def note(self, values: Any, revision: int) -> None:
        """Note what is stored."""
        if revision > self._revision:
            self._values, self._revision = _object(values), revision


class ClusterDocuments:
    """The documents of the bucket."""

    def __init__(self, stream: Buckets, tasks: TaskGroup) -> None:
        self.approvals = ClusterDocument(stream, APPROVALS)
        self.settings = ClusterDocument(stream, SETTINGS)
        self.day_usage = ClusterDocument(stream, DAY_USAGE)
        self._stream = stream
        self._tasks = tasks
        self._known = anyio.Event()

    async def start(self) -> None:
        """Read the documents, and follow their changes."""
        self._tasks.start_soon(self._watch)
        await self._known.wait()

    async def _watch(self) -> None:
        documents = {APPROVALS: self.approvals, SETTINGS: self.settings, DAY_USAGE: self.day_usage}
        async for change in self._stream.watch(self._stream.names.user):
            if change is None:
                self._known.set()
            elif (document := documents.get(change[0])) is not None and change[1] is not SKIPPED:
                document.note(change[1], change[2])


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
