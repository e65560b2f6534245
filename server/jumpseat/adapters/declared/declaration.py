"""A declared adapter as data: its fields, validation, and merging with the adapter that it extends.

::

    extends = "openai"                        # everything that is not declared here is inherited
    formatted_name = "Work"

    [env]
    base_url = "https://llm.example.com/v1"
    api_key = "cmd:pass show llm"             # all forms: jumpseat.declared.env

    [headers]
    X-Team = "${team}"

    [schema.model]
    default = "large"
    choices = ["large", {id = "small", meta = {context_window = 32000}}]

In Python, a declaration is a mapping ``ADAPTER`` of the same form, in which handlers are functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jumpseat.adapters.adapter import Network, Timeouts
from jumpseat.adapters.declared.functions import TIMEOUT_S
from jumpseat.adapters.declared.handler_names import Handler, read_handlers
from jumpseat.adapters.declared.schema import SchemaEntry, check_defaults
from jumpseat.declared.env import is_scalar, read_entry
from jumpseat.declared.names import placeholders_in
from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import config_error, kind_of
from jumpseat_protocol.members import hint

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
"""The supported curl arguments: meaning, and number of values that follow."""


TIMEOUTS: Final = "timeouts"
"""The key of the time limits in ``opts``."""

BASE_URL: Final = "base_url"
API_KEY: Final = "api_key"
TEXTS: Final = (BASE_URL, API_KEY)
"""Entries of ``env`` that are passed to a wire and must be strings."""

_LIMITS: Final = ("connect", "first_byte", "idle", "total")
_HANDLER: Final = "handler"


class DeclaredSample(BaseModel):
    """An answer in ``samples`` of a declaration: a stream as its lines, or the body of a whole answer."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    stream: str | list[str] | None = None
    body: Any = None
    text: str | None = None
    calls: list[str] | None = None


class Declaration(BaseModel):
    """A declared adapter. Except for ``wire``, the fields are those of CodeCompanion's adapters.

    ``wire`` names the code that writes requests and reads responses where no handler does. A session's ``provider``
    can override the ``env`` entries ``base_url`` and ``api_key``. ``url`` is for wires without a URL, or overrides
    the usual one. ``options`` are those of the wire, as described in its module. ``list_models`` is as in the
    configuration. ``opts.timeouts`` may contain ``connect``, ``first_byte``, ``idle``, ``total`` and ``handler``
    (the limit of each handler) in seconds; 0 means no limit. ``samples`` are answers that ``jumpseat check`` tries
    the handlers on. ``extends`` is resolved before, and is here for hints to its name.
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
    samples: list[DeclaredSample] = Field(default_factory=list[DeclaredSample])
    extends: None = None

    def handler(self, name: str) -> Handler | None:
        """Return the handler with this current name, or ``None``."""
        return self.handlers.get(name)

    @property
    def title(self) -> str:
        """The name shown to users."""
        return self.formatted_name or self.name


def read_declaration(raw: Mapping[str, Any], *, where: str, base: Declaration | None = None) -> Declaration:
    """Validate a declaration, merged into ``base`` if it extends another one.

    Tables are merged key by key; other values replace those of ``base``. ``where`` names the declaration in errors.

    Raises:
        ConfigError: a field is unknown or invalid; the message names it.
    """
    own = {key: value for key, value in raw.items() if key != "extends"}
    own["handlers"] = read_handlers(_table(where, "handlers", raw.get("handlers")), f"{where}.handlers")
    if base is not None:
        # Both sides use current names, so that an older name replaces a handler declared under the current one.
        own = merge(_without_replaced(base.model_dump(by_alias=True, exclude_unset=True), own), own)
    try:
        declaration = Declaration.model_validate(own)
    except ValidationError as error:
        raise config_error(where, error, Declaration) from None
    check_raw(where, declaration.raw)
    for name, raw_entry in declaration.env.items():
        entry = read_entry(f"{where}.env.{name}", raw_entry)
        if name in TEXTS and not (is_scalar(entry.value) or callable(entry.value)):
            raise ConfigError(f"{where}.env.{name}: expected a string, got {kind_of(entry.value)}")
        if name == BASE_URL and isinstance(entry.value, str) and _has_placeholder(entry.value):
            raise ConfigError(f"{where}.env.{name}: placeholders are not replaced here, but in url")
    timeouts_of(where, declaration.opts.get(TIMEOUTS), {})
    check_defaults(where, declaration.settings)
    return declaration


def _has_placeholder(address: str) -> bool:
    return not address.startswith(("cmd:", "file:")) and any(placeholders_in(address))


def _without_replaced(base: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` without the ``env`` entries whose value ``own`` replaces.

    The options of the replaced entry, such as ``literal``, must not apply to the new value.
    """
    below, above = base.get("env"), own.get("env")
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return base
    new = cast("Mapping[str, Any]", above)
    replaced = {name for name, entry in new.items() if not isinstance(entry, Mapping) or "value" in entry}
    entries = cast("Mapping[str, Any]", below).items()
    return {**base, "env": {name: entry for name, entry in entries if name not in replaced}}


def merge(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables recursively and return a new one; values of ``patch`` take precedence."""
    result = dict(base)
    for key, value in patch.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            result[key] = merge(cast("Mapping[str, Any]", below), cast("Mapping[str, Any]", value))
        else:
            result[key] = value
    return result


def check_raw(where: str, raw: list[str]) -> None:
    """Validate the curl arguments of a declaration.

    Raises:
        ConfigError: an argument is not supported, or its value is missing.
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


def handler_timeout_s(where: str, opts: Any) -> float:
    """Return the time limit of a handler in seconds: ``opts.timeouts.handler``, or the usual one.

    Raises:
        ConfigError: the limit is not a number of seconds.
    """
    limit = cast("Mapping[str, Any]", opts).get(_HANDLER) if isinstance(opts, Mapping) else None
    if limit is None:
        return TIMEOUT_S
    return _seconds(f"{where}.opts.timeouts.{_HANDLER}", limit) or math.inf


def network_of(arguments: Mapping[str, str]) -> Network | None:
    """Return the network settings of curl arguments, given by meaning; ``None`` if there are none."""
    proxy = arguments.get("proxy") or None
    found = Network(
        proxy=f"http://{proxy}" if proxy and "://" not in proxy else proxy,
        insecure="insecure" in arguments,
        ca_file=arguments.get("ca_file") or None,
        client_cert=arguments.get("client_cert") or None,
        client_key=arguments.get("client_key") or None,
    )
    return None if found == Network() else found


def timeouts_of(where: str, opts: Any, arguments: Mapping[str, str]) -> Timeouts | None:
    """Return the limits of ``opts.timeouts``, overridden by those of curl arguments; ``None`` if there are none.

    Raises:
        ConfigError: a limit is unknown or not a number of seconds.
    """
    if opts is None:
        opts = {}
    if not isinstance(opts, Mapping):
        raise ConfigError(f"{where}.opts.timeouts: expected a table of {', '.join(_LIMITS)}")
    limits: dict[str, float | None] = {}
    for key, value in cast("Mapping[str, Any]", opts).items():
        if key == _HANDLER:
            _seconds(f"{where}.opts.timeouts.{key}", value)
            continue
        if key not in _LIMITS:
            raise ConfigError(f"{where}.opts.timeouts.{key}: unknown limit, {hint(key, (*_LIMITS, _HANDLER))}")
        limits[key] = _seconds(f"{where}.opts.timeouts.{key}", value)
    for key in ("connect", "total"):
        if key in arguments:
            limits[key] = _seconds(f"{where}.raw: the limit {key!r}", arguments[key])
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
