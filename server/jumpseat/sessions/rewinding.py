"""Rewinding a session: the prompts to which it can go back, the files that this changes, and the rewind itself.

Only files that are as the session left them are restored. Files come first, then the conversation; if a step fails,
the files become again as they were.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

import anyio
import anyio.to_thread
from msgspec import Struct

from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.sessions.file_changes import Restorer, current_content, diff_of, shown
from jumpseat.sessions.registry import SessionRegistry
from jumpseat.store.session.file_changes import Changes, FileChange, joined
from jumpseat.system.log_fields import fields
from jumpseat.tools.files import is_binary
from jumpseat_protocol.history import RewindFilePreview, RewindPoint, RewindResult, SkippedFile

log = logging.getLogger(__name__)

WITH_FILES: Final = "conversation-and-files"
MODES: Final = ("conversation", WITH_FILES)

ChangeType: TypeAlias = Literal["created", "modified", "deleted"]


class PromptInLog(Struct, frozen=True):
    """A prompt in the log of a session; ``timestamp`` is ISO 8601."""

    event_id: str
    text: str
    timestamp: str
    is_continuation: bool


class History:
    """The prompts of a session and the changes of files after each of them."""

    def __init__(self, prompts: Sequence[PromptInLog], changes: Mapping[str, Changes]) -> None:
        self.prompts = prompts
        self._changes = changes

    @classmethod
    async def read(cls, registry: SessionRegistry, session: Session) -> History:
        """Read the history of a session.

        Raises:
            StoreError: the log cannot be read.
        """
        storage = registry.storage(session)

        def read() -> History:
            prompts = (record for record in storage.log.read().records if record["type"] == "user.message")
            records = session.services.secrets.mask_records(prompts)
            changes = (
                storage.changes.after_messages() if session.settings.options.enable_file_change_tracking else {}
            )
            return cls(list(_prompts(records)), changes)

        return await anyio.to_thread.run_sync(read)

    def since(self, event_id: str) -> list[str]:
        """Return the event ids of a prompt and of all later ones.

        Raises:
            InvalidRequestError: there is no such prompt.
        """
        ids = [prompt.event_id for prompt in self.prompts]
        if event_id not in ids:
            raise InvalidRequestError(f"Rewind event {event_id[:100]!r} is not a current root user turn")
        return ids[ids.index(event_id) :]

    def changed(self, event_ids: Iterable[str]) -> list[FileChange]:
        """Return the files that differ after these prompts from before, in the order of their first changes."""
        found = joined(changes for one in event_ids if (changes := self._changes.get(one)) is not None)
        return [change for change in found.values() if change.is_effective]

    def points(self) -> list[RewindPoint]:
        """Return the points of a rewind. Compares files, so it may take a moment."""
        points: list[RewindPoint] = []
        for place, prompt in enumerate(self.prompts):
            own = self.changed([prompt.event_id])
            files = self.changed(later.event_id for later in self.prompts[place:])
            counts = [count_lines(change) for change in own]
            points.append(
                RewindPoint(
                    event_id=prompt.event_id,
                    user_message=prompt.text,
                    timestamp=prompt.timestamp,
                    can_restore_files=any(change.kept and not change.broken for change in files),
                    file_count=len(files),
                    turn_changed_files=bool(own),
                    lines_added=sum(added for added, _ in counts),
                    lines_removed=sum(removed for _, removed in counts),
                    is_autopilot_continuation=prompt.is_continuation,
                )
            )
        return points

    def preview(self, event_id: str) -> list[RewindFilePreview]:
        """Return the changes that a rewind to a prompt takes back, by path. Compares files.

        Raises:
            InvalidRequestError: there is no such prompt.
        """
        files: list[RewindFilePreview] = []
        for change in sorted(self.changed(self.since(event_id)), key=lambda change: change.path):
            added, removed = count_lines(change)
            files.append(
                RewindFilePreview(
                    path=shown(change.path),
                    change_type=type_of(change),
                    lines_added=added,
                    lines_removed=removed,
                )
            )
        return files


async def rewind(registry: SessionRegistry, session: Session, event_id: str, mode: str) -> RewindResult:
    """Remove a prompt and all that follows from a session, and with ``conversation-and-files`` restore the files.

    Raises:
        InvalidRequestError: the mode is unknown, or there is no such prompt.
        StoreError: the log cannot be read.
    """
    if mode not in MODES:
        raise InvalidRequestError(
            f"Invalid rewind mode {mode[:100]!r}; expected 'conversation' or 'conversation-and-files'"
        )
    if session.working or session.queue.is_held:
        return RewindResult(outcome="session-busy")
    if mode == WITH_FILES and not session.settings.options.enable_file_change_tracking:
        return RewindResult(outcome="file-change-tracking-disabled")
    # Prompts that arrive meanwhile continue the conversation that is left.
    with session.queue.held():
        history = await History.read(registry, session)
        removed = history.since(event_id)
        changes = history.changed(removed) if mode == WITH_FILES else []
        work = Restoration(Restorer(registry, session, changes))
        await work.plan(changes)
        # A client that hangs up must not leave the files and the conversation of different times.
        result = RewindResult(outcome="truncation-failed")
        with anyio.CancelScope(shield=True):
            result = await _apply(registry, session, event_id, removed, work)
    log.info("session rewound", extra=fields(session=session.id, outcome=result.outcome, mode=mode))
    return result


async def _apply(
    registry: SessionRegistry, session: Session, event_id: str, removed: Sequence[str], work: Restoration
) -> RewindResult:
    try:
        await work.restore()
    except (OSError, ValueError) as error:
        return await work.rolled_back(f"a file cannot be restored: {error}")
    result = RewindResult(outcome="success", restored_files=work.restored, skipped_files=work.skipped)
    try:
        result.events_removed = registry.truncate(session, event_id)
    except (StoreError, InvalidRequestError) as error:
        if not work.restored:
            return RewindResult(outcome="truncation-failed", skipped_files=work.skipped, error=str(error))
        return await work.rolled_back(str(error))
    try:
        registry.drop_checkpoints(session)
    except StoreError as error:
        result.outcome, result.error = "checkpoint-cleanup-failed", str(error)
    try:
        await anyio.to_thread.run_sync(registry.storage(session).changes.forget, removed)
    except StoreError as error:
        result.outcome, result.error = "snapshot-prune-failed", str(error)
    return result


class Restoration:
    """The work on the files of one rewind: plan it, do it, and take it back if a later step fails."""

    def __init__(self, restorer: Restorer) -> None:
        self._restorer = restorer
        self._planned: list[tuple[FileChange, bytes | None]] = []
        self._done: list[tuple[FileChange, bytes | None]] = []
        self.skipped: list[SkippedFile] = []

    @property
    def restored(self) -> list[str]:
        """Return the paths of the restored files."""
        return [shown(change.path) for change, _ in self._done]

    async def plan(self, changes: Iterable[FileChange]) -> None:
        """Decide which files can be restored: those that only the session has changed."""
        for change in changes:
            content = await current_content(self._restorer.files, change.path) if change.kept else None
            if not change.kept:
                self.skipped.append(SkippedFile(path=shown(change.path), reason="skipped-capture"))
            elif change.broken or not change.is_left_as(content):
                self.skipped.append(SkippedFile(path=shown(change.path), reason="user-modified"))
            else:
                self._planned.append((change, content))

    async def restore(self) -> None:
        """Write the planned files.

        Raises:
            OSError: a file cannot be written.
            ValueError: a path is invalid.
        """
        for change, content in self._planned:
            await self._restorer.write(change.path, change.before, change.mode)
            self._done.append((change, content))

    async def rolled_back(self, error: str) -> RewindResult:
        """Make the files again as they were; return the outcome of the rewind that failed with ``error``."""
        left: list[str] = []
        for change, content in reversed(self._done):
            try:
                await self._restorer.write(change.path, content)
            except (OSError, ValueError) as problem:
                log.error("cannot roll a file back: %s", problem)
                left.append(shown(change.path))
        return RewindResult(
            outcome="rollback-incomplete" if left else "files-rolled-back",
            restored_files=left,
            skipped_files=self.skipped,
            error=error,
        )


def type_of(change: FileChange) -> ChangeType:
    """Return the kind of a change."""
    if change.after_hash is None:
        return "deleted"
    return "created" if change.is_new else "modified"


def count_lines(change: FileChange) -> tuple[int, int]:
    """Return the numbers of added and removed lines; 0 for binary files and unknown contents."""
    if not change.kept or has_binary(change):
        return 0, 0
    lines = diff_of(change).split("\n")[2:]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def has_binary(change: FileChange) -> bool:
    """Return whether one of the contents is no text."""
    return any(is_binary(content) for content in (change.before, change.after) if content)


def _prompts(records: Iterable[dict[str, Any]]) -> Iterable[PromptInLog]:
    for record in records:
        data, event_id = record.get("data"), record.get("id")
        if record["type"] != "user.message" or record.get("agentId") is not None or not isinstance(data, dict):
            continue
        values = cast("dict[str, Any]", data)
        if isinstance(event_id, str) and (values.get("source") is None or values.get("interactionId") is not None):
            yield PromptInLog(
                event_id,
                str(values.get("content", "")),
                str(record.get("timestamp", "")),
                values.get("isAutopilotContinuation") is True,
            )
