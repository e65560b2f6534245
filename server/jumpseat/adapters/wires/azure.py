"""OpenAI's wires at Azure, which differ in the address and the header of the key.

The base URL is the host of the resource (``https://NAME.openai.azure.com``), or a URL that ends in ``/openai/v1``.
With the option ``api_version``, chat completions use the route of the deployment named as the model; without it,
the unversioned route. The other options are those of the wire.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

from msgspec.structs import replace

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wires.chat import ChatAdapter, PathAdapter
from jumpseat.adapters.wires.responses import ResponsesAdapter
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelRequest

_V1: Final = "/openai/v1"

# Earlier versions have neither a limit that counts reasoning nor usage in a stream.
_FIRST_MODERN: Final = "2024-09-01"


class _AtAzure(PathAdapter):
    """Addresses and keys of Azure. A bearer token comes from Microsoft Entra."""

    key_header = "api-key"

    def url(self, endpoint: Endpoint, request: ModelRequest) -> str:
        base = endpoint.base_url.rstrip("/")
        version = self.options(endpoint).get("api_version")
        query = f"?api-version={quote(str(version), safe='')}" if version else ""
        if base.endswith(_V1) or "/openai/deployments/" in base:
            return f"{base}{self.path}{query}"
        root = base.removesuffix("/openai")
        return f"{root}{self.route(request) if version else _V1}{self.path}{query}"

    def route(self, request: ModelRequest) -> str:
        """Return the prefix of the path where a version is given."""
        return f"/openai/deployments/{quote(request.model, safe='')}"


class AzureChatAdapter(_AtAzure, ChatAdapter):
    """Chat completions at Azure."""

    name: str = "azure"
    option_names = ChatAdapter.option_names | {"api_version"}

    def body(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        version = str(self.options(endpoint).get("api_version") or "")
        modern = not re.match(r"\d{4}-", version) or version >= _FIRST_MODERN
        defaults: dict[str, Any] = {
            "max_tokens_field": "max_completion_tokens" if modern else "max_tokens",
            "stream_usage": modern,
            "replay_reasoning": False,
        }
        return super().body(replace(endpoint, options={**defaults, **self.options(endpoint)}), request)


class AzureResponsesAdapter(_AtAzure, ResponsesAdapter):
    """Responses at Azure, where only the body names the deployment."""

    name: str = "azure_responses"
    option_names = ResponsesAdapter.option_names | {"api_version"}

    def route(self, request: ModelRequest) -> str:
        return "/openai"
