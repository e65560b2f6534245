"""Compare the messages of a log with those of a run, in which other values stand for those of the log.

What differs between runs is compared by its kind: ids, times, numbers of actions, sizes, folders, versions, the
output of tools. The values that stand for each other are kept: an id must always have the same counterpart, and the
client's later messages are sent with the values of the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from jumpseat_testkit.client_log import JsonObject
from jumpseat_testkit.patterns import Difference, preview

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_NUMBER: Final = re.compile(r"duration|size|fromSeq|serverSeq|lastSeenServerSeq|max\w+|\w*(?:Tokens|Ms|Bytes)")
_OF_THE_MOMENT: Final = frozenset(
    (
        "_meta",
        "customizations",
        "defaultDirectory",
        "etag",
        "lifecycle",
        "models",
        "mtime",
        "nextCursor",
        "serverInfo",
        "turnsNextCursor",
    )
)
"""Members that depend on the machine, the configuration or the moment."""


class Counterparts:
    """The values of a run by those of the log. ``places`` are folders of the log and those in their place."""

    def __init__(self, places: dict[str, str]) -> None:
        self._places = places
        self._ids: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._numbers: dict[int, int] = {}

    def differences(self, logged: Any, got: Any) -> list[Difference]:
        """Return where a message of the run differs from that of the log, and keep the values in their places."""
        return list(self._compare("", "", logged, got))

    def of_run(self, value: Any, key: str = "") -> Any:
        """Return a value of the log with the values of the run in it."""
        match value:
            case str():
                return self._text(value)
            case bool():
                return value
            case int() if key == "lastSeenServerSeq":
                return self._numbers.get(value, value)
            case list():
                return [self.of_run(item, key) for item in cast("list[Any]", value)]
            case dict():
                return {name: self.of_run(item, name) for name, item in cast("JsonObject", value).items()}
            case _:
                return value

    def _text(self, text: str) -> str:
        if text in self._values:
            return self._values[text]
        return _ID.sub(lambda found: self._ids.get(found[0], found[0]), self.in_folders_of_run(text))

    def in_folders_of_run(self, text: str) -> str:
        """Return a text of the log with the folders of the run in it."""
        for place in sorted(self._places, key=len, reverse=True):
            text = text.replace(place, self._places[place])
        return text

    def _compare(self, path: str, key: str, logged: Any, got: Any) -> Iterator[Difference]:
        if key in _OF_THE_MOMENT or (key == "content" and isinstance(logged, list)):
            # A list of contents is the output of a tool.
            if isinstance(logged, str) and isinstance(got, str):
                self._values[logged] = got
        elif _kind_of(logged) != _kind_of(got):
            yield Difference(path, _shown(logged), _shown(got))
        elif isinstance(logged, dict):
            first, second = cast("JsonObject", logged), cast("JsonObject", got)
            for name in dict.fromkeys((*first, *second)):
                inner = f"{path}.{name}" if path else name
                yield from self._compare(inner, name, first.get(name), second.get(name))
        elif isinstance(logged, list):
            yield from self._compare_lists(path, key, cast("list[Any]", logged), cast("list[Any]", got))
        elif not self._matches(key, logged, got):
            yield Difference(path, preview(logged, 400), preview(got, 400))

    def _compare_lists(self, path: str, key: str, logged: list[Any], got: list[Any]) -> Iterator[Difference]:
        if len(logged) != len(got):
            yield Difference(path, f"{len(logged)} elements", f"{len(got)}: {preview(got, 400)}")
            return
        for number, (mine, others) in enumerate(zip(logged, got, strict=True)):
            if key == "workingDirectories" and isinstance(mine, str) and isinstance(others, str):
                self._places.setdefault(mine, others)
                self._places.setdefault(mine.removeprefix("file://"), others.removeprefix("file://"))
            yield from self._compare(f"{path}[{number}]", key, mine, others)

    def _matches(self, key: str, logged: Any, got: Any) -> bool:
        """Compare strings, numbers, booleans or nulls."""
        if not isinstance(logged, str):
            if _NUMBER.fullmatch(key) and isinstance(logged, int):
                self._numbers[logged] = got
                return True
            return logged == got
        if key == "version":
            return True
        # Text that the model has written keeps the folders of the log.
        wanted = logged if logged == got else self.in_folders_of_run(logged)
        ids, others = _ID.findall(wanted), _ID.findall(got)
        return (
            _TIME.sub("", _ID.sub("", wanted)) == _TIME.sub("", _ID.sub("", got))
            and len(ids) == len(others)
            and all(self._pair(mine, other) for mine, other in zip(ids, others, strict=True))
        )

    def _pair(self, logged: str, got: str) -> bool:
        """Return whether an id of the log has this counterpart, which it gets with its first use."""
        return self._ids.setdefault(logged, got) == got and self._taken.setdefault(got, logged) == logged


def _kind_of(value: Any) -> str:
    """Return the kind of a JSON value. Absent members stand for ``null``."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _shown(value: Any) -> str:
    return "nothing" if value is None else preview(value, 400)
