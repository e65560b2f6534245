"""An MCP server of one protocol revision, in plain JSON: ``revised_mcp_server.py REVISION TRANSPORT [MANNER]``.

The transport is ``stdio``, ``http`` or ``sse``; the last two print their port. The server checks what the revision
requires of its client, and knows nothing of the other revisions: one before 2026-07-28 refuses
``server/discover``, or, on stdio, is ``silent`` about it or ``exits``, as some servers do.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import uvicorn
from anyio.abc import TaskGroup

JsonObject: TypeAlias = dict[str, Any]
Send: TypeAlias = Callable[[JsonObject], Awaitable[None]]

STATELESS = "2026-07-28"
META = "io.modelcontextprotocol/"
QUESTIONS: dict[str, JsonObject] = {
    "think": {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "What is 2+2?"}}],
            "maxTokens": 10,
        },
    },
    "ask": {
        "method": "elicitation/create",
        "params": {
            "message": "Which colour?",
            "requestedSchema": {"type": "object", "properties": {"colour": {"type": "string"}}},
        },
    },
    "roots": {"method": "roots/list"},
}
CHANGED = [f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")]


class RefusedError(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message, **({"data": data} if data else {})}


class Server:
    """The server behind all transports; ``announce`` sends a message that belongs to no request."""

    def __init__(self, revision: str, manner: str) -> None:
        self.stateless = revision == STATELESS
        self.announce: Send | None = None
        self._revision = revision
        self._manner = manner
        self._names = ["echo", "wait", "learn", *QUESTIONS]
        self._scopes: dict[Any, anyio.CancelScope] = {}
        self._answers: dict[str, JsonObject] = {}
        self._asked: dict[str, anyio.Event] = {}
        self._listeners: dict[Any, Send] = {}

    async def take(self, message: JsonObject, send: Send) -> None:
        """Handle a message of the client; ``send`` sends messages that belong to it."""
        method: str | None = message.get("method")
        params: JsonObject = message.get("params") or {}
        if method is None:
            self._answers[message["id"]] = message
            self._asked[message["id"]].set()
        elif method == "notifications/cancelled":
            self.cancel(params["requestId"])
        elif "id" in message and not (method == "server/discover" and self._manner == "silent"):
            await self._respond(message["id"], method, params, send)

    def cancel(self, request_id: Any) -> None:
        """Cancel a request that is being handled."""
        if request_id in self._scopes:
            self._scopes[request_id].cancel()

    async def _respond(self, request_id: Any, method: str, params: JsonObject, send: Send) -> None:
        with anyio.CancelScope() as scope:
            self._scopes[request_id] = scope
            try:
                self._check(method, params)
                result = await self._result(request_id, method, params, send)
                if self.stateless:
                    result = {"resultType": "complete", **result}
                answer: JsonObject = {"result": result}
            except RefusedError as error:
                answer = {"error": error.body}
            await send({"jsonrpc": "2.0", "id": request_id, **answer})
        if scope.cancelled_caught and (mark := os.environ.get("CANCELLED")):
            await anyio.Path(mark).touch()
        del self._scopes[request_id]

    def _check(self, method: str, params: JsonObject) -> None:
        meta = params.get("_meta", {})
        if self.stateless:
            if method == "initialize":
                raise RefusedError(-32022, "no handshake", {"supported": [STATELESS], "requested": "older"})
            assert meta[f"{META}protocolVersion"] == STATELESS, meta
            assert {f"{META}clientInfo", f"{META}clientCapabilities"} <= {*meta}, meta
        else:
            assert not any(key.startswith(META) for key in meta) or method == "server/discover", meta
            if method == "server/discover":
                if self._manner == "exits":
                    os._exit(1)
                raise RefusedError(-32601, "Method not found")

    async def _result(self, request_id: Any, method: str, params: JsonObject, send: Send) -> JsonObject:
        cacheable = {"ttlMs": 0, "cacheScope": "private"} if self.stateless else {}
        capabilities = {kind: {"listChanged": True} for kind in ("tools", "resources", "prompts")}
        match method:
            case "initialize":
                info = {"name": "revised", "version": "1"}
                return {"protocolVersion": self._revision, "capabilities": capabilities, "serverInfo": info}
            case "server/discover":
                return {"supportedVersions": [STATELESS], "capabilities": capabilities, **cacheable}
            case "tools/list":
                tools = [{"name": name, "inputSchema": {"type": "object"}} for name in self._names]
                return {"tools": tools, **cacheable}
            case "resources/list":
                return {"resources": [{"uri": "test://greeting", "name": "greeting"}], **cacheable}
            case "resources/read":
                return {"contents": [{"uri": params["uri"], "text": "hello"}], **cacheable}
            case "prompts/list":
                return {"prompts": [{"name": "review"}], **cacheable}
            case "prompts/get":
                text = f"Review this: {params['arguments']['code']}"
                return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
            case "subscriptions/listen" if self.stateless:
                return await self._listen(request_id, params["notifications"], send)
            case "tools/call":
                return await self._call(params, send)
            case _:
                raise RefusedError(-32601, "Method not found")

    async def _call(self, params: JsonObject, send: Send) -> JsonObject:
        progress = {"progressToken": params["_meta"]["progressToken"], "progress": 1, "total": 2}
        await send({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
        match params["name"]:
            case "echo":
                return text(params["arguments"]["text"])
            case "wait":
                await anyio.sleep_forever()
            case "learn":
                self._names.append("learnt")
                for method in CHANGED:
                    await self._announce(method)
                return text("learnt")
            case "learnt":
                return text("new")
            case name if not self.stateless:
                return text(await self._ask(QUESTIONS[name], send))
            case name if "inputResponses" not in params:
                state = {"requestState": "the state"}
                return {"resultType": "input_required", "inputRequests": {"question": QUESTIONS[name]}, **state}
            case _:
                assert params["requestState"] == "the state"
                return text(params["inputResponses"]["question"])
        raise AssertionError

    async def _ask(self, question: JsonObject, send: Send) -> JsonObject:
        """Send a request to the client and return its result."""
        key = f"question-{len(self._asked)}"
        self._asked[key] = anyio.Event()
        await send({"jsonrpc": "2.0", "id": key, **question})
        await self._asked[key].wait()
        if "error" in self._answers[key]:
            raise RefusedError(-32603, self._answers[key]["error"]["message"])
        return self._answers[key]["result"]

    async def _listen(self, request_id: Any, wanted: JsonObject, send: Send) -> JsonObject:
        stamp = {f"{META}subscriptionId": request_id}
        params = {"_meta": stamp, "notifications": wanted}
        await send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        self._listeners[request_id] = send
        try:
            await anyio.sleep_forever()
        finally:
            del self._listeners[request_id]
        return {}

    async def _announce(self, method: str) -> None:
        if not self.stateless and self.announce is not None:
            await self.announce({"jsonrpc": "2.0", "method": method})
        for request_id, send in self._listeners.items():
            await send(
                {"jsonrpc": "2.0", "method": method, "params": {"_meta": {f"{META}subscriptionId": request_id}}}
            )


def text(value: Any) -> JsonObject:
    return {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}


# --- transports ---------------------------------------------------------------------------------------------------


async def serve_stdio(server: Server) -> None:
    async def send(message: JsonObject) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    server.announce = send
    async with anyio.create_task_group() as tasks:
        async for line in anyio.wrap_file(sys.stdin):
            tasks.start_soon(server.take, json.loads(line), send)
        tasks.cancel_scope.cancel()


class Http:
    """The server as an ASGI application: streamable HTTP, or the older transport with ``GET /sse``."""

    def __init__(self, server: Server, tasks: TaskGroup) -> None:
        self._server = server
        self._tasks = tasks

    async def __call__(self, scope: JsonObject, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        match scope["method"], scope["path"]:
            case "GET", "/sse":
                await self._announcements(receive, send, b"event: endpoint\ndata: /messages\n\n")
            case "GET", "/mcp" if not self._server.stateless:
                assert headers["mcp-session-id"] == "the session"
                await self._announcements(receive, send)
            case "POST", "/messages":
                message = json.loads(await body_of(receive))
                assert self._server.announce is not None
                self._tasks.start_soon(self._server.take, message, self._server.announce)
                await respond(send, 202)
            case "POST", "/mcp":
                await self._post(json.loads(await body_of(receive)), headers, receive, send)
            case "DELETE", "/mcp":
                await respond(send, 200)
            case _:
                await respond(send, 405)

    async def _announcements(self, receive: Any, send: Any, first: bytes = b"") -> None:
        await start(send, 200, "text/event-stream")
        await send({"type": "http.response.body", "body": first, "more_body": True})

        async def announce(message: JsonObject) -> None:
            await send({"type": "http.response.body", "body": event(message), "more_body": True})

        self._server.announce = announce
        await disconnected(receive)

    async def _post(self, message: JsonObject, headers: dict[str, str], receive: Any, send: Any) -> None:
        method = message.get("method")
        if method == "server/discover" and not self._server.stateless:
            await respond(
                send, 400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no session"}}
            )
            return
        if self._server.stateless and method != "initialize":
            assert headers["mcp-method"] == method
            assert headers["mcp-protocol-version"] == STATELESS
            assert method != "tools/call" or headers["mcp-name"] == message["params"]["name"]
        elif method != "initialize":
            assert headers["mcp-session-id"] == "the session"
        if "id" not in message or method is None:
            await self._server.take(message, nowhere)
            await respond(send, 202)
        elif method in ("tools/call", "subscriptions/listen"):
            await self._stream(message, receive, send)
        else:
            answers: list[JsonObject] = []

            async def collect(answer: JsonObject) -> None:
                answers.append(answer)

            await self._server.take(message, collect)
            status = 400 if self._server.stateless and "error" in answers[0] else 200
            await respond(send, status, answers[0])

    async def _stream(self, message: JsonObject, receive: Any, send: Any) -> None:
        await start(send, 200, "text/event-stream")

        async def write(answer: JsonObject) -> None:
            await send({"type": "http.response.body", "body": event(answer), "more_body": True})

        async def watch() -> None:
            await disconnected(receive)
            if self._server.stateless:
                # The end of the stream is the cancellation.
                self._server.cancel(message["id"])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await self._server.take(message, write)
            tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b""})


async def nowhere(message: JsonObject) -> None:
    raise AssertionError(message)


def event(message: JsonObject) -> bytes:
    return f"event: message\ndata: {json.dumps(message)}\n\n".encode()


async def body_of(receive: Any) -> bytes:
    body = b""
    while True:
        part = await receive()
        body += part["body"]
        if not part.get("more_body"):
            return body


async def disconnected(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def start(send: Any, status: int, kind: str) -> None:
    headers = [(b"content-type", kind.encode()), (b"mcp-session-id", b"the session")]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def respond(send: Any, status: int, body: JsonObject | None = None) -> None:
    await start(send, status, "application/json")
    await send({"type": "http.response.body", "body": json.dumps(body).encode() if body else b""})


async def serve_http(server: Server) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    async with anyio.create_task_group() as tasks:
        config = uvicorn.Config(Http(server, tasks), log_level="error", lifespan="off")
        await uvicorn.Server(config).serve(sockets=[listener])


def main() -> None:
    _, revision, transport, *manner = sys.argv
    anyio.run(serve_stdio if transport == "stdio" else serve_http, Server(revision, *(manner or [""])))


if __name__ == "__main__":
    main()
