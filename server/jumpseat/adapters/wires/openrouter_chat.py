"""OpenRouter: chat completions in front of the models of many providers.

Reasoning is requested by an object and answered in pieces that are kept and sent back unchanged
(``reasoning_details``). Usage always comes, with the cost in US dollars. Models of Anthropic are asked to cache the
conversation. Requests of one session carry its id, so that they reach the same provider and its cache.

Options of the endpoint, besides those of chat completions:

=================== ============= ==========================================================
option              default       meaning
=================== ============= ==========================================================
``title``           ``jumpseat``  the application's name in OpenRouter's statistics
``referer``         not sent      the application's address in them
``categories``      not sent      the application's categories in them, separated by commas
``web_search``      off           OpenRouter's web search: true, or an object with its parameters
``web_fetch``       off           OpenRouter's web fetch: true, or an object with its parameters
``prompt_caching``  true          whether models of Anthropic are asked to cache
=================== ============= ==========================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.capabilities import hosted
from jumpseat.adapters.wire import as_object
from jumpseat.adapters.wires.chat import ChatAdapter
from jumpseat.agent.blocks import AssistantMessage, JsonObject
from jumpseat.agent.model import ModelRequest

_HEADERS: Final[Mapping[str, str]] = {
    "title": "X-OpenRouter-Title",
    "referer": "HTTP-Referer",
    "categories": "X-OpenRouter-Categories",
}
_HOSTED_TOOLS: Final = ("web_search", "web_fetch")
_LONGEST_SESSION_ID: Final = 256


class OpenRouterAdapter(ChatAdapter):
    """Chat completions at ``<base_url>/chat/completions``."""

    name: str = "openrouter"
    option_names = ChatAdapter.option_names.union(
        ("title", "referer", "categories", "web_search", "web_fetch", "prompt_caching")
    )
    has_strict_tools = False
    reports_cost: bool = True
    hosted: Mapping[str, JsonObject] = {
        "web_search": {"type": "openrouter:web_search"},
        "url_context": {"type": "openrouter:web_fetch"},
    }

    def extra_headers(self, endpoint: Endpoint, request: ModelRequest) -> Mapping[str, str]:
        options = self.options(endpoint)
        return {header: str(options[name]) for name, header in _HEADERS.items() if options.get(name)}

    def tools(self, endpoint: Endpoint, request: ModelRequest) -> list[JsonObject]:
        wanted = {form["type"]: more for form, more in hosted(self.hosted, request)}
        for name in _HOSTED_TOOLS:
            if configured := self.options(endpoint).get(name):
                wanted.setdefault(f"openrouter:{name}", as_object(configured))
        own: list[JsonObject] = [
            {"type": kind, **({"parameters": more} if more else {})} for kind, more in wanted.items()
        ]
        return [*super().tools(endpoint, request), *own]

    def reasoning_to_wire(self, message: AssistantMessage, *, current: bool) -> JsonObject:
        fields = super().reasoning_to_wire(message, current=current)
        # The details are complete, signatures included.
        return {"reasoning_details": fields["reasoning_details"]} if "reasoning_details" in fields else fields

    def reasoning_fields(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        reasoning: JsonObject = {}
        if request.reasoning_effort is not None:
            reasoning["effort"] = request.reasoning_effort
        if request.reasoning_summary is not None:
            reasoning["summary"] = request.reasoning_summary
        return {"reasoning": reasoning} if reasoning else {}

    def extra_fields(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        fields: JsonObject = {}
        if request.session_id and len(request.session_id) <= _LONGEST_SESSION_ID:
            fields["session_id"] = request.session_id
        if "anthropic/" in request.model and self.options(endpoint).get("prompt_caching", True):
            fields["cache_control"] = {"type": "ephemeral"}
        return fields
