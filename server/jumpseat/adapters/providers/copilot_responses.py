"""The Copilot model API: the Responses API."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import ProviderInfo
from jumpseat.adapters.providers.copilot import COPILOT_API_URL, KEY_VARIABLE
from jumpseat.adapters.wires.settings import RESPONSES

PROVIDER: Final = ProviderInfo(
    type="copilot_responses",
    adapter="copilot:CopilotResponsesAdapter",
    default_base_url=COPILOT_API_URL,
    key_variable=KEY_VARIABLE,
    # All models that the API serves on this wire alone can reason.
    options={"reasoning": True},
    settings=RESPONSES,
)
