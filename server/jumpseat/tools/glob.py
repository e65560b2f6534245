"""``glob``: files by name pattern. Also owns the pattern language and the walk that grep shares."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio.from_thread
import anyio.to_thread
from pydantic import Field

from jumpseat.tools.files import problem, readable
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import ReadPermission

LIMIT: Final = 5000
"""Files one call lists."""

SKIPPED: Final = frozenset({".git"})


class GlobArgs(ToolArgs):
    pattern: str = Field(description="** crosses directories: src/**/*.{ts,tsx}")
    path: str = Field(".", description="Directory to search")


async def run_glob(ctx: ToolContext, args: GlobArgs) -> ToolOutcome:
    # A pattern may begin with directories, even an absolute path or `..`: search only there.
    fixed, pattern = _split(args.pattern)
    path = ctx.resolve(args.path)
    root = _root(path, fixed)
    try:
        if not stat.S_ISDIR(path.stat().st_mode):
            return failure(f"Path {args.path} is not a directory. Give the directory to search, or use view.")
        matcher = compile_glob(pattern)
        found = await anyio.to_thread.run_sync(_search, root, matcher, _depth(pattern), abandon_on_cancel=True)
    except re.error:
        return failure(f"Pattern {args.pattern!r} is not a valid glob. Use *, **, ?, [abc] and {{a,b}}.")
    except (OSError, ValueError) as error:
        return problem(args.path, error)
    if not found:
        return ToolOutcome(f"No files match {args.pattern}.")
    lines = sorted(_shown(f"{root}/{name}", ctx.cwd) for name in found)
    if len(lines) > LIMIT:
        lines[LIMIT:] = [f"[{len(lines) - LIMIT} more files. Use a narrower pattern.]"]
    return ToolOutcome("\n".join(lines))


def walk_files(root: str, depth: int | None = None) -> Iterator[str]:
    """The files below ``root`` relative to it, without linked directories; in order of their names per directory.

    Directories that cannot be read are skipped. Runs in a worker thread and stops when its call is cancelled.
    """
    stack = [("", 1)]
    while stack:
        relative, level = stack.pop()
        if not relative or relative.endswith("/"):
            anyio.from_thread.check_cancelled()
            try:
                with os.scandir(os.path.join(root, relative)) as scan:
                    entries = sorted(scan, key=lambda entry: os.fsencode(entry.name), reverse=True)
            except OSError:
                continue
            for entry in entries:
                if entry.name in SKIPPED:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if depth is None or level < depth:
                        stack.append((f"{relative}{entry.name}/", level + 1))
                elif not entry.is_symlink() or not entry.is_dir():
                    stack.append((f"{relative}{entry.name}", level))
        else:
            yield relative


def compile_glob(pattern: str) -> re.Pattern[str]:
    """A pattern for whole relative paths: ``**``, ``*``, ``?``, ``[...]`` and ``{a,b}``.

    Raises:
        re.error: the pattern is malformed.
    """
    # Repetitions mean the same once, and would make the search for a match explode.
    pattern = re.sub(r"(?:\*\*/){2,}", "**/", re.sub(r"\*{3,}", "**", pattern))
    return re.compile(_translate(pattern), re.DOTALL)


def _translate(pattern: str) -> str:
    result: list[str] = []
    at = open_braces = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            result.append("(?:[^/]+/)*")
            at += 3
            continue
        if pattern.startswith("**", at):
            result.append(".*")
            at += 2
            continue
        at += 1
        if char == "*":
            result.append("[^/]*")
        elif char == "?":
            result.append("[^/]")
        elif char == "[" and (end := pattern.find("]", at + 1)) > 0:
            negated = pattern[at] in "!^"
            # Only the hyphen means the same in both languages.
            body = re.sub(r"[^\w-]|-(?=-)", r"\\\g<0>", pattern[at + negated : end])
            result.append(f"[^/{body}]" if negated else f"(?!/)[{body}]")
            at = end + 1
        elif char == "{" and "}" in pattern[at:]:
            result.append("(?:")
            open_braces += 1
        elif char == "}" and open_braces:
            result.append(")")
            open_braces -= 1
        elif char == "," and open_braces:
            result.append("|")
        elif char == "\\" and at < len(pattern):
            result.append(re.escape(pattern[at]))
            at += 1
        else:
            result.append(re.escape(char))
    return "".join(result)


def _split(pattern: str) -> tuple[str, str]:
    """The leading directories without wildcards, and the rest."""
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


def _depth(pattern: str) -> int | None:
    """How many levels down a match can be."""
    return None if "**" in pattern or "{" in pattern else pattern.count("/") + 1


def _search(root: str, matcher: re.Pattern[str], depth: int | None) -> list[str]:
    return [name for name in walk_files(root, depth) if matcher.fullmatch(name)]


def _shown(path: str, cwd: Path) -> str:
    """``./relative`` inside the working directory, absolute outside."""
    path = path.removeprefix("/") if path.startswith("//") else path
    inside = path.removeprefix(f"{os.path.normpath(cwd)}/")
    return readable(path if inside == path else f"./{inside}")


def _intention(args: GlobArgs) -> str:
    return f"Find files {args.pattern}"


GLOB: Final = BuiltinTool(
    name="glob",
    description="Find files by name pattern.",
    args=GlobArgs,
    run=run_glob,
    intention=_intention,
    permission=lambda ctx, args: ReadPermission(
        intention=_intention(args),
        path=_root(ctx.resolve(args.path), _split(args.pattern)[0]),
    ),
)
