"""OpenAI: the Responses API."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import CHAT_LISTING, ProviderInfo
from jumpseat.adapters.providers.openai import BASE_URL, KEY_VARIABLE
from jumpseat.adapters.wires.settings import RESPONSES

PROVIDER: Final = ProviderInfo(
    type="openai_responses",
    adapter="responses:ResponsesAdapter",
    default_base_url=BASE_URL,
    key_variable=KEY_VARIABLE,
    listing=CHAT_LISTING,
    settings=RESPONSES,
)
