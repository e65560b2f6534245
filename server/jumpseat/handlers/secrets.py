"""``secrets.addFilterValues``: values to mask."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import AddFilterValuesParams, OkResult


def add_filter_values(ctx: Context, params: AddFilterValuesParams) -> OkResult:
    """Mask these values in all sessions, until the process ends."""
    ctx.process.secrets.register(params.values)
    return OkResult()
