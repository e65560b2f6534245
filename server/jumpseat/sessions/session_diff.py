"""The changes of files since a session first changed them, for ``session.workspaces.diff``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256

import anyio.to_thread
from msgspec.structs import replace

from jumpseat.agent.session.session import Session
from jumpseat.sessions.file_changes import current_content, diff_of, files_of, shown
from jumpseat.sessions.rewinding import History, has_binary, type_of
from jumpseat.store.project.git_diff import LARGEST_DIFF
from jumpseat.store.session.file_changes import FileChange
from jumpseat_protocol.workspaces import DiffContents, DiffFileChange

_TYPES = {"created": "added", "modified": "modified", "deleted": "deleted"}


async def session_changes(
    session: Session, history: History, *, ignore_whitespace: bool, include_contents: bool
) -> list[DiffFileChange]:
    """Compare files that the session has changed with their contents before, by path."""
    found = history.changed(prompt.event_id for prompt in history.prompts)
    files = files_of(session, found)
    changes: list[FileChange] = []
    for change in found:
        if change.kept:
            now = await current_content(files, change.path)
            digest = None if now is None else sha256(now).hexdigest()
            change = replace(change, after=now, after_hash=digest)
        if change.is_effective and not (ignore_whitespace and _differs_in_whitespace(change)):
            changes.append(change)
    root = str(session.settings.cwd)
    return await anyio.to_thread.run_sync(_to_wire, changes, root, include_contents)


def _to_wire(changes: Sequence[FileChange], root: str, include_contents: bool) -> list[DiffFileChange]:
    found: list[DiffFileChange] = []
    for change in changes:
        path = _relative(shown(change.path), root)
        diff = _patch(change, path)
        found.append(
            DiffFileChange.model_validate(
                {
                    "path": path,
                    "diff": diff or "",
                    "change_type": _TYPES[type_of(change)],
                    "is_truncated": True if diff is None else None,
                    "contents": _contents(change) if include_contents and diff is not None else None,
                }
            )
        )
    return sorted(found, key=lambda change: change.path)


def _relative(path: str, root: str) -> str:
    try:
        return os.path.relpath(path, root)
    except ValueError:
        # Another drive, on Windows.
        return path


def _patch(change: FileChange, path: str) -> str | None:
    """Return the change as git shows it, without a newline at the end; ``None`` if that is too long or unknown."""
    if not change.kept:
        return None
    header = f"diff --git a/{path} b/{path}\n"
    if has_binary(change):
        return f"{header}Binary files differ"
    patch = header + diff_of(change, path).rstrip("\n")
    return patch if len(patch) <= LARGEST_DIFF else None


def _contents(change: FileChange) -> DiffContents | None:
    if has_binary(change):
        return None
    before, after = (
        None if content is None else content.decode("utf-8", "replace") for content in (change.before, change.after)
    )
    return DiffContents(before=before, after=after)


def _differs_in_whitespace(change: FileChange) -> bool:
    """Return whether nothing but whitespace differs between two contents."""
    if not change.kept or change.before is None or change.after is None:
        return False
    return b"".join(change.before.split()) == b"".join(change.after.split())
