"""Sample values, generated from type hints, so that new fields are tested without a change here."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields
from pydantic import BaseModel

VARIANTS = 6
"""The number of variants that covers every member of every union."""

_JSON: list[Any] = [{"a": [1, None, {"b": 2.5}], "é🙂": ""}, "text", [True, None], 7]


def sample(cls: type[Any], variant: int = 0, *, optional: bool = True) -> Any:
    """Return an instance of a struct or a model with all fields set; only required ones without ``optional``."""
    hints = get_type_hints(cls)
    values: dict[str, Any] = {}
    for name, required in _fields(cls).items():
        if required or optional:
            values[name] = _value(hints[name], variant, optional=optional)
    if issubclass(cls, BaseModel):
        return cls.model_validate(values, by_name=True)
    return cls(**values)


def _fields(cls: type[Any]) -> dict[str, bool]:
    """Return whether each field is required, by name."""
    if issubclass(cls, BaseModel):
        return {name: field.is_required() for name, field in cls.model_fields.items()}
    return {field.name: field.required for field in fields(cls)}


def _value(hint: Any, variant: int, *, optional: bool) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        members = [argument for argument in arguments if argument is not NoneType]
        return _value(members[variant % len(members)], variant, optional=optional)
    if origin is Literal:
        return arguments[variant % len(arguments)]
    if origin is list:
        return [_value(arguments[0], variant + place, optional=optional) for place in range(variant % 3)]
    if origin is dict:
        return {"x-key": _value(arguments[1], variant, optional=optional)}
    if hint is Any or hint is object:
        return _JSON[variant % len(_JSON)]
    if isinstance(hint, type) and issubclass(hint, BaseModel | Struct):
        return sample(cast("type[Any]", hint), variant, optional=optional)
    return {str: f"text-{variant} é🙂\n", int: 40 + variant, float: 0.5, bool: variant % 2 == 0}[hint]
