"""``providers/*`` (unstable): an editor sets the address and the headers for requests to a provider."""

from __future__ import annotations

from typing import Any

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.translation.params import Nothing, ProviderParams, SetProviderParams
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol.sessions import ProviderConfig


def list_providers(ctx: AcpContext, _params: Nothing) -> dict[str, Any]:
    """List the providers, without headers. One that is disabled or not set up has no ``current``.

    Only clients that may change an address see the addresses: they are those of the operator's network.
    """
    sees_all = ctx.server.sees_all
    return {
        "providers": [
            {"providerId": route.name, "supported": [route.api_type], "required": False}
            | (
                {"current": {"apiType": route.api_type, "baseUrl": route.base_url}}
                if route.base_url and sees_all
                else {}
            )
            for route in ctx.server.models.routes.list()
        ]
    }


def set_provider(ctx: AcpContext, params: SetProviderParams) -> dict[str, Any]:
    """Set a provider's address and headers, from the next request on, for all sessions.

    Raises:
        InvalidRequestError: the provider is unknown or has another API type, or the address or headers are invalid.
    """
    ctx.server.require_all("providers/set")
    known = {route.name: route for route in ctx.server.models.routes.list()}
    route = known.get(params.provider_id)
    if route is None:
        raise InvalidRequestError(
            f"unknown provider {params.provider_id[:100]!r}: expected one of {', '.join(known)}"
        )
    if params.api_type != route.api_type:
        raise InvalidRequestError(
            f"provider {route.name!r} has apiType {route.api_type!r}, not {params.api_type[:100]!r}"
        )
    checked = _provider_config(params)
    ctx.server.models.routes.set(route.name, checked.base_url or "", checked.headers)
    return {}


def disable(ctx: AcpContext, params: ProviderParams) -> dict[str, Any]:
    """Disable a provider. An unknown one is ignored."""
    ctx.server.require_all("providers/disable")
    ctx.server.models.routes.switch_off(params.provider_id)
    return {}


def _provider_config(params: SetProviderParams) -> ProviderConfig:
    try:
        return ProviderConfig(base_url=params.base_url, headers=params.headers)
    except ValueError:
        # The text of the error may contain a secret.
        raise InvalidRequestError("invalid baseUrl or headers: expected a URL, and an object of strings") from None
