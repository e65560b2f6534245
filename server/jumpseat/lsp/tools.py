"""``lsp``: the tool with which a model asks a language server about names, and renames one everywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal

import anyio.to_thread
from pydantic import Field

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.session.session import Session
from jumpseat.lsp.process import RefusedError, ServerFailedError
from jumpseat.lsp.renaming import prepare_rename
from jumpseat.lsp.server import Server
from jumpseat.lsp.session import SessionServers
from jumpseat.system.regular_files import read_whole
from jumpseat.tools.files import problem
from jumpseat.tools.filters import SourceName
from jumpseat.tools.tool import (
    Described,
    Ordering,
    Prepared,
    ToolArgs,
    ToolContext,
    ToolOutcome,
    failure,
    impossible,
)
from jumpseat_protocol.limits import PathText
from jumpseat_protocol.permissions import ReadPermission, WritePermission

NAME: Final = "lsp"
MOST_PLACES: Final = 50
MOST_SYMBOLS: Final = 200
LONGEST_LINE: Final = 200
LARGEST_FILE: Final = 2 * 1024 * 1024


class LspArgs(ToolArgs):
    operation: Literal["definition", "references", "symbols", "rename"]
    path: PathText
    symbol: str = Field(default="", description="A name in the file; not for symbols")
    line: int | None = Field(default=None, description="Of the symbol; default: its first one")
    new_name: str = ""


SPEC: Final = Described[LspArgs](
    name=NAME,
    description="Ask the language server: where a symbol is defined or used, the symbols of a file; or rename one.",
    args=LspArgs,
)


class LspTool:
    """The tool of one session; ``find`` returns its servers. Implements :class:`jumpseat.tools.tool.Tool`."""

    source: SourceName = "builtin"
    name = NAME
    ordering: Ordering = "queued"
    changes_nothing = False

    def __init__(self, session: Session, find: Callable[[], Awaitable[SessionServers]]) -> None:
        self._session = session
        self._find = find
        self.spec = SPEC.spec

    def summary(self, arguments: JsonObject) -> str | None:
        return SPEC.describe(_intention, arguments)

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        args = SPEC.parse(call)
        if isinstance(args, ToolOutcome):
            return args
        if args.operation != "symbols" and not args.symbol:
            return failure(f"Invalid arguments for `{NAME}`: symbol: expected a name")
        path = ctx.resolve(args.path)
        if args.operation == "rename":
            plan = await self._plan_rename(ctx, args)
            if isinstance(plan, Prepared):
                return plan
            plan.withheld = f"`{args.symbol}` of {args.path} cannot be renamed. View the file, then try again."
            return impossible(WritePermission(intention=_intention(args), file_name=str(path), diff=""), plan)
        # Definitions and uses are shown with their lines, wherever they are in the working directory.
        folder = str(path) if args.operation == "symbols" else str(ctx.cwd)
        request = ReadPermission(intention=_intention(args), path=folder)
        return Prepared(request, partial(self._run, ctx, args))

    async def _run(self, ctx: ToolContext, args: LspArgs) -> ToolOutcome:
        try:
            server, path = await self._server(ctx, args)
            if args.operation == "symbols":
                return ToolOutcome(_listed(await server.symbols(path), MOST_SYMBOLS) or "No symbols.")
            place = await anyio.to_thread.run_sync(_place, path, args)
            operation = "definition" if args.operation == "definition" else "references"
            found = await server.places(operation, path, *place)
        except (RefusedError, ServerFailedError) as error:
            return failure(f"The language server failed: {error}.")
        except (OSError, ValueError) as error:
            return _problem(args, error)
        lines = [await self._line(ctx, other, line) for other, line in found[:MOST_PLACES]]
        more = [f"and {len(found) - MOST_PLACES} more"] if len(found) > MOST_PLACES else []
        return ToolOutcome("\n".join([*lines, *more]) or "Nothing was found.")

    async def _plan_rename(self, ctx: ToolContext, args: LspArgs) -> Prepared | ToolOutcome:
        if not args.new_name:
            return failure(f"Invalid arguments for `{NAME}`: new_name: expected a name")
        try:
            server, path = await self._server(ctx, args)
            place = await anyio.to_thread.run_sync(_place, path, args)
            edits = await server.rename(path, *place, args.new_name)
        except (RefusedError, ServerFailedError) as error:
            return failure(f"The language server failed: {error}. Nothing was changed.")
        except (OSError, ValueError) as error:
            return _problem(args, error)
        folders = self._session.permissions.path_scope.folders()
        real = await anyio.to_thread.run_sync(lambda: [Path(os.path.realpath(folder)) for folder in folders])
        servers, old = await self._find(), args.symbol.rpartition(".")[2]
        return await prepare_rename(
            ctx, _intention(args), edits, real, lambda: servers.note_rename(old, args.new_name)
        )

    async def _server(self, ctx: ToolContext, args: LspArgs) -> tuple[Server, Path]:
        """Return the server of a file and the real path of the file.

        Raises:
            ServerFailedError: there is none.
        """
        path = await anyio.to_thread.run_sync(ctx.files.place, ctx.resolve(args.path))
        server = await (await self._find()).server_for(path)
        if server is None:
            raise ServerFailedError(f"there is none for {args.path}")
        return server, path

    async def _line(self, ctx: ToolContext, path: Path, line: int) -> str:
        """Return a place, with the text of its line if the file is in the working directory and may be read."""
        cwd = Path(await anyio.to_thread.run_sync(os.path.realpath, ctx.cwd))
        # The answer of a server can have links and ".." in it.
        path = Path(await anyio.to_thread.run_sync(os.path.realpath, path))
        if not path.is_relative_to(cwd):
            return f"{path}:{line + 1}"
        permissions = self._session.permissions
        facts = await permissions.facts_of(ReadPermission(intention="", path=str(path)), NAME)
        is_denied = permissions.denial_by_rule(facts) is not None
        text = "" if is_denied else await anyio.to_thread.run_sync(_line_of, path, line, cwd)
        return f"{path.relative_to(cwd)}:{line + 1}: {text}".removesuffix(": ")


def _intention(args: LspArgs) -> str:
    what = args.symbol or args.path
    match args.operation:
        case "definition":
            return f"Find the definition of {what}"
        case "references":
            return f"Find the uses of {what}"
        case "symbols":
            return f"List the symbols of {args.path}"
        case "rename":
            return f"Rename {what} to {args.new_name}"


def _problem(args: LspArgs, error: OSError | ValueError) -> ToolOutcome:
    return problem(args.path, error) if isinstance(error, OSError) else failure(f"{args.path}: {error}.")


def _place(path: Path, args: LspArgs) -> tuple[int, int]:
    """Return the line and the character, in UTF-16 units, of the symbol in a file; both count from 0. Blocks.

    Raises:
        OSError, ValueError: the file cannot be read, or the symbol is not there.
    """
    symbol, text = args.symbol, read_whole(path, LARGEST_FILE).decode("utf-8", "replace")
    name = re.compile(rf"(?<![\w$]){re.escape(symbol)}(?![\w$])")
    for number, line in enumerate(text.splitlines()):
        if args.line in (None, number + 1) and (match := name.search(line)) is not None:
            # A qualified name stands for its last part.
            last = match.start() + symbol.rfind(".") + 1
            return number, len(line[:last].encode("utf-16-le", "surrogatepass")) // 2
    raise ValueError(f"there is no `{symbol}`" + (f" in line {args.line}" if args.line is not None else ""))


def _line_of(path: Path, line: int, within: Path) -> str:
    try:
        lines = read_whole(path, LARGEST_FILE, within).decode("utf-8", "replace").splitlines()
    except (OSError, ValueError):
        return ""
    return lines[line].strip()[:LONGEST_LINE] if line < len(lines) else ""


def _listed(lines: Sequence[str], most: int) -> str:
    more = [f"and {len(lines) - most} more"] if len(lines) > most else []
    return "\n".join([*lines[:most], *more])
