"""The members that types have by name, the unknown members of a value, and hints to the names that were meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
)

from msgspec import Struct
from msgspec.structs import fields
from pydantic import BaseModel

from jumpseat_protocol.lazy_validation import DeclaredFields

Path: TypeAlias = tuple[str | int, ...]

NAMES_SHOWN: Final = 40
"""The maximum number of known names in a description."""


# --- unknown names ------------------------------------------------------------------------------------------------


def hint(name: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?" for the nearest of the ``known`` names, or the list of them if none is near."""
    match = nearest(name, known)
    if match is not None:
        return f"did you mean {match!r}?"
    names = sorted(known)
    more = ", ..." if len(names) > NAMES_SHOWN else ""
    return f"expected one of {', '.join(names[:NAMES_SHOWN])}{more}" if names else "no name is known here"


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that resembles ``name`` most, or ``None``. Case, ``-`` and ``_`` make no difference."""
    meant, plain = _plain(name[:100]), {_plain(candidate): candidate for candidate in sorted(known, reverse=True)}
    letters = Counter(meant)
    near = [word for word in plain if _highest_ratio(letters, word, cutoff) >= cutoff]
    if not near:
        return None
    from difflib import get_close_matches

    found = get_close_matches(meant, near, n=1, cutoff=cutoff)
    return plain[found[0]] if found else None


def option_hint(option: str, help_text: str) -> str:
    """Return ", did you mean '--x'?" if an option in a help text resembles an unknown one, or an empty string."""
    # Imported for errors only.
    import re

    known = re.findall(r"(?<![\w-])--[a-z][a-z-]+", help_text)
    found = nearest(option.partition("=")[0], known, 0.75) if option.startswith("--") else None
    return "" if found is None else f", did you mean {found!r}?"


def _highest_ratio(letters: Counter[str], word: str, cutoff: float) -> float:
    """Return an upper bound of the similarity of a name with these letters to ``word``.

    Letters are compared only if the lengths of the two allow a similarity of ``cutoff``.
    """
    length = letters.total()
    total = length + len(word)
    if not total:
        return 1.0
    by_length = 2 * min(length, len(word)) / total
    return by_length if by_length < cutoff else 2 * (letters & Counter(word)).total() / total


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` misspells in one letter, or ``None``.

    This is for tables with names of the author's own besides the known ones: such a name may resemble a known one.
    """
    names = list(known)
    # Any two names of two letters resemble each other.
    if name in names or len(name) < 3:
        return None
    return next((known_name for known_name in names if _is_one_edit(_plain(name), _plain(known_name))), None)


def _is_one_edit(one: str, other: str) -> bool:
    """Return whether two strings differ by at most one letter: inserted, left out, replaced or swapped."""
    shorter = min(len(one), len(other))
    start = next((n for n in range(shorter) if one[n] != other[n]), shorter)
    rest = shorter - start
    end = next((n for n in range(rest) if one[-n - 1] != other[-n - 1]), rest)
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    return max(len(left), len(right)) <= 1 or (len(left) == len(right) == 2 and left == right[::-1])


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


# --- the members of models ----------------------------------------------------------------------------------------


class Node(NamedTuple):
    """The part of a type that has named members: the alternatives of an object, the elements, the values.

    ``is_tagged`` means that one member of an object, such as ``type``, decides between the alternatives.
    """

    models: tuple[type[Any], ...] = ()
    items: Node | None = None
    values: Node | None = None
    is_tagged: bool = False


class Members(NamedTuple):
    """The members of an object: all accepted names, those to suggest, and those that have members of their own.

    ``is_open`` means that any name is accepted. ``stored_only`` are the accepted names without any effect.
    """

    accepted: frozenset[str]
    shown: tuple[str, ...]
    inner: InnerMembers
    is_open: bool
    stored_only: frozenset[str]


class InnerMembers:
    """The members of an object that have members of their own. Types are resolved when they are asked for."""

    def __init__(self, types: Mapping[str, Sequence[Callable[[], Any]]]) -> None:
        self._types = types
        self._nodes: dict[str, Node | None] = {}

    def get(self, name: str) -> Node | None:
        """Return the part of a member's type that has named members; ``None`` if there is none."""
        if name in self._nodes:
            return self._nodes[name]
        found: Node | None = None
        for type_of in self._types.get(name, ()):
            node = _node(type_of())
            if node is not None:
                found = node if found is None else _merged(found, node)
        if name in self._types:
            self._nodes[name] = found
        return found


class UnknownMember(NamedTuple):
    """A member that a model does not have, with its path, the names that the model has, and its value.

    ``shape`` is the path with ``*`` for any entry of an array or object.
    """

    path: Path
    known: tuple[str, ...]
    shape: tuple[str, ...] = ()
    value: Any = None

    def __str__(self) -> str:
        return f"{dotted(self.path)}: unknown, {hint(str(self.path[-1]), self.known)}"


def unknown_members(model: type[Any], value: Any) -> list[UnknownMember]:
    """Return the members of ``value``, at any depth, that ``model`` does not have."""
    if not isinstance(value, dict):
        return []
    return list(_unknown(Node((model,)), value, (), ()))


def _unknown(node: Node, value: Any, path: Path, shape: tuple[str, ...]) -> Iterator[UnknownMember]:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        if node.models:
            members = members_of(node.models)
            if not members.is_open:
                for key in table.keys() - (members.accepted - members.stored_only):
                    yield UnknownMember((*path, key), members.shown, (*shape, key), table[key])
            for key, item in table.items():
                if isinstance(item, dict | list | tuple) and (inner := members.inner.get(key)) is not None:
                    yield from _unknown(inner, item, (*path, key), (*shape, key))
        elif node.values is not None:
            for key, item in table.items():
                yield from _unknown(node.values, item, (*path, key), (*shape, "*"))
    elif isinstance(value, list | tuple) and node.items is not None:
        for number, item in enumerate(cast("Sequence[Any]", value)):
            yield from _unknown(node.items, item, (*path, number), (*shape, "*"))


@cache
def members_of(models: tuple[type[Any], ...]) -> Members:
    """Return the members of an object that is one of ``models``, computed once.

    A model may declare ``members_inside``, functions that return the types of fields whose annotations say less, by
    wire name; ``stored_only``, the wire names of fields without any effect; and ``only_keeps``, if all members that
    it accepts besides its fields have none.
    """
    accepted: set[str] = set()
    shown: list[str] = []
    types: dict[str, list[Callable[[], Any]]] = {}
    is_open = False
    stored_only: set[str] = set()
    for model in models:
        plain = _unbuilt_fields(model)
        keeps_any = plain is None and _config(model).get("extra") == "allow"
        is_open |= keeps_any and not getattr(model, "only_keeps", False)
        for names, type_of in _fields(model) if plain is None else _names_and_types(plain):
            accepted.update(names)
            shown.append(names[0])
            for name in names:
                types.setdefault(name, []).append(type_of)
        inner: Mapping[str, Callable[[], Any]] = getattr(model, "members_inside", {})
        types.update({name: [type_of] for name, type_of in inner.items()})
        stored_only |= getattr(model, "stored_only", frozenset[str]())
        also: frozenset[str] = getattr(model, "also_accepted", frozenset())
        accepted |= also
        shown += sorted(also)
    return Members(
        frozenset(accepted),
        tuple(dict.fromkeys(shown)),
        InnerMembers(types),
        is_open,
        frozenset(stored_only),
    )


def _unbuilt_fields(model: type[Any]) -> DeclaredFields | None:
    """Return the fields of a model that pydantic need not build to tell them; ``None`` for other types."""
    return model.unbuilt_fields() if hasattr(model, "unbuilt_fields") else None


def _names_and_types(fields: DeclaredFields) -> Iterator[tuple[list[str], Callable[[], Any]]]:
    for field in fields.by_name.values():
        yield [field.wire_name, field.name], partial(getattr, field, "type")


def _config(model: type[Any]) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", getattr(model, "model_config", {}))


def _fields(model: type[Any]) -> Iterator[tuple[list[str], Callable[[], Any]]]:
    """Iterate over the accepted names of each field, the preferred one first, and a function returning its type."""
    if issubclass(model, Struct):
        for field in fields(model):
            yield [field.encode_name], partial(getattr, field, "type")
        return
    by_name = bool(_config(model).get("populate_by_name"))
    for name, field in cast("type[BaseModel]", model).model_fields.items():
        alias: Any = field.validation_alias or field.alias or name
        choices: list[str] = [alias] if isinstance(alias, str) else [str(choice) for choice in alias.choices]
        yield [*choices, *([name] if by_name else [])], partial(getattr, field, "annotation")


def _node(annotation: Any) -> Node | None:
    """Return the part of a type that has named members, or ``None``."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        node = _node(args[0])
        is_tagged = any(getattr(extra, "discriminator", None) is not None for extra in args[1:])
        return node._replace(is_tagged=True) if node is not None and is_tagged else node
    if isinstance(annotation, type) and not args:
        named = cast("type[Any]", annotation)
        return Node((named,)) if issubclass(named, BaseModel | Struct) else None
    if origin in (list, tuple):
        items = _node(args[0]) if args else None
        return None if items is None else Node(items=items)
    if origin is dict or origin is Mapping:
        values = _node(args[1])
        return None if values is None else Node(values=values)
    found: Node | None = None
    for arg in args if origin in (Union, UnionType) else ():
        if get_origin(arg) is dict and _node(arg) is None:
            # Objects with any members are accepted, too.
            return None
        node = _node(arg)
        if node is not None:
            found = node if found is None else _merged(found, node)
    return found


def _merged(one: Node, other: Node) -> Node:
    items = (
        one.items if other.items is None else other.items if one.items is None else _merged(one.items, other.items)
    )
    values = (
        one.values
        if other.values is None
        else other.values
        if one.values is None
        else _merged(one.values, other.values)
    )
    models = tuple(dict.fromkeys((*one.models, *other.models)))
    return Node(models, items, values, one.is_tagged or other.is_tagged)


def dotted(path: Iterable[str | int]) -> str:
    """Return a path as in ``tools[0].name``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
