"""An MCP server over HTTP that requires tokens, in plain JSON: ``ModelServer(answer=guarded)``."""

from __future__ import annotations

from tests.support.model_server import Reply, SeenRequest, json_reply
from tests.support.server import JsonObject

METADATA = {"resource": "here", "scopes_supported": ["read"]}


def guarded(request: SeenRequest) -> Reply:
    """Answer as a server that requires the token ``two`` for calls, and ``one`` for everything else."""
    if request.path == "/.well-known/oauth-protected-resource":
        return json_reply(METADATA)
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    message: JsonObject = request.json if request.method == "POST" else {}
    if token not in ("one", "two"):
        header = f'Bearer resource_metadata="http://{request.headers["host"]}/.well-known/oauth-protected-resource"'
        return json_reply({}, status=401, headers={"WWW-Authenticate": f'{header}, scope="read"'})
    match message.get("method"):
        case "initialize":
            result: JsonObject = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            }
        case "tools/list":
            result = {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}
        case "tools/call" if token != "two":
            header = 'Bearer scope="write", error="insufficient_scope"'
            return json_reply({}, status=403, headers={"WWW-Authenticate": header})
        case "tools/call":
            result = {"content": [{"type": "text", "text": "gone"}]}
        case _:
            return json_reply({}, status=202 if request.method == "POST" else 405)
    return json_reply({"jsonrpc": "2.0", "id": message["id"], "result": result})
