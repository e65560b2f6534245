"""What differs between a recorded conversation and the one that was played: message by message, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, Final, TypeAlias, cast

from jumpseat.adapters.wire import as_object
from jumpseat.script.patterns import Difference, shown

Line: TypeAlias = tuple[str, Any]
"""``->``, ``<-`` or ``--``, and what goes with it."""

_ID: Final = re.compile(r"<id-\d+>")
_NOTHING: Final = object()


def difference(recorded: list[Line], played: list[Line]) -> str:
    """What differs, as lines for people; nothing where nothing does.

    Messages of the same kind are compared; ``-`` stands before what did not come, ``+`` before what came instead.
    That ids have other numbers is no difference, as long as the same ones stand in the same places.
    """
    if recorded == played:
        return ""
    same = _SameIds()
    found: list[str] = []
    matcher = SequenceMatcher(None, [_kind_of(one) for one in recorded], [_kind_of(one) for one in played], False)
    for verb, start, end, played_start, played_end in matcher.get_opcodes():
        if verb == "equal":
            for number, one, other in zip(
                range(start + 1, end + 1), recorded[start:end], played[played_start:played_end], strict=True
            ):
                fields = list(_fields("", one[1], other[1], same))
                if fields:
                    found += [f"line {number}, {name_of(one)}:", *(f"  {field}" for field in fields)]
        else:
            found += [f"- {name_of(one)} {shown(one[1], 1000)}" for one in recorded[start:end]]
            found += [f"+ {name_of(one)} {shown(one[1], 1000)}" for one in played[played_start:played_end]]
    return "\n".join(found) or "the same messages, whose ids were named in another order"


def kind(message: Any) -> tuple[str, Any]:
    """What a message is, whatever it says."""
    said = as_object(message)
    if "method" not in said:
        return ("answer to", said.get("id"))
    if said["method"] == "session.event":
        return ("event", as_object(as_object(said.get("params")).get("event")).get("type"))
    return ("call of", said["method"])


def name_of(line: Line) -> str:
    """A line in words."""
    if line[0] == "--":
        return str(line[1])
    what, of = kind(line[1])
    return f"{line[0]} {what} {of}"


def _kind_of(line: Line) -> tuple[str, str, str]:
    what, of = ("--", line[1]) if line[0] == "--" else kind(line[1])
    return (line[0], what, repr(of))


class _SameIds:
    """Which id of the one conversation is which of the other."""

    def __init__(self) -> None:
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def fit(self, one: str, other: str) -> bool:
        """Whether two texts are the same but for the numbers of ids, which go together from here on."""
        ids, others = _ID.findall(one), _ID.findall(other)
        if _ID.sub("", one) != _ID.sub("", other) or len(ids) != len(others):
            return False
        return all(
            self._there.setdefault(name, name2) == name2 and self._back.setdefault(name2, name) == name
            for name, name2 in zip(ids, others, strict=True)
        )


def _fields(path: str, one: Any, other: Any, same: _SameIds) -> Iterator[Difference]:
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        for name in {**first, **second}:
            inner = f"{path}.{name}" if path else name
            yield from _fields(inner, first.get(name, _NOTHING), second.get(name, _NOTHING), same)
    elif (
        isinstance(one, list)
        and isinstance(other, list)
        and len(cast("list[Any]", one)) == len(cast("list[Any]", other))
    ):
        for number, (element, its) in enumerate(zip(cast("list[Any]", one), cast("list[Any]", other), strict=True)):
            yield from _fields(f"{path}[{number}]", element, its, same)
    elif isinstance(one, str) and isinstance(other, str):
        if not same.fit(one, other):
            yield Difference(path, shown(one, 400), shown(other, 400))
    elif not _alike(one, other):
        yield Difference(path, _told(one), _told(other))


def _alike(one: Any, other: Any) -> bool:
    """Equal, and of one type: 1 is not ``true``."""
    return type(one) is type(other) and one == other


def _told(value: Any) -> str:
    return "nothing" if value is _NOTHING else shown(value, 400)
