"""``session.plugins.*``: the plugins of a session."""

from __future__ import annotations

import anyio.to_thread

from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionSkillsLoaded
from jumpseat_protocol.plugins import (
    PluginsReloadParams,
    SessionPlugin,
    SessionPluginsResult,
)
from jumpseat_protocol.sessions import SessionParams

LOCAL = "local"


async def list_plugins(ctx: Context, params: SessionParams) -> SessionPluginsResult:
    """Return the plugins of a session, including those of the process."""
    settings = ctx.registry.live(params.session_id).settings
    found = await anyio.to_thread.run_sync(ctx.process.plugins.read_all, settings)
    return SessionPluginsResult(
        plugins=[
            SessionPlugin(name=plugin.name, marketplace=LOCAL, version=plugin.version, enabled=True)
            for plugin in found
        ]
    )


def reload(ctx: Context, params: PluginsReloadParams) -> None:
    """Read the plugins of a session again: their skills and, by default, their MCP servers."""
    session = ctx.registry.live(params.session_id)
    skills = ctx.process.skills.for_session(session)
    skills.reload()
    session.emit(SessionSkillsLoaded(skills=skills.to_wire()))
    if params.reload_mcp:
        ctx.mcp.begin(session)
