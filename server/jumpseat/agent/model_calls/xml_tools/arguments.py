"""Convert the elements of a call to arguments, guided by the schema of the tool.

XML contains only text; the schema determines what is a number, a boolean or an array. Text that does not match the
schema stays a string, which the tool's own validation reports. JSON is accepted where the schema allows an array,
an object or anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

import orjson
from msgspec import Struct

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model_calls.xml_tools.reader import Element
from jumpseat.agent.model_calls.xml_tools.schemas import items_of, kind_of, properties_of, property_of, resolve

_CALL_ATTRIBUTES: Final = frozenset({"name", "id"})


class WrittenCall(Struct, frozen=True):
    """A call written by the model: its arguments, or the problem with them."""

    name: str
    arguments: JsonObject | None
    problem: str | None = None


class _UnfitError(Exception):
    """Raised for elements that cannot be converted. The message is for the model."""


def read_calls(tool: Element) -> list[WrittenCall]:
    """Return the calls in a ``<tool>`` element: one for each ``<action>``, or else a single one."""
    actions = [child for child in tool.children if child.role == "wrapper" and child.tag == "action"]
    around = [child for child in tool.children if child not in actions]
    return [_to_call(tool, [*around, action]) for action in actions] or [_to_call(tool, around)]


def _to_call(tool: Element, children: list[Element]) -> WrittenCall:
    if not tool.key:
        return WrittenCall("", None, "the call does not name its tool: <tool name=...>")
    try:
        arguments: JsonObject = {}
        _add_parameters(arguments, tool, children)
    except _UnfitError as error:
        return WrittenCall(tool.key, None, str(error))
    return WrittenCall(tool.key, arguments)


def _add_parameters(arguments: JsonObject, holder: Element, children: list[Element]) -> None:
    """Add the parameters in ``children``, and in the attributes and text of ``holder``, to ``arguments``."""
    found: dict[str, list[Element]] = {}
    for child in children:
        if child.role == "wrapper":
            _add_parameters(arguments, child, child.children)
        elif not (holder.role == "tool" and child.tag == "name" and "name" not in holder.attributes):
            found.setdefault(child.key, []).append(child)
    for key, elements in found.items():
        if key in arguments:
            raise _UnfitError(f"`{key}` is given twice")
        schema = property_of(holder.schema, holder.root, key)
        arguments[key] = _merge_values(key, elements, schema, holder.root)
    text = holder.text().strip()
    if text and (children or arguments):
        raise _UnfitError(f"there is text between the parameters: {text[:60]!r}")
    if text:
        given = _parse_json(text)
        if not isinstance(given, dict):
            raise _UnfitError(f"there is text where parameters were expected: {text[:60]!r}")
        arguments.update(cast("JsonObject", given))
    _add_attributes(arguments, holder)


def _add_attributes(arguments: JsonObject, holder: Element) -> None:
    """Add the parameters given as attributes; the ``type`` of an action sets the parameter "action" or "type"."""
    properties = properties_of(holder.schema, holder.root)
    for name, text in holder.attributes.items():
        if holder.role == "tool" and name in _CALL_ATTRIBUTES:
            continue
        key = name
        if holder.tag == "action" and name == "type":
            key = next((name for name in ("action", "type") if name in properties), "" if properties else "type")
        elif name not in properties:
            continue
        if key:
            arguments.setdefault(key, _scalar(text, property_of(holder.schema, holder.root, key), holder.root))


def _merge_values(key: str, elements: list[Element], schema: JsonObject, root: JsonObject) -> Any:
    """Return the value of a parameter given by one or more elements."""
    kind = kind_of(schema, root)
    if kind == "array":
        return [item for element in elements for item in _items(element, schema, root)]
    if len(elements) == 1:
        return _value(elements[0], schema, root)
    if kind != "any":
        raise _UnfitError(f"`{key}` is given {len(elements)} times")
    return [_value(element, schema, root) for element in elements]


def _items(element: Element, schema: JsonObject, root: JsonObject) -> Iterable[Any]:
    inner = items_of(schema, root)
    if element.children:
        if any(child.tag in properties_of(inner, root) for child in element.children):
            return [_object(element, inner, root)]
        _reject_text(element)
        return [_value(child, inner, root) for child in element.children]
    text = element.text()
    given = _parse_json(text)
    if isinstance(given, list):
        return cast("list[Any]", given)
    return [_scalar(text, inner, root)] if text.strip() else []


def _value(element: Element, schema: JsonObject, root: JsonObject) -> Any:
    kind = kind_of(schema, root)
    if kind == "array":
        return list(_items(element, schema, root))
    if element.children:
        return _object(element, schema, root)
    text = element.text()
    if kind in ("object", "any"):
        given = _parse_json(text)
        if isinstance(given, (dict, list)) or (given is not None and not element.marked):
            return cast("Any", given)
        return {} if kind == "object" and not text.strip() else text
    return _scalar(text, schema, root)


def _object(element: Element, schema: JsonObject, root: JsonObject) -> JsonObject:
    _reject_text(element)
    found: dict[str, list[Element]] = {}
    for child in element.children:
        found.setdefault(child.key, []).append(child)
    return {key: _merge_values(key, some, property_of(schema, root, key), root) for key, some in found.items()}


def _reject_text(element: Element) -> None:
    if text := element.text().strip():
        raise _UnfitError(f"there is text between the elements of <{element.tag}>: {text[:60]!r}")


def _scalar(text: str, schema: JsonObject, root: JsonObject) -> Any:
    """Convert ``text`` to the type in ``schema``; return it unchanged where that fails."""
    bare = text.strip()
    match kind_of(schema, root):
        case "integer" | "number":
            number = _parse_json(bare)
            return number if isinstance(number, (int, float)) and not isinstance(number, bool) else text
        case "boolean":
            return {"true": True, "false": False}.get(bare.lower(), text)
        case "scalar":
            return _ambiguous_scalar(text, resolve(schema, root))
        case "array" | "object":
            given = _parse_json(bare)
            return text if given is None else given
        case _:
            return text


def _ambiguous_scalar(text: str, schema: JsonObject) -> Any:
    """Convert ``text`` for a schema of several scalar types; values listed in it take precedence over strings."""
    listed: Any = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(listed, list):
        values = cast("list[Any]", listed)
        return next((value for value in values if value == text or _to_text(value) == text.strip()), text)
    types: Any = schema.get("type")
    if isinstance(types, list) and "string" in types:
        return text
    variants: Any = schema.get("anyOf", schema.get("oneOf", []))
    if any(
        isinstance(variant, dict) and "string" in str(cast("JsonObject", variant).get("type"))
        for variant in variants
    ):
        return text
    given = _parse_json(text.strip())
    return given if isinstance(given, (bool, int, float)) else text


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _parse_json(text: str) -> Any:
    """Parse a JSON number, boolean, array or object; return ``None`` for anything else."""
    try:
        value: Any = orjson.loads(text)
    except ValueError:
        return None
    return None if isinstance(value, str) else value
