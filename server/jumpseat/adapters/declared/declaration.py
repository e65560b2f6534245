"""A declared adapter as data: reading it, and making one out of another.

::

    extends = "openai"                        # everything it does not say itself is as there
    formatted_name = "Work"

    [env]
    base_url = "https://llm.example.com/v1"
    api_key = "cmd:pass show llm"             # all forms: jumpseat.declared.env

    [headers]
    X-Team = "${team}"

    [schema.model]
    default = "large"
    choices = ["large", {id = "small", meta = {context_window = 32000}}]

The same in Python is a mapping ``ADAPTER``, where handlers may be functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jumpseat.adapters.adapter import Network, Timeouts
from jumpseat.adapters.declared.handlers import Handler, read_handlers
from jumpseat.adapters.declared.schema import SchemaEntry
from jumpseat.declared.env import is_scalar, read_entry
from jumpseat.errors import ConfigError, validation_problems

RAW_FLAGS: Final[Mapping[str, tuple[str, int]]] = {
    "--insecure": ("insecure", 0),
    "-k": ("insecure", 0),
    "--proxy": ("proxy", 1),
    "-x": ("proxy", 1),
    "--cacert": ("ca_file", 1),
    "--cert": ("client_cert", 1),
    "-E": ("client_cert", 1),
    "--key": ("client_key", 1),
    "--connect-timeout": ("connect", 1),
    "--max-time": ("total", 1),
    "-m": ("total", 1),
    "--header": ("header", 1),
    "-H": ("header", 1),
    "--http1.1": ("http1", 0),
    "--compressed": ("compressed", 0),
    "--no-buffer": ("no_buffer", 0),
    "-N": ("no_buffer", 0),
    "--silent": ("silent", 0),
    "-s": ("silent", 0),
}
"""Arguments of curl that mean something to us too: what, and how many values follow."""


TIMEOUTS: Final = "timeouts"
"""In ``opts``."""

BASE_URL: Final = "base_url"
API_KEY: Final = "api_key"
TEXTS: Final = (BASE_URL, API_KEY)
"""Entries of ``env`` that go to a wire, which wants texts."""

_LIMITS: Final = ("connect", "first_byte", "idle", "total")


class Declaration(BaseModel):
    """One adapter. Fields as CodeCompanion's adapters have them, but ``wire``.

    ``wire`` names the code that writes requests and reads answers where no handler does; ``env`` entries
    ``base_url`` and ``api_key`` are what a session's ``provider`` can override. ``url`` is for wires that do not
    know it, or elsewhere than it is usual. ``options`` are those of the wire, as its module describes them.
    ``list_models`` is as in the configuration.
    ``opts.timeouts`` may say ``connect``, ``first_byte``, ``idle`` and ``total`` in seconds; 0 means no limit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, populate_by_name=True)

    name: str = Field(min_length=1)
    type: Literal["http", "acp"] = "http"
    formatted_name: str = ""
    vendor: str | None = None
    wire: str | None = None
    roles: dict[str, str] = Field(default_factory=dict)
    features: dict[str, bool] = Field(default_factory=dict)
    url: str | None = None
    env: dict[str, Any] = Field(default_factory=dict[str, Any])
    headers: dict[str, Any] = Field(default_factory=dict[str, Any])
    parameters: dict[str, Any] = Field(default_factory=dict[str, Any])
    body: dict[str, Any] = Field(default_factory=dict[str, Any])
    raw: list[str] = Field(default_factory=list)
    opts: dict[str, Any] = Field(default_factory=dict[str, Any])
    options: dict[str, Any] = Field(default_factory=dict[str, Any])
    settings: dict[str, SchemaEntry] = Field(default_factory=dict[str, SchemaEntry], alias="schema")
    handlers: dict[str, Any] = Field(default_factory=dict[str, Any])
    list_models: bool | None = None
    methods: dict[str, Any] = Field(default_factory=dict[str, Any])
    available_tools: dict[str, Any] = Field(default_factory=dict[str, Any])
    meta: dict[str, Any] = Field(default_factory=dict[str, Any])

    def handler(self, name: str) -> Handler | None:
        """The handler with that name of today, wherever it was declared."""
        return self.handlers.get(name)

    @property
    def title(self) -> str:
        """What people call it."""
        return self.formatted_name or self.name


def read_declaration(raw: Mapping[str, Any], *, where: str, base: Declaration | None = None) -> Declaration:
    """Read a declaration, on top of ``base`` where it extends another.

    Tables are merged key by key, everything else replaces what was there.

    Raises:
        ConfigError: something unknown or of the wrong form; the text says where.
    """
    own = {key: value for key, value in raw.items() if key != "extends"}
    own["handlers"] = read_handlers(_table(where, "handlers", raw.get("handlers")), f"{where}.handlers")
    if base is not None:
        # By name of today on both sides, so that an old name replaces what a new one declared.
        own = merged(_without_replaced(base.model_dump(by_alias=True, exclude_unset=True), own), own)
    try:
        declaration = Declaration.model_validate(own)
    except ValidationError as error:
        raise ConfigError(f"{where}: {'; '.join(validation_problems(error))}") from None
    check_raw(where, declaration.raw)
    for name, raw_entry in declaration.env.items():
        entry = read_entry(f"{where}.env.{name}", raw_entry)
        if name in TEXTS and not (is_scalar(entry.value) or callable(entry.value)):
            raise ConfigError(f"{where}.env.{name}: expected a text, got {type(entry.value).__name__}")
    timeouts_of(where, declaration.opts.get(TIMEOUTS), {})
    return declaration


def _without_replaced(base: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` without the entries of ``env`` for which ``own`` has another value: how the old one was to be taken
    says nothing about the new one."""
    below, above = base.get("env"), own.get("env")
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return base
    new = cast("Mapping[str, Any]", above)
    replaced = {name for name, entry in new.items() if not isinstance(entry, Mapping) or "value" in entry}
    entries = cast("Mapping[str, Any]", below).items()
    return {**base, "env": {name: entry for name, entry in entries if name not in replaced}}


def merged(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Both together; ``patch`` wins, tables are merged all the way down. Neither is changed."""
    result = dict(base)
    for key, value in patch.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            result[key] = merged(cast("Mapping[str, Any]", below), cast("Mapping[str, Any]", value))
        else:
            result[key] = value
    return result


def check_raw(where: str, raw: list[str]) -> None:
    """Name the first argument of curl that has no meaning here.

    Raises:
        ConfigError: there is one, or one lacks its value.
    """
    at = 0
    while at < len(raw):
        known = RAW_FLAGS.get(raw[at])
        if known is None:
            allowed = ", ".join(flag for flag in RAW_FLAGS if flag.startswith("--"))
            raise ConfigError(f"{where}.raw: {raw[at]!r} is not supported; supported: {allowed}")
        if at + known[1] >= len(raw):
            raise ConfigError(f"{where}.raw: {raw[at]!r} needs a value")
        at += 1 + known[1]


def network_of(said: Mapping[str, str]) -> Network | None:
    """What arguments of curl, by their meanings, say about connections; ``None`` where nothing."""
    proxy = said.get("proxy") or None
    found = Network(
        proxy=f"http://{proxy}" if proxy and "://" not in proxy else proxy,
        insecure="insecure" in said,
        ca_file=said.get("ca_file") or None,
        client_cert=said.get("client_cert") or None,
        client_key=said.get("client_key") or None,
    )
    return None if found == Network() else found


def timeouts_of(where: str, opts: Any, said: Mapping[str, str]) -> Timeouts | None:
    """The limits of ``opts.timeouts``, over them those of arguments of curl; ``None`` where there are none.

    Raises:
        ConfigError: one is unknown or no number of seconds.
    """
    if opts is None:
        opts = {}
    if not isinstance(opts, Mapping):
        raise ConfigError(f"{where}.opts.timeouts: expected a table of {', '.join(_LIMITS)}")
    limits: dict[str, float | None] = {}
    for key, value in cast("Mapping[str, Any]", opts).items():
        if key not in _LIMITS:
            raise ConfigError(f"{where}.opts.timeouts: {key!r} is unknown, expected {', '.join(_LIMITS)}")
        limits[key] = _seconds(f"{where}.opts.timeouts.{key}", value)
    for key in ("connect", "total"):
        if key in said:
            limits[key] = _seconds(f"{where}.raw: the limit {key!r}", said[key])
    return Timeouts(**limits) if limits else None


def _seconds(place: str, value: Any) -> float | None:
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ConfigError(f"{place}: expected a number of seconds, got {value!r}")
    return seconds or None


def _table(where: str, key: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}.{key}: expected a table")
    return cast("Mapping[str, Any]", value)
