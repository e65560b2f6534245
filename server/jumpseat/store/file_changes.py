"""The changes that the file tools of one session have made: ``changes.jsonl`` in its folder.

Each line is a change ``{interaction, prompt, path, before, after, hash}`` or ``{undone: interaction}``. Paths and
contents are base64, ``before`` is ``null`` for a new file. Of large files only the hash of the new content is kept.
A log that grows too large is replaced by one of its latest prompts.
"""

from __future__ import annotations

import logging
import os
from base64 import b64decode, b64encode
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import orjson

from jumpseat.errors import StoreError
from jumpseat.owner_only import owner_only
from jumpseat.store.files import write_text

log = logging.getLogger(__name__)

LARGEST_BYTES: Final = 1024 * 1024
"""Largest content that is kept."""

LARGEST_LOG_BYTES: Final = 32 * 1024 * 1024
"""Size at which the log is shortened to half of it, so that this is rarely necessary."""


@dataclass(slots=True)
class FileChange:
    """The change of a file during one prompt. ``before`` is ``None`` for a new file.

    ``kept`` is whether the contents are known. ``after_hash`` is the SHA-256 of the new content, in hexadecimal.
    """

    path: Path
    before: bytes | None
    after: bytes
    after_hash: str
    kept: bool

    def is_left_as(self, content: bytes | None) -> bool:
        """Return whether ``content`` is what the prompt left; ``None`` means that there is no file."""
        return content is not None and sha256(content).hexdigest() == self.after_hash


@dataclass(slots=True)
class Changes:
    """The changes of one prompt, by path."""

    interaction_id: str
    prompt: str
    files: dict[Path, FileChange]


class FileChangeLog:
    """The log of one session."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, interaction_id: str, prompt: str, path: Path, before: bytes | None, after: bytes) -> None:
        """Record a change. A log that cannot be written is no reason to fail the change, which is made already."""
        kept = max(len(before or b""), len(after)) <= LARGEST_BYTES
        change = FileChange(path, before, after, sha256(after).hexdigest(), kept)
        if self._write(_line(interaction_id, prompt, change)) > LARGEST_LOG_BYTES:
            self._shorten()

    def mark_undone(self, interaction_id: str) -> None:
        """Leave out the changes of a prompt from now on."""
        self._write(orjson.dumps({"undone": interaction_id}) + b"\n")

    def read(self) -> list[Changes]:
        """Return the changes that were not undone, by prompt, the oldest first."""
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return []
        found: dict[str, Changes] = {}
        for line in lines:
            try:
                record: Any = orjson.loads(line)
                if "undone" in record:
                    found.pop(record["undone"], None)
                else:
                    _add(found, record)
            except (ValueError, KeyError, TypeError) as error:
                # The last line may be cut off.
                log.warning("%s: a line is ignored: %s", self._path, error)
        return list(found.values())

    def _write(self, line: bytes) -> int:
        """Append a line; return the size of the log."""
        try:
            with open(self._path, "ab", opener=owner_only) as file:
                file.write(line)
                return file.tell()
        except OSError as error:
            log.error("cannot write %s: %s", self._path, error.strerror or error)
            return 0

    def _shorten(self) -> None:
        """Leave out the oldest prompts, each with all of its changes, and what later changes have replaced."""
        left = LARGEST_LOG_BYTES // 2
        prompts: list[list[bytes]] = []
        for changes in reversed(self.read()):
            # The latest prompt stays in any case: it may still change files.
            lines = _lines(changes, left if not prompts else LARGEST_LOG_BYTES)
            left -= sum(map(len, lines))
            if prompts and left < 0:
                break
            prompts.insert(0, lines)
        try:
            write_text(self._path, b"".join(line for lines in prompts for line in lines).decode())
        except StoreError as error:
            log.error("cannot shorten %s: %s", self._path, error)


def _lines(changes: Changes, left: int) -> list[bytes]:
    """Return the lines of a prompt; contents for which no bytes are ``left`` are not kept."""
    lines: list[bytes] = []
    for change in changes.files.values():
        line = _line(changes.interaction_id, changes.prompt, change)
        if len(line) > left:
            line = _line(changes.interaction_id, changes.prompt, replace(change, kept=False))
        left -= len(line)
        lines.append(line)
    return lines


def _line(interaction_id: str, prompt: str, change: FileChange) -> bytes:
    record = {
        "interaction": interaction_id,
        "prompt": prompt,
        "path": _encode(os.fsencode(change.path)),
        "before": _encode(change.before) if change.kept else None,
        "after": _encode(change.after) if change.kept else None,
        "hash": change.after_hash,
    }
    return orjson.dumps(record) + b"\n"


def _add(found: dict[str, Changes], record: dict[str, Any]) -> None:
    path = Path(os.fsdecode(b64decode(record["path"])))
    changes = found.setdefault(record["interaction"], Changes(record["interaction"], record["prompt"], {}))
    before, after = record["before"], record["after"]
    first = changes.files.get(path)
    kept = after is not None
    changes.files[path] = FileChange(
        path,
        first.before if first is not None else (b64decode(before) if before is not None else None),
        b64decode(after) if kept else b"",
        record["hash"],
        kept and (first is None or first.kept),
    )


def _encode(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()
