"""llama.cpp: chat completions of ``llama-server``, on this machine by default.

https://github.com/ggml-org/llama.cpp/tree/master/tools/server
"""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import CHAT_LISTING, EnvironmentVariables, ProviderInfo
from jumpseat.adapters.wires.settings import CHAT

PROVIDER: Final = ProviderInfo(
    type="llamacpp",
    adapter="chat:ChatAdapter",
    default_base_url="http://localhost:8080/v1",
    key_variable="LLAMACPP_API_KEY",
    environment=EnvironmentVariables(base_url="LLAMACPP_BASE_URL", model="LLAMACPP_MODEL", rank=13),
    listing=CHAT_LISTING,
    settings=CHAT,
    own_limits=True,
    title="llama.cpp",
    local=True,
)
