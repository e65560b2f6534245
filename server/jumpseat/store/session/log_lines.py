"""Reading a log from any place in it, in both directions, for pages that cost no more than what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, Final, NamedTuple

from jumpseat.store.session.event_log import parse_record

BLOCK_BYTES: Final = 1 << 16
"""The size of the parts in which a log is read backward; twice as much for each line that is longer."""


class Line(NamedTuple):
    """A valid event in a log, and the offsets of its line: ``end`` is that of the next line."""

    begin: int
    end: int
    record: dict[str, Any]


def forward(file: IO[bytes], begin: int) -> Iterator[Line]:
    """Yield the events after an offset at which a line begins. Invalid lines are left out."""
    file.seek(begin)
    for line in file:
        end = begin + len(line)
        if (record := parse_record(line)) is not None:
            yield Line(begin, end, record)
        begin = end


def backward(file: IO[bytes], end: int) -> Iterator[Line]:
    """Yield the events before an offset at which a line ends, the latest first. Invalid lines are left out."""
    block = BLOCK_BYTES
    while end > 0:
        begin = max(0, end - block)
        file.seek(begin)
        data = file.read(end - begin)
        # The first line may begin before the block.
        first = data.find(b"\n", 0, len(data) - 1) + 1 if begin else 0
        if begin and not first:
            block *= 2
            continue
        block = BLOCK_BYTES
        last = len(data)
        while last > first:
            start = max(first, data.rfind(b"\n", first, last - 1) + 1)
            if (record := parse_record(data[start:last])) is not None:
                yield Line(begin + start, begin + last, record)
            last = start
        end = begin + first


def find(file: IO[bytes], offset: int | None, written: int, event_id: str) -> int | None:
    """Return the offset after an event, the last of ``written`` ones; ``None`` if it is not there any more.

    ``offset`` is where the event has ended, if that is known: only then is the log not read from its beginning.
    """
    if not written:
        return 0
    if offset is not None and offset <= size_of(file):
        line = next(backward(file, offset), None)
        if line is not None and (line.end, line.record.get("id")) == (offset, event_id):
            return offset
    for number, line in enumerate(forward(file, 0), 1):
        if number == written:
            return line.end if line.record.get("id") == event_id else None
    return None


def size_of(file: IO[bytes]) -> int:
    """Return the size of an open log in bytes."""
    return file.seek(0, 2)
