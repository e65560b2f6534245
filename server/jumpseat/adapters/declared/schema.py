"""The settings of a declared adapter: the entries of its ``schema``.

::

    [schema.temperature]
    order = 2                       # the position in a form
    mapping = "parameters"          # where the value is written; without a mapping it is not sent
    type = "number"                 # string, number, integer, boolean, enum, list, map
    default = 0.7
    minimum = 0                     # or ``validate``, a function, in Python
    maximum = 2
    desc = "Higher is more random."

Keys and mappings may be dotted: ``"reasoning.effort"`` mapped to ``parameters`` becomes
``parameters = {reasoning = {effort = ...}}``. In Python ``default``, ``choices`` and ``enabled`` (or ``condition``)
may be functions of the adapter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from jumpseat.adapters.declared.functions import CHOICES, VALIDATE, value_from
from jumpseat.errors import ConfigError, InvalidRequestError
from jumpseat.parsing.validation import kind_of, validation_problems
from jumpseat_protocol.members import hint

MODEL: Final = "model"
"""The entry with the models and the default model."""

WIRE_MODEL: Final = "wire_model"
"""The key in a model's ``meta`` for its name at the provider, if that differs from its id."""

CONTAINERS: Final = ("parameters", "body", "headers", "opts", "temp")
"""The tables of a request that a ``mapping`` may begin with."""

ASKED: Final = "request"
"""The ``mapping`` prefix for neutral fields of the request: ``request.max_output_tokens``."""

ASKABLE: Final = ("max_output_tokens", "reasoning_effort", "reasoning_summary")

EntryType: TypeAlias = Literal["string", "number", "integer", "boolean", "enum", "list", "map"]


class SchemaEntry(BaseModel):
    """A setting. The fields are those of CodeCompanion's adapters."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, populate_by_name=True)

    order: int | None = None
    mapping: str | None = None
    type: EntryType = "string"
    subtype: Any = None
    subtype_key: Any = None
    default: Any = None
    choices: Any = None
    enabled: Any = Field(default=True, validation_alias=AliasChoices("enabled", "condition"))
    check: Any = Field(default=None, validation_alias=AliasChoices("validate", "check"))
    minimum: float | None = None
    maximum: float | None = None
    optional: bool = False
    desc: str = ""

    def __getitem__(self, name: str) -> Any:
        """Return a field, for handlers that read the schema as it was declared: ``schema["model"]["default"]``."""
        if name not in type(self).model_fields:
            raise KeyError(name)
        return getattr(self, name)


class Choice(BaseModel):
    """A model, or a value of an enumeration. ``meta`` and ``opts`` apply to models."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    id: str
    formatted_name: str | None = None
    description: str | None = None
    meta: dict[str, Any] = Field(default_factory=dict[str, Any])
    opts: dict[str, Any] = Field(default_factory=dict[str, Any])


def ordered(schema: Mapping[str, SchemaEntry]) -> list[str]:
    """Return the keys in the order of a form: by ``order``, those without it last; required first; by name.

    The model is first unless it has an ``order``, because other entries depend on the model.
    """

    def position(key: str) -> tuple[float, bool, str]:
        entry = schema[key]
        unsaid = -math.inf if key == MODEL else math.inf
        return (unsaid if entry.order is None else entry.order, entry.optional, key)

    return sorted(schema, key=position)


def is_enabled(key: str, entry: SchemaEntry, view: Any) -> bool:
    """Return whether the entry is enabled for the adapter with its current model."""
    enabled: Any = entry.enabled
    return bool(value_from(view, f"schema.{key}.enabled", enabled) if callable(enabled) else enabled)


def default_of(key: str, entry: SchemaEntry, view: Any) -> Any:
    """Return the default value, calling it if it is a function."""
    default: Any = entry.default
    return value_from(view, f"schema.{key}.default", default) if callable(default) else default


def check_defaults(where: str, schema: Mapping[str, SchemaEntry]) -> None:
    """Validate the mappings, and the types of the default values, except for those that functions return.

    Raises:
        ConfigError: a mapping is unknown, a default has the wrong type, or that of the model is not a string.
    """
    for key, entry in schema.items():
        first, _, rest = (entry.mapping or CONTAINERS[0]).partition(".")
        if first not in CONTAINERS and (first != ASKED or rest not in ASKABLE):
            places = [*CONTAINERS, *(f"{ASKED}.{field}" for field in ASKABLE)]
            raise ConfigError(f"{where}.schema.{key}.mapping: unknown, {hint(str(entry.mapping), places)}")
        default: Any = entry.default
        if default is None or callable(default):
            continue
        problem = model_problem(default) if key == MODEL else _type_problem(entry.type, default)
        if problem is not None:
            raise ConfigError(f"{where}.schema.{key}.default: {problem}")


def model_problem(name: Any) -> str | None:
    """Return the reason why ``name`` cannot name a model, ``None`` if it can."""
    return None if isinstance(name, str) else f"expected the name of a model, got {kind_of(name)}"


def choices_of(where: str, entry: SchemaEntry, view: Any) -> list[Choice]:
    """Return the choices of an entry in their order.

    All forms are accepted: a list of names; a table from names to details; a list that mixes names, tables with an
    ``id`` and tables from a name to details; a function that returns any of these.

    Raises:
        ConfigError: the choices have another form.
    """
    raw = entry.choices
    if callable(raw):
        raw = value_from(view, f"{_path(where)}.choices", raw, CHOICES, {"opts": {}})
    if raw is None:
        return []
    if isinstance(raw, Mapping):
        return [_choice(where, key, value) for key, value in cast("Mapping[Any, Any]", raw).items()]
    if isinstance(raw, str) or not isinstance(raw, Sequence):
        raise ConfigError(f"{where}.choices: expected a list or a table, got {kind_of(raw)}")
    found: list[Choice] = []
    for item in cast("Sequence[Any]", raw):
        if not isinstance(item, Mapping):
            found.append(Choice(id=str(item)))
            continue
        table = cast("Mapping[str, Any]", item)
        if "id" in table:
            found.append(_choice(where, table["id"], {key: table[key] for key in table if key != "id"}))
        else:
            found += [_choice(where, key, value) for key, value in table.items()]
    return found


def _path(where: str) -> str:
    path = where.rpartition(": ")[2]
    return path if path.startswith("schema.") else f"schema.{path}"


def _choice(where: str, key: Any, value: Any) -> Choice:
    from pydantic import ValidationError

    if isinstance(key, int) or not isinstance(value, Mapping):
        # A list given as a table: the key is a position or the name, the value is the name or nothing.
        return Choice(id=str(value) if isinstance(value, str) else str(key))
    try:
        return Choice.model_validate({**cast("Mapping[str, Any]", value), "id": str(key)})
    except ValidationError as error:
        raise ConfigError(f"{where}.choices.{key}.{validation_problems(error, Choice, of_file=True)[0]}") from None


def check_value(key: str, entry: SchemaEntry, value: Any, view: Any) -> None:
    """Validate the value of a setting.

    Raises:
        InvalidRequestError: the value has the wrong type, is not one of the choices, or fails ``validate``.
    """
    if value is None:
        if not entry.optional:
            raise InvalidRequestError(f"setting {key!r} needs a value")
        return
    problem = _type_problem(entry.type, value)
    if problem is None and entry.type == "enum":
        ids = [choice.id for choice in choices_of(key, entry, view)]
        # Unlisted models are accepted, because lists lag behind their providers.
        if ids and str(value) not in ids and key != MODEL:
            problem = f"expected one of {', '.join(ids)}"
    # The message of the function is more precise than that of an inherited limit.
    if problem is None and callable(entry.check):
        problem = _refusal(key, cast("Callable[..., Any]", entry.check), value, view)
    if problem is None and isinstance(value, (int, float)) and not isinstance(value, bool):
        if entry.minimum is not None and value < entry.minimum:
            problem = f"expected at least {entry.minimum:g}"
        elif entry.maximum is not None and value > entry.maximum:
            problem = f"expected at most {entry.maximum:g}"
    if problem is not None:
        raise InvalidRequestError(f"setting {key!r}: {problem}")


def _refusal(key: str, check: Callable[..., Any], value: Any, view: Any) -> str | None:
    """Run ``validate`` on a value and return the problem, if any.

    ``validate`` returns a boolean, or a tuple of a boolean and a message.
    """
    answer = value_from(view, f"schema.{key}.validate", check, VALIDATE, {"n": value})
    good, text = cast("tuple[Any, Any]", answer) if isinstance(answer, tuple) else (answer, None)
    return None if good else str(text or "the value is not valid")


def _type_problem(wanted: EntryType, value: Any) -> str | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    match wanted:
        case "number":
            good = number and math.isfinite(value)
        case "integer":
            good = number and math.isfinite(value) and float(value).is_integer()
        case "boolean":
            good = isinstance(value, bool)
        case "list":
            good = isinstance(value, list)
        case "map":
            good = isinstance(value, dict)
        case "string" | "enum":
            # Any value is accepted, and sent as it is.
            good = True
    article = "an" if wanted[0] in "aeiou" else "a"
    return None if good else f"expected {article} {wanted}, got {kind_of(value)}"


def values_of(schema: Mapping[str, SchemaEntry], view: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every enabled entry: the ``given`` one or the default. Others are omitted.

    Raises:
        InvalidRequestError: a given setting is unknown, disabled or invalid.
    """
    for key in given:
        entry = schema.get(key)
        if entry is None:
            raise InvalidRequestError(f"unknown setting {key!r}, {hint(key, schema)}")
        if not is_enabled(key, entry, view):
            raise InvalidRequestError(f"setting {key!r} is not available for this model")
        check_value(key, entry, given[key], view)
    values: dict[str, Any] = {}
    for key in ordered(schema):
        entry = schema[key]
        if key in given:
            value = given[key]
        elif key.startswith("_") or not is_enabled(key, entry, view):
            continue
        else:
            value = default_of(key, entry, view)
        if value is not None:
            values[key] = int(value) if entry.type == "integer" and isinstance(value, float) else value
    return values


def write_value(containers: dict[str, Any], mapping: str, key: str, value: Any) -> None:
    """Write a value to the path ``mapping`` (``parameters.options``) followed by the segments of a dotted ``key``.

    Raises:
        ConfigError: a segment of the path is not a table.
    """
    *way, last = [*mapping.split("."), *key.split(".")]
    target = containers
    for step in way:
        below = target.setdefault(step, {})
        if not isinstance(below, dict):
            raise ConfigError(f"schema.{key}: {mapping!r} passes through {step!r}, which is not a table")
        target = cast("dict[str, Any]", below)
    target[last] = value
