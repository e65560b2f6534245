"""The two bases of wire types. Fields are camelCase on the wire and snake_case in Python.

* :class:`WireModel`, a pydantic model, for everything that is received and must be validated.
* :class:`WireStruct`, a struct of msgspec, for everything that is sent often (events, permission requests). It is
  cheap to define, and encoded in a fraction of a microsecond.

Unknown fields of received values are ignored at every level, so that clients newer than this server work. A
constructor called with an unknown name, which is a mistake in a program, refuses it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, cached_property
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    cast,
)

from msgspec import Struct, convert, field, to_builtins
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from jumpseat_protocol.lazy_models import LazyModel, declared_namespaces, is_unbuilt
from jumpseat_protocol.lazy_validation import DeclaredFields, declared_fields, has_rules, validated

T = TypeVar("T")


def _shortest(number: float) -> int | float:
    return int(number) if number.is_integer() else number


Number: TypeAlias = Annotated[
    float,
    Field(allow_inf_nan=False),
    PlainSerializer(_shortest),
    WithJsonSchema({"type": "number"}, mode="serialization"),
]
"""A number that may have a fraction; without one, it is sent as ``5``: readers of integers refuse ``5.0``."""


class WireModel(LazyModel):
    """The base of validated wire types. ``null`` means the same as absent, except for fields in ``taken_back``."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
    )

    sent_as_null: ClassVar[tuple[str, ...]] = ()
    """The wire names of fields that are sent as ``null`` if unset, rather than left out."""
    taken_back: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """The values that ``null`` resets fields to, by wire name."""

    def __new__(cls, *_: Any, **values: Any) -> Self:
        """Check the names of a constructor's arguments; pydantic creates validated values without any.

        Raises:
            TypeError: the type has no field of that name.
        """
        if values:
            check_names(cls, values)
        return super().__new__(cls)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        values = cast("dict[str, Any]", data)
        if None not in values.values():
            return values
        replaced = {key: cls.taken_back.get(key) if value is None else value for key, value in values.items()}
        return {key: value for key, value in replaced.items() if value is not None}

    @classmethod
    def unbuilt_fields(cls) -> DeclaredFields | None:
        """Return the fields of a model that pydantic has not built and need not build to validate values."""
        return _plain_fields(cls) if is_unbuilt(cls) else None

    if not TYPE_CHECKING:

        @classmethod
        def model_validate(cls, obj: Any, **options: Any) -> Self:
            """See pydantic's method. Most models are not built for it."""
            if not options and type(obj) is dict and (fields := cls.unbuilt_fields()) is not None:
                values = obj if None not in obj.values() else cls._null_is_absent(obj)
                if (instance := validated(cls, fields, values)) is not None:
                    return instance
            return super().model_validate(obj, **options)

    def wire(self) -> dict[str, Any]:
        """Return the JSON form: aliases as keys, unset optional fields left out."""
        record = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name in self.sent_as_null:
            record.setdefault(name, None)
        return record


class NestedNulls(WireModel):
    """A :class:`WireModel` whose fields in ``sent_as_null`` are sent as ``null`` inside of other types, too."""

    @model_serializer(mode="wrap")
    def _with_nulls(self, serialize: SerializerFunctionWrapHandler):
        record: dict[str, Any] = serialize(self)
        return {**dict.fromkeys(self.sent_as_null), **record}


@cache
def _plain_fields(model: type[WireModel]) -> DeclaredFields | None:
    """Return the fields of a model; ``None`` if more than its fields says how its values are validated."""
    namespaces = declared_namespaces(model, WireModel)
    return None if any(map(has_rules, namespaces)) else declared_fields(namespaces)


class LateValidator:
    """Validates values of a type, with a validator that is built for the first one."""

    def __init__(self, of: Any) -> None:
        self._of = of

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """Pydantic's validator and schema."""
        return TypeAdapter(self._of)

    def __call__(self, value: Any) -> Any:
        if isinstance(self._of, type) and issubclass(self._of, WireModel):
            return self._of.model_validate(value)
        return self.adapter.validate_python(value)


class _BuiltLater:
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(LateValidator(source))


Later: TypeAlias = Annotated[T, _BuiltLater()]
"""A type whose validator is built with the first value: that of an option that most clients leave out."""


class Encoded(Struct, Generic[T], frozen=True):
    """A value on the wire that is JSON already, in the form of ``T``; its parts are not joined when it is sent."""

    parts: Sequence[bytes | memoryview]


def check_names(cls: type[BaseModel], values: Collection[str]) -> None:
    """Check that ``cls`` has fields with these names.

    Raises:
        TypeError: a name is unknown.
    """
    known = _names(cls)
    unknown = [] if known is None else [name for name in values if name not in known]
    if unknown:
        from jumpseat_protocol.members import hint

        raise TypeError(f"{cls.__name__}: {unknown[0]}: unknown, {hint(unknown[0], cls.model_fields)}")


@cache
def _names(cls: type[BaseModel]) -> frozenset[str] | None:
    """Return all names that the constructor of ``cls`` accepts; ``None`` if it accepts any."""
    from jumpseat_protocol.members import members_of

    members = members_of((cls,))
    return None if members.is_open else members.accepted


class Method(NamedTuple):
    """The types of a request's params and of its result, and what it does.

    ``result`` is a type of the wire, a plain JSON type or a union of them, or ``None`` for a method that answers
    ``null``. Results of methods that are called often are structs, as events are.
    """

    params: type[WireModel]
    result: Any
    does: str


class WireStruct(Struct, rename="camel", omit_defaults=True, gc=False):
    """The base of data classes of the wire. Fields that are ``None`` by default are left out if unset.

    Other defaults are sent: they are given by :func:`always`, or made by a factory such as ``list[str]``. Values of
    the wire are trees, which need no search for cycles by the garbage collector.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema by which pydantic validates and describes such values as fields of models."""
        # Imported late: only pydantic models with such fields need it.
        from jumpseat_protocol.struct_schema import core_schema_of

        return core_schema_of(cls, handler, from_wire, to_wire)


def always(default: T) -> T:
    """Return the default of a field that is sent even if its value is the default."""
    return field(default_factory=lambda: default)


def to_wire(value: Any) -> Any:
    """Return ``value`` as JSON values: structs and models of the wire become camelCase objects.

    Raises:
        TypeError: a value is neither JSON, a struct, an enum nor a model of the wire.
    """
    return to_builtins(value, enc_hook=wire_of_model)


def from_wire(value: Any, of: type[T]) -> T:
    """Make a value of the type ``of``, a struct, from JSON values.

    Raises:
        msgspec.ValidationError: the value is invalid.
    """
    return convert(value, of, dec_hook=model_of_wire)


def model_of_wire(model: type[Any], value: Any) -> Any:
    """Return the model of a value that msgspec cannot make."""
    return model.model_validate(value)


def wire_of_model(value: Any) -> Any:
    """Return the wire form of a value that msgspec cannot encode.

    Raises:
        TypeError: the value is no model of the wire.
    """
    if isinstance(value, WireModel):
        return value.wire()
    raise TypeError(f"{type(value).__name__} has no wire form")
