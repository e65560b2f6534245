"""XML texts of tables, for the system prompts of tools that show a call as XML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast
from xml.sax.saxutils import escape, quoteattr

_ATTRIBUTES: Final = "_attr"
_CDATA: Final = "<![CDATA["


def to_xml(table: Mapping[str, Any], root: str | None = None) -> str:
    """Write a table as XML, with one element per line.

    ::

        to_xml({"name": "editor", "action": {"_attr": {"type": "add"}, "line": 3}}, "tool")

        <tool>
          <name>editor</name>
          <action type="add">
            <line>3</line>
          </action>
        </tool>

    Args:
        table: values by the names of their elements. A list repeats its element; ``_attr`` are attributes; text
            that begins with ``<![CDATA[`` is written as it is.
        root: the element around the table; without it, each entry of the table is an element at the top.
    """
    entries = {root: table} if root is not None else table
    return "\n".join(line for name, value in entries.items() for line in _element(name, value, ""))


def _element(name: str, value: Any, indentation: str) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            yield from _element(name, item, indentation)
        return
    table = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None
    attributes: Any = {} if table is None else table.get(_ATTRIBUTES) or {}
    start = name + "".join(f" {key}={quoteattr(_text(item))}" for key, item in attributes.items())
    if table is None:
        text = _text(value)
        yield f"{indentation}<{start}>{text}</{name}>" if text else f"{indentation}<{start}/>"
        return
    children = {key: item for key, item in table.items() if key != _ATTRIBUTES}
    if not children:
        yield f"{indentation}<{start}/>"
        return
    yield f"{indentation}<{start}>"
    for key, item in children.items():
        yield from _element(key, item, f"{indentation}  ")
    yield f"{indentation}</{name}>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text if text.startswith(_CDATA) else escape(text)
