"""Make instances of models field by field, where pydantic has not built the model.

Pydantic builds the validators of all fields of a model before it validates a first value; for the 90 fields of
``session.create``, of which a request has ten, that took longer than all else that creates a first session. Here,
each field has its own validator, which is built for the first value of that field.

Invalid values are left to pydantic, and so is everything that is not a plain field: its rules and its errors count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cache, cached_property, partial
from typing import Annotated, Any, Final, cast, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from jumpseat_protocol.limits import MAX_KEY_CHARS, MOST_PATHS, KeyText, PathText, PathTexts, is_path

_IMMUTABLE: Final = (str, int, float, bool, frozenset, type(None))
_RULES: Final = frozenset({"__get_pydantic_core_schema__", "__init__", "model_config", "model_post_init"})
_PLAIN_HINTS: Final[Mapping[str, type]] = {
    "Any": object,
    **{form: kind for kind in (str, int, bool) for form in (kind.__name__, f"{kind.__name__} | None")},
    "StrictBool": bool,
    "StrictBool | None": bool,
    "dict[str, Any]": dict,
    "dict[str, Any] | None": dict,
}
"""Hints whose values need no validator, and the exact type of the values."""
_LIMITED_HINTS: Final[Mapping[str, Any]] = {"KeyText": KeyText, "PathText": PathText, "PathTexts": PathTexts}
_UNREAD: Final = object()


@cache
def wire_name(name: str) -> str:
    """Return pydantic's camelCase form of a name in snake_case, without its regular expressions for most names."""
    head, *words = name.split("_")
    if name.isascii() and all(word.isalpha() and word.islower() for word in (head, *words)):
        return head + "".join(map(str.capitalize, words))
    return to_camel(name)


class DeclaredField:
    """A field as its class declares it. Its hint is not evaluated before a value has the field.

    ``assigned`` is its default, or what ``Field`` has returned.
    """

    def __init__(self, name: str, hint: str, assigned: Any, module: str) -> None:
        self.name = name
        info = assigned if isinstance(assigned, FieldInfo) else None
        self.wire_name = wire_name(name) if info is None or info.alias is None else info.alias
        self.default: Any = assigned if info is None else info.default
        self.make_default = None if info is None else cast("Callable[[], Any] | None", info.default_factory)
        self._constraints: Sequence[Any] = () if info is None else info.metadata
        self._hint = hint
        self._module = module

    @cached_property
    def type(self) -> Any:
        """The type of the field's values, without what only validators need."""
        return _simple_type(self._module, self._hint) or _evaluated(self._module, self._hint)

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """The validator of the field's values."""
        if self._constraints:
            constrained: Any = Annotated[(_evaluated(self._module, self._hint), *self._constraints)]  # pyright: ignore
            return TypeAdapter(constrained)
        return _adapter(self._module, self._hint)

    def validate(self, value: Any) -> Any:
        """Return a value of the field, made of a value of JSON.

        Raises:
            ValidationError: the value is invalid.
        """
        made = self._read(value)
        return self.adapter.validate_python(value) if made is _UNREAD else made

    @cached_property
    def _read(self) -> Callable[[Any], Any]:
        return _leave_unread if self._constraints else _reader(self._module, self._hint)


class DeclaredFields:
    """The fields of a model as its classes declare them, by their names in Python."""

    def __init__(self, fields: Mapping[str, DeclaredField]) -> None:
        self.by_name = fields
        self.by_wire_name = {field.wire_name: field for field in fields.values()}
        self._shared: dict[str, Any] = {}
        self._made: dict[str, Callable[[], Any]] = {}
        for name, field in fields.items():
            default: object = field.default
            if field.make_default is not None:
                self._made[name] = field.make_default
            elif isinstance(default, _IMMUTABLE):
                self._shared[name] = default
            elif default is not PydanticUndefined:
                self._made[name] = partial(deepcopy, default)
        self.required = fields.keys() - self._shared.keys() - self._made.keys()

    def instance(self, model: type[Any], given: Mapping[str, Any], set_fields: set[str] | None = None) -> Any:
        """Return an instance with these values, by the fields' names in Python, and defaults for the others.

        ``set_fields`` are the fields that count as set; ``None`` means those in ``given``.
        """
        made = {name: make() for name, make in self._made.items() if name not in given}
        values = {**self._shared, **made, **given}
        instance = object.__new__(model)
        # The slots that pydantic fills, too. Setting them as attributes would ask the model for its fields.
        for slot, value in (
            # The copy has no room to grow: the options of a session would take twice the memory.
            ("__dict__", {**values}),
            ("__pydantic_fields_set__", {*given} if set_fields is None else {*set_fields}),
            ("__pydantic_extra__", None),
            ("__pydantic_private__", None),
        ):
            object.__setattr__(instance, slot, value)
        return instance


def validated(model: type[Any], fields: DeclaredFields, value: Mapping[str, Any]) -> Any:
    """Return an object of JSON without ``null`` as an instance; ``None`` if pydantic has to validate it."""
    given: dict[str, Any] = {}
    try:
        for key, item in value.items():
            field = fields.by_wire_name.get(key) or fields.by_name.get(key)
            if field is None:
                continue
            if field.name in given:
                # Which one of the two names counts is pydantic's decision.
                return None
            given[field.name] = field.validate(item)
    except ValidationError:
        return None
    return fields.instance(model, given) if fields.required <= given.keys() else None


def has_rules(namespace: Mapping[str, Any]) -> bool:
    """Return whether a class says more about how its values are validated than which fields they have."""
    return not _RULES.isdisjoint(namespace) or any(hasattr(value, "decorator_info") for value in namespace.values())


def declared_fields(namespaces: Sequence[Mapping[str, Any]]) -> DeclaredFields | None:
    """Return the fields that the namespaces of a model and its bases declare; ``None`` if one needs pydantic."""
    fields: dict[str, DeclaredField] = {}
    for namespace in namespaces:
        for name, hint in namespace.get("__annotations__", {}).items():
            if str(hint).startswith("ClassVar"):
                continue
            assigned = namespace.get(name, PydanticUndefined)
            is_plain = not isinstance(assigned, FieldInfo) or _is_plain(assigned)
            if not isinstance(hint, str) or name.startswith("_") or not is_plain:
                return None
            fields[name] = DeclaredField(name, hint, assigned, namespace["__module__"])
    return DeclaredFields(fields)


def _is_plain(info: FieldInfo) -> bool:
    factory: Any = info.default_factory
    return (
        info.alias == info.validation_alias
        and info.discriminator is None
        and not info.validate_default
        # Pydantic looks at the parameters of a factory to learn whether it takes data.
        and ((get_origin(factory) or factory) in (dict, list) or not info.default_factory_takes_validated_data)
    )


@cache
def _reader(module: str, hint: str) -> Callable[[Any], Any]:
    """Return a function that makes a value of a simple hint: a plain type, a model, or a list of those.

    The function returns ``_UNREAD`` where a validator has to decide, which takes longer to build than all values of
    a request to read.
    """
    of = _simple_type(module, hint)
    return _leave_unread if of is None else _reader_of(of)


def _reader_of(of: Any) -> Callable[[Any], Any]:
    if of == PathText:
        return _read_path
    if of == KeyText:
        return lambda value: value if type(value) is str and len(value) <= MAX_KEY_CHARS else _UNREAD
    if of == PathTexts:
        read_all = _reader_of(list[PathText])
        return lambda value: read_all(value) if _is_short(value) else _UNREAD
    if get_origin(of) is list:
        read = _reader_of(get_args(of)[0])
        return lambda value: _read_all(read, cast("list[Any]", value)) if type(value) is list else _UNREAD
    if of in _PLAIN_HINTS.values():
        return lambda value: value if of is object or type(value) is of else _UNREAD
    make: Callable[[Any], Any] = of.model_validate
    return lambda value: make(value) if type(value) is dict else _UNREAD


def _is_short(value: Any) -> bool:
    return type(value) is list and len(cast("list[Any]", value)) <= MOST_PATHS


def _read_path(value: Any) -> Any:
    return value if type(value) is str and is_path(value) else _UNREAD


def _leave_unread(_value: Any) -> Any:
    return _UNREAD


def _read_all(read: Callable[[Any], Any], values: list[Any]) -> Any:
    made = [read(value) for value in values]
    return _UNREAD if _UNREAD in made else made


def _simple_type(module: str, hint: str) -> Any:
    """Return the type that a simple hint names, a plain one, a model or a list of those; ``None`` for other hints.

    To evaluate a hint takes longer.
    """
    hint = hint.removesuffix(" | None")
    if (plain := _PLAIN_HINTS.get(hint)) is not None:
        return plain
    if hint.startswith("list["):
        of = _simple_type(module, hint.removeprefix("list[").removesuffix("]"))
        return None if of is None else list[of]
    if (limited := _LIMITED_HINTS.get(hint)) is not None:
        return limited
    named: Any = vars(sys.modules[module]).get(hint.removeprefix("Later[").removesuffix("]"))
    return named if isinstance(named, type) and hasattr(named, "unbuilt_fields") else None


@cache
def _adapter(module: str, hint: str) -> TypeAdapter[Any]:
    """Return the validator of a hint; many fields have the same one."""
    return TypeAdapter(_evaluated(module, hint))


def _evaluated(module: str, hint: str) -> Any:
    declaring = type("Declaring", (), {"__module__": module, "__annotations__": {"field": hint}})
    return get_type_hints(declaring, include_extras=True)["field"]
