"""``session.instructions.getSources``: the instruction files that hold for a session."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat.store.instructions import instruction_sources
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import InstructionSourcesResult


def get_sources(ctx: Context, params: SessionParams) -> InstructionSourcesResult:
    """The files that the next prompt will be sent with, in that order."""
    settings = ctx.registry.live(params.session_id).settings
    return InstructionSourcesResult(
        sources=[
            {
                "id": str(source.path),
                "label": source.path.name,
                "sourcePath": str(source.path),
                "content": source.text,
                "type": "repo",
                "location": "working-directory" if source.path.is_relative_to(settings.cwd) else "repository",
            }
            for source in instruction_sources(settings)
        ]
    )
