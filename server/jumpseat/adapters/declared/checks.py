"""Find mistakes in the declaration of an adapter that its types alone do not show."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, cast

from jumpseat.adapters.declared.declaration import Declaration
from jumpseat.adapters.declared.schema import MODEL, WIRE_MODEL, Choice, SchemaEntry, choices_of
from jumpseat.declared.env import read_entry
from jumpseat.declared.names import meant_placeholder, placeholders_in, unknown_option
from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import kind_of
from jumpseat_protocol.members import hint, misspelt

FLAGS: Final = ("stream", "tools", "can_use_tools", "vision", "has_vision", "can_reason")
"""The options that are booleans."""

OPTIONS: Final = (*FLAGS, "method", "request", "timeouts", "tool_protocol")
"""The options of an adapter that the server reads; handlers may read others."""

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")

_META: Final = ("context_window", "max_prompt_tokens", "max_tokens", "max_output_tokens", "price", WIRE_MODEL)
_PRICE: Final = ("input", "output", "cache_read", "cache_write")
_ROLES: Final = ("system", "user", "llm", "assistant", "tool")
_FEATURES: Final = ("text", "tokens")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def check_fields(where: str, declaration: Declaration, *, has_functions: bool) -> None:
    """Check the options, models, settings, roles and headers of a declaration.

    ``has_functions`` tells whether functions could read options of the author's own.

    Raises:
        ConfigError: a name is misspelled, or a value cannot be used.
    """
    paths = (_path(raw).split(".") for raw in declaration.env.values())
    read = [path[1] for path in paths if path[0] == "opts" and len(path) > 1]
    _check_options(f"{where}.opts", declaration.opts, (*OPTIONS, *read), has_functions=has_functions)
    _check_names(f"{where}.roles", declaration.roles, _ROLES)
    _check_names(f"{where}.features", declaration.features, _FEATURES)
    _check_names(f"{where}.meta", declaration.meta, _META)
    for name, value in declaration.headers.items():
        if not _HEADER.fullmatch(name):
            raise ConfigError(f"{where}.headers: {name!r} cannot be the name of a header")
        if isinstance(value, str) and any(character in value for character in "\r\n\0"):
            raise ConfigError(f"{where}.headers.{name}: expected one line")
    for key, entry in declaration.settings.items():
        _check_choices(where, key, entry)


def check_references(owner: str, declaration: Declaration, given: Collection[str]) -> None:
    """Check that each placeholder is an entry of ``env``, and each path in ``env`` a setting.

    Adapters that others extend may leave these to them. ``owner`` names the adapter in errors; ``given`` are the
    entries that sessions may bring.

    Raises:
        ConfigError: a name does not exist.
    """
    if any(declaration.handler(name) is not None for name in ("setup", "resolve")):
        # These functions may change env.
        return
    for name, raw in declaration.env.items():
        _check_path(f"{owner}: env.{name}", raw, declaration.settings)
    used: set[str] = set()
    names = {*declaration.env, *given}
    for place, text in _templates(declaration):
        for name in placeholders_in(text):
            used.add(name)
            if name not in names:
                meant = meant_placeholder(name, names)
                raise ConfigError(f"{owner}: {place}: ${{{name}}} has no value: it is not declared in env{meant}")
    if not declaration.handlers:
        for name in declaration.env:
            if name not in used and (meant := misspelt(name, given)) is not None:
                raise ConfigError(f"{owner}: env.{name}: nothing refers to it, did you mean {meant!r}?")


def _check_options(where: str, opts: Mapping[str, Any], known: Collection[str], *, has_functions: bool) -> None:
    problem = unknown_option(opts, known, has_functions=has_functions)
    if problem is not None:
        raise ConfigError(f"{where}.{problem}")
    for name in FLAGS:
        if (value := opts.get(name)) is not None and not isinstance(value, bool):
            raise ConfigError(f"{where}.{name}: expected a boolean, got {kind_of(value)}")
    if (method := opts.get("method")) is not None and method not in METHODS:
        raise ConfigError(f"{where}.method: expected {', '.join(METHODS[:-1])} or {METHODS[-1]}")
    request: Any = opts.get("request")
    if request is not None and not isinstance(request, Callable):
        raise ConfigError(f"{where}.request: expected a function, got {kind_of(request)}")


def _check_names(where: str, table: Mapping[str, Any], known: Collection[str]) -> None:
    """Check a table in which handlers may read names of the author's own."""
    for name in table:
        if (meant := misspelt(name, known)) is not None:
            raise ConfigError(f"{where}.{name}: unknown, did you mean {meant!r}?")


def _check_choices(where: str, key: str, entry: SchemaEntry) -> None:
    if entry.minimum is not None and entry.maximum is not None and entry.minimum > entry.maximum:
        raise ConfigError(f"{where}.schema.{key}: its minimum is greater than its maximum")
    if entry.choices is None or isinstance(entry.choices, Callable):
        return
    choices = choices_of(f"{where}.schema.{key}", entry, None)
    if key == MODEL:
        for choice in choices:
            _check_model(f"{where}.schema.{key}.choices.{choice.id}", choice)
    elif entry.type == "enum" and isinstance(default := entry.default, str):
        ids = [choice.id for choice in choices]
        if ids and default not in ids:
            raise ConfigError(f"{where}.schema.{key}.default: expected one of {', '.join(ids)}")


def _check_model(where: str, choice: Choice) -> None:
    _check_options(f"{where}.opts", choice.opts, OPTIONS, has_functions=True)
    _check_names(f"{where}.meta", choice.meta, _META)
    price: Any = choice.meta.get("price")
    for name in cast("Mapping[str, Any]", price) if isinstance(price, Mapping) else ():
        if name not in _PRICE:
            raise ConfigError(f"{where}.meta.price.{name}: unknown, {hint(name, _PRICE)}")


def _check_path(where: str, raw: Any, settings: Mapping[str, SchemaEntry]) -> None:
    first, _, rest = _path(raw).partition(".")
    name = rest.partition(".")[0]
    if first == "schema" and name and not any(key.partition(".")[0] == name for key in settings):
        meant = hint(name, {*settings, MODEL} - {name})
        raise ConfigError(f"{where}: the adapter has no setting {name!r}, {meant}")


def _path(raw: Any) -> str:
    """Return an entry of ``env`` that may be a dotted path, else an empty string."""
    entry = read_entry("env", raw)
    return entry.value if isinstance(entry.value, str) and not (entry.literal or entry.variable) else ""


def _templates(declaration: Declaration) -> Iterator[tuple[str, str]]:
    """Yield the strings in which placeholders are replaced, with their places."""
    if declaration.url is not None:
        yield "url", declaration.url
    tables: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("headers", declaration.headers),
        ("parameters", declaration.parameters),
    )
    for place, table in tables:
        for name, value in table.items():
            if isinstance(value, str):
                yield f"{place}.{name}", value
            elif isinstance(value, Mapping):
                inner = cast("Mapping[str, Any]", value).items()
                yield from ((f"{place}.{name}.{key}", text) for key, text in inner if isinstance(text, str))
    yield from ((f"raw[{number}]", text) for number, text in enumerate(declaration.raw))
