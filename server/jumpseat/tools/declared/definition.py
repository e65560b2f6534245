"""Read the declaration of a tool, in the forms of today, of 2025 and of 2024.

::

    description = "Count the words of a file"
    cmds = [["wc", "-w", "--", "${path}"]]        # an argv; a string is a line for the shell

    [parameters.path]
    type = "string"
    description = "The file"

In Python the declaration is a mapping ``TOOL``, whose ``cmds`` and handlers may be functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ToolSchema, ToolSpec
from jumpseat.declared.env import read_entry
from jumpseat.declared.names import unknown_option
from jumpseat.declared.values import function_in
from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import config_error, kind_of
from jumpseat.tools.declared.calling_conventions import is_of_2024
from jumpseat.tools.declared.placeholders import Template, check_placeholders
from jumpseat.tools.declared.schema import read_signature
from jumpseat_protocol.members import hint

Handler: TypeAlias = Callable[..., Any]

DEFAULT_TIMEOUT_S: Final = 300.0

HANDLERS: Final = ("setup", "prompt_condition", "approved", "on_exit")
OUTPUTS: Final = ("success", "error", "prompt", "rejected", "cancelled", "cmd_string")
APPROVALS: Final = ("requires_approval", "require_approval_before", "user_approval")
"""Options with the same meaning, of different years."""
STRING_OUTPUTS: Final = frozenset({"prompt", "rejected", "cancelled"})
"""Outputs that may be strings with ``${}`` instead of functions."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Tool names that all providers accept."""


class Options(BaseModel):
    """``opts``: how a tool is treated.

    ``requires_approval`` is a boolean, or a function that returns one (any other true value leaves the decision to
    ``prompt_condition``); if unset, the user is asked. ``timeout_s`` limits each command and function, ``timeout``
    is the same in milliseconds. ``on_mention`` hides a tool from the model until it is named. ``parallel`` lets
    calls of one answer run concurrently instead of one after the other. Without ``allowed_in_yolo_mode``, settings
    that allow all calls do not allow these; with ``require_cmd_approval`` an approval holds only for the same
    ``cmd_string``, or the same arguments. Tools may have options of their own, too.
    """

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True, arbitrary_types_allowed=True)

    requires_approval: Any = None
    require_approval_before: Any = None
    user_approval: Any = None
    allowed_in_yolo_mode: bool = True
    require_cmd_approval: bool = False
    use_handlers_once: bool = False
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    on_mention: bool = False
    parallel: bool = False

    @property
    def own(self) -> Mapping[str, Any]:
        """Return the options that only functions of the tool can know."""
        return self.model_extra or {}

    @property
    def approval(self) -> Any:
        """Return the first of the three synonymous options that is set."""
        options = (getattr(self, name) for name in APPROVALS)
        return next((option for option in options if option is not None), None)


class _Declaration(BaseModel):
    """The keys of a declaration; :class:`Definition` is the result of reading it.

    ``callback`` and ``extends`` are resolved before, and are here for hints to their names.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, arbitrary_types_allowed=True)

    name: str = ""
    description: str = ""
    parameters: Any = None
    schema_: Any = Field(default=None, alias="schema")
    cmds: list[Any] = Field(default_factory=list[Any])
    build_cmd: Any = None
    env: Any = None
    cwd: str | None = None
    system_prompt: Any = None
    handlers: dict[str, Any] = Field(default_factory=dict[str, Any])
    output: dict[str, Any] = Field(default_factory=dict[str, Any])
    enabled: Any = True
    visible: bool = True
    requires_approval: Any = None
    timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    on_mention: bool | None = None
    overrides_built_in_tool: bool = False
    unsandboxed: str | None = Field(default=None, min_length=1)
    opts: Options = Field(default_factory=Options)
    callback: None = None
    extends: None = None


class _CommandTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    cmd: list[str] | str
    flag: str | None = None
    stdin: str | None = None
    cwd: str | None = None
    timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class Command(Struct, frozen=True):
    """A process to run. ``line`` is an argv, or a string for the shell; all strings may contain ``${}``.

    ``flag`` is the name under which success (exit code 0) is recorded.
    """

    line: tuple[str, ...] | str
    flag: str | None = None
    stdin: str | None = None
    cwd: str | None = None
    timeout_s: float | None = None


Step: TypeAlias = Command | Handler


class Definition(Struct, frozen=True):
    """The definition of a tool. ``legacy`` selects the conventions of 2024 where nothing else distinguishes them.

    ``cmds`` are as declared; :func:`read_step` converts them when a call runs, because handlers may add some.
    ``description`` is for users and, unless its schema has another one, for models. ``spec`` is what models see,
    ``declared`` the whole declaration as it was written. ``unsandboxed`` is a reason to run the commands outside of
    the sandbox.
    """

    name: str
    description: str
    parameters: JsonObject
    spec: ToolSpec
    cmds: tuple[Any, ...]
    env: Mapping[str, Any] | Handler
    schema: Any = None
    cwd: str | None = None
    system_prompt: str | Handler | None = None
    handlers: Mapping[str, Handler] = field(default_factory=dict[str, Handler])
    output: Mapping[str, Handler | str] = field(default_factory=dict[str, "Handler | str"])
    enabled: bool | Handler = True
    build_cmd: Handler | None = None
    opts: Options = field(default_factory=Options)
    timeout_s: float = DEFAULT_TIMEOUT_S
    overrides_built_in_tool: bool = False
    unsandboxed: str | None = None
    legacy: bool = False
    declared: Mapping[str, Any] = field(default_factory=dict[str, Any])


def read_definition(raw: Mapping[str, Any], *, where: str, name: str = "", data_only: bool = False) -> Definition:
    """Read a declaration. ``name`` is the default name; ``data_only`` forbids functions.

    Raises:
        ConfigError: an unknown key or an invalid value, at the place in the message.
    """
    if "tools" in raw:
        raise ConfigError(f"{where}: expected cmds, for a tool, or tools, for a group, not both")
    try:
        declared = _Declaration.model_validate(_unwrapped(where, raw))
    except RecursionError:
        raise ConfigError(f"{where}: callback: refers to itself, or is nested too deeply") from None
    except ValidationError as error:
        raise config_error(where, error, _Declaration) from None
    function = function_in(raw)
    if data_only and function is not None:
        raise ConfigError(f"{where}.{function}: expected data, not a function")
    problem = unknown_option(declared.opts.own, Options.model_fields, has_functions=function is not None)
    if problem is not None:
        raise ConfigError(f"{where}.opts.{problem}")
    signature = read_signature(where, declared.parameters, declared.schema_)
    name = declared.name or signature.name or name
    if not _NAME.fullmatch(name):
        expected = "expected 1 to 64 letters, digits, '_' and '-'"
        raise ConfigError(f"{where}: {name!r} cannot be the name of a tool: {expected}")
    handlers = _functions(f"{where}.handlers", declared.handlers, HANDLERS, strings=frozenset())
    if not declared.cmds and declared.build_cmd is None and "setup" not in handlers:
        raise ConfigError(f"{where}: expected cmds: a list of commands or functions")
    for number, cmd in enumerate(declared.cmds):
        read_step(f"{where}.cmds[{number}]", cmd)
    opts = _with_short_keys(where, declared)
    milliseconds = opts.timeout
    definition = Definition(
        name=name,
        description=declared.description or signature.description or "",
        parameters=signature.parameters,
        spec=ToolSpec(
            name,
            signature.description or declared.description,
            ToolSchema.of(signature.parameters),
            strict=signature.strict,
        ),
        cmds=tuple(declared.cmds),
        env=_env(where, declared.env),
        schema=declared.schema_,
        cwd=declared.cwd,
        system_prompt=_string_or_function(f"{where}.system_prompt", declared.system_prompt),
        handlers=cast("Mapping[str, Handler]", handlers),
        output=_functions(f"{where}.output", declared.output, OUTPUTS, strings=STRING_OUTPUTS),
        enabled=_boolean_or_function(f"{where}.enabled", declared.enabled),
        build_cmd=None if declared.build_cmd is None else _function(f"{where}.build_cmd", declared.build_cmd),
        opts=opts,
        timeout_s=opts.timeout_s or (milliseconds / 1000 if milliseconds else DEFAULT_TIMEOUT_S),
        overrides_built_in_tool=declared.overrides_built_in_tool,
        unsandboxed=declared.unsandboxed,
        legacy=signature.example or "approved" in handlers or is_of_2024(declared.cmds, declared.output),
        declared=raw,
    )
    if not callable(definition.env):
        check_placeholders(where, definition.env, definition.parameters, _templates(definition))
    return definition


def read_step(where: str, cmd: Any) -> Step:
    """Read an entry of ``cmds``: a function, an argv, a line for the shell, or a table with further keys.

    Raises:
        ConfigError: the entry is none of them.
    """
    if callable(cmd):
        return cast("Handler", cmd)
    if isinstance(cmd, Mapping):
        # In Lua, an argv with a flag is one table with both.
        try:
            table = _CommandTable.model_validate(dict(cast("Mapping[str, Any]", cmd)))
        except ValidationError as error:
            raise config_error(where, error, _CommandTable, inside=True) from None
        line = _line(where, table.cmd)
        return Command(line, table.flag, table.stdin, table.cwd, table.timeout_s)
    return Command(_line(where, cmd))


def _line(where: str, cmd: Any) -> tuple[str, ...] | str:
    if isinstance(cmd, str):
        if not cmd.strip():
            raise ConfigError(f"{where}: expected a command, got an empty string")
        if "\0" in cmd:
            raise ConfigError(f"{where}: contains a NUL character, which no command can")
        return cmd
    argv = cast("list[Any]", cmd) if isinstance(cmd, list | tuple) else []
    if not argv:
        raise ConfigError(f"{where}: expected a list of strings, a string or a function, got {cmd!r:.100}")
    words: list[str] = []
    for word in argv:
        if not isinstance(word, str | int | float) or isinstance(word, bool):
            raise ConfigError(f"{where}: expected a list of strings, but one element is {kind_of(word)}")
        words.append(str(word))
    if any("\0" in word for word in words):
        raise ConfigError(f"{where}: contains a NUL character, which no command can")
    return tuple(words)


def _templates(definition: Definition) -> Iterator[Template]:
    """Yield the strings in which placeholders are replaced."""
    for number, cmd in enumerate(definition.cmds):
        step = read_step("cmds", cmd)
        if not isinstance(step, Command):
            continue
        place = f"cmds[{number}]"
        if isinstance(step.line, str):
            yield Template(place, step.line, for_shell=True)
        else:
            yield from (Template(place, word) for word in step.line)
        if step.stdin is not None:
            yield Template(f"{place}.stdin", step.stdin)
        if step.cwd is not None:
            yield Template(f"{place}.cwd", step.cwd)
    if definition.cwd is not None:
        yield Template("cwd", definition.cwd)
    for kind, text in definition.output.items():
        if isinstance(text, str):
            yield Template(f"output.{kind}", text)


def _unwrapped(where: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a declaration whose tool is in ``callback``, with further keys around it, into one table."""
    outer = {key: value for key, value in raw.items() if key != "callback"}
    extends = outer.pop("extends", None)
    if extends not in (None, "cmd_tool"):
        raise ConfigError(f"{where}.extends: expected 'cmd_tool', got {extends!r}")
    callback = raw.get("callback")
    if callback is None:
        return outer
    inner: Any = callback() if callable(callback) else callback
    if not isinstance(inner, Mapping):
        raise ConfigError(f"{where}.callback: expected a tool, or a function that returns one")
    table = _unwrapped(f"{where}.callback", cast("Mapping[str, Any]", inner))
    opts = {**dict(table.get("opts") or {}), **dict(outer.get("opts") or {})}
    return {**table, **outer, **({"opts": opts} if opts else {})}


def _with_short_keys(where: str, declared: _Declaration) -> Options:
    """Merge options that are written beside ``opts`` into it."""
    approvals = {"requires_approval": declared.requires_approval}
    approvals |= {f"opts.{name}": getattr(declared.opts, name) for name in APPROVALS}
    for name, value in approvals.items():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            raise ConfigError(f"{where}.{name}: expected a boolean or a function, got {kind_of(value)}")
    update: dict[str, Any] = {"requires_approval": declared.requires_approval, "timeout_s": declared.timeout_s}
    update["on_mention"] = (
        declared.on_mention if declared.on_mention is not None else None if declared.visible else True
    )
    return declared.opts.model_copy(update={key: value for key, value in update.items() if value is not None})


def _env(where: str, raw: Any) -> Mapping[str, Any] | Handler:
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        return _function(f"{where}.env", raw)
    entries = cast("Mapping[str, Any]", raw)
    for name, entry in entries.items():
        read_entry(f"{where}.env.{name}", entry)
    return entries


def _functions(
    where: str, raw: Mapping[str, Any], known: tuple[str, ...], *, strings: frozenset[str]
) -> dict[str, Handler | str]:
    unknown = sorted(raw.keys() - set(known))
    if unknown:
        raise ConfigError(f"{where}.{unknown[0]}: unknown, {hint(unknown[0], known)}")
    found: dict[str, Handler | str] = {}
    for name, value in raw.items():
        if isinstance(value, str) and name in strings:
            found[name] = value
        elif value is not None:
            wanted = "a string or a function" if name in strings else "a function"
            found[name] = _function(f"{where}.{name}", value, wanted)
    return found


def _string_or_function(where: str, value: Any) -> str | Handler | None:
    return value if value is None or isinstance(value, str) else _function(where, value, "a string or a function")


def _boolean_or_function(where: str, value: Any) -> bool | Handler:
    return value if isinstance(value, bool) else _function(where, value, "a boolean or a function")


def _function(where: str, value: Any, wanted: str = "a function") -> Handler:
    if not callable(value):
        raise ConfigError(f"{where}: expected {wanted}, got {kind_of(value)}")
    return cast("Handler", value)
