"""Chat completions of providers that differ by address, key and options only.

The options are those of the OpenAI wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wires.chat import OpenAIAdapter
from jumpseat.agent.model import ModelRequest


class OpenAICompatibleAdapter(OpenAIAdapter):
    """Any server with this wire. It has no address that could be guessed, and no key that could be sent astray."""

    name: ClassVar[str] = "openai_compatible"
    default_base_url: ClassVar[str | None] = None
    key_env: ClassVar[str | None] = None


class XaiAdapter(OpenAIAdapter):
    """xAI. Its chat completions have no field for reasoning on the way back."""

    name: ClassVar[str] = "xai"
    default_base_url: ClassVar[str | None] = "https://api.x.ai/v1"
    key_env: ClassVar[str | None] = "XAI_API_KEY"
    defaults: ClassVar[Mapping[str, Any]] = {
        "max_tokens_field": "max_completion_tokens",
        "replay_reasoning": False,
    }


class HuggingFaceAdapter(OpenAIAdapter):
    """Hugging Face's router. Some of the providers behind it refuse reasoning on the way back."""

    name: ClassVar[str] = "huggingface"
    default_base_url: ClassVar[str | None] = "https://router.huggingface.co/v1"
    key_env: ClassVar[str | None] = "HF_TOKEN"
    defaults: ClassVar[Mapping[str, Any]] = {"replay_reasoning": False}


class NovitaAdapter(OpenAIAdapter):
    """Novita."""

    name: ClassVar[str] = "novita"
    default_base_url: ClassVar[str | None] = "https://api.novita.ai/openai/v1"
    key_env: ClassVar[str | None] = "NOVITA_API_KEY"


class GitHubModelsAdapter(OpenAIAdapter):
    """GitHub Models. The key is a token of GitHub with the permission ``models: read``."""

    name: ClassVar[str] = "githubmodels"
    default_base_url: ClassVar[str | None] = "https://models.github.ai/inference"
    key_env: ClassVar[str | None] = "GITHUB_TOKEN"
    defaults: ClassVar[Mapping[str, Any]] = {"replay_reasoning": False}

    def extra_headers(self, endpoint: Endpoint, request: ModelRequest) -> dict[str, str]:
        return {"X-GitHub-Api-Version": "2022-11-28"}
