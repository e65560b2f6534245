"""A declared tool as data: reading it, in the forms of today, of 2025 and of 2024.

::

    description = "Count the words of a file"
    cmds = [["wc", "-w", "--", "${path}"]]        # argv; a text is a line for the shell

    [parameters.path]
    type = "string"
    description = "The file"

The same in Python is a mapping ``TOOL``, where ``cmds`` may hold functions and handlers are functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jumpseat.agent.blocks import JsonObject
from jumpseat.errors import ConfigError, validation_problems
from jumpseat.tools.declared.schema import read_signature

Handler: TypeAlias = Callable[..., Any]

DEFAULT_TIMEOUT_S: Final = 300.0

HANDLERS: Final = ("setup", "prompt_condition", "approved", "on_exit")
OUTPUTS: Final = ("success", "error", "prompt", "rejected", "cancelled", "cmd_string")
TEXTS: Final = frozenset({"prompt", "rejected", "cancelled"})
"""Outputs that may be texts with ``${}`` instead of functions."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What all providers take for the name of a tool."""


class Options(BaseModel):
    """``opts``: how a tool is treated.

    ``requires_approval`` is a boolean, or a function that gives one (anything else that is true leaves the decision
    to ``prompt_condition``); unset, the user is asked. ``timeout_s`` holds for each command and function,
    ``timeout`` is the same in milliseconds. ``on_mention`` keeps a tool from the model until somebody names it.
    ``parallel`` lets calls of one answer run at the same time; others run one after the other. Where
    ``allowed_in_yolo_mode`` is off, what allows all calls does not allow these; with ``require_cmd_approval`` an
    approval holds for the same ``cmd_string`` only, or the same arguments. Tools keep options of their
    own here, too.
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
    def approval(self) -> Any:
        """The first of the three names that says something."""
        said = (self.requires_approval, self.require_approval_before, self.user_approval)
        return next((one for one in said if one is not None), None)


class _Declaration(BaseModel):
    """What may be said; :class:`Definition` is what it means."""

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
    opts: Options = Field(default_factory=Options)


class _CommandTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    cmd: list[str] | str
    flag: str | None = None
    stdin: str | None = None
    cwd: str | None = None
    timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Command:
    """A process to run. ``line`` is an argv, or a text for the shell; all texts may hold ``${}``.

    ``flag`` is the name under which it is remembered whether it ended with 0.
    """

    line: tuple[str, ...] | str
    flag: str | None = None
    stdin: str | None = None
    cwd: str | None = None
    timeout_s: float | None = None


Step: TypeAlias = Command | Handler


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool. ``legacy`` tells the conventions of 2024, where they differ and nothing else tells them apart.

    ``cmds`` are as they were declared; :func:`read_step` makes steps of them, because handlers may add some.
    """

    name: str
    description: str
    parameters: JsonObject
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
    legacy: bool = False


def read_definition(raw: Mapping[str, Any], *, where: str, name: str = "", data_only: bool = False) -> Definition:
    """Read a declaration. ``name`` is for one that does not say its own; ``data_only`` allows no functions.

    Raises:
        ConfigError: something unknown or of the wrong form; the text says where.
    """
    try:
        said = _Declaration.model_validate(_unwrapped(where, raw))
    except ValidationError as error:
        raise ConfigError(f"{where}: {'; '.join(validation_problems(error))}") from None
    if data_only and (place := _function_in(raw)) is not None:
        raise ConfigError(f"{where}{place}: expected data, not a function")
    signature = read_signature(where, said.parameters, said.schema_)
    name = said.name or signature.name or name
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: {name!r} cannot be the name of a tool: expected letters, digits, '_' and '-'")
    handlers = _functions(f"{where}.handlers", said.handlers, HANDLERS, texts=frozenset())
    if not said.cmds and said.build_cmd is None and "setup" not in handlers:
        raise ConfigError(f"{where}: expected cmds: a list of commands or functions")
    for number, cmd in enumerate(said.cmds):
        read_step(f"{where}.cmds[{number}]", cmd)
    opts = _with_short_keys(said)
    milliseconds = opts.timeout
    return Definition(
        name=name,
        description=said.description or signature.description or "",
        parameters=signature.parameters,
        cmds=tuple(said.cmds),
        env=_env(where, said.env),
        schema=said.schema_,
        cwd=said.cwd,
        system_prompt=_text_or_function(f"{where}.system_prompt", said.system_prompt),
        handlers=cast("Mapping[str, Handler]", handlers),
        output=_functions(f"{where}.output", said.output, OUTPUTS, texts=TEXTS),
        enabled=said.enabled if isinstance(said.enabled, bool) else _function(f"{where}.enabled", said.enabled),
        build_cmd=None if said.build_cmd is None else _function(f"{where}.build_cmd", said.build_cmd),
        opts=opts,
        timeout_s=opts.timeout_s or (milliseconds / 1000 if milliseconds else DEFAULT_TIMEOUT_S),
        overrides_built_in_tool=said.overrides_built_in_tool,
        legacy=signature.example or "approved" in handlers,
    )


def read_step(where: str, cmd: Any) -> Step:
    """An entry of ``cmds``: a function, an argv, a line for the shell, or a table that says more.

    Raises:
        ConfigError: it is none of them.
    """
    if callable(cmd):
        return cast("Handler", cmd)
    if isinstance(cmd, Mapping):
        # Lua has one kind of table: an argv with a flag comes as a table with both.
        try:
            table = _CommandTable.model_validate(dict(cast("Mapping[str, Any]", cmd)))
        except ValidationError as error:
            raise ConfigError(f"{where}: {'; '.join(validation_problems(error))}") from None
        line = _line(where, table.cmd)
        return Command(line, table.flag, table.stdin, table.cwd, table.timeout_s)
    return Command(_line(where, cmd))


def _line(where: str, cmd: Any) -> tuple[str, ...] | str:
    if isinstance(cmd, str):
        if not cmd.strip():
            raise ConfigError(f"{where}: expected a command, got an empty text")
        return cmd
    argv = cast("list[Any]", cmd) if isinstance(cmd, list | tuple) else []
    if not argv:
        raise ConfigError(f"{where}: expected an argv, a text or a function, got {cmd!r:.100}")
    words: list[str] = []
    for word in argv:
        if not isinstance(word, str | int | float) or isinstance(word, bool):
            raise ConfigError(f"{where}: expected texts, got {type(word).__name__}")
        words.append(str(word))
    return tuple(words)


def _unwrapped(where: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """``raw`` as one table, where the tool itself stands in ``callback`` and the rest around it."""
    outer = {key: value for key, value in raw.items() if key != "callback"}
    extends = outer.pop("extends", None)
    if extends not in (None, "cmd_tool"):
        raise ConfigError(f"{where}.extends: expected 'cmd_tool', got {extends!r}")
    callback = raw.get("callback")
    if callback is None:
        return outer
    inner: Any = callback() if callable(callback) else callback
    if not isinstance(inner, Mapping):
        raise ConfigError(f"{where}.callback: expected a tool, or a function that gives one")
    table = _unwrapped(f"{where}.callback", cast("Mapping[str, Any]", inner))
    opts = {**dict(table.get("opts") or {}), **dict(outer.get("opts") or {})}
    return {**table, **outer, **({"opts": opts} if opts else {})}


def _with_short_keys(said: _Declaration) -> Options:
    """``opts`` with what stands beside it for short."""
    update: dict[str, Any] = {"requires_approval": said.requires_approval, "timeout_s": said.timeout_s}
    update["on_mention"] = said.on_mention if said.on_mention is not None else None if said.visible else True
    return said.opts.model_copy(update={key: value for key, value in update.items() if value is not None})


def _env(where: str, raw: Any) -> Mapping[str, Any] | Handler:
    if raw is None:
        return {}
    if isinstance(raw, Mapping):
        return cast("Mapping[str, Any]", raw)
    return _function(f"{where}.env", raw)


def _functions(
    where: str, raw: Mapping[str, Any], known: tuple[str, ...], *, texts: frozenset[str]
) -> dict[str, Handler | str]:
    unknown = sorted(raw.keys() - set(known))
    if unknown:
        raise ConfigError(f"{where}: unknown {', '.join(unknown)}; known: {', '.join(known)}")
    found: dict[str, Handler | str] = {}
    for name, value in raw.items():
        if isinstance(value, str) and name in texts:
            found[name] = value
        elif value is not None:
            found[name] = _function(f"{where}.{name}", value)
    return found


def _text_or_function(where: str, value: Any) -> str | Handler | None:
    return value if value is None or isinstance(value, str) else _function(where, value)


def _function(where: str, value: Any) -> Handler:
    if not callable(value):
        raise ConfigError(f"{where}: expected a function, got {type(value).__name__}")
    return cast("Handler", value)


def _function_in(node: Any, place: str = "") -> str | None:
    """Where a function stands in a declaration that is to be data."""
    if callable(node):
        return place
    items: list[tuple[str, Any]] = []
    if isinstance(node, Mapping):
        items = [(f".{key}", value) for key, value in cast("Mapping[str, Any]", node).items()]
    elif isinstance(node, list):
        items = [(f"[{number}]", value) for number, value in enumerate(cast("list[Any]", node))]
    return next((found for step, value in items if (found := _function_in(value, place + step)) is not None), None)
