"""Tokens of clients for MCP servers. A token answers one question of its server; what it asks later is shown."""

from __future__ import annotations

from jumpseat.ahp.live.mirror import Mirror
from jumpseat.mcp.interests import OAUTH


def offer_token(mirror: Mirror, url: str, token: str) -> bool:
    """Give a token to the servers of a session at an address; return whether there are any.

    A server that is connected needs none. One that is starting may ask for it at any moment.
    """
    host = mirror.context.mcp.get(mirror.session)
    found = False
    for server in host.servers() if host is not None else ():
        entry = host.entry(server.name) if host is not None else None
        if host is None or entry is None or entry.config is None or entry.config.url != url:
            continue
        found = True
        if token and server.status in ("needs-auth", "pending"):
            mirror.tokens[url] = token
            mirror.interests.append(mirror.session.clients.add_interest(mirror, OAUTH))
            host.retry_auth(server.name)
    return found
