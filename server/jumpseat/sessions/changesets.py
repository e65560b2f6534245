"""The files that a whole session or one of its prompts has changed: what is known of them, and taking them back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
import anyio.to_thread
from msgspec import Struct, field

from jumpseat.agent.session.session import Session
from jumpseat.errors import UnknownItemError
from jumpseat.sessions.file_changes import Undone, announce, diff_of, files_of, shown, state_of, take_back, undoing
from jumpseat.sessions.registry import SessionRegistry
from jumpseat.sessions.rewinding import count_lines, has_binary, type_of
from jumpseat.store.project.git_diff import LARGEST_DIFF, LARGEST_TOTAL
from jumpseat.store.session.file_changes import Changes, FileChange, FileChangeLog, joined
from jumpseat_protocol.changes import ChangedFileState, SetFile

Side: TypeAlias = Literal["before", "after"]

BROKEN = "was changed by somebody else between the changes"
"""Why a change is not taken back that would take back another one, too."""


class SideOfFile(Struct, frozen=True):
    """A file before or after a change; ``size`` in bytes and ``digest`` are ``None`` for contents not kept."""

    size: int | None
    digest: str | None


class FileInSet(Struct, frozen=True):
    """A changed file. A new one has no side before, a deleted one none after.

    ``added`` and ``removed`` count lines, 0 for binary files and contents that were not kept.
    """

    path: Path
    before: SideOfFile | None
    after: SideOfFile | None
    added: int
    removed: int


class Changesets(Struct):
    """The changesets of one session. A set is that of a prompt, by its interaction id, or ``None``: of all."""

    registry: SessionRegistry
    session: Session
    _counts: dict[tuple[Path, str | None, str | None], tuple[int, int]] = field(
        default_factory=dict[tuple[Path, str | None, str | None], tuple[int, int]]
    )

    @property
    def _log(self) -> FileChangeLog:
        return self.registry.storage(self.session).changes

    async def files(self, wanted: Collection[str | None]) -> dict[str | None, list[FileInSet]]:
        """Return the files of some sets, by path. Not to be called while a call of it runs."""

        def read() -> dict[str | None, list[FileInSet]]:
            known, counts = self._log.read(), self._counts
            self._counts = {}
            return {one: [self._file(change, counts) for change in _chosen(known, one)] for one in wanted}

        return await anyio.to_thread.run_sync(read)

    def _file(
        self, change: FileChange, counts: Mapping[tuple[Path, str | None, str | None], tuple[int, int]]
    ) -> FileInSet:
        before, after = _side(change, "before"), _side(change, "after")
        if not change.kept:
            return FileInSet(change.path, before, after, 0, 0)
        key = change.path, before and before.digest, change.after_hash
        # Comparing two texts takes longer than all else here.
        found = self._counts[key] = counts.get(key) or self._counts.get(key) or count_lines(change)
        return FileInSet(change.path, before, after, *found)

    async def described(self, wanted: str | None) -> list[SetFile]:
        """Return the files of a set with their diffs, by path."""
        changes = _chosen(await anyio.to_thread.run_sync(self._log.read), wanted)
        files = files_of(self.session, changes)
        states: list[ChangedFileState | None] = [
            "changed-since" if change.broken else await state_of(files, change) for change in changes
        ]
        return await anyio.to_thread.run_sync(_described, changes, states)

    async def content(
        self, wanted: str | None, path: Path, side: Side, *, call: tuple[str, str] | None = None
    ) -> bytes | None:
        """Return the content of a file before or after its change; ``None`` if it was not kept.

        With ``call``, an interaction and a call in it, the change is that by a tool call.

        Raises:
            UnknownItemError: there is no such file in the set, or none on this side.
        """

        def find() -> FileChange | None:
            if call is not None:
                return self._log.of_call(*call).get(path)
            return next((one for one in _chosen(self._log.read(), wanted) if one.path == path), None)

        change = await anyio.to_thread.run_sync(find)
        if change is None or _side(change, side) is None:
            raise UnknownItemError("changed file", shown(path)[:200])
        return change.before if side == "before" else change.after

    async def undo(self, wanted: str | None, path: Path | None = None) -> Undone:
        """Take back the changes of a set, or of one of its files, and tell the model.

        Files that are not as the changes left them stay, also those that were changed by others between two
        changes.

        Raises:
            InvalidRequestError: a prompt is running, or the session is rewound.
            UnknownItemError: there is no such file in the set.
        """
        with undoing(self.session):
            known = await anyio.to_thread.run_sync(self._log.read)
            chosen = [change for change in _chosen(known, wanted) if path in (None, change.path)]
            if path is not None and not chosen:
                raise UnknownItemError("changed file", shown(path)[:200])
            outcome = Undone(next((one.prompt for one in known if one.interaction_id == wanted), ""))
            outcome.left = {shown(change.path): BROKEN for change in chosen if change.broken}
            whole = [change for change in chosen if not change.broken]
            # A client that hangs up must not leave files of another time than the log.
            with anyio.CancelScope(shield=True):
                restored = await take_back(self.registry, self.session, whole, outcome)
                await anyio.to_thread.run_sync(self._forget, known, wanted, frozenset(restored))
        if chosen:
            announce(self.session, outcome)
        return outcome

    def _forget(self, known: Iterable[Changes], wanted: str | None, restored: Collection[Path]) -> None:
        for changes in known:
            if wanted not in (None, changes.interaction_id):
                continue
            undone = [path for path in changes.files if path in restored]
            if len(undone) == len(changes.files):
                self._log.mark_undone(changes.interaction_id)
            elif undone:
                self._log.mark_files_undone(changes.interaction_id, undone)


async def described_of_log(log: FileChangeLog, wanted: str | None) -> list[SetFile]:
    """Return the files of a set of a session that is not open, with their diffs, by path."""

    def read() -> list[SetFile]:
        changes = _chosen(log.read(), wanted)
        return _described(changes, [None] * len(changes))

    return await anyio.to_thread.run_sync(read)


def _described(changes: Sequence[FileChange], states: Sequence[ChangedFileState | None]) -> list[SetFile]:
    found = [_describe(change, state) for change, state in zip(changes, states, strict=True)]
    left = LARGEST_TOTAL
    for file in found:
        left -= len(file.diff)
        if left < 0:
            file.diff = ""
    return found


def _describe(change: FileChange, state: ChangedFileState | None) -> SetFile:
    is_text = change.kept and not has_binary(change)
    added, removed = count_lines(change) if is_text else (0, 0)
    diff = diff_of(change) if is_text else ""
    return SetFile(
        path=shown(change.path),
        change=type_of(change),
        state=state,
        added=added,
        removed=removed,
        diff=diff if len(diff) <= LARGEST_DIFF else "",
    )


def _chosen(known: Iterable[Changes], wanted: str | None) -> list[FileChange]:
    """Return the changes of a set that have an effect, by path."""
    found = joined(changes for changes in known if wanted in (None, changes.interaction_id))
    return sorted((change for change in found.values() if change.is_effective), key=lambda change: change.path)


def _side(change: FileChange, side: Side) -> SideOfFile | None:
    if change.is_new if side == "before" else change.after_hash is None:
        return None
    if not change.kept:
        return SideOfFile(None, change.after_hash if side == "after" else None)
    content = (change.before if side == "before" else change.after) or b""
    return SideOfFile(len(content), sha256(content).hexdigest() if side == "before" else change.after_hash)
