"""Plugins on disk: their manifests, and the paths of their skills, agents, servers and hooks.

A manifest (``plugin.json``) may name the plugin and add paths to the usual ones. Paths that lead out of the
plugin's folder are ignored.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import orjson

from jumpseat.agent.skills import Plugin
from jumpseat.system.regular_files import read_whole

log = logging.getLogger(__name__)

LIST: Final = "plugins.json"
"""The file in the home folder that lists the installed plugins."""

MANIFESTS: Final = (
    "plugin.json",
    ".github/plugin.json",
    ".github/plugin/plugin.json",
    ".claude-plugin/plugin.json",
)
"""Paths of a manifest; the first that exists is used."""
LSP_FILES: Final = ("lsp.json", ".lsp.json", ".github/lsp.json")
LARGEST_BYTES: Final = 1024 * 1024


def untrusted_text(spec: str) -> str:
    """Return the reason for which a plugin may start nothing."""
    return f"the plugin {spec!r} is not trusted to run programs: look at them with 'jumpseat plugins trust {spec}'"


def read_plugin(folder: Path) -> Plugin:
    """Read the plugin in ``folder``; an invalid manifest counts as empty."""
    manifest = read_manifest(folder)
    name, version, servers = manifest.get("name"), manifest.get("version"), manifest.get("mcpServers")
    hooks, language_servers = manifest.get("hooks"), manifest.get("lspServers")
    skills = [folder] if os.path.isfile(folder / "SKILL.md") else []
    return Plugin(
        folder,
        name if isinstance(name, str) and name.strip() and name.isprintable() else folder.name,
        version if isinstance(version, str) else None,
        tuple(dict.fromkeys([*skills, folder / "skills", *_inside(folder, manifest.get("skills"))])),
        tuple(dict.fromkeys([folder / "commands", *_inside(folder, manifest.get("commands"))])),
        tuple(dict.fromkeys([folder / "agents", *_inside(folder, manifest.get("agents"))])),
        tuple(dict.fromkeys([folder / ".mcp.json", *_inside(folder, servers)])),
        cast("dict[str, Any]", servers) if isinstance(servers, dict) else {},
        tuple(dict.fromkeys([folder / "hooks.json", folder / "hooks" / "hooks.json", *_inside(folder, hooks)])),
        cast("dict[str, Any]", hooks) if isinstance(hooks, dict) else {},
        tuple(dict.fromkeys([*(folder / name for name in LSP_FILES), *_inside(folder, language_servers)])),
        cast("dict[str, Any]", language_servers) if isinstance(language_servers, dict) else {},
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of the plugin in ``folder``; empty if there is none or it is invalid."""
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
