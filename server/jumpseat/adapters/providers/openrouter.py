"""OpenRouter: chat completions in front of the models of many providers.

The list of models: https://openrouter.ai/docs/overview/models
"""

from __future__ import annotations

import math
from typing import Any, Final

from jumpseat.adapters.provider import (
    EnvironmentVariables,
    ModelListing,
    ModelPage,
    ProviderInfo,
    chat_models_url,
    entries,
    model_name,
    strings,
)
from jumpseat.adapters.wire import as_limit, as_object
from jumpseat.adapters.wires.settings import (
    PENALTIES,
    SAMPLING,
    USER,
    effort,
    entry,
    max_tokens,
    min_p,
    repetition_penalty,
    seed,
    stop,
    top_k,
)
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelInfo, Price


def read_models(answer: JsonObject) -> ModelPage:
    """Read the list, which has prices and what each model takes and returns."""
    models: list[ModelInfo] = []
    for model in entries(answer, "data"):
        kinds = as_object(model.get("architecture"))
        writes, reads = strings(kinds.get("output_modalities")), strings(kinds.get("input_modalities"))
        name = model_name(model.get("id"))
        if not name or (writes is not None and "text" not in writes):
            continue
        parameters = strings(model.get("supported_parameters"))
        host, price = as_object(model.get("top_provider")), as_object(model.get("pricing"))
        thinking = as_object(model.get("reasoning"))
        models.append(
            ModelInfo(
                id=name,
                name=model_name(model.get("name")) or None,
                vision=None if reads is None else "image" in reads,
                tools=None if parameters is None else "tools" in parameters,
                reasoning=None if parameters is None else "reasoning" in parameters,
                context_window=as_limit(model.get("context_length")) or as_limit(host.get("context_length")),
                max_output_tokens=as_limit(host.get("max_completion_tokens")),
                reasoning_efforts=strings(thinking.get("supported_efforts")),
                price=_price(price),
            )
        )
    return ModelPage(models)


def _price(price: JsonObject) -> Price | None:
    prompt, completion = _per_million(price.get("prompt")), _per_million(price.get("completion"))
    if prompt is None or completion is None:
        return None
    return Price(
        prompt,
        completion,
        _per_million(price.get("input_cache_read")),
        _per_million(price.get("input_cache_write")),
    )


def _per_million(text: Any) -> float | None:
    """Convert dollars per token, written as a string, to dollars per million tokens; a negative price varies."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return round(number * 1_000_000, 6) if math.isfinite(number) and number >= 0 else None


PROVIDER: Final = ProviderInfo(
    type="openrouter",
    adapter="openrouter_chat:OpenRouterAdapter",
    default_base_url="https://openrouter.ai/api/v1",
    key_variable="OPENROUTER_API_KEY",
    environment=EnvironmentVariables(base_url="OPENROUTER_BASE_URL", model="OPENROUTER_MODEL", rank=4),
    options={"stream_usage": False, "max_tokens_field": "max_completion_tokens", "title": "jumpseat"},
    listing=ModelListing(chat_models_url, read_models),
    settings={
        "reasoning.effort": effort(),
        **SAMPLING,
        "top_k": top_k(),
        "min_p": min_p(),
        "stop": stop(4),
        "max_tokens": max_tokens(),
        **PENALTIES,
        "repetition_penalty": repetition_penalty(),
        "seed": seed(),
        "models": entry("list", "Models to fall back on, in this order."),
        "provider": entry("map", "Which providers may answer, and how one is chosen."),
        "preset": entry("string", "A preset of the account."),
        "user": USER,
    },
    title="OpenRouter",
)
