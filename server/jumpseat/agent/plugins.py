"""Plugins: folders that add skills, commands, agents and MCP servers to sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from jumpseat.agent.settings import SessionSettings


class Plugin(Struct, frozen=True):
    """A plugin in a folder.

    ``skill_folders``, ``command_folders`` and ``agent_folders`` contain its skills, commands and agents. Its MCP
    servers are configured in ``mcp_files``, or in ``mcp_servers`` by name; its hooks in ``hook_files``, or in
    ``hooks`` by event. ``marketplace`` is set for installed plugins: it is empty for those that come from no
    marketplace. ``untrusted`` is the reason for which nothing of the plugin may be started.
    """

    folder: Path
    name: str
    version: str | None = None
    skill_folders: tuple[Path, ...] = ()
    command_folders: tuple[Path, ...] = ()
    agent_folders: tuple[Path, ...] = ()
    mcp_files: tuple[Path, ...] = ()
    mcp_servers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    hook_files: tuple[Path, ...] = ()
    hooks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    marketplace: str | None = None
    source_id: str | None = None
    untrusted: str | None = None


class Plugins(Protocol):
    """The plugins of all sessions."""

    def folders(self, settings: SessionSettings) -> list[Path]:
        """Return the folders of a session's plugins, whether they exist or not; reads none of them."""
        ...

    def read_all(self, settings: SessionSettings) -> list[Plugin]:
        """Read the plugins of a session that exist."""
        ...
