"""Plugins on disk: their manifests, and the paths of their skills, agents and servers.

A manifest (``plugin.json``) may name the plugin and add paths to the usual ones. Paths that lead out of the
plugin's folder are ignored, and so are hooks and language servers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import orjson

from jumpseat.agent.plugins import Plugin
from jumpseat.agent.settings import SessionSettings
from jumpseat.regular_files import read_whole

log = logging.getLogger(__name__)

MANIFESTS: Final = (
    "plugin.json",
    ".github/plugin.json",
    ".github/plugin/plugin.json",
    ".claude-plugin/plugin.json",
)
"""Paths of a manifest; the first that exists is used."""
LARGEST_BYTES: Final = 1024 * 1024


class PluginFolders:
    """The plugin folders of all sessions: ``given`` to the process, or ``bundled`` by a client for all sessions."""

    def __init__(self, given: Sequence[Path] = ()) -> None:
        self._given = tuple(given)
        self.bundled: tuple[Path, ...] = ()

    def folders(self, settings: SessionSettings) -> list[Path]:
        """Return the plugin folders of a session: its own first."""
        own = [settings.cwd / os.path.expanduser(folder) for folder in settings.plugin_directories]
        return list(dict.fromkeys([*own, *self._given, *self.bundled]))

    def read_all(self, settings: SessionSettings) -> list[Plugin]:
        """Read the plugins of a session, without duplicates; missing folders are logged."""
        found: dict[str, Plugin] = {}
        for folder in self.folders(settings):
            # Not Path.is_dir, which raises for a name that is too long, and without the right to search a parent.
            if os.path.isdir(folder):
                found.setdefault(os.path.realpath(folder), read_plugin(folder))
            else:
                log.warning("the plugin folder %s does not exist", folder)
        return list(found.values())


def read_plugin(folder: Path) -> Plugin:
    """Read the plugin in ``folder``; an invalid manifest counts as empty."""
    manifest = _manifest(folder)
    name, version, servers = manifest.get("name"), manifest.get("version"), manifest.get("mcpServers")
    skills = [folder] if os.path.isfile(folder / "SKILL.md") else []
    return Plugin(
        folder,
        name if isinstance(name, str) and name.strip() and name.isprintable() else folder.name,
        version if isinstance(version, str) else None,
        tuple(dict.fromkeys([*skills, folder / "skills", *_inside(folder, manifest.get("skills"))])),
        tuple(dict.fromkeys([folder / "agents", *_inside(folder, manifest.get("agents"))])),
        tuple(dict.fromkeys([folder / ".mcp.json", *_inside(folder, servers)])),
        cast("dict[str, Any]", servers) if isinstance(servers, dict) else {},
    )


def _manifest(folder: Path) -> dict[str, Any]:
    for name in MANIFESTS:
        path = folder / name
        try:
            whole: Any = orjson.loads(read_whole(path, LARGEST_BYTES))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            log.warning("cannot read the plugin manifest %s: %s", path, error)
            return {}
        if isinstance(whole, dict):
            return cast("dict[str, Any]", whole)
        log.warning("the plugin manifest %s is not a JSON object", path)
        return {}
    return {}


def _inside(folder: Path, named: Any) -> Iterator[Path]:
    """Yield the paths of a manifest entry, a string or a list of strings, that stay inside the plugin's folder."""
    whole = os.path.realpath(folder)
    for name in cast("list[Any]", named) if isinstance(named, list) else [named]:
        if not isinstance(name, str) or "\0" in name:
            continue
        if Path(os.path.realpath(folder / name)).is_relative_to(whole):
            yield folder / name
        else:
            log.warning("the plugin in %s has a path outside of its folder: %s", folder, name)
