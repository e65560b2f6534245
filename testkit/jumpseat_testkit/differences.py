"""Compare a recorded conversation with the one that was played, message by message and field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, Final, TypeAlias, cast

from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.patterns import Difference, preview

Line: TypeAlias = tuple[str, Any]
"""``->`` or ``<-`` with a message, or ``--`` with ``"kill"``."""

_ID: Final = re.compile(r"<id-\d+>")
_MISSING: Final = object()


def describe_differences(recorded: list[Line], played: list[Line]) -> str:
    """Return the differences as lines for people, or an empty string.

    Messages of the same kind are compared by their fields; ``-`` marks a missing message, ``+`` an unexpected one.
    The numbers of ids may differ, as long as equal ids stand in the same places.
    """
    if recorded == played:
        return ""
    ids = _IdMapping()
    found: list[str] = []
    matcher = SequenceMatcher(
        None, [_comparison_key(line) for line in recorded], [_comparison_key(line) for line in played], False
    )
    for verb, start, end, played_start, played_end in matcher.get_opcodes():
        if verb == "equal":
            for number, line, other in zip(
                range(start + 1, end + 1), recorded[start:end], played[played_start:played_end], strict=True
            ):
                fields = list(_fields("", line[1], other[1], ids))
                if fields:
                    found += [f"line {number}, {describe(line)}:", *(f"  {field}" for field in fields)]
        else:
            found += [f"- {describe(line)} {preview(line[1], 1000)}" for line in recorded[start:end]]
            found += [f"+ {describe(line)} {preview(line[1], 1000)}" for line in played[played_start:played_end]]
    return "\n".join(found) or "the messages are equal, but their ids are numbered in another order"


def message_kind(message: Any) -> tuple[str, Any]:
    """Return the kind of a message and its response id, type of event or action, or method."""
    fields = as_object(message)
    if "method" not in fields:
        return ("response to", fields.get("id"))
    if fields["method"] == "session.event":
        return ("event", as_object(as_object(fields.get("params")).get("event")).get("type"))
    if fields["method"] == "action":
        return ("action", as_object(as_object(fields.get("params")).get("action")).get("type"))
    return ("method", fields["method"])


def describe(line: Line) -> str:
    """Describe a line in a few words."""
    if line[0] == "--":
        return str(line[1])
    what, of = message_kind(line[1])
    return f"{line[0]} {what} {of}"


def _comparison_key(line: Line) -> tuple[str, str, str]:
    what, of = ("--", line[1]) if line[0] == "--" else message_kind(line[1])
    return (line[0], what, repr(of))


class _IdMapping:
    """The ids of one conversation mapped to those of the other, one to one."""

    def __init__(self) -> None:
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def match(self, one: str, other: str) -> bool:
        """Return whether two strings are equal apart from the numbers of ids, and map the ids to each other."""
        ids, others = _ID.findall(one), _ID.findall(other)
        if _ID.sub("", one) != _ID.sub("", other) or len(ids) != len(others):
            return False
        return all(
            self._there.setdefault(name, name2) == name2 and self._back.setdefault(name2, name) == name
            for name, name2 in zip(ids, others, strict=True)
        )


def _fields(path: str, one: Any, other: Any, ids: _IdMapping) -> Iterator[Difference]:
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        for name in {**first, **second}:
            inner = f"{path}.{name}" if path else name
            yield from _fields(inner, first.get(name, _MISSING), second.get(name, _MISSING), ids)
    elif (
        isinstance(one, list)
        and isinstance(other, list)
        and len(cast("list[Any]", one)) == len(cast("list[Any]", other))
    ):
        for number, (element, its) in enumerate(zip(cast("list[Any]", one), cast("list[Any]", other), strict=True)):
            yield from _fields(f"{path}[{number}]", element, its, ids)
    elif isinstance(one, str) and isinstance(other, str):
        if not ids.match(one, other):
            yield Difference(path, preview(one, 400), preview(other, 400))
    elif not _equal(one, other):
        yield Difference(path, _preview(one), _preview(other))


def _equal(one: Any, other: Any) -> bool:
    """Compare values and their types: 1 differs from ``true``."""
    return type(one) is type(other) and one == other


def _preview(value: Any) -> str:
    return "nothing" if value is _MISSING else preview(value, 400)
