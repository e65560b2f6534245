"""Pydantic models that cost next to nothing before their first use.

A server defines hundreds of models and validates few of them before its first answer. With ``defer_build``,
pydantic builds the validator of a model at its first use, but it collects the fields when the class is defined,
which took a sixth of the time to start. A subclass of :class:`LazyModel` is built at its first use: when it is
instantiated, validates a value, or is asked for its fields. Until then, the members that pydantic would add are
triggers.

Models with private attributes, type parameters or keyword arguments, and those that are defined in functions, are
built at once.
"""

from __future__ import annotations

from abc import ABCMeta
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Self, cast

from pydantic import VERSION, BaseModel, ConfigDict
from pydantic.fields import ModelPrivateAttr

from jumpseat_protocol.lazy_validation import DeclaredFields, declared_fields

NEWEST_TESTED: Final = (2, 14)
IS_TESTED: Final = tuple(map(int, VERSION.split(".")[:2])) <= NEWEST_TESTED
"""True if models are lazy. Later versions of pydantic may build models differently: there, models are eager."""

_NAMESPACE: Final = "__lazy_namespace__"
"""The member of a class that is not built: its namespace, as pydantic expects it."""
_DECLARED: Final = "__declared_namespace__"
"""The same of a class that is built, for its subclasses."""
_CLASS: Final = "__lazy_class__"
# Threads may use a model for the first time at the same time.
_building: Final = RLock()

_PydanticMetaclass: Final[Any] = type(BaseModel)


class _Existing(ABCMeta):
    """Gives pydantic's metaclass, which asks the next metaclass for a class, the class to build."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        cls = namespace.pop(_CLASS, None)
        if cls is None:
            return super().__new__(mcs, name, bases, namespace, **options)
        for member, value in namespace.items():
            if member not in vars(cls) or isinstance(vars(cls)[member], _Trigger):
                setattr(cls, member, value)
        return cls


class _LazyMetaclass(_PydanticMetaclass, _Existing):
    """The metaclass of lazy models."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        if options or _is_built_at_once(bases, namespace):
            return _PydanticMetaclass.__new__(mcs, name, bases, namespace, **options)
        annotations = namespace.get("__annotations__", {})
        fields = {field for field, hint in annotations.items() if not str(hint).startswith("ClassVar")}
        members = {member: value for member, value in namespace.items() if member not in fields}
        # The cell of `super()` is filled once.
        namespace.pop("__classcell__", None)
        return ABCMeta.__new__(mcs, name, bases, {**members, **_TRIGGERS, _NAMESPACE: namespace})


def is_unbuilt(model: type) -> bool:
    """Return whether pydantic has not built a model yet."""
    return _NAMESPACE in vars(model)


def declared_namespaces(model: type, root: type) -> list[dict[str, Any]]:
    """Return the namespaces of a lazy model and of its bases below ``root``, the bases first."""
    bases = [base for base in reversed(model.__mro__) if issubclass(base, root) and base is not root]
    return [vars(base).get(_NAMESPACE) or vars(base)[_DECLARED] for base in bases]


def _is_built_at_once(bases: tuple[type, ...], namespace: dict[str, Any]) -> bool:
    return (
        not any(isinstance(base, _LazyMetaclass) for base in bases)
        or "__orig_bases__" in namespace
        or "<locals>" in namespace["__qualname__"]
        or any(isinstance(value, ModelPrivateAttr) for value in namespace.values())
    )


class _Trigger:
    """Stands for a member that pydantic adds to a model: asking for it builds the model."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        with _building:
            if _NAMESPACE in vars(owner):
                _build(owner)
        # Pydantic looks for inherited members while it builds a model.
        is_building = isinstance(vars(owner).get(self._name), _Trigger)
        return getattr(cast("Any", super(owner, owner)) if is_building else owner, self._name)

    def __contains__(self, name: object) -> bool:
        # Pydantic looks for fields in the namespaces of a model and its bases.
        return False


def _build(cls: type) -> None:
    """Do what pydantic does when a model is defined."""
    for base in cls.__bases__:
        # Pydantic reads the namespaces of the bases, which builds none of them.
        getattr(base, "__pydantic_fields__", None)
    namespace = vars(cls)[_NAMESPACE]
    delattr(cls, _NAMESPACE)
    setattr(cls, _DECLARED, namespace)
    arguments = (type(cls), cls.__name__, cls.__bases__, {**namespace, _CLASS: cls})
    try:
        _PydanticMetaclass.__new__(*arguments, __pydantic_reset_parent_namespace__=False)
    except BaseException:
        setattr(cls, _NAMESPACE, namespace)
        raise
    for member, value in list(vars(cls).items()):
        if isinstance(value, _Trigger):
            delattr(cls, member)


if TYPE_CHECKING or not IS_TESTED:

    class LazyModel(BaseModel):
        """The base of lazy models."""

        model_config = ConfigDict(defer_build=True)
else:

    class LazyModel(BaseModel, metaclass=_LazyMetaclass):
        """The base of lazy models."""

        model_config = ConfigDict(defer_build=True)

        @classmethod
        def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
            """See pydantic's method. Most models are not built for it."""
            if is_unbuilt(cls):
                fields = _fields_to_construct(cls)
                if fields is not None and values.keys() <= fields.by_name.keys():
                    return fields.instance(cls, values, _fields_set)
            return super().model_construct(_fields_set, **values)


@cache
def _fields_to_construct(model: type) -> DeclaredFields | None:
    """Return the fields of a model for instances without validation; ``None`` if only pydantic can make them."""
    namespaces = declared_namespaces(model, LazyModel)
    for namespace in namespaces:
        if "model_post_init" in namespace or namespace.get("model_config", {}).get("extra") == "allow":
            return None
    return declared_fields(namespaces)


_TRIGGERS: Final = {
    name: _Trigger(name)
    for name in (
        *(name for name in vars(LazyModel) if name.startswith("__pydantic_")),
        *("__class_vars__", "__get_pydantic_core_schema__", "__private_attributes__"),
        "model_config",
    )
}
