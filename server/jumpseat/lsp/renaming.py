"""Rename a symbol in all files: the edits of a language server, made like those of any other tool."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio.to_thread

from jumpseat.lsp.text_edits import TextEdit, edited
from jumpseat.tools.files import problem
from jumpseat.tools.planned_changes import PlannedChange, diff_of, make_all, question_about
from jumpseat.tools.tool import Prepared, ToolContext, ToolOutcome, failure

MOST_FILES: Final = 200


async def prepare_rename(
    ctx: ToolContext,
    intention: str,
    edits: Mapping[Path, Sequence[TextEdit]],
    folders: Sequence[Path],
    done: Callable[[], None],
) -> Prepared | ToolOutcome:
    """Return the call that makes the edits, all or none, and then calls ``done``.

    Files must be in one of ``folders``.
    """
    if not edits:
        return failure("There is nothing to rename.")
    if len(edits) > MOST_FILES:
        return failure(f"The new name would change {len(edits)} files, more than {MOST_FILES}.")
    plan: list[PlannedChange] = []
    for given in sorted(edits):
        # The answer of a server can have links and ".." in it.
        path = Path(await anyio.to_thread.run_sync(os.path.realpath, given))
        if not any(path.is_relative_to(folder) for folder in folders):
            return failure(f"{path} is outside of the session's folders. Nothing was changed.")
        try:
            await ctx.files.open(path)
            plan.append(await anyio.to_thread.run_sync(_planned, ctx, path, edits[given]))
        except (OSError, ValueError) as error:
            outcome = problem(str(path), error) if isinstance(error, OSError) else failure(f"{path}: {error}.")
            outcome.text += " Nothing was changed."
            return outcome
    diff = await anyio.to_thread.run_sync(diff_of, plan)
    return Prepared(question_about(intention, plan, diff), partial(_rename, ctx, plan, diff, done))


def _planned(ctx: ToolContext, path: Path, edits: Sequence[TextEdit]) -> PlannedChange:
    """Return a file before and after its edits.

    Raises:
        OSError, ValueError: the file cannot be edited.
    """
    mode = ctx.files.place(path).stat().st_mode
    if not os.access(path, os.W_OK):
        raise ValueError("the file is read-only")
    if ctx.files.unsaved(path) is not None:
        # The server knows the file on the disk.
        raise ValueError("the file has unsaved changes in the user's editor; ask the user to save it")
    before = ctx.files.read(path).decode("utf-8", "surrogateescape")
    return PlannedChange(str(path), path, before, edited(before, edits), mode)


async def _rename(
    ctx: ToolContext, plan: Sequence[PlannedChange], diff: str, done: Callable[[], None]
) -> ToolOutcome:
    refused = await make_all(ctx, plan)
    if refused is not None:
        return refused
    done()
    names = "\n".join(change.name for change in plan)
    return ToolOutcome(f"Changed {len(plan)} files:\n{names}", detail=diff)
