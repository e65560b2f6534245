"""Which model is meant where nobody says one, of those that a provider lists. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jumpseat.agent.model import ModelInfo

USUAL: Final[Mapping[str, Sequence[str]]] = {
    "openai": ("gpt-5.5", "gpt-5.4", "gpt-5.2", "gpt-5.1", "gpt-5", "gpt-4.1"),
    "anthropic": ("claude-sonnet-5", "claude-sonnet-4-6", "claude-sonnet-4-5", "claude-sonnet-4-0"),
}
"""Good ones for work with tools at a price that is not the highest, the better first, by adapter.

Their lists begin with anything: models for speech and embeddings, old and new.
"""


def usual_model(adapter: str, listed: Sequence[ModelInfo]) -> str | None:
    """The provider's name of a model: a usual one, else the first that calls tools, else the first that may.

    ``listed`` go by ``adapter/name``. ``None`` where none is left.
    """
    names = {one.id.removeprefix(f"{adapter}/"): one for one in listed if one.enabled and one.tools is not False}
    usual = next((name for name in USUAL.get(adapter, ()) if name in names), None)
    return usual or next((name for name, one in names.items() if one.tools), None) or next(iter(names), None)
