"""``plugins.marketplaces.*``: folders and repositories with lists of plugins."""

from __future__ import annotations

from pathlib import Path

from jumpseat.errors import JumpseatError
from jumpseat.handlers.plugins import folder_of
from jumpseat.sessions.context import Context
from jumpseat_protocol.plugins import (
    MarketplaceAddParams,
    MarketplaceAddResult,
    MarketplaceBrowseResult,
    MarketplaceInfo,
    MarketplaceParams,
    MarketplacePlugin,
    MarketplaceRefresh,
    MarketplaceRefreshParams,
    MarketplaceRefreshResult,
    MarketplaceRemoveParams,
    MarketplaceRemoveResult,
    MarketplacesListResult,
)
from jumpseat_protocol.server import EmptyParams


def list_marketplaces(ctx: Context, params: EmptyParams) -> MarketplacesListResult:
    """Return all marketplaces."""
    return MarketplacesListResult(
        marketplaces=[
            MarketplaceInfo(name=known.name, source=known.source.label, is_default=known.is_default)
            for known in ctx.process.marketplaces.all()
        ]
    )


async def add(ctx: Context, params: MarketplaceAddParams) -> MarketplaceAddResult:
    """Add a marketplace.

    Raises:
        InvalidRequestError: the source does not exist, has no valid manifest, or its name is taken.
    """
    return await add_from(ctx, params.source, folder_of(params.working_directory))


async def add_from(ctx: Context, source: str, cwd: Path) -> MarketplaceAddResult:
    """Add the marketplace at ``source``, which may be relative to ``cwd``."""
    return MarketplaceAddResult(name=await ctx.process.marketplaces.add(source, cwd))


async def remove(ctx: Context, params: MarketplaceRemoveParams) -> MarketplaceRemoveResult:
    """Remove a marketplace; with ``force`` also the plugins from it, which otherwise prevent the removal.

    Raises:
        InvalidRequestError: there is no such marketplace, or it is the default one.
    """
    marketplaces, installed = ctx.process.marketplaces, ctx.process.installed_plugins
    marketplace = marketplaces.find(params.name, "not registered")
    dependent = [plugin for plugin in installed.all() if plugin.marketplace == params.name]
    if dependent and not params.force and not marketplace.is_default:
        return MarketplaceRemoveResult(removed=False, dependent_plugins=[plugin.name for plugin in dependent])
    await marketplaces.remove(marketplace)
    for plugin in dependent:
        await installed.uninstall(plugin)
    return MarketplaceRemoveResult(removed=True)


async def browse(ctx: Context, params: MarketplaceParams) -> MarketplaceBrowseResult:
    """Return the plugins that a marketplace offers.

    Raises:
        InvalidRequestError: there is no such marketplace, or its manifest is invalid.
    """
    entries = await ctx.process.marketplaces.browse(params.name)
    return MarketplaceBrowseResult(
        plugins=[
            MarketplacePlugin(
                name=entry["name"],
                description=text if isinstance(text := entry.get("description"), str) else None,
                version=version if isinstance(version := entry.get("version"), str) else None,
            )
            for entry in entries
        ]
    )


async def refresh(ctx: Context, params: MarketplaceRefreshParams) -> MarketplaceRefreshResult:
    """Read marketplaces again; the failure of one affects no other.

    Raises:
        InvalidRequestError: there is no marketplace with the name in the request.
    """
    marketplaces = ctx.process.marketplaces
    chosen = marketplaces.all() if params.name is None else [marketplaces.find(params.name)]
    results: list[MarketplaceRefresh] = []
    for marketplace in chosen:
        try:
            await marketplaces.refresh(marketplace)
            results.append(MarketplaceRefresh(name=marketplace.name, success=True))
        except JumpseatError as error:
            results.append(MarketplaceRefresh(name=marketplace.name, success=False, error=str(error)))
    return MarketplaceRefreshResult(results=results)
