"""The Copilot model API, with models behind a GitHub account: chat completions.

``copilot_messages`` and ``copilot_responses`` are the API's other wires. ``adapters/models/copilot_account.py``
asks the API who the user is and which models there are; :func:`model_from_wire` reads an entry of that list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat.adapters.provider import ProviderInfo, strings
from jumpseat.adapters.wire import as_amount, as_flag, as_limit, as_object, as_text
from jumpseat.adapters.wires.settings import CHAT
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import CREDITS_PER_DOLLAR, NANO, ModelInfo, Price

COPILOT_API_URL: Final = "https://api.githubcopilot.com"
KEY_VARIABLE: Final = "COPILOT_GITHUB_TOKEN"
MILLION: Final = 1_000_000

PROVIDER: Final = ProviderInfo(
    type="copilot",
    adapter="copilot:CopilotChatAdapter",
    default_base_url=COPILOT_API_URL,
    key_variable=KEY_VARIABLE,
    other_key_variables=("GH_TOKEN", "GITHUB_TOKEN"),
    settings=CHAT,
)

WIRES: Final[Mapping[str, str]] = {
    "/chat/completions": "copilot",
    "/responses": "copilot_responses",
    "/v1/messages": "copilot_messages",
}
"""Paths of the API and their provider types, the preferred one first."""


def wire_of(info: ModelInfo) -> str | None:
    """Return the provider type for a model: ``copilot`` if chat completions serve it or its wires are unknown.

    ``None`` if the server knows none of the wires that serve the model.
    """
    if not info.wires:
        return PROVIDER.type
    return next((adapter for path, adapter in WIRES.items() if path in info.wires), None)


def has_socket(info: ModelInfo) -> bool:
    """Return whether a model takes Responses on a WebSocket too."""
    return wire_of(info) == WIRES["/responses"] and "ws:/responses" in (info.wires or ())


def model_from_wire(entry: JsonObject) -> ModelInfo | None:
    """Read one entry of ``/models``; ``None`` for models that do not chat (embeddings, completions)."""
    model_id = as_text(entry.get("id"))
    capabilities = as_object(entry.get("capabilities"))
    if not model_id or capabilities.get("type", "chat") != "chat":
        return None
    supports = as_object(capabilities.get("supports"))
    limits = as_object(capabilities.get("limits"))
    policy = as_object(entry.get("policy")).get("state")
    billing = as_object(entry.get("billing"))
    multiplier = billing.get("multiplier")
    wires = strings(entry.get("supported_endpoints"))
    return ModelInfo(
        id=model_id,
        name=as_text(entry.get("name")) or model_id,
        vendor=as_text(entry.get("vendor")) or None,
        vision=as_flag(supports.get("vision")),
        tools=as_flag(supports.get("tool_calls")),
        context_window=as_limit(limits.get("max_context_window_tokens")),
        max_prompt_tokens=as_limit(limits.get("max_prompt_tokens")),
        max_output_tokens=as_limit(limits.get("max_output_tokens")),
        reasoning_efforts=strings(entry.get("supportedReasoningEfforts", supports.get("reasoning_effort"))),
        default_reasoning_effort=as_text(entry.get("defaultReasoningEffort")) or None,
        wires=wires,
        # Not models that the account has not agreed to, that the API hides, or that none of our wires serves.
        enabled=policy in (None, "enabled")
        and entry.get("model_picker_enabled") is not False
        and (not wires or any(path in wires for path in WIRES)),
        multiplier=float(multiplier) if isinstance(multiplier, (int, float)) else None,
        price=_price(as_object(billing.get("token_prices"))),
    )


def _price(prices: JsonObject) -> Price | None:
    """Convert the price of a model to dollars; the more expensive class of long prompts is left out.

    The API gives credits per ``batch_size`` tokens, in ``default``; without that table, billionths of credits.
    """
    flat = not as_object(prices.get("default"))
    table = prices if flat else as_object(prices["default"])
    tokens = as_limit(prices.get("batch_size")) or MILLION

    def dollars(*names: str) -> float | None:
        amount = next((found for name in names if (found := as_amount(table.get(name))) is not None), None)
        if amount is None:
            return None
        # No model costs a million credits, so such an amount is in billionths.
        credit = amount / NANO if flat and amount >= MILLION else amount
        return round(credit / CREDITS_PER_DOLLAR * MILLION / tokens, 9)

    read, written = dollars("input_price"), dollars("output_price")
    if read is None or written is None:
        return None
    return Price(read, written, dollars("cache_read_price", "cache_price"), dollars("cache_write_price"))
