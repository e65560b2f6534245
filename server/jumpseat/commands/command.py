"""A built-in command, and one call of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct

from jumpseat.agent.session.session import Session
from jumpseat.commands.results import CommandResult, Option
from jumpseat.sessions.context import Parts


class Call(Struct, frozen=True):
    """One call of a command. ``args`` is the text after its name."""

    session: Session
    args: str
    server: Parts


class Builtin(Struct, frozen=True):
    """A built-in command.

    ``hint`` describes the text after the name, ``options`` are words that this text can be, and ``folder`` is
    whether it is the path of a folder. ``required`` is whether there has to be such a text, ``while_prompting``
    allows the command while a prompt runs. A command that ``yields`` only sends a prompt: a skill of the same name
    takes its place. A command that ``loosens`` what needs approval is not recognized in the prompts of editors,
    which may contain text that the user has not written.
    """

    name: str
    description: str
    run: Callable[[Call], Awaitable[CommandResult]]
    aliases: tuple[str, ...] = ()
    hint: str | None = None
    options: tuple[Option, ...] = ()
    folder: bool = False
    required: bool = False
    while_prompting: bool = True
    yields: bool = False
    loosens: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name and its aliases."""
        return self.name, *self.aliases
