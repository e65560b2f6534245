"""The pydantic schemas of structs, for models with such fields and for the schema of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import NODEFAULT, Struct, ValidationError
from msgspec.structs import FieldInfo, fields
from pydantic import GetCoreSchemaHandler, ValidatorFunctionWrapHandler
from pydantic_core import CoreSchema, core_schema


def core_schema_of(
    cls: type[Struct],
    handler: GetCoreSchemaHandler,
    decode: Callable[[Any, type[Struct]], Any],
    encode: Callable[[Any], Any],
) -> CoreSchema:
    """Return the schema of a struct: described like a dataclass, but made and encoded by these functions."""

    def make(value: Any, _validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return value if isinstance(value, cls) else decode(value, cls)
        except ValidationError as error:
            raise ValueError(str(error)) from None

    made = [_field(field, handler) for field in fields(cls)]
    if (name := cls.__struct_config__.tag_field) is not None:
        tag = core_schema.literal_schema([cls.__struct_config__.tag])
        made.append(core_schema.dataclass_field(name, tag, kw_only=True))
    described = core_schema.dataclass_args_schema(cls.__name__, made)
    return core_schema.no_info_wrap_validator_function(
        make,
        core_schema.dataclass_schema(cls, described, list(cls.__struct_fields__)),
        ref=f"{cls.__module__}.{cls.__qualname__}:{id(cls)}",
        serialization=core_schema.plain_serializer_function_ser_schema(encode),
    )


def _field(field: FieldInfo, handler: GetCoreSchemaHandler) -> core_schema.DataclassField:
    schema = handler.generate_schema(field.type)
    if field.default is not NODEFAULT:
        schema = core_schema.with_default_schema(schema, default=field.default)
    elif field.default_factory is not NODEFAULT:
        make: Callable[[], Any] = field.default_factory
        schema = core_schema.with_default_schema(schema, default_factory=make)
    name = field.encode_name
    return core_schema.dataclass_field(
        field.name, schema, kw_only=True, validation_alias=name, serialization_alias=name
    )
