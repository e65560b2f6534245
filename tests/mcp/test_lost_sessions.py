"""Services that lose their sessions, after a restart or for lack of use, and the end of sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.mcp_servers import call, session_with, turn
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply, text_reply
from tests.support.server import JsonObject, calls, running_server

pytestmark = pytest.mark.anyio
YOLO = ("--yolo",)


class Service:
    """A service with sessions of revision 2025-06-18; ``lost`` is its response to a request in another session.

    ``runs`` are the arguments of the calls that it has run.
    """

    def __init__(self, lost: Reply) -> None:
        self.session = 1
        self.runs: list[JsonObject] = []
        self._lost = lost

    def answer(self, request: SeenRequest) -> Reply:
        if request.method == "DELETE":
            return text_reply("")
        if request.method != "POST":
            return text_reply("", status=405)
        message = request.json
        method, sent = message["method"], request.headers.get("mcp-session-id")
        if method == "server/discover":
            return text_reply("", status=404)
        if method != "initialize" and sent != str(self.session):
            return self._lost
        if "id" not in message:
            return text_reply("", status=202)
        result: JsonObject = {}
        match method:
            case "initialize":
                assert sent is None
                server = {"name": "service", "version": "1"}
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
            case "tools/list":
                schema = {"type": "object"}
                hints = {"annotations": {"readOnlyHint": True}}
                result = {"tools": [{"name": "echo", "inputSchema": schema, **hints}]}
            case _:
                self.runs.append(message["params"]["arguments"])
                result = {"content": [{"type": "text", "text": "done"}]}
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return json_reply(reply, headers={"Mcp-Session-Id": str(self.session)} if method == "initialize" else None)


def refusal(code: int, message: str, status: int) -> Reply:
    return json_reply({"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": None}, status=status)


LOST = {
    "404, JSON-RPC": refusal(-32600, "Session not found", 404),
    "404, empty": text_reply("", status=404),
    "404, page": text_reply("<html>404</html>", status=404, content_type="text/html"),
    "400, Python": text_reply("Bad Request: No valid session ID provided", status=400),
    "400, TypeScript": refusal(-32000, "Bad Request: No valid session ID provided", 400),
    "400, after a restart": refusal(-32000, "Bad Request: Server not initialized", 400),
    "400, Go": text_reply("Invalid session ID", status=400),
    "401, Rust": text_reply("Unauthorized: Session not found", status=401),
    "410": text_reply("Gone", status=410),
}


@pytest.mark.parametrize("kind", LOST)
async def test_a_call_in_a_lost_session_is_repeated_in_a_new_one(tmp_path: Path, kind: str) -> None:
    service = Service(LOST[kind])
    both: list[JsonObject] = [
        {"id": f"c{number}", "name": "far-echo", "arguments": {"number": number}} for number in (2, 3)
    ]
    turns = (*turn("far-echo", number=1), {"tool_calls": both}, {"text": "end"}, *turn("far-echo", number=4))
    async with ModelServer(answer=service.answer) as far, running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "far", {"url": f"{far.url}/mcp"}, *turns)
        outcomes = [(await call(server.wire, session))[0]["success"]]
        service.session = 2
        events = await server.wire.prompt(session)
        outcomes += [event["data"]["success"] for event in events if event["type"] == "tool.execution_complete"]
        service.session = 3
        outcomes.append((await call(server.wire, session))[0]["success"])
        await server.wire.call("session.destroy", {"sessionId": session})
    assert outcomes == [True] * 4
    assert sorted(run["number"] for run in service.runs) == [1, 2, 3, 4]
    ended = [request.headers["mcp-session-id"] for request in far.requests if request.method == "DELETE"]
    # A lost session may be ended, too.
    assert ended[-1] == "3"


async def test_a_service_that_is_still_starting_is_tried_again(tmp_path: Path) -> None:
    service, busy = Service(LOST["404, empty"]), [503, 502]

    def start(request: SeenRequest) -> Reply:
        if service.session == 2 and b'"initialize"' in request.body and busy:
            return text_reply("", status=busy.pop())
        return service.answer(request)

    async with ModelServer(answer=start) as far, running_server(tmp_path, args=YOLO) as server:
        turns = (*turn("far-echo", number=1), *turn("far-echo", number=2))
        session = await session_with(server.wire, "far", {"url": f"{far.url}/mcp"}, *turns)
        await call(server.wire, session)
        service.session = 2
        done, _ = await call(server.wire, session)
    assert done["success"]
    assert [run["number"] for run in service.runs] == [1, 2]


async def test_a_call_that_no_session_accepts_fails_after_one_repetition(tmp_path: Path) -> None:
    service = Service(LOST["404, empty"])

    def forget(request: SeenRequest) -> Reply:
        refused = b"tools/call" in request.body
        return text_reply("", status=404) if refused else service.answer(request)

    async with ModelServer(answer=forget) as far, running_server(tmp_path, args=YOLO) as server:
        session = await session_with(
            server.wire, "far", {"url": f"{far.url}/mcp"}, calls("far-echo"), {"text": "end"}
        )
        done, _ = await call(server.wire, session)
    assert "lost the session" in json.dumps(done["error"])
    assert sum(b"tools/call" in request.body for request in far.requests) == 2


async def test_an_error_about_a_tool_is_not_taken_for_a_lost_session(tmp_path: Path) -> None:
    service = Service(LOST["404, empty"])

    def refuse(request: SeenRequest) -> Reply:
        if b"tools/call" in request.body:
            return refusal(-32602, "Missing argument: session id", 400)
        return service.answer(request)

    async with ModelServer(answer=refuse) as far, running_server(tmp_path, args=YOLO) as server:
        session = await session_with(
            server.wire, "far", {"url": f"{far.url}/mcp"}, calls("far-echo"), {"text": "end"}
        )
        done, _ = await call(server.wire, session)
    assert "Missing argument" in json.dumps(done["error"])
    assert sum(b"tools/call" in request.body for request in far.requests) == 1
