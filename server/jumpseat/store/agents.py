"""Custom agents on the disk: Markdown files, in the places where projects, users and plugins keep them.

The front matter describes an agent, the text is its prompt. A file that is wrong costs that agent and is told of,
never a session. The form is that of GitHub's agent profiles, which other programs write too.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from jumpseat.agent.agent_files import AgentFile
from jumpseat.agent.plugins import Plugins
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import StoreError
from jumpseat.store.front_matter import Found, body, front_matter, names, project_folders, read_text
from jumpseat_protocol.agents import AgentSource
from jumpseat_protocol.sessions import CustomAgentConfig

log = logging.getLogger(__name__)

PROJECT_FOLDERS: Final = (".github/agents", ".claude/agents")
"""Where projects keep agents; new ones go into the first."""
SUFFIXES: Final = (".agent.md", ".md")
MOST_AGENTS: Final = 500
"""Of one folder."""

_NOT_AGENTS: Final = ("readme",)
_SHELL: Final = ("bash", "read_bash", "write_bash", "stop_bash", "list_bash")
TOOLS: Final = {
    **dict.fromkeys(("execute", "shell", "bash", "powershell"), _SHELL),
    **dict.fromkeys(("read", "notebookread", "view"), ("view",)),
    **dict.fromkeys(("edit", "multiedit", "write", "notebookedit", "create"), ("edit", "create")),
    **dict.fromkeys(("search", "grep", "glob"), ("grep", "glob")),
    **dict.fromkeys(("web", "websearch", "webfetch"), ("web_search", "web_fetch")),
    **dict.fromkeys(("todo", "todowrite"), ("sql",)),
}
"""What files call tools, in small letters, and what those are here. Other names are those of tools."""
_SECRET: Final = re.compile(r"\$\{\{\s*(?:secrets|vars?|env)\.(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that agents are looked for in. Servers of theirs count where it ``may_bring_servers``."""

    path: Path
    source: AgentSource
    may_bring_servers: bool = True


class AgentLibrary:
    """Where the agents of all sessions of a process are looked for. ``home`` is where the user's own lie."""

    def __init__(self, home: Path, plugins: Plugins, is_trusted: Callable[[Path], bool]) -> None:
        self._home = home
        self._plugins = plugins
        self._is_trusted = is_trusted

    def find(self, settings: SessionSettings) -> list[CustomAgentConfig]:
        """The agents that a session may work as, besides those that its client describes."""
        project = self.project_places(settings.cwd) if settings.config_discovery else []
        plugins = [
            Place(folder, "plugin") for plugin in self._plugins.of(settings) for folder in plugin.agent_folders
        ]
        found = find_agents([*project, *self.personal(), *plugins])
        for problem in (*found.errors, *found.warnings):
            log.warning("custom agents: %s", problem)
        return [*found.items]

    def project_places(self, cwd: Path) -> list[Place]:
        """Where a project keeps agents: the working directory first, then the folders above it up to its root."""
        return [
            # Each by itself: to trust a folder is not to trust those above it.
            Place(folder / name, source, may_bring_servers=self._is_trusted(folder))
            for folder, source in project_folders(cwd)
            for name in PROJECT_FOLDERS
        ]

    def personal(self) -> list[Place]:
        """Where the user keeps agents for all projects."""
        return [Place(self._home / "agents", "user")]


def find_agents(places: Iterable[Place]) -> Found[AgentFile]:
    """The agents in ``places``; of two with one name, the first counts."""
    found = Found[AgentFile]()
    for place in places:
        for entry in found.entries(place.path, _is_agent, MOST_AGENTS):
            path = place.path / entry
            found.add(path, partial(_agent, path, place, found))
    return found


def _name(entry: str) -> str:
    return next((entry.removesuffix(one) for one in SUFFIXES if entry.endswith(one)), "")


def _is_agent(entry: str) -> bool:
    name = _name(entry)
    return bool(name.strip()) and name.isprintable() and name.lower() not in _NOT_AGENTS


def _agent(path: Path, place: Place, found: Found[AgentFile]) -> AgentFile | None:
    """Read what a file says of its agent; ``None`` where it is for other programs only.

    Raises:
        StoreError: it cannot be used.
    """
    name, text = _name(path.name), read_text(path)
    # What is secret on GitHub is read from variables of the same name.
    front = front_matter(_SECRET.sub(r"${\1}", text))
    if front.get("target") not in (None, "github-copilot"):
        return None
    prompt = body(text)
    if not prompt:
        raise StoreError("it has no text, which would be the agent's prompt")
    description = front.get("description")
    if not isinstance(description, str) or not description.strip():
        found.warnings.append(f"{path}: it has no description")
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
        # Other programs write `inherit` for what is said by leaving it out.
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
    """The servers of an agent, as ``mcp`` reads those of any file."""
    if not isinstance(value, dict) or not value:
        return None
    if not place.may_bring_servers:
        found.warnings.append(f"{path}: its MCP servers do not count, because the folder is not trusted")
        return None
    servers: dict[str, dict[str, Any]] = {}
    for name, one in cast("dict[Any, Any]", value).items():
        if isinstance(one, dict):
            servers[str(name)] = {str(key): setting for key, setting in cast("dict[Any, Any]", one).items()}
    return servers
