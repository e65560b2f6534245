"""``grep``: find lines or files that match a regular expression.

Searches with ripgrep where it is installed and accepts the pattern, else in Python; the result looks the same.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final, Literal

from msgspec.structs import replace
from pydantic import Field

from jumpseat.agent.interfaces import VirtualFiles
from jumpseat.errors import StoreError
from jumpseat.tools.files import ignored_note, ignored_paths, problem, readable
from jumpseat.tools.search.engine import (
    Ending,
    FileHits,
    GlobRefusedError,
    PatternRefusedError,
    Search,
    cannot_start,
    interrupted,
    search_in_python,
)
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.limits import PathText
from jumpseat_protocol.permissions import ReadPermission

OUTPUT_LIMIT: Final = 2 * 1024 * 1024
"""Limit of the characters that one call returns; a search that finds more is stopped."""

TOO_MANY: Final = "\n[Stopped here: too many matches. Use a narrower pattern, path or glob.]"

CONTEXT_LIMIT: Final = 1000


class GrepArgs(ToolArgs):
    pattern: str = Field(description="Regular expression")
    path: PathText = Field(".", description="Files that git ignores are searched only if named here")
    output_mode: Literal["content", "files_with_matches", "count"] = "files_with_matches"
    glob: str | None = Field(None, description="Search only these files: *.py")
    line_numbers: bool = Field(False, alias="-n")
    ignore_case: bool = Field(False, alias="-i")
    after: int | None = Field(None, alias="-A")
    before: int | None = Field(None, alias="-B")
    context: int | None = Field(None, alias="-C")
    head_limit: int | None = Field(None, description="Lines of the result, at most")
    multiline: bool = False


async def run_grep(ctx: ToolContext, args: GrepArgs) -> ToolOutcome:
    if "\0" in args.pattern:
        return failure("The pattern contains a NUL character. Binary files are not searched; remove it.")
    if ctx.virtual_files is not None and ctx.is_virtual(args.path):
        return await _grep_virtual(ctx, ctx.virtual_files, args)
    path = ctx.resolve(args.path)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        return problem(args.path, error)
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        return failure(f"Path {args.path} is neither a file nor a directory.")
    if not stat.S_ISDIR(mode):
        return await _run(ctx, args, _search(args, path.parent, path.name))
    ignored = await ignored_paths(path, ctx.environ(), ctx.programs)
    return await _run(ctx, args, replace(_search(args, path, None), ignored=ignored))


async def _grep_virtual(ctx: ToolContext, files: VirtualFiles, args: GrepArgs) -> ToolOutcome:
    # Imported here: few clients keep the files of their sessions.
    from jumpseat.tools.virtual import texts_below

    try:
        is_file = isinstance(await files.load(args.path), bytes)
        texts = await texts_below(files, args.path)
    except StoreError as error:
        return failure(str(error))
    if texts is None:
        return failure(f"Path {args.path} does not exist.")
    search = _search(args, Path("/"), next(iter(texts)) if is_file else None)
    return await _run(ctx, args, replace(search, texts=texts))


def _search(args: GrepArgs, root: Path, file: str | None) -> Search:
    content = args.output_mode == "content"
    return Search(
        pattern=args.pattern,
        root=root,
        file=file,
        # A file that is named is searched even if the glob does not match it.
        glob=args.glob if file is None else None,
        ignore_case=args.ignore_case,
        multiline=args.multiline,
        before=_context(args.before, args.context) if content else 0,
        after=_context(args.after, args.context) if content else 0,
        first_only=args.output_mode == "files_with_matches",
        content=content,
    )


async def _run(ctx: ToolContext, args: GrepArgs, search: Search) -> ToolOutcome:
    page = _Page(args, with_context=search.before + search.after > 0)
    try:
        ending = await _fill(ctx, search, page)
    except PatternRefusedError as error:
        return failure(f"Pattern {args.pattern!r} is not a valid regular expression: {error}.")
    except GlobRefusedError:
        return failure(f"glob {args.glob!r} is not valid. Use *, **, ?, [abc] and {{a,b}}.")
    except OSError as error:
        return cannot_start(error)
    return page.outcome(ending, search.ignored)


async def _fill(ctx: ToolContext, search: Search, page: _Page) -> Ending:
    """Search with ripgrep, or in Python if ripgrep is missing or refuses the pattern."""
    environ = ctx.programs.environ(ctx.environ())
    program = ctx.programs.find("rg", environ) if search.texts is None else None
    if program is None:
        return await search_in_python(environ, search, page.add)
    from jumpseat.tools.search.ripgrep import search_with_ripgrep

    try:
        return await search_with_ripgrep(program, environ, search, page.add)
    except PatternRefusedError as refused:
        # For example look-around or back-references. If Python refuses it too, ripgrep's message is clearer.
        try:
            return await search_in_python(environ, search, page.add)
        except PatternRefusedError:
            raise refused from None


class _Page:
    """The result text as it grows, in the output mode of the call."""

    def __init__(self, args: GrepArgs, *, with_context: bool) -> None:
        self._args = args
        self._given_path = os.path.expanduser(args.path)
        self._with_context = with_context
        self._limit = args.head_limit if args.head_limit is not None and args.head_limit > 0 else None
        self._lines: list[str] = []
        self._size = 0
        self._note = ""

    def add(self, hits: FileHits) -> bool:
        """Append ``hits``; return false if there is no room for more."""
        name = readable(os.path.join(self._given_path, hits.name) if hits.name else self._given_path)
        if self._args.output_mode == "files_with_matches":
            return self._add_line(name)
        if self._args.output_mode == "count":
            return self._add_line(f"{name}:{hits.count}")
        previous = None
        for line in hits.lines:
            if self._with_context and self._lines and (previous is None or line.number != previous + 1):
                self._lines.append("--")
            previous = line.number
            mark = ":" if line.matches else "-"
            number = f"{line.number}{mark}" if self._args.line_numbers and line.number is not None else ""
            more = f" [{line.more} more characters]" if line.more else ""
            if not self._add_line(f"{name}{mark}{number}{line.text}{more}"):
                return False
        if hits.too_many:
            self._note = TOO_MANY
        return not hits.too_many

    def outcome(self, ending: Ending, ignored: frozenset[str]) -> ToolOutcome:
        cut = interrupted(ending)
        if self._lines:
            return ToolOutcome("\n".join(self._lines) + self._note + (f"\n[Incomplete: {cut}]" if cut else ""))
        return failure(cut) if cut else ToolOutcome(f"No matches found.{ignored_note(ignored)}")

    def _add_line(self, line: str) -> bool:
        self._lines.append(line)
        self._size += len(line) + 1
        if self._size > OUTPUT_LIMIT:
            self._note = TOO_MANY
            return False
        return self._limit is None or len(self._lines) < self._limit


def _context(lines: int | None, around: int | None) -> int:
    """Return the number of context lines; as in grep, ``-A`` and ``-B`` override ``-C``."""
    count = lines if lines is not None else around or 0
    return min(max(count, 0), CONTEXT_LIMIT)


def _intention(args: GrepArgs) -> str:
    return f"Search for {args.pattern}"


def _permission(ctx: ToolContext, args: GrepArgs) -> ReadPermission | None:
    # The client itself has the files that are not on the disk.
    if ctx.is_virtual(args.path):
        return None
    return ReadPermission(intention=_intention(args), path=str(ctx.resolve(args.path)))


TOOL: Final = BuiltinTool(
    name="grep",
    description="Search file contents.",
    args=GrepArgs,
    run=run_grep,
    intention=_intention,
    permission=_permission,
    position=90,
    read_only=True,
)
