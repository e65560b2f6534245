"""``providers/*`` (unstable): an editor says where the requests for a provider's models go, with which headers."""

from __future__ import annotations

from typing import Any

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.translation.params import Nothing, ProviderParams, SetProviderParams
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol.sessions import ProviderConfig


def list_providers(door: AcpContext, _params: Nothing) -> dict[str, Any]:
    """Those there are, without any header: one that is off, or was never set up, has no ``current``."""
    return {
        "providers": [
            {"providerId": one.name, "supported": [one.api_type], "required": False}
            | ({"current": {"apiType": one.api_type, "baseUrl": one.base_url}} if one.base_url else {})
            for one in door.ctx.models.routes.list()
        ]
    }


def set_provider(door: AcpContext, params: SetProviderParams) -> dict[str, Any]:
    """Send the requests there from the next one on, in all sessions.

    Raises:
        InvalidRequestError: there is no such provider, or it speaks another protocol, or the address is none.
    """
    known = {one.name: one for one in door.ctx.models.routes.list()}
    route = known.get(params.provider_id)
    if route is None:
        raise InvalidRequestError(
            f"there is no provider {params.provider_id[:100]!r}: expected one of {', '.join(known)}"
        )
    if params.api_type != route.api_type:
        raise InvalidRequestError(
            f"provider {route.name!r} speaks {route.api_type!r}, not {params.api_type[:100]!r}"
        )
    checked = _checked(params)
    door.ctx.models.routes.set(route.name, checked.base_url or "", checked.headers)
    return {}


def disable(door: AcpContext, params: ProviderParams) -> dict[str, Any]:
    """Use a provider no more; fine for one that is not there."""
    door.ctx.models.routes.switch_off(params.provider_id)
    return {}


def _checked(params: SetProviderParams) -> ProviderConfig:
    try:
        return ProviderConfig(base_url=params.base_url, headers=params.headers)
    except ValueError:
        # Not the text: it may hold a secret.
        raise InvalidRequestError(
            "baseUrl or headers cannot be sent: expected an address, and names with texts"
        ) from None
