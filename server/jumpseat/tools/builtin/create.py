"""``create``: create a text file and its parent directories. Never changes an existing file."""

from __future__ import annotations

import os
from typing import Final

from jumpseat.errors import StoreError
from jumpseat.tools.files import problem, unified_diff
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import WritePermission


class CreateArgs(ToolArgs):
    path: str
    file_text: str


async def run_create(ctx: ToolContext, args: CreateArgs) -> ToolOutcome:
    path = ctx.resolve(args.path)
    try:
        data = args.file_text.encode()
    except UnicodeEncodeError:
        return failure("file_text contains an unpaired surrogate. Write the character itself.")
    try:
        if ctx.virtual_files is not None and ctx.is_virtual(args.path):
            if await ctx.virtual_files.load(args.path) is not None:
                return _exists(args)
            await ctx.virtual_files.save(args.path, data)
        else:
            await ctx.files.create(path, data)
    except StoreError as error:
        return failure(str(error))
    except FileExistsError as error:
        if error.filename != str(path):
            return failure(f"{error.filename} is a file, so {args.path} cannot be created in it.")
        return _exists(args)
    except (OSError, ValueError) as error:
        return problem(args.path, error)
    return ToolOutcome(
        f"Created file {args.path} with {len(args.file_text)} characters",
        detail=unified_diff(str(path), None, args.file_text),
    )


def _exists(args: CreateArgs) -> ToolOutcome:
    return failure(f"Path {args.path} already exists. Use edit to change it, or choose another path.")


def _refusal(ctx: ToolContext, args: CreateArgs) -> ToolOutcome | None:
    if ctx.is_virtual(args.path):
        return None
    try:
        return _exists(args) if os.path.lexists(ctx.resolve(args.path)) else None
    except ValueError as error:
        return problem(args.path, error)


def _intention(args: CreateArgs) -> str:
    return f"Create {args.path}"


def _permission(ctx: ToolContext, args: CreateArgs) -> WritePermission:
    name = str(ctx.resolve(args.path))
    return WritePermission(
        intention=_intention(args),
        file_name=name,
        diff=unified_diff(name, None, args.file_text),
        new_file_contents=args.file_text,
    )


TOOL: Final = BuiltinTool(
    name="create",
    description="Create a new file. Fails if it exists.",
    args=CreateArgs,
    run=run_create,
    intention=_intention,
    permission=_permission,
    refusal=_refusal,
    position=70,
)
