"""Removes large files from the object store that no record names: their replica died before it stored the record.

A large file is stored before its record, which states the sequence in the object's name as the one before. So the
message behind that sequence is the record, or there is none and never will be, unless the session has an owner.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import Final

import anyio

from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.nats.names import token_of
from jumpseat.cluster.sessions.records import KIND
from jumpseat.errors import StoreError

log = logging.getLogger(__name__)

CHECK_S: Final = 3600.0
AGE_S: Final = 3600.0
"""Age of a file below which its record may still follow: appends wait for NATS, and clocks differ."""
_PLACE: Final = re.compile(r"/(\d+)-(\d+)-")


def object_name(session_id: str, epoch: int, seq: int, file: str) -> str:
    """Return the name of the object with a large file, whose record follows the message ``seq`` of the session."""
    return f"{session_id}/{epoch}-{seq}-{file}"


async def remove_orphans_for_ever(stream: JetStream, is_chosen: Callable[[], bool]) -> None:
    """Remove orphans again and again, while ``is_chosen``: one replica does it for all."""
    while True:
        await anyio.sleep(CHECK_S)
        if is_chosen():
            try:
                await remove_orphans(stream)
            except StoreError as error:
                log.info("large files that no session names are looked for later: %s", error)


async def remove_orphans(stream: JetStream, age_s: float = AGE_S) -> list[str]:
    """Remove the large files that are older than ``age_s`` and that no record names; return their names.

    Parts of files that were never complete are removed, too.

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
    """Yield the sessions and sequences that the name of an object may tell: ids of sessions may have slashes."""
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
