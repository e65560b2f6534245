"""Tell unsaved changes in an editor's buffers from buffers that are older than the file on the disk.

Commands change files, and not every editor loads a changed file again. An edit of such a buffer would undo the
change of the command.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct

SLACK_NS: Final = 20_000_000
"""The times of files are coarser than the clock, and lag behind."""

BufferState: TypeAlias = Literal["saved", "unsaved", "conflict"]
"""``saved``: the file on the disk counts. ``conflict``: a tool has changed the file, and the buffer has other text
that may be unsaved."""


class _File(Struct):
    """Digests of the texts that the buffer may have without unsaved changes, the latest text on the disk last."""

    texts: list[bytes]
    conflict: bool


class BufferHistory:
    """The earlier texts of the files of one session that an editor was asked for, and the times of tool calls."""

    def __init__(self) -> None:
        self._files: dict[Path, _File] = {}
        self._running = 0
        self._began_ns: int | None = None
        self._past: list[tuple[int, int]] = []

    def begin_call(self) -> None:
        """Record the beginning of a tool call that may change any file."""
        self._running += 1
        if self._began_ns is None:
            self._began_ns = time.time_ns()

    def end_call(self, *, continues: bool) -> None:
        """Record the end of a tool call; ``continues`` is set if a command still runs in the background."""
        self._running -= 1
        if self._began_ns is not None and not self._running and not continues:
            self._past.append((self._began_ns, time.time_ns()))
            self._began_ns = None

    def judge(self, path: Path, saved: str, buffer: str, changed_ns: Iterable[int]) -> BufferState:
        """Compare the text of a buffer with the text ``saved`` on the disk, and remember the latter.

        ``changed_ns`` are the times at which the file was changed.
        """
        disk, text = _digest(saved), _digest(buffer)
        if disk == text:
            self._files[path] = _File([disk], conflict=False)
            return "saved"
        file = self._files.setdefault(path, _File([], conflict=False))
        if disk not in file.texts[-1:]:
            file.texts.append(disk)
            # Without a call, the user has saved the buffer, and changed it again.
            file.conflict = file.conflict or self._is_in_call(changed_ns)
        if text in file.texts:
            return "saved"
        return "conflict" if file.conflict else "unsaved"

    def wrote(self, path: Path, saved: str, unsaved: str | None) -> None:
        """Record that a tool has written the text ``saved``, made from the disk or from an ``unsaved`` buffer."""
        file = self._files.setdefault(path, _File([], conflict=False))
        file.texts += [_digest(text) for text in (unsaved, saved) if text is not None]

    def _is_in_call(self, changed_ns: Iterable[int]) -> bool:
        running = [(self._began_ns, time.time_ns())] if self._began_ns is not None else []
        return any(
            began - SLACK_NS <= changed <= ended
            for changed in changed_ns
            for began, ended in (*self._past, *running)
        )


def same_text(one: str, other: str) -> bool:
    """Return whether two texts are the same apart from what editors convert."""
    return _digest(one) == _digest(other)


def _digest(text: str) -> bytes:
    # Some editors convert line ends, leave out the byte order mark, or add or leave out the last newline.
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
