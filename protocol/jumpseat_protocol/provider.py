"""``session.provider.*`` and ``jumpseat.session.*``: the providers of a session, and requests to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field

from jumpseat_protocol.limits import KeyText
from jumpseat_protocol.sessions import NamedProviderConfig, ProviderModelConfig
from jumpseat_protocol.wire import Method, WireModel


class ProviderAddParams(WireModel):
    """Named providers and their models, as in ``session.create``. A model may name an existing provider."""

    session_id: str
    providers: list[NamedProviderConfig] = Field(default_factory=list[NamedProviderConfig])
    """The providers."""
    models: list[ProviderModelConfig] = Field(default_factory=list[ProviderModelConfig])
    """The models."""


class ProviderAddResult(WireModel):
    """The added models, in the form of ``models.list``; their ids are ``provider/id``."""

    models: list[dict[str, Any]]
    """The models that were added."""


class ProviderEndpointParams(WireModel):
    """``model_id`` selects another model than the session's."""

    session_id: str
    model_id: str | None = Field(default=None, min_length=1)


class ProviderEndpointResult(WireModel):
    """The endpoint and the credentials of the session's model. ``api_key`` and ``headers`` are secrets."""

    type: Literal["openai", "azure", "anthropic"]
    wire_api: Literal["completions", "responses"] | None = None
    """The API of OpenAI that the provider speaks."""
    base_url: str
    api_key: KeyText | None = Field(default=None, repr=False)
    """The key."""
    headers: dict[str, str] = Field(default_factory=dict, repr=False)


class NextRequestParams(WireModel):
    """``prompt`` is appended to the conversation, as a message of the user."""

    session_id: str
    prompt: str | None = None
    """A prompt to add to the conversation."""


class NextRequestResult(WireModel):
    """The next request of a session to its provider, with secrets masked. ``body`` is JSON."""

    method: str
    """The HTTP method."""
    url: str
    headers: dict[str, str] = Field(repr=False)
    body: dict[str, Any]
    """The body."""


METHODS: Final[Mapping[str, Method]] = {
    "session.provider.add": Method(
        ProviderAddParams, ProviderAddResult, "Add providers and models to the session."
    ),
    "session.provider.getEndpoint": Method(
        ProviderEndpointParams,
        ProviderEndpointResult,
        "Return the address and the credentials of the session's model, if the operator allows that.",
    ),
    "jumpseat.session.nextRequest": Method(
        NextRequestParams,
        NextRequestResult,
        "Return the request that the model would get next, without sending it.",
    ),
}
