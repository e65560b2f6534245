"""Find the lines of keys in TOML and JSON files, for error messages: the parsers do not tell them.

A line is returned only if it is certain. The keys that a scan finds must be exactly those that the parser finds;
otherwise, no key of the file has a line.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct, field

from jumpseat.parsing.toml_text import parse_toml
from jumpseat.system.regular_files import read_whole
from jumpseat_protocol.members import Path as KeyPath
from jumpseat_protocol.members import dotted

LARGEST_BYTES: Final = 1024 * 1024
"""Limit on the size of a file."""

_PART: Final = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_KEY: Final = re.compile(rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART})*+")
_BARE: Final = re.compile(r"[A-Za-z0-9_.-]++")
_BLANK: Final = re.compile(r"(?:[ \t\r\n]++|\#[^\n]*+)*+")
_STRING: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'",
    re.DOTALL,
)
_SCALAR: Final = re.compile(r"[^,\]}\n#\"']++")
_JSON_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


class KeyLines:
    """The lines of the keys of one file, counted from 1."""

    def __init__(self, lines: Mapping[KeyPath, int]) -> None:
        self._lines: dict[str, int | None] = {}
        for path, line in lines.items():
            name = dotted(path)
            # The path of a key with a dot in its name may look like that of another key.
            self._lines[name] = None if name in self._lines else line

    def find(self, place: str) -> int | None:
        """Return the line of a key such as ``adapters.work.models[0]``, else that of the table around it."""
        while place:
            if place in self._lines:
                return self._lines[place]
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        return None


def key_lines_of(file: Path) -> KeyLines:
    """Return the lines of the keys of a file; none if it is not a valid TOML or JSON file."""
    scan = {".toml": toml_key_lines, ".json": json_key_lines}.get(file.suffix)
    if scan is None:
        return KeyLines({})
    try:
        return scan(read_whole(file, LARGEST_BYTES).decode())
    except (OSError, ValueError):
        return KeyLines({})


def toml_key_lines(text: str) -> KeyLines:
    """Return the lines of the keys of a TOML document; none if it is not valid."""
    # The parser replaces these, too; the number of lines stays.
    return _checked(text.replace("\r\n", "\n"), _TomlScan, parse_toml)


def json_key_lines(text: str) -> KeyLines:
    """Return the lines of the keys of a JSON document; none if it is not valid."""
    return _checked(text, _JsonScan, json.loads)


def _checked(text: str, scan: type[_Scan], parse: Callable[[str], Any]) -> KeyLines:
    try:
        found = scan(text).run()
        known = set(_paths(parse(text), ()))
    except (_UnexpectedError, ValueError, RecursionError):
        return KeyLines({})
    if found.keys() != known:
        return KeyLines({})
    ends = [match.start() for match in re.finditer(r"\n", text)]
    return KeyLines({path: bisect_right(ends, position) + 1 for path, position in found.items()})


def _paths(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    """Yield the paths of all keys and elements in a parsed document."""
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        items = list(enumerate(cast("list[Any]", value)))
    for step, inner in items:
        yield (*path, step)
        yield from _paths(inner, (*path, step))


class _UnexpectedError(Exception):
    """The text is not what the scan expects."""


class _Scan(Struct):
    """A scan of a document: the positions of its keys and elements, by their paths."""

    text: str
    at: int = 0
    found: dict[KeyPath, int] = field(default_factory=dict[KeyPath, int])

    def run(self) -> dict[KeyPath, int]:
        """Return the positions of all keys and elements.

        Raises:
            _UnexpectedError, RecursionError: the text cannot be scanned.
        """
        raise NotImplementedError

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise _UnexpectedError
        self.at = match.end()
        return match.group()

    def _skip(self, literal: str) -> bool:
        """Skip blanks, then ``literal``; return whether that was there."""
        self._take(_BLANK)
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def _expect(self, literal: str) -> None:
        if not self._skip(literal):
            raise _UnexpectedError

    def _elements(self, path: KeyPath, read: Callable[[KeyPath], None]) -> None:
        """Read the elements of an array, after its opening bracket."""
        number = 0
        while not self._skip("]"):
            self.found[*path, number] = self.at
            read((*path, number))
            number += 1
            if not self._skip(","):
                self._expect("]")
                return

    def _members(self, read: Callable[[], None]) -> None:
        """Read the members of an object or an inline table, after its opening brace."""
        while not self._skip("}"):
            self._take(_BLANK)
            read()
            if not self._skip(","):
                self._expect("}")
                return


class _TomlScan(_Scan):
    """A scan of a TOML document."""

    def run(self) -> dict[KeyPath, int]:
        sizes: dict[KeyPath, int] = {}
        table: KeyPath = ()
        self._take(_BLANK)
        while self.at < len(self.text):
            start = self.at
            if self._skip("[["):
                table = self._resolve(self._key(), sizes, start, is_array=True)
                self._expect("]]")
            elif self._skip("["):
                table = self._resolve(self._key(), sizes, start)
                self._expect("]")
            else:
                self._pair(table)
            self._take(_BLANK)
        return self.found

    def _key(self) -> KeyPath:
        self._take(_BLANK)
        text = self._take(_KEY)
        if _BARE.fullmatch(text):
            return tuple(text.split("."))
        # The parser knows the escapes of quoted parts.
        value: Any = parse_toml(f"{text} = 0")
        path: list[str] = []
        while isinstance(value, dict):
            ((step, value),) = cast("dict[str, Any]", value).items()
            path.append(step)
        return tuple(path)

    def _resolve(self, key: KeyPath, sizes: dict[KeyPath, int], start: int, *, is_array: bool = False) -> KeyPath:
        """Return the path of the table that a header begins; ``sizes`` are those of the arrays of tables."""
        path: KeyPath = ()
        for number, step in enumerate(key, 1):
            path = (*path, step)
            is_last = number == len(key)
            if is_last and not is_array:
                # A header says more than a table inside, which may come first.
                self.found[path] = start
            else:
                self.found.setdefault(path, start)
            if is_last and is_array:
                sizes[path] = sizes.get(path, 0) + 1
            if path in sizes:
                path = (*path, sizes[path] - 1)
                self.found.setdefault(path, start)
        return path

    def _pair(self, table: KeyPath) -> None:
        start = self.at
        path = table
        for step in self._key():
            path = (*path, step)
            self.found.setdefault(path, start)
        self._expect("=")
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._take(_BLANK)
        if self._skip("["):
            self._elements(path, self._value)
        elif self._skip("{"):
            self._members(lambda: self._pair(path))
        else:
            self._take(_STRING if self.text[self.at : self.at + 1] in ("'", '"') else _SCALAR)


class _JsonScan(_Scan):
    """A scan of a JSON document."""

    def run(self) -> dict[KeyPath, int]:
        self._value(())
        return self.found

    def _value(self, path: KeyPath) -> None:
        self._take(_BLANK)
        if self._skip("["):
            self._elements(path, self._value)
        elif self._skip("{"):
            self._members(lambda: self._member(path))
        else:
            self._take(_JSON_STRING if self.text.startswith('"', self.at) else _SCALAR)

    def _member(self, path: KeyPath) -> None:
        start = self.at
        inner = (*path, str(json.loads(self._take(_JSON_STRING))))
        # Of members with the same name, the last one counts.
        self.found[inner] = start
        self._expect(":")
        self._value(inner)
