"""DeepSeek: chat completions with a switch for thinking."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import CHAT_LISTING, EnvironmentVariables, ProviderInfo
from jumpseat.adapters.wires.settings import PENALTIES, SAMPLING, effort, max_tokens, stop

PROVIDER: Final = ProviderInfo(
    type="deepseek",
    adapter="deepseek_chat:DeepSeekAdapter",
    default_base_url="https://api.deepseek.com",
    key_variable="DEEPSEEK_API_KEY",
    environment=EnvironmentVariables(base_url="DEEPSEEK_BASE_URL", model="DEEPSEEK_MODEL", rank=5),
    listing=CHAT_LISTING,
    settings={
        "reasoning_effort": effort("none", "low", "medium", "high", "max"),
        **SAMPLING,
        "stop": stop(16),
        "max_tokens": max_tokens(),
        **PENALTIES,
    },
    title="DeepSeek",
)
