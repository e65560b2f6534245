"""``jumpseat.adapters.*`` and ``jumpseat.complete``, which the Copilot SDK protocol does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.sessions import ProviderConfig, ResponseFormatConfig
from jumpseat_protocol.wire import Method, WireModel


class AdapterSummary(WireModel):
    """``origin`` tells where it is declared. ``problem`` tells why it cannot be called."""

    name: str
    title: str
    origin: str
    problem: str | None = None


class AdaptersListParams(WireModel):
    """With ``cwd``, the adapters as sessions in that folder have them: those of its project too."""

    cwd: str | None = Field(default=None, min_length=1)


class AdaptersListResult(WireModel):
    """All adapters that can be named, sorted."""

    adapters: list[AdapterSummary]


class AdapterGetParams(WireModel):
    """``model`` is what the settings are for, where they differ from model to model; unset, the default.

    ``cwd`` is as in ``jumpseat.adapters.list``.
    """

    name: str = Field(min_length=1)
    model: str | None = Field(default=None, min_length=1)
    cwd: str | None = Field(default=None, min_length=1)


class AdapterChoice(WireModel):
    """A value that may be chosen. ``meta`` and ``opts`` go with models."""

    id: str
    name: str
    description: str | None = None
    meta: dict[str, Any] = Field(default_factory=dict[str, Any])
    opts: dict[str, Any] = Field(default_factory=dict[str, Any])


class AdapterSetting(WireModel):
    """One row of a form, with what depends on the model worked out. ``key`` goes into ``adapterSettings``."""

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
    """Where a value comes from, without the value. ``detail`` names the variable."""

    name: str
    source: Literal["command", "file", "variable", "function", "path", "literal", "none"]
    detail: str | None = None
    optional: StrictBool = False


class AdapterDescription(WireModel):
    """A declaration without its functions, and without anything that may be secret: headers are names only.

    ``wire_name`` is the adapter of the server whose code writes and reads what no handler does.
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
    """``settings`` are in the order in which a form shows them."""

    adapter: AdapterDescription


class AdapterRegisterParams(WireModel):
    """``declaration`` has the keys of a declaration as they stand in a file, ``name`` among them."""

    declaration: dict[str, Any] = Field(repr=False)


class CompleteMessage(WireModel):
    role: Literal["system", "user", "assistant"]
    content: str


class CompleteParams(WireModel):
    """One call of a model, outside of any session.

    The model is that of ``adapter``, or of ``provider`` as in ``session.create``, or the one that a session of that
    ``model`` would have. ``messages`` are a conversation whose last one is the user's; ``prompt`` is short for one.
    """

    adapter: str | None = Field(default=None, min_length=1)
    provider: ProviderConfig | None = None
    model: str | None = Field(default=None, min_length=1)
    prompt: str | None = None
    messages: list[CompleteMessage] | None = None
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    reasoning_effort: str | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    response_format: ResponseFormatConfig | None = None


class CompleteUsage(WireModel):
    """Tokens; ``input_tokens`` is the whole prompt, ``output_tokens`` includes reasoning."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int


class CompleteResult(WireModel):
    """``usage`` is unset where the provider reports nothing."""

    text: str
    model: str
    stop_reason: str
    usage: CompleteUsage | None = None


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.adapters.list": Method(AdaptersListParams, AdaptersListResult),
    "jumpseat.adapters.get": Method(AdapterGetParams, AdapterGetResult),
    "jumpseat.adapters.register": Method(AdapterRegisterParams, AdapterGetResult),
    "jumpseat.complete": Method(CompleteParams, CompleteResult),
}
