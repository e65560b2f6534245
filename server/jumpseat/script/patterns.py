"""What a script expects of a value, as pure functions.

=========================== ============================================================================
pattern                     fits
=========================== ============================================================================
an object                   an object that has these fields, and may have others
``{"$exactly": value}``     the value as it stands, nothing more in it
``{"$one_of": [...]}``      what one of the patterns fits
``{"$has": [...]}``         a list in which each pattern fits an element, in any order
a list                      a list of as many elements, each fitting; ``"..."`` at the end allows more
``"<any>"``                 anything that is there; also ``<string>``, ``<number>``, ``<boolean>``,
                            ``<object>``, ``<list>``, ``<id>`` (a UUID), ``<time>`` (ISO 8601)
``"<absent>"``              a field that is not there, or ``null``
``"/.../"``                 a text in which the regular expression is found
``"${name}"``               anything that is there, the first time, and the same from then on
``"so ${name} so"``         a text with a part that is kept under that name
``"=text"``                 the text behind the equals sign, whatever it looks like
anything else               itself; 1 and ``true`` are two things
=========================== ============================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

from jumpseat.errors import ConfigError

Known: TypeAlias = dict[str, Any]
"""What was kept under a name so far."""

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


class ScriptError(ConfigError):
    """A script cannot be played as it is written."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where a value is not what was expected."""

    path: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.path or 'the whole'}: expected {self.expected}, got {self.got}"


def differences(pattern: Any, value: Any, known: Known) -> list[Difference]:
    """Where ``value`` is not what ``pattern`` says; empty where it fits, and then ``known`` has its captures."""
    captured = dict(known)
    found = list(_compare("", pattern, value, captured))
    if not found:
        known.update(captured)
    return found


def check_pattern(pattern: Any) -> None:
    """Say at once what can never work.

    Raises:
        ScriptError: a regular expression does not compile, or there is no such ``$`` or ``<...>`` pattern.
    """
    if isinstance(pattern, str):
        if _is_regex(pattern):
            _compiled(pattern[1:-1])
        elif re.fullmatch(r"<[a-z]+>", pattern) and pattern not in (*_KINDS, "<absent>"):
            raise ScriptError(
                f"there is no pattern {pattern!r}; a text that looks like this is written '={pattern}'"
            )
    elif isinstance(pattern, list):
        for one in cast("list[Any]", pattern):
            check_pattern(one)
    elif isinstance(pattern, dict):
        fields = cast("dict[str, Any]", pattern)
        special = [name for name in fields if name.startswith("$")]
        if special and (len(fields) > 1 or special[0] not in ("$exactly", "$one_of", "$has")):
            raise ScriptError(f"there is no pattern {special[0]!r}")
        if special and special[0] != "$exactly" and not isinstance(fields[special[0]], list):
            raise ScriptError(f"{special[0]!r} takes a list")
        for name, one in fields.items():
            if name != "$exactly":
                check_pattern(one)


def fill(value: Any, known: Known) -> Any:
    """``value`` with every ``${name}`` replaced; one that is all of a text keeps its type.

    Raises:
        ScriptError: nothing was kept under a name.
    """
    if isinstance(value, str):
        if whole := _NAME.fullmatch(value):
            return _of(whole[1], known)
        return _NAME.sub(lambda found: _as_text(_of(found[1], known)), value)
    if isinstance(value, list):
        return [fill(one, known) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: fill(one, known) for name, one in cast("dict[str, Any]", value).items()}
    return value


def shown(value: Any, limit: int = 200) -> str:
    """``value`` as JSON on one line, cut to size."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _of(name: str, known: Known) -> Any:
    if name not in known:
        raise ScriptError(f"nothing is known as ${{{name}}} here")
    return known[name]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _compare(path: str, pattern: Any, value: Any, known: Known) -> Iterator[Difference]:
    if isinstance(pattern, str):
        yield from _compare_text(path, pattern, value, known)
    elif isinstance(pattern, dict):
        yield from _compare_object(path, cast("dict[str, Any]", pattern), value, known)
    elif isinstance(pattern, list):
        yield from _compare_list(path, cast("list[Any]", pattern), value, known)
    elif not _same(pattern, value):
        yield Difference(path, shown(pattern), shown(value))


def _compare_text(path: str, pattern: str, value: Any, known: Known) -> Iterator[Difference]:
    if pattern == "<absent>":
        if value is not None:
            yield Difference(path, "nothing", shown(value))
    elif pattern in _KINDS:
        if not _KINDS[pattern](value):
            yield Difference(path, pattern, shown(value))
    elif pattern.startswith("="):
        if value != pattern[1:]:
            yield Difference(path, shown(pattern[1:]), shown(value))
    elif _is_regex(pattern):
        if not isinstance(value, str) or not _compiled(pattern[1:-1]).search(value):
            yield Difference(path, f"a text like {pattern}", shown(value))
    elif whole := _NAME.fullmatch(pattern):
        name = whole[1]
        if name not in known and value is not None:
            known[name] = value
        elif name not in known or not _same(known[name], value):
            wanted = f"{shown(known[name])} (${{{name}}})" if name in known else f"something to keep as ${{{name}}}"
            yield Difference(path, wanted, shown(value))
    elif _NAME.search(pattern):
        yield from _compare_parts(path, pattern, value, known)
    elif value != pattern:
        yield Difference(path, shown(pattern), shown(value))


def _compare_parts(path: str, pattern: str, value: Any, known: Known) -> Iterator[Difference]:
    """A text with names in it: what is known must stand there, what is not is kept."""
    new: list[str] = []
    parts: list[str] = []
    end = 0
    for found in _NAME.finditer(pattern):
        parts.append(re.escape(pattern[end : found.start()]))
        end = found.end()
        if found[1] in known:
            parts.append(re.escape(_as_text(known[found[1]])))
        elif found[1] in new:
            parts.append(f"(?P=n{new.index(found[1])})")
        else:
            parts.append(f"(?P<n{len(new)}>.+?)")
            new.append(found[1])
    expression = "".join(parts) + re.escape(pattern[end:])
    fits = re.fullmatch(expression, value, re.DOTALL) if isinstance(value, str) else None
    if fits is None:
        yield Difference(path, shown(pattern), shown(value))
    else:
        known.update({name: fits[f"n{number}"] for number, name in enumerate(new)})


def _compare_object(path: str, pattern: dict[str, Any], value: Any, known: Known) -> Iterator[Difference]:
    if "$exactly" in pattern:
        if not _same(fill(pattern["$exactly"], known), value):
            yield Difference(path, f"exactly {shown(pattern['$exactly'])}", shown(value))
    elif "$one_of" in pattern:
        if not any(_fits(one, value, known) for one in pattern["$one_of"]):
            yield Difference(path, f"one of {shown(pattern['$one_of'])}", shown(value))
    elif "$has" in pattern:
        elements = cast("list[Any]", value) if isinstance(value, list) else None
        if elements is None:
            yield Difference(path, "a list", shown(value))
        for one in pattern["$has"] if elements is not None else ():
            if not any(_fits(one, element, known) for element in elements or ()):
                yield Difference(path, f"an element like {shown(one)}", shown(value))
    elif not isinstance(value, dict):
        yield Difference(path, shown(pattern), shown(value) if value is not None else "nothing")
    else:
        for name, one in pattern.items():
            inner = f"{path}.{name}" if path else name
            there = cast("dict[str, Any]", value)
            for found in _compare(inner, one, there.get(name), known):
                yield found if name in there else replace(found, got="nothing")


def _compare_list(path: str, pattern: list[Any], value: Any, known: Known) -> Iterator[Difference]:
    if not isinstance(value, list):
        yield Difference(path, shown(pattern), shown(value))
        return
    elements = cast("list[Any]", value)
    more = bool(pattern) and pattern[-1] == "..."
    wanted = pattern[:-1] if more else pattern
    if len(elements) < len(wanted) or (len(elements) > len(wanted) and not more):
        count = f"{len(wanted)}{' or more' if more else ''} element{'' if len(wanted) == 1 and not more else 's'}"
        yield Difference(path, count, f"{len(elements)}: {shown(elements)}")
        return
    for number, one in enumerate(wanted):
        yield from _compare(f"{path}[{number}]", one, elements[number], known)


def _fits(pattern: Any, value: Any, known: Known) -> bool:
    return not differences(pattern, value, known)


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON values; ``True`` is not 1, and 1.0 is."""
    return json.dumps(_plain(one), sort_keys=True) == json.dumps(_plain(other), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in cast("dict[str, Any]", value).items()}
    return value


def _is_regex(text: str) -> bool:
    return len(text) > 2 and text.startswith("/") and text.endswith("/")


def _compiled(expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression, re.DOTALL)
    except re.error as error:
        raise ScriptError(f"/{expression}/ is not a regular expression: {error}") from None
