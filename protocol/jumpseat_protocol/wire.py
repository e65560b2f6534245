"""Two ways to describe what goes over the wire, both camelCase outside and snake_case inside.

* :class:`WireModel`, a pydantic model: for everything that comes in and must be checked.
* plain slotted dataclasses with :func:`to_wire`: for everything that goes out often (events, permission
  requests). They cost nothing to import and a microsecond to encode.

Unknown fields are ignored at every level: clients newer than this server must keep working.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel


class WireModel(BaseModel):
    """Base of all checked wire types. Absent and ``null`` mean the same, unless ``taken_back`` says otherwise."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        # Validators are built at first use: most methods are never called in a process, and start-up is short.
        defer_build=True,
    )

    sent_as_null: ClassVar[tuple[str, ...]] = ()
    """Wire names that are sent as ``null`` rather than left out where they are unset."""
    taken_back: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """By wire name, what ``null`` stands for where it takes something back."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        values = cast("dict[str, Any]", data)
        if None not in values.values():
            return values
        meant = {key: cls.taken_back.get(key) if value is None else value for key, value in values.items()}
        return {key: value for key, value in meant.items() if value is not None}

    def wire(self) -> dict[str, Any]:
        """The JSON form: aliases as keys, unset optional fields left out."""
        record = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name in self.sent_as_null:
            record.setdefault(name, None)
        return record


class Method(NamedTuple):
    """The types of a request's params and of its result.

    ``result`` is a model, a plain JSON type, or ``None`` for a method that answers ``null``.
    """

    params: type[WireModel]
    result: type[Any] | None


class WireDataclass:
    """Base of the slotted dataclasses that :func:`to_wire` encodes. Fields that are ``None`` are left out."""

    __slots__ = ()
    # Read by pydantic where such a dataclass is decoded or its schema is asked for.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel, extra="ignore")


def to_wire(value: Any) -> Any:
    """Encode ``value`` for JSON: dataclasses become camelCase objects without their ``None`` fields."""
    # Ordered by frequency: nearly every value of an event is a string.
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {
            name: to_wire(item)
            for attribute, name in _layout(type(value))
            if (item := getattr(value, attribute)) is not None
        }
    if isinstance(value, dict):
        return {key: to_wire(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [to_wire(item) for item in cast("list[Any]", value)]
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{type(value).__name__} has no wire form")


@cache
def _layout(cls: type[Any]) -> tuple[tuple[str, str], ...]:
    """(attribute, wire name) of each field; worked out once per class."""
    return tuple((f.name, to_camel(f.name)) for f in fields(cls))
