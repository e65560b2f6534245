"""Azure OpenAI: chat completions.

There is no listing: Azure lists models, not the deployments that can be called.
"""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import ProviderInfo
from jumpseat.adapters.wires.settings import OPENAI_CHAT

PROVIDER: Final = ProviderInfo(
    type="azure",
    aliases=("azure_openai",),
    adapter="azure:AzureChatAdapter",
    family="azure",
    key_variable="AZURE_OPENAI_API_KEY",
    settings=OPENAI_CHAT,
)
