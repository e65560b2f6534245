"""``ping``: a liveness check."""

from __future__ import annotations

import time

from jumpseat.agent.clock import utc_now
from jumpseat.sessions.context import Context
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.server import PingParams, PingResult


def ping(ctx: Context, params: PingParams) -> PingResult:
    """Answer at once. SDKs that do not send ``connect`` (0.2 and 0.3) read the timestamp as Unix milliseconds."""
    now = utc_now() if ctx.connection.handshake_done else int(time.time() * 1000)
    version = ctx.connection.protocol or PROTOCOL_VERSION
    return PingResult(message=f"pong: {params.message or ''}", timestamp=now, protocol_version=version)
