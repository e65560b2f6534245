"""DeepSeek: chat completions with a thinking switch.

The models think by default. An effort is sent unchanged; ``none`` turns thinking off, and so does a tool choice
that forces a call, which the models refuse while they think. They read text only. The options are those of chat
completions.
"""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wires.thinking_chat import OFF, ThinkingChatAdapter, must_call
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelRequest

_NEVER_THINKS: Final = "deepseek-chat"


class DeepSeekAdapter(ThinkingChatAdapter):
    """Chat completions at ``<base_url>/chat/completions``."""

    name: str = "deepseek"

    def thinks(self, request: ModelRequest) -> bool:
        return request.model != _NEVER_THINKS and request.reasoning_effort not in OFF and not must_call(request)

    def sees(self, model: str) -> bool:
        return False

    def reasoning_fields(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        if must_call(request) or request.reasoning_effort in OFF:
            return {"thinking": {"type": "disabled"}}
        if request.reasoning_effort is None:
            return {}
        return {"thinking": {"type": "enabled"}, "reasoning_effort": request.reasoning_effort}
