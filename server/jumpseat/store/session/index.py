"""The index of stored sessions for lists, in memory and in ``session-index`` of the home.

A session's entry holds for as long as the two files that it comes from do not change. The file spares the next
process reading them all; it is only a cache, and is ignored where it is damaged or of another version.

Each list looks for new and removed sessions, and at those that some program has open. A complete check also finds
the ones that others have opened since. It compares the files of the ``RECENT`` last changed sessions, and of older
ones only the time of their folder: every program marks the sessions that it opens by a file in their folder, and
replaces ``workspace.yaml``, both of which change that time.
"""

from __future__ import annotations

import logging
import os
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel
import anyio.to_thread

from jumpseat.store.session.ownership import is_marked
from jumpseat.store.session.state_files import DiskFiles
from jumpseat.store.session.table import Entry, Row, State, Table, fitting

log = logging.getLogger(__name__)

FRESH_S: Final = 1.0
"""The least time between two complete checks, in which others may open sessions unnoticed."""
SHARE: Final = 20
"""The time between two complete checks, as a multiple of what the last one took."""
RECENT: Final = 500
"""The number of sessions whose files each complete check compares."""
SLICE_S: Final = 0.01
"""The time for which :meth:`SessionIndex.prepare` lets other tasks wait at once."""
SETTLED_NS: Final = 50_000_000
COARSELY_SETTLED_NS: Final = 2_000_000_000
"""The ages from which on a folder's time shows each later change: on file systems with and without fractions of
seconds."""

_FILE: Final = "session-index"
_VERSION: Final = b"jumpseat session index 3\n"
_CHECKSUM_BYTES: Final = 8
_LARGE_BYTES: Final = 1 << 16
# Sessions examined since the file was written: fewer are not worth writing all others again.
_WORTH_SAVING: Final = 64

Examine: TypeAlias = Callable[[str, float], Entry]
"""Reads the files of the session with a name, whose log was changed at a time in seconds."""


class SessionIndex:
    """The entries of the sessions in the folder ``root``."""

    def __init__(
        self,
        root: Path,
        examine: Examine,
        is_name: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
        recent: int = RECENT,
    ) -> None:
        self._root = root
        self._files = DiskFiles(root.parent)
        self._examine = examine
        self._is_name = is_name
        self._clock = clock
        self._recent = recent
        self._table: Table | None = None
        # What has changed since the table was made; `None` for sessions that are gone.
        self._changed: dict[str, Row | None] = {}
        self._parts: Sequence[bytes | memoryview] | None = None
        self._check_at = 0.0
        self._root_state: tuple[int, int] | None = None
        # The sessions that each list looks at: those that some program may have open, or that were never prompted.
        self._watched: set[str] = set()
        # The sessions that this process has opened or closed since the last look.
        self._touched: set[str] = set()
        self._examined = 0
        self._preparing = anyio.Lock()

    def touch(self, name: str) -> None:
        """Look at a session again before the next list: this process is about to change it, or has done so."""
        self._touched.add(name)

    def entries(self, open_here: Collection[str], not_after_ns: int | None = None) -> Iterator[Entry]:
        """Return all sessions that were prompted, the last changed first.

        ``open_here`` are the sessions that this process has open, and may have changed. With ``not_after_ns``, a
        Unix time in nanoseconds, those that have changed after it are left out.
        """
        table = self._refresh(open_here)
        order = self._order(table)
        if not_after_ns is not None:
            order = self._not_after(table, order, not_after_ns)
        return (row.entry for _, row in self._rows(table, order))

    async def prepare(self, open_here: Callable[[], Collection[str]]) -> None:
        """Make a complete check that is due, while other tasks go on: the next list has little left to look at.

        ``open_here`` returns the sessions that this process has open. Without this, the next list does it all.
        """
        async with self._preparing:
            if self._table is not None and self._clock() < self._check_at:
                return
            began = self._clock()
            if self._table is None:
                loaded = await anyio.to_thread.run_sync(self._load)
                if self._table is None:
                    self._begin_with(loaded)
            assert self._table is not None
            table, changed = self._table, frozenset(self._changed)
            root_state, names, found = await anyio.to_thread.run_sync(self._scan, table, changed)
            # Gone ones, too, because sessions may have come since.
            known = {*table.numbers, *changed}
            look = {name for name in names - known if self._is_name(name)} | (known - names) | found
            look |= self._watched | self._touched
            now_open, slice_ends = open_here(), self._clock() + SLICE_S
            for name in look:
                if self._clock() > slice_ends:
                    await anyio.lowlevel.checkpoint()
                    now_open, slice_ends = open_here(), self._clock() + SLICE_S
                self._touched.discard(name)
                self._look(self._table, (name,), now_open, complete=True)
            self._root_state = root_state
            if (merged := self._end_check(self._table, began)) is not None:
                await anyio.to_thread.run_sync(self._write, merged)

    def _scan(self, table: Table, changed: Collection[str]) -> tuple[tuple[int, int] | None, set[str], set[str]]:
        """Return the state of the root, the names in it, and the sessions that may have changed; in any thread."""
        root_state, names = self._state_of_root(), self._names()
        return root_state, names, self._opened(table, changed, names & {*table.numbers, *changed})

    def _not_after(self, table: Table, order: Iterable[range | str], not_after_ns: int) -> list[range | str]:
        first = table.place(not_after_ns)
        kept: list[range | str] = []
        for names in order:
            if isinstance(names, range):
                kept += [range(max(names.start, first), names.stop)] if first < names.stop else []
            elif (row := self._changed[names]) is not None and row.state[0] <= not_after_ns:
                kept.append(names)
        return kept

    def json(self, open_here: Collection[str]) -> Sequence[bytes | memoryview]:
        """Return the entries as a JSON array, in parts."""
        table = self._refresh(open_here)
        if self._parts is None:
            parts: list[bytes | memoryview] = [b"["]
            for names in self._order(table):
                if len(parts) > 1:
                    parts.append(b",")
                if isinstance(names, range):
                    parts.append(table.json(names))
                elif (row := self._changed[names]) is not None and row.entry.json is not None:
                    parts.append(row.entry.json)
            self._parts = [*_join_short(parts), b"]"]
        return self._parts

    def _order(self, table: Table) -> list[range | str]:
        """Return the prompted sessions, the last changed first: numbers of rows, and names of changed sessions."""
        changed = [
            (row.state[0], name)
            for name, row in self._changed.items()
            if row is not None and row.entry.json is not None
        ]
        changed.sort(reverse=True)
        cuts: list[tuple[int, str | None]] = [(table.place(log_ns), name) for log_ns, name in changed]
        for name in self._changed:
            if (number := table.numbers.get(name, table.listed)) < table.listed:
                cuts.append((number, None))
        order: list[range | str] = []
        begin = 0
        for number, name in sorted(cuts, key=lambda cut: (cut[0], cut[1] is None)):
            if begin < number:
                order.append(range(begin, number))
            if name is None:
                begin = number + 1
            else:
                order.append(name)
                begin = number
        return [*order, range(begin, table.listed)] if begin < table.listed else order

    def _rows(self, table: Table, order: Iterable[range | str]) -> Iterator[tuple[str, Row]]:
        for names in order:
            if isinstance(names, range):
                for number in names:
                    yield table.names[number], table.row(number)
            elif (row := self._changed[names]) is not None:
                yield names, row

    # --- bringing the entries up to date --------------------------------------------------------------------------

    def _refresh(self, open_here: Collection[str]) -> Table:
        now = self._clock()
        table = self._table
        complete = table is None or now >= self._check_at
        if table is None:
            table = self._begin_with(self._load())
        look = {*self._watched, *self._touched, *open_here}
        self._touched = set()
        root_state = self._state_of_root()
        if complete or root_state != self._root_state:
            self._root_state = root_state
            names = self._names()
            known = {*table.numbers, *self._changed} - {name for name, row in self._changed.items() if row is None}
            for name in known - names:
                self._forget(table, name)
            look |= {name for name in names - known if self._is_name(name)}
            if complete:
                look |= self._opened(table, self._changed, names & known)
        self._look(table, look, open_here, complete=complete)
        if complete and (merged := self._end_check(table, now)) is not None:
            self._write(merged)
            return merged
        return table

    def _begin_with(self, table: Table) -> Table:
        self._table = table
        self._watched = {
            name for number, name in enumerate(table.names) if not table.folder_ns[number] or number >= table.listed
        }
        return table

    def _end_check(self, table: Table, began: float) -> Table | None:
        """Note that a complete check has ended; return a table of all rows if it is worth writing."""
        end = self._clock()
        self._check_at = end + max(FRESH_S, SHARE * (end - began))
        return self._merge(table) if self._examined >= max(_WORTH_SAVING, len(table.names) // 50) else None

    def _opened(self, table: Table, changed: Collection[str], names: set[str]) -> set[str]:
        """Return the sessions among ``names`` whose files may have changed since the last look."""
        recent = {*table.names[: self._recent], *changed}
        found = names & recent
        numbers, folder_ns = table.numbers, table.folder_ns
        stat, root = os.stat, f"{self._root}/"
        for name in names - recent:
            try:
                if stat(root + name).st_mtime_ns == folder_ns[numbers[name]]:
                    continue
            except OSError:
                pass
            found.add(name)
        return found

    def _look(self, table: Table, names: Iterable[str], open_here: Collection[str], *, complete: bool) -> None:
        """Compare the files of sessions with their entries, and examine those that have changed."""
        stat, root = os.stat, f"{self._root}/"
        now_ns = time.time_ns()
        for name in names:
            path = root + name
            known, known_ns = self._state(table, name)
            folder_ns = 0
            try:
                if complete and name not in open_here:
                    # Before the files: a program that opens the session changes the time before it changes them.
                    folder_ns = fitting(stat(path).st_mtime_ns)
                    if folder_ns != known_ns and (not _is_settled(folder_ns, now_ns) or is_marked(path)):
                        folder_ns = 0
                events, workspace = stat(path + "/events.jsonl"), stat(path + "/workspace.yaml")
            except OSError:
                self._forget(table, name)
                continue
            workspace_ns, inode = fitting(workspace.st_mtime_ns), fitting(workspace.st_ino)
            state = (fitting(events.st_mtime_ns), events.st_size, workspace_ns, inode)
            if state != known:
                self._change(name, Row(state, folder_ns, self._examine(name, events.st_mtime)))
            elif complete and folder_ns != known_ns:
                self._settle(table, name, folder_ns)

    def _state(self, table: Table, name: str) -> tuple[State | None, int]:
        """Return the state of a session and the time of its folder, as far as they are known."""
        if name in self._changed:
            row = self._changed[name]
            return (row.state, row.folder_ns) if row is not None else (None, 0)
        number = table.numbers.get(name)
        return (table.state(number), table.folder_ns[number]) if number is not None else (None, 0)

    def _change(self, name: str, row: Row) -> None:
        self._changed[name] = row
        self._parts = None
        self._examined += 1
        self._watch(name, row.folder_ns, row.entry.json is not None)

    def _settle(self, table: Table, name: str, folder_ns: int) -> None:
        """Note the time of the folder of a session whose files have not changed."""
        self._examined += 1
        row = self._changed.get(name)
        if row is not None:
            row.folder_ns = folder_ns
            self._watch(name, folder_ns, row.entry.json is not None)
        else:
            number = table.numbers[name]
            table.folder_ns[number] = folder_ns
            self._watch(name, folder_ns, number < table.listed)

    def _watch(self, name: str, folder_ns: int, is_listed: bool) -> None:
        if folder_ns and is_listed:
            self._watched.discard(name)
        else:
            self._watched.add(name)

    def _forget(self, table: Table, name: str) -> None:
        self._watched.discard(name)
        known = name in table.numbers if name not in self._changed else self._changed[name] is not None
        if not known:
            return
        self._parts = None
        if name in table.numbers:
            self._changed[name] = None
        else:
            del self._changed[name]

    def _names(self) -> set[str]:
        try:
            return {*os.listdir(self._root)}
        except OSError:
            return set()

    def _state_of_root(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._root)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_nlink

    # --- the file -------------------------------------------------------------------------------------------------

    def _load(self) -> Table:
        try:
            content = self._files.read(_FILE)
        except OSError as error:
            log.info("%s is ignored: %s", self._files.path(_FILE), error)
            content = None
        if content is None:
            return Table.of(())
        data = memoryview(content)[_CHECKSUM_BYTES:]
        if content[:_CHECKSUM_BYTES] == _checksum([data]):
            return Table.decode(data)
        log.info("%s is ignored: it is damaged, or of another version", self._files.path(_FILE))
        return Table.of(())

    def _merge(self, table: Table) -> Table:
        """Make a table of all rows."""
        order = self._order(table)
        order += [name for name, row in self._changed.items() if row is not None and row.entry.json is None]
        for number in range(table.listed, len(table.names)):
            if table.names[number] not in self._changed:
                order.append(range(number, number + 1))
        table = self._table = Table.of(self._rows(table, order))
        self._changed, self._parts, self._examined = {}, None, 0
        return table

    def _write(self, table: Table) -> None:
        """Write a table to the file; in any thread."""
        parts = table.encode()
        try:
            self._files.write(_FILE, b"".join((_checksum(parts), *parts)))
        except OSError as error:
            log.debug("%s is not written: %s", self._files.path(_FILE), error)


def join(entries: Iterable[Entry]) -> bytes:
    """Return entries as a JSON array."""
    return b"[%b]" % b",".join(entry.json for entry in entries if entry.json is not None)


def _is_settled(changed_ns: int, now_ns: int) -> bool:
    return changed_ns + (SETTLED_NS if changed_ns % 1_000_000_000 else COARSELY_SETTLED_NS) < now_ns


def _join_short(parts: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Join neighbouring parts, but for large ones, which would be copied."""
    short: list[bytes | memoryview] = []
    for part in parts:
        if len(part) < _LARGE_BYTES:
            short.append(part)
            continue
        yield b"".join(short)
        yield part
        short.clear()
    yield b"".join(short)


def _checksum(parts: Iterable[bytes | memoryview]) -> bytes:
    """Return a checksum that tells a damaged file, such as one of a machine that lost power."""
    checksum = zlib.crc32(_VERSION)
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"%08x" % checksum
