"""Make patterns of recorded values: what changes between runs is matched by its kind, or bound to a name.

Ids are marked while the steps are made. Only when all steps are known is it clear which ids occur again: those get
names, the others are matched as ids, or left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

JsonObject: TypeAlias = dict[str, Any]

LONGEST: Final = 400
"""The characters of a string that is compared; longer ones are matched as strings."""
MOST_ITEMS: Final = 12
"""The elements of an array that are compared; longer ones are matched as arrays."""

_ID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\b[0-9a-f]{24,64}\b")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_PORT: Final = re.compile(r"(?<=://127\.0\.0\.1:)\d+|(?<=://localhost:)\d+|(?<=://\[::1\]:)\d+")
_DURATION: Final = re.compile(r"\b\d+(?:\.\d+)?(?= ?(?:ms|s|seconds)\b)")
_TEMPORARY: Final = re.compile(r"/(?:tmp|var/folders)/[A-Za-z0-9._-]*[A-Za-z0-9_-]")
_NUMBER_KEY: Final = re.compile(
    r"duration|timestamp|pid|port|size|used|.*(?:Tokens|Ms|Bytes|Chars|Length|Seq|Limit)"
)
_VERSION_KEYS: Final = frozenset({"version", "copilotVersion", "protocolVersion"})
_SECRET_KEY: Final = re.compile(r"(?i)token|api[-_]?key|secret|password|authorization|cookie")
_MARK: Final = re.compile("\ue000(\\d+)\ue001")
_ESCAPED_FOLDER: Final = re.escape("${folder}")
_CHANGING: Final = ((_TIME, r"\S+"), (_PORT, r"\d+"), (_DURATION, r"[\d.]+"), (_TEMPORARY, r"/[\w./-]+"))


class Values:
    """The values of one conversation. ``folders`` are the recorded paths by the names of those in their places."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        # The longest first: one may be inside another.
        self._folders = sorted(folders.items(), key=lambda pair: -len(pair[0]))
        self._ids: dict[str, int] = {}
        self._keys: list[str] = []
        self._of_client: set[int] = set()

    def sent(self, value: Any, key: str = "") -> Any:
        """Return what the client has sent, to be sent again: without secrets, with folders and ids marked."""
        if isinstance(value, str):
            if _SECRET_KEY.search(key):
                return "none"
            return self._mark(self._in_folders(value), key, of_client=True)
        return self._in_each(value, key, self.sent)

    def received(self, value: Any, key: str = "") -> Any:
        """Return the pattern of a value that the server has sent."""
        if isinstance(value, str):
            return self._pattern(value, key)
        if isinstance(value, int | float) and not isinstance(value, bool) and _NUMBER_KEY.fullmatch(key):
            return "<number>"
        if isinstance(value, list) and len(cast("list[Any]", value)) > MOST_ITEMS:
            return "<list>"
        return self._in_each(value, key, self.received)

    def _in_each(self, value: Any, key: str, change: Callable[[Any, str], Any]) -> Any:
        if isinstance(value, list):
            return [change(item, key) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {name: change(item, name) for name, item in cast("JsonObject", value).items()}
        return value

    def _pattern(self, text: str, key: str) -> str:
        if _TIME.fullmatch(text):
            return "<time>"
        if key in _VERSION_KEYS or _SECRET_KEY.search(key) or len(text) > LONGEST:
            return "<string>"
        marked = self._mark(self._in_folders(text), key, of_client=False)
        if any(expression.search(marked) for expression, _ in _CHANGING):
            return _as_expression(marked)
        return literal(marked)

    def _in_folders(self, text: str) -> str:
        for path, name in self._folders:
            text = text.replace(path, name)
        return text

    def _mark(self, text: str, key: str, *, of_client: bool) -> str:
        def mark(found: re.Match[str]) -> str:
            number = self._ids.setdefault(found[0], len(self._ids))
            if number == len(self._keys):
                self._keys.append(key)
                if of_client:
                    self._of_client.add(number)
            return f"\ue000{number}\ue001"

        return _ID.sub(mark, text)

    # --- names --------------------------------------------------------------------------------------------------

    def name(self, steps: list[JsonObject]) -> tuple[JsonObject, list[JsonObject]]:
        """Return the ids that the client has chosen, by their names, and the steps with names of ids."""
        counted = Counter(int(number) for number in _MARK.findall(_text_of(steps)))
        names: dict[int, str] = {}
        for number in sorted(counted):
            if counted[number] > 1 or number in self._of_client:
                names[number] = _new_name(self._keys[number], names.values())
        chosen = {names[number]: text for text, number in self._ids.items() if number in self._of_client & {*names}}
        return chosen, [cast("JsonObject", _replace_marks(step, names)) for step in steps]


def literal(text: str) -> str:
    """Return the pattern of a string that is compared as it is."""
    is_special = text.startswith("=") or re.fullmatch(r"<[a-z]+>|/.+/", text, re.DOTALL) or text == "..."
    return f"={text}" if is_special else text


def _as_expression(text: str) -> str:
    """Return an expression for a string in which something changes; ids in it match any."""
    escaped = re.escape(text)
    for expression, kind in _CHANGING:
        for found in {found[0] for found in expression.finditer(text)}:
            escaped = escaped.replace(re.escape(found), kind)
    # A folder of the run is anywhere.
    return f"/^{_readable(escaped).replace(_ESCAPED_FOLDER, '.+')}$/"


def _readable(escaped: str) -> str:
    """Return an escaped string as an expression in which ids match any, without escapes that it does not need."""
    return _MARK.sub(r"[\\w-]+", escaped).replace(r"\ ", " ").replace(r"\-", "-")


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(map(_text_of, cast("list[Any]", value)))
    if isinstance(value, dict):
        return "\n".join(map(_text_of, cast("JsonObject", value).values()))
    return ""


def _new_name(key: str, taken: Any) -> str:
    stem = re.sub(r"(?<=.)Ids?$", "", key) or "id"
    stem = re.sub(r"\W", "_", stem) if re.match(r"[A-Za-z_]", stem) else "id"
    number = 1
    while (name := stem if number == 1 else f"{stem}_{number}") in taken:
        number += 1
    return name


def _replace_marks(value: Any, names: Mapping[int, str]) -> Any:
    if isinstance(value, str):
        whole = _MARK.fullmatch(value)
        if whole is not None and int(whole[1]) not in names:
            return "<string>"
        if any(int(number) not in names for number in _MARK.findall(value)):
            return f"/^{_readable(re.escape(value)).replace(_ESCAPED_FOLDER, '.+')}$/"
        return _MARK.sub(lambda found: f"${{{names[int(found[1])]}}}", value)
    if isinstance(value, list):
        return [_replace_marks(item, names) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _replace_marks(item, names) for name, item in cast("JsonObject", value).items()}
    return value
