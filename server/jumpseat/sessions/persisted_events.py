"""Reading the log of a session in pages, without opening the session: ``sessions.readPersistedEvents``.

The first page fixes the end of the log; events that are added later are left out. A cursor is good for one read. If
the log has been cut since, the cursor has expired.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, Final, Literal, TypeAlias

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.errors import StoreError
from jumpseat.store.session import log_lines
from jumpseat.store.session.log_lines import Line

PAGE_BYTES: Final = 1024 * 1024
"""Size of a page, unless one event is larger."""
MOST_READS: Final = 8
"""Number of unfinished reads that are kept; the oldest expire."""
IDLE_S: Final = 300.0
"""Time after which an unfinished read expires."""

Direction: TypeAlias = Literal["forward", "backward"]


class _Read(Struct, frozen=True):
    """An unfinished read: the bytes of the log from ``start`` to ``end`` are left.

    ``last`` is the place of the last line of the log when the read began, with its digest: every line has an id of
    its own, so a log that was cut and continued has another one there.
    """

    session_id: str
    direction: Direction
    start: int
    end: int
    last: tuple[int, int, bytes]
    expires: float


class Page(Struct, frozen=True):
    """Events in their order; ``cursor`` continues, and is empty at the end."""

    records: list[dict[str, Any]]
    cursor: str = ""
    expired: bool = False


class PersistedReads:
    """The unfinished reads of the process."""

    def __init__(self) -> None:
        self._reads: OrderedDict[str, _Read] = OrderedDict()

    async def read(self, session_id: str, path: Path, cursor: str | None, direction: Direction, most: int) -> Page:
        """Return the first page of a log, or the page after a cursor, which keeps its direction.

        Raises:
            StoreError: the log cannot be read.
        """
        known = None
        if cursor is not None:
            known = self._reads.pop(cursor, None)
            if known is None or known.session_id != session_id or known.expires < time.monotonic():
                return Page([], expired=True)
        result = await anyio.to_thread.run_sync(_read, session_id, path, known, direction, most)
        if result is None:
            return Page([], expired=True)
        records, rest = result
        if rest is None:
            return Page(records)
        token = uuid.uuid4().hex
        self._reads[token] = replace(rest, expires=time.monotonic() + IDLE_S)
        while len(self._reads) > MOST_READS:
            self._reads.popitem(last=False)
        return Page(records, token)


def _read(
    session_id: str, path: Path, known: _Read | None, direction: Direction, most: int
) -> tuple[list[dict[str, Any]], _Read | None] | None:
    """Return a page and the rest of the read; ``None`` if the log was cut since the read began."""
    try:
        with path.open("rb") as file:
            read = known if known is not None else _begin(session_id, file, direction)
            if read.last != _line_before(file, read.last[1]):
                return None
            if read.direction == "forward":
                lines, start = _forward(file, read.start, read.end, most)
                rest = replace(read, start=start)
            else:
                lines, end = _backward(file, read.start, read.end, most)
                rest = replace(read, end=end)
    except OSError as error:
        if known is not None:
            return None
        raise StoreError(f"cannot read the session log: {error.strerror or error}") from error
    return [line.record for line in lines], rest if rest.start < rest.end else None


def _begin(session_id: str, file: IO[bytes], direction: Direction) -> _Read:
    size = file.seek(0, 2)
    last = _line_before(file, size)
    if size:
        file.seek(size - 1)
        if file.read(1) != b"\n":
            # The last line is being written, or was torn by a crash.
            size = last[0]
            last = _line_before(file, size)
    return _Read(session_id, direction, 0, size, last, 0)


def _line_before(file: IO[bytes], end: int) -> tuple[int, int, bytes]:
    """Return the beginning and the end of the line that ends at ``end``, and its digest."""
    window = 4096
    while True:
        start = max(0, end - window)
        file.seek(start)
        data = file.read(end - start)
        at = data.rfind(b"\n", 0, max(0, len(data) - 1))
        if at >= 0 or start == 0:
            begin = start + at + 1
            return begin, end, sha256(data[at + 1 :]).digest()
        window *= 4


def _forward(file: IO[bytes], start: int, end: int, most: int) -> tuple[list[Line], int]:
    """Return events from ``start`` on, and where the next one begins."""
    lines, is_all = _page(takewhile(lambda line: line.end <= end, log_lines.forward(file, start)), most)
    return lines, end if is_all else lines[-1].end


def _backward(file: IO[bytes], start: int, end: int, most: int) -> tuple[list[Line], int]:
    """Return events before ``end`` in their order, and where the first of them begins."""
    lines, is_all = _page(takewhile(lambda line: line.begin >= start, log_lines.backward(file, end)), most)
    return lines[::-1], start if is_all else lines[-1].begin


def _page(lines: Iterable[Line], most: int) -> tuple[list[Line], bool]:
    """Return the first of ``lines`` that fit on a page, and whether these are all."""
    page: list[Line] = []
    size = 0
    for line in lines:
        size += line.end - line.begin
        if page and (len(page) >= most or size > PAGE_BYTES):
            return page, False
        page.append(line)
    return page, True
