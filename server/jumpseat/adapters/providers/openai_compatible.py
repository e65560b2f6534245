"""Any server that speaks chat completions.

It has no default address, and no key variable whose key could be sent to the wrong server.
"""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import CHAT_LISTING, ProviderInfo
from jumpseat.adapters.wires.settings import CHAT

PROVIDER: Final = ProviderInfo(
    type="openai_compatible",
    adapter="chat:ChatAdapter",
    listing=CHAT_LISTING,
    settings=CHAT,
)
