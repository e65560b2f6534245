"""From the elements of a call to its arguments, by the schema of the tool.

Everything in XML is text: the schema tells what is a number, a truth, a list. What does not fit stays the text that
it is, and the tool's own check names it. Values that are JSON are taken as such where no single value is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, cast

import orjson

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model_calls.xml_tools.reader import Element
from jumpseat.agent.model_calls.xml_tools.schemas import items_of, kind_of, plain, properties_of, property_of

_CALL_ATTRIBUTES: Final = frozenset({"name", "id"})


@dataclass(frozen=True, slots=True)
class Written:
    """A call as the model wrote it: with arguments, or with what is wrong with them."""

    name: str
    arguments: JsonObject | None
    problem: str | None = None


class _UnfitError(Exception):
    """The text says what is wrong, in words for the model."""


def written_calls(tool: Element) -> list[Written]:
    """The calls of one element: as many as it has actions, else one."""
    actions = [one for one in tool.children if one.role == "wrapper" and one.tag == "action"]
    around = [one for one in tool.children if one not in actions]
    return [_written(tool, [*around, action]) for action in actions] or [_written(tool, around)]


def _written(tool: Element, children: list[Element]) -> Written:
    if not tool.key:
        return Written("", None, "the call does not name its tool: <tool name=...>")
    try:
        arguments: JsonObject = {}
        _fill(arguments, tool, children)
    except _UnfitError as error:
        return Written(tool.key, None, str(error))
    return Written(tool.key, arguments)


def _fill(arguments: JsonObject, holder: Element, children: list[Element]) -> None:
    """Put into ``arguments`` what ``holder`` says in its ``children``, its attributes and its text."""
    found: dict[str, list[Element]] = {}
    for child in children:
        if child.role == "wrapper":
            _fill(arguments, child, child.children)
        elif not (holder.role == "tool" and child.tag == "name" and "name" not in holder.attributes):
            found.setdefault(child.key, []).append(child)
    for key, elements in found.items():
        if key in arguments:
            raise _UnfitError(f"`{key}` is given twice")
        schema = property_of(holder.schema, holder.root, key)
        arguments[key] = _joined(key, elements, schema, holder.root)
    text = holder.text().strip()
    if text and (children or arguments):
        raise _UnfitError(f"there is text beside the parameters: {text[:60]!r}")
    if text:
        given = _json(text)
        if not isinstance(given, dict):
            raise _UnfitError(f"there is text where parameters were expected: {text[:60]!r}")
        arguments.update(cast("JsonObject", given))
    _take_attributes(arguments, holder)


def _take_attributes(arguments: JsonObject, holder: Element) -> None:
    """Parameters that are given as attributes; the type of an action is the parameter of either name."""
    properties = properties_of(holder.schema, holder.root)
    for name, text in holder.attributes.items():
        if holder.role == "tool" and name in _CALL_ATTRIBUTES:
            continue
        key = name
        if holder.tag == "action" and name == "type":
            key = next((one for one in ("action", "type") if one in properties), "" if properties else "type")
        elif name not in properties:
            continue
        if key:
            arguments.setdefault(key, _single(text, property_of(holder.schema, holder.root, key), holder.root))


def _joined(key: str, elements: list[Element], schema: JsonObject, root: JsonObject) -> Any:
    """The value of a parameter that is given by one or more elements."""
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
        _no_text(element)
        return [_value(child, inner, root) for child in element.children]
    text = element.text()
    given = _json(text)
    if isinstance(given, list):
        return cast("list[Any]", given)
    return [_single(text, inner, root)] if text.strip() else []


def _value(element: Element, schema: JsonObject, root: JsonObject) -> Any:
    kind = kind_of(schema, root)
    if kind == "array":
        return list(_items(element, schema, root))
    if element.children:
        return _object(element, schema, root)
    text = element.text()
    if kind in ("object", "any"):
        given = _json(text)
        if isinstance(given, (dict, list)) or (given is not None and not element.marked):
            return cast("Any", given)
        return {} if kind == "object" and not text.strip() else text
    return _single(text, schema, root)


def _object(element: Element, schema: JsonObject, root: JsonObject) -> JsonObject:
    _no_text(element)
    found: dict[str, list[Element]] = {}
    for child in element.children:
        found.setdefault(child.key, []).append(child)
    return {key: _joined(key, some, property_of(schema, root, key), root) for key, some in found.items()}


def _no_text(element: Element) -> None:
    if text := element.text().strip():
        raise _UnfitError(f"there is text beside the elements of <{element.tag}>: {text[:60]!r}")


def _single(text: str, schema: JsonObject, root: JsonObject) -> Any:
    """The value that ``text`` stands for; the text itself where it is none of the kind."""
    bare = text.strip()
    match kind_of(schema, root):
        case "integer" | "number":
            number = _json(bare)
            return number if isinstance(number, (int, float)) and not isinstance(number, bool) else text
        case "boolean":
            return {"true": True, "false": False}.get(bare.lower(), text)
        case "scalar":
            return _one_of(text, plain(schema, root))
        case "array" | "object":
            given = _json(bare)
            return text if given is None else given
        case _:
            return text


def _one_of(text: str, schema: JsonObject) -> Any:
    """A value of several kinds: what is listed goes before what could be a text."""
    listed: Any = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(listed, list):
        values = cast("list[Any]", listed)
        return next((one for one in values if one == text or _shown(one) == text.strip()), text)
    types: Any = schema.get("type")
    if isinstance(types, list) and "string" in types:
        return text
    variants: Any = schema.get("anyOf", schema.get("oneOf", []))
    if any(isinstance(one, dict) and "string" in str(cast("JsonObject", one).get("type")) for one in variants):
        return text
    given = _json(text.strip())
    return given if isinstance(given, (bool, int, float)) else text


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _json(text: str) -> Any:
    """The number, truth, list or object that ``text`` is in JSON, else ``None``."""
    try:
        value: Any = orjson.loads(text)
    except ValueError:
        return None
    return None if isinstance(value, str) else value
