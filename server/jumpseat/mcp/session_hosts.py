"""The MCP hosts of all sessions; a session gets a host when it has servers.

This module imports nothing heavy: every process starts with it, and most sessions have no servers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import WeakValueDictionary

import anyio

from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.skills import Plugins
from jumpseat.sandbox.session import Sandboxes
from jumpseat.system.descendants import Descendants
from jumpseat.tools.tool import Tool

if TYPE_CHECKING:
    from jumpseat.mcp.catalogue import ServerEntry
    from jumpseat.mcp.github import GitHubAccess
    from jumpseat.mcp.host import McpHost
    from jumpseat.mcp.servers import HostServices
    from jumpseat.mcp.tokens import LoginTokens


def secret_variables(servers: Mapping[str, Any]) -> list[str]:
    """Return the names of the variables that hold the secrets of servers in ``config.toml``."""
    names: list[str] = []
    for config in servers.values():
        table = cast("Mapping[str, Any]", config if isinstance(config, dict) else vars(config))
        name = table.get("oauthClientSecretEnv") or table.get("oauth_client_secret_env")
        names += [name] if isinstance(name, str) else []
    return names


class UserServers(Protocol):
    """The servers in the user's ``mcp-config.json``, which clients write."""

    def exists(self) -> bool:
        """Return whether there is such a file."""
        ...

    def servers(self) -> Mapping[str, Any]:
        """Return the settings of the servers by name, unchecked."""
        ...

    def disabled(self) -> frozenset[str]:
        """Return the names of the servers that are disabled for all sessions."""
        ...


class McpHosts:
    """The hosts of all sessions.

    ``environ`` holds the variables that servers may use, ``servers`` are those of ``config.toml`` and ``user``
    those of ``mcp-config.json``. ``trusted`` decides which folders may define servers, ``reserved`` are the tool
    names that no server may take, ``logins`` are the tokens of stored logins, and ``plugins`` define servers, too.
    ``sandboxes`` confine servers over stdio, ``descendants`` ends the processes that they leave behind. ``home`` is
    the folder of the two files, for errors. ``github`` reaches GitHub's own server, which is enabled
    ``github_by_default``.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        servers: Mapping[str, Any],
        user: UserServers,
        trusted: Callable[[Path], bool],
        reserved: frozenset[str],
        logins: LoginTokens,
        plugins: Plugins,
        sandboxes: Sandboxes | None = None,
        descendants: Descendants | None = None,
        home: Path | None = None,
        github: GitHubAccess | None = None,
        github_by_default: bool = False,
    ) -> None:
        self.environ = environ
        self.reserved = reserved
        self.user = user
        self.logins = logins
        self.sandboxes = sandboxes
        self.descendants = descendants
        self._servers = servers
        self._trusted = trusted
        self._plugins = plugins
        self._home = home
        self.github = github
        self._starting = anyio.Lock()
        self._github_by_default = github_by_default
        # Weak references, because a session that fails to open is never closed.
        self._sources = WeakValueDictionary[str, McpSource]()

    def source(self, session: Session) -> McpSource | SubAgentMcpSource:
        """Return the source of MCP tools of a session that is being opened."""
        if session.identity is not None:
            return SubAgentMcpSource(self, session, self._sources[session.id])
        source = self._sources[session.id] = McpSource(self, session)
        return source

    def begin(self, session: Session) -> None:
        """Start the servers of a session, or update them after its settings have changed; returns at once."""
        self._sources[session.id].begin()

    def get(self, session: Session) -> McpHost | None:
        """Return the host of a session; ``None`` if it has never had servers."""
        return self._sources[session.id].host

    def get_or_create(self, session: Session) -> McpHost:
        """Return the host of a session, creating it where there is none."""
        return self._sources[session.id].get_or_create()

    def services(self, find: Callable[[SessionSettings], dict[str, ServerEntry]]) -> HostServices:
        """Return the services of a host whose servers ``find`` returns."""
        from jumpseat.mcp.servers import HostServices

        return HostServices(
            self.environ,
            self.reserved,
            self.logins,
            find,
            self._starting,
            self.sandboxes,
            self.descendants,
            self.github,
        )

    def forget(self, source: McpSource) -> None:
        """Remove the source of a session that is being closed."""
        if self._sources.get(source.session.id) is source:
            del self._sources[source.session.id]

    def may_have(self, settings: SessionSettings) -> bool:
        """Return whether such a session may have servers, without reading their files."""
        agent = settings.custom_agent
        return bool(
            settings.options.mcp_servers
            or settings.options.github_mcp_tool_config is not None
            or self._github_by_default
            or (agent is not None and (agent.mcp_servers or agent.name in settings.lost_agent_servers))
            or settings.lost_mcp_servers
            or self._servers
            or settings.options.enable_config_discovery
            or self._plugins.folders(settings)
            or self.user.exists()
        )

    def find_of_agent(self, settings: SessionSettings) -> dict[str, ServerEntry]:
        """Return the servers of the custom agent that is selected in ``settings``, by name."""
        from jumpseat.agent.agent_files import AgentFile
        from jumpseat.mcp.catalogue import check_servers, find_servers

        agent = settings.custom_agent
        from_file = agent if isinstance(agent, AgentFile) else None
        own = check_servers(agent.mcp_servers or {}) if agent is not None and from_file is None else {}
        return find_servers(
            own,
            incomplete=settings.lost_agent_servers.get(agent.name, {}) if agent is not None else {},
            agent=from_file,
            user={},
            user_file={},
            home=self._home,
            disabled=self.user.disabled(),
            disabled_here=frozenset(settings.options.disabled_mcp_servers),
            project=None,
            plugins=[],
        )

    def find(self, settings: SessionSettings) -> dict[str, ServerEntry]:
        """Return all servers of a session with such settings, by name."""
        from jumpseat.agent.agent_files import AgentFile
        from jumpseat.mcp.catalogue import check_servers, find_servers

        discovers = settings.options.enable_config_discovery and self._trusted(settings.cwd)
        own, lost = check_servers(settings.options.mcp_servers), settings.lost_mcp_servers
        agent = settings.custom_agent
        if agent is not None and not isinstance(agent, AgentFile):
            own = {**own, **check_servers(agent.mcp_servers or {})}
            lost = {**lost, **settings.lost_agent_servers.get(agent.name, {})}
        return find_servers(
            own,
            incomplete=lost,
            agent=agent if isinstance(agent, AgentFile) else None,
            user=self._servers,
            user_file=self.user.servers(),
            home=self._home,
            disabled=self.user.disabled(),
            disabled_here=frozenset(settings.options.disabled_mcp_servers),
            project=settings.cwd if discovers else None,
            plugins=self._plugins.read_all(settings),
            github=self._github_entry(settings),
        )

    def _github_entry(self, settings: SessionSettings) -> ServerEntry | None:
        if self.github is None:
            return None
        from jumpseat.mcp.github import entry_of

        return entry_of(settings, by_default=self._github_by_default)

    def builtin(self, settings: SessionSettings) -> dict[str, ServerEntry]:
        """Return the servers that every session has, as they are in a session that has no other."""
        entry = self._github_entry(settings)
        return {} if entry is None else {entry.name: entry}


class McpSource:
    """The source of one session's MCP tools; ``host`` is created when the session has servers."""

    def __init__(self, hosts: McpHosts, session: Session) -> None:
        self.session = session
        self.host: McpHost | None = None
        self._hosts = hosts

    def begin(self) -> None:
        """Start the servers of the session, or update them."""
        if self.host is not None or self._hosts.may_have(self.session.settings):
            self.get_or_create().begin()

    def get_or_create(self) -> McpHost:
        """Return the host, creating it where there is none."""
        if self.host is None:
            from jumpseat.mcp.host import McpHost

            self.host = McpHost(self.session, self._hosts.services(self._hosts.find))
        return self.host

    def tools(self) -> Mapping[str, Tool]:
        return self.host.tools() if self.host is not None else {}

    async def discover(self, prompt: str) -> None:
        """Wait for the servers if their instructions go into the system message."""
        if self.session.settings.options.allow_all_mcp_server_instructions:
            await self.ready()

    def instructions(self, offered: Collection[str]) -> list[str]:
        if self.host is None or not self.session.settings.options.allow_all_mcp_server_instructions:
            return []
        return self.host.instructions(offered)

    def mention_text(self, name: str) -> str | None:
        """Return ``None``: tools of servers are mentioned in prompts like any other tool."""
        return None

    async def ready(self) -> None:
        if self.host is not None:
            await self.host.ready()

    async def absence(self, name: str) -> str | None:
        return await self.host.absence(name) if self.host is not None else None

    async def close(self, grace_s: float) -> None:
        self._hosts.forget(self)
        if self.host is not None:
            await self.host.close(grace_s)


class SubAgentMcpSource:
    """The source of a sub-agent's MCP tools: those of its session, and those of its own servers.

    Its own servers start with its first model call.
    """

    def __init__(self, hosts: McpHosts, session: Session, of_session: McpSource) -> None:
        self._hosts = hosts
        self._session = session
        self._of_session = of_session
        self._own: McpHost | None = None

    def tools(self) -> Mapping[str, Tool]:
        tools = self._of_session.tools()
        return tools if self._own is None else {**tools, **self._own.tools()}

    async def ready(self) -> None:
        await self._of_session.ready()
        agent = self._session.settings.custom_agent
        if self._own is None and agent is not None and agent.mcp_servers:
            from jumpseat.mcp.host import McpHost

            self._own = McpHost(self._session, self._hosts.services(self._hosts.find_of_agent))
            self._own.begin()
        if self._own is not None:
            await self._own.ready()

    async def absence(self, name: str) -> str | None:
        own = await self._own.absence(name) if self._own is not None else None
        return own or await self._of_session.absence(name)

    async def close(self, grace_s: float) -> None:
        if self._own is not None:
            await self._own.close(grace_s)
