"""vLLM: chat completions of ``vllm serve``, on this machine by default.

https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
"""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import CHAT_LISTING, EnvironmentVariables, ProviderInfo
from jumpseat.adapters.wires.settings import CHAT

PROVIDER: Final = ProviderInfo(
    type="vllm",
    adapter="chat:ChatAdapter",
    default_base_url="http://localhost:8000/v1",
    key_variable="VLLM_API_KEY",
    environment=EnvironmentVariables(base_url="VLLM_BASE_URL", model="VLLM_MODEL", rank=14),
    listing=CHAT_LISTING,
    settings=CHAT,
    own_limits=True,
    title="vLLM",
    local=True,
)
