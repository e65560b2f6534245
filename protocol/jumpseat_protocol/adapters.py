"""``jumpseat.adapters.*``, which is not part of the Copilot SDK protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import PathText
from jumpseat_protocol.wire import Method, WireModel


class AdapterSummary(WireModel):
    """``origin`` is where the adapter is declared, ``problem`` the reason why it cannot be called."""

    name: str
    """The name of the adapter."""
    title: str
    origin: str
    """Where it is declared."""
    problem: str | None = None
    """Why it cannot be called."""


class AdaptersListParams(WireModel):
    """With ``cwd``, the adapters that sessions in that folder have, including those of its project."""

    cwd: PathText | None = Field(default=None, min_length=1)


class AdaptersListResult(WireModel):
    """All adapters, sorted by name."""

    adapters: list[AdapterSummary]
    """The adapters, sorted by name."""


class AdapterGetParams(WireModel):
    """``model`` is the model whose settings are returned, by default the adapter's default model.

    ``cwd`` is as in ``jumpseat.adapters.list``.
    """

    name: str = Field(min_length=1)
    """The name of the adapter."""
    model: str | None = Field(default=None, min_length=1)
    """The id of the model whose settings are wanted."""
    cwd: PathText | None = Field(default=None, min_length=1)


class AdapterChoice(WireModel):
    """A choice of a setting. ``meta`` and ``opts`` are set for models."""

    id: str
    """The value."""
    name: str
    """The value as people see it."""
    description: str | None = None
    meta: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What is known about a model."""
    opts: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What a model supports."""


class AdapterSetting(WireModel):
    """A field of a form, evaluated for a model. ``key`` is its key in ``adapterSettings``."""

    key: str
    """Its key in ``adapterSettings``."""
    type: Literal["string", "number", "integer", "boolean", "enum", "list", "map"]
    description: str = ""
    default: Any = None
    """The value that applies if none is set."""
    choices: list[AdapterChoice] = Field(default_factory=list[AdapterChoice])
    """The values to choose from."""
    minimum: float | None = None
    """The lowest value."""
    maximum: float | None = None
    """The highest value."""
    optional: StrictBool = False
    """Whether it may be left out."""
    enabled: StrictBool = True
    mapping: str | None = None
    """Where it stands in a request."""


class AdapterEnvEntry(WireModel):
    """The source of a value, without the value. ``detail`` is the variable's name, or the path in the adapter."""

    name: str
    """The name of the value in the adapter."""
    source: Literal["command", "file", "variable", "function", "path", "literal", "none"]
    """Where the value comes from."""
    detail: str | None = None
    """The variable, or the path in the adapter."""
    optional: StrictBool = False
    """Whether the adapter works without it."""


class AdapterDescription(WireModel):
    """A declaration without its functions and without secrets: of headers, only the names.

    ``wire_name`` is the built-in adapter that encodes requests and decodes responses where no handler does.
    """

    name: str
    """The name of the adapter."""
    title: str
    origin: str
    """Where it is declared."""
    type: str
    vendor: str | None = None
    """The company whose models it calls."""
    wire_name: str | None = None
    """The built-in adapter that encodes requests and decodes responses."""
    base_url: str | None = None
    url: str | None = None
    env: list[AdapterEnvEntry]
    headers: list[str]
    handlers: list[str]
    """The names of its own functions."""
    roles: dict[str, str]
    """The provider's names of roles."""
    features: dict[str, StrictBool]
    """What it supports."""
    parameters: dict[str, Any]
    """What its requests have besides settings."""
    body: dict[str, Any]
    """What is added to the body of each request."""
    opts: dict[str, Any]
    """Its options."""
    meta: dict[str, Any]
    """Its own values."""
    settings: list[AdapterSetting]
    """The settings, in the order of a form."""


class AdapterGetResult(WireModel):
    """The settings are in the order of a form."""

    adapter: AdapterDescription
    """The adapter."""


class AdapterRegisterParams(WireModel):
    """``declaration`` has the keys of a declaration file, including ``name``."""

    declaration: dict[str, Any] = Field(repr=False)
    """The declaration, with the keys of a file."""


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.adapters.list": Method(AdaptersListParams, AdaptersListResult, "List the adapters."),
    "jumpseat.adapters.get": Method(AdapterGetParams, AdapterGetResult, "Describe an adapter, with its settings."),
    "jumpseat.adapters.register": Method(
        AdapterRegisterParams, AdapterGetResult, "Declare an adapter for this connection."
    ),
}
