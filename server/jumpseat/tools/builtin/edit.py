"""``edit``: replace a passage of a text file. Line endings, mode and undecodable bytes are kept."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

import anyio.to_thread
from msgspec import Struct
from pydantic.json_schema import SkipJsonSchema

from jumpseat.agent.interfaces import VirtualFiles
from jumpseat.errors import StoreError
from jumpseat.tools.files import is_binary, problem, unified_diff
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat.tools.workspace_files import LARGEST_READ
from jumpseat_protocol.permissions import WritePermission


class EditArgs(ToolArgs):
    path: str
    old_str: str
    new_str: str
    # Hidden from models: some were trained on an editor tool that has it, and send it anyway.
    insert_line: SkipJsonSchema[int | None] = None


async def run_edit(ctx: ToolContext, args: EditArgs) -> ToolOutcome:
    if ctx.virtual_files is not None and ctx.is_virtual(args.path):
        return await _edit_virtual(ctx.virtual_files, args)
    path = ctx.resolve(args.path)
    try:
        # Opened again, because the file may have changed while permission was asked.
        await ctx.files.open(path)
        plan = await anyio.to_thread.run_sync(_plan, ctx, path, args)
        if isinstance(plan, ToolOutcome):
            return plan
        await ctx.files.replace(path, plan.after.encode("utf-8", "surrogateescape"), plan.mode)
    except UnicodeEncodeError:
        return failure("new_str contains an unpaired surrogate. Write the character itself.")
    except (OSError, ValueError) as error:
        return problem(args.path, error)
    detail = await anyio.to_thread.run_sync(unified_diff, str(path), plan.before, plan.after)
    return ToolOutcome(f"File {args.path} updated with changes.", detail=detail)


async def _edit_virtual(files: VirtualFiles, args: EditArgs) -> ToolOutcome:
    try:
        content = await files.load(args.path)
        if not isinstance(content, bytes):
            return failure(f"Path {args.path} is not a file. Give the path of a text file.")
        plan = _change(content, args, 0)
        if isinstance(plan, ToolOutcome):
            return plan
        await files.save(args.path, plan.after.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return failure("new_str contains an unpaired surrogate. Write the character itself.")
    except StoreError as error:
        return failure(str(error))
    detail = await anyio.to_thread.run_sync(unified_diff, args.path, plan.before, plan.after)
    return ToolOutcome(f"File {args.path} updated with changes.", detail=detail)


class _Plan(Struct, frozen=True):
    before: str
    after: str
    mode: int


def _plan(ctx: ToolContext, path: Path, args: EditArgs) -> _Plan | ToolOutcome:
    """Return the text before and after the edit, or a failure if it cannot be made.

    Raises:
        OSError, ValueError: the file cannot be read.
    """
    status = ctx.files.place(path).stat()
    if not stat.S_ISREG(status.st_mode):
        return failure(f"Path {args.path} is not a file. Give the path of a text file.")
    if status.st_size > LARGEST_READ:
        return failure(f"File {args.path} is too large to edit ({status.st_size} bytes). Use sed in bash.")
    # The file is replaced by renaming, which would work on a read-only file, too.
    if not os.access(path, os.W_OK):
        return failure(f"File {args.path} is read-only.")
    return _change(ctx.files.read(path), args, status.st_mode)


def _change(data: bytes, args: EditArgs, mode: int) -> _Plan | ToolOutcome:
    """Return the text before and after the edit of a file with this content, or a failure."""
    if is_binary(data):
        return failure(f"File {args.path} is binary and cannot be edited as text.")
    if args.insert_line is not None:
        return _insertion(data.decode("utf-8", "surrogateescape"), args, args.insert_line, mode)
    if not args.old_str:
        return failure("old_str is empty. Give the exact text to replace; use create for a new file.")
    before = data.decode("utf-8", "surrogateescape")
    old, new = _with_line_endings(before, args.old_str, args.new_str)
    if old == new:
        return failure("old_str and new_str are the same: nothing to change.")
    starts = _occurrences(before, old)
    if not starts:
        return failure(
            f"old_str was not found in {args.path}. View the file and copy the text exactly, including white space."
        )
    if len(starts) > 1:
        lines = ", ".join(str(before.count("\n", 0, start) + 1) for start in starts[:10])
        more = ", ..." if len(starts) > 10 else ""
        return failure(
            f"old_str occurs {len(starts)} times in {args.path} (lines {lines}{more}). "
            "Add surrounding lines to it so that it occurs once."
        )
    return _Plan(before, before[: starts[0]] + new + before[starts[0] + len(old) :], mode)


def _insertion(before: str, args: EditArgs, line: int, mode: int) -> _Plan | ToolOutcome:
    """Insert ``new_str`` as separate lines after line ``line``; zero is the beginning of the file."""
    # Not splitlines, which splits at more characters than editors do.
    lines = [line for line in re.split(r"(?<=\n)", before) if line]
    if not 0 <= line <= len(lines):
        return failure(f"insert_line {line} is not in {args.path}, which has {len(lines)} lines.")
    _, new = _with_line_endings(before, "", args.new_str)
    end = "\r\n" if "\r\n" in new or (lines and lines[0].endswith("\r\n")) else "\n"
    if line and not lines[line - 1].endswith("\n"):
        lines[line - 1] += end
    new = new if new.endswith("\n") else new + end
    return _Plan(before, "".join([*lines[:line], new, *lines[line:]]), mode)


def _with_line_endings(text: str, old: str, new: str) -> tuple[str, str]:
    """Convert ``old`` and ``new`` to the line endings of the file: models always write ``\\n``."""
    if text.count("\r\n") * 2 <= text.count("\n"):
        return old, new
    crlf_old = old.replace("\r\n", "\n").replace("\n", "\r\n")
    # In a file with mixed line endings the passage may have the rarer one.
    return (
        old if old in text else crlf_old,
        new.replace("\r\n", "\n").replace("\n", "\r\n"),
    )


def _occurrences(text: str, piece: str) -> list[int]:
    """Return the offsets of ``piece``, overlapping occurrences included: each would be a different edit."""
    starts: list[int] = []
    start = text.find(piece)
    while start >= 0:
        starts.append(start)
        start = text.find(piece, start + 1)
    return starts


def _refusal(ctx: ToolContext, args: EditArgs) -> ToolOutcome | None:
    """Return the failure of an edit that the file does not allow, so that nobody is asked to approve it."""
    if ctx.is_virtual(args.path):
        return None
    try:
        plan = _plan(ctx, ctx.resolve(args.path), args)
    except (OSError, ValueError) as error:
        return problem(args.path, error)
    return plan if isinstance(plan, ToolOutcome) else None


def _intention(args: EditArgs) -> str:
    return f"Edit {args.path}"


def _permission(ctx: ToolContext, args: EditArgs) -> WritePermission:
    path = ctx.resolve(args.path)
    try:
        plan = None if ctx.is_virtual(args.path) else _plan(ctx, path, args)
    except (OSError, ValueError):
        plan = None
    before, after = (plan.before, plan.after) if isinstance(plan, _Plan) else (args.old_str, args.new_str)
    return WritePermission(
        intention=_intention(args), file_name=str(path), diff=unified_diff(str(path), before, after)
    )


TOOL: Final = BuiltinTool(
    name="edit",
    description="Replace a text that occurs exactly once in a file.",
    args=EditArgs,
    run=run_edit,
    intention=_intention,
    permission=_permission,
    opens=lambda ctx, args: ctx.resolve(args.path),
    refusal=_refusal,
    position=80,
)
