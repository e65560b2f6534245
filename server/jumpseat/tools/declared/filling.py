"""Commands with their ``${name}`` filled in.

In an argv the value becomes part of the word it stands in; a word that is nothing but one ``${name}`` of a list
becomes a word for each entry, and is left out where an optional name has no value. In a line for the shell nothing
is put into the text: the values are variables of the shell's environment, so that no value can become a command.
``${name}`` finds an entry of ``env``, else an argument; ``${args.name}`` always an argument.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from jumpseat.agent.blocks import JsonObject
from jumpseat.declared.env import EnvValues, Missing
from jumpseat.tools.declared.definition import Command
from jumpseat.tools.declared.view import as_text

_PLACEHOLDER: Final = re.compile(r"\$\{([^{}]+)\}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Filled:
    """A command that can be run. ``variables`` are for its environment, ``shown`` is what a person is to judge."""

    line: tuple[str, ...] | str
    shown: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    flag: str | None = None
    stdin: str | None = None
    cwd: str | None = None
    timeout_s: float | None = None


def values_of_call(env: EnvValues, arguments: JsonObject, parameters: JsonObject) -> EnvValues:
    """What ``${}`` may name in one call. An argument that the model may leave out is an optional name."""
    values: dict[str, Any] = {**arguments, **{f"args.{name}": value for name, value in arguments.items()}}
    missing = dict(env.missing)
    for name in cast("JsonObject", parameters.get("properties", {})):
        if arguments.get(name) is None:
            values.pop(name, None)
            values.pop(f"args.{name}", None)
            for form in (name, f"args.{name}"):
                missing.setdefault(form, Missing("the model has not given it", optional=True))
    values.update(env.values)
    return replace(env, values={name: _plain(value) for name, value in values.items()}, missing=missing)


def fill(command: Command, values: EnvValues, exported: Iterable[str]) -> Filled:
    """``command`` with its values. ``exported`` are the names that become variables of its environment.

    Raises:
        MissingValueError: a name that is not optional has none.
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
        return Filled(line, shown, {**variables, **named}, command.flag, stdin, cwd, command.timeout_s)
    words = tuple(word for template in command.line for word in _words(template, values))
    return Filled(words, shlex.join(words), variables, command.flag, stdin, cwd, command.timeout_s)


def as_it_is(command: Command) -> Filled:
    """A command of a handler: its author has put the values in, and what looks like a name may be the model's."""
    shown = command.line if isinstance(command.line, str) else shlex.join(command.line)
    return Filled(
        command.line, shown, flag=command.flag, stdin=command.stdin, cwd=command.cwd, timeout_s=command.timeout_s
    )


def _words(template: str, values: EnvValues) -> list[str]:
    alone = _PLACEHOLDER.fullmatch(template)
    if alone is not None and isinstance(items := values.values.get(alone[1]), list):
        return [as_text(item) for item in cast("list[Any]", items)]
    text = values.text(template)
    return [] if text is None else [text]


def _for_shell(line: str, values: EnvValues) -> tuple[str, dict[str, str]]:
    """The line with names that a shell understands, and what they stand for; names of the shell's own are left."""
    named: dict[str, str] = {}

    def variable(match: re.Match[str]) -> str:
        name = match[1]
        if name not in values.values and name not in values.missing:
            return match[0]
        plain = name if _VARIABLE.fullmatch(name) else re.sub(r"\W", "_", name)
        # Raises where it has to have a value.
        named[plain] = values.text(match[0]) or ""
        return f"${{{plain}}}"

    return _PLACEHOLDER.sub(variable, line), named


def _plain(value: Any) -> Any:
    """Lists stay, for words of their own; all else that is no plain value is JSON where it becomes text."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    return value if isinstance(value, str | int | float | bool) else as_text(value)
