"""The agent of this server with its models, as the root channel shows it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from jumpseat.agent.model import ModelInfo
from jumpseat.ahp.states.values import JsonObject, present
from jumpseat.ahp.translation.config import effort_schema
from jumpseat.ahp.translation.uris import PROVIDER
from jumpseat.sessions.shown.options import EFFORTS


def agents_with(models: Sequence[ModelInfo]) -> list[JsonObject]:
    """Return the list of agents, which has one, with these models."""
    return [
        {
            "provider": PROVIDER,
            "displayName": "Jumpseat",
            "description": "An agent for any model",
            "models": [_model(model) for model in models if model.enabled],
        }
    ]


def _model(model: ModelInfo) -> JsonObject:
    efforts = model.reasoning_efforts
    if efforts is None:
        efforts = EFFORTS if model.reasoning else ()
    return present(
        {
            "id": model.id,
            "provider": PROVIDER,
            "name": model.name or model.id,
            "maxContextWindow": model.context_window,
            "maxOutputTokens": model.max_output_tokens,
            "maxPromptTokens": model.max_prompt_tokens,
            "supportsVision": model.vision,
            "configSchema": effort_schema(efforts, model.default_reasoning_effort),
        }
    )
