"""Libraries whose typed dicts cost next to nothing before their first use."""

from __future__ import annotations

import types
import typing
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import typing_extensions

# Pydantic accepts no other one in Python 3.11.
_typed_dict: Final[Any] = typing_extensions.TypedDict


@contextmanager
def in_libraries() -> Generator[None]:
    """Make the typed dicts of libraries that are imported in this context plain classes.

    Pydantic describes its schemas by typed dicts. Parsing their hints, which nothing reads, took a twentieth of the
    time to start. Those of our own packages stay typed dicts, because pydantic may validate values of them.
    """
    stand_ins: list[tuple[Any, str, Any]] = [
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

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: bool) -> Any:
        if namespace["__module__"].startswith("jumpseat") and namespace["__module__"] != __name__:
            return types.new_class(name, (_typed_dict,), options, lambda members: members.update(namespace))
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_options: bool) -> None:
        super().__init__(name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return dict(*args, **kwargs)


class _PlainDict(dict[str, Any], metaclass=_PlainDictType):
    """Stands for ``TypedDict``."""
