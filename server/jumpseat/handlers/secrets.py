"""``secrets.addFilterValues``: what must not be told."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import AddFilterValuesParams, OkResult


def add_filter_values(ctx: Context, params: AddFilterValuesParams) -> OkResult:
    """Hide these values, in all sessions of the process, until it ends."""
    ctx.process.secrets.add(params.values)
    return OkResult()
