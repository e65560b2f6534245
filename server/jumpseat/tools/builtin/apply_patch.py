"""``apply_patch``: create, change, move and delete files by one patch, all of them or none.

This is the tool that GPT-5 and codex models were trained on; see :mod:`jumpseat.agent.profiles`.
"""

from __future__ import annotations

from typing import Final

from jumpseat.tools.tool import BuiltinTool, Prepared, ToolArgs, ToolContext, ToolOutcome

GRAMMAR: Final = r"""
start: "*** Begin Patch" NL file+ "*** End Patch" NL?

file: added | deleted | updated
added: "*** Add File: " PATH NL new_line+
deleted: "*** Delete File: " PATH NL
updated: "*** Update File: " PATH NL moved? (place | line | end)*
moved: "*** Move to: " PATH NL

place: /@@( [^\n]+)?/ NL
line: /[ +-][^\n]*/ NL
end: "*** End of File" NL
new_line: /\+[^\n]*/ NL

PATH: /[^\n]+/
NL: "\n"
""".lstrip()
"""The form in Lark's notation, for providers that make a model follow a grammar: https://lark-parser.readthedocs.io."""


class ApplyPatchArgs(ToolArgs):
    input: str


# The rest is imported with the first patch of a process.


async def run_apply_patch(ctx: ToolContext, args: ApplyPatchArgs) -> ToolOutcome:
    from jumpseat.tools.patching import run_patch

    return await run_patch(ctx, args.input)


async def _prepare(ctx: ToolContext, args: ApplyPatchArgs) -> Prepared | ToolOutcome:
    from jumpseat.tools.patching import prepare_patch

    return await prepare_patch(ctx, args.input)


def _intention(args: ApplyPatchArgs) -> str:
    from jumpseat.tools.patching import describe_patch

    return describe_patch(args.input)


TOOL: Final = BuiltinTool(
    name="apply_patch",
    description=(
        "Create, change, move and delete files by one patch, all of them or none:\n"
        "*** Begin Patch\n*** Update File: PATH\n*** Move to: NEW PATH (optional)\n@@ LINE ABOVE (optional)\n"
        " unchanged line\n-old line\n+new line\n*** Add File: PATH\n+line\n*** Delete File: PATH\n*** End Patch\n"
        "Give three unchanged lines before and after each change, exactly as in the file."
    ),
    args=ApplyPatchArgs,
    run=run_apply_patch,
    intention=_intention,
    prepares=_prepare,
    grammar=GRAMMAR,
)
