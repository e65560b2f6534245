"""Commands about what a session works with: its folder, MCP servers, skills and plugins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import anyio.to_thread

from jumpseat.commands.command import Builtin, Call
from jumpseat.commands.results import Choice, CommandResult, Option, Text
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.changes import emit_skills, set_working_directory, switch_skill
from jumpseat.sessions.mcp_servers import STARTED, enable_server, listed_servers


async def _cwd(call: Call) -> Text:
    session = call.session
    if call.args:
        set_working_directory(call.server, session, _folder(session.settings.cwd, call.args))
    return Text(str(session.settings.cwd))


def _folder(cwd: Path, path: str) -> Path:
    folder = Path(os.path.normpath(cwd / os.path.expanduser(path)))
    if not os.path.isdir(folder):
        raise InvalidRequestError(f"{path[:200]!r} is not a directory")
    return folder


async def _env(call: Call) -> Text:
    session = call.session
    skills = session.services.skills(session)
    servers = listed_servers(call.server, session)
    sections = {
        "Folders": [str(folder) for folder in session.permissions.path_scope.folders()],
        "MCP servers": [f"{server.name}: {server.status}" for server in servers],
        "Skills": [skill.name for skill in skills.all() if skills.is_enabled(skill.name)],
        "Plugins": await _plugin_names(call),
        "Agents": [agent.name for agent in session.settings.agents],
        "Tools": [spec.name for spec in session.tools.specs()],
    }
    texts = [
        "\n".join([f"## {title}", "", *(f"- {line}" for line in lines)])
        for title, lines in sections.items()
        if lines
    ]
    return Text("\n\n".join(texts), markdown=True)


async def _mcp(call: Call) -> CommandResult:
    action, _, name = call.args.partition(" ")
    host = call.server.mcp.get(call.session)
    servers = listed_servers(call.server, call.session)
    if not servers:
        return Text("There are no MCP servers.")
    match action:
        case "":
            options = [
                Option(f"{'disable' if server.status in STARTED else 'enable'} {server.name}", server.status)
                for server in servers
            ]
            general = Option("list", "List the servers"), Option("reload", "Read the configuration again")
            return Choice("mcp", "MCP servers", (*general, *options))
        case "list":
            pass
        case "reload":
            if host is not None:
                host.begin()
        case "enable" | "disable":
            if all(server.name != name for server in servers):
                raise InvalidRequestError(f"unknown MCP server {name[:100]!r}")
            if action == "enable":
                await enable_server(call.server, call.session, name, "There are no MCP servers.")
            elif host is not None:
                await host.stop(name)
        case _:
            raise InvalidRequestError(f"expected list, reload, enable NAME or disable NAME, got {action[:100]!r}")
    servers = listed_servers(call.server, call.session)
    return Text("\n".join(_described(server.name, server.status, server.error) for server in servers))


def _described(name: str, status: str, error: str | None) -> str:
    return f"{name}: {status} ({error})" if error else f"{name}: {status}"


async def _skills(call: Call) -> CommandResult:
    action, _, name = call.args.partition(" ")
    library = call.server.process.skills.for_session(call.session)
    match action:
        case "":
            options = [
                Option(
                    f"{'disable' if library.is_enabled(skill.name) else 'enable'} {skill.name}", skill.description
                )
                for skill in library.all()
            ]
            general = Option("list", "List the skills"), Option("reload", "Search for skills again")
            return Choice("skills", "Skills", (*general, *options))
        case "list":
            pass
        case "reload":
            library.reload()
            emit_skills(call.server, call.session)
        case "enable" | "disable":
            switch_skill(call.server, call.session, name, on=action == "enable")
        case _:
            raise InvalidRequestError(f"expected list, reload, enable NAME or disable NAME, got {action[:100]!r}")
    lines = [
        f"{skill.name}{'' if library.is_enabled(skill.name) else ' (off)'}: {skill.description}"
        for skill in library.all()
    ]
    return Text("\n".join(lines) or "There are no skills.")


async def _plugin(call: Call) -> Text:
    names = await _plugin_names(call)
    return Text("\n".join(names) or "There are no plugins.")


async def _plugin_names(call: Call) -> list[str]:
    process = call.server.process
    found = await anyio.to_thread.run_sync(process.plugins.read_all, call.session.settings)
    off = [plugin.name for plugin in process.installed_plugins.all() if not plugin.enabled]
    return [*(plugin.name for plugin in found), *(f"{name} (off)" for name in off)]


_ACTIONS: Final = "list, reload, enable NAME or disable NAME"

COMMANDS: Final = (
    Builtin(
        "cwd", "Show or change the working directory", _cwd, aliases=("cd",), hint="path", folder=True, loosens=True
    ),
    Builtin("env", "Show what the session works with", _env),
    Builtin("mcp", "Show or change the MCP servers", _mcp, hint=_ACTIONS),
    Builtin("plugin", "List the plugins", _plugin),
    Builtin("skills", "Show or change the skills", _skills, hint=_ACTIONS),
)
