"""The replicas of a cluster: which there are, and which are gone.

Each replica writes a heartbeat to a bucket, one for all of its sessions. A replica is taken for dead when nothing
was heard of it for some time, neither a heartbeat nor the answer to a ping; or at once when nobody listens to its
subject any more: its connection to NATS is gone.
A replica that was taken for dead by mistake is refused at its next append, and learns of it from the heartbeats of
those that have taken its sessions.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.cluster.nats.buckets import SKIPPED, skipping
from jumpseat.cluster.nats.connection import NoReplyError
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.nats.settings import ClusterSettings
from jumpseat.cluster.replicas.handshake import SPOKEN, Versions, decode_versions
from jumpseat.errors import ReplicaIncompatibleError, StoreError
from jumpseat_protocol.version import __version__

log = logging.getLogger(__name__)

BEAT_SHARE: Final = 1 / 4
"""Time between heartbeats, as a share of the time that requests wait for NATS."""
DEAD_SHARE: Final = 5 / 4
"""Time without a sign of a replica, likewise: during an election of NATS, no heartbeat can be written."""
CUT_OFF_SHARE: Final = 5 / 6
"""A replica whose own heartbeat is older serves no requests about sessions, because others may have taken them."""
PING_S: Final = 0.5
GONE_PINGS: Final = 4
"""Pings without a listener after which a replica is gone: it may be connecting to another server of NATS."""
MOST_TAKEN: Final = 64
"""The number of replicas that a heartbeat names because sessions of them were taken."""


class Member(Struct, frozen=True):
    """A replica as its last heartbeat describes it, and when it was last heard of, by the monotonic clock."""

    id: str
    host: str
    draining: bool
    relay: Versions
    beat: dict[str, Any]
    seen_s: float

    @property
    def fits(self) -> bool:
        """Return whether this replica and that one can relay clients to each other."""
        return SPOKEN.fits(self.relay)


class Membership:
    """This replica and the others. ``describe`` returns what a heartbeat tells besides."""

    def __init__(
        self, stream: JetStream, settings: ClusterSettings, tasks: TaskGroup, describe: Callable[[], dict[str, Any]]
    ) -> None:
        self.id = uuid.uuid4().hex[:12]
        self.host = settings.host
        self._beats_s = settings.patience_s * BEAT_SHARE
        self._dead_s = settings.patience_s * DEAD_SHARE
        self._cut_off_s = settings.patience_s * CUT_OFF_SHARE
        self.draining = False
        self.doubts = 0
        """The number of times that others may have taken sessions of this replica."""
        self._settled = 0
        self._certain = anyio.Event()
        self._certain.set()
        self.on_gone: list[Callable[[str], None]] = []
        self._stream = stream
        self._tasks = tasks
        self._describe = describe
        self._replicas: dict[str, Member] = {}
        self._gone: set[str] = set()
        self._watched: dict[str, int] = {}
        # How often this replica has taken sessions from others, and what others have told of that last.
        self._taken: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._beat_s = time.monotonic()
        self._known = anyio.Event()

    async def start(self) -> None:
        """Write the first heartbeat, and begin to watch those of others."""
        await self._stream.listen(self._stream.names.to(self.id, "ping"), self._handle_ping)
        self._stream.reconnects.append(self._doubt)
        await self.beat()
        self._tasks.start_soon(self._beat_for_ever)
        self._tasks.start_soon(self._watch)
        self._tasks.start_soon(self._ping)
        await self._known.wait()

    # --- what others see ------------------------------------------------------------------------------------------

    async def beat(self) -> None:
        """Write a heartbeat now. A failure is only logged."""
        beat = {
            "id": self.id,
            "host": self.host,
            "pid": os.getpid(),
            "version": __version__,
            "relay": SPOKEN.encode(),
            "draining": self.draining,
            "timeS": time.time(),
            "nats": self._stream.server,
            "taken": self._taken,
            **self._describe(),
        }
        began = time.monotonic()
        if self.cut_off:
            self._doubt()
        try:
            await self._stream.put(self._stream.names.replicas, self.id, beat, self._beats_s)
        except StoreError as error:
            log.info("no heartbeat: %s", error)
        else:
            self._beat_s = began

    async def leave(self) -> None:
        """Remove this replica from the list. A failure is only logged."""
        self.draining = True
        try:
            await self._stream.put(self._stream.names.replicas, self.id, {"id": self.id, "left": True})
        except StoreError as error:
            log.info("no last heartbeat: %s", error)

    @property
    def doubtful(self) -> bool:
        """Return whether others may have taken sessions of this replica since it looked."""
        return self.doubts > self._settled

    def settle(self, doubts: int) -> None:
        """Note that this replica has looked at its sessions since so many doubts."""
        self._settled = doubts
        if not self.doubtful:
            self._certain.set()

    async def wait_until_certain(self) -> None:
        """Wait until this replica has looked at its sessions since the last doubt."""
        while self.doubtful:
            await self._certain.wait()

    @property
    def cut_off(self) -> bool:
        """Return whether others may have taken this replica for dead."""
        return time.monotonic() - self._beat_s > self._cut_off_s

    async def _beat_for_ever(self) -> None:
        while True:
            is_late = time.monotonic() - self._beat_s > self._beats_s
            await anyio.sleep(PING_S if is_late else self._beats_s)
            await self.beat()

    def _doubt(self) -> None:
        """Note that this replica was unreachable for a while: others may consider it gone."""
        self.doubts += 1
        if self._certain.is_set():
            self._certain = anyio.Event()

    def note_taken(self, replica: str) -> None:
        """Tell a replica that was held to be gone, with the next heartbeat, that a session of it was taken.

        It may be there all the same: servers of NATS that could not reach each other have kept their clients.
        """
        self._taken[replica] = self._taken.pop(replica, 0) + 1
        if len(self._taken) > MOST_TAKEN:
            del self._taken[next(iter(self._taken))]

    def _handle_ping(self, _subject: str, _data: bytes, reply: str) -> None:
        self._tasks.start_soon(self._stream.send, reply, self.id.encode())

    # --- what this replica sees -----------------------------------------------------------------------------------

    def replicas(self) -> list[Member]:
        """Return the living replicas, this one included."""
        return [replica for replica in self._replicas.values() if self.alive(replica.id)]

    @property
    def is_first(self) -> bool:
        """Return whether this replica does what one of all has to do."""
        return self.id == min((replica.id for replica in self.replicas()), default=self.id)

    def alive(self, replica: str) -> bool:
        """Return whether a replica lives, as far as this one can tell."""
        if replica == self.id:
            return True
        known = self._replicas.get(replica)
        if known is None or replica in self._gone:
            return False
        # Where this replica cannot write either, NATS is at fault.
        return (
            time.monotonic() - known.seen_s <= self._dead_s or time.monotonic() - self._beat_s > 2 * self._beats_s
        )

    def on_host(self, host: str) -> str | None:
        """Return a living replica of a host that takes sessions, or ``None``; best one that fits this one."""
        taking = [replica for replica in self.replicas() if replica.host == host and not replica.draining]
        ranked = sorted(taking, key=lambda one: (not one.fits, one.id != self.id, one.id))
        return ranked[0].id if ranked else None

    def other(self) -> str | None:
        """Return another living replica that takes sessions, or ``None``; best one that fits, and of this host."""
        taking = [replica for replica in self.replicas() if replica.id != self.id and not replica.draining]
        ranked = sorted(taking, key=lambda one: (not one.fits, one.host != self.host, one.id))
        return ranked[0].id if ranked else None

    def check_fits(self, replica: str) -> None:
        """Check that clients can be relayed to a replica, as far as its heartbeat tells.

        Raises:
            ReplicaIncompatibleError: it speaks other versions of the relay protocol only.
        """
        known = self._replicas.get(replica)
        if known is not None and not known.fits:
            version = str(known.beat.get("version", "?"))
            raise ReplicaIncompatibleError(replica, version, str(known.relay), str(SPOKEN))

    async def has_gone(self, replica: str) -> bool:
        """Ask a replica whether it is there; return whether it is gone."""
        if replica in self._gone:
            return True
        # Also one that is not known: it may have begun while this replica was paused.
        for _ in range(GONE_PINGS):
            try:
                await self._stream.ask(self._stream.names.to(replica, "ping"), b"", PING_S)
            except NoReplyError as error:
                if not error.gone:
                    return replica in self._replicas and not self.alive(replica)
            else:
                self._see(replica)
                return False
            await anyio.sleep(PING_S)
        self._lose(replica)
        return True

    def _see(self, replica: str) -> None:
        """Note that a replica has answered: its heartbeats may be late, because NATS watches for them again."""
        if (known := self._replicas.get(replica)) is not None:
            self._replicas[replica] = replace(known, seen_s=time.monotonic())

    def watch_replica(self, replica: str) -> None:
        """Begin to notice at once when a replica is gone; see :attr:`on_gone`. Each call needs one of the next."""
        self._watched[replica] = self._watched.get(replica, 0) + 1

    def unwatch_replica(self, replica: str) -> None:
        """End what one :meth:`watch_replica` has begun."""
        self._watched[replica] -= 1
        if not self._watched[replica]:
            del self._watched[replica]

    async def _watch(self) -> None:
        async for change in self._stream.watch(self._stream.names.replicas):
            if change is None:
                self._known.set()
                continue
            key, beat, _ = change
            if beat is SKIPPED:
                continue
            if beat is None or beat.get("left"):
                self._replicas.pop(key, None)
                self._told.pop(key, None)
                self._lose(key)
                continue
            with skipping(self._stream.names.replicas, key):
                self._note(key, beat)

    def _note(self, replica: str, beat: dict[str, Any]) -> None:
        taken = int(beat.get("taken", {}).get(self.id, 0))
        versions = decode_versions(beat.get("relay"))
        self._gone.discard(replica)
        if taken > self._told.get(replica, 0):
            self._told[replica] = taken
            self._doubt()
        self._replicas[replica] = Member(
            replica, str(beat.get("host")), bool(beat.get("draining")), versions, beat, time.monotonic()
        )

    async def _ping(self) -> None:
        while True:
            await anyio.sleep(PING_S)
            async with anyio.create_task_group() as tasks:
                for replica in list(self._watched):
                    tasks.start_soon(self.has_gone, replica)
            for replica in list(self._watched):
                if not self.alive(replica):
                    self._lose(replica)

    def _lose(self, replica: str) -> None:
        if replica in self._gone:
            return
        self._gone.add(replica)
        if replica != self.id:
            log.warning("replica %s is gone", replica)
            for callback in self.on_gone:
                callback(replica)
