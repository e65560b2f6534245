"""The connection to NATS, and the operations that the cluster needs of it. The only importer of ``nats``.

Appends state the last sequence that their author knows of their subject, and have an id of their own. An append
without an answer may have been stored, so it is repeated, unchanged, until the leader says what became of it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final, TypeAlias, cast

import anyio
import nats
import nats.errors
import orjson
from nats.aio.client import Client as NatsClient
from nats.aio.msg import Msg
from nats.js import api
from nats.js import errors as js_errors

from jumpseat.cluster.names import Names
from jumpseat.cluster.settings import ClusterSettings
from jumpseat.errors import ConfigError, StoreError
from jumpseat_protocol.lazy_dataclasses import dataclass

log = logging.getLogger(__name__)

HEARTBEAT_TTL_S: Final = 20.0
"""Age at which the bucket of replicas drops a heartbeat: longer than an election of NATS, which takes up to 9 s."""
RETRY_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Waits before an append is repeated; the last one is used from then on."""
REQUEST_S: Final = 5.0
START_S: Final = 60.0
"""Time in which servers of NATS that have just started elect their leaders."""
SILENCE_S: Final = 5.0
"""Time without a change after which a watch is compared with the bucket."""
DUPLICATES_S: Final = 120.0
_WRONG_SEQUENCE: Final = (10071, 10164)
_IN_PROCESS: Final = 10158
"""The error of a message that the leader has got before, and is storing: the answer to a repetition follows."""
_EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
_MESSAGE_ID: Final = "Nats-Msg-Id"
_HEADER_BYTES: Final = 8192
_LARGEST_BYTES: Final = 1 << 20
_BATCH: Final = 1000

Headers: TypeAlias = Mapping[str, str]


class WrongSequenceError(Exception):
    """Somebody else has written to the subject. ``last`` is the last message there, ``None`` if there is none."""

    def __init__(self, last: Stored | None) -> None:
        super().__init__("the subject has another last message than expected")
        self.last = last


class NoReplyError(Exception):
    """Nobody listens to the subject: ``gone``; or nobody has answered in time."""

    def __init__(self, *, gone: bool) -> None:
        super().__init__("nobody listens" if gone else "no answer")
        self.gone = gone


@dataclass(frozen=True, slots=True)
class Stored:
    """A message of a stream."""

    seq: int
    data: bytes
    headers: Headers


class JetStream:
    """The streams, buckets and subjects of one cluster."""

    def __init__(self, client: NatsClient, names: Names) -> None:
        # Its types are incomplete.
        self._client: Any = client
        self._js: Any = self._client.jetstream(timeout=REQUEST_S)
        self.names = names
        self.reconnects: list[Callable[[], None]] = []
        """Called after each reconnect: messages to and from this replica may be lost."""

    @property
    def connected(self) -> bool:
        """Return whether there is a connection to a server of NATS."""
        return self._client.is_connected

    @property
    def server(self) -> str:
        """The server of NATS that this replica is connected to."""
        url = self._client.connected_url
        return url.netloc if url is not None else ""

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
                    raise StoreError(f"JetStream is not available at {where}: {_text(error)}") from None
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

    async def append(self, subject: str, data: bytes, message_id: str, expected: int, headers: Headers) -> int:
        """Store a message behind the one with the sequence ``expected``; 0 is none. Returns its sequence.

        Waits for as long as NATS does not answer.

        Raises:
            WrongSequenceError: somebody else has written to the subject.
            StoreError: the message is refused: it is too large, or the stream is full.
        """
        sent = {_MESSAGE_ID: message_id, _EXPECTED: str(expected), **headers}
        attempt = 0
        while True:
            try:
                return (await self._js.publish(subject, data, timeout=REQUEST_S, headers=dict(sent))).seq
            except js_errors.APIError as error:
                if error.err_code in _WRONG_SEQUENCE:
                    last = await self.last(subject)
                    if last is not None and last.headers.get(_MESSAGE_ID) == message_id:
                        return last.seq
                    if (last.seq if last is not None else 0) != expected:
                        raise WrongSequenceError(last) from None
                elif error.code is not None and error.code < 500 and error.err_code != _IN_PROCESS:
                    raise StoreError(f"NATS refuses to store: {_text(error)}") from None
                log.warning("NATS cannot store at the moment: %s", _text(error))
            except nats.errors.MaxPayloadError:
                raise StoreError("NATS refuses to store: the message is too large") from None
            except (nats.errors.Error, TimeoutError, OSError) as error:
                log.info("NATS does not answer, the message is sent again: %s", _text(error))
            await anyio.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
            attempt += 1

    # --- reading --------------------------------------------------------------------------------------------------

    async def last(self, subject: str) -> Stored | None:
        """Return the last message of a subject of the log, from the leader; waits for NATS."""
        return await self._last(self.names.log_stream, subject)

    async def _last(self, stream: str, subject: str) -> Stored | None:
        found = await self._retried(lambda: self._js.get_msg(stream, subject=subject))
        return Stored(found.seq or 0, found.data or b"", found.headers or {}) if found is not None else None

    async def read(self, subject: str, last: int) -> AsyncIterator[Stored]:
        """Yield the messages of a subject up to the sequence ``last``, which the leader has told.

        Any node answers, also one that lags behind or has gaps: each message names the one before, and what is
        missing is asked for again, of the leader.
        """
        seq, attempt = 0, 0
        while seq < last:
            before = seq
            async with aclosing(self._batch(subject, seq + 1)) as messages:
                async for message in messages:
                    if message.seq > last:
                        return
                    if message.seq <= seq:
                        continue
                    if message.headers.get(_EXPECTED, str(seq)) != str(seq):
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
                    await anyio.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
                    attempt += 1

    async def _next(self, subject: str, start: int) -> Stored | None:
        """Return the first message of a subject from a sequence on, from the leader; ``None`` if it is silent."""
        try:
            found = await self._js.get_msg(self.names.log_stream, seq=start, subject=subject, next=True)
        except (nats.errors.Error, TimeoutError, OSError) as error:
            log.info("NATS does not answer: %s", _text(error))
            return None
        return Stored(found.seq or 0, found.data or b"", found.headers or {})

    async def _batch(self, subject: str, start: int) -> AsyncGenerator[Stored]:
        """Yield what one node has of the next messages of a subject; ends early if it does not answer."""
        inbox = self._client.new_inbox()
        replies = await self._client.subscribe(inbox)
        request = {"batch": _BATCH, "max_bytes": 8 << 20, "seq": start, "next_by_subj": subject}
        try:
            await self._client.publish(
                f"$JS.API.DIRECT.GET.{self.names.log_stream}", orjson.dumps(request), reply=inbox
            )
            while True:
                reply = await replies.next_msg(timeout=REQUEST_S)
                headers = cast("Headers", reply.headers or {})
                if "Nats-Sequence" not in headers:
                    return
                yield Stored(int(headers["Nats-Sequence"]), reply.data, headers)
        except (nats.errors.Error, TimeoutError, OSError) as error:
            log.info("NATS does not answer: %s", _text(error))
        finally:
            with suppress(nats.errors.Error):
                await replies.unsubscribe()

    async def purge(self, session_id: str) -> None:
        """Remove all records of a session."""
        await self._retried(
            lambda: self._js.purge_stream(self.names.log_stream, subject=self.names.log(session_id))
        )

    async def _retried(self, work: Callable[[], Any]) -> Any:
        """Return the result of ``work`` when NATS answers; ``None`` if there is no such thing in NATS."""
        attempt = 0
        while True:
            try:
                return await work()
            except js_errors.NotFoundError:
                return None
            except (nats.errors.Error, TimeoutError, OSError) as error:
                log.info("NATS does not answer: %s", _text(error))
            await anyio.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
            attempt += 1

    # --- buckets --------------------------------------------------------------------------------------------------

    async def value(self, bucket: str, key: str) -> tuple[int, Any]:
        """Return the revision of a key in a bucket, 0 if it never had one, and its JSON value, if it has one."""
        found = await self._last(f"KV_{bucket}", f"$KV.{bucket}.{key}")
        if found is None:
            return 0, None
        deleted = "KV-Operation" in found.headers or "Nats-Marker-Reason" in found.headers
        return found.seq, None if deleted or not found.data else orjson.loads(found.data)

    async def set_value(self, bucket: str, key: str, value: Any, expected: int, message_id: str) -> int:
        """Replace the value of a key whose revision is ``expected``; ``None`` removes it. Returns the revision.

        Raises:
            WrongSequenceError: somebody else has changed it.
        """
        headers = {} if value is not None else {"KV-Operation": "PURGE", "Nats-Rollup": "sub", "Nats-TTL": "3600"}
        data = b"" if value is None else orjson.dumps(value)
        sent = {_MESSAGE_ID: message_id, _EXPECTED: str(expected), **headers}
        subject, attempt = f"$KV.{bucket}.{key}", 0
        while True:
            try:
                return (await self._js.publish(subject, data, timeout=REQUEST_S, headers=dict(sent))).seq
            except js_errors.APIError as error:
                if error.err_code in _WRONG_SEQUENCE:
                    last = await self._last(f"KV_{bucket}", subject)
                    if last is not None and last.headers.get(_MESSAGE_ID) == message_id:
                        return last.seq
                    raise WrongSequenceError(last) from None
                log.warning("NATS cannot store at the moment: %s", _text(error))
            except (nats.errors.Error, TimeoutError, OSError) as error:
                log.info("NATS does not answer: %s", _text(error))
            await anyio.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
            attempt += 1

    async def put(self, bucket: str, key: str, value: Any, timeout_s: float = REQUEST_S) -> None:
        """Set the value of a key, once.

        Raises:
            StoreError: NATS does not answer.
        """
        try:
            await self._js.publish(f"$KV.{bucket}.{key}", orjson.dumps(value), timeout=timeout_s)
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise StoreError(f"NATS does not answer: {_text(error)}") from None

    async def put_surely(self, bucket: str, key: str, value: Any) -> None:
        """Set the value of a key; waits for NATS."""
        await self._retried(lambda: self._js.publish(f"$KV.{bucket}.{key}", orjson.dumps(value), timeout=REQUEST_S))

    async def last_revision(self, bucket: str) -> int:
        """Return the revision of the last change in a bucket.

        Raises:
            StoreError: NATS does not answer.
        """
        try:
            return (await self._js.stream_info(f"KV_{bucket}")).state.last_seq
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise StoreError(f"NATS does not answer: {_text(error)}") from None

    async def values(self, bucket: str) -> dict[str, Any]:
        """Return all keys of a bucket with their JSON values."""
        found: dict[str, Any] = {}
        async with aclosing(self.watch(bucket)) as changes:
            async for change in changes:
                if change is None:
                    break
                key, value, _ = change
                if value is not None:
                    found[key] = value
        return found

    async def describe(self, stream: str) -> dict[str, Any]:
        """Return the size of a stream, and where it is, as a JSON object.

        Raises:
            StoreError: NATS does not answer.
        """
        try:
            info = await self._js.stream_info(stream)
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise StoreError(f"NATS does not answer: {_text(error)}") from None
        return {
            "name": stream,
            "messages": info.state.messages,
            "bytes": info.state.bytes,
            "copies": info.config.num_replicas,
            "leader": info.cluster.leader if info.cluster is not None else None,
        }

    async def watch(self, bucket: str) -> AsyncGenerator[tuple[str, Any, int] | None]:
        """Yield the keys of a bucket with their JSON values and revisions, then all changes, for ever.

        ``None`` follows the keys that exist. A removed key has the value ``None``. All keys come again after NATS
        has lost the place of the reader.
        """
        attempt = 0
        while True:
            try:
                async with aclosing(self._watch(bucket)) as changes:
                    async for change in changes:
                        attempt = 0
                        yield change
            except (nats.errors.Error, TimeoutError, OSError, StoreError) as error:
                log.info("the watch of %s begins again: %s", bucket, _text(error))
            await anyio.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
            attempt += 1

    async def _watch(self, bucket: str) -> AsyncGenerator[tuple[str, Any, int] | None]:
        """Yield as :meth:`watch` does, until changes stay out."""
        store = await self._js.key_value(bucket)
        watcher: Any = await store.watchall()
        known = 0
        try:
            while True:
                try:
                    entry = await watcher.updates(timeout=SILENCE_S)
                except (nats.errors.TimeoutError, TimeoutError):
                    if await self.last_revision(bucket) > known:
                        return
                    continue
                if entry is None:
                    yield None
                    continue
                known = entry.revision or known
                value = None if entry.operation is not None or not entry.value else orjson.loads(entry.value)
                yield entry.key, value, entry.revision or 0
        finally:
            with suppress(nats.errors.Error, OSError):
                await watcher.stop()

    # --- large files ----------------------------------------------------------------------------------------------

    async def put_object(self, name: str, data: bytes) -> None:
        """Store a large file; waits for NATS."""
        await self._retried(lambda: self._objects.put(name, data))

    async def get_object(self, name: str) -> bytes:
        """Return a large file.

        Raises:
            StoreError: there is no such file.
        """
        found = await self._retried(lambda: self._objects.get(name))
        if found is None:
            raise StoreError(f"the stored file {name!r} is missing")
        return cast("bytes", found.data or b"")

    async def delete_object(self, name: str) -> None:
        """Remove a large file, if there is one."""
        with suppress(nats.errors.Error, TimeoutError, OSError):
            await self._objects.delete(name)

    # --- messages between replicas --------------------------------------------------------------------------------

    async def listen(self, subject: str, handle: Callable[[str, bytes, str], None]) -> None:
        """Call ``handle`` with the subject of each message, its content and the subject to answer to, in order."""

        async def receive(message: Msg) -> None:
            try:
                handle(message.subject, message.data, message.reply)
            except Exception:
                log.exception("a message of another replica cannot be handled")

        await self._client.subscribe(subject, cb=receive, pending_bytes_limit=256 << 20, pending_msgs_limit=1 << 20)

    async def send(self, subject: str, data: bytes, reply: str = "") -> None:
        """Send a message, which may be lost where the connection breaks; answers go to ``reply``."""
        with suppress(nats.errors.Error, OSError):
            await self._client.publish(subject, data, reply=reply)

    async def ask(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        """Send a request and return the answer.

        Raises:
            NoReplyError: nobody listens, or nobody answers in time.
        """
        try:
            return (await self._client.request(subject, data, timeout=timeout_s)).data
        except nats.errors.NoRespondersError:
            raise NoReplyError(gone=True) from None
        except (nats.errors.Error, TimeoutError, OSError):
            raise NoReplyError(gone=False) from None


@asynccontextmanager
async def connect(settings: ClusterSettings, label: str) -> AsyncGenerator[JetStream]:
    """Connect to NATS, and reconnect whenever the connection breaks, to any server, until the end of the block.

    Raises:
        StoreError: no server can be reached.
        ConfigError: the credentials are not accepted.
    """
    client: Any = NatsClient()
    stream: JetStream | None = None
    refused = False

    async def reconnected() -> None:
        log.info("connected to NATS again")
        for callback in stream.reconnects if stream is not None else ():
            callback()

    async def disconnected() -> None:
        if not client.is_closed:
            log.warning("the connection to NATS is lost")

    async def failed(error: Exception) -> None:
        nonlocal refused
        # Of other types, too, by the moment at which the server refuses.
        refused = refused or "authorization" in _text(error).lower()
        log.info("NATS: %s", _text(error))

    given: dict[str, Any] = {
        "user": settings.user,
        "password": settings.password,
        "token": settings.token,
        "user_credentials": settings.credentials,
        "tls": settings.tls,
    }
    try:
        with anyio.fail_after(15):
            await client.connect(
                list(settings.servers),
                name=label,
                connect_timeout=2,
                ping_interval=5,
                max_outstanding_pings=2,
                max_reconnect_attempts=-1,
                reconnect_time_wait=0.1,
                reconnected_cb=reconnected,
                disconnected_cb=disconnected,
                error_cb=failed,
                # A cut connection must not hold what was sent meanwhile.
                pending_size=8 << 20,
                **{key: value for key, value in given.items() if value is not None},
            )
    except (nats.errors.AuthorizationError, nats.errors.NoServersError, TimeoutError, OSError) as error:
        if refused or isinstance(error, nats.errors.AuthorizationError):
            raise ConfigError("store: NATS does not accept the credentials") from None
        raise StoreError(f"cannot reach NATS at {', '.join(settings.servers)}: {_text(error)}") from None
    try:
        stream = JetStream(client, Names(settings.name))
        await stream.prepare(settings)
        yield stream
    finally:
        with anyio.move_on_after(1, shield=True), suppress(nats.errors.Error, OSError, TimeoutError):
            await client.close()


def _text(error: BaseException) -> str:
    description = getattr(error, "description", None)
    return str(description or error or type(error).__name__)
