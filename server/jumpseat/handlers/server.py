"""``connect`` and ``ping``: the methods without a namespace."""

from __future__ import annotations

import logging
import time

from jumpseat.agent.clock import utc_now
from jumpseat.errors import AuthenticationRequiredError
from jumpseat.sessions.context import Context
from jumpseat.system.log_fields import fields
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.server import ConnectParams, ConnectResult, PingParams, PingResult
from jumpseat_protocol.version import __version__

log = logging.getLogger(__name__)


def connect(ctx: Context, params: ConnectParams) -> ConnectResult:
    """Check the connection token, if the server requires one, and return the version of the protocol.

    Raises:
        AuthenticationRequiredError: the token is missing, wrong or revoked, or not that of an earlier handshake.
    """
    access = ctx.process.gate.access_of(params.token)
    # Sessions that the connection is attached to belong to its first token.
    if access is None or ctx.connection.access not in (None, access):
        log.warning(
            "refused a client: wrong or missing connection token", extra=fields(client=ctx.connection.label)
        )
        raise AuthenticationRequiredError("AUTHENTICATION_FAILED: wrong or missing connection token")
    ctx.connection.access = access
    ctx.connection.admit()
    ctx.connection.handshake_done = True
    ctx.connection.wants_telemetry = params.enable_git_hub_telemetry_forwarding or False
    ctx.connection.protocol = ctx.process.protocol or PROTOCOL_VERSION
    return ConnectResult(protocol_version=ctx.connection.protocol, version=__version__)


def ping(ctx: Context, params: PingParams) -> PingResult:
    """Answer at once. SDKs that do not send ``connect`` (0.2 and 0.3) read the timestamp as Unix milliseconds."""
    now = utc_now() if ctx.connection.handshake_done else int(time.time() * 1000)
    version = ctx.connection.protocol or PROTOCOL_VERSION
    return PingResult(message=f"pong: {params.message or ''}", timestamp=now, protocol_version=version)
