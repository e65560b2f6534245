"""``session.plugins.*``: the plugins of a session.

Installed plugins belong to the user: changes concern all sessions, and take effect in this session at once.
"""

from __future__ import annotations

import anyio.to_thread

from jumpseat.agent.session.session import Session
from jumpseat.handlers import plugins
from jumpseat.handlers.session.agent import reload_agents
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionSkillsLoaded
from jumpseat_protocol.plugins import (
    MarketplaceAddResult,
    MarketplaceBrowseResult,
    MarketplaceRefreshResult,
    MarketplaceRemoveResult,
    MarketplacesListResult,
    PluginsInstallResult,
    PluginsReloadParams,
    PluginsUpdateResult,
    SessionMarketplaceAddParams,
    SessionMarketplaceParams,
    SessionMarketplaceRefreshParams,
    SessionMarketplaceRemoveParams,
    SessionPlugin,
    SessionPluginNamesParams,
    SessionPluginsInstallParams,
    SessionPluginsResult,
    SessionPluginsUninstallParams,
    SessionPluginsUpdateParams,
)
from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.sessions import SessionParams

LOCAL = "local"


async def list_(ctx: Context, params: SessionParams) -> SessionPluginsResult:
    """Return the plugins of a session, including those of the process and disabled ones of the user."""
    settings = ctx.registry.live(params.session_id).settings
    found = await anyio.to_thread.run_sync(ctx.process.plugins.read_all, settings)
    active = [
        SessionPlugin(
            name=plugin.name,
            marketplace=LOCAL if plugin.marketplace is None else plugin.marketplace,
            version=plugin.version,
            enabled=True,
            direct_source_id=plugin.source_id,
        )
        for plugin in found
    ]
    disabled = [
        SessionPlugin(
            name=plugin.name,
            marketplace=plugin.marketplace,
            version=plugin.version,
            enabled=False,
            direct_source_id=plugin.source_id,
        )
        for plugin in ctx.process.installed_plugins.all()
        if not plugin.enabled
    ]
    return SessionPluginsResult(plugins=[*active, *disabled])


async def reload(ctx: Context, params: PluginsReloadParams) -> None:
    """Read the plugins of a session again: their skills and, by default, their agents, MCP servers and hooks."""
    session = ctx.registry.live(params.session_id)
    if params.reload_custom_agents:
        await reload_agents(ctx, session)
    if params.reload_hooks:
        await session.hooks.commands.reload(project=not params.defer_repo_hooks)
    _reload_skills(ctx, session)
    if params.reload_mcp:
        ctx.mcp.begin(session)


async def install(ctx: Context, params: SessionPluginsInstallParams) -> PluginsInstallResult:
    """Install a plugin, whose path may be relative to the session's working directory."""
    session = ctx.registry.live(params.session_id)
    result = await plugins.install_in(ctx, params.source, session.settings.cwd)
    await _reload(ctx, session)
    return result


async def uninstall(ctx: Context, params: SessionPluginsUninstallParams) -> None:
    """Remove an installed plugin."""
    session = ctx.registry.live(params.session_id)
    await plugins.uninstall(ctx, params)
    await _reload(ctx, session)


async def update(ctx: Context, params: SessionPluginsUpdateParams) -> PluginsUpdateResult:
    """Copy an installed plugin from its source again."""
    session = ctx.registry.live(params.session_id)
    result = await plugins.update(ctx, params)
    await _reload(ctx, session)
    return result


async def enable(ctx: Context, params: SessionPluginNamesParams) -> None:
    """Enable installed plugins."""
    session = ctx.registry.live(params.session_id)
    await ctx.process.installed_plugins.switch(params.names, on=True)
    await _reload(ctx, session)


async def disable(ctx: Context, params: SessionPluginNamesParams) -> None:
    """Disable installed plugins."""
    session = ctx.registry.live(params.session_id)
    await ctx.process.installed_plugins.switch(params.names, on=False)
    await _reload(ctx, session)


async def _reload(ctx: Context, session: Session) -> None:
    """Bring an open session in step with changed plugins."""
    await reload(ctx, PluginsReloadParams(session_id=session.id))
    await ctx.process.lsp.get(session).initialize()


def _reload_skills(ctx: Context, session: Session) -> None:
    skills = ctx.process.skills.for_session(session)
    skills.reload()
    session.emit(SessionSkillsLoaded(skills=skills.to_wire()))


def marketplaces_list(ctx: Context, params: SessionParams) -> MarketplacesListResult:
    """Return all marketplaces."""
    ctx.registry.live(params.session_id)
    return plugins.marketplaces_list(ctx, EmptyParams())


async def marketplaces_add(ctx: Context, params: SessionMarketplaceAddParams) -> MarketplaceAddResult:
    """Add a marketplace, whose path may be relative to the session's working directory."""
    cwd = ctx.registry.live(params.session_id).settings.cwd
    return await plugins.add_from(ctx, params.source, cwd)


async def marketplaces_remove(ctx: Context, params: SessionMarketplaceRemoveParams) -> MarketplaceRemoveResult:
    """Remove a marketplace; see ``plugins.marketplaces.remove``."""
    ctx.registry.live(params.session_id)
    return await plugins.marketplaces_remove(ctx, params)


async def marketplaces_browse(ctx: Context, params: SessionMarketplaceParams) -> MarketplaceBrowseResult:
    """Return the plugins that a marketplace offers."""
    ctx.registry.live(params.session_id)
    return await plugins.marketplaces_browse(ctx, params)


async def marketplaces_refresh(ctx: Context, params: SessionMarketplaceRefreshParams) -> MarketplaceRefreshResult:
    ctx.registry.live(params.session_id)
    return await plugins.marketplaces_refresh(ctx, params)
