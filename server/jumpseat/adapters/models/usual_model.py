"""Choose a default model from a provider's list. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jumpseat.agent.model import ModelInfo

USUAL: Final[Mapping[str, Sequence[str]]] = {
    "openai": ("gpt-5.5", "gpt-5.4", "gpt-5.2", "gpt-5.1", "gpt-5", "gpt-4.1"),
    "anthropic": ("claude-sonnet-5", "claude-sonnet-4-6", "claude-sonnet-4-5", "claude-sonnet-4-0"),
}
"""Models that work well with tools at a moderate price, best first, by adapter.

The first entries of these providers' lists are unsuitable: they include speech, embedding and outdated models.
"""


def usual_model(adapter: str, listed: Sequence[ModelInfo]) -> str | None:
    """Return the provider's name of a usual model, else of the first that calls tools, else of the first that may.

    The ids in ``listed`` have the form ``adapter/name``. Returns ``None`` if no model is suitable.
    """
    names = {
        model.id.removeprefix(f"{adapter}/"): model
        for model in listed
        if model.enabled and model.tools is not False
    }
    usual = next((name for name in USUAL.get(adapter, ()) if name in names), None)
    return usual or next((name for name, model in names.items() if model.tools), None) or next(iter(names), None)
