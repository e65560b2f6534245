"""Waiting for a shell command and reporting its output to the model, for all tools that deal with commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio

from jumpseat.agent.command_texts import EXITED, RUNNING
from jumpseat.tools.running_commands import RunningCommand
from jumpseat.tools.tool import ToolContext, ToolOutcome, failure

PARTIAL_INTERVAL_S: Final = 0.1

PARTIAL_LIMIT_BYTES: Final = 64 * 1024
"""Each partial output repeats the whole text: a command that writes much must not flood the connection."""

REFUSED: Final = "the sandbox refused"

OUTSIDE: Final = (
    "<if the command needs that, call bash again with a reason in `unsandboxed`: the user is asked whether it may"
    " run outside of the sandbox>"
)

LONGEST_WAIT_S: Final = 3600.0


async def follow(shell: RunningCommand, partial: Callable[[str], None], seconds: float) -> None:
    """Wait up to ``seconds`` for the end of the command, passing its output so far to ``partial``.

    The wait ends early if the command is moved to the background.
    """
    shown = 0

    def show() -> None:
        nonlocal shown
        if shell.output_bytes != shown:
            shown = shell.output_bytes
            partial(shell.output(PARTIAL_LIMIT_BYTES))

    # In this order a NaN becomes zero.
    with anyio.move_on_after(max(0.0, min(seconds, LONGEST_WAIT_S))):
        while not shell.finished and not shell.leaves_call:
            await shell.news(shown)
            show()
            with anyio.move_on_after(PARTIAL_INTERVAL_S):
                await shell.wait()
    show()


def report(shell: RunningCommand) -> str:
    """Return the unread output and the state of the command, for the model."""
    output = shell.unread().rstrip("\r\n")
    if shell.finished:
        shell.reported = True
        status = f"{EXITED}{shell.exit_code}>"
    else:
        status = f"{RUNNING}{shell.id}; go on with read_bash, end it with stop_bash>"
    return "\n".join(filter(None, (output, status, *_explained(shell))))


def _explained(shell: RunningCommand) -> list[str]:
    """Return the lines about the sandbox, for the model."""
    messages = shell.messages
    refused = any(message.startswith(REFUSED) for message in messages)
    return [f"<{message}>" for message in messages] + ([OUTSIDE] if refused else [])


def unknown_shell(ctx: ToolContext, shell_id: str) -> ToolOutcome:
    """Return the failure of a call with a ``shellId`` that does not exist."""
    known = ", ".join(shell.id for shell in ctx.shells) or "none"
    return failure(
        f"There is no shell {shell_id!r}: it never existed, or its end has been reported. Shells: {known}."
    )
