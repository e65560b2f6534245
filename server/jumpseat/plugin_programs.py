"""List what plugins would run, for the person who decides whether to trust them."""

from __future__ import annotations

import json
import shlex
from typing import NamedTuple

from jumpseat.agent.plugins import Plugin
from jumpseat.mcp.catalogue import servers_of_plugin
from jumpseat.store.agents import Place, find_agents


class Program(NamedTuple):
    """A program that a plugin starts, or a server that it connects to: ``kind`` and ``name`` say when."""

    kind: str
    name: str
    command: str


def programs_of(plugin: Plugin) -> list[Program]:
    """Return the MCP servers of a plugin and of its agents, with their commands and addresses."""
    programs: list[Program] = []
    for entry in servers_of_plugin(plugin):
        if entry.config is None:
            continue
        words = [entry.config.command, *(entry.config.args or [])] if entry.config.command else []
        programs.append(Program("MCP server", entry.name, shlex.join(words) if words else entry.config.url or ""))
    for agent in find_agents(Place(folder, "plugin") for folder in plugin.agent_folders).items:
        for name, server in (agent.mcp_servers or {}).items():
            programs.append(Program(f"MCP server of the agent {agent.name}", name, json.dumps(server)))
    return programs
