"""Parse TOML in time that is linear in its length.

The parser of the standard library takes quadratic time and memory for keys with many parts: ``a.a.a...`` in 64 KiB
takes half a minute. Such text is refused before it is parsed.
"""

from __future__ import annotations

import re
from typing import Any, Final

MAX_KEY_PARTS: Final = 32
"""Limit of the parts of a dotted key."""

# Every alternative consumes text, and none is tried twice at the same place: scanning is linear.
_TOKEN: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|\#[^\n]*+"
    r"|[^\"'\#]++",
    re.DOTALL,
)
_PLACE: Final = re.compile(r" \(at line (?P<line>\d+), column (?P<column>\d+)\)\Z")
_END_OF_KEY: Final = re.compile(r"[\n=,{}\[\]]")


class TomlError(ValueError):
    """A text is not valid TOML. ``line`` and ``column`` count from 1; they are ``None`` at the end of the text."""

    def __init__(self, problem: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(problem if line is None else f"line {line}, column {column}: {problem}")
        self.problem = problem
        self.line = line
        self.column = column

    def in_file(self, file: object) -> str:
        """Return the problem as ``FILE:LINE:COLUMN: not valid TOML: problem``."""
        place = f"{file}" if self.line is None else f"{file}:{self.line}:{self.column}"
        return f"{place}: not valid TOML: {self.problem}"


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        TomlError: the text is not valid TOML, or is nested too deeply.
    """
    # Imported here, because many sessions read no TOML.
    import tomllib

    if _has_long_key(text):
        raise TomlError(f"expected keys of at most {MAX_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TomlError("nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise _described(str(error)) from None


def _described(text: str) -> TomlError:
    """Return the error for a message of the parser, which ends with the place of the problem."""
    place = _PLACE.search(text)
    problem = text if place is None else text[: place.start()]
    problem = problem[:1].lower() + problem[1:]
    if place is None:
        return TomlError(problem)
    if problem == "invalid value":
        problem += ", strings need quotes, and booleans are true and false"
    return TomlError(problem, int(place["line"]), int(place["column"]))


def _has_long_key(text: str) -> bool:
    # Keys end with their lines.
    if not any(line.count(".") >= MAX_KEY_PARTS for line in text.split("\n")):
        return False
    dots = position = 0
    while (token := _TOKEN.match(text, position)) is not None:
        position = token.end()
        if text[token.start()] in "\"'#":
            continue
        first, *others = _END_OF_KEY.split(token.group())
        dots += first.count(".")
        if dots >= MAX_KEY_PARTS or any(other.count(".") >= MAX_KEY_PARTS for other in others):
            return True
        if others:
            dots = others[-1].count(".")
    # The parser stops at an unterminated string, too.
    return False
