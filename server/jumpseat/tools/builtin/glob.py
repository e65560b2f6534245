"""``glob``: find files by name pattern. :mod:`jumpseat.tools.search.python_engine` documents the patterns."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import Field

from jumpseat.agent.interfaces import VirtualFiles
from jumpseat.errors import StoreError
from jumpseat.tools.files import ignored_note, ignored_paths, problem, readable
from jumpseat.tools.search.engine import GlobRefusedError, cannot_start, glob_in_python, interrupted
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.limits import PathText
from jumpseat_protocol.permissions import ReadPermission

LIMIT: Final = 5000
"""Number of files that one call lists."""


class GlobArgs(ToolArgs):
    pattern: PathText = Field(description="** crosses directories: src/**/*.{ts,tsx}")
    path: PathText = "."


async def run_glob(ctx: ToolContext, args: GlobArgs) -> ToolOutcome:
    # A pattern may begin with directories, even with an absolute path or `..`: search only there.
    fixed, pattern = _split(args.pattern)
    path = ctx.resolve(args.path)
    root = _root(path, fixed)
    if ctx.virtual_files is not None and ctx.is_virtual(root):
        return await _glob_virtual(ctx, ctx.virtual_files, args, root, pattern)
    try:
        if not stat.S_ISDIR(path.stat().st_mode):
            return failure(f"Path {args.path} is not a directory. Give the directory to search, or use view.")
    except (OSError, ValueError) as error:
        return problem(args.path, error)
    if not _is_directory(root):
        return ToolOutcome(f"No files match {args.pattern}.")
    # Listing a single ignored file costs a line, an ignored directory such as node_modules thousands.
    found = await ignored_paths(Path(root), ctx.environ(), ctx.programs)
    ignored = [name for name in found if name.endswith("/")]
    return await _match(ctx, args, root, pattern, ignored=ignored)


async def _glob_virtual(
    ctx: ToolContext, files: VirtualFiles, args: GlobArgs, root: str, pattern: str
) -> ToolOutcome:
    # Imported here: few clients keep the files of their sessions.
    from jumpseat.tools.virtual import names_below

    try:
        names = await names_below(files, root)
    except StoreError as error:
        return failure(str(error))
    if names is None:
        return failure(f"Path {root} is not a directory. Give the directory to search, or use view.")
    return await _match(ctx, args, root, pattern, names=names)


async def _match(
    ctx: ToolContext,
    args: GlobArgs,
    root: str,
    pattern: str,
    *,
    ignored: Sequence[str] = (),
    names: list[str] | None = None,
) -> ToolOutcome:
    """Match the files below ``root`` on the disk, or ``names``."""
    lines: list[str] = []
    try:
        ending, more = await glob_in_python(
            ctx.environ(),
            Path(root) if names is None else Path("/"),
            pattern,
            depth=_depth(pattern),
            limit=LIMIT,
            ignored=ignored,
            names=names,
            add=lambda name: lines.append(_display_path(f"{root}/{name}", ctx.cwd)),
        )
    except GlobRefusedError:
        return failure(f"Pattern {args.pattern!r} is not a valid glob. Use *, **, ?, [abc] and {{a,b}}.")
    except OSError as error:
        return cannot_start(error)
    cut = interrupted(ending)
    if not lines:
        return failure(cut) if cut else ToolOutcome(f"No files match {args.pattern}.{ignored_note(ignored)}")
    if more:
        lines.append(f"[{more} more files. Use a narrower pattern.]")
    if cut:
        lines.append(f"[Incomplete: {cut}]")
    return ToolOutcome("\n".join(lines))


def _split(pattern: str) -> tuple[str, str]:
    """Split off the leading directories that contain no wildcards."""
    *directories, name = pattern.split("/")
    fixed = 0
    while fixed < len(directories) and not re.search(r"[*?\[{\\]", directories[fixed]):
        fixed += 1
    head = "/".join(directories[:fixed])
    if fixed and not head:
        head = "/"
    return head, "/".join([*directories[fixed:], name])


def _root(path: Path, fixed: str) -> str:
    return os.path.normpath(path / os.path.expanduser(fixed))


def _is_directory(path: str) -> bool:
    return os.path.isdir(path)


def _depth(pattern: str) -> int | None:
    """Return how many levels deep a match can be, ``None`` if unlimited."""
    return None if "**" in pattern or "{" in pattern else pattern.count("/") + 1


def _display_path(path: str, cwd: Path) -> str:
    """Return ``./relative`` for a path in the working directory, else the absolute path."""
    path = path.removeprefix("/") if path.startswith("//") else path
    inside = path.removeprefix(f"{os.path.normpath(cwd)}/")
    return readable(path if inside == path else f"./{inside}")


def _intention(args: GlobArgs) -> str:
    return f"Find files {args.pattern}"


def _permission(ctx: ToolContext, args: GlobArgs) -> ReadPermission | None:
    root = _root(ctx.resolve(args.path), _split(args.pattern)[0])
    # The client itself has the files that are not on the disk.
    return None if ctx.is_virtual(root) else ReadPermission(intention=_intention(args), path=root)


TOOL: Final = BuiltinTool(
    name="glob",
    description="Find files by name pattern.",
    args=GlobArgs,
    run=run_glob,
    intention=_intention,
    permission=_permission,
    position=100,
    read_only=True,
)
