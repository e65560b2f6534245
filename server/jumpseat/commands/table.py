"""The table of built-in commands."""

from __future__ import annotations

from typing import Final

from jumpseat.commands import approvals, conversation, surroundings, work
from jumpseat.commands.command import Builtin

BUILTINS: Final = tuple(
    sorted(
        (*approvals.COMMANDS, *conversation.COMMANDS, *surroundings.COMMANDS, *work.COMMANDS),
        key=lambda command: command.name,
    )
)

_BY_NAME: Final = {name: command for command in BUILTINS for name in command.names}


def find_builtin(name: str) -> Builtin | None:
    """Return the command with a name or an alias, in any case."""
    return _BY_NAME.get(name.casefold())
