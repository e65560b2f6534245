"""What a handler is given: who asks, and the parts of the server it may use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jumpseat.adapters.models.resolver import Models
from jumpseat.agent.client import Client
from jumpseat.agent.secrets import Secrets
from jumpseat.mcp.hosts import McpHosts
from jumpseat.sessions.registry import SessionRegistry
from jumpseat.store.mcp_config import McpConfigFile
from jumpseat.store.plugins import PluginFolders
from jumpseat.store.skills import SkillLibrary
from jumpseat.store.trusted_folders import TrustedFolders
from jumpseat.store.user_settings import UserSettings
from jumpseat.tools.orchestrator.declarations import Declarations
from jumpseat_protocol import events

if TYPE_CHECKING:
    from jumpseat.store.agents import AgentLibrary


class Caller(Client, Protocol):
    """The connection a request came over. ``protocol`` is settled by its first request.

    ``authenticated`` turns true by the handshake, where there is a connection token; ``handshaken`` tells clients
    that have sent ``connect`` from older ones.
    """

    authenticated: bool
    handshaken: bool
    protocol: int | None

    def catch_up(
        self, session_id: str, questions: Iterable[events.ExternalToolRequested | events.PermissionRequested]
    ) -> None:
        """Ask what a session had asked before this client came, where its protocol needs that."""
        ...


class Process(Protocol):
    """The life of the process, as far as handlers take part in it."""

    @property
    def connection_token(self) -> str | None: ...

    @property
    def protocol(self) -> int | None:
        """The protocol the operator has fixed, if any."""
        ...

    @property
    def user_settings(self) -> UserSettings:
        """What a user wants of every new session."""
        ...

    @property
    def skills(self) -> SkillLibrary:
        """The skills of all sessions."""
        ...

    @property
    def agents(self) -> AgentLibrary:
        """The custom agents in files."""
        ...

    @property
    def plugins(self) -> PluginFolders:
        """The plugins of all sessions."""
        ...

    @property
    def trust(self) -> TrustedFolders:
        """Which folders the user trusts."""
        ...

    @property
    def declarations(self) -> Declarations:
        """The declared tools."""
        ...

    @property
    def secrets(self) -> Secrets:
        """What must not be told."""
        ...

    @property
    def mcp_config(self) -> McpConfigFile:
        """The MCP servers that a user has set up with a client."""
        ...

    @property
    def ending(self) -> bool: ...

    async def close_sessions(self) -> None:
        """End all sessions, as far as they end in time."""
        ...

    def stop_soon(self) -> None:
        """Serve nothing more and end the process."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """One per connection."""

    connection: Caller
    registry: SessionRegistry
    models: Models
    process: Process
    mcp: McpHosts
