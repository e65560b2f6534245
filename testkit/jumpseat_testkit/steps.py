"""The format of script files: the head, the steps, and loading them.

A YAML or JSON file is one object with ``steps``. A JSON Lines file has one step per line, and may have the head in
its first line. ``docs/script.md`` documents every step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from jumpseat_protocol.members import nearest
from jumpseat_protocol.problems import validation_problems
from jumpseat_protocol.yaml_text import read_yaml
from jumpseat_testkit.model.script import Script as ModelScript
from jumpseat_testkit.patterns import ScriptError, check_pattern
from jumpseat_testkit.protocols import PROTOCOLS, Framing, ProtocolName


class _Part(BaseModel):
    """Base class of the file's parts; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class _Step(_Part):
    within: float | None = Field(default=None, gt=0, le=600)


class Call(_Step):
    """Send a request and wait for the response."""

    call: str
    params: Any = None
    result: Any = "<any>"
    error: Any = None


class Send(_Step):
    """Send a message without waiting for anything."""

    send: dict[str, Any]


class Raw(_Step):
    """Send raw bytes, which need not be a valid message."""

    raw: str


class Expect(_Step):
    """Wait for a message of the server."""

    expect: Any


class Events(_Step):
    """Wait for events of a session, in this order; ``only`` permits no others except those in ``ignore``."""

    events: list[Any] = Field(min_length=1)
    session: str | None = None
    only: bool = False
    ignore: list[str] = Field(default_factory=list[str])


class AnyOrder(_Step):
    """Wait for events of a session, in any order."""

    events_in_any_order: list[Any] = Field(min_length=1)
    session: str | None = None


class Answer(_Step):
    """Wait for a request of the server and respond to it."""

    answer: str
    params: Any = Field(default_factory=dict[str, Any])
    result: Any = None
    error: Any = None


class Never(_Step):
    """Fail if a matching message was received since the step before began, or is within ``seconds``."""

    never: Any
    seconds: float = Field(default=0.2, ge=0, le=60, alias="for")


class Close(_Step):
    """Close the server's input and wait for the server to exit with this code (``null``: any)."""

    close: Literal[True]
    exit: int | None = 0


class Restart(_Step):
    """Kill the server and start another with the same files."""

    restart: Literal[True]


class Set(_Step):
    """Set names to values."""

    set: dict[str, Any]


STEPS: Final[Mapping[str, type[_Step]]] = {
    "call": Call,
    "send": Send,
    "raw": Raw,
    "expect": Expect,
    "events": Events,
    "events_in_any_order": AnyOrder,
    "answer": Answer,
    "never": Never,
    "close": Close,
    "restart": Restart,
    "set": Set,
}


def step_name(value: Any) -> str | None:
    """Return the name of a step, parsed or as an object of the file; ``None`` if it is unknown.

    A misspelled one counts as the step that was meant, which then reports its unknown field.
    """
    if isinstance(value, dict):
        names = cast("dict[str, Any]", value)
        known = next((verb for verb in STEPS if verb in names), None)
        return known or next((meant for name in names if (meant := nearest(str(name), STEPS, 0.75))), None)
    return next((verb for verb, cls in STEPS.items() if isinstance(value, cls)), None)


Step: TypeAlias = Annotated[
    Annotated[Call, Tag("call")]
    | Annotated[Send, Tag("send")]
    | Annotated[Raw, Tag("raw")]
    | Annotated[Expect, Tag("expect")]
    | Annotated[Events, Tag("events")]
    | Annotated[AnyOrder, Tag("events_in_any_order")]
    | Annotated[Answer, Tag("answer")]
    | Annotated[Never, Tag("never")]
    | Annotated[Close, Tag("close")]
    | Annotated[Restart, Tag("restart")]
    | Annotated[Set, Tag("set")],
    Discriminator(
        step_name,
        custom_error_type="no_such_step",
        custom_error_message=f"expected a step with one of these fields: {', '.join(STEPS)}",
    ),
]


class BinaryFile(_Part):
    """A file that is no text."""

    base64: str


class Script(_Part):
    """A script.

    ``server`` is the command to start, as a shell-like string or as an array; by default, jumpseat where it is
    installed, for ``protocol``, which also decides on the ``framing`` of a script without one. ``url`` is its
    address (``ws://``, ``wss://`` or ``tcp://``), instead of its standard input and output.
    ``model`` is a scripted model (see :mod:`jumpseat_testkit.model.script`), served over HTTP at ``${model}``.
    ``within`` is the time limit of a step, in seconds. ``unchecked`` turns off the rules of every conversation;
    ``strict`` also validates all messages against the protocol's schema.
    """

    name: str | None = None
    server: str | list[str] | None = None
    url: str | None = None
    protocol: ProtocolName = "copilot"
    framing: Framing | None = None
    within: float = Field(default=10, gt=0, le=600)
    model: ModelScript | None = None
    env: dict[str, str | None] = Field(default_factory=dict[str, str | None])
    files: dict[str, str | BinaryFile] = Field(default_factory=dict[str, str | BinaryFile])
    config: str | None = None
    greet: bool = False
    unchecked: bool = False
    strict: bool = False
    steps: list[Step]


def parse_script(value: Any, name: str) -> Script:
    """Validate ``value`` as a script; ``name`` stands for the file in errors.

    Raises:
        ScriptError: ``value`` is not a valid script.
    """
    try:
        script = Script.model_validate(value)
    except ValidationError as error:
        problems = validation_problems(error, Script, "the script")
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise ScriptError(f"invalid script {name}: {'; '.join(problems[:3])}{more}") from None
    if script.strict and not PROTOCOLS[script.protocol].has_schema:
        raise ScriptError(f"{name}: strict: there is no schema for the protocol {script.protocol!r}")
    for number, step in enumerate(script.steps, 1):
        for pattern in _patterns(step):
            try:
                check_pattern(pattern)
            except ScriptError as error:
                raise ScriptError(f"{name}, step {number}: {error}") from None
    return script


def load_script(path: Path) -> Script:
    """Load a script file: ``.jsonl`` as JSON Lines, any other as YAML, of which JSON is a subset.

    Raises:
        ScriptError: the file cannot be read or is not a valid script.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "not UTF-8"
        raise ScriptError(f"cannot read {str(path)!r}: {reason}") from None
    if path.suffix == ".jsonl":
        return parse_script(_parse_lines(content, path), str(path))
    try:
        value = read_yaml(content)
    except ValueError as error:
        raise ScriptError(f"invalid YAML in {str(path)!r}: {error}") from None
    return parse_script({"steps": value} if isinstance(value, list) else value, str(path))


def _parse_lines(content: str, path: Path) -> dict[str, Any]:
    values: list[Any] = []
    # Not splitlines, which splits at characters that JSON strings may contain.
    for number, line in enumerate(content.split("\n"), 1):
        try:
            values += [json.loads(line)] if line.strip() else []
        except ValueError as error:
            raise ScriptError(f"invalid JSON in {str(path)!r}, line {number}: {error}") from None
    head: dict[str, Any] = {}
    if values and isinstance(values[0], dict) and step_name(values[0]) is None:
        head = cast("dict[str, Any]", values.pop(0))
    return {**head, "steps": values}


def _patterns(step: Step) -> Iterator[Any]:
    match step:
        case Call():
            yield from (step.result, step.error)
        case Expect():
            yield step.expect
        case Events():
            yield from step.events
        case AnyOrder():
            yield from step.events_in_any_order
        case Answer():
            yield step.params
        case Never():
            yield step.never
        case _:
            pass
