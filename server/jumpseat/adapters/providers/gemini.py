"""Google Gemini: ``generateContent``.

The list of models: https://ai.google.dev/api/models#method:-models.list
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
    is_chat_model,
    model_name,
    strings,
)
from jumpseat.adapters.wire import as_flag, as_limit, as_text
from jumpseat.adapters.wires.settings import (
    effort,
    frequency_penalty,
    max_tokens,
    presence_penalty,
    seed,
    stop,
    temperature,
    top_k,
    top_p,
)
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelInfo

if TYPE_CHECKING:
    from jumpseat.adapters.adapter import Endpoint

BASE_URL: Final = "https://generativelanguage.googleapis.com/v1beta"
KEY_VARIABLE: Final = "GEMINI_API_KEY"

_CONFIG: Final = "body.generationConfig"


def models_url(endpoint: Endpoint, after: str | None) -> str:
    """Return the URL of a page of the list."""
    from jumpseat.adapters.wires.generate_content import api_root

    token = f"&pageToken={quote(after, safe='')}" if after else ""
    return f"{api_root(endpoint.base_url)}/models?pageSize=1000{token}"


def read_models(answer: JsonObject) -> ModelPage:
    """Read a page of the list."""
    models: list[ModelInfo] = []
    for entry in entries(answer, "models"):
        name = model_name(entry.get("name")).removeprefix("models/")
        methods = strings(entry.get("supportedGenerationMethods"))
        if name and (methods is None or "generateContent" in methods) and is_chat_model(name):
            models.append(
                ModelInfo(
                    id=name,
                    name=model_name(entry.get("displayName")) or None,
                    reasoning=as_flag(entry.get("thinking")),
                    context_window=as_limit(entry.get("inputTokenLimit")),
                    max_output_tokens=as_limit(entry.get("outputTokenLimit")),
                )
            )
    return ModelPage(models, as_text(answer.get("nextPageToken")) or None)


LISTING: Final = ModelListing(models_url, read_models)

PROVIDER: Final = ProviderInfo(
    type="gemini",
    adapter="generate_content:GenerateContentAdapter",
    family=None,
    default_base_url=BASE_URL,
    key_variable=KEY_VARIABLE,
    environment=EnvironmentVariables(base_url="GEMINI_BASE_URL", model="GEMINI_MODEL", rank=3),
    listing=LISTING,
    settings={
        "thinkingLevel": effort(),
        "temperature": temperature(mapping=_CONFIG),
        "topP": top_p(mapping=_CONFIG),
        "topK": top_k(mapping=_CONFIG),
        "maxOutputTokens": max_tokens(),
        "stopSequences": stop(5, mapping=_CONFIG),
        "presencePenalty": presence_penalty(mapping=_CONFIG),
        "frequencyPenalty": frequency_penalty(mapping=_CONFIG),
        "seed": seed(mapping=_CONFIG),
    },
    title="Google Gemini",
)
