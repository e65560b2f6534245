"""Custom agents in Markdown files of projects, users and plugins.

The front matter describes an agent, the text is its prompt. An invalid file is reported and affects no other agent.
The format is that of GitHub's agent profiles, which other programs write too.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.to_thread
from msgspec import Struct

from jumpseat.agent.agent_files import AgentFile
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.skills import Plugins
from jumpseat.errors import StoreError
from jumpseat.store.project.front_matter import Found, body, front_matter, names, project_folders, read_text
from jumpseat_protocol.sessions import AgentSource, CustomAgentConfig

log = logging.getLogger(__name__)

PROJECT_FOLDERS: Final = (".github/agents", ".claude/agents")
"""Folders of a project that hold agents; new agents are written to the first."""
SUFFIXES: Final = (".agent.md", ".md")
MOST_AGENTS: Final = 500
"""Limit on the agents of one folder."""

AT_ONCE: Final = 4
"""Limit on the searches at once: sessions that begin together would have a thread each, of 100 KB."""

_NOT_AGENTS: Final = ("readme",)
_SHELL: Final = ("bash", "read_bash", "write_bash", "stop_bash", "list_bash")
TOOLS: Final = {
    **dict.fromkeys(("execute", "shell", "bash", "powershell"), _SHELL),
    **dict.fromkeys(("read", "notebookread", "view"), ("view",)),
    **dict.fromkeys(("edit", "multiedit", "write", "notebookedit", "create"), ("edit", "create", "apply_patch")),
    **dict.fromkeys(("search", "grep", "glob"), ("grep", "glob")),
    **dict.fromkeys(("web", "websearch", "webfetch"), ("web_search", "web_fetch")),
    **dict.fromkeys(("todo", "todowrite"), ("sql",)),
}
"""Names of tools in agent files, in lower case, and our tools for them; other names are taken as they are."""
_SECRET: Final = re.compile(r"\$\{\{\s*(?:secrets|vars?|env)\.(\w+)\s*\}\}")


class Place(Struct, frozen=True):
    """A folder that may hold agents, of a ``project``, of the user, or one that a client names (no ``source``).

    ``may_bring_servers`` says whether their MCP servers are used.
    """

    path: Path
    source: AgentSource | None
    may_bring_servers: bool = True
    project: Path | None = None


class AgentLibrary:
    """The custom agents of all sessions of a process; those of the user are in ``home``."""

    def __init__(self, home: Path, plugins: Plugins, is_trusted: Callable[[Path], bool]) -> None:
        self._home = home
        self._plugins = plugins
        self._is_trusted = is_trusted
        self._threads = anyio.CapacityLimiter(AT_ONCE)

    async def search(self, settings: SessionSettings) -> list[CustomAgentConfig]:
        """Call :meth:`find` in a thread, a few at once, if there may be any agents."""
        if not self._may_exist(settings):
            return []
        return await anyio.to_thread.run_sync(self.find, settings, limiter=self._threads)

    def _may_exist(self, settings: SessionSettings) -> bool:
        """Return whether there may be agents; finding out takes less time than starting work in a thread."""
        return (
            settings.options.enable_config_discovery
            or bool(settings.options.agent_directories or self._plugins.folders(settings))
            or any(os.path.lexists(place.path) for place in self.personal())
        )

    def find(self, settings: SessionSettings) -> list[CustomAgentConfig]:
        """Return the agents in files that a session may use, in the order of precedence."""
        named = [Place(Path(folder), None) for folder in settings.options.agent_directories]
        project = self.project_places(settings.cwd) if settings.options.enable_config_discovery else []
        if settings.options.enable_config_discovery:
            for folder in map(Path, settings.options.additional_directories):
                project += [self._project_place(folder, name, "project") for name in PROJECT_FOLDERS]
        plugins = [
            Place(folder, "plugin", may_bring_servers=plugin.untrusted is None)
            for plugin in self._plugins.read_all(settings)
            for folder in plugin.agent_folders
        ]
        found = find_agents([*named, *project, *self.personal(), *plugins])
        for problem in (*found.errors, *found.warnings):
            log.warning("custom agents: %s", problem)
        return [*found.items]

    def project_places(self, cwd: Path) -> list[Place]:
        """Return the agent folders of a project, from the working directory up to the root of the project."""
        return [
            self._project_place(folder, name, source)
            for folder, source in project_folders(cwd)
            for name in PROJECT_FOLDERS
        ]

    def _project_place(self, folder: Path, name: str, source: AgentSource) -> Place:
        # Trust is checked for each, because a trusted folder does not make its parents trusted.
        return Place(folder / name, source, may_bring_servers=self._is_trusted(folder), project=folder)

    def personal(self) -> list[Place]:
        """Return the folder of the user's agents for all projects."""
        return [Place(self._home / "agents", "user")]


def find_agents(places: Iterable[Place]) -> Found[AgentFile]:
    """Read the agents in ``places``; of agents with the same name, the first is used."""
    found = Found[AgentFile]()
    for place in places:
        for entry in found.entries(place.path, _is_agent, MOST_AGENTS):
            path = place.path / entry
            found.add(path, partial(_agent, path, place, found))
    return found


def _name(entry: str) -> str:
    return next((entry.removesuffix(suffix) for suffix in SUFFIXES if entry.endswith(suffix)), "")


def _is_agent(entry: str) -> bool:
    name = _name(entry)
    return bool(name.strip()) and name.isprintable() and name.lower() not in _NOT_AGENTS


def _agent(path: Path, place: Place, found: Found[AgentFile]) -> AgentFile | None:
    """Read the agent in a file; return ``None`` if its ``target`` is another program.

    Raises:
        StoreError: the file cannot be read, or is invalid.
    """
    name, text = _name(path.name), read_text(path, place.project)
    # Secrets and variables of GitHub become environment variables of the same name.
    front = front_matter(_SECRET.sub(r"${\1}", text))
    if front.get("target") not in (None, "github-copilot"):
        return None
    prompt = body(text)
    if not prompt:
        raise StoreError("expected the agent's prompt after the front matter")
    description = front.get("description")
    if not isinstance(description, str) or not description.strip():
        found.warnings.append(f"{path}: expected a description in the front matter")
        description = ""
    title, model, infer = front.get("name"), front.get("model"), front.get("infer")
    return AgentFile(
        name=name,
        display_name=" ".join(title.split()) if isinstance(title, str) and title.strip() else name,
        description=" ".join(description.split()),
        prompt=prompt,
        tools=_tools(front.get("tools")),
        mcp_servers=_servers(front.get("mcp-servers"), path, place, found),
        infer=front.get("disable-model-invocation") is not True and infer is not False,
        skills=[*(names(front.get("skills")) or ())] or None,
        # Other programs write `inherit` where no model is set.
        model=model.strip() if isinstance(model, str) and model.strip() not in ("", "inherit") else None,
        path=str(path),
        source=place.source,
        user_invocable=front.get("user-invocable") is not False,
    )


def _tools(value: Any) -> list[str] | None:
    named = names(value, r"\s*,\s*")
    if named is None:
        return None
    return list(dict.fromkeys(tool for name in named for tool in TOOLS.get(name.strip().lower(), (name.strip(),))))


def _servers(value: Any, path: Path, place: Place, found: Found[AgentFile]) -> dict[str, dict[str, Any]] | None:
    """Return the MCP servers of an agent, unchecked; ``None`` if it has none or its folder is not trusted."""
    if not isinstance(value, dict) or not value:
        return None
    if not place.may_bring_servers:
        found.warnings.append(f"{path}: its MCP servers are ignored, because the folder is not trusted")
        return None
    servers: dict[str, dict[str, Any]] = {}
    for name, item in cast("dict[Any, Any]", value).items():
        if isinstance(item, dict):
            servers[str(name)] = {str(key): setting for key, setting in cast("dict[Any, Any]", item).items()}
    return servers
