"""Dataclasses whose methods are generated when a class is first used.

A server defines hundreds of dataclasses and uses few of them before its first answer. The standard decorator
compiles the methods of each at once, which took a quarter of the time to start. This one makes the same class, with
the same slots, and calls the standard decorator at the first instance, or when something asks for the fields. (A
class without slots is left to the standard decorator.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Make a class a dataclass, with the options of :func:`dataclasses.dataclass`."""
        decorator = _Lazy(options) if options.get("slots") else dataclasses.dataclass(**options)
        return decorator if cls is None else decorator(cls)


_GENERATED: Final = (
    "__init__",
    "__repr__",
    "__eq__",
    "__hash__",
    "__setattr__",
    "__delattr__",
    "__dataclass_fields__",
    "__dataclass_params__",
)


class _Lazy:
    """The decorator with its options, ``slots`` among them."""

    def __init__(self, options: dict[str, bool]) -> None:
        self._options = options

    def __call__(self, cls: type) -> type:
        options = self._options
        written = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
        names = [name for name, hint in written.get("__annotations__", {}).items() if not _is_class_variable(hint)]
        made = _Pending(options, written)
        added = made.stubs()
        added["__match_args__"] = _match_args(cls, written, names, kw_only=options.get("kw_only", False))
        added = {name: value for name, value in added.items() if name not in written}
        # Slots can only be given to a new class, as the standard decorator does.
        inherited = {slot for base in cls.__mro__[1:] for slot in vars(base).get("__slots__", ())}
        slots = tuple(name for name in names if name not in inherited)
        rest = {name: value for name, value in written.items() if name not in names}
        namespace = {**rest, **added, "__slots__": slots, "__qualname__": cls.__qualname__}
        made.cls = type(cls)(cls.__name__, cls.__bases__, namespace)
        return made.cls


class _Pending:
    """A class whose methods are not generated yet."""

    cls: type

    def __init__(self, options: dict[str, bool], written: dict[str, Any]) -> None:
        """``written`` is the namespace of the class as it stands in the program."""
        self._options = options
        self._written = written

    def stubs(self) -> dict[str, Any]:
        """Return methods that generate the real ones, for those that the standard decorator would add."""
        options = self._options
        stubs: dict[str, Any] = {"__dataclass_fields__": _FieldsOf(self), "__init__": self._stub("__init__")}
        if options.get("repr", True):
            stubs["__repr__"] = self._stub("__repr__")
        if options.get("eq", True):
            stubs["__eq__"] = self._stub("__eq__")
            stubs["__hash__"] = self._stub("__hash__") if options.get("frozen") else None
        if options.get("frozen"):
            stubs |= {"__getstate__": _get_state, "__setstate__": _set_state}
        return stubs

    def _stub(self, name: str) -> Callable[..., Any]:
        def stub(instance: Any, *args: Any, **kwargs: Any) -> Any:
            self.complete()
            return getattr(self.cls, name)(instance, *args, **kwargs)

        return stub

    def complete(self) -> None:
        """Generate the methods."""
        cls, written = self.cls, self._written
        # The standard decorator finds the defaults in the class as it was written.
        original = type(cls)(cls.__name__, cls.__bases__, {**written, "__qualname__": cls.__qualname__})
        standard = dataclasses.dataclass(**self._options)(original)
        for name in _GENERATED:
            value = vars(standard).get(name)
            if value is not None and name not in written:
                setattr(cls, name, value)


class _FieldsOf:
    """The fields of a class, known after its methods were generated."""

    def __init__(self, pending: _Pending) -> None:
        self._pending = pending

    def __get__(self, instance: object, owner: type) -> Any:
        self._pending.complete()
        return vars(self._pending.cls)["__dataclass_fields__"]


def _match_args(cls: type, written: dict[str, Any], names: list[str], *, kw_only: bool) -> tuple[str, ...]:
    """Return the names of the fields that a pattern may give by position."""
    earlier: tuple[str, ...] = getattr(cls.__bases__[0], "__match_args__", ())
    if kw_only:
        return earlier
    own = (name for name in names if name not in earlier and getattr(written.get(name), "init", True) is not False)
    return (*earlier, *own)


def _is_class_variable(hint: Any) -> bool:
    return isinstance(hint, str) and hint.startswith(("ClassVar", "typing.ClassVar"))


def _get_state(instance: Any) -> list[Any]:
    return [getattr(instance, field.name) for field in dataclasses.fields(instance)]


def _set_state(instance: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(instance), state, strict=True):
        object.__setattr__(instance, field.name, value)
