"""``session.permissions.folderTrust.*``: the folders that the user trusts."""

from __future__ import annotations

import anyio.to_thread

from jumpseat.sessions.context import Context
from jumpseat_protocol.permission_methods import (
    PermissionPathParams,
    TrustedResult,
)
from jumpseat_protocol.server import SuccessResult


def is_trusted(ctx: Context, params: PermissionPathParams) -> TrustedResult:
    """Return whether the user trusts a folder."""
    session = ctx.registry.live(params.session_id)
    return TrustedResult(trusted=ctx.process.trust.is_trusted(session.settings.cwd / params.path))


async def add_trusted(ctx: Context, params: PermissionPathParams) -> SuccessResult:
    """Trust a folder in all sessions, and read the permission rules of this session again."""
    session = ctx.registry.live(params.session_id)
    await anyio.to_thread.run_sync(ctx.process.trust.add, session.settings.cwd / params.path)
    session.permissions.reload_rules()
    return SuccessResult()
