"""``status.get``: versions."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.server import EmptyParams, StatusResult
from jumpseat_protocol.version import __version__


def get(ctx: Context, params: EmptyParams) -> StatusResult:
    return StatusResult(version=__version__, protocol_version=ctx.connection.protocol or PROTOCOL_VERSION)
