"""``session.provider.*``: where the session's model is."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jumpseat_protocol.wire import WireModel


class ProviderEndpointParams(WireModel):
    """``model_id`` asks about another model than the session's."""

    session_id: str
    model_id: str | None = None


class ProviderEndpointResult(WireModel):
    """All a program needs to call the session's model itself. ``api_key`` and ``headers`` are secrets."""

    type: Literal["openai", "azure", "anthropic"]
    wire_api: Literal["completions", "responses"] | None = None
    base_url: str
    api_key: str | None = Field(default=None, repr=False)
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
