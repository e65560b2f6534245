"""Work that one replica does for the cluster: removing expired sessions, and large files without a record.

A large file is stored before its record, and its name has the sequence of the message before that record. If the
next message is another one, or none follows and the session has no owner, the replica died before it stored the
record.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from typing import Final

import anyio

from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.nats.names import token_of
from jumpseat.cluster.replicas.membership import Membership
from jumpseat.cluster.sessions.ownership import Ownerships
from jumpseat.cluster.sessions.records import KIND
from jumpseat.errors import JumpseatError, StoreError

log = logging.getLogger(__name__)

RETENTION_CHECK_S: Final = 600.0
CHECK_S: Final = 3600.0
AGE_S: Final = 3600.0
"""Age of a file below which its record may still follow: appends wait for NATS, and clocks differ."""
_PLACE: Final = re.compile(r"/(\d+)-(\d+)-")


async def remove_expired_for_ever(ownerships: Ownerships, membership: Membership, retention_s: float) -> None:
    """Remove the sessions that have not changed for ``retention_s``, while this replica is the first one."""
    while True:
        await anyio.sleep(min(RETENTION_CHECK_S, retention_s / 10))
        if membership.is_first:
            try:
                await _remove_expired(ownerships, retention_s)
            except StoreError as error:
                # The replica may be leaving.
                log.info("expired sessions are looked for later: %s", error)


async def _remove_expired(ownerships: Ownerships, retention_s: float) -> None:
    """Remove the sessions that have not changed for ``retention_s``.

    Raises:
        StoreUnavailableError: the list of sessions is closed.
    """
    for entry in ownerships.index.all(int((time.time() - retention_s) * 1e9)):
        try:
            if await ownerships.owner(entry.session_id) is None:
                await ownerships.remove(entry.session_id)
                log.info("session %s is removed: it is older than store.retention_days", entry.session_id)
        except JumpseatError as error:
            log.warning("session %s cannot be removed: %s", entry.session_id, error)


async def remove_orphans_for_ever(stream: JetStream, membership: Membership) -> None:
    """Remove large files without a record, while this replica is the first one."""
    while True:
        await anyio.sleep(CHECK_S)
        if membership.is_first:
            try:
                await remove_orphans(stream)
            except StoreError as error:
                log.info("large files that no session names are looked for later: %s", error)


async def remove_orphans(stream: JetStream, age_s: float = AGE_S) -> list[str]:
    """Remove the large files that are older than ``age_s`` and that no record names; return their names.

    Also removes the parts of incomplete files.

    Raises:
        StoreUnavailableError: NATS does not answer.
    """
    before_s = time.time() - age_s
    removed: list[str] = []
    files = await stream.large_files()
    for file in files:
        if not file.deleted and file.stored_s <= before_s and await _is_orphan(stream, file.name):
            await stream.delete_object(file.name)
            removed.append(file.name)
    removed += await stream.remove_parts({file.parts for file in files}, before_s)
    if removed:
        log.warning("removed %d large files that no session names", len(removed))
    return removed


def _places(name: str) -> Iterator[tuple[str, int]]:
    """Yield the sessions and sequences that the name of an object may contain: ids of sessions may have slashes."""
    for match in _PLACE.finditer(name):
        yield name[: match.start()], int(match[2])


async def _is_orphan(stream: JetStream, name: str) -> bool:
    places = list(_places(name))
    for session_id, seq in places:
        record = await stream.after(stream.names.log(session_id), seq)
        if record is None:
            _, owner = await stream.value(stream.names.owners, token_of(session_id))
            if owner is not None:
                return False
        elif record.headers.get(KIND) == "object" and record.data == name.encode():
            return False
    return bool(places)
