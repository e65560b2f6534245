"""Anthropic: the Messages API.

The list of models: https://platform.claude.com/docs/en/api/models/list
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from jumpseat.adapters.provider import (
    EnvironmentVariables,
    ModelListing,
    ModelPage,
    ProviderInfo,
    entries,
    model_name,
)
from jumpseat.adapters.wire import as_flag, as_limit, as_object, as_text
from jumpseat.adapters.wires.settings import MESSAGES
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelInfo

if TYPE_CHECKING:
    from jumpseat.adapters.adapter import Endpoint


def models_url(endpoint: Endpoint, after: str | None) -> str:
    """Return the URL of a page of the list."""
    base = endpoint.base_url.rstrip("/").removesuffix("/messages").removesuffix("/v1")
    return f"{base}/v1/models?limit=1000" + (f"&after_id={quote(after, safe='')}" if after else "")


def read_models(answer: JsonObject) -> ModelPage:
    """Read a page of the list."""
    models: list[ModelInfo] = []
    for entry in entries(answer, "data"):
        able = as_object(entry.get("capabilities"))
        effort = as_object(able.get("effort"))
        levels = tuple(level for level, value in effort.items() if as_object(value).get("supported") is True)
        if name := model_name(entry.get("id")):
            models.append(
                ModelInfo(
                    id=name,
                    name=model_name(entry.get("display_name")) or None,
                    vision=as_flag(as_object(able.get("image_input")).get("supported")),
                    reasoning=as_flag(as_object(able.get("thinking")).get("supported")),
                    context_window=as_limit(entry.get("max_input_tokens")),
                    max_output_tokens=as_limit(entry.get("max_tokens")),
                    reasoning_efforts=levels or None,
                )
            )
    return ModelPage(models, (as_text(answer.get("last_id")) or None) if answer.get("has_more") is True else None)


PROVIDER: Final = ProviderInfo(
    type="anthropic",
    adapter="messages:MessagesAdapter",
    family="anthropic",
    default_base_url="https://api.anthropic.com",
    key_variable="ANTHROPIC_API_KEY",
    environment=EnvironmentVariables(
        base_url="ANTHROPIC_BASE_URL", model="ANTHROPIC_MODEL", rank=2, fallback=False
    ),
    listing=ModelListing(models_url, read_models),
    settings=MESSAGES,
    title="Anthropic",
)
