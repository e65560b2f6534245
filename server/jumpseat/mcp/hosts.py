"""The MCP hosts of all sessions: found by session, made when a session has servers.

Nothing here or in what it imports is heavy: most sessions have no servers, and every process starts with this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from jumpseat.agent.plugins import Plugins
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.tools.tool import Tool

if TYPE_CHECKING:
    from jumpseat.mcp.catalogue import ServerEntry
    from jumpseat.mcp.host import McpHost
    from jumpseat.mcp.tokens import LoginTokens


class UserServers(Protocol):
    """The servers a user has set up with a client, as they stand in their file."""

    def exists(self) -> bool: ...

    def servers(self) -> Mapping[str, Any]: ...

    def disabled(self) -> frozenset[str]: ...


class McpHosts:
    """``servers`` are those of the configuration file; ``trusted`` tells which folders may bring servers.

    ``environ`` is what servers may be given of ours, ``reserved`` are names of tools that no server may take,
    ``logins`` are the tokens of servers that the user has logged in to, ``plugins`` bring servers of their own.
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
    ) -> None:
        self.environ = environ
        self.reserved = reserved
        self.user = user
        self.logins = logins
        self._servers = servers
        self._trusted = trusted
        self._plugins = plugins
        # Weakly: a session whose opening fails is never closed.
        self._sources = WeakValueDictionary[str, McpSource]()

    def source(self, session: Session) -> McpSource:
        """The servers of a session that is being opened, as a source of tools."""
        source = self._sources[session.id] = McpSource(self, session)
        return source

    def begin(self, session: Session) -> None:
        """Have the servers run that a session is set up with, now or anew; returns at once."""
        self._sources[session.id].begin()

    def of(self, session: Session) -> McpHost | None:
        """The host of a session that has servers, or had some."""
        return self._sources[session.id].host

    def need(self, session: Session) -> McpHost:
        """The host of a session, made where there is none."""
        return self._sources[session.id].need()

    def forget(self, source: McpSource) -> None:
        if self._sources.get(source.session.id) is source:
            del self._sources[source.session.id]

    def may_have(self, settings: SessionSettings) -> bool:
        """Whether there can be servers; cheap, and no promise."""
        agent = settings.custom_agent
        return bool(
            settings.mcp_servers
            or (agent is not None and (agent.mcp_servers or agent.name in settings.lost_agent_servers))
            or settings.lost_mcp_servers
            or self._servers
            or settings.config_discovery
            or self._plugins.folders(settings)
            or self.user.exists()
        )

    def find(self, settings: SessionSettings) -> dict[str, ServerEntry]:
        """All servers of such a session, by name."""
        from jumpseat.agent.agent_files import AgentFile
        from jumpseat.mcp.catalogue import check_servers, find_servers

        discovers = settings.config_discovery and self._trusted(settings.cwd)
        own, lost = settings.mcp_servers, settings.lost_mcp_servers
        agent = settings.custom_agent
        if agent is not None and not isinstance(agent, AgentFile):
            own = {**own, **check_servers(agent.mcp_servers or {})}
            lost = {**lost, **settings.lost_agent_servers.get(agent.name, {})}
        return find_servers(
            own,
            lost=lost,
            agent=agent if isinstance(agent, AgentFile) else None,
            user=self._servers,
            user_file=self.user.servers(),
            disabled=self.user.disabled(),
            off=frozenset(settings.disabled_mcp_servers),
            project=settings.cwd if discovers else None,
            plugins=self._plugins.of(settings),
        )


class McpSource:
    """The tools of one session's servers. ``host`` is there once the session has servers."""

    def __init__(self, hosts: McpHosts, session: Session) -> None:
        self.session = session
        self.host: McpHost | None = None
        self._hosts = hosts

    def begin(self) -> None:
        if self.host is not None or self._hosts.may_have(self.session.settings):
            self.need().begin()

    def need(self) -> McpHost:
        if self.host is None:
            from jumpseat.mcp.host import McpHost

            self.host = McpHost(self.session, self._hosts)
        return self.host

    def tools(self) -> Mapping[str, Tool]:
        return self.host.tools() if self.host is not None else {}

    async def look(self, prompt: str) -> None:
        """What servers say of themselves goes into the system message, so that has to wait for them."""
        if self.session.settings.mcp_instructions:
            await self.ready()

    def instructions(self, offered: Collection[str]) -> list[str]:
        if self.host is None or not self.session.settings.mcp_instructions:
            return []
        return self.host.instructions(offered)

    def words(self, name: str) -> str | None:
        """A tool of a server is mentioned like any other."""
        return None

    async def ready(self) -> None:
        if self.host is not None:
            await self.host.ready()

    async def close(self, grace_s: float) -> None:
        self._hosts.forget(self)
        if self.host is not None:
            await self.host.close(grace_s)
