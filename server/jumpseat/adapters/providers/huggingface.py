"""Hugging Face's router: chat completions. Some of the providers behind it refuse reasoning in the conversation."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import CHAT_LISTING, EnvironmentVariables, ProviderInfo
from jumpseat.adapters.wires.settings import CHAT

PROVIDER: Final = ProviderInfo(
    type="huggingface",
    adapter="chat:ChatAdapter",
    default_base_url="https://router.huggingface.co/v1",
    key_variable="HF_TOKEN",
    environment=EnvironmentVariables(base_url="HUGGINGFACE_BASE_URL", model="HUGGINGFACE_MODEL", rank=10),
    options={"replay_reasoning": False},
    listing=CHAT_LISTING,
    settings=CHAT,
    title="Hugging Face",
)
