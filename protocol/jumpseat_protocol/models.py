"""``models.*`` and ``session.model.*``: the models of the server, and the model of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import KeyText
from jumpseat_protocol.portability import Portability
from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.sessions import ModelCapabilities, SessionParams
from jumpseat_protocol.wire import Method, WireModel


class ModelSwitchParams(WireModel):
    """With ``require_available``, the provider has to list the model."""

    session_id: str
    model_id: str = Field(min_length=1)
    reasoning_effort: str | None = None
    reasoning_summary: str | None = None
    model_capabilities: ModelCapabilities | None = None
    """What the model can do, if the list of models is wrong about it."""
    source: str | None = None
    """Where the change comes from."""
    require_available: StrictBool = False
    """Whether the provider has to list the model."""


class CurrentModelResult(WireModel):
    model_id: str | None = None
    reasoning_effort: str | None = None


class ModelSwitchResult(CurrentModelResult):
    """``portability`` is the report of ``jumpseat.portability`` for the new model.

    It is unset if no part of the conversation depends on a provider or on vision, or if the model cannot be
    resolved.
    """

    portability: Portability | None = None
    """What the new model gets of the conversation."""


class ReasoningEffortParams(WireModel):
    session_id: str
    reasoning_effort: str = Field(min_length=1)


class ReasoningEffortResult(WireModel):
    reasoning_effort: str


class SessionModelsParams(WireModel):
    """``skip_cache`` bypasses the cached lists of the providers."""

    session_id: str
    skip_cache: StrictBool = False
    """Whether the providers are asked anew."""


class SessionModelsResult(WireModel):
    """The models that the session can switch to, in the form of the Copilot API."""

    models: list[dict[str, Any]] = Field(alias="list")
    """The models."""


class AllowedModelsParams(WireModel):
    """``allowed_models`` are the only models that the session may use, by the ids of ``session.model.list``.

    ``null`` lifts the limit.
    """

    session_id: str
    allowed_models: list[str] | None = None
    """The ids of the models; ``null`` lifts the limit."""


class AllowedModelsResult(WireModel):
    """The limit, if there is one, and the model of the session, which may have changed to keep the limit."""

    allowed_models: list[str] | None = None
    """The limit as it was set."""
    effective_allowed_models: list[str] | None = None
    """The models of the limit that exist."""
    model_id: str | None = None


class TokenPriceUnit(WireModel):
    """The unit of a model's prices."""

    model_id: str
    unit: Literal["ai_credits"]
    """The unit."""


class TokenPriceUnitsResult(WireModel):
    """The unit of the prices in ``models.list``, for every model that has prices."""

    units: list[TokenPriceUnit]
    """The unit of each model."""


class ModelsListParams(WireModel):
    selection_id: str | None = None
    """The id of the login."""
    git_hub_token: KeyText | None = Field(default=None, repr=False)


class ModelsListResult(WireModel):
    """``models`` in the form of the Copilot API: ``{id, name, capabilities: {supports, limits}, ...}``."""

    models: list[dict[str, Any]]
    """The models."""


class BuiltInModel(WireModel):
    """A model that the server has facts about."""

    id: str
    """The id of the model."""


class BuiltInCatalogResult(WireModel):
    """The models that the server has facts about, under the names of their vendors."""

    models: list[BuiltInModel]
    """The models."""


METHODS: Final[Mapping[str, Method]] = {
    "models.list": Method(ModelsListParams, ModelsListResult, "List the models that new sessions can use."),
    "session.model.getCurrent": Method(SessionParams, CurrentModelResult, "Return the model of the session."),
    "session.model.switchTo": Method(
        ModelSwitchParams, ModelSwitchResult, "Use another model from the next call on."
    ),
    "models.getBuiltInCatalog": Method(
        EmptyParams, BuiltInCatalogResult, "List the models that the server has facts about."
    ),
    "models.listTokenPriceUnits": Method(
        ModelsListParams, TokenPriceUnitsResult, "Return the units of the prices in `models.list`."
    ),
    "session.model.setReasoningEffort": Method(
        ReasoningEffortParams, ReasoningEffortResult, "Change how much the model reasons."
    ),
    "session.model.setAllowedModels": Method(
        AllowedModelsParams, AllowedModelsResult, "Limit the models that the session may use."
    ),
    "session.model.list": Method(
        SessionModelsParams, SessionModelsResult, "List the models that the session can switch to."
    ),
}
