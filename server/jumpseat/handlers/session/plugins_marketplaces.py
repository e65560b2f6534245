"""``session.plugins.marketplaces.*``: the user's marketplaces, for a session and its working directory."""

from __future__ import annotations

from jumpseat.handlers import plugins_marketplaces
from jumpseat.sessions.context import Context
from jumpseat_protocol.plugins import (
    MarketplaceAddResult,
    MarketplaceBrowseResult,
    MarketplaceRefreshResult,
    MarketplaceRemoveResult,
    MarketplacesListResult,
    SessionMarketplaceAddParams,
    SessionMarketplaceParams,
    SessionMarketplaceRefreshParams,
    SessionMarketplaceRemoveParams,
)
from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.sessions import SessionParams


def list_marketplaces(ctx: Context, params: SessionParams) -> MarketplacesListResult:
    """Return all marketplaces."""
    ctx.registry.live(params.session_id)
    return plugins_marketplaces.list_marketplaces(ctx, EmptyParams())


async def add(ctx: Context, params: SessionMarketplaceAddParams) -> MarketplaceAddResult:
    """Add a marketplace, whose path may be relative to the session's working directory."""
    cwd = ctx.registry.live(params.session_id).settings.cwd
    return await plugins_marketplaces.add_from(ctx, params.source, cwd)


async def remove(ctx: Context, params: SessionMarketplaceRemoveParams) -> MarketplaceRemoveResult:
    """Remove a marketplace; see ``plugins.marketplaces.remove``."""
    ctx.registry.live(params.session_id)
    return await plugins_marketplaces.remove(ctx, params)


async def browse(ctx: Context, params: SessionMarketplaceParams) -> MarketplaceBrowseResult:
    """Return the plugins that a marketplace offers."""
    ctx.registry.live(params.session_id)
    return await plugins_marketplaces.browse(ctx, params)


async def refresh(ctx: Context, params: SessionMarketplaceRefreshParams) -> MarketplaceRefreshResult:
    """Read marketplaces again."""
    ctx.registry.live(params.session_id)
    return await plugins_marketplaces.refresh(ctx, params)
