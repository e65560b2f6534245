"""Dataclasses that cost next to nothing before their first use.

A server defines hundreds of dataclasses and uses few of them before its first answer. The standard decorator
compiles the methods of each at once, which took a quarter of the time to start. This one makes a class with the
same slots and the same behaviour; it compiles the constructor once a class has a few instances, and describes the
fields when something asks for them, such as :func:`dataclasses.replace` or pydantic.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Generator
from contextlib import contextmanager
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


_OWN: Final = "__lazy_fields__"
_OPTIONS: Final = frozenset({"eq", "frozen", "kw_only", "repr", "slots"})
"""The options of lazy dataclasses; a class with others is left to the standard decorator."""
_standard: Final[Any] = dataclasses.dataclass
FEW: Final = 3
"""The number of instances made without compiling a constructor: most classes of a first turn have no more."""


@contextmanager
def in_libraries() -> Generator[None]:
    """Make the dataclasses of libraries lazy that are imported in this context, and their typed dicts plain ones.

    Pydantic describes its schemas by typed dicts. Parsing their hints, which nothing reads, took a twentieth of the
    time to start.
    """
    import typing_extensions

    stand_ins: list[tuple[Any, str, Any]] = [
        (dataclasses, "dataclass", dataclass),
        (typing, "TypedDict", _PlainDict),
        (typing_extensions, "TypedDict", _PlainDict),
    ]
    originals = [getattr(library, name) for library, name, _ in stand_ins]
    for library, name, stand_in in stand_ins:
        setattr(library, name, stand_in)
    try:
        yield
    finally:
        for (library, name, _), original in zip(stand_ins, originals, strict=True):
            setattr(library, name, original)


class _PlainDictType(type):
    """Makes classes like those of typed dicts: calling one returns a dict."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_options: bool) -> Any:
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_options: bool) -> None:
        super().__init__(name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return dict(*args, **kwargs)


class _PlainDict(dict[str, Any], metaclass=_PlainDictType):
    """Stands for ``TypedDict``."""


def field_names(cls: type) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields, without describing the fields; ``None`` for other classes."""
    own: dict[str, Any] | None = getattr(cls, _OWN, None)
    if own is not None:
        return tuple(own)
    return tuple(field.name for field in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else None


class _Lazy:
    """The decorator with its options."""

    def __init__(self, options: dict[str, bool]) -> None:
        self._options = options

    def __call__(self, cls: type) -> type:
        written = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
        hints: dict[str, Any] = written.get("__annotations__", {})
        if any(map(_is_special, hints.values())):
            return _standard(**self._options)(cls)
        names = [name for name, hint in hints.items() if not _is_class_variable(hint)]
        kw_only = self._options.get("kw_only", False)
        fields = _inherited_fields(cls) | {name: _field(written.get(name, _MISSING), kw_only) for name in names}
        made = _Class(self._options, fields)
        added = {name: value for name, value in made.methods().items() if name not in written}
        if not self._options.get("slots"):
            made.cls = cls
            for name in written.keys() & set(names):
                if fields[name].default is not _MISSING:
                    setattr(cls, name, fields[name].default)
                else:
                    delattr(cls, name)
            for name, value in {**added, _OWN: fields}.items():
                setattr(cls, name, value)
            return cls
        # Slots can only be given to a new class, as the standard decorator does.
        inherited = {slot for base in cls.__mro__[1:] for slot in vars(base).get("__slots__", ())}
        slots = tuple(name for name in names if name not in inherited)
        rest = {name: value for name, value in written.items() if name not in names}
        namespace = {**rest, **added, "__slots__": slots, "__qualname__": cls.__qualname__, _OWN: fields}
        made.cls = type(cls)(cls.__name__, cls.__bases__, namespace)
        return made.cls


_MISSING: Final[Any] = dataclasses.MISSING


class _Class:
    """A class with the methods that are the same for all classes, and a constructor to be compiled."""

    cls: type

    def __init__(self, options: dict[str, bool], fields: dict[str, dataclasses.Field[Any]]) -> None:
        self._options = options
        self._fields = fields
        self._frozen = options.get("frozen", False)

    def methods(self) -> dict[str, Any]:
        """Return what the standard decorator would add."""
        fields, options = self._fields.items(), self._options
        methods: dict[str, Any] = {
            "__dataclass_fields__": _MadeLater(self, "__dataclass_fields__"),
            "__dataclass_params__": _MadeLater(self, "__dataclass_params__"),
            "__init__": self._constructor(),
            "__match_args__": tuple(name for name, field in fields if field.init and not field.kw_only),
        }
        if options.get("repr", True):
            methods["__repr__"] = _representation([name for name, field in fields if field.repr])
        if options.get("eq", True):
            key = _key_of([name for name, field in fields if field.compare])
            methods["__eq__"] = _equality(key)
            methods["__hash__"] = _hash(key) if self._frozen else None
        if self._frozen:
            methods |= {
                "__setattr__": self._refusal("assign to", object.__setattr__),
                "__delattr__": self._refusal("delete", object.__delattr__),
            }
        if self._frozen and options.get("slots"):
            methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
        return methods

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
            names = [name for name, field in self._fields.items() if field.init and not field.kw_only]
            if len(args) > len(names) or not values.keys().isdisjoint(names[: len(args)]):
                return False
            values = dict(zip(names, args, strict=False)) | values
        fields: dict[str, Any] = {}
        given = 0
        for name, field in self._fields.items():
            if field.init and name in values:
                given += 1
                fields[name] = values[name]
            elif field.default is not _MISSING:
                fields[name] = field.default
            elif field.default_factory is not _MISSING:
                fields[name] = field
            elif field.init:
                return False
        if given < len(values):
            return False
        assign = object.__setattr__ if self._frozen else setattr
        for name, value in fields.items():
            assign(instance, name, value.default_factory() if value is self._fields[name] else value)
        if hasattr(self.cls, "__post_init__"):
            instance.__post_init__()
        return True

    def _compile(self) -> Callable[..., None]:
        """Compile the constructor."""
        # No field has a name with these prefixes.
        values: dict[str, Any] = {"__lazy_set": object.__setattr__, "__lazy_missing": _MISSING}
        positional, named, body = ["self"], list[str](), list[str]()
        for name, field in self._fields.items():
            has_factory, has_default = field.default_factory is not _MISSING, field.default is not _MISSING
            values[f"__lazy_of_{name}"] = field.default_factory if has_factory else field.default
            made = f"__lazy_of_{name}()" if has_factory else f"__lazy_of_{name}"
            if field.init:
                default = "=__lazy_missing" if has_factory else f"={made}" if has_default else ""
                (named if field.kw_only else positional).append(name + default)
                value = f"{made} if {name} is __lazy_missing else {name}" if has_factory else name
            elif has_factory or has_default:
                value = made
            else:
                continue
            body.append(f"__lazy_set(self, {name!r}, {value})" if self._frozen else f"self.{name} = {value}")
        if hasattr(self.cls, "__post_init__"):
            body.append("self.__post_init__()")
        parameters = ", ".join([*positional, *(["*", *named] if named else [])])
        lines = "\n    ".join(body or ["pass"])
        exec(f"def __init__({parameters}):\n    {lines}", values)  # noqa: S102 - as the standard decorator does
        constructor = values["__init__"]
        constructor.__qualname__ = f"{self.cls.__qualname__}.__init__"
        constructor.__module__ = self.cls.__module__
        return constructor

    def _refusal(self, action: str, otherwise: Callable[..., None]) -> Callable[..., None]:
        def refuse(instance: Any, name: str, *value: Any) -> None:
            if type(instance) is self.cls or name in self._fields:
                raise dataclasses.FrozenInstanceError(f"cannot {action} field {name!r}")
            otherwise(instance, name, *value)

        return refuse

    def complete(self) -> None:
        """Give the class what the standard decorator keeps of a dataclass: its fields and options."""
        hints: dict[str, Any] = {}
        for base in reversed(self.cls.__mro__):
            hints |= vars(base).get("__annotations__", {})
        namespace = {
            "__module__": self.cls.__module__,
            # Without a text, the standard decorator makes one from the signature.
            "__doc__": "Fields.",
            "__annotations__": {name: hints[name] for name in self._fields},
        }
        described: Any = type(self.cls.__name__, (), namespace | self._fields)
        described = dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False)(described)
        options = described.__dataclass_params__
        for name, value in ({"init": True, "repr": True, "eq": True} | self._options).items():
            if hasattr(options, name):
                setattr(options, name, value)
        kept: Any = self.cls
        kept.__dataclass_params__ = options
        kept.__dataclass_fields__ = described.__dataclass_fields__


class _MadeLater:
    """A member that is made when something asks for it."""

    def __init__(self, of: _Class, name: str) -> None:
        self._of = of
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        self._of.complete()
        return vars(self._of.cls)[self._name]


def _inherited_fields(cls: type) -> dict[str, dataclasses.Field[Any]]:
    fields: dict[str, dataclasses.Field[Any]] = {}
    for base in cls.__mro__[-1:0:-1]:
        own = vars(base).get(_OWN)
        fields |= own if own is not None else vars(base).get("__dataclass_fields__", {})
    return fields


def _field(written: Any, kw_only: bool) -> dataclasses.Field[Any]:
    """Return the field for what stands at the name of a field in the class: a field, a default, or nothing."""
    is_field = isinstance(written, dataclasses.Field)
    field: dataclasses.Field[Any] = cast("Any", written if is_field else dataclasses.field(default=written))
    if field.kw_only is _MISSING:
        field.kw_only = kw_only
    return field


def _key_of(names: list[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _instance: ()


def _equality(key: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def is_equal(instance: Any, other: Any) -> Any:
        return key(instance) == key(other) if other.__class__ is instance.__class__ else NotImplemented

    return is_equal


def _hash(key: Callable[[Any], Any]) -> Callable[[Any], int]:
    def hash_of(instance: Any) -> int:
        return hash(key(instance))

    return hash_of


def _representation(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def represent(instance: Any) -> str:
        values = ", ".join(f"{name}={getattr(instance, name)!r}" for name in names)
        return f"{type(instance).__qualname__}({values})"

    return represent


def _is_class_variable(hint: Any) -> bool:
    if isinstance(hint, str):
        return hint.startswith(("ClassVar", "typing.ClassVar"))
    return hint is ClassVar or get_origin(hint) is ClassVar


def _is_special(hint: Any) -> bool:
    """Return whether the annotation is not that of a field or a class variable."""
    if isinstance(hint, str):
        return "InitVar" in hint or "KW_ONLY" in hint
    return hint in (dataclasses.InitVar, dataclasses.KW_ONLY) or isinstance(hint, dataclasses.InitVar)


def _get_state(instance: Any) -> list[Any]:
    return [getattr(instance, field.name) for field in dataclasses.fields(instance)]


def _set_state(instance: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(instance), state, strict=True):
        object.__setattr__(instance, field.name, value)
