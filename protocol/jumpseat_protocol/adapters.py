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
    title: str
    origin: str
    problem: str | None = None


class AdaptersListParams(WireModel):
    """With ``cwd``, the adapters that sessions in that folder have, including those of its project."""

    cwd: PathText | None = Field(default=None, min_length=1)


class AdaptersListResult(WireModel):
    """All adapters, sorted by name."""

    adapters: list[AdapterSummary]


class AdapterGetParams(WireModel):
    """``model`` is the model whose settings are returned, by default the adapter's default model.

    ``cwd`` is as in ``jumpseat.adapters.list``.
    """

    name: str = Field(min_length=1)
    model: str | None = Field(default=None, min_length=1)
    cwd: PathText | None = Field(default=None, min_length=1)


class AdapterChoice(WireModel):
    """A choice of a setting. ``meta`` and ``opts`` are set for models."""

    id: str
    name: str
    description: str | None = None
    meta: dict[str, Any] = Field(default_factory=dict[str, Any])
    opts: dict[str, Any] = Field(default_factory=dict[str, Any])


class AdapterSetting(WireModel):
    """A field of a form, evaluated for a model. ``key`` is its key in ``adapterSettings``."""

    key: str
    type: Literal["string", "number", "integer", "boolean", "enum", "list", "map"]
    description: str = ""
    default: Any = None
    choices: list[AdapterChoice] = Field(default_factory=list[AdapterChoice])
    minimum: float | None = None
    maximum: float | None = None
    optional: StrictBool = False
    enabled: StrictBool = True
    mapping: str | None = None


class AdapterEnvEntry(WireModel):
    """The source of a value, without the value. ``detail`` is the variable's name, or the path in the adapter."""

    name: str
    source: Literal["command", "file", "variable", "function", "path", "literal", "none"]
    detail: str | None = None
    optional: StrictBool = False


class AdapterDescription(WireModel):
    """A declaration without its functions and without secrets: of headers, only the names.

    ``wire_name`` is the built-in adapter that encodes requests and decodes responses where no handler does.
    """

    name: str
    title: str
    origin: str
    type: str
    vendor: str | None = None
    wire_name: str | None = None
    base_url: str | None = None
    url: str | None = None
    env: list[AdapterEnvEntry]
    headers: list[str]
    handlers: list[str]
    roles: dict[str, str]
    features: dict[str, StrictBool]
    parameters: dict[str, Any]
    body: dict[str, Any]
    opts: dict[str, Any]
    meta: dict[str, Any]
    settings: list[AdapterSetting]


class AdapterGetResult(WireModel):
    """The settings are in the order of a form."""

    adapter: AdapterDescription


class AdapterRegisterParams(WireModel):
    """``declaration`` has the keys of a declaration file, including ``name``."""

    declaration: dict[str, Any] = Field(repr=False)


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.adapters.list": Method(AdaptersListParams, AdaptersListResult),
    "jumpseat.adapters.get": Method(AdapterGetParams, AdapterGetResult),
    "jumpseat.adapters.register": Method(AdapterRegisterParams, AdapterGetResult),
}
