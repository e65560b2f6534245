"""The ownership of one session by this replica, and the only way to write to the session's records.

Changes are stored one message after the other, in their order. What is queued while a message is on its way goes
with the next one. Announcements have places in the same queue: they are made when everything before is stored.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias, TypeVar, cast

import anyio
import anyio.from_thread
from anyio.abc import TaskGroup
from msgspec import Struct

from jumpseat.cluster.nats.connection import WrongSequenceError
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.sessions.missed_events import RunEnds
from jumpseat.cluster.sessions.records import Record, is_large, joined, object_name, parts
from jumpseat.errors import OutcomeUnknownError, StoreError
from jumpseat.store.session.waiters import Waiters
from jumpseat_protocol.events import Event

log = logging.getLogger(__name__)

MOST_BATCH_BYTES: Final = 256 << 10
"""Events are joined in one message up to this size."""
FULL_S: Final = 1.0
"""Time before a message that NATS has refused, because it has no space, is tried again."""
_LOST: Final = "another replica has taken over the session"

E = TypeVar("E", bound=BaseException)
Announcement: TypeAlias = Callable[[], None]


class Response(Struct):
    """The response to a request, with its place among the announcements. ``fail`` takes its place at a loss."""

    succeed: Announcement
    fail: Announcement
    given: bool = False

    def __call__(self) -> None:
        if not self.given:
            self.given = True
            self.succeed()

    def give_up(self) -> None:
        """Fail, unless the response was given."""
        if not self.given:
            self.given = True
            self.fail()


class _Work(Struct, frozen=True):
    """Something else to be done in the order of the changes."""

    do: Callable[[], Coroutine[Any, Any, None]]


class Lease:
    """The right of this replica to write the records of a session, until ``on_lost`` is called or it ends.

    ``epoch`` is larger than that of all owners before, ``seq`` the sequence of the session's last message.
    ``on_append`` gets the duration of each append, in seconds.
    """

    def __init__(
        self,
        stream: JetStream,
        tasks: TaskGroup,
        session_id: str,
        epoch: int,
        seq: int,
        on_append: Callable[[float], None] = lambda _s: None,
    ) -> None:
        self.session_id = session_id
        self.epoch = epoch
        self.seq = seq
        self.objects: dict[str, str] = {}
        """The objects of large files, by the names of the files."""
        self.ends = RunEnds()
        """The ends of the session's runs."""
        self.first_place: str | None = None
        """The id of the last stored event, or end of a run, at the time of the claim."""
        self.lost = False
        self.ended = False
        self.interrupted = False
        """True if the previous owner left the session open, and its run is not completed yet."""
        self.released = anyio.Event()
        """Set when the session is given up."""
        self.on_lost: Callable[[], None] = lambda: None
        self._stream = stream
        self._tasks = tasks
        self._on_append = on_append
        self._subject = stream.names.log(session_id)
        self._thread = threading.get_ident()
        self._queue: deque[Record | _Work | Announcement] = deque()
        self._taken = 0
        self._messages = 0
        self._waiters = Waiters()
        self._answers: dict[str, Response] = {}
        self._running = False
        self._began_s: float | None = None
        self._failure: StoreError | None = None

    # --- what the session sees ------------------------------------------------------------------------------------

    def store(self, record: Record) -> None:
        """Queue a change. May be called from threads.

        Raises:
            StoreError: this replica no longer owns the session.
        """
        if self.lost or self.ended:
            raise StoreError(_LOST if self.lost else "the session is closed")
        self._add(record)

    def keep(self, event: Event) -> None:
        """Store the end of a run, for clients that miss its announcement because the session moves."""
        if not self.lost and not self.ended:
            self._add(self.ends.add(event))

    def do(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Queue work that is done between the changes before and after. May be called from threads."""
        if not self.lost and not self.ended:
            self._add(_Work(work))

    def _add(self, item: Record | _Work) -> None:
        self._queue.append(item)
        if threading.get_ident() == self._thread:
            self._start()
        else:
            anyio.from_thread.run_sync(self._start)

    def announce(self, announcement: Announcement) -> None:
        """Call ``announcement`` when everything that was queued before is stored; at once if it is already.

        Nothing is announced after the loss of the session, or behind its last change.
        """
        if self.lost or (self.ended and not self._queue and not self._running):
            return
        if self._queue or self._running:
            self._queue.append(announcement)
        else:
            announcement()

    @property
    def settled(self) -> bool:
        """Return whether everything is stored and announced, and this replica owns the session."""
        return not (self._queue or self._running or self.lost)

    def respond(self, response: Response) -> None:
        """Give a response when everything that was queued before is stored; let it fail if that cannot be."""
        if self.lost:
            response.give_up()
        else:
            self.announce(response)

    def respond_with_result(self, call_id: str, response: Response) -> None:
        """Give the response to the answer of a tool call when the result of the call is stored.

        A client that has got the response may rely on it: another replica will not ask for the call again.
        """
        if self.lost or self.ended:
            response.give_up()
        else:
            self._answers[call_id] = response

    def note_result(self, call_id: str) -> None:
        """Note that the result of a tool call is queued."""
        if (response := self._answers.pop(call_id, None)) is not None:
            self.respond(response)

    def give_up_responses(self) -> None:
        """Let the responses fail that wait, and what else waits for changes: NATS cannot be reached."""
        self._waiters.wake(self._taken, OutcomeUnknownError("the change"))
        self._give_up_answers()
        for item in list(self._queue):
            if isinstance(item, Response):
                item.give_up()

    async def wait(self) -> None:
        """Wait until everything that was queued before is stored.

        Raises:
            StoreError: the session is lost, or NATS refuses to store more.
        """
        if self.lost:
            raise StoreError(_LOST)
        if not self._queue and not self._running:
            return
        await self._waiters.wait(self._taken + len(self._queue))

    async def wait_ended(self) -> None:
        """Wait until everything is stored, for as long as NATS takes, or the session is lost."""
        while not self.lost and (self._queue or self._running):
            try:
                await self.wait()
            except StoreError:
                await anyio.sleep(FULL_S)

    @property
    def stalled_s(self) -> float:
        """Return for how long the oldest change has been waiting for NATS, in seconds."""
        return 0.0 if self._began_s is None else time.monotonic() - self._began_s

    def lose(self) -> None:
        """Give the session up at once: another replica has it."""
        if self.lost:
            return
        self.lost = True
        self._waiters.wake(self._taken, StoreError(_LOST))
        self.give_up_responses()
        self._queue.clear()
        self.on_lost()

    def end(self) -> None:
        """Accept no more changes."""
        self.ended = True
        self._give_up_answers()

    def _give_up_answers(self) -> None:
        answers, self._answers = self._answers, {}
        for response in answers.values():
            response.give_up()

    # --- storing --------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if not self._running and not self.lost:
            self._running = True
            self._tasks.start_soon(self._run)

    async def _run(self) -> None:
        try:
            # What a turn of the event loop brings goes together.
            while self._queue and not self.lost:
                item = self._queue[0]
                if not isinstance(item, Record | _Work):
                    self._finish(0)
                    continue
                self._began_s = self._began_s or time.monotonic()
                records, work, count = self._next()
                try:
                    await self._store_all(records, work)
                except* WrongSequenceError as group:
                    self._handle_other(group)
                except* StoreError as group:
                    self._fail(_first(group))
                    count = 0
                if self.lost:
                    return
                if not count:
                    await anyio.sleep(FULL_S)
                    continue
                self._failure = self._began_s = None
                self._finish(count)
        finally:
            self._running = False
            self._began_s = None
            if self._queue:
                self._waiters.wake(self._taken, StoreError("the server is ending"))

    def _next(self) -> tuple[list[Record], list[_Work], int]:
        """Return the next changes that fit into a message, the work among them, and the number of items of both."""
        records: list[Record] = []
        work: list[_Work] = []
        size = last = 0
        for count, item in enumerate(self._queue, 1):
            if isinstance(item, _Work):
                work.append(item)
                last = count
            elif isinstance(item, Record):
                size += len(item.data)
                if records and (size > MOST_BATCH_BYTES or is_large(item) or is_large(records[0])):
                    break
                records.append(item)
                last = count
        return records, work, last

    async def _store_all(self, records: list[Record], work: list[_Work]) -> None:
        """Store changes in one message, and do the work among them meanwhile."""
        if not work:
            # Most appends: two tasks would take a tenth of the time of NATS.
            await self._store(joined(records))
        else:
            async with anyio.create_task_group() as tasks:
                for each in work:
                    tasks.start_soon(self._do, each)
                if records:
                    tasks.start_soon(self._store, joined(records))
        for record in records:
            if record.kind in ("file", "remove") and not is_large(record):
                await self._replace_object(record.name, None)

    async def _do(self, work: _Work) -> None:
        """Do work until it succeeds: a failure must not let the changes beside it be stored again."""
        while not self.lost:
            try:
                await work.do()
            except StoreError as error:
                log.info("session %s: %s", self.session_id, error)
                await anyio.sleep(FULL_S)
            else:
                return

    async def _store(self, record: Record) -> None:
        name = record.name
        if is_large(record):
            # An object of its own for each version: a reader of the older record finds what it names.
            stored = object_name(self.session_id, self.epoch, self.seq, name)
            await self._stream.put_object(stored, record.data)
            record = Record("object", stored.encode(), name)
        for number, (part, more) in enumerate(parts(record.data, self._stream.most_bytes)):
            self._messages += 1
            message_id = f"{self.session_id}:{self.epoch}:{self._messages}"
            began = time.perf_counter()
            self.seq = await self._stream.append(
                self._subject, part, message_id, self.seq, record.headers(self.epoch, number, more=more)
            )
            self._on_append(time.perf_counter() - began)
            log.debug("session %s: message %s is stored as %d", self.session_id, message_id, self.seq)
        if record.kind == "object":
            await self._replace_object(name, record.data.decode())

    async def _replace_object(self, name: str, stored: str | None) -> None:
        """Remove the object that a large file had before."""
        before = self.objects.pop(name, None)
        if stored is not None:
            self.objects[name] = stored
        if before is not None:
            await self._stream.delete_object(before)

    def _finish(self, count: int) -> None:
        """Remove the first items, which are stored, and make the announcements among them and behind them."""
        announced: list[Announcement] = []
        for _ in range(count):
            item = self._queue.popleft()
            if not isinstance(item, Record | _Work):
                announced.append(item)
        self._taken += count
        while self._queue and not isinstance(next_item := self._queue[0], Record | _Work):
            self._queue.popleft()
            self._taken += 1
            announced.append(next_item)
        for announcement in announced:
            announcement()
        self._waiters.wake(self._taken)

    def _handle_other(self, group: BaseExceptionGroup[WrongSequenceError]) -> None:
        last = _first(group).last
        if last is not None and last.seq > self.seq:
            epoch = last.headers.get("Jumpseat-Epoch")
            log.warning(
                "session %s is lost to another replica (epoch %s after %d)", self.session_id, epoch, self.epoch
            )
        else:
            log.error("session %s is lost: its message %d was removed from NATS", self.session_id, self.seq)
        self.lose()

    def _fail(self, error: StoreError) -> None:
        if self._failure is None:
            log.error("session %s cannot be stored: %s", self.session_id, error)
        self._failure = error
        self._waiters.wake(self._taken, error)


def _first(group: BaseExceptionGroup[E]) -> E:
    """Return the first exception of a group of one kind."""
    error = group.exceptions[0]
    return _first(cast("BaseExceptionGroup[E]", error)) if isinstance(error, BaseExceptionGroup) else error
