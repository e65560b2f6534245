"""The changes of files by a session's tools: record, show and undo them. ``rewinding.py`` goes back further."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import anyio.to_thread
from msgspec import Struct, field

from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.store.session.file_changes import Cause, Changes, FileChange, FileChangeLog, new_change
from jumpseat.tools.files import unified_diff
from jumpseat.tools.workspace_files import FileEdit, Files
from jumpseat_protocol.changes import ChangedFile, ChangedFileState

PROMPT_CHARS: Final = 100
"""Length of the beginning of a prompt that its changes are shown with."""
UNDO: Final = "undo"
"""The source of the message that tells the model about an undo."""


class Undone(Struct):
    """The outcome of an undo: the paths of the files that are as before ``prompt``, and of those ``left`` alone."""

    prompt: str
    undone: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])


def record_changes(log: FileChangeLog, session: Session, prompt: Prompt, edits: Iterable[FileEdit]) -> None:
    """Keep the changes of files with the session."""
    title = " ".join(session.services.secrets.mask(prompt.text).split())[:PROMPT_CHARS]
    title = title.encode("utf-8", "replace").decode()
    cause = Cause(prompt.interaction_id, title, session.history.latest_message_id)
    log.add(cause, map(_change_of, edits))


def _change_of(edit: FileEdit) -> FileChange:
    if edit.kept:
        return new_change(edit.path, edit.place, edit.before, edit.after, edit.mode)
    return FileChange(
        edit.path, edit.place, None, None, "" if edit.exists else None, False, not edit.existed, edit.mode
    )


async def describe(session: Session, changes: Changes) -> list[ChangedFile]:
    """Return the changed files of one prompt with their diffs."""
    files = files_of(session, changes.files.values())
    return [
        ChangedFile(path=str(change.path), state=await _state(files, change), diff=await _diff(change))
        for change in changes.files.values()
    ]


async def undo(session: Session, log: FileChangeLog) -> Undone | None:
    """Take back the changes of the latest prompt that has changes, and tell the model; ``None`` if there is none.

    Files that are not as the prompt left them are not touched. The next call takes back an earlier prompt.

    Raises:
        InvalidRequestError: a prompt is running.
    """
    if session.working:
        raise InvalidRequestError("a prompt is running, which may change files: wait or abort it first")
    known = await anyio.to_thread.run_sync(log.read)
    if not known:
        return None
    changes = known[-1]
    outcome = Undone(changes.prompt)
    files = files_of(session, changes.files.values())
    for change in changes.files.values():
        name = str(change.path)
        if await _state(files, change) == "as-left" and await _restore(files, change):
            outcome.undone.append(name)
        else:
            outcome.left.append(name)
    log.mark_undone(changes.interaction_id)
    if outcome.undone:
        names = ", ".join(repr(name) for name in outcome.undone)
        session.add_context(f"The user has undone your changes to these files: {names}", UNDO)
    return outcome


def files_of(session: Session, changes: Iterable[FileChange]) -> Files:
    """Return the files of a session. Those of ``changes`` are opened where they were changed; links are refused."""
    files = Files(session.clients.files())
    for change in changes:
        files.settle(change.path, change.place)
    return files


async def _state(files: Files, change: FileChange) -> ChangedFileState:
    if not change.kept:
        return "not-kept"
    return "as-left" if change.is_left_as(await current_content(files, change.path)) else "changed-since"


async def _restore(files: Files, change: FileChange) -> bool:
    """Restore the content before the change, or delete a new file; return whether that was possible."""
    try:
        await write_content(files, change.path, change.before, change.mode)
    except (OSError, ValueError):
        return False
    return True


async def current_content(files: Files, path: Path) -> bytes | None:
    """Return the content of a file, unsaved changes included; ``None`` if it cannot be read or does not exist."""
    await files.open(path)
    try:
        return await anyio.to_thread.run_sync(files.read, path)
    except (OSError, ValueError):
        return None


async def write_content(files: Files, path: Path, content: bytes | None, mode: int | None = None) -> None:
    """Give a file a content; ``None`` deletes it. A file that is created gets ``mode``, if that is known.

    Raises:
        OSError: the file cannot be changed.
        ValueError: the path is invalid.
    """
    if content is None:
        await anyio.to_thread.run_sync(files.delete, path)
    elif (present := await anyio.to_thread.run_sync(files.mode, path)) is not None:
        await files.replace(path, content, present)
    else:
        await files.create(path, content, mode)


async def _diff(change: FileChange) -> str:
    return await anyio.to_thread.run_sync(diff_of, change) if change.kept else ""


def diff_of(change: FileChange, name: str | None = None) -> str:
    """Return the unified diff of a change; ``name`` is shown in place of the path."""
    before = None if change.before is None else change.before.decode("utf-8", "surrogateescape")
    after = None if change.after is None else change.after.decode("utf-8", "surrogateescape")
    return unified_diff(name or str(change.path), before, after)
