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
    models: list[ProviderModelConfig] = Field(default_factory=list[ProviderModelConfig])


class ProviderAddResult(WireModel):
    """The added models, in the form of ``models.list``; their ids are ``provider/id``."""

    models: list[dict[str, Any]]


class ProviderEndpointParams(WireModel):
    """``model_id`` selects another model than the session's."""

    session_id: str
    model_id: str | None = Field(default=None, min_length=1)


class ProviderEndpointResult(WireModel):
    """The endpoint and the credentials of the session's model. ``api_key`` and ``headers`` are secrets."""

    type: Literal["openai", "azure", "anthropic"]
    wire_api: Literal["completions", "responses"] | None = None
    base_url: str
    api_key: KeyText | None = Field(default=None, repr=False)
    headers: dict[str, str] = Field(default_factory=dict, repr=False)


class NextRequestParams(WireModel):
    """``prompt`` is appended to the conversation, as a message of the user."""

    session_id: str
    prompt: str | None = None


class NextRequestResult(WireModel):
    """The next request of a session to its provider, with secrets masked. ``body`` is JSON."""

    method: str
    url: str
    headers: dict[str, str] = Field(repr=False)
    body: dict[str, Any]


METHODS: Final[Mapping[str, Method]] = {
    "session.provider.add": Method(ProviderAddParams, ProviderAddResult),
    "session.provider.getEndpoint": Method(ProviderEndpointParams, ProviderEndpointResult),
    "jumpseat.session.nextRequest": Method(NextRequestParams, NextRequestResult),
}
