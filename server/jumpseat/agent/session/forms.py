"""Forms that clients show to people: flat JSON Schemas, in the form that every client can show. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

from jumpseat.errors import InvalidRequestError

MOST_VALUES: Final = 5000
"""The members and items in a form, all together."""
MOST_CHARS: Final = 64 * 1024
"""The characters of the texts and names in a form, all together."""
DEEPEST: Final = 8
"""The levels of a form. Those of the protocol have six: the choices in the items of a field."""

Check: TypeAlias = Callable[[Any], bool]


def shown_form(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a form without the members that are ``null``, which some clients cannot tell from values.

    Raises:
        InvalidRequestError: the form is too large or too deep, or a member has a type that clients do not expect.
    """
    _check_size(schema)
    form = cast("dict[str, Any]", _without_nulls(schema))
    _check_members("", form, {"properties": _is_object, "required": _are_texts})
    for name, field in form.get("properties", {}).items():
        _check_field(name[:100], field)
    return form


def _check_size(schema: Any) -> None:
    waiting: list[tuple[Any, int]] = [(schema, 1)]
    values = characters = 0
    while waiting:
        value, level = waiting.pop()
        inner: Iterable[Any] = ()
        if isinstance(value, dict):
            inner = cast("dict[str, Any]", value).values()
            characters += sum(map(len, cast("dict[str, Any]", value)))
        elif isinstance(value, list):
            inner = cast("list[Any]", value)
        elif isinstance(value, str):
            characters += len(value)
        values += 1
        if level > DEEPEST or values > MOST_VALUES or characters > MOST_CHARS:
            raise InvalidRequestError("the form is too large or too deep")
        waiting += ((one, level + 1) for one in inner)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return {name: _without_nulls(member) for name, member in members.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in cast("list[Any]", value)]
    return value


def _check_field(where: str, field: Any) -> None:
    if not isinstance(field, dict):
        raise InvalidRequestError(f"the form is invalid: {where!r} is not an object")
    members = cast("dict[str, Any]", field)
    _check_members(where, members, _FIELD)
    _check_members(where, members.get("items", {}), _ITEMS)


def _check_members(where: str, value: Mapping[str, Any], checks: Mapping[str, Check]) -> None:
    for name, fits in checks.items():
        if name in value and not fits(value[name]):
            of = f" of {where!r}" if where else ""
            raise InvalidRequestError(f"the form is invalid: {name!r}{of} has the wrong type")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, cast("list[Any]", value)))


def _are_scalars(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_scalar, cast("list[Any]", value)))


def _are_choices(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_choice, cast("list[Any]", value)))


def _is_choice(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    choice = cast("dict[str, Any]", value)
    return _is_scalar(choice.get("const")) and _is_text(choice.get("title", ""))


_ITEMS: Final[Mapping[str, Check]] = {
    "enum": _are_scalars,
    "enumNames": _are_texts,
    "oneOf": _are_choices,
    "anyOf": _are_choices,
}
_FIELD: Final[Mapping[str, Check]] = {
    **_ITEMS,
    "type": _is_text,
    "title": _is_text,
    "description": _is_text,
    "format": _is_text,
    "default": lambda value: _is_scalar(value) or _are_scalars(value),
    "items": _is_object,
    **dict.fromkeys(("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"), _is_number),
}
"""The members of a field that clients read, as in the specification of MCP."""
