"""Validate values against JSON Schemas of unknown origin, in bounded time.

Schemas come from clients, projects and MCP servers, and are evaluated on the event loop. Regular expressions,
references and comparisons of array items are therefore limited; whatever exceeds a limit on time counts as valid.
docs/libraries.md gives the reasons for not using a compiled validator.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

MAX_PROBLEMS: Final = 10
MAX_PROBLEM_CHARACTERS: Final = 200
MAX_REFERENCES: Final = 20_000
"""The largest number of references and ``unevaluated...`` keywords evaluated for one value.

A schema that refers to itself can ask for any number of them, and so can ``unevaluatedProperties`` in subschemas
of each other, which evaluate their siblings a second time.
"""
MAX_COMPARED: Final = 1000
"""The length up to which arrays are checked for ``uniqueItems``, which takes quadratic time."""
PATTERNS_S: Final = 0.1
"""The time for all regular expressions evaluated for one value, in seconds."""

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_UNEVALUATED: Final = ("unevaluatedProperties", "unevaluatedItems")

_Errors: TypeAlias = Iterator[Any]


class UnusableSchemaError(ValueError):
    """A schema that no value can be validated against. The message gives the reason and contains no values."""


class NotASchemaError(UnusableSchemaError):
    """An invalid JSON Schema. ``path`` is the location of the error in the schema."""

    def __init__(self, path: tuple[str | int, ...], text: str) -> None:
        super().__init__(text)
        self.path = path

    def place(self, root: str) -> str:
        """Return the location as dotted path below ``root``: ``root.properties.name``."""
        return ".".join([root, *map(str, self.path)])


class Problem(Struct, frozen=True):
    """A violation of a schema: its location in the value, and a message."""

    path: tuple[str | int, ...]
    text: str

    @property
    def pointer(self) -> str:
        """The location as a JSON pointer; an empty string is the whole value."""
        return "".join(f"/{part}" for part in self.path)


def check_schema(schema: Any) -> None:
    """Validate a schema against the metaschema that its ``$schema`` names, by default that of draft 2020-12.

    Raises:
        NotASchemaError: the schema is invalid.
    """
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    validator: Any = validator_for(schema, default=Draft202012Validator)
    try:
        # Without formats: "regex" would apply Python's syntax to patterns, which are written in JavaScript's.
        validator.check_schema(schema, format_checker=FormatChecker(()))
    except SchemaError as error:
        raise NotASchemaError(tuple(error.absolute_path), truncate(error.message)) from None
    except RecursionError:
        raise NotASchemaError((), "the schema is nested too deeply") from None


def problems_of(value: Any, schema: Mapping[str, Any]) -> list[Problem]:
    """Validate ``value`` against ``schema`` and return the first :data:`MAX_PROBLEMS` violations.

    Raises:
        UnusableSchemaError: the schema is invalid, a reference in it cannot be resolved, or it refers to itself
            without end.
    """
    # Imported late: jsonschema takes some 30 ms, and most processes never need it.
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    check_schema(schema)
    registry: Registry[Any] = Registry()
    problems: list[Problem] = []
    try:
        # The empty registry keeps references to URLs and files from being fetched.
        for error in _bounded_validator(schema)(schema, registry=registry).iter_errors(value):
            problems.append(Problem(tuple(error.absolute_path), truncate(error.message)))
            if len(problems) == MAX_PROBLEMS:
                break
    except Unresolvable as error:
        raise UnusableSchemaError(f"unresolvable reference in the schema: {truncate(str(error))}") from None
    except (RecursionError, _TooManyReferencesError):
        raise UnusableSchemaError("the schema refers to itself without end") from None
    return problems


def truncate(text: str) -> str:
    """Truncate ``text`` to :data:`MAX_PROBLEM_CHARACTERS` and an ellipsis."""
    return text if len(text) <= MAX_PROBLEM_CHARACTERS else f"{text[:MAX_PROBLEM_CHARACTERS]}..."


class _TooManyReferencesError(Exception):
    pass


def _bounded_validator(schema: Mapping[str, Any]) -> Any:
    """Return the validator class for ``schema``, with all limits in place. Its budgets last for one value."""
    from jsonschema import Draft202012Validator, validators

    base: Any = validators.validator_for(schema, default=Draft202012Validator)
    keywords: Mapping[str, Any] = base.VALIDATORS
    patterns, references_left = _Patterns(), MAX_REFERENCES

    def count_references(evaluate: Any) -> Any:
        def count_and_evaluate(*arguments: Any) -> Any:
            nonlocal references_left
            references_left -= 1
            if references_left < 0:
                raise _TooManyReferencesError
            return evaluate(*arguments)

        return count_and_evaluate

    def unique_items(validator: Any, wanted: Any, instance: Any, subschema: Any) -> _Errors:
        if isinstance(instance, list) and len(cast("list[Any]", instance)) <= MAX_COMPARED:
            yield from keywords["uniqueItems"](validator, wanted, instance, subschema) or ()

    def without_patterns(evaluate: Any) -> Any:
        def evaluate_unless_patterns(validator: Any, wanted: Any, instance: Any, subschema: Any) -> _Errors:
            # jsonschema matches the patterns of sibling keywords on its own here, without a limit on time.
            if not _has_patterns(schema):
                yield from evaluate(validator, wanted, instance, subschema) or ()

        return evaluate_unless_patterns

    bounded: dict[str, Any] = {
        **{
            keyword: count_references(keywords[keyword])
            for keyword in (*_REFERENCES, *_UNEVALUATED)
            if keyword in keywords
        },
        "pattern": patterns.pattern,
        "patternProperties": patterns.properties,
        "additionalProperties": patterns.additional(keywords["additionalProperties"]),
        "uniqueItems": unique_items,
    }
    if "unevaluatedProperties" in keywords:
        bounded["unevaluatedProperties"] = without_patterns(bounded["unevaluatedProperties"])
    return cast("Any", validators).extend(base, bounded)


def _has_patterns(schema: Any) -> bool:
    """Return whether ``patternProperties`` occurs anywhere in ``schema``."""
    remaining: list[Any] = [schema]
    while remaining:
        node = remaining.pop()
        if isinstance(node, Mapping):
            table = cast("Mapping[str, Any]", node)
            if "patternProperties" in table:
                return True
            remaining += table.values()
        elif isinstance(node, list):
            remaining += cast("list[Any]", node)
    return False


class _Patterns:
    """The keywords that hold regular expressions, on top of ``regex``: unlike ``re`` it takes a time-out."""

    def __init__(self) -> None:
        self._left_s = PATTERNS_S

    def pattern(self, validator: Any, wanted: Any, instance: Any, subschema: Any) -> _Errors:
        """Evaluate ``pattern``."""
        from jsonschema.exceptions import ValidationError

        if isinstance(instance, str) and self._matches(wanted, instance) is False:
            yield ValidationError(f"{instance!r} does not match {wanted!r}")

    def properties(self, validator: Any, wanted: Any, instance: Any, subschema: Any) -> _Errors:
        """Evaluate ``patternProperties``."""
        if not isinstance(instance, dict):
            return
        for pattern, property_schema in cast("Mapping[str, Any]", wanted).items():
            for name, property_value in cast("dict[str, Any]", instance).items():
                if self._matches(pattern, name):
                    yield from validator.descend(property_value, property_schema, path=name, schema_path=pattern)

    def additional(self, evaluate: Any) -> Any:
        """Return an ``additionalProperties`` that leaves properties matched by a sibling pattern alone."""

        def additional_properties(validator: Any, wanted: Any, instance: Any, subschema: Any) -> _Errors:
            patterns: list[str] = list(subschema.get("patternProperties", ()))
            if patterns and isinstance(instance, dict):
                # A property is additional only if it certainly matches none of the patterns.
                instance = {
                    name: property_value
                    for name, property_value in cast("dict[str, Any]", instance).items()
                    if all(self._matches(pattern, name) is False for pattern in patterns)
                }
                subschema = {name: inner for name, inner in subschema.items() if name != "patternProperties"}
            yield from evaluate(validator, wanted, instance, subschema) or ()

        return additional_properties

    def _matches(self, pattern: str, text: str) -> bool | None:
        """Search ``text`` for ``pattern``; ``None`` if the pattern cannot be parsed or time has run out."""
        import regex

        if self._left_s <= 0:
            return None
        started = time.monotonic()
        try:
            return regex.search(pattern, text, timeout=self._left_s) is not None
        except (regex.error, TimeoutError):
            # Patterns are written in JavaScript's syntax, which differs from Python's in places.
            return None
        finally:
            self._left_s -= time.monotonic() - started
