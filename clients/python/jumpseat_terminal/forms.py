"""Forms of MCP servers and clients at the terminal, field by field.

Nothing is sent before the user has seen all answers and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from jumpseat_protocol.events import ElicitationRequested
from jumpseat_protocol.safe import one_line
from jumpseat_terminal.asking import Asking
from jumpseat_terminal.dialogue import Option
from jumpseat_terminal.feed import Feed


async def ask_form(asking: Asking, feed: Feed, request: ElicitationRequested) -> dict[str, Any]:
    """Ask a form field by field, and return ``{action, content?}``."""
    # The source comes first: a message of many lines cannot imitate another source.
    if request.elicitation_source:
        feed.note(f"{one_line(request.elicitation_source)} asks:")
    feed.note(request.message, "bold")
    options = [Option("answer", "accept", "y"), Option("decline", "decline", "n")]
    action = await asking.choose("Fill in this form?", options) or "cancel"
    if action != "accept":
        return {"action": action}
    schema = request.requested_schema or {}
    while True:
        content: dict[str, Any] = {}
        required = as_list(schema.get("required"))
        for name, field in as_object(schema.get("properties")).items():
            value = await _ask_field(asking, name, as_object(field), required=name in required)
            if value is None:
                return {"action": "cancel"}
            if value != "":
                content[name] = value
                feed.note(f"{name}: {value}")
        options = [
            Option("send", "accept", "y"),
            Option("start over", "again", "a"),
            Option("decline", "decline", "n"),
        ]
        action = await asking.choose("Send these answers?", options) or "cancel"
        if action == "accept":
            return {"action": "accept", "content": content}
        if action != "again":
            return {"action": action}


async def _ask_field(asking: Asking, name: str, field: Mapping[str, Any], *, required: bool) -> Any:
    """Ask for a valid value: empty if the user leaves an optional field out, ``None`` to cancel the form."""
    title = one_line(str(field.get("title") or name))
    if about := field.get("description"):
        title += f": {one_line(str(about))}"
    kind = field.get("type")
    if kind == "boolean":
        return await asking.choose(title, [Option("yes", True, "y"), Option("no", False, "n")])
    if values := as_list(field.get("enum")):
        names = as_list(field.get("enumNames")) or values
        options = [
            Option(one_line(str(label)), value, digit_key(number))
            for number, (label, value) in enumerate(zip(names, values, strict=False))
        ]
        return await asking.choose(title, [*options, *([] if required else [Option("none", "")])])

    def check(text: str) -> str | None:
        if not text.strip():
            return "an answer is required" if required else None
        if kind not in ("integer", "number") or _parse_number(text, kind) is not None:
            return None
        return f"expected {'an integer' if kind == 'integer' else 'a number'}"

    default = field.get("default")
    text = await asking.read_line(title, "" if default is None else str(default), check)
    return _parse_number(text, kind) if text and kind in ("integer", "number") else text


def as_object(value: Any) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return ``value`` if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def digit_key(number: int) -> str:
    """Return the key of the option at the position ``number``, from zero; empty from the tenth on."""
    return str(number + 1) if number < 9 else ""


def _parse_number(text: str, kind: Any) -> int | float | None:
    try:
        return int(text) if kind == "integer" else float(text)
    except ValueError:
        return None
