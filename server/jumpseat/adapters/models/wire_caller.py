"""Calls to models by the adapter of a provider, with nothing declared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.adapters.adapter import Adapter, Caller, Endpoint, Network, PreparedCall
from jumpseat.adapters.capabilities import capabilities
from jumpseat.agent.model import Capabilities, ModelRequest


class WireCaller(Struct, frozen=True):
    """Calls models by an adapter without a declaration.

    ``token`` is called before each call for a bearer token that replaces the endpoint's key and token; without it,
    ``key`` is called for a key. With ``socket`` a request is a message on a WebSocket, for the Responses API.
    """

    wire: Adapter
    endpoint: Endpoint
    token: Callable[[], Awaitable[str]] | None = None
    socket: bool = False
    key: Callable[[], Awaitable[str]] | None = None

    @property
    def adapter_name(self) -> str:
        return self.wire.name

    @property
    def wire_name(self) -> str:
        return self.wire.name

    @property
    def signs_as(self) -> str:
        return self.wire.signature

    def capabilities(self, model: str) -> Capabilities:
        edits = self.wire.edits_context(self.endpoint)
        can = capabilities(self.wire, model)
        return can if edits is None else replace(can, edits_context=edits)

    async def resolve_endpoint(self) -> tuple[Endpoint, Network | None]:
        if self.token is None and self.key is not None:
            return replace(self.endpoint, api_key=await self.key()), None
        return self.endpoint, None

    def for_text(self) -> Caller:
        return self

    async def prepare(self, request: ModelRequest) -> PreparedCall:
        endpoint = self.endpoint
        if self.token is not None:
            endpoint = replace(endpoint, api_key=None, bearer_token=await self.token())
        elif self.key is not None:
            endpoint = replace(endpoint, api_key=await self.key())
        secrets = tuple(secret for secret in (endpoint.api_key, endpoint.bearer_token) if secret)
        if request.settings:
            from jumpseat.adapters.declared.settings import write_with_settings

            call = write_with_settings(self.wire, endpoint, request)
        else:
            call = self.wire.request(endpoint, request)
        return PreparedCall(
            replace(call, socket=self.socket) if self.socket else call,
            self.wire.decoder_at(endpoint, request),
            secrets,
        )
