"""``create``: create a text file and its parent directories. Never changes an existing file."""

from __future__ import annotations

import os
from functools import partial
from typing import Final

import anyio.to_thread

from jumpseat.errors import StoreError
from jumpseat.tools.files import folder_there, problem, unified_diff
from jumpseat.tools.tool import BuiltinTool, Prepared, ToolArgs, ToolContext, ToolOutcome, failure, impossible
from jumpseat_protocol.limits import PathText
from jumpseat_protocol.permissions import WritePermission


class CreateArgs(ToolArgs):
    path: PathText
    file_text: str


async def run_create(ctx: ToolContext, args: CreateArgs) -> ToolOutcome:
    path = ctx.resolve(args.path)
    try:
        data = args.file_text.encode()
    except UnicodeEncodeError:
        return failure("file_text contains an unpaired surrogate. Write the character itself.")
    try:
        if ctx.virtual_files is not None and ctx.is_virtual(args.path):
            if (there := await ctx.virtual_files.load(args.path)) is not None:
                return folder_there(args.path) if isinstance(there, list) else _exists(args, _SINCE)
            await ctx.virtual_files.save(args.path, data)
        else:
            await ctx.files.create(path, data)
    except StoreError as error:
        return failure(str(error))
    except FileExistsError as error:
        if error.filename != str(path):
            return _beneath_a_file(str(error.filename), args)
        return folder_there(args.path) if await anyio.to_thread.run_sync(path.is_dir) else _exists(args, _SINCE)
    except (OSError, ValueError) as error:
        return problem(args.path, error)
    return ToolOutcome(
        f"Created file {args.path} with {len(args.file_text)} characters",
        detail=await anyio.to_thread.run_sync(unified_diff, str(path), None, args.file_text),
    )


_SINCE: Final = ": it was created after permission was asked"


def _exists(args: CreateArgs, since: str = "") -> ToolOutcome:
    return failure(f"Path {args.path} already exists{since}. Use edit to change it, or choose another path.")


async def _prepare(ctx: ToolContext, args: CreateArgs) -> Prepared | ToolOutcome:
    name = str(ctx.resolve(args.path))
    diff = await anyio.to_thread.run_sync(unified_diff, name, None, args.file_text)
    request = WritePermission(
        intention=_intention(args), file_name=name, diff=diff, new_file_contents=args.file_text
    )
    if ctx.virtual_files is not None and ctx.is_virtual(args.path):
        try:
            there = await ctx.virtual_files.load(args.path)
        except StoreError as error:
            return failure(str(error))
        if isinstance(there, list):
            return folder_there(args.path)
        # The model may read these files unasked.
        return Prepared(request, partial(run_create, ctx, args)) if there is None else _exists(args)
    refusal = await anyio.to_thread.run_sync(_refusal, ctx, args)
    return Prepared(request, partial(run_create, ctx, args)) if refusal is None else impossible(request, refusal)


def _refusal(ctx: ToolContext, args: CreateArgs) -> ToolOutcome | None:
    """Return the failure of a call that the disk does not allow, so that nobody is asked to approve it."""
    path = ctx.resolve(args.path)
    try:
        if os.path.lexists(path):
            return folder_there(args.path) if path.is_dir() else _exists(args)
        above = next(folder for folder in path.parents if os.path.lexists(folder))
        return None if above.is_dir() else _beneath_a_file(str(above), args)
    except (OSError, ValueError) as error:
        return problem(args.path, error)


def _beneath_a_file(name: str, args: CreateArgs) -> ToolOutcome:
    return failure(f"{name} is a file, so {args.path} cannot be created in it.")


def _intention(args: CreateArgs) -> str:
    return f"Create {args.path}"


TOOL: Final = BuiltinTool(
    name="create",
    description="Create a new file. Fails if it exists.",
    args=CreateArgs,
    run=run_create,
    intention=_intention,
    prepares=_prepare,
    position=70,
)
