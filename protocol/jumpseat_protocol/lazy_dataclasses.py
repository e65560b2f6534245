"""Dataclasses that cost next to nothing before their first use.

A server defines hundreds of dataclasses and uses few of them before its first answer. The standard decorator
compiles the methods of each at once, which took a quarter of the time to start. This one makes a class with the
same slots and the same behaviour; it compiles the constructor once a class has a few instances, and describes the
fields when something asks for them, such as :func:`dataclasses.replace` or pydantic.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast, get_origin

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Make a class a dataclass, with the options of :func:`dataclasses.dataclass`."""
        decorator = _Lazy(options) if options.keys() <= _OPTIONS else _standard(**options)
        return decorator if cls is None else decorator(cls)


_OWN: Final = "__lazy_class__"
_WRITTEN: Final = "__lazy_written__"
_OPTIONS: Final = frozenset({"eq", "frozen", "kw_only", "repr", "slots"})
"""The options of lazy dataclasses; a class with others is left to the standard decorator."""
_EMPTY: Final[Mapping[Any, str]] = {list: "[]", dict: "{}"}
"""What makes an empty value in a constructor: calling ``list[str]`` takes ten times as long."""
_standard: Final[Any] = dataclasses.dataclass
FEW: Final = 3
"""The number of instances made without compiling a constructor: most classes of a first turn have no more."""


def field_names(cls: type) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields, without describing the fields; ``None`` for other classes."""
    own: _Class | None = getattr(cls, _OWN, None)
    if own is not None:
        return tuple(own.fields)
    return tuple(field.name for field in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else None


class SlottedType(type):
    """The metaclass of classes that have their slots before ``dataclass(slots=True)`` is applied to them.

    Other classes are made a second time, with slots, and the first one stays in memory: no garbage is collected
    while a process starts.
    """

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        names = _names_of_fields(namespace)
        written = {field: namespace.pop(field, _MISSING) for field in names}
        slots = _new_slots(names, (base for parent in bases for base in parent.__mro__))
        return super().__new__(mcs, name, bases, {"__slots__": slots, **namespace, _WRITTEN: written})


class _Lazy:
    """The decorator with its options."""

    def __init__(self, options: dict[str, bool]) -> None:
        self._options = options

    def __call__(self, cls: type) -> type:
        namespace, slotted = vars(cls), self._options.get("slots", False)
        if any(map(_is_special, namespace.get("__annotations__", {}).values())):
            return _standard(**self._options)(cls)
        names = _names_of_fields(namespace)
        written: Mapping[str, Any] = namespace.get(_WRITTEN, namespace)
        made = _Class(cls, self._options, {name: written.get(name, _MISSING) for name in names})
        added = {name: value for name, value in made.methods().items() if name not in namespace} | {_OWN: made}
        if slotted and _WRITTEN not in namespace:
            # Slots can only be given to a new class, as the standard decorator does.
            left_out = {*names, "__dict__", "__weakref__"}
            rest = {name: value for name, value in namespace.items() if name not in left_out}
            more = {"__slots__": _new_slots(names, cls.__mro__[1:]), "__qualname__": cls.__qualname__}
            made.cls = type(cls)(cls.__name__, cls.__bases__, {**rest, **added, **more})
            return made.cls
        for name in namespace.keys() & set(names) if not slotted else ():
            if (default := _parts(made.fields[name])[1]) is not _MISSING:
                setattr(cls, name, default)
            else:
                delattr(cls, name)
        for name, value in added.items():
            setattr(cls, name, value)
        return cls


_MISSING: Final[Any] = dataclasses.MISSING


def _names_of_fields(namespace: Mapping[str, Any]) -> list[str]:
    hints: dict[str, Any] = namespace.get("__annotations__", {})
    return [name for name, hint in hints.items() if not _is_class_variable(hint)]


def _new_slots(names: list[str], bases: Iterable[type]) -> tuple[str, ...]:
    inherited = {slot for base in bases for slot in vars(base).get("__slots__", ())}
    return tuple(name for name in names if name not in inherited)


def _parts(written: Any) -> tuple[bool, Any, Any]:
    """Return for what stands at the name of a field whether it is a parameter, its default, and its factory."""
    if not isinstance(written, dataclasses.Field):
        return True, written, _MISSING
    field = cast("dataclasses.Field[Any]", written)
    return field.init, field.default, field.default_factory


class _Class:
    """A dataclass: its fields, and what is made of them when it is needed.

    ``fields`` maps the name of each field, also of inherited ones, to what stands there in the class: a field of
    :mod:`dataclasses`, a default, or ``MISSING``. Those not in ``positional`` are given by keyword only.
    """

    __slots__ = ("_key", "_options", "_shown", "cls", "fields", "positional")

    def __init__(self, cls: type, options: dict[str, bool], own: dict[str, Any]) -> None:
        self.cls = cls
        self._options = options
        self._key: Callable[[Any], Any] | None = None
        self._shown: list[str] | None = None
        self.fields, positional = _inherited(cls)
        self.fields |= own
        for name, written in own.items():
            by_keyword = options.get("kw_only", False)
            if isinstance(written, dataclasses.Field) and written.kw_only is not _MISSING:
                by_keyword = cast("dataclasses.Field[Any]", written).kw_only
            (positional.discard if by_keyword else positional.add)(name)
        self.positional = tuple(name for name in self.fields if name in positional)

    def methods(self) -> dict[str, Any]:
        """Return what the standard decorator would add."""
        options = self._options
        methods: dict[str, Any] = {"__init__": self._constructor(), **_DESCRIPTIONS}
        if options.get("repr", True):
            methods["__repr__"] = _represent
        if options.get("eq", True):
            methods["__eq__"] = _is_equal
            methods["__hash__"] = _hash if options.get("frozen") else None
        if options.get("frozen"):
            methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
            if options.get("slots"):
                methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
        return methods

    @property
    def key(self) -> Callable[[Any], Any]:
        """Return the function that returns the values to compare of an instance."""
        if self._key is None:
            names = self._named("eq", "compare")
            self._key = attrgetter(*names) if names else lambda _instance: ()
        return self._key

    @property
    def shown(self) -> list[str]:
        """The names of the fields in the representation of an instance."""
        if self._shown is None:
            self._shown = self._named("repr", "repr")
        return self._shown

    def _named(self, option: str, part: str) -> list[str]:
        """Return the fields with ``part`` of the class that defines the method of ``option``."""
        if not self._options.get(option, True):
            for base in self.cls.__mro__[1:]:
                if isinstance(made := vars(base).get(_OWN), _Class):
                    return made._named(option, part)
        return [
            name for name, written in self.fields.items() if getattr(written, part, True) or not _is_field(written)
        ]

    def _constructor(self) -> Callable[..., None]:
        instances = 0

        def construct(instance: Any, *args: Any, **kwargs: Any) -> None:
            nonlocal instances
            instances += 1
            if instances > FEW or not self._fill(instance, args, kwargs):
                constructor: Any = self._compile()
                self.cls.__init__ = constructor
                constructor(instance, *args, **kwargs)

        return construct

    def _fill(self, instance: Any, args: tuple[Any, ...], values: dict[str, Any]) -> bool:
        """Set the fields of an instance; return ``False`` if the arguments are not those of the constructor."""
        if args:
            names = self.match_args()
            if len(args) > len(names) or not values.keys().isdisjoint(names[: len(args)]):
                return False
            values = dict(zip(names, args, strict=False)) | values
        fields: dict[str, Any] = {}
        factories: list[tuple[str, Any]] = []
        given = 0
        for name, written in self.fields.items():
            init, default, factory = _parts(written)
            if init and name in values:
                given += 1
                fields[name] = values[name]
            elif default is not _MISSING:
                fields[name] = default
            elif factory is not _MISSING:
                factories.append((name, factory))
            elif init:
                return False
        if given < len(values):
            return False
        assign = object.__setattr__ if self._options.get("frozen") else setattr
        for name, value in fields.items():
            assign(instance, name, value)
        for name, factory in factories:
            assign(instance, name, factory())
        if hasattr(self.cls, "__post_init__"):
            instance.__post_init__()
        return True

    def _compile(self) -> Callable[..., None]:
        """Compile the constructor."""
        # No field has a name with these prefixes.
        values: dict[str, Any] = {"__lazy_set": object.__setattr__, "__lazy_missing": _MISSING}
        positional, named, body = ["self"], list[str](), list[str]()
        frozen = self._options.get("frozen")
        for name, written in self.fields.items():
            init, default, factory = _parts(written)
            has_factory, has_default = factory is not _MISSING, default is not _MISSING
            values[f"__lazy_of_{name}"] = factory if has_factory else default
            made = _EMPTY.get(get_origin(factory) or factory, f"__lazy_of_{name}()")
            made = made if has_factory else f"__lazy_of_{name}"
            if init:
                parameter = "=__lazy_missing" if has_factory else f"={made}" if has_default else ""
                (positional if name in self.positional else named).append(name + parameter)
                value = f"{made} if {name} is __lazy_missing else {name}" if has_factory else name
            elif has_factory or has_default:
                value = made
            else:
                continue
            body.append(f"__lazy_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        if hasattr(self.cls, "__post_init__"):
            body.append("self.__post_init__()")
        parameters = ", ".join([*positional, *(["*", *named] if named else [])])
        lines = "\n    ".join(body or ["pass"])
        exec(f"def __init__({parameters}):\n    {lines}", values)  # noqa: S102 - as the standard decorator does
        constructor = values["__init__"]
        constructor.__qualname__ = f"{self.cls.__qualname__}.__init__"
        constructor.__module__ = self.cls.__module__
        return constructor

    def match_args(self) -> tuple[str, ...]:
        """Return the names of the positional parameters."""
        return tuple(name for name in self.positional if _parts(self.fields[name])[0])

    def describe(self) -> None:
        """Give the class what the standard decorator keeps of a dataclass: its fields and options."""
        hints: dict[str, Any] = {}
        for base in reversed(self.cls.__mro__):
            hints |= vars(base).get("__annotations__", {})
        namespace = {
            "__module__": self.cls.__module__,
            # Without a text, the standard decorator makes one from the signature.
            "__doc__": "Fields.",
            "__annotations__": {name: hints[name] for name in self.fields},
            **{name: _field(written, name not in self.positional) for name, written in self.fields.items()},
        }
        described: Any = type(self.cls.__name__, (), namespace)
        described = dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False)(described)
        options = described.__dataclass_params__
        for name, value in ({"init": True, "repr": True, "eq": True} | self._options).items():
            if hasattr(options, name):
                setattr(options, name, value)
        kept: Any = self.cls
        kept.__dataclass_params__ = options
        kept.__dataclass_fields__ = described.__dataclass_fields__
        kept.__match_args__ = self.match_args()


class _Description:
    """A member that describes a dataclass; it is made when something asks for it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        made: _Class = getattr(owner, _OWN)
        made.describe()
        return vars(made.cls)[self._name]


_DESCRIPTIONS: Final = {
    name: _Description(name) for name in ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
}


def _inherited(cls: type) -> tuple[dict[str, Any], set[str]]:
    """Return the fields of the bases of a class, and the names of the positional ones."""
    fields: dict[str, Any] = {}
    positional: set[str] = set()
    for base in cls.__mro__[-1:0:-1]:
        own = vars(base).get(_OWN)
        if isinstance(own, _Class):
            fields |= own.fields
            positional = positional.difference(own.fields).union(own.positional)
        else:
            standard: dict[str, dataclasses.Field[Any]] = vars(base).get("__dataclass_fields__", {})
            fields |= standard
            by_position = {name for name, field in standard.items() if not field.kw_only}
            positional = positional.difference(standard).union(by_position)
    return fields, positional


def _is_field(written: Any) -> bool:
    return isinstance(written, dataclasses.Field)


def _field(written: Any, kw_only: bool) -> Any:
    """Return the field for what stands at the name of a field in the class: a field, a default, or nothing."""
    field = written if _is_field(written) else dataclasses.field(default=written)
    if field.kw_only is _MISSING:
        field.kw_only = kw_only
    return field


# --- the methods of all dataclasses -------------------------------------------------------------------------------


def _is_equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    key = self.__lazy_class__.key
    return key(self) == key(other)


def _hash(self: Any) -> int:
    return hash(self.__lazy_class__.key(self))


@recursive_repr()
def _represent(self: Any) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__lazy_class__.shown)
    return f"{type(self).__qualname__}({values})"


def _refuse_assignment(self: Any, name: str, value: Any) -> None:
    if type(self) is self.__lazy_class__.cls or name in self.__lazy_class__.fields:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_deletion(self: Any, name: str) -> None:
    if type(self) is self.__lazy_class__.cls or name in self.__lazy_class__.fields:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__lazy_class__.fields]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__lazy_class__.fields, state, strict=True):
        object.__setattr__(self, name, value)


# --- annotations --------------------------------------------------------------------------------------------------


def _is_class_variable(hint: Any) -> bool:
    if isinstance(hint, str):
        return hint.startswith(("ClassVar", "typing.ClassVar"))
    return hint is ClassVar or get_origin(hint) is ClassVar


def _is_special(hint: Any) -> bool:
    """Return whether the annotation is not that of a field or a class variable."""
    if isinstance(hint, str):
        return "InitVar" in hint or "KW_ONLY" in hint
    return hint in (dataclasses.InitVar, dataclasses.KW_ONLY) or isinstance(hint, dataclasses.InitVar)
