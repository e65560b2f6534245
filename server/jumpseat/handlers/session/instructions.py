"""``session.instructions.*``: the instruction files of a session."""

from __future__ import annotations

from jumpseat.handlers.instructions import describe_sources
from jumpseat.sessions.context import Context
from jumpseat_protocol.instructions import InstructionSourcesResult
from jumpseat_protocol.sessions import SessionParams


def get_sources(ctx: Context, params: SessionParams) -> InstructionSourcesResult:
    """Return the instruction files that the next prompt is sent with, in that order."""
    settings = ctx.registry.live(params.session_id).settings
    return InstructionSourcesResult(sources=describe_sources(ctx.process.instructions, settings))


def reload(ctx: Context, params: SessionParams) -> InstructionSourcesResult:
    """Return the same as :func:`get_sources`: the files are read again for each prompt."""
    return get_sources(ctx, params)
