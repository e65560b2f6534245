"""What lists show of the stored sessions, kept in memory and in ``session-index`` of the home.

A session's entry holds for as long as the two files that it comes from do not change. The file spares the next
process reading them all; it is only a cache, and is ignored where it is damaged or of another version. Within
``FRESH_S`` of a complete check, only changes of this process, new folders and removed ones are looked for.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final, TypeAlias

import orjson

from jumpseat.store.state_files import DiskFiles
from jumpseat_protocol.lazy_dataclasses import dataclass

log = logging.getLogger(__name__)

FRESH_S: Final = 1.0
"""The time in which changes by other processes of sessions that exist may be missed."""

_FILE: Final = "session-index"
_VERSION: Final = b"jumpseat session index 2\n"
# Sessions examined since the file was written: fewer are not worth writing all others again.
_WORTH_SAVING: Final = 64

State: TypeAlias = tuple[int, int, int, int]
"""The time and size of the log, and the time and inode of the workspace file: times alone may be too coarse."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A session as lists show it.

    ``json`` is the entry on the wire; ``None`` for a session that was never prompted. ``created_by`` is the
    name of the connection token that created the session.
    """

    state: State
    created_by: str | None
    json: bytes | None


Examine: TypeAlias = Callable[[str, State, float], Entry]
"""Reads the files of the session with a name, whose log was changed at a time in seconds."""


class SessionIndex:
    """The entries of the sessions in the folder ``root``."""

    def __init__(
        self,
        root: Path,
        examine: Examine,
        is_name: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._files = DiskFiles(root.parent)
        self._examine = examine
        self._is_name = is_name
        self._clock = clock
        self._entries: dict[str, Entry] | None = None
        self._sorted: list[Entry] | None = None
        self._joined: bytes | None = None
        self._checked = 0.0
        self._root_state: tuple[int, int] | None = None
        # The sessions that this process has opened or closed since the last look.
        self._touched: set[str] = set()
        self._examined = 0

    def touch(self, name: str) -> None:
        """Look at a session again before the next list: this process is about to change it, or has done so."""
        self._touched.add(name)

    def entries(self, open_here: Collection[str]) -> list[Entry]:
        """Return all sessions that were prompted, the last changed first.

        ``open_here`` are the sessions that this process has open, and may have changed.
        """
        touched, self._touched = self._touched, set()
        self._refresh({*open_here, *touched})
        if self._sorted is None:
            assert self._entries is not None, "filled by the refresh"
            prompted = [entry for entry in self._entries.values() if entry.json is not None]
            self._sorted = sorted(prompted, key=lambda entry: entry.state[0], reverse=True)
        return self._sorted

    def joined(self, open_here: Collection[str]) -> bytes:
        """Return the entries as a JSON array."""
        entries = self.entries(open_here)
        if self._joined is None:
            self._joined = join(entries)
        return self._joined

    def _refresh(self, changed: set[str]) -> None:
        now = self._clock()
        root_state = self._state_of_root()
        if self._entries is None:
            self._entries = self._load()
        elif now - self._checked < FRESH_S:
            names = self._names() if root_state != self._root_state else None
            self._root_state = root_state
            if names is not None:
                self._forget(self._entries.keys() - names)
                changed |= names - self._entries.keys()
            changed.update(name for name, entry in self._entries.items() if entry.json is None)
            self._look(self._entries, changed if names is None else changed & names)
            return
        names = self._names()
        self._root_state, self._checked = root_state, now
        self._forget(self._entries.keys() - names)
        self._look(self._entries, names)
        if self._examined >= max(_WORTH_SAVING, len(self._entries) // 50):
            self._save(self._entries)
            self._examined = 0

    def _look(self, entries: dict[str, Entry], names: Iterable[str]) -> None:
        """Compare the files of sessions with their entries, and examine those that have changed."""
        stat, root = os.stat, f"{self._root}/"
        for name in names:
            path = root + name
            try:
                events, workspace = stat(path + "/events.jsonl"), stat(path + "/workspace.yaml")
            except OSError:
                self._forget((name,))
                continue
            state = (events.st_mtime_ns, events.st_size, workspace.st_mtime_ns, workspace.st_ino)
            known = entries.get(name)
            if known is None or known.state != state:
                entries[name] = self._examine(name, state, events.st_mtime)
                self._examined += 1
                self._sorted = self._joined = None

    def _forget(self, names: Iterable[str]) -> None:
        assert self._entries is not None, "nothing is forgotten before the first look"
        for name in names:
            if self._entries.pop(name, None) is not None:
                self._sorted = self._joined = None

    def _names(self) -> set[str]:
        known = self._entries or {}
        try:
            return {name for name in os.listdir(self._root) if name in known or self._is_name(name)}
        except OSError:
            return set()

    def _state_of_root(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._root)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_nlink

    def _load(self) -> dict[str, Entry]:
        try:
            content = self._files.read(_FILE)
        except OSError as error:
            log.info("%s is ignored: %s", self._files.path(_FILE), error)
            return {}
        head, _, lines = (content or b"").partition(b"\n")
        if head != _digest(lines):
            if content is not None:
                log.info("%s is ignored: it is damaged, or of another version", self._files.path(_FILE))
            return {}
        return dict(map(_parse, lines.splitlines()))

    def _save(self, entries: dict[str, Entry]) -> None:
        lines = b"".join(_format(name, entry) for name, entry in entries.items())
        try:
            self._files.write(_FILE, _digest(lines) + b"\n" + lines)
        except OSError as error:
            log.debug("%s is not written: %s", self._files.path(_FILE), error)


def join(entries: Iterable[Entry]) -> bytes:
    """Return entries as a JSON array."""
    return b"[%b]" % b",".join(entry.json for entry in entries if entry.json is not None)


def _digest(lines: bytes) -> bytes:
    return hashlib.blake2b(_VERSION + lines, digest_size=16).hexdigest().encode()


def _format(name: str, entry: Entry) -> bytes:
    # JSON has no tabs and line ends of its own.
    values = (name, *entry.state, entry.created_by)
    return b"%b\t%b\n" % (orjson.dumps(values), entry.json or b"")


def _parse(line: bytes) -> tuple[str, Entry]:
    values, _, json = line.partition(b"\t")
    name, log_ns, log_size, workspace_ns, workspace_inode, created_by = orjson.loads(values)
    state = (log_ns, log_size, workspace_ns, workspace_inode)
    return name, Entry(state, created_by, json or None)
