"""Changes of files that are planned before permission is asked: the question, and making exactly what it shows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from msgspec import Struct

from jumpseat.errors import StoreError
from jumpseat.tools.editable import changed_since
from jumpseat.tools.files import problem, readable, unified_diff
from jumpseat.tools.tool import ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import FileContent, ProposedFileEdit, WritePermission

LARGEST_SHOWN: Final = 256 * 1024
"""Length of the texts that a question contains beside the diff, in characters."""

UNDO_WITHIN_S: Final = 10.0
"""Time to restore the files if the changes are interrupted."""


class PlannedChange(Struct):
    """The change of one file. ``name`` is as the model wrote it, ``path`` absolute; ``old`` and ``new`` are texts.

    ``old`` is ``None`` for a new file, ``new`` for a deleted one; a file that was moved here was ``moved_from``.
    """

    name: str
    path: Path
    old: str | None
    new: str | None
    mode: int | None = None
    moved_from: str | None = None
    notes: tuple[str, ...] = ()

    def done(self) -> str:
        """Describe the change as something that was done."""
        if self.moved_from is not None:
            return f"Moved {self.moved_from} to {self.name}."
        verb = "Created" if self.old is None else "Deleted" if self.new is None else "Changed"
        return f"{verb} {self.name}."


async def make_all(ctx: ToolContext, plan: Sequence[PlannedChange]) -> ToolOutcome | None:
    """Make all changes, or none: return a failure if a file has changed since the plan, or cannot be changed."""
    for change in plan:
        if (refused := await changed_since(ctx, change.name, change.old)) is not None:
            return failure(without_change(refused.text, plan))
    begun: list[PlannedChange] = []
    try:
        for change in plan:
            begun.append(change)
            await _make(ctx, change)
    except (OSError, ValueError, StoreError) as error:
        failed = begun.pop()
        await _take_back(ctx, begun)
        outcome = failure(str(error)) if isinstance(error, StoreError) else problem(failed.name, error)
        return failure(without_change(outcome.text, plan))
    except BaseException:
        await _take_back(ctx, begun)
        raise
    return None


def without_change(text: str, files: Sequence[object]) -> str:
    """Return a message about one of several files, which adds that all are as they were."""
    return f"{text}\nNo file was changed." if len(files) > 1 else text


async def _make(ctx: ToolContext, change: PlannedChange) -> None:
    """Make a change of a file.

    Raises:
        OSError, ValueError, StoreError: the file cannot be changed.
    """
    data = None if change.new is None else change.new.encode("utf-8", "surrogateescape")
    if ctx.virtual_files is not None and ctx.is_virtual(change.name):
        if data is None:
            await ctx.virtual_files.remove(change.name)
        else:
            await ctx.virtual_files.save(change.name, data)
    elif data is None:
        await ctx.files.remove(change.path)
    elif change.old is None:
        await ctx.files.create(change.path, data, change.mode)
    else:
        await ctx.files.replace(change.path, data, change.mode or 0)


async def _take_back(ctx: ToolContext, begun: Sequence[PlannedChange]) -> None:
    """Restore the files of changes, of which the last one may not have been made."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(UNDO_WITHIN_S):
        for change in reversed(begun):
            back = PlannedChange(change.name, change.path, change.new, change.old, change.mode)
            try:
                if back.new is not None or await _is_as_made(ctx, change):
                    await _make(ctx, back)
            except (OSError, ValueError, StoreError):
                # The other files can still be restored.
                continue


async def _is_as_made(ctx: ToolContext, change: PlannedChange) -> bool:
    """Return whether a new file has the text that a change gave it, and not one of somebody else.

    Raises:
        OSError, ValueError, StoreError: the file cannot be read.
    """
    if ctx.virtual_files is not None and ctx.is_virtual(change.name):
        data = await ctx.virtual_files.load(change.name)
    else:
        data = await anyio.to_thread.run_sync(ctx.files.read, change.path)
    return data == (change.new or "").encode("utf-8", "surrogateescape")


# --- the question -----------------------------------------------------------------------------------------------


def diff_of(plan: Sequence[PlannedChange]) -> str:
    """Return the unified diff of all changes."""
    moved = {change.moved_from: change for change in plan if change.moved_from is not None}
    sources = {change.name: change for change in plan if change.new is None}
    diffs: list[str] = []
    for change in plan:
        source = sources.get(change.moved_from or "")
        if change.new is None and change.name in moved:
            continue
        old_name = None if source is None else str(source.path)
        old = change.old if source is None else source.old
        diffs.append(unified_diff(str(change.path), old, change.new, old_name=old_name))
    return "".join(diffs)


def question_about(intention: str, plan: Sequence[PlannedChange], diff: str) -> WritePermission:
    """Return the permission that all changes together need."""
    size = sum(len(text) for change in plan for text in (change.old, change.new) if text is not None)
    contents = size <= LARGEST_SHOWN

    def side(change: PlannedChange, text: str | None) -> FileContent | None:
        if text is None:
            return None
        return FileContent(path=str(change.path), content=readable(text) if contents else None)

    sources = {change.name: change for change in plan if change.new is None}
    edits: list[ProposedFileEdit] = []
    for change in plan:
        source = sources.get(change.moved_from or "")
        before = side(change, change.old) if source is None else side(source, source.old)
        if change.new is not None or all(other.moved_from != change.name for other in plan):
            edits.append(ProposedFileEdit(before=before, after=side(change, change.new)))
    paths = [str(change.path) for change in plan]
    return WritePermission(
        intention=intention,
        # A client that judges by this name alone must not take the first file for all of them.
        file_name=_folder_of(paths),
        diff=diff,
        new_file_contents=readable(plan[0].new)
        if len(plan) == 1 and contents and plan[0].new is not None
        else None,
        file_edits=edits,
    )


def _folder_of(paths: list[str]) -> str:
    """Return the folder of several files, or the one file."""
    try:
        return os.path.commonpath(paths)
    except ValueError:
        # They are on different drives.
        return paths[0]
