"""``auth.getStatus``: the login of the process."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import AuthStatusResult, EmptyParams


async def get_status(ctx: Context, params: EmptyParams) -> AuthStatusResult:
    """Return the login at the Copilot API; without a token, the configured provider."""
    return await ctx.models.auth_status()
