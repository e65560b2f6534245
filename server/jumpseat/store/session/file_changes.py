"""The changes of files during the prompts of one session: ``changes.jsonl`` in its folder.

Each line is a change ``{interaction, event, prompt, path, place, before, after, hash, kept, new, mode, broken,
call}``, or it leaves changes out: ``{undone: interaction}``, ``{undone_files: interaction, paths}``,
``{forgotten: [event]}``. ``event`` is the id of the user's message before the change. Paths and contents are
base64; ``before`` is ``null`` for a new file, ``hash`` for a deleted one. ``place`` is left out if it is the path.
Of large files only the hash of the new content is kept. A log that grows too large loses the contents of its oldest
prompts.
"""

from __future__ import annotations

import logging
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.errors import StoreError
from jumpseat.store.session.state_files import StateFiles

log = logging.getLogger(__name__)

FILE: Final = "changes.jsonl"

LARGEST_BYTES: Final = 1024 * 1024
"""Largest content that is kept."""

LARGEST_LOG_BYTES: Final = 32 * 1024 * 1024
"""Size at which the log is shortened to half of it, so that this is rarely necessary."""


class Cause(NamedTuple):
    """The prompt that changes belong to, and the id of the user's message before them, if that is known."""

    interaction_id: str
    prompt: str
    event_id: str | None = None


class FileChange(Struct):
    """The change of a file. ``before`` is ``None`` for a new file, ``after`` for a deleted one.

    ``place`` is where ``path`` resolved to, links included, when the file was changed. ``kept`` is whether the
    contents are known. ``after_hash`` is the SHA-256 of the new content, in hexadecimal; ``None`` for a deleted
    file. ``is_new`` is whether there was no file before. ``mode`` is that of the file before, if it is known.
    ``broken`` is whether somebody else has changed the file between the changes that this one consists of.
    ``call`` is the id of the tool call that has made it, if it is known and but one.
    """

    path: Path
    place: Path
    before: bytes | None
    after: bytes | None
    after_hash: str | None
    kept: bool
    is_new: bool
    mode: int | None = None
    broken: bool = False
    call: str | None = None

    def is_left_as(self, content: bytes | None) -> bool:
        """Return whether ``content`` is what the change left; ``None`` means that there is no file."""
        return (None if content is None else sha256(content).hexdigest()) == self.after_hash

    @property
    def is_effective(self) -> bool:
        """Return whether the file differs from before, as far as is known."""
        if not self.kept:
            return not (self.is_new and self.after_hash is None)
        return self.before != self.after

    def then(self, later: FileChange) -> FileChange:
        """Return the change that both make together."""
        kept = self.kept and later.kept and self.place == later.place
        # A change may be seen twice: by the tool that makes it, and by a command that runs meanwhile.
        follows = later.before == self.after or later.after == self.after
        return FileChange(
            self.path,
            later.place,
            self.before if kept else None,
            later.after if kept else None,
            later.after_hash,
            kept,
            self.is_new,
            self.mode,
            self.broken or later.broken or (kept and not follows),
            self.call if self.call == later.call else None,
        )


class Changes(Struct):
    """The changes of one prompt, by path."""

    interaction_id: str
    prompt: str
    files: dict[Path, FileChange]


def joined(changes: Iterable[Changes]) -> dict[Path, FileChange]:
    """Return the changes that prompts have made together, by path."""
    found: dict[Path, FileChange] = {}
    for change in (change for one in changes for change in one.files.values()):
        first = found.get(change.path)
        found[change.path] = change if first is None else first.then(change)
    return found


def new_change(
    path: Path, place: Path, before: bytes | None, after: bytes | None, mode: int | None = None
) -> FileChange:
    """Return a change with known contents, which are not kept if they are large."""
    kept = max(len(before or b""), len(after or b"")) <= LARGEST_BYTES
    digest = None if after is None else sha256(after).hexdigest()
    return FileChange(path, place, before, after, digest, kept, before is None, mode)


class FileChangeLog:
    """The log of one session."""

    def __init__(self, state: StateFiles) -> None:
        self._state = state

    def add(self, cause: Cause, changes: Iterable[FileChange]) -> None:
        """Record changes. A log that cannot be written is no reason to fail a change, which is made already."""
        for change in changes:
            if self._write(_line(cause, change)) > LARGEST_LOG_BYTES:
                self._shorten()

    def mark_undone(self, interaction_id: str) -> None:
        """Leave out the changes of a prompt from now on."""
        self._write(orjson.dumps({"undone": interaction_id}) + b"\n")

    def mark_files_undone(self, interaction_id: str, paths: Iterable[Path]) -> None:
        """Leave out the changes of a prompt in these files from now on."""
        # A key of its own: earlier versions would leave out all files of the prompt.
        encoded = [_encode(os.fsencode(path)) for path in paths]
        self._write(orjson.dumps({"undone_files": interaction_id, "paths": encoded}) + b"\n")

    def forget(self, event_ids: Collection[str]) -> None:
        """Leave out the changes after these messages of the user from now on.

        Raises:
            StoreError: the log cannot be written.
        """
        if not self._content():
            return
        if not self._write(orjson.dumps({"forgotten": sorted(event_ids)}) + b"\n"):
            raise StoreError("cannot write the log of file changes")

    def copy_to(self, other: FileChangeLog, event_ids: Collection[str]) -> None:
        """Copy the changes after these messages of the user to another session.

        Raises:
            OSError: the log of the other session cannot be written.
        """
        lines = [_line(cause, change) for cause, change in self._records() if cause.event_id in event_ids]
        if lines:
            other._state.write(FILE, b"".join(lines))

    def read(self) -> list[Changes]:
        """Return the changes that were not undone, by prompt, the oldest first."""
        return self._grouped(lambda cause: cause.interaction_id)

    def after_messages(self) -> dict[str, Changes]:
        """Return the changes that were not undone, by the id of the user's message before them, oldest first."""
        found = self._grouped(lambda cause: cause.event_id, of_event=True)
        return {changes.interaction_id: changes for changes in found}

    def of_call(self, interaction_id: str, call_id: str) -> dict[Path, FileChange]:
        """Return the changes that a tool call has made, by path, also if they were undone.

        Some models use the ids of calls again: those of the prompt count first.
        """
        all_of_id = [item for item in self._records(undone=True) if item[1].call == call_id]
        own = [item for item in all_of_id if item[0].interaction_id == interaction_id]
        found: dict[Path, FileChange] = {}
        for _, change in own or all_of_id:
            found[change.path] = found[change.path].then(change) if change.path in found else change
        return found

    def _grouped(self, key: Callable[[Cause], str | None], *, of_event: bool = False) -> list[Changes]:
        found: dict[str, Changes] = {}
        for cause, change in self._records():
            name = key(cause)
            if name is None:
                continue
            group = found.setdefault(name, Changes(name if of_event else cause.interaction_id, cause.prompt, {}))
            first = group.files.get(change.path)
            group.files[change.path] = change if first is None else first.then(change)
        return list(found.values())

    def _records(self, *, undone: bool = False) -> list[tuple[Cause, FileChange]]:
        """Return all changes that were not left out, in order; with ``undone``, those that were, too."""
        found: list[tuple[Cause, FileChange]] = []
        for line in self._content().splitlines():
            try:
                record: Any = orjson.loads(line)
                if undone and not record.keys().isdisjoint(_LEFT_OUT):
                    continue
                if "undone" in record:
                    found = [item for item in found if item[0].interaction_id != record["undone"]]
                elif "undone_files" in record:
                    left_out = {(record["undone_files"], _path(path)) for path in record["paths"]}
                    found = [item for item in found if (item[0].interaction_id, item[1].path) not in left_out]
                elif "forgotten" in record:
                    forgotten = set(record["forgotten"])
                    found = [item for item in found if item[0].event_id not in forgotten]
                else:
                    found.append((_cause(record), _change(record)))
            except (ValueError, KeyError, TypeError) as error:
                # The last line may be cut off.
                log.warning("%s: a line is ignored: %s", self._state.path(FILE), error)
        return found

    def _write(self, line: bytes) -> int:
        """Append a line; return the size of the log, 0 if it cannot be written."""
        try:
            return self._state.append(FILE, line)
        except OSError as error:
            log.error("cannot write %s: %s", self._state.path(FILE), error.strerror or error)
            return 0

    def _content(self) -> bytes:
        try:
            return self._state.read(FILE) or b""
        except OSError:
            return b""

    def _shorten(self) -> None:
        """Leave out what later changes have replaced, and the oldest prompts, each with all of its changes.

        The names of files that were changed after a known message of the user stay, so that a rewind can name them.
        """
        left, left_for_names = LARGEST_LOG_BYTES // 2, LARGEST_LOG_BYTES // 4
        lines: list[bytes] = []
        groups = _by_cause(self._records())
        for place, (cause, changes) in enumerate(reversed(groups)):
            # The latest prompt stays in any case: it may still change files.
            kept = _lines(cause, changes, LARGEST_LOG_BYTES // 2 if place == 0 else LARGEST_LOG_BYTES)
            if place and left < sum(map(len, kept)):
                left = 0
                kept = _lines(cause, changes, 0) if cause.event_id is not None else []
                left_for_names -= sum(map(len, kept))
                if left_for_names < 0:
                    break
            left -= sum(map(len, kept))
            lines[:0] = kept
        try:
            self._state.write(FILE, b"".join(lines))
        except OSError as error:
            log.error("cannot shorten %s: %s", self._state.path(FILE), error.strerror or error)


def _by_cause(records: Sequence[tuple[Cause, FileChange]]) -> list[tuple[Cause, list[FileChange]]]:
    """Return one change of each file for each cause, the oldest cause first."""
    found: dict[Cause, dict[Path, FileChange]] = {}
    for cause, change in records:
        files = found.setdefault(cause, {})
        first = files.get(change.path)
        files[change.path] = change if first is None else first.then(change)
    return [(cause, list(files.values())) for cause, files in found.items()]


def _lines(cause: Cause, changes: Sequence[FileChange], left: int) -> list[bytes]:
    """Return the lines of changes; contents for which no bytes are ``left`` are not kept."""
    lines: list[bytes] = []
    for change in changes:
        line = _line(cause, change)
        if len(line) > left:
            line = _line(cause, replace(change, kept=False))
        left -= len(line)
        lines.append(line)
    return lines


def _line(cause: Cause, change: FileChange) -> bytes:
    record = {
        "interaction": cause.interaction_id,
        "event": cause.event_id,
        "prompt": cause.prompt,
        "path": _encode(os.fsencode(change.path)),
        "place": _encode(os.fsencode(change.place)) if change.place != change.path else None,
        "before": _encode(change.before) if change.kept else None,
        "after": _encode(change.after) if change.kept else None,
        "hash": change.after_hash,
        "kept": change.kept,
        "new": change.is_new,
        "mode": change.mode,
        "broken": change.broken,
        "call": change.call,
    }
    return (
        orjson.dumps({name: value for name, value in record.items() if value is not None or name in _NULL}) + b"\n"
    )


_LEFT_OUT: Final = ("undone", "undone_files", "forgotten")
_NULL: Final = ("before", "after", "hash")


def _cause(record: dict[str, Any]) -> Cause:
    return Cause(record["interaction"], record["prompt"], record.get("event"))


def _change(record: dict[str, Any]) -> FileChange:
    before, after = record["before"], record["after"]
    path = record["path"]
    return FileChange(
        _path(path),
        _path(record.get("place", path)),
        None if before is None else b64decode(before),
        None if after is None else b64decode(after),
        record["hash"],
        record.get("kept", after is not None),
        record.get("new", before is None and after is not None),
        record.get("mode"),
        record.get("broken", False),
        record.get("call"),
    )


def _path(encoded: str) -> Path:
    return Path(os.fsdecode(b64decode(encoded)))


def _encode(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()
