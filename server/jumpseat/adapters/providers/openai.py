"""OpenAI: chat completions."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import CHAT_LISTING, EnvironmentVariables, ProviderInfo
from jumpseat.adapters.wires.settings import OPENAI_CHAT

BASE_URL: Final = "https://api.openai.com/v1"
KEY_VARIABLE: Final = "OPENAI_API_KEY"

PROVIDER: Final = ProviderInfo(
    type="openai",
    adapter="chat:ChatAdapter",
    default_base_url=BASE_URL,
    key_variable=KEY_VARIABLE,
    environment=EnvironmentVariables(base_url="OPENAI_BASE_URL", model="OPENAI_MODEL", rank=1, fallback=False),
    listing=CHAT_LISTING,
    settings=OPENAI_CHAT,
    title="OpenAI",
)
