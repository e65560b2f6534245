"""Events that ask clients for the credentials of a server; clients register an interest in them."""

from __future__ import annotations

from typing import Final

OAUTH: Final = "mcp.oauth_required"
HEADERS: Final = "mcp.headers_refresh_required"
