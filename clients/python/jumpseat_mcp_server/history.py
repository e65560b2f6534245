"""Read a stored session, of whatever length, without opening it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from jumpseat_client import Client


async def records_backward(client: Client, session_id: str) -> AsyncGenerator[Mapping[str, Any]]:
    """Yield the stored events of a session but those of sub-agents, the latest first.

    Raises:
        JumpseatClientError: there is no such session.
    """
    cursor: str | None = None
    while True:
        params = {"sessionId": session_id, "direction": "backward", **({"cursor": cursor} if cursor else {})}
        page = await client.request("sessions.readPersistedEvents", params)
        for record in reversed(page["events"]):
            if "agentId" not in record:
                yield record
        cursor = page.get("cursor")
        if cursor is None or not page.get("hasMore", True):
            return
