"""``auth.getStatus``: whether a model can be reached, and as whom."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import AuthStatusResult, EmptyParams


async def get_status(ctx: Context, params: EmptyParams) -> AuthStatusResult:
    """The login of the Copilot API where there is a token, else what is configured."""
    return await ctx.models.auth_status()
