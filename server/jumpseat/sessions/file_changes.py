"""The changes of files by a session's tools: record, show and undo them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio.to_thread

from jumpseat.agent.session.queue import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.store.file_changes import Changes, FileChange, FileChangeLog
from jumpseat.store.sessions import SessionStore
from jumpseat.tools.files import unified_diff
from jumpseat.tools.workspace_files import Files
from jumpseat_protocol.changes import ChangedFile, ChangedFileState

PROMPT_CHARS: Final = 100
"""Length of the beginning of a prompt that its changes are shown with."""
UNDO: Final = "undo"
"""The source of the message that tells the model about an undo."""


@dataclass(slots=True)
class Undone:
    """The outcome of an undo: the paths of the files that are as before ``prompt``, and of those ``left`` alone."""

    prompt: str
    undone: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])


def record_change(
    store: SessionStore, session: Session, prompt: Prompt, path: Path, before: bytes | None, after: bytes
) -> None:
    """Keep the change of a file in the session's folder."""
    title = " ".join(session.services.secrets.mask(prompt.text).split())[:PROMPT_CHARS]
    title = title.encode("utf-8", "replace").decode()
    store.folder(session.id).changes.add(prompt.interaction_id, title, path, before, after)


async def describe(session: Session, changes: Changes) -> list[ChangedFile]:
    """Return the changed files of one prompt with their diffs."""
    files = Files(session.clients.files())
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
    files = Files(session.clients.files())
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


async def _state(files: Files, change: FileChange) -> ChangedFileState:
    if not change.kept:
        return "not-kept"
    await files.open(change.path)
    try:
        content = await anyio.to_thread.run_sync(files.read, change.path)
    except (OSError, ValueError):
        content = None
    return "as-left" if change.is_left_as(content) else "changed-since"


async def _restore(files: Files, change: FileChange) -> bool:
    """Write the content before the change, or delete a new file; return whether that was possible."""
    try:
        if change.before is None:
            await anyio.to_thread.run_sync(files.delete, change.path)
        else:
            mode = (await anyio.to_thread.run_sync(os.stat, files.place(change.path))).st_mode
            await files.replace(change.path, change.before, mode)
    except (OSError, ValueError):
        return False
    return True


async def _diff(change: FileChange) -> str:
    if not change.kept:
        return ""
    before = None if change.before is None else change.before.decode("utf-8", "surrogateescape")
    after = change.after.decode("utf-8", "surrogateescape")
    return await anyio.to_thread.run_sync(unified_diff, str(change.path), before, after)
