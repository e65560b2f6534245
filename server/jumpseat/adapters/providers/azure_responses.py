"""Azure OpenAI: the Responses API."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import ProviderInfo
from jumpseat.adapters.wires.settings import RESPONSES

PROVIDER: Final = ProviderInfo(
    type="azure_responses",
    adapter="azure:AzureResponsesAdapter",
    family="azure",
    key_variable="AZURE_OPENAI_API_KEY",
    settings=RESPONSES,
)
