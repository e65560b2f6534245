"""What a plugin is: a folder that brings skills, agents and MCP servers to sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from jumpseat.agent.settings import SessionSettings


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin. Skills lie in ``skill_folders``, agents in ``agent_folders``; servers are in ``mcp_files``, or in
    ``mcp_servers`` by name."""

    folder: Path
    name: str
    version: str | None = None
    skill_folders: tuple[Path, ...] = ()
    agent_folders: tuple[Path, ...] = ()
    mcp_files: tuple[Path, ...] = ()
    mcp_servers: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Plugins(Protocol):
    """The plugins of all sessions of a process."""

    def folders(self, settings: SessionSettings) -> list[Path]:
        """Where those of a session should lie; looks at nothing."""
        ...

    def of(self, settings: SessionSettings) -> list[Plugin]:
        """Those of a session that are there, as their files stand now."""
        ...
