"""Google Gemini: the Interactions API."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import ProviderInfo
from jumpseat.adapters.providers.gemini import BASE_URL, KEY_VARIABLE, LISTING
from jumpseat.adapters.wires.settings import effort, max_tokens, seed, stop, temperature, top_p

_CONFIG: Final = "body.generation_config"

PROVIDER: Final = ProviderInfo(
    type="gemini_interactions",
    adapter="interactions:InteractionsAdapter",
    family=None,
    default_base_url=BASE_URL,
    key_variable=KEY_VARIABLE,
    listing=LISTING,
    settings={
        "thinking_level": effort(),
        "temperature": temperature(mapping=_CONFIG),
        "top_p": top_p(mapping=_CONFIG),
        "max_output_tokens": max_tokens(),
        "stop_sequences": stop(5, mapping=_CONFIG),
        "seed": seed(mapping=_CONFIG),
    },
)
