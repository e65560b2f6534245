"""The base of all wires: a JSON body, posted with the credentials of the endpoint."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from jumpseat.adapters.adapter import Adapter, Endpoint, HttpRequest
from jumpseat.adapters.wire import merge_headers
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelRequest


class JsonAdapter(Adapter):
    """An adapter that posts JSON. A bearer token wins over the key."""

    key_header: ClassVar[str | None] = None
    """The header of the key; without one, the key is sent as a bearer token."""

    wire_headers: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The headers that the wire requires."""

    def request(self, endpoint: Endpoint, request: ModelRequest) -> HttpRequest:
        return HttpRequest(
            url=self.url(endpoint, request),
            headers=self.headers(endpoint, request),
            body=self.body(endpoint, request),
        )

    @abstractmethod
    def url(self, endpoint: Endpoint, request: ModelRequest) -> str: ...

    @abstractmethod
    def body(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject: ...

    def headers(self, endpoint: Endpoint, request: ModelRequest) -> dict[str, str]:
        return merge_headers(
            {
                "Content-Type": "application/json",
                "Accept": "text/event-stream" if request.stream else "application/json",
                "User-Agent": endpoint.user_agent,
                **self.wire_headers,
            },
            self.auth_headers(endpoint),
            self.extra_headers(endpoint, request),
            endpoint.headers,
            request.headers,
        )

    def auth_headers(self, endpoint: Endpoint) -> dict[str, str]:
        if endpoint.api_key and self.key_header is not None and not endpoint.bearer_token:
            return {self.key_header: endpoint.api_key}
        token = endpoint.bearer_token or endpoint.api_key
        return {"Authorization": f"Bearer {token}"} if token else {}

    def extra_headers(self, endpoint: Endpoint, request: ModelRequest) -> Mapping[str, str]:
        """Return the provider's own headers; those of the endpoint and of the request win over them."""
        return self.default_headers
