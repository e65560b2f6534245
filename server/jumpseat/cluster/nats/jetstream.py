"""The streams of a cluster: the records of sessions and their large files.

Appends state the last sequence that their author knows of their subject, and have their own id. An append
without an answer may have been stored, so it is repeated, unchanged, until the leader says what became of it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any, Final, cast

import anyio
import nats.errors
import orjson
from msgspec import Struct
from nats.js import api
from nats.js import errors as js_errors

from jumpseat.cluster.nats.buckets import Buckets
from jumpseat.cluster.nats.connection import (
    EXPECTED,
    FAILURES,
    RETRY_S,
    Headers,
    Stored,
    connected_client,
    stored,
    text_of,
)
from jumpseat.cluster.nats.names import Names
from jumpseat.cluster.nats.settings import ClusterSettings
from jumpseat.errors import StoreError

log = logging.getLogger(__name__)

HEARTBEAT_TTL_S: Final = 20.0
"""Age at which the bucket of replicas drops a heartbeat: longer than an election of NATS, which takes up to 9 s."""
START_S: Final = 60.0
"""Time in which servers of NATS that have just started elect their leaders."""
DUPLICATES_S: Final = 120.0
_HEADER_BYTES: Final = 8192
_LARGEST_BYTES: Final = 1 << 20
_BATCH: Final = 1000


class LargeFile(Struct, frozen=True):
    """An object with a large file. ``parts`` names its parts; ``stored_s`` its time by its host."""

    name: str
    parts: str
    deleted: bool
    stored_s: float


class JetStream(Buckets):
    """The streams, buckets and subjects of one cluster."""

    @property
    def most_bytes(self) -> int:
        """The largest body of a message."""
        return min(self._client.max_payload, _LARGEST_BYTES) - _HEADER_BYTES

    # --- streams and buckets --------------------------------------------------------------------------------------

    async def prepare(self, settings: ClusterSettings) -> None:
        """Create the streams and buckets that do not exist. Waits for servers of NATS that have just started.

        Raises:
            StoreError: JetStream is not available.
        """
        until_s = time.monotonic() + START_S
        while True:
            try:
                await self._prepare(settings)
                return
            except (nats.errors.Error, TimeoutError) as error:
                if time.monotonic() > until_s:
                    where = ", ".join(settings.servers)
                    raise StoreError(f"JetStream is not available at {where}: {text_of(error)}") from None
            await anyio.sleep(RETRY_S[-1])

    async def _prepare(self, settings: ClusterSettings) -> None:
        copies = settings.copies or min(3, await self._nodes())
        await self._ensure(
            api.StreamConfig(
                name=self.names.log_stream,
                subjects=[self.names.logs],
                num_replicas=copies,
                storage=api.StorageType.FILE,
                duplicate_window=DUPLICATES_S,
                allow_direct=True,
                discard=api.DiscardPolicy.NEW,
            )
        )
        for bucket, ttl in (
            (self.names.owners, None),
            (self.names.index, None),
            (self.names.user, None),
            (self.names.replicas, HEARTBEAT_TTL_S),
        ):
            with suppress(js_errors.BadRequestError):
                await self._js.create_key_value(
                    api.KeyValueConfig(bucket=bucket, replicas=copies, ttl=ttl, history=1, direct=False)
                )
        with suppress(js_errors.BadRequestError):
            await self._js.create_object_store(
                self.names.objects, api.ObjectStoreConfig(bucket=self.names.objects, replicas=copies)
            )
        self._objects: Any = await self._js.object_store(self.names.objects)

    async def _ensure(self, config: api.StreamConfig) -> None:
        try:
            await self._js.stream_info(cast("str", config.name))
        except js_errors.NotFoundError:
            with suppress(js_errors.BadRequestError):
                await self._js.add_stream(config)

    async def _nodes(self) -> int:
        """Return the number of servers of NATS that this one knows."""
        return len({*self._client.servers, *self._client.discovered_servers})

    # --- appending ------------------------------------------------------------------------------------------------

    async def append(
        self,
        subject: str,
        data: bytes,
        message_id: str,
        expected: int,
        headers: Headers,
        patience_s: float = math.inf,
    ) -> int:
        """Store a message behind the one with the sequence ``expected``; 0 is none. Returns its sequence.

        Waits for as long as NATS does not answer, or for ``patience_s``.

        Raises: as :meth:`publish`.
        """
        stream = self.names.log_stream
        return await self.publish(stream, subject, data, message_id, expected, headers, patience_s, refusable=True)

    # --- reading --------------------------------------------------------------------------------------------------

    async def last(self, subject: str) -> Stored | None:
        """Return the last message of a subject of the log, from the leader.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        return await self.last_of(self.names.log_stream, subject)

    async def read(self, subject: str, last: int) -> AsyncIterator[Stored]:
        """Yield the messages of a subject up to the sequence ``last``, which the leader has told.

        Any node answers, also one that lags behind or has gaps: each message names the one before, and what is
        missing is asked for again, of the leader.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        seq, pause = 0, self.pause()
        while seq < last:
            before = seq
            async with aclosing(self._batch(subject, seq + 1)) as messages:
                async for message in messages:
                    if message.seq > last:
                        return
                    if message.seq <= seq:
                        continue
                    if message.headers.get(EXPECTED, str(seq)) != str(seq):
                        log.info("a server of NATS has a gap in %s after message %d", subject, seq)
                        break
                    seq = message.seq
                    yield message
            if seq == before:
                next_one = await self._next(subject, seq + 1)
                if next_one is not None and seq < next_one.seq <= last:
                    seq = next_one.seq
                    yield next_one
                else:
                    await pause()
            else:
                pause = self.pause()

    async def after(self, subject: str, seq: int) -> Stored | None:
        """Return the first message of a subject of the log behind a sequence, from the leader.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        found = await self.retried(
            lambda: self._js.get_msg(self.names.log_stream, seq=seq + 1, subject=subject, next=True)
        )
        return stored(found) if found is not None else None

    async def _next(self, subject: str, start: int) -> Stored | None:
        """Return the first message of a subject from a sequence on, from the leader; ``None`` if it is silent."""
        try:
            request = self._js.get_msg(self.names.log_stream, seq=start, subject=subject, next=True)
            found = await self.answer_to(request)
        except FAILURES as error:
            log.info("NATS does not answer: %s", text_of(error))
            return None
        return stored(found)

    async def _batch(self, subject: str, start: int) -> AsyncGenerator[Stored]:
        """Yield what one node has of the next messages of a subject; ends early if it does not answer."""
        inbox = self._client.new_inbox()
        replies: Any = None
        request = {"batch": _BATCH, "max_bytes": 8 << 20, "seq": start, "next_by_subj": subject}
        try:
            replies = await self._client.subscribe(inbox)
            await self._client.publish(
                f"$JS.API.DIRECT.GET.{self.names.log_stream}", orjson.dumps(request), reply=inbox
            )
            while True:
                reply = await replies.next_msg(timeout=self.request_s)
                headers = cast("Headers", reply.headers or {})
                if "Nats-Sequence" not in headers:
                    return
                yield Stored(int(headers["Nats-Sequence"]), reply.data, headers)
        except FAILURES as error:
            log.info("NATS does not answer: %s", text_of(error))
        finally:
            if replies is not None:
                with suppress(nats.errors.Error):
                    await replies.unsubscribe()

    async def purge(self, session_id: str) -> None:
        """Remove all records of a session."""
        await self.retried(lambda: self._js.purge_stream(self.names.log_stream, subject=self.names.log(session_id)))

    # --- large files ----------------------------------------------------------------------------------------------

    async def put_object(self, name: str, data: bytes) -> None:
        """Store a large file.

        Raises:
            StoreUnavailableError: NATS does not answer, or has no space.
        """
        await self.retried(lambda: self._objects.put(name, data), ends_itself=True)

    async def get_object(self, name: str) -> bytes:
        """Return a large file.

        Raises:
            StoreError: there is no such file.
        """
        found = await self.retried(lambda: self._objects.get(name))
        if found is None:
            raise StoreError(f"the stored file {name!r} is missing")
        return cast("bytes", found.data or b"")

    async def delete_object(self, name: str) -> None:
        """Remove a large file, if there is one."""
        with suppress(*FAILURES):
            await self._objects.delete(name)

    async def large_files(self) -> list[LargeFile]:
        """Return all large files, also those that were removed.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        found: list[Any] = await self.retried(lambda: self._objects.list()) or []
        return [
            LargeFile(info.name, info.nuid or "", bool(info.deleted), _seconds(info.mtime) if info.mtime else 0.0)
            for info in found
        ]

    async def remove_parts(self, known: Collection[str], before_s: float) -> list[str]:
        """Remove the parts of files that are not ``known`` and were stored before a time; return their subjects.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        stream, prefix = f"OBJ_{self.names.objects}", f"$O.{self.names.objects}.C."
        info = await self.retried(lambda: self._js.stream_info(stream, subjects_filter=f"{prefix}>"))
        subjects: dict[str, int] = (info.state.subjects or {}) if info is not None else {}
        removed: list[str] = []
        for subject in subjects:
            if subject.removeprefix(prefix) in known:
                continue
            last = await self.retried(partial(self._js.get_msg, stream, subject=subject))
            if last is not None and last.time is not None and last.time.timestamp() <= before_s:
                await self.retried(partial(self._js.purge_stream, stream, subject=subject))
                removed.append(subject)
        return removed


def _seconds(time_of_host: str) -> float:
    """Return the Unix time of a time in ISO 8601."""
    return datetime.fromisoformat(time_of_host).timestamp()


@asynccontextmanager
async def connect(settings: ClusterSettings, label: str) -> AsyncGenerator[JetStream]:
    """Connect to NATS, create what a cluster needs there, and reconnect whenever the connection breaks.

    Raises:
        StoreError: no server can be reached, or none has JetStream.
        ConfigError: the credentials are not accepted.
    """
    stream = JetStream(Names(settings.name), settings.patience_s)
    async with connected_client(settings, label, stream):
        await stream.prepare(settings)
        yield stream
