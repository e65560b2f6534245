"""Values of about a mebibyte for each place in a type: long strings, long lists, many keys, deep nesting."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, cast, get_args, get_origin

import orjson
from msgspec import Struct
from msgspec.structs import fields as fields_of_struct
from pydantic import BaseModel

from jumpseat.parsing.message_size import MOST_ENTRIES

MIB: Final = 1 << 20
MOST_DEPTH: Final = 5
"""Levels of models in models that are made: some types contain themselves."""

TEXTS: Final[Mapping[str, str]] = {
    "letters": "a",
    "folders": "/a",
    "parents": "../",
    "wildcards": "*/",
    "groups": "(a+)+",
    "brackets": "[",
    "braces": '{"a":',
    "lines": "a\n",
    "rules": "shell(a) ",
    "addresses": "http://a/ ",
    "hidden": "\u202ea",
    "quotes": "a='",
    "options": "--a=b ",
    "tags": '<a b="c">',
    "commas": "a,",
    "dots": "a.",
}
"""What long strings repeat."""
SHORT_TEXTS: Final = ("letters", "folders", "wildcards")
"""The texts for places deep in a type."""


class Hostile(NamedTuple):
    """A value, and the place and kind of what is large in it."""

    title: str
    value: Any


class Maker:
    """Makes values of types. ``known`` are the values of fields whose name says what they are, by name."""

    def __init__(self, known: Mapping[str, Any], size: int = MIB, texts: Mapping[str, str] = TEXTS) -> None:
        self._known = known
        self._size = size
        self._texts = texts
        self._numbers = itertools.count()

    def hostile(self, kind: Any, depth: int = 0) -> Iterator[Hostile]:
        """Yield values of a type in which one place is large."""
        origin, args = get_origin(kind), get_args(kind)
        if origin is Annotated:
            yield from self.hostile(args[0], depth)
        elif origin in (Union, UnionType):
            for option in args:
                yield from self.hostile(option, depth)
        elif kind is str:
            yield from self._strings(depth)
        elif kind is Any or kind is object:
            yield from self._anything(depth)
        elif isinstance(kind, type) and issubclass(kind, BaseModel | Struct):
            yield from self._models(kind, depth)
        elif args and origin is not Literal:
            if len(args) == 1 or args[1] is ...:
                yield from self._lists(args[0], depth)
            elif origin is not None and issubclass(origin, Mapping):
                yield from self._mappings(args[1], depth)
        elif kind in (list, dict):
            yield from self._anything(depth)

    def enlarged(self, example: Any) -> Iterator[Hostile]:
        """Yield copies of a JSON value in which one place is large."""
        if isinstance(example, str):
            yield from self._strings(0)
        elif isinstance(example, list):
            items = cast("list[Any]", example)
            yield from self._anything(2)
            if items:
                each = len(orjson.dumps(items[0])) + 1
                yield Hostile("[many]", items[:1] * (self._size // each))
                yield Hostile("[most]", items[:1] * min(MOST_ENTRIES - 1, self._size // each))
                for inner in self.enlarged(items[0]):
                    yield Hostile(f"[0] {inner.title}", [inner.value, *items[1:]])
        elif isinstance(example, dict):
            members = cast("dict[str, Any]", example)
            yield Hostile("{many}", {**members, **{f"k{number}": number for number in range(self._size // 14)}})
            for name, value in members.items():
                for inner in self.enlarged(value):
                    yield Hostile(f"{name} {inner.title}", {**members, name: inner.value})
        else:
            yield from self._anything(2)

    def least(self, kind: Any, depth: int = 0) -> Any:
        """Return a small value of a type. No two have equal strings."""
        origin, args = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self.least(args[0], depth)
        if origin in (Union, UnionType):
            return self.least(args[0], depth)
        if origin is Literal:
            return args[0]
        if isinstance(kind, type) and issubclass(kind, BaseModel | Struct):
            places = _places(kind) if depth < MOST_DEPTH else ()
            made = {place.name: self._least_at(place, depth + 1) for place in places if place.required}
            return made | _tag(kind)
        if args:
            return [] if len(args) == 1 or args[1] is ... else {}
        known: dict[Any, Any] = {int: 1, float: 1, bool: True, list: [], dict: {}}
        return f"a{next(self._numbers)}" if kind is str else known.get(kind)

    def many(self, kind: Any, *, with_key: bool = False) -> list[Any]:
        """Return as many small values of a type as the size takes, all different, or members of an object."""
        each = len(orjson.dumps(self.least(kind), default=str)) + (len('"k10000":,') if with_key else 1)
        return [self.least(kind) for _ in range(self._size // each)]

    def _least_at(self, place: _Place, depth: int) -> Any:
        return self._known[place.name] if place.name in self._known else self.least(place.kind, depth)

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield long strings and their names."""
        for name, part in self._texts.items():
            size = len(part.encode())
            yield name, part * (self._size // size)

    def _strings(self, depth: int) -> Iterator[Hostile]:
        for name, text in self.texts():
            if depth < 2 or name in SHORT_TEXTS:
                yield Hostile(name, text)

    def _lists(self, kind: Any, depth: int) -> Iterator[Hostile]:
        many = self.many(kind)
        yield Hostile("[many]", many)
        if len(many) >= MOST_ENTRIES:
            yield Hostile("[most]", many[: MOST_ENTRIES - 1])
        for inner in self.hostile(kind, depth + 1):
            yield Hostile(f"[0] {inner.title}", [inner.value])

    def _mappings(self, kind: Any, depth: int) -> Iterator[Hostile]:
        many = [(f"k{number}", value) for number, value in enumerate(self.many(kind, with_key=True))]
        yield Hostile("{many}", dict(many))
        if len(many) >= MOST_ENTRIES:
            yield Hostile("{most}", dict(many[: MOST_ENTRIES - 1]))
        for inner in self._strings(2):
            yield Hostile(f"{{key}} {inner.title}", {inner.value: self.least(kind)})
        for inner in self.hostile(kind, depth + 1):
            yield Hostile(f"{{a}} {inner.title}", {"a": inner.value})

    def _anything(self, depth: int) -> Iterator[Hostile]:
        yield from self._strings(max(depth, 2))
        yield Hostile("{many}", {f"k{number}": number for number in range(self._size // 14)})
        yield Hostile("[many]", [f"a{number}" for number in range(self._size // 10)])
        yield Hostile("{most}", {f"k{number}": number for number in range(MOST_ENTRIES - 1)})
        yield Hostile("[most]", [f"a{number}" * 16 for number in range(MOST_ENTRIES - 1)])
        yield Hostile("[empty]", [[] for _ in range(self._size // 3)])
        yield Hostile("[[most]]", [[{}] * 999 for _ in range(49)])
        nested: Any = "a"
        for _ in range(100):
            nested = {"a": [nested]}
        yield Hostile("nested", nested)

    def _models(self, kind: Any, depth: int) -> Iterator[Hostile]:
        if depth >= MOST_DEPTH:
            return
        places = _places(kind)
        base = {place.name: self._least_at(place, depth + 1) for place in places if place.required} | _tag(kind)
        for place in places:
            for inner in self.hostile(place.kind, depth + 1):
                yield Hostile(f"{place.name} {inner.title}", base | {place.name: inner.value})


class _Place(NamedTuple):
    name: str
    kind: Any
    required: bool


def _places(kind: Any) -> list[_Place]:
    """Return the fields of a model or a struct, by their names on the wire."""
    if issubclass(kind, BaseModel):
        return [
            _Place(known.alias or name, known.annotation, known.is_required())
            for name, known in kind.model_fields.items()
        ]
    return [_Place(known.encode_name, known.type, known.required) for known in fields_of_struct(kind)]


def _tag(kind: Any) -> dict[str, Any]:
    if issubclass(kind, Struct) and (name := kind.__struct_config__.tag_field) is not None:
        return {name: cast("Any", kind.__struct_config__.tag)}
    return {}
