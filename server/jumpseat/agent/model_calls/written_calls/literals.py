"""Read values in the notation of Python or JSON, as models write them in calls such as ``view(path="a")``."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

MAX_DEPTH: Final = 32

_SPACE: Final = re.compile(r"\s*+")
_STRING: Final = re.compile(
    r"(?:[rRbBuU]{0,2})(?:'''(?:[^\\']|\\.|'(?!''))*+'''|\"\"\"(?:[^\\\"]|\\.|\"(?!\"\"))*+\"\"\""
    r"|'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\")",
    re.DOTALL,
)
_NUMBER: Final = re.compile(r"-?\d{1,300}(?:\.\d{0,300})?(?:[eE][-+]?\d{1,3})?")
_WORD: Final = re.compile(r"\w++")
_WORDS: Final[dict[str, Any]] = {
    "True": True,
    "true": True,
    "False": False,
    "false": False,
    "None": None,
    "null": None,
}
_ENDS: Final = {"[": "]", "{": "}", "(": ")"}


class CutOffError(ValueError):
    """The text ends within the value."""


def read_literal(text: str, at: int, depth: int = 0) -> tuple[Any, int]:
    """Return the value at ``at`` and the offset of its end.

    Raises:
        ValueError: there is no value; ``CutOffError`` if the text ends in it.
    """
    at = skip_space(text, at)
    if at == len(text):
        raise CutOffError("the text ends")
    if (string := _STRING.match(text, at)) is not None:
        return _string(string[0]), string.end()
    if (number := _NUMBER.match(text, at)) is not None:
        if number.end() == len(text):
            raise CutOffError("the text ends")
        return _number(number[0]), number.end()
    if text[at] in _ENDS and depth < MAX_DEPTH:
        return _collection(text, at, depth)
    if text[at] in "'\"":
        raise CutOffError("a string is never closed")
    word = _WORD.match(text, at)
    if word is not None and word.end() == len(text):
        raise CutOffError("the text ends")
    if word is None or word[0] not in _WORDS:
        raise ValueError("not a value")
    return _WORDS[word[0]], word.end()


def skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _string(source: str) -> str:
    try:
        value: Any = ast.literal_eval(
            source if "\n" not in source or source[-3:] in ("'''", '"""') else _escaped(source)
        )
    except (SyntaxError, MemoryError) as error:
        raise ValueError(str(error)) from None
    if not isinstance(value, str):
        raise ValueError("not a string")
    return value


def _escaped(source: str) -> str:
    """Escape the line breaks that a model has written into a string."""
    return source.replace("\r", "\\r").replace("\\\n", "\\\\\n").replace("\n", "\\n")


def _number(source: str) -> int | float:
    return float(source) if any(mark in source for mark in ".eE") else int(source)


def _collection(text: str, at: int, depth: int) -> tuple[Any, int]:
    opening = text[at]
    items: list[Any] = []
    keys: list[str] = []
    at = skip_space(text, at + 1)
    while not text.startswith(_ENDS[opening], at):
        value, at = read_literal(text, at, depth + 1)
        at = skip_space(text, at)
        if opening == "{":
            if not isinstance(value, str):
                raise ValueError("a key is not a string")
            keys.append(value)
            at = _expect(text, at, ":")
            value, at = read_literal(text, at, depth + 1)
            at = skip_space(text, at)
        items.append(value)
        if not text.startswith(_ENDS[opening], at):
            at = skip_space(text, _expect(text, at, ","))
    return dict(zip(keys, items, strict=True)) if opening == "{" else items, at + 1


def _expect(text: str, at: int, mark: str) -> int:
    if at == len(text):
        raise CutOffError("the text ends")
    if text[at] != mark:
        raise ValueError(f"expected {mark!r}")
    return at + 1
