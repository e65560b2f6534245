"""``session.lsp.*``: the language servers of a session."""

from __future__ import annotations

from pathlib import Path

from jumpseat.sessions.context import Context
from jumpseat_protocol.lsp import LspInitializeParams


async def initialize(ctx: Context, params: LspInitializeParams) -> None:
    """Look for the language servers of a session again. They start with the first change of one of their files."""
    session = ctx.registry.live(params.session_id)
    folder = params.git_root or params.working_directory
    project = session.settings.cwd if folder is None else session.settings.cwd / Path(folder)
    await ctx.process.lsp.get(session).initialize(project, force=params.force)
