"""``connect``: the handshake of protocol 3."""

from __future__ import annotations

import hmac

from jumpseat.errors import AuthenticationRequiredError
from jumpseat.sessions.context import Context
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.server import ConnectParams, ConnectResult
from jumpseat_protocol.version import __version__


def connect(ctx: Context, params: ConnectParams) -> ConnectResult:
    """Check the connection token, if the server has one, and return the version of the protocol.

    Raises:
        AuthenticationRequiredError: the token is missing or wrong.
    """
    expected = ctx.process.connection_token
    if expected is not None and not hmac.compare_digest((params.token or "").encode(), expected.encode()):
        raise AuthenticationRequiredError("AUTHENTICATION_FAILED: wrong or missing connection token")
    ctx.connection.authenticated = True
    ctx.connection.handshake_done = True
    ctx.connection.protocol = ctx.process.protocol or PROTOCOL_VERSION
    return ConnectResult(protocol_version=ctx.connection.protocol, version=__version__)
