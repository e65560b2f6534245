"""Match JSON values against the patterns of scripts, as pure functions.

=========================== ============================================================================
pattern                     matches
=========================== ============================================================================
an object                   an object with these fields; others are ignored
``{"$exactly": value}``     the value itself, without further fields
``{"$one_of": [...]}``      a value that matches one of the patterns
``{"$has": [...]}``         an array with a matching element for each pattern, in any order
an array                    an array of the same length whose elements match; ``"..."`` at the end allows
                            further elements
``"<any>"``                 any value except ``null``; also ``<string>``, ``<number>``, ``<boolean>``,
                            ``<object>``, ``<list>``, ``<id>`` (a UUID), ``<time>`` (ISO 8601)
``"<absent>"``              a missing field, or ``null``
``"/.../"``                 a string in which the regular expression is found
``"${name}"``               any value except ``null`` at first, which is captured; then the captured value
``"a ${name} b"``           a string, of which the part at the name is captured
``"=text"``                 the string after the equals sign, whatever it looks like
anything else               an equal value; 1 and ``true`` differ
=========================== ============================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

Captures: TypeAlias = dict[str, Any]
"""The values captured so far, by name."""

_NAME: Final = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")

_KINDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "<any>": lambda value: value is not None,
    "<string>": lambda value: isinstance(value, str),
    "<number>": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "<boolean>": lambda value: isinstance(value, bool),
    "<object>": lambda value: isinstance(value, dict),
    "<list>": lambda value: isinstance(value, list),
    "<id>": lambda value: isinstance(value, str) and _UUID.fullmatch(value) is not None,
    "<time>": lambda value: isinstance(value, str) and _TIME.fullmatch(value) is not None,
}


class ScriptError(Exception):
    """A script is invalid or cannot be played."""


class Difference(Struct, frozen=True):
    """A place where a value differs from a pattern. ``path`` is like ``a.b[0]``, empty for the value itself."""

    path: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.path or '(root)'}: expected {self.expected}, got {self.got}"


def differences(pattern: Any, value: Any, captures: Captures) -> list[Difference]:
    """Return where ``value`` differs from ``pattern``; if it matches, add the new captures to ``captures``."""
    captured = dict(captures)
    found = list(_compare("", pattern, value, captured))
    if not found:
        captures.update(captured)
    return found


def check_pattern(pattern: Any) -> None:
    """Validate a pattern before it is used.

    Raises:
        ScriptError: a regular expression does not compile, or a ``$`` or ``<...>`` pattern is unknown.
    """
    if isinstance(pattern, str):
        if _is_regex(pattern):
            _compile(pattern[1:-1])
        elif re.fullmatch(r"<[a-z]+>", pattern) and pattern not in (*_KINDS, "<absent>"):
            raise ScriptError(f"unknown pattern {pattern!r}; to match this string literally, write '={pattern}'")
    elif isinstance(pattern, list):
        for item in cast("list[Any]", pattern):
            check_pattern(item)
    elif isinstance(pattern, dict):
        fields = cast("dict[str, Any]", pattern)
        special = [name for name in fields if name.startswith("$")]
        if special and (len(fields) > 1 or special[0] not in ("$exactly", "$one_of", "$has")):
            raise ScriptError(
                f"unknown pattern {special[0]!r}; expected $exactly, $one_of or $has, alone in its object"
            )
        if special and special[0] != "$exactly" and not isinstance(fields[special[0]], list):
            raise ScriptError(f"{special[0]!r} expects an array")
        for name, value in fields.items():
            if name != "$exactly":
                check_pattern(value)


def fill(value: Any, captures: Captures) -> Any:
    """Replace every ``${name}`` in ``value`` with its capture. A string that is only a name becomes the capture.

    Raises:
        ScriptError: nothing was captured under a name.
    """
    if isinstance(value, str):
        if whole := _NAME.fullmatch(value):
            return _lookup(whole[1], captures)
        return _NAME.sub(lambda found: _as_text(_lookup(found[1], captures)), value)
    if isinstance(value, list):
        return [fill(item, captures) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: fill(item, captures) for name, item in cast("dict[str, Any]", value).items()}
    return value


def preview(value: Any, limit: int = 200) -> str:
    """Return ``value`` as JSON on one line, cut to ``limit`` characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _lookup(name: str, captures: Captures) -> Any:
    if name not in captures:
        raise ScriptError(f"${{{name}}} has no value at this point")
    return captures[name]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _compare(path: str, pattern: Any, value: Any, captures: Captures) -> Iterator[Difference]:
    if isinstance(pattern, str):
        yield from _compare_text(path, pattern, value, captures)
    elif isinstance(pattern, dict):
        yield from _compare_object(path, cast("dict[str, Any]", pattern), value, captures)
    elif isinstance(pattern, list):
        yield from _compare_list(path, cast("list[Any]", pattern), value, captures)
    elif not _same(pattern, value):
        yield Difference(path, preview(pattern), preview(value))


def _compare_text(path: str, pattern: str, value: Any, captures: Captures) -> Iterator[Difference]:
    if pattern == "<absent>":
        if value is not None:
            yield Difference(path, "no value", preview(value))
    elif pattern in _KINDS:
        if not _KINDS[pattern](value):
            yield Difference(path, pattern, preview(value))
    elif pattern.startswith("="):
        if value != pattern[1:]:
            yield Difference(path, preview(pattern[1:]), preview(value))
    elif _is_regex(pattern):
        if not isinstance(value, str) or not _compile(pattern[1:-1]).search(value):
            yield Difference(path, f"a string matching {pattern}", preview(value))
    elif whole := _NAME.fullmatch(pattern):
        name = whole[1]
        if name not in captures and value is not None:
            captures[name] = value
        elif name not in captures or not _same(captures[name], value):
            wanted = f"{preview(captures[name])} (${{{name}}})" if name in captures else f"a value for ${{{name}}}"
            yield Difference(path, wanted, preview(value))
    elif _NAME.search(pattern):
        yield from _compare_parts(path, pattern, value, captures)
    elif value != pattern:
        yield Difference(path, preview(pattern), preview(value))


def _compare_parts(path: str, pattern: str, value: Any, captures: Captures) -> Iterator[Difference]:
    """Compare a string with names inside: captured names must match, the others are captured."""
    new: list[str] = []
    parts: list[str] = []
    end = 0
    for found in _NAME.finditer(pattern):
        parts.append(re.escape(pattern[end : found.start()]))
        end = found.end()
        if found[1] in captures:
            parts.append(re.escape(_as_text(captures[found[1]])))
        elif found[1] in new:
            parts.append(f"(?P=n{new.index(found[1])})")
        else:
            parts.append(f"(?P<n{len(new)}>.+?)")
            new.append(found[1])
    expression = "".join(parts) + re.escape(pattern[end:])
    fits = re.fullmatch(expression, value, re.DOTALL) if isinstance(value, str) else None
    if fits is None:
        yield Difference(path, preview(pattern), preview(value))
    else:
        captures.update({name: fits[f"n{number}"] for number, name in enumerate(new)})


def _compare_object(path: str, pattern: dict[str, Any], value: Any, captures: Captures) -> Iterator[Difference]:
    if "$exactly" in pattern:
        if not _same(fill(pattern["$exactly"], captures), value):
            yield Difference(path, f"exactly {preview(pattern['$exactly'])}", preview(value))
    elif "$one_of" in pattern:
        if not any(_fits(item, value, captures) for item in pattern["$one_of"]):
            yield Difference(path, f"one of {preview(pattern['$one_of'])}", preview(value))
    elif "$has" in pattern:
        elements = cast("list[Any]", value) if isinstance(value, list) else None
        if elements is None:
            yield Difference(path, "an array", preview(value))
        for item in pattern["$has"] if elements is not None else ():
            if not any(_fits(item, element, captures) for element in elements or ()):
                yield Difference(path, f"an element matching {preview(item)}", preview(value))
    elif not isinstance(value, dict):
        yield Difference(path, preview(pattern), preview(value) if value is not None else "nothing")
    else:
        for name, item in pattern.items():
            inner = f"{path}.{name}" if path else name
            there = cast("dict[str, Any]", value)
            for found in _compare(inner, item, there.get(name), captures):
                yield found if name in there else replace(found, got="nothing")


def _compare_list(path: str, pattern: list[Any], value: Any, captures: Captures) -> Iterator[Difference]:
    if not isinstance(value, list):
        yield Difference(path, preview(pattern), preview(value))
        return
    elements = cast("list[Any]", value)
    more = bool(pattern) and pattern[-1] == "..."
    wanted = pattern[:-1] if more else pattern
    if len(elements) < len(wanted) or (len(elements) > len(wanted) and not more):
        count = f"{len(wanted)}{' or more' if more else ''} element{'' if len(wanted) == 1 and not more else 's'}"
        yield Difference(path, count, f"{len(elements)}: {preview(elements)}")
        return
    for number, item in enumerate(wanted):
        yield from _compare(f"{path}[{number}]", item, elements[number], captures)


def _fits(pattern: Any, value: Any, captures: Captures) -> bool:
    return not differences(pattern, value, captures)


def _same(one: Any, other: Any) -> bool:
    """Compare JSON values: ``True`` differs from 1, and 1.0 does not."""
    return json.dumps(_plain(one), sort_keys=True) == json.dumps(_plain(other), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in cast("dict[str, Any]", value).items()}
    return value


def _is_regex(text: str) -> bool:
    return len(text) > 2 and text.startswith("/") and text.endswith("/")


def _compile(expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression, re.DOTALL)
    except re.error as error:
        raise ScriptError(f"invalid regular expression /{expression}/: {error}") from None
