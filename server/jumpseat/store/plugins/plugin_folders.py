"""The plugins of all sessions: folders that clients and the operator name, and installed ones."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.skills import Plugin
from jumpseat.store.plugins.manifests import LIST, read_plugin, untrusted_text
from jumpseat.system.regular_files import is_there

if TYPE_CHECKING:
    from jumpseat.store.plugins.installed_plugins import InstalledPlugins

log = logging.getLogger(__name__)


class PluginFolders:
    """The plugin folders of all sessions: ``given`` to the process, or ``bundled`` by a client for all sessions.

    The plugins that are installed in ``home`` come last; ``find_installed`` is called only if there are any.
    """

    def __init__(self, given: Sequence[Path], home: Path, find_installed: Callable[[], InstalledPlugins]) -> None:
        self._given = tuple(given)
        self._list = f"{home}{os.sep}{LIST}"
        self._find_installed = find_installed
        self.bundled: tuple[Path, ...] = ()

    def folders(self, settings: SessionSettings) -> list[Path]:
        """Return the plugin folders of a session: its own first."""
        return self._folders(settings, self._of_user())

    def _folders(self, settings: SessionSettings, of_user: Iterable[Path]) -> list[Path]:
        own = [settings.cwd / os.path.expanduser(folder) for folder in settings.options.plugin_directories]
        return list(dict.fromkeys([*own, *self._given, *self.bundled, *of_user]))

    def read_all(self, settings: SessionSettings) -> list[Plugin]:
        """Read the plugins of a session, without duplicates; missing folders are logged."""
        found: dict[str, Plugin] = {}
        of_user = self._of_user()
        for folder in self._folders(settings, of_user):
            # Not Path.is_dir, which raises for a name that is too long, and without the right to search a parent.
            if os.path.isdir(folder):
                known = of_user.get(folder)
                plugin = read_plugin(folder) if known is None else replace(read_plugin(folder), **known)
                found.setdefault(os.path.realpath(folder), plugin)
            else:
                log.warning("the plugin folder %s does not exist", folder)
        return list(found.values())

    def _of_user(self) -> dict[Path, dict[str, Any]]:
        """Return the folders of the enabled installed plugins, with the facts that are not in their manifests."""
        if not is_there(self._list):
            return {}
        installed = self._find_installed()
        return {
            installed.folder_of(plugin): {
                "name": plugin.name,
                "version": plugin.version,
                "marketplace": plugin.marketplace,
                "source_id": plugin.source_id,
                "untrusted": None if plugin.trusted else untrusted_text(plugin.spec),
            }
            for plugin in installed.all()
            if plugin.enabled
        }
