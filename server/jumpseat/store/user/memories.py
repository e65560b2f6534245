"""Memories on disk: ``memories/`` in the home folder, with one file per repository and one for the user.

A file is a log with one line per fact or vote, so that several processes can append to it. A memory's score is the
sum of its votes. Invalid lines are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import orjson
from msgspec.structs import replace

from jumpseat.agent.clock import utc_now
from jumpseat.agent.memories import Memory, MemoryScope
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import StoreError
from jumpseat.store.session.files import write_text
from jumpseat.system.git import working_directory_context
from jumpseat.system.private_files import create_private_folder, owner_only

COMPACTED_BYTES: Final = 256 * 1024
"""Size above which a file is compacted: rewritten with one line per memory."""
LARGEST_BYTES: Final = 8 * 1024 * 1024
MAX_COMPACTED: Final = 200
"""Limit on the memories in a compacted file: those with the highest scores, the latest of equal ones."""


class MemoryStore:
    """The memories of the user and of repositories; ``by_default`` enables them for sessions without the option."""

    def __init__(self, home: Path, *, by_default: bool) -> None:
        self._root = home / "memories"
        self._by_default = by_default

    def enabled(self, settings: SessionSettings) -> bool:
        """Return whether memories are enabled for a session."""
        memory = settings.options.memory
        return self._by_default if memory is None else memory.enabled

    def repository(self, settings: SessionSettings) -> str | None:
        """Return the repository as ``owner/name``; see :class:`jumpseat.agent.memories.Memories`."""
        return working_directory_context(
            settings.cwd, host_git=settings.options.enable_host_git_operations
        ).repository

    def recall(self, settings: SessionSettings) -> list[Memory]:
        """Return the memories of the repository and of the user, sorted by score."""
        found = [
            memory for scope in ("repository", "user") for memory in self._read(self._path(settings, scope), scope)
        ]
        return sorted(found, key=lambda memory: -memory.score)

    def store(self, settings: SessionSettings, memory: Memory, reason: str) -> None:
        """Store a memory.

        Raises:
            StoreError: the file cannot be written.
        """
        self._write(settings, memory, {"subject": memory.subject, "citations": memory.citations}, 1, reason)

    def vote(self, settings: SessionSettings, memory: Memory, vote: int, reason: str) -> None:
        """Add a vote, 1 or -1, to a memory.

        Raises:
            StoreError: the file cannot be written.
        """
        self._write(settings, memory, {}, vote, reason)

    def _write(
        self, settings: SessionSettings, memory: Memory, more: dict[str, str], vote: int, reason: str
    ) -> None:
        path = self._path(settings, memory.scope)
        line = {"fact": memory.fact, **more, "vote": vote, "reason": reason, "at": utc_now()}
        try:
            create_private_folder(path.parent)
            # One write per line; a line that another process left torn is ended first.
            torn = path.is_file() and not _ends_with_newline(path)
            with open(path, "ab", buffering=0, opener=owner_only) as file:
                file.write((b"\n" if torn else b"") + orjson.dumps(line) + b"\n")
            if path.stat().st_size > COMPACTED_BYTES:
                self._compact(path, memory.scope)
        except OSError as error:
            raise StoreError(f"cannot write the memories: {error.strerror or error}") from None

    def _compact(self, path: Path, scope: MemoryScope) -> None:
        known = self._read(path, scope)
        known.reverse()
        best = sorted(known, key=lambda memory: -memory.score)[:MAX_COMPACTED]
        lines = [
            orjson.dumps(
                {
                    "fact": memory.fact,
                    "subject": memory.subject,
                    "citations": memory.citations,
                    "vote": memory.score,
                }
            ).decode()
            for memory in reversed(best)
        ]
        write_text(path, "\n".join(lines) + "\n")

    def _read(self, path: Path, scope: MemoryScope) -> list[Memory]:
        known: dict[str, Memory] = {}
        for line in _lines(path):
            fact, vote = line.get("fact"), line.get("vote")
            if not isinstance(fact, str) or not isinstance(vote, int):
                continue
            old = known.get(fact)
            if old is not None:
                known[fact] = replace(old, score=old.score + vote)
            elif vote > 0:
                texts = {name: text for name in ("subject", "citations") if isinstance(text := line.get(name), str)}
                known[fact] = Memory(fact, scope=scope, score=vote, **texts)
            if fact in known and known[fact].score <= 0:
                del known[fact]
        return list(known.values())

    def _path(self, settings: SessionSettings, scope: MemoryScope) -> Path:
        if scope == "user":
            return self._root / "user.jsonl"
        import hashlib

        context = working_directory_context(settings.cwd, host_git=settings.options.enable_host_git_operations)
        place = context.repository or context.git_root or str(settings.cwd)
        shown = re.sub(r"[^A-Za-z0-9.]+", "-", place).strip("-.")[-60:]
        digest = hashlib.sha256(os.fsencode(place)).hexdigest()[:12]
        return self._root / "repositories" / f"{shown}-{digest}.jsonl"


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            lines = file.read(LARGEST_BYTES).split(b"\n")
    except OSError:
        return
    for line in lines:
        try:
            value: Any = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield cast("dict[str, Any]", value)


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            file.seek(-1, os.SEEK_END)
        except OSError:
            return True
        return file.read(1) == b"\n"
