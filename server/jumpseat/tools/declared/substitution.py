"""Substitute the values of ``${name}`` in commands.

In an argv a value becomes part of its word. A word that consists of one ``${name}`` becomes one word per entry if
the value is a list, and is left out if an optional name has no value. A line for the shell is not changed: values
become variables of its environment, so that no value can become a command. ``${name}`` is an entry of ``env``, else
an argument; ``${args.name}`` is always an argument.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.blocks import JsonObject
from jumpseat.declared.env import EnvValues, Missing
from jumpseat.declared.names import PLACEHOLDER
from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import kind_of
from jumpseat.tools.declared.definition import Command, Handler, read_step
from jumpseat.tools.declared.view import as_text

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Filled(Struct, frozen=True):
    """A command to run. ``variables`` extend its environment, ``shown`` is its text in permission requests."""

    command: Command
    shown: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the words of the command as it is executed."""
        line = self.command.line
        return ("sh", "-c", line) if isinstance(line, str) else line


def values_of_call(env: EnvValues, arguments: JsonObject, parameters: JsonObject) -> EnvValues:
    """Return the values of ``${}`` in one call. Arguments that the model has left out are optional names."""
    values: dict[str, Any] = {**arguments, **{f"args.{name}": value for name, value in arguments.items()}}
    missing = dict(env.missing)
    for name in cast("JsonObject", parameters.get("properties", {})):
        if arguments.get(name) is None:
            values.pop(name, None)
            values.pop(f"args.{name}", None)
            for form in (name, f"args.{name}"):
                missing.setdefault(form, Missing("the call has no such argument", optional=True))
    values.update(env.values)
    return replace(env, values={name: _plain(value) for name, value in values.items()}, missing=missing)


def fill(command: Command, values: EnvValues, exported: Iterable[str]) -> Filled:
    """Substitute ``values`` in ``command``. ``exported`` are the names that become environment variables.

    Raises:
        MissingValueError: a name that is not optional has no value.
    """
    variables = {
        name: as_text(values.values[name])
        for name in exported
        if name in values.values and _VARIABLE.fullmatch(name)
    }
    stdin = None if command.stdin is None else values.text(command.stdin) or ""
    cwd = None if command.cwd is None else values.text(command.cwd)
    if isinstance(command.line, str):
        line, named = _for_shell(command.line, values)
        assigned = " ".join(f"{name}={shlex.quote(value)}" for name, value in named.items())
        shown = f"{assigned}; {line}" if assigned else line
        variables |= named
    else:
        line = tuple(word for template in command.line for word in _words(template, values))
        shown = shlex.join(line)
    return Filled(replace(command, line=line, stdin=stdin, cwd=cwd), shown, variables)


class Entries:
    """Converts the commands of one call to the plain entries of ``cmds`` that handlers read and change, and back.

    A command is a list of words, a line for the shell, or a table with further keys, in all of which ``${}`` has
    been substituted. A command that a handler has written is taken as it is: a ``${name}`` in it may come from the
    model.
    """

    def __init__(self) -> None:
        self._given: list[tuple[Any, Filled]] = []

    def plain(self, filled: Filled) -> Any:
        """Return the entry of ``cmds`` that stands for a command."""
        command = filled.command
        line = command.line if isinstance(command.line, str) else list(command.line)
        more = {"flag": command.flag, "stdin": command.stdin, "cwd": command.cwd, "timeout_s": command.timeout_s}
        table = {name: value for name, value in more.items() if value is not None}
        entry: Any = {"cmd": line, **table} if table else line
        self._given.append((entry, filled))
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
        shown = step.line if isinstance(step.line, str) else shlex.join(step.line)
        before = next((filled for given, filled in self._given if given is entry), None)
        if before is None:
            return Filled(step, shown)
        return Filled(step, before.shown if step.line == before.command.line else shown, before.variables)


def _words(template: str, values: EnvValues) -> list[str]:
    alone = PLACEHOLDER.fullmatch(template)
    if alone is not None and isinstance(items := values.values.get(alone[1]), list):
        return [as_text(item) for item in cast("list[Any]", items)]
    text = values.text(template)
    return [] if text is None else [text]


def _for_shell(line: str, values: EnvValues) -> tuple[str, dict[str, str]]:
    """Rename ``${}`` to valid shell variables; return the line and their values. Other variables are kept."""
    named: dict[str, str] = {}

    def variable(match: re.Match[str]) -> str:
        name = match[1]
        if name not in values.values and name not in values.missing:
            return match[0]
        plain = name if _VARIABLE.fullmatch(name) else re.sub(r"\W", "_", name)
        # Raises if a required name has no value.
        named[plain] = values.text(match[0]) or ""
        return f"${{{plain}}}"

    return PLACEHOLDER.sub(variable, line), named


def _plain(value: Any) -> Any:
    """Keep lists, whose entries may become words, and plain values; convert anything else to text."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    return value if isinstance(value, str | int | float | bool) else as_text(value)
