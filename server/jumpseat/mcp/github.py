"""GitHub's own MCP server: an entry that every session has, and that is disabled by default.

Its tools would cost every request some thousand tokens, and its use sends the session's GitHub login over the
network. So it needs a client that configures it, or the operator's ``[mcp] github = true``. It is reached at the
Copilot API of the login's site: https://github.com/github/github-mcp-server/blob/main/docs/remote-server.md
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ProviderRequestError
from jumpseat.mcp.catalogue import ServerEntry
from jumpseat_protocol.mcp_servers import McpServerConfig
from jumpseat_protocol.sessions import GitHubMcpToolConfig

NAME: Final = "github-mcp-server"

_SHOWN: Final = "https://api.githubcopilot.com/mcp/readonly"


class GitHubAccess(Protocol):
    """The GitHub logins of sessions."""

    async def mcp_endpoint(self, settings: SessionSettings) -> tuple[str, str]:
        """Return the address of the MCP server of a session's login, and the login's token.

        Raises:
            ProviderError: the session has no login, or GitHub cannot be reached.
        """
        ...


MakeConfig: TypeAlias = Callable[[GitHubMcpToolConfig], Awaitable[McpServerConfig]]
"""Returns the settings for one start of the server, with the token of that moment."""


def entry_of(settings: SessionSettings, *, by_default: bool) -> ServerEntry:
    """Return the entry of a session; ``by_default`` enables it where the client has not configured it."""
    return ServerEntry(
        NAME,
        # The address and the token are only known when the server is started.
        McpServerConfig(type="http", url=_SHOWN),
        "builtin",
        literal=True,
        enabled=(settings.options.github_mcp_tool_config is not None or by_default)
        and NAME not in settings.options.disabled_mcp_servers,
        github=settings.options.github_mcp_tool_config or GitHubMcpToolConfig(),
    )


async def config_of(
    access: GitHubAccess, settings: SessionSettings, wanted: GitHubMcpToolConfig
) -> McpServerConfig:
    """Return the settings for one start.

    Raises:
        ProviderError: as in :meth:`GitHubAccess.mcp_endpoint`, or a name cannot be sent.
    """
    url, token = await access.mcp_endpoint(settings)
    headers = {"Authorization": f"Bearer {token}"}
    toolsets, tools = wanted.additional_toolsets or [], wanted.additional_tools or []
    if wanted.enable_all_tools:
        headers["X-MCP-Toolsets"] = "all"
    elif toolsets or tools:
        # Tools alone would take the place of the default ones.
        headers["X-MCP-Toolsets"] = ",".join(dict.fromkeys(["default", *toolsets]))
        if tools:
            headers["X-MCP-Tools"] = ",".join(tools)
    if wanted.enable_insiders_mode:
        headers["X-MCP-Insiders"] = "true"
    for name, value in headers.items():
        if not value.isascii():
            raise ProviderRequestError(f"{name}: expected names of tools in ASCII")
    writes = wanted.enable_all_tools or toolsets or tools
    return McpServerConfig(type="http", url=url if writes else f"{url}/readonly", headers=headers)
