"""``grep``: lines or files that match a regular expression.

Checks the arguments, chooses between ripgrep and the search in Python, and writes the hits down in the one form
that both share. Patterns that only one of the two understands go to that one.
"""

from __future__ import annotations

import os
import shutil
import stat
from typing import Final, Literal

import anyio.to_thread
from pydantic import Field

from jumpseat.tools.files import problem, readable
from jumpseat.tools.ripgrep import PatternRefusedError, run_ripgrep
from jumpseat.tools.search import FileHits, InvalidGlobError, Search, search_files
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import ReadPermission

OUTPUT_LIMIT: Final = 2 * 1024 * 1024
"""Characters one call returns at most; a search that finds more is stopped there."""

LINE_LIMIT: Final = 2000
"""Characters shown of one line: a minified file is a single one."""

CONTEXT_LIMIT: Final = 1000


class GrepArgs(ToolArgs):
    pattern: str = Field(description="Regular expression")
    path: str = Field(".", description="File or directory")
    output_mode: Literal["content", "files_with_matches", "count"] = "files_with_matches"
    glob: str | None = Field(None, description="Only such files: *.py")
    line_numbers: bool = Field(False, alias="-n")
    ignore_case: bool = Field(False, alias="-i")
    after: int | None = Field(None, alias="-A")
    before: int | None = Field(None, alias="-B")
    context: int | None = Field(None, alias="-C")
    head_limit: int | None = Field(None, description="Only the first lines of the result")
    multiline: bool = False


async def run_grep(ctx: ToolContext, args: GrepArgs) -> ToolOutcome:
    path = ctx.resolve(args.path)
    if "\0" in args.pattern:
        return failure("The pattern holds a NUL character. Binary files are not searched; remove it.")
    try:
        mode = path.stat().st_mode
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            return failure(f"Path {args.path} is neither a file nor a directory.")
        content = args.output_mode == "content"
        search = Search.of(
            args.pattern,
            path,
            is_directory=stat.S_ISDIR(mode),
            glob=args.glob,
            ignore_case=args.ignore_case,
            multiline=args.multiline,
            before=_context(args.before, args.context) if content else 0,
            after=_context(args.after, args.context) if content else 0,
            first_only=args.output_mode == "files_with_matches",
        )
        page = _Page(args, with_context=search.before + search.after > 0)
        return await _fill(ctx, search, page) or page.outcome()
    except InvalidGlobError:
        return failure(f"glob {args.glob!r} is not valid. Use *, **, ?, [abc] and {{a,b}}.")
    except (OSError, ValueError) as error:
        return problem(args.path, error)


async def _fill(ctx: ToolContext, search: Search, page: _Page) -> ToolOutcome | None:
    """Search with the better engine that takes the pattern; a failure where neither does."""
    program = shutil.which("rg", path=ctx.environ.get("PATH"))
    refused = search.regex_error
    if program is not None:
        try:
            return await run_ripgrep(program, ctx.environ, search, page.add)
        except PatternRefusedError as error:
            # Look-around and back-references, say.
            refused = refused and str(error)
    if refused is not None:
        return failure(f"Pattern {search.pattern!r} is not a valid regular expression: {refused}.")
    return await anyio.to_thread.run_sync(search_files, search, page.add, abandon_on_cancel=True)


class _Page:
    """The answer as it grows, in the form that the arguments ask for."""

    def __init__(self, args: GrepArgs, *, with_context: bool) -> None:
        self._args = args
        self._given = os.path.expanduser(args.path)
        self._with_context = with_context
        self._limit = args.head_limit if args.head_limit is not None and args.head_limit > 0 else None
        self._lines: list[str] = []
        self._size = 0
        self._note = ""

    def add(self, hits: FileHits) -> bool:
        """Write ``hits`` down; false when there is no room for more."""
        name = readable(os.path.join(self._given, hits.name) if hits.name else self._given)
        if self._args.output_mode == "files_with_matches":
            return self._add_line(name)
        if self._args.output_mode == "count":
            return self._add_line(f"{name}:{sum(line.matches for line in hits.lines)}")
        previous = None
        for line in hits.lines:
            if self._with_context and self._lines and (previous is None or line.number != previous + 1):
                self._lines.append("--")
            previous = line.number
            mark = ":" if line.matches else "-"
            number = f"{line.number}{mark}" if self._args.line_numbers else ""
            if not self._add_line(f"{name}{mark}{number}{_shortened(line.text)}"):
                return False
        return True

    def outcome(self) -> ToolOutcome:
        if not self._lines:
            return ToolOutcome("No matches found.")
        return ToolOutcome("\n".join(self._lines) + self._note)

    def _add_line(self, line: str) -> bool:
        self._lines.append(line)
        self._size += len(line) + 1
        if self._size > OUTPUT_LIMIT:
            self._note = "\n[Stopped here: too many matches. Use a narrower pattern, path or glob.]"
            return False
        return self._limit is None or len(self._lines) < self._limit


def _context(lines: int | None, around: int | None) -> int:
    """As in grep: ``-A`` and ``-B`` win over ``-C``."""
    wanted = lines if lines is not None else around or 0
    return min(max(wanted, 0), CONTEXT_LIMIT)


def _shortened(text: str) -> str:
    more = len(text) - LINE_LIMIT
    return text if more <= 0 else f"{text[:LINE_LIMIT]} [{more} more characters]"


def _intention(args: GrepArgs) -> str:
    return f"Search for {args.pattern}"


GREP: Final = BuiltinTool(
    name="grep",
    description="Search file contents.",
    args=GrepArgs,
    run=run_grep,
    intention=_intention,
    permission=lambda ctx, args: ReadPermission(intention=_intention(args), path=str(ctx.resolve(args.path))),
)
