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
    title: str
    kind: Literal["key", "local", "copilot", "configured"]
    ready: StrictBool
    detail: str
    key_from: Literal["environment", "keyring", "file"] | None = None
    key_variable: str | None = None
    address: str | None = None
    models: int | None = None


class SetupGetResult(WireModel):
    """The providers, ready ones first.

    ``default_model`` is the model of sessions that name none, ``None`` if it is unknown before the provider has
    been asked. ``has_model`` is whether such sessions have a model at all. ``trial_model`` is the name of a
    scripted model that every session can use without a provider.
    """

    providers: list[SetupProvider]
    default_model: str | None = None
    has_model: StrictBool
    trial_model: str


class SetupProviderParams(WireModel):
    """``provider`` is the name of a provider, as ``jumpseat.setup.get`` lists it."""

    provider: str = Field(min_length=1, max_length=200)


class SetupKeyParams(SetupProviderParams):
    """The ``key`` of a provider, which is stored on the machine of the server."""

    key: str = Field(min_length=1, max_length=16384, repr=False)


class SetupKeyResult(WireModel):
    """``place`` is where the key is now: the keyring of the operating system, or a private file.

    A key in the environment takes precedence over it: ``hidden_by`` is then the name of that variable.
    """

    place: Literal["keyring", "file"]
    hidden_by: str | None = None


class SetupRemoveKeyResult(WireModel):
    """``removed`` is false if no key had been entered."""

    removed: StrictBool


class SetupServerParams(WireModel):
    """A server of the user's own. ``type`` is the type of the provider; most servers are ``openai_compatible``.

    With ``needs_key``, its key can be entered afterwards.
    """

    name: str = Field(min_length=1, max_length=64)
    base_url: str = Field(min_length=1, max_length=2000)
    type: str = Field(default="openai_compatible", max_length=64)
    needs_key: StrictBool = False


class SetupModel(WireModel):
    """A model. ``context_window`` is in tokens."""

    id: str
    name: str | None = None
    context_window: int | None = None
    tools: StrictBool | None = None


class SetupModelsResult(WireModel):
    """The models of a provider. ``problem`` explains an incomplete list; ``suggested`` is a usual model's id."""

    models: list[SetupModel]
    suggested: str | None = None
    problem: str | None = None


class SetupCheckParams(SetupProviderParams):
    """The provider and one of its models, by default the first suitable one; the time limit is in seconds."""

    model: str | None = Field(default=None, min_length=1, max_length=500)
    timeout_s: float = Field(default=60.0, gt=0, le=600)


class SetupCheckResult(WireModel):
    """The result of a small request. ``model`` is the one that was asked, ``provider/model``.

    ``explanation`` says what is wrong and what to do, or what the model has answered.
    """

    works: StrictBool
    model: str | None = None
    explanation: str


class SetupModelParams(WireModel):
    """``model`` is the name of a model, ``provider/model`` or an alias."""

    model: str = Field(min_length=1, max_length=500)


class SetupFileResult(WireModel):
    """``file`` is the path of the configuration file that was changed."""

    file: str


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.setup.get": Method(EmptyParams, SetupGetResult),
    "jumpseat.setup.putKey": Method(SetupKeyParams, SetupKeyResult),
    "jumpseat.setup.removeKey": Method(SetupProviderParams, SetupRemoveKeyResult),
    "jumpseat.setup.addServer": Method(SetupServerParams, SetupFileResult),
    "jumpseat.setup.models": Method(SetupProviderParams, SetupModelsResult),
    "jumpseat.setup.check": Method(SetupCheckParams, SetupCheckResult),
    "jumpseat.setup.setModel": Method(SetupModelParams, SetupFileResult),
}
