"""Tokens of clients for MCP servers. A token answers one question of its server; what it asks later is shown."""

from __future__ import annotations

from jumpseat.ahp.live.mirror import Mirror
from jumpseat.mcp.interests import OAUTH


def offer_token(mirror: Mirror, url: str, token: str) -> bool:
    """Give a token to the servers of a session at an address; return whether there are any that require one."""
    host = mirror.context.mcp.get(mirror.session)
    waiting = [server for server in host.servers() if server.status == "needs-auth"] if host is not None else []
    found = False
    for server in waiting:
        entry = host.entry(server.name) if host is not None else None
        if host is None or entry is None or entry.config is None or entry.config.url != url:
            continue
        found = True
        if token:
            mirror.tokens[url] = token
            mirror.interests.append(mirror.session.clients.add_interest(mirror, OAUTH))
            host.retry_auth(server.name)
    return found
