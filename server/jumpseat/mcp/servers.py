"""The servers of a session as its MCP host keeps them, and what clients and models see of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct, field

from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError
from jumpseat.mcp.catalogue import MissingVariableError, ServerEntry, resolve_config
from jumpseat.mcp.github import GitHubAccess
from jumpseat.mcp.naming import tool_name
from jumpseat.mcp.tools import McpTool
from jumpseat.sandbox.session import Sandboxes
from jumpseat.system.descendants import Descendants
from jumpseat_protocol import events
from jumpseat_protocol.mcp import McpStatus
from jumpseat_protocol.mcp_servers import McpServerConfig

if TYPE_CHECKING:
    from jumpseat.mcp.auth import ClientTokens
    from jumpseat.mcp.connection import Connection
    from jumpseat.mcp.tokens import LoginTokens


class HostServices(Struct, frozen=True):
    """Services of the process that the hosts of all sessions share.

    ``environ`` holds the variables that servers may use, ``reserved`` the tool names that no server may take,
    ``logins`` the tokens of stored logins. ``find`` returns the servers of a session with such settings, by name.
    ``sandboxes`` confine servers over stdio, ``descendants`` ends what they leave behind. The lock ``starting`` is
    held for an iteration of the event loop before each start.
    """

    environ: Mapping[str, str]
    reserved: frozenset[str]
    logins: LoginTokens
    find: Callable[[SessionSettings], dict[str, ServerEntry]]
    starting: anyio.Lock
    sandboxes: Sandboxes | None = None
    descendants: Descendants | None = None
    github: GitHubAccess | None = None

    def environ_of(self, session_id: str) -> Mapping[str, str]:
        """Return the variables that the servers of a session may use."""
        return self.environ if self.descendants is None else self.descendants.marked(self.environ, session_id)


class ServerState(Struct):
    """The state of a server in this session; ``connection`` is the latest one, if the server was ever started."""

    entry: ServerEntry
    status: McpStatus = "pending"
    error: str | None = None
    connection: Connection | None = None
    tokens: dict[str, ClientTokens] = field(default_factory=lambda: dict[str, "ClientTokens"]())


def remote_config(states: Mapping[str, ServerState], name: str, environ: Mapping[str, str]) -> McpServerConfig:
    """Return the settings of a server with a URL, with variables replaced as for a start.

    Raises:
        InvalidRequestError: the server is not configured or not remote, or a variable is not set.
    """
    state = states.get(name)
    if state is None or state.entry.config is None:
        raise InvalidRequestError(f"MCP server {name!r} is not configured")
    if not state.entry.config.remote:
        raise InvalidRequestError(f"MCP server {name!r} is not a remote server")
    try:
        return resolve_config(state.entry, state.entry.config, environ)
    except MissingVariableError as error:
        raise InvalidRequestError(f"MCP server {name!r}: {error}") from None


def loaded_server(state: ServerState) -> events.McpLoadedServer:
    """Return the state of a server for the event that all are loaded."""
    entry = state.entry
    return events.McpLoadedServer(
        name=entry.name,
        status=state.status,
        source=entry.source,
        transport=entry.config.transport if entry.config else None,
        plugin_name=entry.plugin,
        error=state.error,
    )


def tools_of(states: Iterable[ServerState], session: Session, taken: set[str]) -> dict[str, McpTool]:
    """Return the tools of all servers by the names that the model sees, which are added to ``taken``."""
    tools: dict[str, McpTool] = {}
    for state in states:
        for tool in state.connection.tools if state.connection else ():
            name = tool_name(state.entry.name, tool.name, taken)
            taken.add(name)
            assert state.connection is not None
            tools[name] = McpTool(name, session, state.connection, tool)
    return tools
