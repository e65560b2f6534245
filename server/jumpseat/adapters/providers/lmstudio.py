"""LM Studio: chat completions of its server, on this machine by default.

https://lmstudio.ai/docs/developer/openai-compat
"""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import CHAT_LISTING, EnvironmentVariables, ProviderInfo
from jumpseat.adapters.wires.settings import CHAT

PROVIDER: Final = ProviderInfo(
    type="lmstudio",
    adapter="chat:ChatAdapter",
    default_base_url="http://localhost:1234/v1",
    key_variable="LMSTUDIO_API_KEY",
    environment=EnvironmentVariables(base_url="LMSTUDIO_BASE_URL", model="LMSTUDIO_MODEL", rank=12),
    listing=CHAT_LISTING,
    settings=CHAT,
    own_limits=True,
    title="LM Studio",
    local=True,
)
