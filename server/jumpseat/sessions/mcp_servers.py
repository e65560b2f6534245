"""The MCP servers of a session, for methods and commands.

This module imports nothing heavy: most sessions have no enabled servers.
"""

from __future__ import annotations

from typing import Final

from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Parts
from jumpseat_protocol.mcp import McpServerInfo
from jumpseat_protocol.sessions import GitHubMcpToolConfig

STARTED: Final = ("connected", "pending")
"""The statuses of servers that were started."""


def listed_servers(server: Parts, session: Session) -> list[McpServerInfo]:
    """Return all servers of a session, in the order in which their tools are offered."""
    host = server.mcp.get(session)
    if host is not None:
        return host.servers()
    # Without another server, nothing of MCP is loaded for the disabled ones.
    builtin = server.mcp.builtin(session.settings).values()
    return [McpServerInfo(name=entry.name, status="disabled", source=entry.source) for entry in builtin]


async def enable_server(server: Parts, session: Session, name: str, otherwise: str) -> None:
    """Start a disabled server. Does nothing if it is running.

    Raises:
        InvalidRequestError: the session has no such server, or none at all; then ``otherwise`` is the message.
    """
    if name in server.mcp.builtin(session.settings) and session.settings.options.github_mcp_tool_config is None:
        session.settings.set_options(github_mcp_tool_config=GitHubMcpToolConfig())
        server.registry.store_options(session)
        server.mcp.begin(session)
    host = server.mcp.get(session)
    if host is None or not host.present:
        raise InvalidRequestError(otherwise)
    if not any(entry.name == name and entry.status in STARTED for entry in host.servers()):
        await host.start(name)
