"""The MCP servers in the document "Custom Tools", as values of ``mcp_servers``."""

from __future__ import annotations

import os
from typing import Any


def local_mcp_server() -> dict[str, dict[str, Any]]:
    """Local MCP Server (stdio), line 380."""
    return {
        "my-server": {
            "type": "local",
            "command": "node",
            "args": ["./mcp-server.js"],
            "env": {"API_KEY": os.environ["API_KEY"]},
        }
    }


def remote_mcp_server(token: str) -> dict[str, dict[str, Any]]:
    """Remote MCP Server (HTTP/SSE), line 396."""
    return {
        "github": {
            "type": "http",
            "url": "https://api.githubcopilot.com/mcp/",
            "headers": {"Authorization": f"Bearer {token}"},
        }
    }
