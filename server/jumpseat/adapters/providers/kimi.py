"""Kimi, the models of Moonshot AI: chat completions with thinking that each generation switches differently."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import CHAT_LISTING, EnvironmentVariables, ProviderInfo
from jumpseat.adapters.wires.settings import PENALTIES, effort, max_tokens, stop, temperature, top_p

PROVIDER: Final = ProviderInfo(
    type="kimi",
    adapter="kimi_chat:KimiAdapter",
    default_base_url="https://api.moonshot.ai/v1",
    key_variable="MOONSHOT_API_KEY",
    environment=EnvironmentVariables(base_url="MOONSHOT_BASE_URL", model="MOONSHOT_MODEL", rank=6),
    options={"max_tokens_field": "max_completion_tokens"},
    listing=CHAT_LISTING,
    settings={
        "reasoning_effort": effort(),
        "temperature": temperature(1),
        "top_p": top_p(),
        "stop": stop(5),
        "max_tokens": max_tokens(),
        **PENALTIES,
    },
    title="Moonshot (Kimi)",
)
