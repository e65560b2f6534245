"""``plugins.*`` and ``session.plugins.*``: folders with skills, agents and MCP servers, and their marketplaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import StrictBool

from jumpseat_protocol.limits import PathText, PathTexts
from jumpseat_protocol.server import EmptyParams, SuccessResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class BuiltinPluginsParams(WireModel):
    """The absolute paths of all plugins that an application brings for the sessions of the process."""

    paths: PathTexts
    """The folders of the plugins, as absolute paths."""


class SessionPlugin(WireModel):
    """``marketplace`` is the origin of the plugin: ``local`` is a folder that a client or the operator named."""

    name: str
    """The name of the plugin."""
    marketplace: str
    """The marketplace that it comes from, or ``local``."""
    version: str | None = None
    """Its version."""
    enabled: StrictBool
    direct_source_id: str | None = None
    """The id of the folder or repository that it was installed from."""


class SessionPluginsResult(WireModel):
    plugins: list[SessionPlugin]
    """The plugins."""


class PluginsReloadParams(WireModel):
    """Parts that are switched off are left unchanged. ``defer_repo_hooks`` leaves out the hooks of the project."""

    session_id: str
    reload_mcp: StrictBool = True
    """Whether MCP servers are read again."""
    reload_custom_agents: StrictBool = True
    """Whether agents are read again."""
    reload_hooks: StrictBool = True
    """Whether hooks are read again."""
    defer_repo_hooks: StrictBool = False
    """Whether the hooks of the project are left out."""


class InstalledPluginInfo(WireModel):
    """An installed plugin. ``marketplace`` is empty if it comes from a folder or repository directly."""

    name: str
    """The name of the plugin."""
    marketplace: str
    """The marketplace that it comes from; empty for a folder or repository."""
    version: str | None = None
    """Its version."""
    enabled: StrictBool
    direct_source_id: str | None = None
    """The id of the folder or repository that it was installed from."""


class PluginsListResult(WireModel):
    plugins: list[InstalledPluginInfo]
    """The plugins."""


class PluginsInstallParams(WireModel):
    """``source`` is ``plugin@marketplace``, a folder, ``owner/repo`` or the URL of a git repository.

    Relative paths are relative to ``working_directory``, by default that of the server.
    """

    source: str
    """``plugin@marketplace``, a folder, ``owner/repo``, or the URL of a git repository."""
    working_directory: PathText | None = None


class PluginsInstallResult(WireModel):
    plugin: InstalledPluginInfo
    """The plugin."""
    skills_installed: int
    """How many skills it brings."""
    post_install_message: str | None = None
    """What the plugin says after its installation."""
    deprecation_warning: str | None = None
    """What is out of date in the request."""


class PluginsUninstallParams(WireModel):
    """``name`` is the plugin's name or ``plugin@marketplace``."""

    name: str
    """The plugin's name, or ``plugin@marketplace``."""
    direct_source_id: str | None = None
    """The id of the folder or repository that it was installed from."""


class PluginsUpdateParams(WireModel):
    name: str
    """The plugin's name, or ``plugin@marketplace``."""


class PluginsUpdateResult(WireModel):
    previous_version: str | None = None
    """The version before."""
    new_version: str | None = None
    """The version now."""
    skills_installed: int
    """How many skills it brings."""


class PluginUpdate(WireModel):
    """The result of updating one of all plugins: ``error`` is set without ``success``."""

    name: str
    """The name of the plugin."""
    marketplace: str
    """The marketplace that it comes from."""
    success: StrictBool
    error: str | None = None
    previous_version: str | None = None
    """The version before."""
    new_version: str | None = None
    """The version now."""
    skills_installed: int | None = None
    """How many skills it brings."""


class PluginsUpdateAllResult(WireModel):
    results: list[PluginUpdate]
    """What was done with each plugin."""


class PluginNamesParams(WireModel):
    """Names of plugins, or ``plugin@marketplace``; unknown names are ignored."""

    names: list[str]
    """Names of plugins, or ``plugin@marketplace``."""
    working_directory: PathText | None = None


class MarketplaceInfo(WireModel):
    """A marketplace; a default one cannot be removed."""

    name: str
    """The name of the marketplace."""
    source: str
    """The folder or repository that it is read from."""
    is_default: StrictBool
    """Whether it belongs to the server, so that it cannot be removed."""


class MarketplacesListResult(WireModel):
    marketplaces: list[MarketplaceInfo]
    """The marketplaces."""


class MarketplaceAddParams(WireModel):
    """``source`` is a folder, ``owner/repo`` or the URL of a git repository."""

    source: str
    """A folder, ``owner/repo``, or the URL of a git repository."""
    working_directory: PathText | None = None


class MarketplaceAddResult(WireModel):
    name: str
    """The name that the marketplace has given itself."""


class MarketplaceRemoveParams(WireModel):
    """With ``force``, the plugins of the marketplace are uninstalled, too."""

    name: str
    """The name of the marketplace."""
    force: StrictBool = False
    """Whether its plugins are uninstalled, too."""


class MarketplaceRemoveResult(WireModel):
    """``dependent_plugins`` are the installed plugins that kept the marketplace from being removed."""

    removed: StrictBool
    """Whether it was removed."""
    dependent_plugins: list[str] | None = None
    """The installed plugins that keep it."""


class MarketplaceParams(WireModel):
    name: str
    """The name of the marketplace."""


class MarketplacePlugin(WireModel):
    """A plugin that a marketplace offers."""

    name: str
    """The name of the plugin."""
    description: str | None = None
    version: str | None = None
    """Its version."""


class MarketplaceBrowseResult(WireModel):
    plugins: list[MarketplacePlugin]
    """The plugins."""


class MarketplaceRefreshParams(WireModel):
    """Without ``name``, all marketplaces are refreshed."""

    name: str | None = None
    """The name of the marketplace; all of them without it."""


class MarketplaceRefresh(WireModel):
    """The outcome for one marketplace."""

    name: str
    """The name of the marketplace."""
    success: StrictBool
    error: str | None = None


class MarketplaceRefreshResult(WireModel):
    results: list[MarketplaceRefresh]
    """What was done with each marketplace."""


class SessionPluginsInstallParams(SessionParams):
    """``source`` as for ``plugins.install``, relative to the session's working directory."""

    source: str
    """``plugin@marketplace``, a folder, ``owner/repo``, or the URL of a git repository."""


class SessionPluginsUninstallParams(PluginsUninstallParams):
    session_id: str


class SessionPluginsUpdateParams(PluginsUpdateParams):
    session_id: str


class SessionPluginNamesParams(SessionParams):
    names: list[str]
    """Names of plugins, or ``plugin@marketplace``."""


class SessionMarketplaceAddParams(SessionParams):
    source: str
    """A folder, ``owner/repo``, or the URL of a git repository."""


class SessionMarketplaceRemoveParams(MarketplaceRemoveParams):
    session_id: str


class SessionMarketplaceParams(MarketplaceParams):
    session_id: str


class SessionMarketplaceRefreshParams(MarketplaceRefreshParams):
    session_id: str


class PluginParams(WireModel):
    """``name`` is the plugin's name or ``plugin@marketplace``."""

    name: str
    """The plugin's name, or ``plugin@marketplace``."""
    direct_source_id: str | None = None
    """The id of the folder or repository that it was installed from."""


class PluginProgram(WireModel):
    """A program that a plugin starts, or a server that it connects to: ``kind`` and ``name`` say when."""

    kind: str
    name: str
    """When it starts: the name of the hook or server."""
    command: str
    """The command line, or the address of the server."""


class PluginProgramsResult(WireModel):
    """The programs of a plugin. ``digest`` is that of its files: an agreement is for the files that were shown."""

    name: str
    """The name of the plugin."""
    folder: str
    """The folder of the plugin."""
    trusted: StrictBool
    """Whether a person has agreed to these files."""
    digest: str
    """The digest of the plugin's files."""
    programs: list[PluginProgram]
    """The programs."""


class PluginTrustParams(PluginParams):
    """``digest`` is that of ``jumpseat.plugins.programs``, whose result a person has seen and agreed to.

    ``trusted: false`` withdraws the agreement.
    """

    digest: str
    """The digest of the files that a person has agreed to."""
    trusted: StrictBool = True
    """Whether the person agrees."""


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.plugins.programs": Method(
        PluginParams, PluginProgramsResult, "List the programs that a plugin starts."
    ),
    "jumpseat.plugins.trust": Method(
        PluginTrustParams, SuccessResult, "Agree to the programs of a plugin, or withdraw that."
    ),
    "session.plugins.list": Method(SessionParams, SessionPluginsResult, "List the plugins of the session."),
    "session.plugins.reload": Method(PluginsReloadParams, None, "Read the plugins of the session again."),
    "session.plugins.install": Method(
        SessionPluginsInstallParams, PluginsInstallResult, "Install a plugin, and use it in the session."
    ),
    "session.plugins.uninstall": Method(SessionPluginsUninstallParams, None, "Remove a plugin."),
    "session.plugins.update": Method(SessionPluginsUpdateParams, PluginsUpdateResult, "Update a plugin."),
    "session.plugins.enable": Method(SessionPluginNamesParams, None, "Switch plugins on."),
    "session.plugins.disable": Method(SessionPluginNamesParams, None, "Switch plugins off."),
    "session.plugins.marketplaces.list": Method(SessionParams, MarketplacesListResult, "List the marketplaces."),
    "session.plugins.marketplaces.add": Method(
        SessionMarketplaceAddParams, MarketplaceAddResult, "Add a marketplace."
    ),
    "session.plugins.marketplaces.remove": Method(
        SessionMarketplaceRemoveParams, MarketplaceRemoveResult, "Remove a marketplace."
    ),
    "session.plugins.marketplaces.browse": Method(
        SessionMarketplaceParams, MarketplaceBrowseResult, "List the plugins of a marketplace."
    ),
    "session.plugins.marketplaces.refresh": Method(
        SessionMarketplaceRefreshParams, MarketplaceRefreshResult, "Read marketplaces again."
    ),
    "plugins.builtin.set": Method(
        BuiltinPluginsParams, None, "Set the plugins that an application brings for all sessions."
    ),
    "plugins.list": Method(EmptyParams, PluginsListResult, "List the installed plugins."),
    "plugins.install": Method(PluginsInstallParams, PluginsInstallResult, "Install a plugin."),
    "plugins.uninstall": Method(PluginsUninstallParams, None, "Remove a plugin."),
    "plugins.update": Method(PluginsUpdateParams, PluginsUpdateResult, "Update a plugin."),
    "plugins.updateAll": Method(EmptyParams, PluginsUpdateAllResult, "Update all plugins."),
    "plugins.enable": Method(PluginNamesParams, None, "Switch plugins on."),
    "plugins.disable": Method(PluginNamesParams, None, "Switch plugins off."),
    "plugins.marketplaces.list": Method(EmptyParams, MarketplacesListResult, "List the marketplaces."),
    "plugins.marketplaces.add": Method(MarketplaceAddParams, MarketplaceAddResult, "Add a marketplace."),
    "plugins.marketplaces.remove": Method(
        MarketplaceRemoveParams, MarketplaceRemoveResult, "Remove a marketplace."
    ),
    "plugins.marketplaces.browse": Method(
        MarketplaceParams, MarketplaceBrowseResult, "List the plugins of a marketplace."
    ),
    "plugins.marketplaces.refresh": Method(
        MarketplaceRefreshParams, MarketplaceRefreshResult, "Read marketplaces again."
    ),
}
