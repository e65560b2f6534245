"""Claims of sessions, in NATS: who owns a session, and what is stored of it when a replica takes it over.

The bucket of owners names the owner of each open session. A claim has won when it is in there with a new revision,
the epoch, and in the records of the session: from then on the owner before is refused at its next append.
"""

from __future__ import annotations

import logging
import uuid
from typing import Any

from jumpseat.cluster.nats.connection import Stored, WrongSequenceError
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.nats.names import session_of, token_of
from jumpseat.cluster.replicas.membership import Membership
from jumpseat.cluster.sessions.index import Index
from jumpseat.cluster.sessions.records import EPOCH, Content, Folder, Record
from jumpseat.errors import StoreUnavailableError

log = logging.getLogger(__name__)


class OwnedElsewhereError(Exception):
    """Another living replica owns the session."""

    def __init__(self, replica: str) -> None:
        super().__init__(f"replica {replica} owns the session")
        self.replica = replica


class Claims:
    """Reads the claims of all replicas, and makes those of this one.

    Each method raises :class:`StoreUnavailableError` when NATS does not answer.
    """

    def __init__(self, stream: JetStream, membership: Membership, index: Index) -> None:
        self._stream = stream
        self._membership = membership
        self._index = index

    async def owner(self, session_id: str) -> str | None:
        """Return the other living replica that owns a session; ``None`` if none does."""
        _, owner = await self._stream.value(self._stream.names.owners, token_of(session_id))
        replica = self._other(owner)
        if replica is None or await self._membership.has_gone(replica):
            return None
        return replica

    async def elsewhere(self) -> set[str]:
        """Return the sessions that other living replicas own."""
        owners = await self._stream.values(self._stream.names.owners)
        return {
            session_of(key)
            for key, owner in owners.items()
            if (replica := self._other(owner)) is not None and self._membership.alive(replica)
        }

    def _other(self, owner: dict[str, Any] | None) -> str | None:
        """Return the replica that an entry names, if that is another one."""
        replica = owner.get("replica") if owner is not None else None
        return replica if isinstance(replica, str) and replica != self._membership.id else None

    async def stands(self, session_id: str, epoch: int) -> bool:
        """Return whether this replica still is the owner that it became with ``epoch``."""
        return await self._stream.has_revision(self._stream.names.owners, token_of(session_id), epoch)

    async def acquire(self, session_id: str, *, is_new: bool = False) -> tuple[int, bool]:
        """Enter this replica as the owner; return the epoch, and whether another entry was replaced.

        ``is_new`` says that there probably is no entry.

        Raises:
            OwnedElsewhereError: another living replica owns the session.
        """
        key, bucket = token_of(session_id), self._stream.names.owners
        value = {"replica": self._membership.id, "host": self._membership.host}
        revision: int | None = 0 if is_new else None
        while True:
            owner = None
            if revision is None:
                revision, owner = await self._stream.value(bucket, key)
            other = self._other(owner)
            if other is not None and not await self._membership.has_gone(other):
                raise OwnedElsewhereError(other)
            try:
                epoch = await self._stream.set_value(bucket, key, value, revision, uuid.uuid4().hex)
            except WrongSequenceError:
                revision = None
                continue
            if other is not None:
                self._membership.note_taken(other)
            return epoch, owner is not None

    async def record(self, session_id: str, epoch: int) -> Content:
        """Write the claim to the session's records, and return what is there, the claim included.

        Raises:
            OwnedElsewhereError: another replica has claimed the session since.
        """
        subject, replica = self._stream.names.log(session_id), self._membership.id
        record = Record("claim", replica.encode())
        last = await self.last(session_id)
        while True:
            if last is None:
                return Content()
            if int(last.headers.get(EPOCH) or 0) > epoch:
                raise OwnedElsewhereError(last.data.decode("utf-8", "replace"))
            try:
                seq = await self._stream.append(
                    subject,
                    record.data,
                    f"{session_id}:{epoch}:claim",
                    last.seq,
                    record.headers(epoch),
                    self._stream.patience_s,
                )
            except WrongSequenceError as error:
                last = error.last
                continue
            return await self.read(session_id, seq)

    async def last(self, session_id: str) -> Stored | None:
        """Return the last record of a session; ``None`` if nothing is stored of it.

        A lagging server of NATS may have no records of a listed session, so it is asked again for a while.
        """
        pause = self._stream.pause()
        while True:
            last = await self._stream.last(self._stream.names.log(session_id))
            if last is not None or self._index.get(session_id) is None:
                return last
            log.info("NATS has no records of session %s, which is listed", session_id)
            try:
                await pause()
            except StoreUnavailableError:
                # The replica that listed the session may have been killed before it stored anything.
                return await self._stream.last(self._stream.names.log(session_id))

    async def read(self, session_id: str, seq: int) -> Content:
        """Return the content of a session after its record with the sequence ``seq``."""
        folder = Folder()
        async for message in self._stream.read(self._stream.names.log(session_id), seq):
            folder.add(message)
        return folder.content

    async def give_up(self, session_id: str, epoch: int) -> None:
        """Remove this replica from the bucket of owners, unless another has taken its place."""
        key, bucket = token_of(session_id), self._stream.names.owners
        try:
            await self._stream.set_value(bucket, key, None, epoch, f"{session_id}:{epoch}:left")
        except WrongSequenceError:
            log.info("session %s has another owner already", session_id)
