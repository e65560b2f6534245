"""``edit``: replace passages of a text file. Line endings, mode and undecodable bytes are kept."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Any, Final, cast

import anyio.to_thread
from msgspec import Struct
from pydantic import Field, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from jumpseat.errors import StoreError
from jumpseat.tools.files import problem, unified_diff
from jumpseat.tools.tool import BuiltinTool, Prepared, ToolArgs, ToolContext, ToolOutcome, failure, impossible
from jumpseat_protocol.limits import PathText
from jumpseat_protocol.permissions import WritePermission


class OneEdit(ToolArgs):
    old_str: str
    new_str: str
    replace_all: bool = False


_EDITS: Final = {
    "type": "array",
    "description": "More edits, all or none",
    # Written out, because some models do not follow references.
    "items": {
        "type": "object",
        "properties": {"old_str": {"type": "string"}, "new_str": {"type": "string"}},
        "required": ["old_str", "new_str"],
    },
}


class EditArgs(ToolArgs):
    path: PathText
    old_str: str
    new_str: str
    replace_all: bool = False
    edits: Annotated[list[OneEdit], WithJsonSchema(_EDITS)] = Field(default_factory=list[OneEdit])
    # Hidden from models: some were trained on an editor tool that has it, and send it anyway.
    insert_line: SkipJsonSchema[int | None] = None

    @model_validator(mode="before")
    @classmethod
    def _take_the_first_edit(cls, data: Any) -> Any:
        """Accept a list of edits without the first one beside it, as other tools have it."""
        arguments = cast("dict[str, Any]", data if isinstance(data, dict) else {})
        edits = arguments.get("edits")
        if "old_str" in arguments or not isinstance(edits, list) or not edits:
            return cast("object", data)
        first, *rest = cast("list[object]", edits)
        if not isinstance(first, dict):
            return arguments
        return {**arguments, **cast("dict[str, Any]", first), "edits": rest}


async def run_edit(ctx: ToolContext, args: EditArgs) -> ToolOutcome:
    plan = await _make_plan(ctx, args)
    return plan if isinstance(plan, ToolOutcome) else await _run(ctx, args, plan)


async def _run(ctx: ToolContext, args: EditArgs, plan: _Plan) -> ToolOutcome:
    """Make the planned change, unless the file has changed since."""
    from jumpseat.tools.editable import changed_since

    try:
        if (refused := await changed_since(ctx, args.path, plan.before)) is not None:
            return refused
        data = plan.after.encode("utf-8", "surrogateescape")
        if ctx.virtual_files is not None and ctx.is_virtual(args.path):
            await ctx.virtual_files.save(args.path, data)
        else:
            await ctx.files.replace(ctx.resolve(args.path), data, plan.mode)
    except StoreError as error:
        return failure(str(error))
    except (OSError, ValueError) as error:
        return problem(args.path, error)
    detail = await anyio.to_thread.run_sync(plan.diff, str(ctx.resolve(args.path)))
    return ToolOutcome("\n".join([f"File {args.path} updated with changes.", *plan.notes]), detail=detail)


class _Plan(Struct, frozen=True):
    """A file before and after an edit, and what the model should know about the edit."""

    before: str
    after: str
    mode: int
    notes: tuple[str, ...] = ()

    def diff(self, name: str) -> str:
        return unified_diff(name, self.before, self.after)


async def _make_plan(ctx: ToolContext, args: EditArgs) -> _Plan | ToolOutcome:
    """Return the file before and after the edit, or a failure if the edit cannot be made."""
    # Imported with the first edit of a process.
    from jumpseat.tools.editable import read_editable

    found = await read_editable(ctx, args.path)
    if isinstance(found, ToolOutcome):
        return found
    return await anyio.to_thread.run_sync(_change, found.text, args, found.mode)


def _change(before: str, args: EditArgs, mode: int) -> _Plan | ToolOutcome:
    """Return the text before and after the edit of a file with this text, or a failure."""
    if args.insert_line is not None:
        return _insertion(before, args, args.insert_line, mode)
    from jumpseat.tools.editable import does_not_fit
    from jumpseat.tools.edits.engine import Edit, Refused, apply_edits

    edits = [Edit(edit.old_str, edit.new_str, edit.replace_all) for edit in (args, *args.edits)]
    result = apply_edits(before, edits, args.path)
    if isinstance(result, Refused):
        return failure(result.reason, withheld=does_not_fit(args.path))
    return _checked(_Plan(before, result.text, mode, result.notes))


def _insertion(before: str, args: EditArgs, line: int, mode: int) -> _Plan | ToolOutcome:
    """Insert ``new_str`` as separate lines after line ``line``; zero is the beginning of the file."""
    # Not splitlines, which splits at more characters than editors do.
    lines = [line for line in re.split(r"(?<=\n)", before) if line]
    if not 0 <= line <= len(lines):
        reason = f"insert_line {line} is not in {args.path}"
        return failure(
            f"{reason}, which has {len(lines)} lines.",
            withheld=f"{reason}. Its length is not shown, because it may not be known to you. View the file.",
        )
    end = "\r\n" if before.count("\r\n") * 2 > before.count("\n") else "\n"
    new = args.new_str.replace("\r\n", "\n").replace("\n", end)
    if line and not lines[line - 1].endswith("\n"):
        lines[line - 1] += end
    new = new if new.endswith("\n") else new + end
    return _checked(_Plan(before, "".join([*lines[:line], new, *lines[line:]]), mode))


def _checked(plan: _Plan) -> _Plan | ToolOutcome:
    try:
        plan.after.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return failure("new_str contains an unpaired surrogate. Write the character itself.")
    return plan


async def _prepare(ctx: ToolContext, args: EditArgs) -> Prepared | ToolOutcome:
    plan = await _make_plan(ctx, args)
    name = str(ctx.resolve(args.path))
    if isinstance(plan, ToolOutcome):
        request = WritePermission(intention=_intention(args), file_name=name, diff="")
        # The model may read virtual files unasked.
        return plan if ctx.is_virtual(args.path) else impossible(request, plan)
    diff = await anyio.to_thread.run_sync(plan.diff, name)
    request = WritePermission(intention=_intention(args), file_name=name, diff=diff)
    return Prepared(request, partial(_run, ctx, args, plan))


def _intention(args: EditArgs) -> str:
    return f"Edit {args.path}"


TOOL: Final = BuiltinTool(
    name="edit",
    description="Replace a text that occurs exactly once in a file.",
    args=EditArgs,
    run=run_edit,
    intention=_intention,
    prepares=_prepare,
    position=80,
)
