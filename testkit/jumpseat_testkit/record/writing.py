"""Write a script as YAML that reads well: short values on one line, long strings as blocks, with comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

JsonObject: TypeAlias = dict[str, Any]

_WIDTH: Final = 100
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./()'+-]+)*")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_./-]*")
_NOT_PLAIN: Final = re.compile(r"(?i)true|false|yes|no|on|off|null|y|n")
_BLOCK: Final = re.compile(r"[\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]+")


def write_script(head: Mapping[str, Any], steps: Iterable[tuple[str, JsonObject]], comment: str) -> str:
    """Return the text of a script file, with a comment at its beginning; steps may have one before them."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    for name, value in head.items():
        lines += _member(name, value, 0)
    lines.append("steps:")
    for remark, step in steps:
        lines += ["", f"  # {remark}"] if remark else []
        first, *rest = [line for name, value in step.items() for line in _member(name, value, 4)]
        lines += [f"  - {first.lstrip()}", *rest]
    return "\n".join(lines) + "\n"


def _member(name: str, value: Any, indent: int) -> list[str]:
    start = " " * indent + (name if _PLAIN_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)) + ":"
    if isinstance(value, str) and "\n" in value and _is_block(value):
        return [f"{start} |-", *(" " * (indent + 2) + line if line else "" for line in value.split("\n"))]
    flow = _flow(value)
    if len(start) + len(flow) < _WIDTH or not isinstance(value, dict | list) or not value:
        return [f"{start} {flow}"]
    if isinstance(value, dict):
        return [start, *_members(cast("JsonObject", value), indent + 2)]
    return [start, *(line for item in cast("list[Any]", value) for line in _item(item, indent + 2))]


def _members(value: JsonObject, indent: int) -> list[str]:
    return [line for name, item in value.items() for line in _member(name, item, indent)]


def _item(value: Any, indent: int) -> list[str]:
    flow = _flow(value)
    if len(flow) + indent + 2 < _WIDTH or not isinstance(value, dict) or not value:
        return [f"{' ' * indent}- {flow}"]
    first, *rest = _members(cast("JsonObject", value), indent + 2)
    return [f"{' ' * indent}- {first.lstrip()}", *rest]


def _is_block(text: str) -> bool:
    """Return whether a literal block has exactly this text."""
    return not text.startswith((" ", "\t", "\n")) and not text.endswith("\n") and _BLOCK.fullmatch(text) is not None


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        members = cast("JsonObject", value).items()
        return "{" + ", ".join(f"{_flow_key(name)}: {_flow(item)}" for name, item in members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, cast("list[Any]", value))) + "]"
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and not _NOT_PLAIN.fullmatch(value) and len(value) <= _WIDTH
        return value if is_plain else _quoted(value)
    return json.dumps(value)


def _flow_key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) and not _NOT_PLAIN.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    # JSON strings are strings of YAML, except for characters that YAML does not allow as they are.
    ascii_only = _BLOCK.fullmatch(text.replace("\n", " ")) is None and text != ""
    return json.dumps(text, ensure_ascii=ascii_only)
