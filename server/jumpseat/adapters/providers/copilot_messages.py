"""The Copilot model API: the Messages API."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import ProviderInfo
from jumpseat.adapters.providers.copilot import COPILOT_API_URL, KEY_VARIABLE
from jumpseat.adapters.wires.settings import MESSAGES

PROVIDER: Final = ProviderInfo(
    type="copilot_messages",
    adapter="copilot:CopilotMessagesAdapter",
    family="anthropic",
    default_base_url=COPILOT_API_URL,
    key_variable=KEY_VARIABLE,
    settings=MESSAGES,
)
