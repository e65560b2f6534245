"""Model providers, one file each. One row in :data:`ADAPTERS` adds one; nothing is imported before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal

from jumpseat.errors import ConfigError

if TYPE_CHECKING:
    from jumpseat.adapters.adapter import Adapter

__all__ = ["ADAPTERS", "ALIASES", "SCRIPTED", "AdapterEntry", "load_adapter"]


@dataclass(frozen=True, slots=True)
class AdapterEntry:
    """Where an adapter's class is; :meth:`load` imports it.

    ``family`` is the kind of endpoint that its address is to clients, ``None`` for a kind that they do not know.
    """

    module: str
    class_name: str
    family: Literal["openai", "azure", "anthropic"] | None = "openai"

    def load(self) -> Adapter:
        adapter: Adapter = getattr(import_module(self.module), self.class_name)()
        return adapter


ADAPTERS: Final[Mapping[str, AdapterEntry]] = {
    "anthropic": AdapterEntry("jumpseat.adapters.wires.messages", "AnthropicAdapter", "anthropic"),
    "azure": AdapterEntry("jumpseat.adapters.providers.azure_openai", "AzureOpenAIAdapter", "azure"),
    "azure_responses": AdapterEntry("jumpseat.adapters.providers.azure_openai", "AzureResponsesAdapter", "azure"),
    "copilot": AdapterEntry("jumpseat.adapters.providers.copilot", "CopilotAdapter"),
    "copilot_messages": AdapterEntry(
        "jumpseat.adapters.providers.copilot_wires", "CopilotMessagesAdapter", "anthropic"
    ),
    "copilot_responses": AdapterEntry("jumpseat.adapters.providers.copilot_wires", "CopilotResponsesAdapter"),
    "deepseek": AdapterEntry("jumpseat.adapters.providers.deepseek", "DeepSeekAdapter"),
    "gemini": AdapterEntry("jumpseat.adapters.wires.generate_content", "GeminiAdapter", None),
    "gemini_interactions": AdapterEntry("jumpseat.adapters.wires.interactions", "GeminiInteractionsAdapter", None),
    "githubmodels": AdapterEntry("jumpseat.adapters.providers.compatible", "GitHubModelsAdapter"),
    "huggingface": AdapterEntry("jumpseat.adapters.providers.compatible", "HuggingFaceAdapter"),
    "kimi": AdapterEntry("jumpseat.adapters.providers.kimi", "KimiAdapter"),
    "mistral": AdapterEntry("jumpseat.adapters.providers.mistral", "MistralAdapter"),
    "novita": AdapterEntry("jumpseat.adapters.providers.compatible", "NovitaAdapter"),
    "ollama": AdapterEntry("jumpseat.adapters.wires.ollama_chat", "OllamaAdapter", None),
    "openai": AdapterEntry("jumpseat.adapters.wires.chat", "OpenAIAdapter"),
    "openai_compatible": AdapterEntry("jumpseat.adapters.providers.compatible", "OpenAICompatibleAdapter"),
    "openai_responses": AdapterEntry("jumpseat.adapters.wires.responses", "OpenAIResponsesAdapter"),
    "openrouter": AdapterEntry("jumpseat.adapters.providers.openrouter", "OpenRouterAdapter"),
    "xai": AdapterEntry("jumpseat.adapters.providers.compatible", "XaiAdapter"),
}

ALIASES: Final[Mapping[str, str]] = {"azure_openai": "azure"}
"""Other names for adapters that come with the server."""

SCRIPTED: Final = "scripted"
"""The type of models that follow a script. They have no wire, and are no adapter."""


def load_adapter(name: str) -> Adapter:
    """The adapter called ``name``.

    Raises:
        ConfigError: there is none; the text lists those that there are.
    """
    entry = ADAPTERS.get(name)
    if entry is None:
        raise ConfigError(f"unknown adapter {name!r}, expected one of {', '.join(sorted(ADAPTERS))}")
    return entry.load()
