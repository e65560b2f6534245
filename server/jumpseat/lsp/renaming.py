"""Rename a symbol in all files: the edits of a language server, made like those of any other tool."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio.to_thread
from msgspec import Struct

from jumpseat.agent.permissions.permissions import UNGUARDED
from jumpseat.lsp.text_edits import TextEdit, edited
from jumpseat.tools.files import problem, unified_diff
from jumpseat.tools.tool import Prepared, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import WritePermission

MOST_FILES: Final = 200


class _File(Struct):
    path: Path
    before: str
    after: str
    mode: int


async def prepare_rename(
    ctx: ToolContext, intention: str, edits: Mapping[Path, Sequence[TextEdit]], folders: Sequence[Path]
) -> Prepared | ToolOutcome:
    """Return the call that makes the edits, all or none. Files must be in one of ``folders``.

    The permission is for the first file; the call asks for the others before it changes anything.
    """
    if not edits:
        return failure("There is nothing to rename.")
    if len(edits) > MOST_FILES:
        return failure(f"The new name would change {len(edits)} files, more than {MOST_FILES}.")
    files: list[_File] = []
    for given in sorted(edits):
        # The answer of a server can have links and ".." in it.
        path = Path(await anyio.to_thread.run_sync(os.path.realpath, given))
        if not any(path.is_relative_to(folder) for folder in folders):
            return failure(f"{path} is outside of the session's folders. Nothing was changed.")
        try:
            await ctx.files.open(path)
            files.append(await anyio.to_thread.run_sync(_planned, ctx, path, edits[given]))
        except (OSError, ValueError) as error:
            return _cannot_be_edited(path, error)
    requests = [await anyio.to_thread.run_sync(_request, intention, file) for file in files]
    return Prepared(requests[0], partial(_rename, ctx, files, requests))


def _cannot_be_edited(path: Path, error: OSError | ValueError) -> ToolOutcome:
    outcome = problem(str(path), error) if isinstance(error, OSError) else failure(f"{path}: {error}.")
    outcome.text += " Nothing was changed."
    return outcome


def _planned(ctx: ToolContext, path: Path, edits: Sequence[TextEdit]) -> _File:
    """Return a file before and after its edits.

    Raises:
        OSError, ValueError: the file cannot be edited.
    """
    mode = ctx.files.place(path).stat().st_mode
    if not os.access(path, os.W_OK):
        raise ValueError("the file is read-only")
    before = ctx.files.read(path).decode("utf-8", "surrogateescape")
    return _File(path, before, edited(before, edits), mode)


def _request(intention: str, file: _File) -> WritePermission:
    diff = unified_diff(str(file.path), file.before, file.after)
    return WritePermission(intention=intention, file_name=str(file.path), diff=diff)


async def _rename(ctx: ToolContext, files: Sequence[_File], requests: Sequence[WritePermission]) -> ToolOutcome:
    for request in requests[1:]:
        verdict = await ctx.approve(request, UNGUARDED)
        if verdict.status != "allowed":
            rejected = verdict.status == "rejected"
            text = f"{request.file_name}: {verdict.message} Nothing was changed."
            return ToolOutcome(text, "rejected" if rejected else "denied", ends_turn=rejected)
        ctx.files.settle(Path(request.file_name), Path(request.resolved_path or request.file_name))
    done: list[_File] = []
    for file in files:
        try:
            await ctx.files.open(file.path)
            current = await anyio.to_thread.run_sync(ctx.files.read, file.path)
            if current != file.before.encode("utf-8", "surrogateescape"):
                raise ValueError("the file has changed meanwhile")
            await ctx.files.replace(file.path, file.after.encode("utf-8", "surrogateescape"), file.mode)
            done.append(file)
        except (OSError, ValueError) as error:
            await _take_back(ctx, done)
            return _cannot_be_edited(file.path, error)
    detail = "".join(request.diff for request in requests)
    names = "\n".join(str(file.path) for file in files)
    return ToolOutcome(f"Changed {len(files)} files:\n{names}", detail=detail)


async def _take_back(ctx: ToolContext, done: Sequence[_File]) -> None:
    for file in done:
        try:
            await ctx.files.replace(file.path, file.before.encode("utf-8", "surrogateescape"), file.mode)
        except (OSError, ValueError):
            # The other files can still be restored.
            continue
