"""An MCP server of the revision 2026-07-28 whose only tool runs as a task, in one process on loopback."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.model_server import Reply, SeenRequest, json_reply

EXTENSION: Final = "io.modelcontextprotocol/tasks"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"


@dataclass
class TaskServer:
    """A server and its tasks. ``states`` are the states of the task, one per request; the last one is repeated."""

    states: list[dict[str, Any]]
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """All requests, in the order of their arrival."""

    def __call__(self, request: SeenRequest) -> Reply:
        if request.method != "POST":
            return json_reply({}, status=405)
        message: dict[str, Any] = request.json
        self.asked.append(message)
        if "id" not in message:
            return json_reply({}, status=202)
        method, params = message["method"], message.get("params", {})
        if method.startswith("tasks/"):
            assert request.headers["mcp-name"] == params["taskId"]
        match method:
            case "server/discover":
                result: dict[str, Any] = {
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}, "extensions": {EXTENSION: {}}},
                    "serverInfo": {"name": "slow", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [{"name": "dig", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                assert EXTENSION in params["_meta"][CAPABILITIES]["extensions"]
                result = {**self._task({"status": "working", "statusMessage": "queued"}), "resultType": "task"}
            case "tasks/get":
                state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
                result = self._task(state)
            case "tasks/update" | "tasks/cancel":
                result = {}
            case _:
                error = {"code": -32601, "message": "Method not found"}
                return json_reply({"jsonrpc": "2.0", "id": message["id"], "error": error}, status=404)
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
        return json_reply({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def count(self, method: str) -> int:
        """Return the number of requests for a method."""
        return sum(message["method"] == method for message in self.asked)

    @staticmethod
    def _task(state: dict[str, Any]) -> dict[str, Any]:
        return {
            "taskId": "task-7",
            "createdAt": "2026-11-29T10:00:00Z",
            "lastUpdatedAt": "2026-11-29T10:00:00Z",
            "ttlMs": None,
            "pollIntervalMs": 250,
            **state,
        }
