"""Count the changed files of a repository from git's own index, without running git or obeying its settings.

The index has the size and the time of each file as git last saw it:
https://git-scm.com/docs/index-format
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import time
from pathlib import Path
from typing import Final

from jumpseat.system.regular_files import read_whole

LARGEST_INDEX_BYTES: Final = 4 * 1024 * 1024
"""That of some 40,000 files."""
MOST_HASHED_BYTES: Final = 4 * 1024 * 1024
"""Bytes of files with a new time and the old size that are compared by their contents."""

_ENTRY: Final = struct.Struct(">10I20sH")
_VALID: Final = 0x8000
_EXTENDED: Final = 0x4000
_NAME_LENGTH: Final = 0x0FFF
_SKIPPED: Final = 0x4000
"""``skip-worktree``, among the extended flags."""


class UnknownIndexError(ValueError):
    """The index is of a kind that is not read here, or counting would take too long."""


def count_changed(root: Path, git_folder: Path, until_s: float) -> int:
    """Return the number of tracked files in ``root`` that differ from the index; untracked files do not count.

    ``until_s`` is the time of :func:`time.monotonic` at which the count is given up.

    Raises:
        OSError: the index cannot be read.
        UnknownIndexError: the files cannot be counted.
    """
    data = read_whole(git_folder / "index", LARGEST_INDEX_BYTES)
    if data[:4] != b"DIRC" or int.from_bytes(data[4:8]) not in (2, 3):
        raise UnknownIndexError
    changed, hashed, at = 0, 0, 12
    prefix = f"{root}{os.sep}".encode("utf-8", "surrogateescape")
    try:
        for _ in range(int.from_bytes(data[8:12])):
            if time.monotonic() > until_s:
                raise UnknownIndexError
            _, _, seconds, nanos, _, _, mode, _, _, size, digest, flags = _ENTRY.unpack_from(data, at)
            start = at + _ENTRY.size
            skipped = bool(flags & _VALID)
            if flags & _EXTENDED:
                skipped = skipped or bool(int.from_bytes(data[start : start + 2]) & _SKIPPED)
                start += 2
            end = data.index(b"\0", start)
            if flags & _NAME_LENGTH != min(end - start, _NAME_LENGTH):
                # Another length of digests, or a broken file.
                raise UnknownIndexError
            at = at + (end - at) // 8 * 8 + 8
            if skipped or not stat.S_ISREG(mode):
                continue
            path = prefix + data[start:end]
            try:
                found = os.lstat(path)
            except OSError:
                changed += 1
                continue
            if not stat.S_ISREG(found.st_mode) or found.st_size & 0xFFFFFFFF != size:
                changed += 1
            elif (found.st_mtime_ns // 10**9, found.st_mtime_ns % 10**9 if nanos else 0) != (seconds, nanos):
                hashed += size
                if hashed > MOST_HASHED_BYTES:
                    raise UnknownIndexError
                changed += _digest(path, size) != digest
    except (struct.error, ValueError):
        raise UnknownIndexError from None
    return changed


def _digest(path: bytes, size: int) -> bytes:
    """Return the name of a file's contents in git."""
    content = read_whole(Path(os.fsdecode(path)), size)
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).digest()
