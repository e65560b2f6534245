"""The calling connection, and the parts of the server that handlers may use."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from jumpseat.adapters.models.resolver import Models
from jumpseat.agent.client import Client
from jumpseat.agent.secrets import Secrets
from jumpseat.errors import InvalidRequestError
from jumpseat.lsp.source import LanguageServers
from jumpseat.mcp.session_hosts import McpHosts
from jumpseat.sessions.access import NOTHING, Access, Gate
from jumpseat.sessions.registry import SessionRegistry
from jumpseat.store.plugins.plugin_folders import PluginFolders
from jumpseat.store.project.skills import SkillLibrary
from jumpseat.store.user.accounts import Accounts
from jumpseat.store.user.mcp_config import McpConfigFile
from jumpseat.store.user.provider_keys import ProviderKeys
from jumpseat.store.user.settings import UserSettings
from jumpseat.store.user.trusted_folders import TrustedFolders
from jumpseat.tools.declared.declarations import Declarations
from jumpseat_protocol import events
from jumpseat_protocol.wire import WireModel

if TYPE_CHECKING:
    from jumpseat.sessions.persisted_events import PersistedReads
    from jumpseat.store.plugins.installed_plugins import InstalledPlugins
    from jumpseat.store.project.agents import AgentLibrary
    from jumpseat.store.project.hook_files import HookFiles
    from jumpseat.store.project.instructions import InstructionFiles
    from jumpseat_protocol.session_fs import SetFsProviderParams

R = TypeVar("R", bound=WireModel)


class Caller(Client, Protocol):
    """The connection that a request came over.

    ``access`` is ``None`` until the handshake, if the server requires a connection token. ``handshake_done``
    becomes true when the client sends ``connect``, which older clients do not. ``protocol`` is set by the first
    request. ``wants_telemetry`` is true for a client that receives ``gitHubTelemetry.event``. ``streams`` are the
    ids of the answers of ``jumpseat.complete`` that are being streamed. ``session_fs`` describes the virtual file
    system in which the client's sessions are stored, if it has registered one.
    """

    access: Access | None
    handshake_done: bool
    protocol: int | None
    wants_telemetry: bool
    streams: set[str]
    session_fs: SetFsProviderParams | None

    def admit(self) -> None:
        """Lift the limits that apply until the first valid request."""
        ...

    @property
    def label(self) -> str:
        """The name of the connection in the log."""
        ...

    @property
    def connected(self) -> bool:
        """Return whether the client has not hung up."""
        ...

    async def ask_session_fs(self, method: str, params: WireModel, result: type[R]) -> R:
        """See :class:`jumpseat.store.session_fs.file_system.FileSystemClient`."""
        ...

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification that belongs to no session."""
        ...

    async def wait_until_read(self) -> None:
        """Wait until the client has read most of the data sent to it, however long that takes, or has hung up."""
        ...

    def catch_up(
        self, session_id: str, questions: Iterable[events.ExternalToolRequested | events.PermissionRequested]
    ) -> None:
        """Send the open questions of a session to this client, if its protocol requires that."""
        ...


class Process(Protocol):
    """The parts and the life cycle of the process, as far as handlers use them."""

    @property
    def gate(self) -> Gate:
        """The connection tokens."""
        ...

    @property
    def protocol(self) -> int | None:
        """The protocol version that the operator has set, if any."""
        ...

    @property
    def user_settings(self) -> UserSettings:
        """The user's settings for new sessions."""
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
    def instructions(self) -> InstructionFiles:
        """The instruction files of projects and of the user."""
        ...

    @property
    def plugins(self) -> PluginFolders:
        """The plugins of all sessions."""
        ...

    @property
    def installed_plugins(self) -> InstalledPlugins:
        """The plugins that the user has installed, and the marketplaces."""
        ...

    @property
    def hook_files(self) -> HookFiles:
        """The hooks in files."""
        ...

    @property
    def runs_hook_files(self) -> bool:
        """Return whether the operator lets hooks in files run."""
        ...

    @property
    def persisted_reads(self) -> PersistedReads:
        """The unfinished reads of stored logs."""
        ...

    @property
    def trust(self) -> TrustedFolders:
        """The folders that the user trusts."""
        ...

    @property
    def declarations(self) -> Declarations:
        """The declared tools."""
        ...

    @property
    def lsp(self) -> LanguageServers:
        """The language servers of all sessions."""
        ...

    @property
    def secrets(self) -> Secrets:
        """The values that are masked in all output."""
        ...

    @property
    def mcp_config(self) -> McpConfigFile:
        """The MCP servers that the user has configured with a client."""
        ...

    @property
    def accounts(self) -> Accounts:
        """The stored logins to GitHub."""
        ...

    @property
    def home(self) -> Path:
        """The home folder."""
        ...

    @property
    def keys(self) -> ProviderKeys:
        """The keys of providers that the user has entered."""
        ...

    @property
    def ending(self) -> bool: ...

    async def close_sessions(self) -> None:
        """Close all sessions and export their telemetry, within time limits."""
        ...

    def stop_soon(self) -> None:
        """Refuse further requests and end the process."""
        ...


class Server(Struct, frozen=True):
    """The parts of the server for work that no connection has asked for, such as queued commands."""

    registry: SessionRegistry
    models: Models
    process: Process
    mcp: McpHosts


class Context(Struct, frozen=True):
    """The parts of the server that a handler may use, one instance per connection."""

    connection: Caller
    all_sessions: SessionRegistry
    models: Models
    process: Process
    mcp: McpHosts

    @property
    def registry(self) -> SessionRegistry:
        """The sessions that exist for the calling connection."""
        return self.all_sessions.seen_by(self.connection.access or NOTHING)

    @property
    def sees_all(self) -> bool:
        """Return whether the calling connection may see what concerns all sessions of the server."""
        return self.connection.access is not None and self.connection.access.all

    def require_all(self, action: str) -> None:
        """Check that the calling connection may do something that concerns all sessions of the server.

        Raises:
            InvalidRequestError: its token does not have the right ``all``.
        """
        if not self.sees_all:
            raise InvalidRequestError(f"{action} concerns all clients: the connection token needs the right 'all'")


Parts: TypeAlias = Server | Context
"""The parts of the server, for work that may do without a connection. ``registry`` has the sessions it may use."""
