"""What clients say they can be asked for servers: the names of the events that ask them."""

from __future__ import annotations

from typing import Final

OAUTH: Final = "mcp.oauth_required"
HEADERS: Final = "mcp.headers_refresh_required"
