"""Describe the errors of pydantic in plain words: the path of each problem, and the expectation.

Values are never part of a description, because they may be secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from jumpseat_protocol.members import Node, dotted, hint, members_of
from jumpseat_protocol.members import Path as KeyPath

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


def validation_problems(
    error: ValidationError, model: type[Any] | None, whole: str = "", *, of_file: bool = False
) -> list[str]:
    """Return the problems of a validation error as ``path: problem``, one for each path, without values.

    Args:
        error: the error of pydantic.
        model: the validated model, which knows the names of members.
        whole: the path of a problem with the value as a whole.
        of_file: whether objects are called tables, as in TOML files.
    """
    root = None if model is None else Node((model,))
    found: dict[KeyPath, list[ErrorDetails]] = {}
    for item in error.errors(include_url=False):
        found.setdefault(_path(root, item), []).append(item)
    problems: list[str] = []
    outer = {path[:end] for path in found for end in range(len(path))}
    for path, items in found.items():
        if path in outer:
            # Another alternative of a union has the right type, and problems inside.
            continue
        place = dotted(path) or whole
        text = _words(items, root, path)
        if of_file:
            text = text.replace("an object", "a table")
        problems.append(f"{place}: {text}" if place else text)
    return problems


def _path(root: Node | None, item: ErrorDetails) -> KeyPath:
    """Return a location of pydantic without the names of types and validators, which it adds for unions."""
    location = item["loc"]
    if root is None:
        return location
    node: Node | None = root
    path: list[str | int] = []
    for number, step in enumerate(location):
        if isinstance(step, int):
            path.append(step)
            node = node.items if node else None
            continue
        if step == "[key]" and item["type"] != "extra_forbidden":
            # Pydantic's name for the key of a member, which may also be the name of one.
            continue
        if node is not None and node.is_tagged and "[" not in step:
            # The value of the member that selects the alternative. A member may have the same name.
            node = node._replace(is_tagged=False)
            continue
        if node is not None and node.models:
            members = members_of(node.models)
            is_unknown = item["type"] == "extra_forbidden" and number == len(location) - 1
            if is_unknown or step in members.accepted:
                path.append(step)
                node = members.inner.get(step)
            continue
        if node is not None and node.values is not None:
            path.append(step)
            node = node.values
            continue
        # Below free values there are only the steps of the value, and the names of the alternatives of a union.
        if "[" not in step and step not in _TYPE_NAMES:
            path.append(step)
    return tuple(path)


_TYPE_NAMES: Final = frozenset({"str", "int", "float", "bool", "dict", "list", "constrained-str", "is-instance"})


def _node_at(root: Node | None, path: KeyPath) -> Node | None:
    node = root
    for step in path:
        if node is None:
            return None
        if isinstance(step, int):
            node = node.items
        else:
            node = members_of(node.models).inner.get(step) if node.models else node.values
    return node


def _words(items: list[ErrorDetails], root: Node | None, path: KeyPath) -> str:
    """Describe the problems at one path: the alternatives of a union are one expectation."""
    wanted: list[str] = []
    for item in items:
        if item["type"] == "extra_forbidden":
            node = _node_at(root, path[:-1])
            return _unknown(str(path[-1]), node) if node else "unknown"
        if item["type"] == "missing":
            return "required, but missing"
        if item["type"] == "union_tag_invalid":
            context = item.get("ctx", {})
            tags = [tag.strip("' ") for tag in str(context["expected_tags"]).split(",")]
            member = str(context["discriminator"]).strip("'")
            return f"unknown {member} {context['tag']!r}, {hint(context['tag'], tags)}"
        if item["type"] == "union_tag_not_found":
            member = str(item.get("ctx", {})["discriminator"]).strip("'")
            return f"{member} is required, but missing"
        if item["type"] == "value_error":
            return item["msg"].removeprefix("Value error, ")
        expectation = _expectation(item)
        if expectation is None:
            return item["msg"][:1].lower() + item["msg"][1:]
        wanted.append(expectation)
    text = " or ".join(dict.fromkeys(wanted))
    is_type = any(item["type"].endswith(("_type", "_parsing")) for item in items)
    return f"expected {text}, got {kind_of(items[0]['input'])}" if is_type else f"expected {text}"


def _unknown(name: str, node: Node) -> str:
    """Describe an unknown member. ``mistaken`` of a model explains names that people try."""
    for model in node.models:
        mistaken: Mapping[str, str] = getattr(model, "mistaken", {})
        if name in mistaken:
            return f"unknown, {mistaken[name]}"
    return f"unknown, {hint(name, members_of(node.models).shown)}"


_TYPES: Final[Mapping[str, str]] = {
    "string_type": "a string",
    "string_sub_type": "a string",
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "a boolean",
    "bool_parsing": "a boolean",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "list_type": "an array",
    "tuple_type": "an array",
    "none_required": "null",
    "finite_number": "a finite number",
    "callable_type": "a function",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "too_short": "at least {min_length} elements",
    "too_long": "at most {max_length} elements",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "string_pattern_mismatch": "a string that matches {pattern}",
}
"""Expectations by pydantic's types of errors; the placeholders are in the context of the error."""


_PATTERNS: Final[Mapping[str, str]] = {"^https?://[^/]": "an address that begins with http:// or https://"}
"""Expectations by the patterns of strings."""


def _expectation(item: ErrorDetails) -> str | None:
    template = _TYPES.get(item["type"])
    context: dict[str, Any] = item.get("ctx", {})
    if template is None:
        return None
    if item["type"] == "string_pattern_mismatch" and context["pattern"] in _PATTERNS:
        return _PATTERNS[context["pattern"]]
    if item["type"] in ("too_short", "string_too_short") and context.get("min_length") == 1:
        return "a string that is not empty" if item["type"] == "string_too_short" else "an array that is not empty"
    return template.format(**context)


def kind_of(value: Any) -> str:
    """Return the type of a value in the terms of JSON, with an article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "an array"
        case _ if callable(value):
            return "a function"
        case _:
            return type(cast("object", value)).__name__
