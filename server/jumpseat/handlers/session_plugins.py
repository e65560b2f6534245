"""``session.plugins.*`` and ``plugins.builtin.set``: plugins that lie in folders."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread

from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.context import Context
from jumpseat_protocol.events import SessionSkillsLoaded
from jumpseat_protocol.plugins import (
    BuiltinPluginsParams,
    PluginsReloadParams,
    SessionPlugin,
    SessionPluginsResult,
)
from jumpseat_protocol.sessions import SessionParams

LOCAL = "local"


def set_builtin(ctx: Context, params: BuiltinPluginsParams) -> None:
    """Say which plugins an application brings; those that were set before are no more.

    Raises:
        InvalidRequestError: a path is not absolute, or no folder.
    """
    for path in params.paths:
        if "\0" in path or not Path(path).is_absolute():
            raise InvalidRequestError(f"paths: {path[:200]!r} is not an absolute path")
        if not Path(path).is_dir():
            raise InvalidRequestError(f"paths: {path[:200]!r} is not a directory")
    ctx.process.plugins.bundled = tuple(Path(path) for path in params.paths)


async def list_plugins(ctx: Context, params: SessionParams) -> SessionPluginsResult:
    """The plugins of a session, those of the process included."""
    settings = ctx.registry.live(params.session_id).settings
    found = await anyio.to_thread.run_sync(ctx.process.plugins.of, settings)
    return SessionPluginsResult(
        plugins=[
            SessionPlugin(name=one.name, marketplace=LOCAL, version=one.version, enabled=True) for one in found
        ]
    )


def reload(ctx: Context, params: PluginsReloadParams) -> None:
    """Look again what the plugins of a session bring."""
    session = ctx.registry.live(params.session_id)
    skills = ctx.process.skills.of(session)
    skills.reload()
    session.emit(SessionSkillsLoaded(skills=skills.listed()))
    if params.reload_mcp:
        ctx.mcp.begin(session)
