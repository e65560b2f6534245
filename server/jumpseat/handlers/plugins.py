"""``plugins.*``: the plugins that the user has installed, and the marketplaces."""

from __future__ import annotations

import os
from pathlib import Path

from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.sessions.context import Context
from jumpseat.sessions.plugin_programs import programs_of
from jumpseat.store.plugins.installed_plugins import Installation, InstalledPlugin, update_each
from jumpseat.store.plugins.manifests import read_plugin, untrusted_text
from jumpseat.system.file_trees import existing_folder
from jumpseat_protocol.plugins import (
    BuiltinPluginsParams,
    InstalledPluginInfo,
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
    PluginNamesParams,
    PluginsInstallParams,
    PluginsInstallResult,
    PluginsListResult,
    PluginsUninstallParams,
    PluginsUpdateAllResult,
    PluginsUpdateParams,
    PluginsUpdateResult,
    PluginUpdate,
)
from jumpseat_protocol.server import EmptyParams

DIRECT = (
    "Plugins from folders and repositories directly are deprecated in the protocol: install the plugin from a"
    " marketplace where possible"
)


def list_(ctx: Context, params: EmptyParams) -> PluginsListResult:
    """Return the installed plugins, including disabled ones."""
    return PluginsListResult(plugins=[_info(plugin) for plugin in ctx.process.installed_plugins.all()])


async def install(ctx: Context, params: PluginsInstallParams) -> PluginsInstallResult:
    """Install a plugin for all sessions; it starts no program before a person has trusted it.

    Raises:
        InvalidRequestError: there is no such plugin, or it cannot be copied.
    """
    return await install_in(ctx, params.source, folder_of(params.working_directory))


async def install_in(ctx: Context, source: str, cwd: Path) -> PluginsInstallResult:
    """Install the plugin at ``source``, which may be relative to ``cwd``."""
    done = await ctx.process.installed_plugins.install(source, cwd)
    return PluginsInstallResult(
        plugin=_info(done.plugin),
        skills_installed=done.skills,
        post_install_message=_message(ctx, done.plugin),
        deprecation_warning=None if done.plugin.marketplace else DIRECT,
    )


async def uninstall(ctx: Context, params: PluginsUninstallParams) -> None:
    """Remove a plugin and its files.

    Raises:
        InvalidRequestError: the plugin is not installed.
    """
    installed = ctx.process.installed_plugins
    await installed.uninstall(installed.find(params.name, params.direct_source_id))


async def update(ctx: Context, params: PluginsUpdateParams) -> PluginsUpdateResult:
    """Copy a plugin from its source again.

    Raises:
        InvalidRequestError: the plugin is not installed, or its source is gone or invalid.
    """
    installed = ctx.process.installed_plugins
    done = await installed.update(installed.find(params.name))
    return PluginsUpdateResult(
        previous_version=done.previous_version, new_version=done.plugin.version, skills_installed=done.skills
    )


async def update_all(ctx: Context, params: EmptyParams) -> PluginsUpdateAllResult:
    """Update all plugins; the failure of one affects no other."""
    results = await update_each(ctx.process.installed_plugins)
    return PluginsUpdateAllResult(results=[_updated(plugin, done) for plugin, done in results])


async def enable(ctx: Context, params: PluginNamesParams) -> None:
    """Enable plugins; unknown names are ignored, as the protocol says."""
    await ctx.process.installed_plugins.switch(params.names, on=True)


async def disable(ctx: Context, params: PluginNamesParams) -> None:
    """Disable plugins; unknown names are ignored, as the protocol says."""
    await ctx.process.installed_plugins.switch(params.names, on=False)


def folder_of(working_directory: str | None) -> Path:
    """Return the folder to which relative paths of a request refer."""
    return Path.cwd() if working_directory is None else existing_folder("workingDirectory", working_directory)


def _info(plugin: InstalledPlugin) -> InstalledPluginInfo:
    return InstalledPluginInfo(
        name=plugin.name,
        marketplace=plugin.marketplace,
        version=plugin.version,
        enabled=plugin.enabled,
        direct_source_id=plugin.source_id,
    )


def _message(ctx: Context, plugin: InstalledPlugin) -> str | None:
    """Return the reason for which nothing of the plugin starts, if there is anything to start."""
    read = read_plugin(ctx.process.installed_plugins.folder_of(plugin))
    return untrusted_text(plugin.spec) if programs_of(read) and not plugin.trusted else None


def _updated(plugin: InstalledPlugin, done: Installation | JumpseatError) -> PluginUpdate:
    if isinstance(done, JumpseatError):
        return PluginUpdate(name=plugin.name, marketplace=plugin.marketplace, success=False, error=str(done))
    return PluginUpdate(
        name=plugin.name,
        marketplace=plugin.marketplace,
        success=True,
        previous_version=done.previous_version,
        new_version=done.plugin.version,
        skills_installed=done.skills,
    )


def builtin_set(ctx: Context, params: BuiltinPluginsParams) -> None:
    """Replace the plugins that an application brings for all sessions of the process.

    Raises:
        InvalidRequestError: a path is not absolute, or not a directory.
    """
    for path in params.paths:
        if "\0" in path or not Path(path).is_absolute():
            raise InvalidRequestError(f"paths: {path[:200]!r} is not an absolute path")
        if not os.path.isdir(path):
            raise InvalidRequestError(f"paths: {path[:200]!r} is not a directory")
    ctx.process.plugins.bundled = tuple(Path(path) for path in params.paths)


def marketplaces_list(ctx: Context, params: EmptyParams) -> MarketplacesListResult:
    """Return all marketplaces."""
    return MarketplacesListResult(
        marketplaces=[
            MarketplaceInfo(name=known.name, source=known.source.label, is_default=known.is_default)
            for known in ctx.process.installed_plugins.marketplaces.all()
        ]
    )


async def marketplaces_add(ctx: Context, params: MarketplaceAddParams) -> MarketplaceAddResult:
    """Add a marketplace.

    Raises:
        InvalidRequestError: the source does not exist, has no valid manifest, or its name is taken.
    """
    return await add_from(ctx, params.source, folder_of(params.working_directory))


async def add_from(ctx: Context, source: str, cwd: Path) -> MarketplaceAddResult:
    """Add the marketplace at ``source``, which may be relative to ``cwd``."""
    return MarketplaceAddResult(name=await ctx.process.installed_plugins.marketplaces.add(source, cwd))


async def marketplaces_remove(ctx: Context, params: MarketplaceRemoveParams) -> MarketplaceRemoveResult:
    """Remove a marketplace; with ``force`` also the plugins from it, which otherwise prevent the removal.

    Raises:
        InvalidRequestError: there is no such marketplace, or it is the default one.
    """
    installed = ctx.process.installed_plugins
    marketplaces = installed.marketplaces
    marketplace = marketplaces.find(params.name, "not registered")
    dependent = [plugin for plugin in installed.all() if plugin.marketplace == params.name]
    if dependent and not params.force and not marketplace.is_default:
        return MarketplaceRemoveResult(removed=False, dependent_plugins=[plugin.name for plugin in dependent])
    await marketplaces.remove(marketplace)
    for plugin in dependent:
        await installed.uninstall(plugin)
    return MarketplaceRemoveResult(removed=True)


async def marketplaces_browse(ctx: Context, params: MarketplaceParams) -> MarketplaceBrowseResult:
    """Return the plugins that a marketplace offers.

    Raises:
        InvalidRequestError: there is no such marketplace, or its manifest is invalid.
    """
    entries = await ctx.process.installed_plugins.marketplaces.browse(params.name)
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


async def marketplaces_refresh(ctx: Context, params: MarketplaceRefreshParams) -> MarketplaceRefreshResult:
    """Read marketplaces again; the failure of one affects no other.

    Raises:
        InvalidRequestError: there is no marketplace with the name in the request.
    """
    marketplaces = ctx.process.installed_plugins.marketplaces
    chosen = marketplaces.all() if params.name is None else [marketplaces.find(params.name)]
    results: list[MarketplaceRefresh] = []
    for marketplace in chosen:
        try:
            await marketplaces.refresh(marketplace)
            results.append(MarketplaceRefresh(name=marketplace.name, success=True))
        except JumpseatError as error:
            results.append(MarketplaceRefresh(name=marketplace.name, success=False, error=str(error)))
    return MarketplaceRefreshResult(results=results)
