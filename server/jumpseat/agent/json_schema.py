"""What of a value does not fit a JSON Schema, told in bounded time.

Schemas come from clients, from projects and from servers of others, and are judged on the event loop: no regular
expression, no reference and no comparison of everything with everything may hold it up. Where the time for that is
over, the rest of it says nothing against the value.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

MAX_PROBLEMS: Final = 10
MAX_PROBLEM_CHARACTERS: Final = 200
MAX_REFERENCES: Final = 20_000
"""How many references are followed for one value: schemas that refer to themselves can ask for any number."""
MAX_COMPARED: Final = 1000
"""How long an array may be whose items are compared with each other, which takes time in its square."""
PATTERNS_S: Final = 0.1
"""How long all regular expressions together may take for one value, in seconds."""

_Errors: TypeAlias = Iterator[Any]


class UnusableSchemaError(ValueError):
    """A schema that nothing can be judged by. The text says why, and holds nothing of the value."""


class NotASchemaError(UnusableSchemaError):
    """What should be a schema is not. ``path`` is the place in it."""

    def __init__(self, path: tuple[str | int, ...], text: str) -> None:
        super().__init__(text)
        self.path = path

    def place(self, root: str) -> str:
        """The place, dotted, below ``root``."""
        return ".".join([root, *map(str, self.path)])


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at one place of a value."""

    path: tuple[str | int, ...]
    text: str

    @property
    def pointer(self) -> str:
        """The place as a JSON pointer; empty for the whole value."""
        return "".join(f"/{part}" for part in self.path)


def check_schema(schema: Any) -> None:
    """Judge a schema itself.

    Raises:
        NotASchemaError: it is not a JSON Schema.
    """
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    judge: Any = validator_for(schema, default=Draft202012Validator)
    try:
        # No format: patterns are JavaScript's, and to Python many of those are none.
        judge.check_schema(schema, format_checker=FormatChecker(()))
    except SchemaError as error:
        raise NotASchemaError(tuple(error.absolute_path), shortened(error.message)) from None
    except RecursionError:
        raise NotASchemaError((), "it is nested too deeply") from None


def problems_of(value: Any, schema: Mapping[str, Any]) -> list[Problem]:
    """What of ``value`` does not fit, the first :data:`MAX_PROBLEMS` of it; empty where nothing is wrong.

    Raises:
        UnusableSchemaError: the schema is none, refers to what it does not hold, or to itself without end.
    """
    # Loaded late: they take a tenth of a second, and most processes never need them.
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    check_schema(schema)
    registry: Registry[Any] = Registry()
    problems: list[Problem] = []
    try:
        # An empty registry: no schema may make the server fetch another one.
        for error in _judge(schema)(schema, registry=registry).iter_errors(value):
            problems.append(Problem(tuple(error.absolute_path), shortened(error.message)))
            if len(problems) == MAX_PROBLEMS:
                break
    except Unresolvable as error:
        raise UnusableSchemaError(f"the schema refers to what it does not hold: {shortened(str(error))}") from None
    except (RecursionError, _TooManyReferencesError):
        raise UnusableSchemaError("the schema refers to itself without end") from None
    return problems


def shortened(text: str) -> str:
    """``text`` as it can stand in a list of problems."""
    return text if len(text) <= MAX_PROBLEM_CHARACTERS else f"{text[:MAX_PROBLEM_CHARACTERS]}..."


class _TooManyReferencesError(Exception):
    pass


def _judge(schema: Mapping[str, Any]) -> Any:
    """The class that judges by ``schema``, for one value."""
    from jsonschema import Draft202012Validator, validators

    judge: Any = validators.validator_for(schema, default=Draft202012Validator)
    words: Mapping[str, Any] = judge.VALIDATORS
    patterns, left = _Patterns(), MAX_REFERENCES

    def counted(follow: Any) -> Any:
        def followed(*given: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise _TooManyReferencesError
            return follow(*given)

        return followed

    def unique_items(validator: Any, wanted: Any, instance: Any, inside: Any) -> _Errors:
        if isinstance(instance, list) and len(cast("list[Any]", instance)) <= MAX_COMPARED:
            yield from words["uniqueItems"](validator, wanted, instance, inside) or ()

    def unevaluated(known: Any) -> Any:
        def told(validator: Any, wanted: Any, instance: Any, inside: Any) -> _Errors:
            # It asks the patterns beside and below it in a way of its own.
            if not _has_patterns(schema):
                yield from known(validator, wanted, instance, inside) or ()

        return told

    own: dict[str, Any] = {
        **{word: counted(words[word]) for word in ("$ref", "$dynamicRef", "$recursiveRef") if word in words},
        **{word: unevaluated(words[word]) for word in ("unevaluatedProperties",) if word in words},
        "pattern": patterns.pattern,
        "patternProperties": patterns.properties,
        "additionalProperties": patterns.additional(words["additionalProperties"]),
        "uniqueItems": unique_items,
    }
    return cast("Any", validators).extend(judge, own)


def _has_patterns(schema: Any) -> bool:
    waiting: list[Any] = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            table = cast("Mapping[str, Any]", one)
            if "patternProperties" in table:
                return True
            waiting += table.values()
        elif isinstance(one, list):
            waiting += cast("list[Any]", one)
    return False


class _Patterns:
    """The words of a schema that are regular expressions. ``re`` cannot be stopped, ``regex`` can."""

    def __init__(self) -> None:
        self._left_s = PATTERNS_S

    def pattern(self, validator: Any, wanted: Any, instance: Any, inside: Any) -> _Errors:
        from jsonschema.exceptions import ValidationError

        if isinstance(instance, str) and self._found(wanted, instance) is False:
            yield ValidationError(f"{instance!r} does not match {wanted!r}")

    def properties(self, validator: Any, wanted: Any, instance: Any, inside: Any) -> _Errors:
        if not isinstance(instance, dict):
            return
        for pattern, inner in cast("Mapping[str, Any]", wanted).items():
            for name, one in cast("dict[str, Any]", instance).items():
                if self._found(pattern, name):
                    yield from validator.descend(one, inner, path=name, schema_path=pattern)

    def additional(self, known: Any) -> Any:
        def told(validator: Any, wanted: Any, instance: Any, inside: Any) -> _Errors:
            patterns: list[str] = list(inside.get("patternProperties", ()))
            if patterns and isinstance(instance, dict):
                # What may be one of theirs is not additional.
                instance = {
                    name: one
                    for name, one in cast("dict[str, Any]", instance).items()
                    if all(self._found(pattern, name) is False for pattern in patterns)
                }
                inside = {name: inner for name, inner in inside.items() if name != "patternProperties"}
            yield from known(validator, wanted, instance, inside) or ()

        return told

    def _found(self, pattern: str, text: str) -> bool | None:
        """Whether ``pattern`` is in ``text``; ``None`` where that cannot be told (in time)."""
        import regex

        if self._left_s <= 0:
            return None
        begun = time.monotonic()
        try:
            return regex.search(pattern, text, timeout=self._left_s) is not None
        except (regex.error, TimeoutError):
            # Those of JSON Schema are JavaScript's, which are not quite the same.
            return None
        finally:
            self._left_s -= time.monotonic() - begun
