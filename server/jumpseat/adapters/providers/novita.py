"""Novita: chat completions."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import CHAT_LISTING, EnvironmentVariables, ProviderInfo
from jumpseat.adapters.wires.settings import CHAT, min_p, repetition_penalty, top_k

PROVIDER: Final = ProviderInfo(
    type="novita",
    adapter="chat:ChatAdapter",
    default_base_url="https://api.novita.ai/openai/v1",
    key_variable="NOVITA_API_KEY",
    environment=EnvironmentVariables(base_url="NOVITA_BASE_URL", model="NOVITA_MODEL", rank=9),
    listing=CHAT_LISTING,
    settings={**CHAT, "top_k": top_k(), "min_p": min_p(), "repetition_penalty": repetition_penalty()},
    title="Novita",
)
