"""Patches of several files: the changes that a patch means, the question about them, and making all or none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from msgspec import Struct

from jumpseat.edits.engine import Refused
from jumpseat.edits.hunks import apply_hunks
from jumpseat.edits.patches import FilePatch, PatchError, named_files, parse_patch
from jumpseat.errors import StoreError
from jumpseat.tools.editable import read_editable
from jumpseat.tools.files import problem, readable, unified_diff
from jumpseat.tools.tool import Prepared, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import FileContent, ProposedFileEdit, WritePermission

MOST_FILES: Final = 200
"""Limit of the files of one patch."""

LARGEST_SHOWN: Final = 256 * 1024
"""Length of the texts that a question about the patch contains beside the diff, in characters."""

MOST_DESCRIBED: Final = 100_000
"""Length of the beginning of a patch whose files its description names, in characters."""

UNDO_WITHIN_S: Final = 10.0
"""Time to restore the files if the patch is interrupted."""


class _Change(Struct):
    """The change of one file. ``name`` is as in the patch, ``path`` absolute; ``old`` and ``new`` are texts.

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


async def run_patch(ctx: ToolContext, text: str, shown: Sequence[_Change] = ()) -> ToolOutcome:
    plan = await _make_plan(ctx, text)
    if isinstance(plan, ToolOutcome):
        return plan
    contents = {change.path: change.old for change in shown}
    for change in plan:
        if change.new is None and contents.get(change.path, change.old) != change.old:
            return failure(_without_change(f"{change.name} has changed since permission was asked.", plan))
    begun: list[_Change] = []
    try:
        for change in plan:
            begun.append(change)
            await _make(ctx, change)
    except (OSError, ValueError, StoreError) as error:
        failed = begun.pop()
        await _take_back(ctx, begun)
        outcome = failure(str(error)) if isinstance(error, StoreError) else problem(failed.name, error)
        return failure(_without_change(outcome.text, plan))
    except BaseException:
        await _take_back(ctx, begun)
        raise
    diff = await anyio.to_thread.run_sync(_diff, plan)
    # A moved file is one change to the model.
    moved = {change.moved_from for change in plan}
    told = [change for change in plan if change.new is not None or change.name not in moved]
    return ToolOutcome("\n".join(line for change in told for line in (change.done(), *change.notes)), detail=diff)


async def _make(ctx: ToolContext, change: _Change) -> None:
    """Make a change of a file.

    Raises:
        OSError, ValueError, StoreError: the file cannot be changed.
    """
    if change.new is None:
        await ctx.files.remove(change.path)
        return
    data = change.new.encode("utf-8", "surrogateescape")
    if ctx.virtual_files is not None and ctx.is_virtual(change.name):
        await ctx.virtual_files.save(change.name, data)
    elif change.old is None:
        await ctx.files.create(change.path, data, change.mode)
    else:
        await ctx.files.replace(change.path, data, change.mode or 0)


async def _take_back(ctx: ToolContext, begun: Sequence[_Change]) -> None:
    """Restore the files of changes, of which the last one may not have been made."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(UNDO_WITHIN_S):
        for change in reversed(begun):
            back = _Change(change.name, change.path, change.new, change.old, change.mode)
            try:
                if back.new is not None or await _is_as_made(ctx, change):
                    await _make(ctx, back)
            except (OSError, ValueError, StoreError):
                # The other files can still be restored.
                continue


async def _is_as_made(ctx: ToolContext, change: _Change) -> bool:
    """Return whether a file on the disk has the text that a change gave it, and not one of somebody else.

    Raises:
        OSError, ValueError: the file cannot be read.
    """
    if ctx.is_virtual(change.name):
        return False
    data = await anyio.to_thread.run_sync(ctx.files.read, change.path)
    return data == (change.new or "").encode("utf-8", "surrogateescape")


# --- the changes that a patch means -----------------------------------------------------------------------------


async def _make_plan(ctx: ToolContext, text: str) -> list[_Change] | ToolOutcome:
    """Return the changes, deletions last, or a failure if one of them cannot be made."""
    try:
        patches = await anyio.to_thread.run_sync(parse_patch, text)
    except PatchError as error:
        return failure(str(error))
    if len(patches) > MOST_FILES:
        return failure(f"The patch changes {len(patches)} files. Change at most {MOST_FILES} at a time.")
    plan = _Plan(ctx)
    for patch in patches:
        refused = await plan.add(patch)
        if refused is not None:
            return failure(_without_change(refused.text, patches))
    if not plan.changes:
        return failure("The patch changes nothing: it deletes what it creates.")
    return sorted(plan.changes.values(), key=lambda change: change.new is None)


def _without_change(text: str, files: Sequence[object]) -> str:
    return f"{text}\nNo file was changed." if len(files) > 1 else text


class _Plan:
    """The changes of a patch by the places of the files, as if those before had been made."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self.changes: dict[str, _Change] = {}

    async def add(self, patch: FilePatch) -> ToolOutcome | None:
        """Add a change; return a failure if it cannot be made."""
        match patch.action:
            case "add":
                return await self._create(patch)
            case "delete":
                return await self._delete(patch)
            case "update":
                return await self._update(patch)

    async def _create(
        self, patch: FilePatch, moved: _Change | None = None, text: str | None = None
    ) -> ToolOutcome | None:
        name = patch.path if moved is None else patch.move_to or ""
        place = await self._place(name)
        known = self.changes.get(place)
        if known is not None:
            exists = known.new is not None
        else:
            exists = await self._exists(name)
            if isinstance(exists, ToolOutcome):
                return exists
        if exists:
            how = "Update the file, or choose another path." if moved is None else "Choose another path."
            return failure(f"Path {name} already exists. {how}")
        new = patch.text if text is None else text
        try:
            new.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return failure(f"The text of {name} contains an unpaired surrogate. Write the character itself.")
        change = _Change(name, self._ctx.resolve(name), None, new)
        if moved is not None:
            change.mode, change.moved_from, change.notes = moved.mode, moved.name, moved.notes
        if known is not None:
            # The file was deleted by the same patch.
            change.old, change.mode = known.old, known.mode
        self.changes[place] = change
        return None

    async def _exists(self, name: str) -> bool | ToolOutcome:
        ctx = self._ctx
        try:
            if ctx.virtual_files is not None and ctx.is_virtual(name):
                return await ctx.virtual_files.load(name) is not None
            return await anyio.to_thread.run_sync(_exists, ctx.resolve(name), name)
        except StoreError as error:
            return failure(str(error))
        except (OSError, ValueError) as error:
            return problem(name, error)

    async def _delete(self, patch: FilePatch) -> ToolOutcome | None:
        change = await self._open(patch.path, deletes=True)
        if isinstance(change, ToolOutcome):
            return change
        self._remove(await self._place(patch.path), change)
        return None

    def _remove(self, place: str, change: _Change) -> None:
        if change.old is None:
            # The file is a new one of the same patch.
            del self.changes[place]
        else:
            self.changes[place] = _Change(change.name, change.path, change.old, None, change.mode)

    async def _update(self, patch: FilePatch) -> ToolOutcome | None:
        change = await self._open(patch.path, deletes=patch.move_to is not None)
        if isinstance(change, ToolOutcome):
            return change
        result = await anyio.to_thread.run_sync(apply_hunks, change.new or "", patch.hunks, patch.path)
        if isinstance(result, Refused):
            return failure(result.reason)
        change.notes = (*change.notes, *(f"  {note}" for note in result.notes))
        place = await self._place(patch.path)
        if patch.move_to is None or await self._place(patch.move_to) == place:
            change.new = result.text
            self.changes[place] = change
            return None
        refused = await self._create(patch, change, result.text)
        if refused is None:
            self._remove(place, change)
        return refused

    async def _open(self, name: str, *, deletes: bool) -> _Change | ToolOutcome:
        """Return the change that leaves a file as it is so far, or a failure if it cannot be changed."""
        known = self.changes.get(await self._place(name))
        if known is not None:
            return known if known.new is not None else failure(f"Path {name} is deleted by the same patch.")
        path = self._ctx.resolve(name)
        if deletes and self._ctx.is_virtual(name):
            return failure(f"{name} cannot be deleted or moved.")
        if deletes and await anyio.to_thread.run_sync(os.path.islink, path):
            return failure(f"{name} is a symbolic link. Delete or move it with bash.")
        found = await read_editable(self._ctx, name)
        if isinstance(found, ToolOutcome):
            return found
        return _Change(name, path, found.text, found.text, found.mode)

    async def _place(self, name: str) -> str:
        """Return where a file is, whatever the patch calls it."""
        if self._ctx.is_virtual(name):
            return name
        try:
            return str(await anyio.to_thread.run_sync(self._ctx.files.place, self._ctx.resolve(name)))
        except (OSError, ValueError):
            return name


def _exists(path: Path, name: str) -> bool | ToolOutcome:
    """Return whether there is something at a path, or a failure if nothing can be created there."""
    if os.path.lexists(path):
        return True
    above = next(folder for folder in path.parents if os.path.lexists(folder))
    return False if above.is_dir() else failure(f"{above} is a file, so {name} cannot be created in it.")


# --- the question -----------------------------------------------------------------------------------------------


def _diff(plan: Sequence[_Change]) -> str:
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


async def prepare_patch(ctx: ToolContext, text: str) -> Prepared | ToolOutcome:
    plan = await _make_plan(ctx, text)
    if isinstance(plan, ToolOutcome):
        names = await anyio.to_thread.run_sync(named_files, text)
        # Without names, there is no file that the failure could say something about.
        if not names or any(ctx.is_virtual(name) for name in names):
            return plan
        request = _request(text, [_Change(name, ctx.resolve(name), "", "") for name in names], "", contents=False)
        return Prepared(request, partial(run_patch, ctx, text), refusal=plan)
    diff = await anyio.to_thread.run_sync(_diff, plan)
    size = sum(len(text) for change in plan for text in (change.old, change.new) if text is not None)
    request = _request(text, plan, diff, contents=size <= LARGEST_SHOWN)
    return Prepared(request, partial(run_patch, ctx, text, plan))


def _request(patch: str, plan: Sequence[_Change], diff: str, *, contents: bool) -> WritePermission:
    def side(change: _Change, text: str | None) -> FileContent | None:
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
        intention=describe_patch(patch),
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


def describe_patch(text: str) -> str:
    """Describe in a few words, for the user, what a patch is about to do."""
    names = named_files(text[:MOST_DESCRIBED])
    return f"Change {', '.join(names[:3])}{' and more' if len(names) > 3 else ''}" if names else "Apply a patch"
