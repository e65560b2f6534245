"""The sessions that this replica owns: claiming, loading and giving them up."""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import orjson
from anyio.abc import TaskGroup
from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.session.session import Session
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.replicas.membership import Membership
from jumpseat.cluster.sessions.claims import Claims, OwnedElsewhereError
from jumpseat.cluster.sessions.index import Index, IndexEntry
from jumpseat.cluster.sessions.lease import Lease
from jumpseat.cluster.sessions.missed_events import ENDS, RunEnds, last_id
from jumpseat.cluster.sessions.records import Content, records_of, write_folder
from jumpseat.errors import InvalidRequestError, SessionInUseError, SessionNotFoundError
from jumpseat.sessions.registry import SessionRegistry
from jumpseat.store.session.daily_usage import days_of, encode_days
from jumpseat.store.session.sessions import SESSIONS, SessionFolder, session_path
from jumpseat.system.file_trees import delete_folder

log = logging.getLogger(__name__)

RELEASE_S: Final = 5.0
"""Time in which the last changes of a session must be stored when the session is given up."""


class Counters(Struct):
    """Counters of the owner of sessions. ``append_s`` holds the durations of the latest appends."""

    appends: int = 0
    takeovers: int = 0
    lost: int = 0
    append_s: list[float] = field(default_factory=list[float])

    def count_append(self, seconds: float) -> None:
        """Count an append."""
        self.appends += 1
        self.append_s.append(seconds)
        if len(self.append_s) > 2000:
            del self.append_s[:1000]


class Ownerships:
    """The leases of this replica. ``home`` has the working copies of its sessions.

    ``on_lost`` is called with the id of a session that another replica has taken.
    """

    def __init__(
        self,
        stream: JetStream,
        membership: Membership,
        index: Index,
        home: Path,
        tasks: TaskGroup,
        on_lost: Callable[[str], None],
    ) -> None:
        self.counters = Counters()
        self.registry: SessionRegistry | None = None
        """The live sessions; set when the server is composed."""
        self._stream = stream
        self._membership = membership
        self.index = index
        self._claims = Claims(stream, membership, index)
        self._copies = home / SESSIONS
        self._tasks = tasks
        self._on_lost = on_lost
        self._leases: dict[str, Lease] = {}
        self._hosts: dict[str, str | None] = {}
        # Those of the sessions that are in the file systems of their clients.
        self._by_client: set[str] = set()
        self._locks: dict[str, tuple[anyio.Lock, int]] = {}
        self._openings: Counter[str] = Counter()

    def session(self, session_id: str) -> Session | None:
        """Return a session that is live here."""
        return self.registry.get_live(session_id) if self.registry is not None else None

    def lease(self, session_id: str) -> Lease | None:
        """Return the lease of a session; ``None`` if this replica does not own it."""
        lease = self._leases.get(session_id)
        # A session that is being given up is opened again afterwards.
        return None if lease is not None and lease.ended else lease

    def owned(self) -> list[str]:
        """Return the sessions that this replica owns."""
        return list(self._leases)

    @property
    def stalled_s(self) -> float:
        """Return for how long the oldest change of any session has been waiting for NATS, in seconds."""
        return max((lease.stalled_s for lease in self._leases.values()), default=0.0)

    def give_up_stalled(self, patience_s: float) -> None:
        """Let the responses fail that have waited for NATS for longer than ``patience_s``."""
        for lease in list(self._leases.values()):
            if not lease.ended and lease.stalled_s > patience_s:
                lease.give_up_responses()

    @asynccontextmanager
    async def locked(self, session_id: str) -> AsyncGenerator[None]:
        """Exclude other tasks of this replica from claiming, loading or giving up a session in the block."""
        lock, users = self._locks.get(session_id, (anyio.Lock(), 0))
        self._locks[session_id] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks[session_id]
            if users == 1:
                del self._locks[session_id]
            else:
                self._locks[session_id] = lock, users - 1

    @contextmanager
    def opening(self, session_id: str) -> Generator[None]:
        """Keep a session of this replica until the end of the block, though it is not live yet."""
        self._openings[session_id] += 1
        try:
            yield
        finally:
            self._openings[session_id] -= 1
            if not self._openings[session_id]:
                del self._openings[session_id]

    async def settle(self, session_id: str) -> None:
        """Wait until a session is given up that is being closed here, or was lost."""
        while (lease := self.lease(session_id)) is not None:
            if lease.lost:
                await lease.released.wait()
                continue
            assert self.registry is not None, "set when the server is composed"
            await self.registry.find_live(session_id)
            if self.lease(session_id) is lease and not lease.lost:
                return

    # --- who owns a session ---------------------------------------------------------------------------------------

    async def owner(self, session_id: str) -> str | None:
        """Return the living replica that owns a session; ``None`` if none does."""
        lease = self.lease(session_id)
        if lease is not None and not lease.lost:
            return self._membership.id
        return await self._claims.owner(session_id)

    async def owned_elsewhere(self) -> set[str]:
        """Return the sessions that other replicas own.

        Raises:
            StoreError: NATS does not answer.
        """
        return await self._claims.elsewhere()

    async def check(self) -> None:
        """Find the sessions that others have taken while this replica was cut off, and give them up."""
        for session_id, lease in list(self._leases.items()):
            is_owned = await self._claims.stands(session_id, lease.epoch)
            if not is_owned and self._leases.get(session_id) is lease:
                lease.lose()

    # --- claiming -------------------------------------------------------------------------------------------------

    async def claim_new(self, session_id: str, host: str | None, *, check: bool, by_client: bool = False) -> None:
        """Make this replica the owner of a new session. With ``check``, the id may be taken.

        With ``by_client``, the client stores the session itself.

        Raises:
            InvalidRequestError: the id is taken.
        """
        if check and await self._stream.last(self._stream.names.log(session_id)) is not None:
            raise InvalidRequestError(f"session {session_id!r} already exists")
        try:
            epoch, _ = await self._claims.acquire(session_id, is_new=True)
        except OwnedElsewhereError:
            raise InvalidRequestError(f"session {session_id!r} already exists") from None
        self._hosts[session_id] = host
        self._begin(session_id, epoch)
        if by_client:
            self._by_client.add(session_id)

    async def claim(self, session_id: str, *, by_client: bool = False) -> bool:
        """Make this replica the owner of a stored session, and make its working copy; the caller holds the lock.

        With ``by_client``, a session that is not stored here may be stored by the client.

        Returns:
            Whether the owner before has left the session open: it was killed, or cut off.

        Raises:
            OwnedElsewhereError: another living replica owns the session.
            SessionNotFoundError: there is no such session.
        """
        if (lease := self._leases.get(session_id)) is not None and not lease.lost:
            return lease.interrupted
        epoch, taken = await self._claims.acquire(session_id)
        try:
            content = await self._claims.record(session_id, epoch)
            if not content.exists and not by_client:
                raise SessionNotFoundError(session_id)
            entry = self.index.get(session_id)
            self._hosts[session_id] = entry.host if entry is not None else None
            if content.exists:
                await self._fill(session_id, content)
            else:
                self._by_client.add(session_id)
        except BaseException as error:
            # As long as this replica is entered, the next claim knows that the session was left open.
            if not taken or isinstance(error, SessionNotFoundError):
                with anyio.CancelScope(shield=True):
                    await self._claims.give_up(session_id, epoch)
            raise
        lease = self._begin(session_id, epoch, content)
        if taken:
            lease.interrupted = True
            self.counters.takeovers += 1
        return taken

    async def copy(self, session_id: str, target: Path | None = None) -> bool:
        """Make a copy of a session that no replica has open, as a working copy or in another folder.

        Returns:
            Whether there is such a session.
        """
        last = await self._claims.last(session_id)
        if last is None:
            return False
        content = await self._claims.read(session_id, last.seq)
        if content.exists:
            await self._fill(session_id, content, target)
        return content.exists

    async def drop_copy(self, session_id: str) -> None:
        """Remove the working copy of a session, unless this replica owns it."""
        if session_id not in self._leases:
            await anyio.to_thread.run_sync(delete_folder, session_path(self._copies, session_id))

    async def _fill(self, session_id: str, content: Content, target: Path | None = None) -> None:
        objects = {name: await self._stream.get_object(stored) for name, stored in content.objects.items()}
        folder = target if target is not None else session_path(self._copies, session_id)
        # Only owners need the ends of runs, and keep them in memory.
        files = {name: data for name, data in content.files.items() if name != ENDS}
        await anyio.to_thread.run_sync(write_folder, folder, replace(content, files=files), objects)

    async def store_folder(self, session_id: str, folder: SessionFolder, host: str | None = None) -> None:
        """Store a session that exists in its folder only, and give it up. ``host`` is the host that it needs.

        Raises:
            StoreError: it cannot be stored.
            InvalidRequestError: there is a session with this id.
        """
        async with self.locked(session_id):
            await self.claim_new(session_id, host, check=True)
        lease = self._leases[session_id]
        for record in await anyio.to_thread.run_sync(records_of, folder.path):
            lease.store(record)
        self.changed(folder)
        try:
            await lease.wait()
        finally:
            await self.release(session_id)

    def _begin(self, session_id: str, epoch: int, content: Content | None = None) -> Lease:
        seq = content.seq if content is not None else 0
        lease = self._leases[session_id] = Lease(
            self._stream, self._tasks, session_id, epoch, seq, self.counters.count_append
        )
        if content is not None:
            lease.objects.update(content.objects)
            lease.ends = RunEnds(content.files.get(ENDS, b""))
            lease.first_place = last_id(content.events, lease.ends)
        lease.on_lost = partial(self._handle_loss, session_id, lease)
        return lease

    def _handle_loss(self, session_id: str, lease: Lease) -> None:
        if self._leases.get(session_id) is lease:
            self.counters.lost += 1
            self._on_lost(session_id)

    # --- giving up ------------------------------------------------------------------------------------------------

    def release_soon(self, session_id: str) -> None:
        """Give a session up in the background; see :meth:`release`."""
        if session_id in self._leases:
            self._tasks.start_soon(self.release, session_id)

    def release_closed(self) -> None:
        """Give up the sessions of clients' file systems that were closed: they have no folder that does so."""
        for session_id in self._by_client:
            if self.session(session_id) is None and not self._openings[session_id]:
                self.release_soon(session_id)

    async def release(self, session_id: str, by_s: float = math.inf) -> None:
        """Give up a closed session and remove its working copy.

        Changes that are not stored ``by_s``, or after :data:`RELEASE_S`, are lost.
        """
        async with self.locked(session_id):
            lease = self._leases.get(session_id)
            if lease is None:
                return
            if not lease.lost and (self._openings[session_id] or self.session(session_id) is not None):
                # Another client has opened it since.
                return
            lease.end()
            stored = lease.lost
            by_s = min(by_s, anyio.current_time() + RELEASE_S)
            with anyio.CancelScope(deadline=by_s, shield=True):
                if not lease.lost:
                    await lease.wait_ended()
                    stored = True
                    if not lease.interrupted:
                        await self._claims.give_up(session_id, lease.epoch)
            self._leases.pop(session_id, None)
            if not stored:
                log.error("session %s: given up before its last changes were stored", session_id)
                # The next owner may be this replica: nothing may be announced beside it.
                lease.lose()
            await self._forget(session_id, lease)

    async def remove(self, session_id: str) -> None:
        """Remove everything that is stored of a session that this replica owns, or no replica.

        Raises:
            SessionInUseError: another replica owns the session.
        """
        async with self.locked(session_id):
            try:
                await self.claim(session_id)
            except OwnedElsewhereError:
                raise SessionInUseError(session_id, None, "another replica has it open") from None
            except SessionNotFoundError:
                await self.index.remove(session_id, f"{session_id}:{uuid.uuid4().hex}")
                return
            lease = self._leases[session_id]
            lease.end()
            with anyio.move_on_after(RELEASE_S):
                await lease.wait_ended()
            content = await self._claims.read(session_id, lease.seq) if lease.seq else Content()
            await self.index.remove(session_id, f"{session_id}:{lease.epoch}:removed")
            await self._stream.purge(session_id)
            for stored in content.objects.values():
                await self._stream.delete_object(stored)
            await self._claims.give_up(session_id, lease.epoch)
            await self._forget(session_id, lease)

    async def _forget(self, session_id: str, lease: Lease) -> None:
        self._leases.pop(session_id, None)
        self._hosts.pop(session_id, None)
        self._by_client.discard(session_id)
        lease.released.set()
        await self.drop_copy(session_id)

    # --- lists ----------------------------------------------------------------------------------------------------

    def changed(self, folder: SessionFolder) -> None:
        """Update the session's entry in lists."""
        lease = self._leases.get(folder.session_id)
        if lease is not None:
            lease.do(partial(self._put_entry, folder))

    async def _put_entry(self, folder: SessionFolder) -> None:
        workspace = folder.workspace or folder.read_workspace()
        changed_s = folder.log.changed_s() or time.time()
        listed = folder.listed(workspace, changed_s) if workspace is not None else None
        await self.index.put(
            IndexEntry(
                folder.session_id,
                int(changed_s * 1e9),
                workspace.created_by if workspace is not None else None,
                self._hosts.get(folder.session_id),
                orjson.dumps(listed) if listed is not None else None,
                workspace.cwd if workspace is not None else None,
                await anyio.to_thread.run_sync(folder.size_bytes),
                workspace is not None and workspace.user_named,
                encode_days(days_of(workspace)) if workspace is not None and workspace.usage else None,
            )
        )
