"""``jumpseat.setup.*``: choosing a provider, entering its key, and choosing the default model.

The methods concern the configuration of the server. A key goes to the server, and never comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.wire import Method, WireModel


class SetupProvider(WireModel):
    """A provider of models.

    ``kind``: a ``key`` provider needs a key, a ``local`` one is a server on the machine of the server, ``copilot``
    needs a login to GitHub, and ``configured`` adapters are declared by the user. A ``ready`` one can be tried:
    it has a key, answers, or is configured. ``detail`` describes the state in a few words.

    ``key_from`` says where its key is, and is left out without one. ``key_variable`` is the environment variable
    that the key would be in. ``models`` is the number of models that a local server has listed.
    """

    name: str
    """The name of the provider."""
    title: str
    kind: Literal["key", "local", "copilot", "configured"]
    """What the provider needs."""
    ready: StrictBool
    """Whether it can be tried."""
    detail: str
    """Its state in a few words."""
    key_from: Literal["environment", "keyring", "file"] | None = None
    """Where its key is."""
    key_variable: str | None = None
    """The environment variable that the key would be in."""
    address: str | None = None
    """The address that a local server would have."""
    models: int | None = None
    """How many models a local server has listed."""


class SetupGetResult(WireModel):
    """The providers, ready ones first.

    ``default_model`` is the model of sessions that name none, ``None`` if it is unknown before the provider has
    been asked. ``has_model`` is whether such sessions have a model at all. ``trial_model`` is the name of a
    scripted model that every session can use without a provider.
    """

    providers: list[SetupProvider]
    """The providers, ready ones first."""
    default_model: str | None = None
    """The model of sessions that name none."""
    has_model: StrictBool
    """Whether such sessions have a model at all."""
    trial_model: str
    """A scripted model that every session can use without a provider."""


class SetupProviderParams(WireModel):
    """``provider`` is the name of a provider, as ``jumpseat.setup.get`` lists it."""

    provider: str = Field(min_length=1, max_length=200)
    """The name of the provider."""


class SetupKeyParams(SetupProviderParams):
    """The ``key`` of a provider, which is stored on the machine of the server."""

    key: str = Field(min_length=1, max_length=16384, repr=False)
    """The key, which is stored on the machine of the server."""


class SetupKeyResult(WireModel):
    """``place`` is where the key is now: the keyring of the operating system, or a private file.

    A key in the environment takes precedence over it: ``hidden_by`` is then the name of that variable.
    """

    place: Literal["keyring", "file"]
    """Where the key is now."""
    hidden_by: str | None = None
    """The environment variable whose key takes precedence."""


class SetupRemoveKeyResult(WireModel):
    """``removed`` is false if no key had been entered."""

    removed: StrictBool
    """Whether a key had been entered."""


class SetupServerParams(WireModel):
    """A server of the user's own. ``type`` is the type of the provider; most servers are ``openai_compatible``.

    With ``needs_key``, its key can be entered afterwards.
    """

    name: str = Field(min_length=1, max_length=64)
    """The name of the new adapter."""
    base_url: str = Field(min_length=1, max_length=2000)
    type: str = Field(default="openai_compatible", max_length=64)
    """The type of the provider."""
    needs_key: StrictBool = False
    """Whether the server needs a key."""


class SetupModel(WireModel):
    """A model. ``context_window`` is in tokens."""

    id: str
    """The id of the model."""
    name: str | None = None
    """The name that people see."""
    context_window: int | None = None
    """The size of its context, in tokens."""
    tools: StrictBool | None = None
    """Whether it can call tools."""


class SetupModelsResult(WireModel):
    """The models of a provider. ``problem`` explains an incomplete list; ``suggested`` is a usual model's id."""

    models: list[SetupModel]
    """The models."""
    suggested: str | None = None
    """The id of a usual model."""
    problem: str | None = None
    """Why the list is incomplete."""


class SetupCheckParams(SetupProviderParams):
    """The provider and one of its models, by default the first suitable one; the time limit is in seconds."""

    model: str | None = Field(default=None, min_length=1, max_length=500)
    """The id of the model; by default, the first suitable one."""
    timeout_s: float = Field(default=60.0, gt=0, le=600)
    """The time limit, in seconds."""


class SetupCheckResult(WireModel):
    """The result of a small request. ``model`` is the one that was asked, ``provider/model``.

    ``explanation`` says what is wrong and what to do, or what the model has answered.
    """

    works: StrictBool
    """Whether the model has answered."""
    model: str | None = None
    """The model that was asked, as ``provider/model``."""
    explanation: str
    """What the model has answered, or what is wrong and what to do."""


class SetupModelParams(WireModel):
    """``model`` is the name of a model, ``provider/model`` or an alias."""

    model: str = Field(min_length=1, max_length=500)
    """The name of a model, ``provider/model`` or an alias."""


class SetupFileResult(WireModel):
    """``file`` is the path of the configuration file that was changed."""

    file: str
    """The path of the configuration file that was changed."""


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.setup.get": Method(
        EmptyParams, SetupGetResult, "List the providers with their state, and the default model."
    ),
    "jumpseat.setup.putKey": Method(SetupKeyParams, SetupKeyResult, "Store the key of a provider."),
    "jumpseat.setup.removeKey": Method(SetupProviderParams, SetupRemoveKeyResult, "Remove the key of a provider."),
    "jumpseat.setup.addServer": Method(
        SetupServerParams, SetupFileResult, "Add a server of models to the configuration."
    ),
    "jumpseat.setup.models": Method(SetupProviderParams, SetupModelsResult, "List the models of a provider."),
    "jumpseat.setup.check": Method(SetupCheckParams, SetupCheckResult, "Try a provider with a small request."),
    "jumpseat.setup.setModel": Method(SetupModelParams, SetupFileResult, "Set the default model."),
}
