"""List what plugins would run, for the person who decides whether to trust them."""

from __future__ import annotations

import json
import shlex
from typing import NamedTuple

from jumpseat.agent.skills import Plugin
from jumpseat.lsp.catalogue import servers_of_plugin as language_servers_of_plugin
from jumpseat.mcp.catalogue import servers_of_plugin
from jumpseat.store.project.agents import Place, find_agents
from jumpseat.store.project.hook_files import hooks_of_plugin


class Program(NamedTuple):
    """A program that a plugin starts, or a server that it connects to: ``kind`` and ``name`` say when."""

    kind: str
    name: str
    command: str


def programs_of(plugin: Plugin) -> list[Program]:
    """Return what a plugin runs: its hooks, its MCP servers and those of its agents, its language servers."""
    programs: list[Program] = []
    for entry in servers_of_plugin(plugin):
        if entry.config is None:
            continue
        words = [entry.config.command, *(entry.config.args or [])] if entry.config.command else []
        programs.append(Program("MCP server", entry.name, shlex.join(words) if words else entry.config.url or ""))
    for agent in find_agents(Place(folder, "plugin") for folder in plugin.agent_folders).items:
        for name, server in (agent.mcp_servers or {}).items():
            programs.append(Program(f"MCP server of the agent {agent.name}", name, json.dumps(server)))
    for name, config in language_servers_of_plugin(plugin, []):
        programs.append(Program("language server", name, shlex.join([config.command or name, *config.args])))
    programs += (Program("hook", hook.hook_type, hook.shown) for hook in hooks_of_plugin(plugin, []))
    return programs
