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


class SessionPlugin(WireModel):
    """``marketplace`` is the origin of the plugin: ``local`` is a folder that a client or the operator named."""

    name: str
    marketplace: str
    version: str | None = None
    enabled: StrictBool
    direct_source_id: str | None = None


class SessionPluginsResult(WireModel):
    plugins: list[SessionPlugin]


class PluginsReloadParams(WireModel):
    """Parts that are switched off are left unchanged. ``defer_repo_hooks`` leaves out the hooks of the project."""

    session_id: str
    reload_mcp: StrictBool = True
    reload_custom_agents: StrictBool = True
    reload_hooks: StrictBool = True
    defer_repo_hooks: StrictBool = False


class InstalledPluginInfo(WireModel):
    """An installed plugin. ``marketplace`` is empty if it comes from a folder or repository directly."""

    name: str
    marketplace: str
    version: str | None = None
    enabled: StrictBool
    direct_source_id: str | None = None


class PluginsListResult(WireModel):
    plugins: list[InstalledPluginInfo]


class PluginsInstallParams(WireModel):
    """``source`` is ``plugin@marketplace``, a folder, ``owner/repo`` or the URL of a git repository.

    Relative paths are relative to ``working_directory``, by default that of the server.
    """

    source: str
    working_directory: PathText | None = None


class PluginsInstallResult(WireModel):
    plugin: InstalledPluginInfo
    skills_installed: int
    post_install_message: str | None = None
    deprecation_warning: str | None = None


class PluginsUninstallParams(WireModel):
    """``name`` is the plugin's name or ``plugin@marketplace``."""

    name: str
    direct_source_id: str | None = None


class PluginsUpdateParams(WireModel):
    name: str


class PluginsUpdateResult(WireModel):
    previous_version: str | None = None
    new_version: str | None = None
    skills_installed: int


class PluginUpdate(WireModel):
    """The result of updating one of all plugins: ``error`` is set without ``success``."""

    name: str
    marketplace: str
    success: StrictBool
    error: str | None = None
    previous_version: str | None = None
    new_version: str | None = None
    skills_installed: int | None = None


class PluginsUpdateAllResult(WireModel):
    results: list[PluginUpdate]


class PluginNamesParams(WireModel):
    """Names of plugins, or ``plugin@marketplace``; unknown names are ignored."""

    names: list[str]
    working_directory: PathText | None = None


class MarketplaceInfo(WireModel):
    """A marketplace; a default one cannot be removed."""

    name: str
    source: str
    is_default: StrictBool


class MarketplacesListResult(WireModel):
    marketplaces: list[MarketplaceInfo]


class MarketplaceAddParams(WireModel):
    """``source`` is a folder, ``owner/repo`` or the URL of a git repository."""

    source: str
    working_directory: PathText | None = None


class MarketplaceAddResult(WireModel):
    name: str


class MarketplaceRemoveParams(WireModel):
    """With ``force``, the plugins of the marketplace are uninstalled, too."""

    name: str
    force: StrictBool = False


class MarketplaceRemoveResult(WireModel):
    """``dependent_plugins`` are the installed plugins that kept the marketplace from being removed."""

    removed: StrictBool
    dependent_plugins: list[str] | None = None


class MarketplaceParams(WireModel):
    name: str


class MarketplacePlugin(WireModel):
    name: str
    description: str | None = None
    version: str | None = None


class MarketplaceBrowseResult(WireModel):
    plugins: list[MarketplacePlugin]


class MarketplaceRefreshParams(WireModel):
    """Without ``name``, all marketplaces are refreshed."""

    name: str | None = None


class MarketplaceRefresh(WireModel):
    name: str
    success: StrictBool
    error: str | None = None


class MarketplaceRefreshResult(WireModel):
    results: list[MarketplaceRefresh]


class SessionPluginsInstallParams(SessionParams):
    """``source`` as for ``plugins.install``, relative to the session's working directory."""

    source: str


class SessionPluginsUninstallParams(PluginsUninstallParams):
    session_id: str


class SessionPluginsUpdateParams(PluginsUpdateParams):
    session_id: str


class SessionPluginNamesParams(SessionParams):
    names: list[str]


class SessionMarketplaceAddParams(SessionParams):
    source: str


class SessionMarketplaceRemoveParams(MarketplaceRemoveParams):
    session_id: str


class SessionMarketplaceParams(MarketplaceParams):
    session_id: str


class SessionMarketplaceRefreshParams(MarketplaceRefreshParams):
    session_id: str


class PluginParams(WireModel):
    """``name`` is the plugin's name or ``plugin@marketplace``."""

    name: str
    direct_source_id: str | None = None


class PluginProgram(WireModel):
    """A program that a plugin starts, or a server that it connects to: ``kind`` and ``name`` say when."""

    kind: str
    name: str
    command: str


class PluginProgramsResult(WireModel):
    """The programs of a plugin. ``digest`` is that of its files: an agreement is for the files that were shown."""

    name: str
    folder: str
    trusted: StrictBool
    digest: str
    programs: list[PluginProgram]


class PluginTrustParams(PluginParams):
    """``digest`` is that of ``jumpseat.plugins.programs``, whose result a person has seen and agreed to.

    ``trusted: false`` withdraws the agreement.
    """

    digest: str
    trusted: StrictBool = True


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.plugins.programs": Method(PluginParams, PluginProgramsResult),
    "jumpseat.plugins.trust": Method(PluginTrustParams, SuccessResult),
    "session.plugins.list": Method(SessionParams, SessionPluginsResult),
    "session.plugins.reload": Method(PluginsReloadParams, None),
    "session.plugins.install": Method(SessionPluginsInstallParams, PluginsInstallResult),
    "session.plugins.uninstall": Method(SessionPluginsUninstallParams, None),
    "session.plugins.update": Method(SessionPluginsUpdateParams, PluginsUpdateResult),
    "session.plugins.enable": Method(SessionPluginNamesParams, None),
    "session.plugins.disable": Method(SessionPluginNamesParams, None),
    "session.plugins.marketplaces.list": Method(SessionParams, MarketplacesListResult),
    "session.plugins.marketplaces.add": Method(SessionMarketplaceAddParams, MarketplaceAddResult),
    "session.plugins.marketplaces.remove": Method(SessionMarketplaceRemoveParams, MarketplaceRemoveResult),
    "session.plugins.marketplaces.browse": Method(SessionMarketplaceParams, MarketplaceBrowseResult),
    "session.plugins.marketplaces.refresh": Method(SessionMarketplaceRefreshParams, MarketplaceRefreshResult),
    "plugins.builtin.set": Method(BuiltinPluginsParams, None),
    "plugins.list": Method(EmptyParams, PluginsListResult),
    "plugins.install": Method(PluginsInstallParams, PluginsInstallResult),
    "plugins.uninstall": Method(PluginsUninstallParams, None),
    "plugins.update": Method(PluginsUpdateParams, PluginsUpdateResult),
    "plugins.updateAll": Method(EmptyParams, PluginsUpdateAllResult),
    "plugins.enable": Method(PluginNamesParams, None),
    "plugins.disable": Method(PluginNamesParams, None),
    "plugins.marketplaces.list": Method(EmptyParams, MarketplacesListResult),
    "plugins.marketplaces.add": Method(MarketplaceAddParams, MarketplaceAddResult),
    "plugins.marketplaces.remove": Method(MarketplaceRemoveParams, MarketplaceRemoveResult),
    "plugins.marketplaces.browse": Method(MarketplaceParams, MarketplaceBrowseResult),
    "plugins.marketplaces.refresh": Method(MarketplaceRefreshParams, MarketplaceRefreshResult),
}
