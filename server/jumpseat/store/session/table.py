"""A table of the entries of lists of sessions: columns of numbers, names, and all JSON as one block.

A hundred thousand entries as objects would take three times the memory. ``encode`` and ``decode`` convert a table
from and to its form in a file.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import orjson
from msgspec import Struct

State: TypeAlias = tuple[int, int, int, int]
"""The time and size of the log, and the time and inode of the workspace file: times alone may be too coarse."""

_COLUMNS: Final = 6
_LARGEST: Final = (1 << 63) - 1


class Entry(Struct, frozen=True):
    """A session as lists show it.

    ``json`` is the entry on the wire; ``None`` for a session that was never prompted. ``created_by`` is the
    name of the connection token that created the session.
    """

    created_by: str | None
    json: bytes | None


class Row(Struct):
    """An entry, and the state of the files that it comes from.

    ``folder_ns`` is the time of the session's folder when no program had the session open, otherwise 0: while it
    stays the same, the files do.
    """

    state: State
    folder_ns: int
    entry: Entry


class Table:
    """Rows by number: those with JSON first, the last changed first."""

    def __init__(
        self, names: list[str], columns: list[array[int]], json: bytes | memoryview, created_by: dict[str, str]
    ) -> None:
        self.names = names
        self.numbers = {name: number for number, name in enumerate(names)}
        self._columns = columns
        *self._state, self.folder_ns, self._ends = columns
        self._json = memoryview(json)
        self._created_by = created_by
        # Rows without JSON are the last ones, and end where the one before them does.
        self.listed = bisect_left(self._ends, self._ends[-1]) + 1 if names and self._ends[-1] else 0

    def state(self, number: int) -> State:
        """Return the state of a row."""
        log_ns, log_size, workspace_ns, workspace_inode = self._state
        return log_ns[number], log_size[number], workspace_ns[number], workspace_inode[number]

    def row(self, number: int) -> Row:
        """Return a row."""
        json = bytes(self.json(range(number, number + 1))) if number < self.listed else None
        entry = Entry(self._created_by.get(self.names[number]), json)
        return Row(self.state(number), self.folder_ns[number], entry)

    def json(self, numbers: range) -> memoryview:
        """Return the JSON of a range of listed rows, separated by commas."""
        return self._json[self._ends[numbers.start - 1] + 1 if numbers.start else 0 : self._ends[numbers.stop - 1]]

    def place(self, log_ns: int) -> int:
        """Return the number of rows with JSON whose logs have changed after ``log_ns``."""
        changed = self._state[0]
        return bisect_left(range(self.listed), -log_ns, key=lambda number: -changed[number])

    @classmethod
    def of(cls, rows: Iterable[tuple[str, Row]]) -> Table:
        """Make a table of rows in their order, with their names."""
        names: list[str] = []
        columns = [array("q") for _ in range(_COLUMNS)]
        parts: list[bytes] = []
        created_by: dict[str, str] = {}
        end = -1
        for name, row in rows:
            names.append(name)
            if row.entry.json is not None:
                parts.append(row.entry.json)
                end += 1 + len(row.entry.json)
            if row.entry.created_by is not None:
                created_by[name] = row.entry.created_by
            for column, value in zip(columns, (*row.state, row.folder_ns, max(end, 0)), strict=True):
                column.append(value)
        return cls(names, columns, b",".join(parts), created_by)

    def encode(self) -> list[bytes | memoryview]:
        """Return the form in a file, in parts."""
        head = orjson.dumps({"rows": len(self.names), "createdBy": self._created_by})
        # Names have no NULs.
        names = "\0".join(self.names).encode()
        columns = [_little_endian(column).tobytes() for column in self._columns]
        return [b"%d %d\n" % (len(head), len(names)), head, names, *columns, self._json]

    @classmethod
    def decode(cls, data: memoryview) -> Table:
        """Return the table that :meth:`encode` has written."""
        line = bytes(data[:64]).partition(b"\n")[0]
        head_size, names_size = map(int, line.split())
        begin = len(line) + 1
        head: dict[str, Any] = orjson.loads(data[begin : begin + head_size])
        begin += head_size
        names = str(data[begin : begin + names_size], "utf-8")
        begin += names_size
        columns: list[array[int]] = []
        for _ in range(_COLUMNS):
            size = 8 * head["rows"]
            columns.append(_little_endian(array("q", data[begin : begin + size].tobytes())))
            begin += size
        return cls(names.split("\0") if names else [], columns, data[begin:], head["createdBy"])


def fitting(value: int) -> int:
    """Return the next number to a time in nanoseconds or an inode that a column can hold."""
    return min(max(value, -_LARGEST), _LARGEST)


def _little_endian(column: array[int]) -> array[int]:
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column
