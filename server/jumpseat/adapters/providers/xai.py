"""xAI: chat completions. A request has no field for the reasoning of earlier answers."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import CHAT_LISTING, EnvironmentVariables, ProviderInfo
from jumpseat.adapters.wires.settings import CHAT

PROVIDER: Final = ProviderInfo(
    type="xai",
    adapter="chat:ChatAdapter",
    default_base_url="https://api.x.ai/v1",
    key_variable="XAI_API_KEY",
    environment=EnvironmentVariables(base_url="XAI_BASE_URL", model="XAI_MODEL", rank=8),
    options={"max_tokens_field": "max_completion_tokens", "replay_reasoning": False},
    listing=CHAT_LISTING,
    settings=CHAT,
    title="xAI",
)
