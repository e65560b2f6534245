"""``authenticate`` and ``logout``. Nobody logs in here: keys come from the environment or the configuration."""

from __future__ import annotations

from typing import Any

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.methods.initialize import AUTH_METHOD
from jumpseat.acp.translation.params import AuthenticateParams, Nothing
from jumpseat.errors import AuthenticationRequiredError, InvalidRequestError


async def authenticate(ctx: AcpContext, params: AuthenticateParams) -> dict[str, Any]:
    """Check that a model is configured.

    Raises:
        InvalidRequestError: the method is unknown.
        AuthenticationRequiredError: no model is configured; the message names the settings.
    """
    if params.method_id != AUTH_METHOD["id"]:
        raise InvalidRequestError(
            f"unknown authentication method {params.method_id[:100]!r}: expected {AUTH_METHOD['id']!r}"
        )
    models = ctx.server.models
    if (
        not (models.adapters.configured or models.adapters.fallback)
        and not (await models.auth_status()).is_authenticated
    ):
        raise AuthenticationRequiredError(
            "no model is configured: run 'jumpseat setup' in a terminal, or set OPENAI_API_KEY, ANTHROPIC_API_KEY"
            " or COPILOT_PROVIDER_BASE_URL"
        )
    return {}


async def status(ctx: AcpContext, _params: Nothing) -> dict[str, Any]:
    """Return whether there is a model to call, and to the operator's clients the accounts or providers as well."""
    found = await ctx.server.models.auth_status()
    adapters = ctx.server.models.adapters
    labels = [found.login] if found.login else [*adapters.configured, *adapters.fallback]
    labels = labels if ctx.server.sees_all else []
    state = "authenticated" if found.is_authenticated else "unauthenticated"
    return {"state": state, "accounts": [{"label": label} for label in labels]}


def logout(ctx: AcpContext, _params: Nothing) -> dict[str, Any]:
    """Forget the credentials that editors have set by ``providers/set``. Those of the operator stay."""
    ctx.server.require_all("logout")
    ctx.server.models.routes.reset()
    return {}
