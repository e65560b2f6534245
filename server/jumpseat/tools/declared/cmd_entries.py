"""The entries of ``cmds`` in one call, in the plain form that handlers read and change.

A command is a list of words, a line for the shell, or a table with further keys, in all of which ``${}`` has been
substituted. A command that a handler has written is taken as it is: a ``${name}`` in it may come from the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import kind_of
from jumpseat.tools.declared.definition import Command, Handler, read_step
from jumpseat.tools.declared.substitution import Filled, without_filling


class Entries:
    """Converts the commands of one call to plain entries, and back."""

    def __init__(self) -> None:
        self._given: list[tuple[Any, Filled]] = []

    def plain(self, command: Filled) -> Any:
        """Return the entry of ``cmds`` that stands for a command."""
        line = command.line if isinstance(command.line, str) else list(command.line)
        more = {"flag": command.flag, "stdin": command.stdin, "cwd": command.cwd, "timeout_s": command.timeout_s}
        table = {name: value for name, value in more.items() if value is not None}
        entry: Any = {"cmd": line, **table} if table else line
        self._given.append((entry, command))
        return entry

    def read(self, cmds: Any) -> list[Filled | Handler]:
        """Return the steps of a call from its entries, some of which handlers may have changed or added.

        Raises:
            ConfigError: there is no entry, or one is neither a command nor a function.
        """
        if not isinstance(cmds, list | tuple):
            raise ConfigError(f"cmds: setup must leave a list, got {kind_of(cmds)}")
        steps = [self._step(number, cmd) for number, cmd in enumerate(cast("list[Any]", cmds))]
        if not steps:
            raise ConfigError("it has no cmds: setup added none, or removed all")
        return steps

    def _step(self, number: int, entry: Any) -> Filled | Handler:
        step = read_step(f"cmds[{number}]", entry)
        if not isinstance(step, Command):
            return step
        command = without_filling(step)
        before = next((filled for given, filled in self._given if given is entry), None)
        if before is None:
            return command
        shown = before.shown if command.line == before.line else command.shown
        return replace(command, shown=shown, variables=before.variables)
