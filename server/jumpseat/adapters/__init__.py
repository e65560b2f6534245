"""Model providers, one file each. One row in :data:`ADAPTERS` adds one; nothing is imported before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from jumpseat.errors import ConfigError

if TYPE_CHECKING:
    from jumpseat.adapters.adapter import Adapter

__all__ = ["ADAPTERS", "AdapterEntry", "load_adapter"]


@dataclass(frozen=True, slots=True)
class AdapterEntry:
    """Where an adapter's class is; :meth:`load` imports it."""

    module: str
    class_name: str

    def load(self) -> Adapter:
        adapter: Adapter = getattr(import_module(self.module), self.class_name)()
        return adapter


ADAPTERS: Final[Mapping[str, AdapterEntry]] = {
    "anthropic": AdapterEntry("jumpseat.adapters.anthropic", "AnthropicAdapter"),
    "azure": AdapterEntry("jumpseat.adapters.azure_openai", "AzureOpenAIAdapter"),
    "azure_responses": AdapterEntry("jumpseat.adapters.azure_openai", "AzureResponsesAdapter"),
    "copilot": AdapterEntry("jumpseat.adapters.copilot", "CopilotAdapter"),
    "copilot_messages": AdapterEntry("jumpseat.adapters.copilot_wires", "CopilotMessagesAdapter"),
    "copilot_responses": AdapterEntry("jumpseat.adapters.copilot_wires", "CopilotResponsesAdapter"),
    "gemini": AdapterEntry("jumpseat.adapters.gemini", "GeminiAdapter"),
    "gemini_interactions": AdapterEntry("jumpseat.adapters.gemini_interactions", "GeminiInteractionsAdapter"),
    "openai": AdapterEntry("jumpseat.adapters.openai", "OpenAIAdapter"),
    "openai_responses": AdapterEntry("jumpseat.adapters.openai_responses", "OpenAIResponsesAdapter"),
}


def load_adapter(name: str) -> Adapter:
    """The adapter called ``name``.

    Raises:
        ConfigError: there is none; the text lists those that there are.
    """
    entry = ADAPTERS.get(name)
    if entry is None:
        raise ConfigError(f"unknown adapter {name!r}, expected one of {', '.join(sorted(ADAPTERS))}")
    return entry.load()
