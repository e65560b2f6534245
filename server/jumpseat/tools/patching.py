"""Patches of several files: the changes that a patch means, the question about them, and making all or none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio.to_thread
from msgspec.structs import replace

from jumpseat.errors import StoreError
from jumpseat.tools.editable import does_not_fit, read_editable
from jumpseat.tools.edits.engine import Refused
from jumpseat.tools.edits.hunks import apply_hunks
from jumpseat.tools.edits.patches import FilePatch, PatchError, named_files, parse_patch
from jumpseat.tools.files import folder_there, problem
from jumpseat.tools.planned_changes import PlannedChange, diff_of, make_all, question_about, without_change
from jumpseat.tools.tool import Prepared, ToolContext, ToolOutcome, failure, impossible

MOST_FILES: Final = 200
"""Limit of the files of one patch."""

MOST_DESCRIBED: Final = 100_000
"""Length of the beginning of a patch whose files its description names, in characters."""


async def run_patch(ctx: ToolContext, text: str) -> ToolOutcome:
    plan = await _make_plan(ctx, text)
    return plan if isinstance(plan, ToolOutcome) else await _run(ctx, plan)


async def prepare_patch(ctx: ToolContext, text: str) -> Prepared | ToolOutcome:
    plan = await _make_plan(ctx, text)
    if isinstance(plan, ToolOutcome):
        names = await anyio.to_thread.run_sync(named_files, text)
        # The model may read virtual files unasked.
        files = [PlannedChange(name, ctx.resolve(name), "", "") for name in names if not ctx.is_virtual(name)]
        return impossible(question_about(describe_patch(text), files, ""), plan) if files else plan
    diff = await anyio.to_thread.run_sync(diff_of, plan)
    return Prepared(question_about(describe_patch(text), plan, diff), partial(_run, ctx, plan))


async def _run(ctx: ToolContext, plan: Sequence[PlannedChange]) -> ToolOutcome:
    refused = await make_all(ctx, plan)
    if refused is not None:
        return refused
    diff = await anyio.to_thread.run_sync(diff_of, plan)
    # A moved file is one change to the model.
    moved = {change.moved_from for change in plan}
    told = [change for change in plan if change.new is not None or change.name not in moved]
    return ToolOutcome("\n".join(line for change in told for line in (change.done(), *change.notes)), detail=diff)


def describe_patch(text: str) -> str:
    """Describe in a few words, for the user, what a patch is about to do."""
    names = named_files(text[:MOST_DESCRIBED])
    return f"Change {', '.join(names[:3])}{' and more' if len(names) > 3 else ''}" if names else "Apply a patch"


# --- the changes that a patch means -----------------------------------------------------------------------------


async def _make_plan(ctx: ToolContext, text: str) -> list[PlannedChange] | ToolOutcome:
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
            withheld = refused.withheld and without_change(refused.withheld, patches)
            return replace(refused, text=without_change(refused.text, patches), withheld=withheld)
    if not plan.changes:
        return failure("The patch changes nothing: it deletes what it creates.")
    return sorted(plan.changes.values(), key=lambda change: change.new is None)


class _Plan:
    """The changes of a patch by the places of the files, as if those before had been made."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self.changes: dict[str, PlannedChange] = {}

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
        self, patch: FilePatch, moved: PlannedChange | None = None, text: str | None = None
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
        change = PlannedChange(name, self._ctx.resolve(name), None, new)
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
                there = await ctx.virtual_files.load(name)
                return folder_there(name) if isinstance(there, list) else there is not None
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

    def _remove(self, place: str, change: PlannedChange) -> None:
        if change.old is None:
            # The file is a new one of the same patch.
            del self.changes[place]
        else:
            self.changes[place] = PlannedChange(change.name, change.path, change.old, None, change.mode)

    async def _update(self, patch: FilePatch) -> ToolOutcome | None:
        change = await self._open(patch.path, deletes=patch.move_to is not None)
        if isinstance(change, ToolOutcome):
            return change
        result = await anyio.to_thread.run_sync(apply_hunks, change.new or "", patch.hunks, patch.path)
        if isinstance(result, Refused):
            return failure(result.reason, withheld=does_not_fit(patch.path))
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

    async def _open(self, name: str, *, deletes: bool) -> PlannedChange | ToolOutcome:
        """Return the change that leaves a file as it is so far, or a failure if it cannot be changed."""
        known = self.changes.get(await self._place(name))
        if known is not None:
            return known if known.new is not None else failure(f"Path {name} is deleted by the same patch.")
        path = self._ctx.resolve(name)
        if deletes and not self._ctx.is_virtual(name) and await anyio.to_thread.run_sync(os.path.islink, path):
            return failure(f"{name} is a symbolic link. Delete or move it with bash.")
        found = await read_editable(self._ctx, name)
        if isinstance(found, ToolOutcome):
            return found
        return PlannedChange(name, path, found.text, found.text, found.mode)

    async def _place(self, name: str) -> str:
        """Return where a file is, whatever the patch calls it."""
        if self._ctx.is_virtual(name):
            return name
        try:
            return str(await anyio.to_thread.run_sync(self._ctx.files.place, self._ctx.resolve(name)))
        except (OSError, ValueError):
            return name


def _exists(path: Path, name: str) -> bool | ToolOutcome:
    """Return whether there is a file at a path, or a failure if none can be created there."""
    if os.path.lexists(path):
        return folder_there(name) if path.is_dir() else True
    above = next(folder for folder in path.parents if os.path.lexists(folder))
    return False if above.is_dir() else failure(f"{above} is a file, so {name} cannot be created in it.")
