"""The MCP servers that an editor serves over its own connection, with ``mcp/message`` (unstable).

Each request names the server, and itself: the notifications that belong to it bear both names.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from jumpseat.acp.translation.params import McpNotificationParams, McpOutcome
from jumpseat.errors import ClientCallError

Ask = Callable[[str, dict[str, Any], type[McpOutcome]], Awaitable[McpOutcome]]


class EditorMcp:
    """The servers of one editor. ``ids`` are those that it has declared, for any session."""

    def __init__(self, ask: Ask) -> None:
        self.ids: set[str] = set()
        self._ask = ask
        self._open: dict[tuple[str, str], Callable[[dict[str, Any]], None]] = {}

    async def ask(
        self, server_id: str, message: dict[str, Any], notified: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        """See :meth:`jumpseat.agent.client.Client.ask_mcp`."""
        # Sessions may share a server, each with requests that count from zero.
        request_id = f"{message['id']}-{uuid.uuid4()}"
        params: dict[str, Any] = {"serverId": server_id, "requestId": request_id, "method": message["method"]}
        if message.get("params") is not None:
            params["params"] = message["params"]
        self._open[server_id, request_id] = notified
        try:
            outcome = await self._ask("mcp/message", params, McpOutcome)
        finally:
            del self._open[server_id, request_id]
        if "result" in outcome.model_fields_set:
            return {"result": outcome.result}
        if outcome.error is None:
            raise ClientCallError("the editor's response to 'mcp/message' has neither a result nor an error")
        return {"error": outcome.error}

    def notify(self, params: McpNotificationParams) -> None:
        """Pass on a notification. One of a request that has ended is ignored."""
        if (notified := self._open.get((params.server_id, params.request_id))) is not None:
            notified({"method": params.method, "params": params.params})
