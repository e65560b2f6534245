"""Kimi, Moonshot AI's models: chat completions with thinking that each generation switches in its own way.

============================ ==================== ====================================================
models                       thinking             how an effort is sent
============================ ==================== ====================================================
``kimi-k3`` and later        always               ``reasoning_effort``: ``low``, ``high`` or ``max``
``kimi-k2.7``, ``-thinking`` always               not at all
``kimi-k2.5``, ``kimi-k2.6`` unless switched off  ``thinking``: on, or off for ``none``
others                       never                not at all
============================ ==================== ====================================================

The options are those of chat completions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wires.thinking_chat import OFF, ThinkingChatAdapter, must_call
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelRequest

_GRADED: Final = re.compile(r"kimi-k(?:[3-9]|\d\d)")
_SWITCHED: Final = re.compile(r"kimi-k2\.[56]")
_ALWAYS: Final = re.compile(r"kimi-k2\.[7-9]|kimi-(?:(?!kimi-).)*thinking|kimi-for-coding")
_SIGHTED: Final = re.compile(r"kimi-k2\.[5-9]|kimi-k(?:[3-9]|\d\d)|vision|kimi-latest|kimi-for-coding")

_EFFORTS: Final[Mapping[str, str]] = {
    "none": "low",
    "minimal": "low",
    "low": "low",
    "medium": "high",
    "high": "high",
    "xhigh": "max",
    "max": "max",
}


class KimiAdapter(ThinkingChatAdapter):
    """Chat completions at ``<base_url>/chat/completions``."""

    name: str = "kimi"

    def thinks(self, request: ModelRequest) -> bool:
        model = request.model
        if _SWITCHED.search(model):
            return request.reasoning_effort not in OFF and not must_call(request)
        return bool(_GRADED.search(model) or _ALWAYS.search(model))

    def sees(self, model: str) -> bool:
        return bool(_SIGHTED.search(model))

    def reasoning_fields(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        effort = request.reasoning_effort
        if _SWITCHED.search(request.model):
            if not self.thinks(request):
                return {"thinking": {"type": "disabled"}}
            return {"thinking": {"type": "enabled"}} if effort is not None else {}
        if effort is not None and _GRADED.search(request.model):
            # Unknown values are refused or, worse, ignored.
            return {"reasoning_effort": _EFFORTS.get(effort, effort)}
        return {}
