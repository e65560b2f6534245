"""Mistral: chat completions whose content may be a list of parts.

``wires/mistral_chat.py`` writes the requests, and its ``MistralDecoder`` decodes the answers.
The list of models: https://docs.mistral.ai/api/endpoint/models
"""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import (
    EnvironmentVariables,
    ModelListing,
    ModelPage,
    ProviderInfo,
    chat_models_url,
    entries,
    model_name,
)
from jumpseat.adapters.wire import as_flag, as_limit, as_object
from jumpseat.adapters.wires.settings import PENALTIES, effort, entry, max_tokens, seed, stop, temperature, top_p
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelInfo


def read_models(answer: JsonObject) -> ModelPage:
    """Read the list, which says what each model can do."""
    models: list[ModelInfo] = []
    for model in entries(answer, "data"):
        able = as_object(model.get("capabilities"))
        if (name := model_name(model.get("id"))) and able.get("completion_chat") is not False:
            models.append(
                ModelInfo(
                    id=name,
                    vision=as_flag(able.get("vision")),
                    tools=as_flag(able.get("function_calling")),
                    reasoning=as_flag(able.get("reasoning")),
                    context_window=as_limit(model.get("max_context_length")),
                )
            )
    return ModelPage(models)


PROVIDER: Final = ProviderInfo(
    type="mistral",
    adapter="mistral_chat:MistralAdapter",
    default_base_url="https://api.mistral.ai/v1",
    key_variable="MISTRAL_API_KEY",
    environment=EnvironmentVariables(base_url="MISTRAL_BASE_URL", model="MISTRAL_MODEL", rank=7),
    # A stream always ends with usage, and the field that asks for it is refused.
    options={"stream_usage": False, "max_tokens_field": "max_tokens"},
    listing=ModelListing(chat_models_url, read_models),
    settings={
        "reasoning_effort": effort("none", "high"),
        "temperature": temperature(1.5),
        "top_p": top_p(),
        "stop": stop(),
        "max_tokens": max_tokens(),
        **PENALTIES,
        "random_seed": seed(),
        "safe_prompt": entry("boolean", "Whether Mistral puts a safety prompt before the conversation."),
    },
    title="Mistral",
)
