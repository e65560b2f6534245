"""The event log of a session in a virtual file system: ``events.jsonl``, stored shortly after each event."""

from __future__ import annotations

import time
from contextlib import suppress
from io import BytesIO
from typing import IO, Final

import anyio

from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.store.session.event_log import Records, Replay, parse_log, parse_record
from jumpseat.store.session_fs.files import ClientFiles
from jumpseat_protocol.events import Event

FILE: Final = "events.jsonl"
FLUSH_S: Final = 10.0
"""Time that the end of a run waits for a client that stores slowly."""


class ClientEventLog:
    """Implements :class:`jumpseat.store.session.storage.StoredLog`.

    Events are announced before the client has stored them, but the end of a run (``session.idle``) only afterwards,
    or once storing has failed.
    """

    def __init__(self, files: ClientFiles) -> None:
        self._files = files
        self._changed_s: float | None = None
        self._ended = False

    @property
    def announcements(self) -> None:
        """Nothing: events are announced before they are stored."""
        return None

    def append(self, event: Event) -> None:
        if self._ended:
            raise StoreError("cannot write the session log: the session is closed")
        self._files.append(FILE, event.encode() + b"\n")
        self._changed_s = time.time()

    def sync_soon(self) -> None:
        """Do nothing: the events are on their way."""

    async def flush(self) -> None:
        # A failure is announced when it begins, and what is left is stored later.
        with anyio.move_on_after(FLUSH_S), suppress(StoreError):
            await self._files.flush()

    async def save(self) -> None:
        await self._files.flush()

    def end(self) -> None:
        """Accept no more events."""
        self._ended = True

    def open(self) -> IO[bytes]:
        return BytesIO(self._files.read(FILE) or b"")

    def read(self) -> Replay:
        return parse_log(self._files.read(FILE) or b"")

    def repair(self) -> Replay:
        content = self._files.read(FILE) or b""
        replay = parse_log(content)
        if replay.torn_bytes:
            self._files.write(FILE, content[: len(content) - replay.torn_bytes])
        elif content and not content.endswith(b"\n"):
            self._files.write(FILE, content + b"\n")
        return replay

    def truncate(self, event_id: str) -> tuple[Replay, int] | None:
        lines = (self._files.read(FILE) or b"").splitlines(keepends=True)
        records = [parse_record(line) for line in lines]
        cut = next(
            (n for n, record in enumerate(records) if record is not None and record.get("id") == event_id), None
        )
        if cut is None:
            return None
        left = b"".join(lines[:cut])
        if not any(records[:cut]):
            raise InvalidRequestError("the first event cannot be removed: delete the session instead")
        self._files.write(FILE, left)
        return Replay(Records(left), 0), sum(record is not None for record in records[cut:])

    def exists(self) -> bool:
        return self._files.read(FILE) is not None

    def changed_s(self) -> float | None:
        return self._changed_s

    def size_bytes(self) -> int:
        return len(self._files.read(FILE) or b"")
