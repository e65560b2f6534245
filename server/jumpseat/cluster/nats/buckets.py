"""The key-value buckets of a cluster: JSON objects, changed by revision and watched.

A value that cannot be read, because another program or another version has written it, is logged and skipped.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Final, TypeGuard, cast

import nats.errors
import orjson
from nats.js import errors as js_errors

from jumpseat.cluster.nats.connection import (
    EXPECTED,
    FAILURES,
    MESSAGE_ID,
    WRONG_SEQUENCE,
    Headers,
    NatsConnection,
    Stored,
    WrongSequenceError,
    stored,
    text_of,
)
from jumpseat.errors import StoreError, StoreUnavailableError

log = logging.getLogger(__name__)

LAGGING_S: Final = 20.0
"""Time for which a server of NATS may answer as a leader that others have replaced: it checks each 10 s."""
REMOVED_S: Final = 1.5
"""Time for which a message must be missing: a leader that was paused learns of its successor after a second."""
SILENCE_S: Final = 5.0
"""Time without a change after which a watch is compared with the bucket."""


SKIPPED: Final = object()
"""The value of a change that cannot be read."""

_IN_PROCESS: Final = 10158
"""The error of a message that the leader is still storing: the answer to a repetition follows."""


class Buckets(NatsConnection):
    """The buckets that a connection reaches."""

    async def value(self, bucket: str, key: str) -> tuple[int, Any]:
        """Return the revision of a key in a bucket, 0 if it never had one, and its object, if it has one to read.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        found = await self.last_of(f"KV_{bucket}", f"$KV.{bucket}.{key}")
        if found is None:
            return 0, None
        deleted = "KV-Operation" in found.headers or "Nats-Marker-Reason" in found.headers
        value = None if deleted or not found.data else _object(bucket, key, found.data)
        return found.seq, None if value is SKIPPED else value

    async def set_value(self, bucket: str, key: str, value: Any, expected: int, message_id: str) -> int:
        """Replace the value of a key whose revision is ``expected``; ``None`` removes it. Returns the revision.

        Raises:
            WrongSequenceError: another author has changed it.
            StoreUnavailableError: NATS does not answer, or has no space; the change may be stored all the same.
        """
        headers = {} if value is not None else {"KV-Operation": "PURGE", "Nats-Rollup": "sub", "Nats-TTL": "3600"}
        data = b"" if value is None else orjson.dumps(value)
        return await self.publish(f"KV_{bucket}", f"$KV.{bucket}.{key}", data, message_id, expected, headers)

    async def publish(
        self,
        stream: str,
        subject: str,
        data: bytes,
        message_id: str,
        expected: int,
        headers: Headers,
        patience_s: float | None = None,
        *,
        refusable: bool = False,
    ) -> int:
        """Store a message behind the one with the sequence ``expected``; 0 is none. Returns its sequence.

        A ``refusable`` message is not repeated if NATS rejects it for another reason than its sequence.

        Raises:
            WrongSequenceError: another author has written to the subject, or removed messages from it.
            StoreUnavailableError: the patience is over; the message may be stored all the same.
            StoreError: the message is refused: it is too large, or the stream is full.
        """
        sent = {MESSAGE_ID: message_id, EXPECTED: str(expected), **headers}
        pause = self.pause(patience_s)
        refusals = Refusals(self, stream, subject, expected, message_id)
        while True:
            try:
                publication = self._js.publish(subject, data, timeout=self.request_s, headers=dict(sent))
                return (await self.answer_to(publication)).seq
            except js_errors.APIError as error:
                if error.err_code in WRONG_SEQUENCE:
                    last = await refusals.judge(patience_s)
                    if refusals.is_stored(last):
                        return last.seq
                elif refusable and error.code is not None and error.code < 500 and error.err_code != _IN_PROCESS:
                    raise StoreError(f"NATS refuses to store: {text_of(error)}") from None
                log.warning("NATS cannot store at the moment: %s", text_of(error))
            except FAILURES as error:
                if refusable and isinstance(error, nats.errors.MaxPayloadError):
                    raise StoreError("NATS refuses to store: the message is too large") from None
                log.info("NATS does not answer, the message is sent again: %s", text_of(error))
            await pause()

    async def has_revision(self, bucket: str, key: str, revision: int) -> bool:
        """Return whether a key still has the revision that it once had.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        refusals = Refusals(self, f"KV_{bucket}", f"$KV.{bucket}.{key}", revision)
        pause = self.pause(math.inf)
        while True:
            try:
                last = await refusals.judge()
            except WrongSequenceError:
                return False
            if last is not None and last.seq == revision:
                return True
            await pause()

    async def put(self, bucket: str, key: str, value: Any, timeout_s: float | None = None) -> None:
        """Set the value of a key, once.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        with _answering():
            await self.answer_to(
                self._js.publish(f"$KV.{bucket}.{key}", orjson.dumps(value), timeout=timeout_s or self.request_s)
            )

    async def put_surely(self, bucket: str, key: str, value: Any) -> None:
        """Set the value of a key.

        Raises:
            StoreUnavailableError: NATS does not answer, or has no space.
        """
        await self.retried(
            lambda: self._js.publish(f"$KV.{bucket}.{key}", orjson.dumps(value), timeout=self.request_s)
        )

    async def last_revision(self, bucket: str) -> int:
        """Return the revision of the last change in a bucket.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        with _answering():
            return (await self.answer_to(self._js.stream_info(f"KV_{bucket}"))).state.last_seq

    async def values(self, bucket: str) -> dict[str, Any]:
        """Return all keys of a bucket with their objects."""
        found: dict[str, Any] = {}
        async with aclosing(self.watch(bucket)) as changes:
            async for change in changes:
                if change is None:
                    break
                key, value, _ = change
                if value is not None and value is not SKIPPED:
                    found[key] = value
        return found

    async def _is_empty(self, bucket: str) -> bool:
        return (await self._js.stream_info(f"KV_{bucket}")).state.messages == 0

    async def describe(self, stream: str) -> dict[str, Any]:
        """Return the size of a stream, and where it is, as a JSON object.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        with _answering():
            info = await self._js.stream_info(stream)
        return {
            "name": stream,
            "messages": info.state.messages,
            "bytes": info.state.bytes,
            "copies": info.config.num_replicas,
            "leader": info.cluster.leader if info.cluster is not None else None,
        }

    async def watch(self, bucket: str) -> AsyncGenerator[tuple[str, Any, int] | None]:
        """Yield the keys of a bucket with their objects and revisions, then all changes, for ever.

        ``None`` follows the keys that exist. A removed key has the value ``None``, one that cannot be read
        :data:`SKIPPED`. All keys come again after NATS has lost the place of the reader.
        """
        pause = self.pause(math.inf)
        while True:
            try:
                async with aclosing(self._watch(bucket)) as changes:
                    async for change in changes:
                        pause.reset()
                        yield change
            except (*FAILURES, StoreError) as error:
                log.info("the watch of %s begins again: %s", bucket, text_of(error))
            await pause()

    async def _watch(self, bucket: str) -> AsyncGenerator[tuple[str, Any, int] | None]:
        """Yield as :meth:`watch` does, until changes stay out."""
        store = await self._js.key_value(bucket)
        watcher: Any = await store.watchall()
        known, is_complete = 0, False
        try:
            while True:
                try:
                    entry = await watcher.updates(timeout=SILENCE_S)
                except (nats.errors.TimeoutError, TimeoutError):
                    if await self.last_revision(bucket) > known:
                        return
                    continue
                if entry is not None:
                    known = entry.revision or known
                    is_removed = entry.operation is not None or not entry.value
                    value = None if is_removed else _object(bucket, entry.key, entry.value)
                    yield entry.key, value, entry.revision or 0
                # NATS tells too early that there are no keys, if the first ones arrive together with their number.
                if not is_complete and (entry.delta == 0 if entry is not None else await self._is_empty(bucket)):
                    is_complete = True
                    yield None
        finally:
            with suppress(nats.errors.Error, OSError):
                await watcher.stop()

    async def last_of(self, stream: str, subject: str, patience_s: float | None = None) -> Stored | None:
        """Return the last message of a subject, from the leader of its stream.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        found = await self.retried(
            lambda: self.answer_to(self._js.get_msg(stream, subject=subject), self.request_s), patience_s
        )
        return stored(found) if found is not None else None

    async def last_number(self, stream: str, patience_s: float | None = None) -> int:
        """Return the sequence of the last message that a stream has ever had, from its leader.

        Raises:
            StoreUnavailableError: NATS does not answer.
        """
        info = await self.retried(lambda: self._js.stream_info(stream), patience_s)
        return info.state.last_seq if info is not None else 0


def _object(bucket: str, key: str, data: bytes) -> Any:
    """Return the object of a key; :data:`SKIPPED` if ``data`` is none."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    log.warning("the value of %.100r in the bucket %s is skipped: it is not a JSON object", key, bucket)
    return SKIPPED


@contextmanager
def skipping(bucket: str, key: str) -> Generator[None]:
    """Skip a change whose object has members of other types than expected."""
    try:
        yield
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        log.warning("the value of %.100r in the bucket %s is skipped: %s", key, bucket, error)


@contextmanager
def _answering() -> Generator[None]:
    """Turn a request without an answer into a :class:`StoreUnavailableError`."""
    try:
        yield
    except FAILURES as error:
        log.info("NATS does not answer: %s", text_of(error))
        raise StoreUnavailableError from None


class Refusals:
    """Judges why a message is refused that states ``expected`` as the last sequence of its subject.

    ``message_id`` is that of the message, which may be stored though the answer was lost.

    A higher sequence is a message of another author. A lower one is not, because sequences only grow: the server
    that answers was the leader of the stream and has not noticed yet that others have replaced it, or messages were
    removed.
    """

    def __init__(self, stream: Buckets, name: str, subject: str, expected: int, message_id: str = "") -> None:
        self._stream = stream
        self._name = name
        self._subject = subject
        self._expected = expected
        self._message_id = message_id
        self._was_known: bool | None = None
        self._since_s = 0.0

    async def judge(self, patience_s: float | None = None) -> Stored | None:
        """Return the last message of the subject. Unless that is the message itself, it is to be sent again.

        Raises:
            WrongSequenceError: another author has written to the subject, or has removed messages from it, or they
                are missing for longer than the server can be mistaken.
            StoreUnavailableError: NATS does not answer.
        """
        last = await self._stream.last_of(self._name, self._subject, patience_s)
        seq = last.seq if last is not None else 0
        if seq >= self._expected:
            self._was_known = None
            if seq > self._expected and not self.is_stored(last):
                raise WrongSequenceError(last)
            return last
        is_known = await self._stream.last_number(self._name, patience_s) >= self._expected
        now_s = time.monotonic()
        if is_known is not self._was_known:
            log.warning("NATS has no message %d of %s, but %d", self._expected, self._subject, seq)
            self._was_known, self._since_s = is_known, now_s
        elif now_s - self._since_s > (REMOVED_S if is_known else LAGGING_S):
            raise WrongSequenceError(last)
        return last

    def is_stored(self, last: Stored | None) -> TypeGuard[Stored]:
        """Return whether the last message of the subject is the message itself."""
        return last is not None and last.headers.get(MESSAGE_ID) == self._message_id
