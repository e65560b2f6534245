"""``ask_user``: ask the user a question. Offered only while a client is attached that can ask its user."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from jumpseat.errors import ClientCallError
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure


class AskUserArgs(ToolArgs):
    question: str = Field(description="One question, complete in itself")
    choices: list[str] | None = None
    allow_freeform: bool | None = Field(
        default=None, description="Whether another answer may be typed (default: yes)"
    )


async def run_ask_user(ctx: ToolContext, args: AskUserArgs) -> ToolOutcome:
    try:
        response = await ctx.ask_user(args.question, args.choices, args.allow_freeform is not False)
    except ClientCallError:
        return failure(
            "The user could not be asked. Continue without an answer, or end your turn with the question."
        )
    verb = "responded" if response.was_freeform else "selected"
    return ToolOutcome(text=f"User {verb}: {response.answer}")


def _intention(args: AskUserArgs) -> str:
    return args.question


TOOL: Final = BuiltinTool(
    name="ask_user",
    description="Ask the user a question and wait for the answer.",
    args=AskUserArgs,
    run=run_ask_user,
    intention=_intention,
    needs="user_input",
    position=110,
    read_only=True,
)
