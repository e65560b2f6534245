"""``sessionFs.setProvider``: a client in whose virtual file system its sessions are stored."""

from __future__ import annotations

from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.session_fs import SetFsProviderParams


def set_provider(ctx: Context, params: SetFsProviderParams) -> SuccessResult:
    """Store the sessions of this connection in the client's file system, in place of an earlier one.

    Raises:
        InvalidRequestError: a session is open that is stored elsewhere, or the path is empty.
    """
    if not params.session_state_path:
        raise InvalidRequestError("sessionStatePath is empty")
    if ctx.registry.has_sessions_beside(ctx.connection):
        raise InvalidRequestError(
            "cannot set the file system while sessions are open: call sessionFs.setProvider before creating any"
        )
    ctx.connection.session_fs = params
    return SuccessResult()
