"""Read the names and arguments of calls leniently, where their meaning is certain.

Incomplete arguments are never completed: a call that is cut off is not run, however little seems to be missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final, cast

import orjson

from jumpseat.agent.blocks import JsonObject

MAX_REPAIRED_CHARS: Final = 1024 * 1024
MAX_NAME_CHARS: Final = 1024

_SPACE: Final = re.compile(r"\s*")
_FENCED: Final = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*\Z", re.DOTALL | re.IGNORECASE)
# A string (the last one may be open), or a trailing comma: commas in strings are left alone.
_TRAILING_COMMA: Final = re.compile(r"(\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z))|,(?=\s*[}\]])", re.DOTALL)

# What models write around the name of a tool: spaces and quotes, a namespace, a number, and tokens of their format.
_NOISE: Final = re.compile(
    r"[\s\"'`]*(?:(?:functions?|tools?|default_api)[.:/])?(.*?)[\s\"'`]*(?::\d+)?(?:\(\))?(?:<\|.*)?\s*",
    re.DOTALL | re.IGNORECASE,
)


def offered_name(name: str, tools: Collection[str]) -> str | None:
    """Return the only one of ``tools`` that a name with noise can mean, or ``None``."""
    bare = bare_name(name).casefold()
    found = [tool for tool in tools if tool.casefold() == bare]
    return found[0] if len(found) == 1 else None


def bare_name(name: str) -> str:
    noisy = _NOISE.fullmatch(name) if len(name) <= MAX_NAME_CHARS else None
    return noisy[1] if noisy is not None else name


def repair_arguments(text: str) -> JsonObject | None:
    """Parse arguments leniently and return the object; ``None`` if the meaning of ``text`` is not certain.

    Accepted are objects in fenced code blocks or encoded as a JSON string, repetitions of the same object, line
    breaks and tabs in strings, and trailing commas.
    """
    if len(text) > MAX_REPAIRED_CHARS:
        return None
    if fenced := _FENCED.match(text):
        text = fenced[1]
    try:
        try:
            value = _lenient(text)
        except ValueError:
            value = _lenient(_TRAILING_COMMA.sub(lambda match: match[1] or "", text))
        if isinstance(value, str):
            value = _lenient(value)
        value = clean(value)
    except (ValueError, RecursionError):
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None


def clean(value: Any) -> Any:
    """Return a JSON value in the form that the wire takes: integers beyond 64 bits become floats.

    Raises:
        ValueError: the value has lone surrogates, or numbers that are not finite.
    """
    return orjson.loads(json.dumps(value, allow_nan=False))


def _lenient(text: str) -> Any:
    """Parse a JSON value or repetitions of the same object.

    Raises:
        ValueError: ``text`` is not JSON, or contains different values.
    """
    text = text.strip()
    value, end = _DECODER.raw_decode(text)
    while isinstance(value, dict) and end < len(text):
        gap = _SPACE.match(text, end)
        other, end = _DECODER.raw_decode(text, gap.end() if gap else end)
        if other != value:
            raise ValueError("different objects")
    if end < len(text):
        raise ValueError("more than one value")
    return cast("Any", value)


def _refuse(name: str) -> Any:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=_refuse)
