"""What users can set of a declared adapter: the entries of its ``schema``.

::

    [schema.temperature]
    order = 2                       # where a form shows it
    mapping = "parameters"          # where its value goes; without one it is never sent
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

from jumpseat.errors import ConfigError, InvalidRequestError, validation_problems

MODEL: Final = "model"
"""The entry that says which models there are and which is the default."""

WIRE_MODEL: Final = "wire_model"
"""In ``meta`` of a model: what its provider calls it, where that is not its id."""

EntryType: TypeAlias = Literal["string", "number", "integer", "boolean", "enum", "list", "map"]


class SchemaEntry(BaseModel):
    """One thing that users can set. Fields as CodeCompanion's adapters have them."""

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


class Choice(BaseModel):
    """One model, or one value of an enumeration. ``meta`` and ``opts`` go with models."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    id: str
    formatted_name: str | None = None
    description: str | None = None
    meta: dict[str, Any] = Field(default_factory=dict[str, Any])
    opts: dict[str, Any] = Field(default_factory=dict[str, Any])


def ordered(schema: Mapping[str, SchemaEntry]) -> list[str]:
    """The keys as a form shows them: by ``order``, then without one; required before optional; by name.

    The model is first unless it says otherwise, because what else there is depends on it.
    """

    def position(key: str) -> tuple[float, bool, str]:
        entry = schema[key]
        unsaid = -math.inf if key == MODEL else math.inf
        return (unsaid if entry.order is None else entry.order, entry.optional, key)

    return sorted(schema, key=position)


def is_enabled(entry: SchemaEntry, view: Any) -> bool:
    """Whether the entry means anything for the adapter as it is."""
    return bool(entry.enabled(view)) if callable(entry.enabled) else bool(entry.enabled)


def default_of(entry: SchemaEntry, view: Any) -> Any:
    """The default value, worked out where it is a function."""
    return entry.default(view) if callable(entry.default) else entry.default


def choices_of(where: str, entry: SchemaEntry, view: Any) -> list[Choice]:
    """The choices of an entry in their order.

    All forms are read: a list of names; a table from name to what is known of it; a list that mixes names, tables
    with an ``id`` and tables from one name to what is known of it; a function that returns any of these.

    Raises:
        ConfigError: something else.
    """
    raw = entry.choices(view) if callable(entry.choices) else entry.choices
    if raw is None:
        return []
    if isinstance(raw, Mapping):
        return [_choice(where, key, value) for key, value in cast("Mapping[Any, Any]", raw).items()]
    if isinstance(raw, str) or not isinstance(raw, Sequence):
        raise ConfigError(f"{where}.choices: expected a list or a table, got {type(raw).__name__}")
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


def _choice(where: str, key: Any, value: Any) -> Choice:
    from pydantic import ValidationError

    if isinstance(key, int) or not isinstance(value, Mapping):
        # Position or name, and the name or nothing.
        return Choice(id=str(value) if isinstance(value, str) else str(key))
    try:
        return Choice.model_validate({**cast("Mapping[str, Any]", value), "id": str(key)})
    except ValidationError as error:
        raise ConfigError(f"{where}.choices.{key}.{validation_problems(error)[0]}") from None


def check_value(key: str, entry: SchemaEntry, value: Any, view: Any) -> None:
    """Say what is wrong with a value that somebody set.

    Raises:
        InvalidRequestError: it is not of the entry's type, none of its choices, or refused by its ``validate``.
    """
    if value is None:
        if not entry.optional:
            raise InvalidRequestError(f"setting {key!r} needs a value")
        return
    problem = _type_problem(entry.type, value)
    if problem is None and entry.type == "enum":
        ids = [choice.id for choice in choices_of(key, entry, view)]
        # A model list lags behind its provider: models that are not in it are tried all the same.
        if ids and str(value) not in ids and key != MODEL:
            problem = f"expected one of {', '.join(ids)}"
    if problem is None and isinstance(value, (int, float)) and not isinstance(value, bool):
        if entry.minimum is not None and value < entry.minimum:
            problem = f"expected at least {entry.minimum:g}"
        elif entry.maximum is not None and value > entry.maximum:
            problem = f"expected at most {entry.maximum:g}"
    if problem is None and callable(entry.check):
        problem = _refusal(cast("Callable[[Any], Any]", entry.check), value)
    if problem is not None:
        raise InvalidRequestError(f"setting {key!r}: {problem}")


def _refusal(check: Callable[[Any], Any], value: Any) -> str | None:
    """What ``validate`` has against a value. It returns whether it is good, alone or with a text."""
    answer = check(value)
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
            # A string is whatever it is on the wire.
            good = True
    article = "an" if wanted[0] in "aeiou" else "a"
    return None if good else f"expected {article} {wanted}, got {type(value).__name__}"


def values_of(schema: Mapping[str, SchemaEntry], view: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every enabled entry: what is ``given``, else the default. Entries without one are left out.

    Raises:
        InvalidRequestError: something given is unknown, disabled or wrong.
    """
    for key in given:
        entry = schema.get(key)
        if entry is None:
            known = ", ".join(ordered(schema)) or "none"
            raise InvalidRequestError(f"there is no setting {key!r}; settings: {known}")
        if not is_enabled(entry, view):
            raise InvalidRequestError(f"setting {key!r} does not go with this model")
        check_value(key, entry, given[key], view)
    values: dict[str, Any] = {}
    for key in ordered(schema):
        entry = schema[key]
        if key in given:
            value = given[key]
        elif key.startswith("_") or not is_enabled(entry, view):
            continue
        else:
            value = default_of(entry, view)
        if value is not None:
            values[key] = int(value) if entry.type == "integer" and isinstance(value, float) else value
    return values


def put(containers: dict[str, Any], mapping: str, key: str, value: Any) -> None:
    """Put a value where ``mapping`` says (``parameters.options``), below the segments of a dotted ``key``.

    Raises:
        ConfigError: something on the way is no table.
    """
    *way, last = [*mapping.split("."), *key.split(".")]
    target = containers
    for step in way:
        below = target.setdefault(step, {})
        if not isinstance(below, dict):
            raise ConfigError(f"schema.{key}: {mapping!r} leads to {step!r}, which is no table")
        target = cast("dict[str, Any]", below)
    target[last] = value
