"""``authenticate`` and ``logout``. There is no login of ours: keys are in the environment or the configuration."""

from __future__ import annotations

from typing import Any

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.methods.initialize import AUTH_METHOD
from jumpseat.acp.translation.params import AuthenticateParams, Nothing
from jumpseat.errors import AuthenticationRequiredError, InvalidRequestError


async def authenticate(door: AcpContext, params: AuthenticateParams) -> dict[str, Any]:
    """Say whether there is a model to be called.

    Raises:
        AuthenticationRequiredError: there is none; the text says what to set.
    """
    if params.method_id != AUTH_METHOD["id"]:
        raise InvalidRequestError(f"there is no method {params.method_id[:100]!r}: expected {AUTH_METHOD['id']!r}")
    models = door.ctx.models
    if (
        not (models.adapters.configured or models.adapters.fallback)
        and not (await models.auth_status()).is_authenticated
    ):
        raise AuthenticationRequiredError(
            "no model is configured: set OPENAI_API_KEY, ANTHROPIC_API_KEY or COPILOT_PROVIDER_BASE_URL,"
            " or name an adapter in config.toml"
        )
    return {}


def logout(door: AcpContext, _params: Nothing) -> dict[str, Any]:
    """Forget the credentials that came over this connection; those of the operator stay."""
    door.ctx.models.routes.reset()
    return {}
