"""MCP servers of a session, over the real wire: real servers, and servers that misbehave."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_servers import call, list_servers, remote, rude, session_with, status, stdio, turn
from tests.support.model_server import ModelServer, Reply, SeenRequest, event_stream, json_reply, text_reply
from tests.support.provided import at, send_prompt, serving
from tests.support.server import JsonObject, calls, running_server, scripted, wait_until_gone
from tests.support.toolchains import missing, require_npm

pytestmark = pytest.mark.anyio
YOLO = ("--yolo",)


# --- transports ---------------------------------------------------------------------------------------------------


async def test_the_model_calls_a_tool_of_a_child_process(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await session_with(wire, "testing", stdio(), *turn("testing-echo", text="hello"))
        completion, text = await call(wire, session)
        listing = await list_servers(wire, {"sessionId": session})
        tools = await wire.call("session.mcp.listTools", {"sessionId": session, "serverName": "testing"})
        metadata = await wire.call("session.tools.getCurrentMetadata", {"sessionId": session})
        started = await wire.event("tool.execution_start")
    assert (completion["success"], text) == (True, "hello")
    assert listing == {"servers": [{"name": "testing", "status": "connected"}]}
    assert {"name": "echo", "description": "Say what was said."} in tools["tools"]
    (one,) = (tool for tool in metadata["tools"] if tool["name"] == "testing-echo")
    assert (one["mcpServerName"], one["mcpToolName"]) == ("testing", "echo")
    assert (started["data"]["mcpServerName"], started["data"]["mcpToolName"]) == ("testing", "echo")


@pytest.mark.parametrize(("kind", "configured"), [("http", "http"), ("sse", "sse"), ("sse", "http")])
async def test_the_model_calls_a_tool_of_a_server_behind_a_url(tmp_path: Path, kind: str, configured: str) -> None:
    async with remote(kind) as url, running_server(tmp_path, args=YOLO) as server:
        config = {"type": configured, "url": url}
        session = await session_with(server.wire, "far", config, *turn("far-echo", text="hello"))
        _, text = await call(server.wire, session)
    assert text == "hello"


@pytest.mark.parametrize("package", ["everything", "filesystem"])
async def test_the_servers_of_the_npm_packages_work(tmp_path: Path, package: str) -> None:
    program = npm_server(package)
    (tmp_path / "note.txt").write_text("from the file")
    turns = {
        "everything": turn("npm-echo", message="hello"),
        "filesystem": turn("npm-read_text_file", path=str(tmp_path / "note.txt")),
    }[package]
    config: JsonObject = {"command": program, "args": ["stdio"] if package == "everything" else [str(tmp_path)]}
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "npm", config, *turns)
        _, text = await call(server.wire, session)
    assert {"everything": "hello", "filesystem": "from the file"}[package] in text


def npm_server(package: str) -> str:
    folder = require_npm(f"@modelcontextprotocol/server-{package}", "2026.8.31")
    program = folder / "node_modules" / ".bin" / f"mcp-server-{package}"
    return str(program) if program.exists() else missing(f"{program} is not there")


# --- results of calls ---------------------------------------------------------------------------------------------


async def test_an_image_reaches_the_model_and_the_user(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "testing", stdio(), *turn("testing-picture"))
        completion, text = await call(server.wire, session)
    assert text == "look:"
    (image,) = completion["result"]["binaryResultsForLlm"]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")


async def test_the_model_gets_the_error_of_a_failing_tool(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "testing", stdio(), *turn("testing-fail"))
        completion, text = await call(server.wire, session)
    assert (completion["success"], completion["error"]["code"]) == (False, "failure")
    assert "the disk is full" in text


async def test_a_large_result_goes_to_a_file(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "testing", stdio(), *turn("testing-much"))
        completion, _ = await call(server.wire, session)
    assert len(completion["result"]["content"]) < 60_000


async def test_progress_of_a_call_is_shown(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "testing", stdio(), *turn("testing-work"))
        _, text = await call(server.wire, session)
        shown = [event["data"] for event in server.wire.events() if event["type"] == "tool.execution_progress"]
    assert text == "done"
    assert shown[0]["progressMessage"] == "step 1 (1/3)"
    assert shown[-1]["progressMessage"] == "step 3 (3/3)"


async def test_an_abort_cancels_the_call_at_the_server(tmp_path: Path) -> None:
    mark = tmp_path / "cancelled"
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        config = stdio(env={"CANCELLED": str(mark)})
        session = await session_with(wire, "testing", config, *turn("testing-wait"))
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await wire.event("tool.execution_progress")
        await wire.call("session.abort", {"sessionId": session})
        idle = await wire.event("session.idle")
        # The server keeps running; it answers the next request only after the cancellation of the last one.
        await wire.call("session.mcp.resources.list", {"sessionId": session, "serverName": "testing"})
        assert mark.exists()
    assert idle["data"]["aborted"] is True


@pytest.mark.parametrize(("tool", "results"), [("meet", ["met", "met"]), ("visit", ["1 here", "1 here"])])
async def test_calls_run_side_by_side_only_if_the_server_declares_that_they_read(
    tmp_path: Path, tool: str, results: list[str]
) -> None:
    made: list[JsonObject] = [{"id": f"c{number}", "name": f"testing-{tool}", "arguments": {}} for number in (1, 2)]
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "testing", stdio(), {"tool_calls": made}, {"text": "done"})
        events = await server.wire.prompt(session)

    ended = [event["data"] for event in events if event["type"] == "tool.execution_complete"]
    assert [data["result"]["content"] for data in ended] == results


async def test_a_call_times_out(tmp_path: Path) -> None:
    mark = tmp_path / "cancelled"
    async with running_server(tmp_path, args=YOLO) as server:
        config = stdio(timeout=300, env={"CANCELLED": str(mark)})
        session = await session_with(server.wire, "testing", config, *turn("testing-wait"))
        completion, text = await call(server.wire, session)
    assert completion["error"]["code"] == "timeout"
    assert "did not answer within 0.3 seconds" in text


async def test_context_info_counts_the_tools_of_servers_separately(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await session_with(wire, "testing", stdio(), *turn("testing-echo", text="hello"))
        await call(wire, session)
        limits = {"sessionId": session, "promptTokenLimit": 1000, "outputTokenLimit": 10}
        info = (await wire.call("session.metadata.contextInfo", limits))["contextInfo"]
        attribution = await wire.call("session.metadata.getContextAttribution", {"sessionId": session})
        categories = attribution["contextAttribution"]["categories"]
    assert 0 < info["mcpToolsTokens"] < info["toolDefinitionsTokens"]
    assert categories["mcpTools"] == info["mcpToolsTokens"]
    assert categories["systemTools"] + categories["mcpTools"] == info["toolDefinitionsTokens"]


def spelled_out(tools: list[JsonObject], **hello: str) -> Callable[[SeenRequest], Reply]:
    """Return a server over HTTP that lists these tools; ``hello`` is added to its ``initialize`` result."""

    def answer(request: SeenRequest) -> Reply:
        message: JsonObject = request.json if request.method == "POST" else {}
        results: JsonObject = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "spelled out", "version": "1"},
                **hello,
            },
            "tools/list": {"tools": [{"inputSchema": {"type": "object"}, **tool} for tool in tools]},
        }
        if (result := results.get(message.get("method", ""))) is None:
            return json_reply({}, status=202 if request.method == "POST" else 405)
        return json_reply({"jsonrpc": "2.0", "id": message["id"], "result": result})

    return answer


class ChangedHeaders:
    """A server whose tool requires its argument in a header, but not when it is listed for the first time."""

    def __init__(self) -> None:
        self.lists = 0

    def __call__(self, request: SeenRequest) -> Reply:
        message: JsonObject = request.json if request.method == "POST" else {}
        hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        match message.get("method"):
            case "server/discover":
                answer: JsonObject = {
                    "result": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **hints}
                }
            case "tools/list":
                self.lists += 1
                city = {"type": "string", **({"x-mcp-header": "City"} if self.lists > 1 else {})}
                schema = {"type": "object", "properties": {"city": city}}
                answer = {"result": {"tools": [{"name": "weather", "inputSchema": schema}], **hints}}
            case "tools/call" if "mcp-param-city" not in request.headers:
                answer = {"error": {"code": -32020, "message": "Mcp-Param-City is missing"}}
            case "tools/call":
                text = f"sunny in {request.headers['mcp-param-city']}"
                answer = {"result": {"resultType": "complete", "content": [{"type": "text", "text": text}]}}
            case _:
                return json_reply({}, status=405)
        status = 400 if "error" in answer else 200
        return json_reply({"jsonrpc": "2.0", "id": message["id"], **answer}, status=status)


async def test_a_call_is_repeated_with_the_headers_that_a_server_has_come_to_require(tmp_path: Path) -> None:
    async with ModelServer(answer=ChangedHeaders()) as far, running_server(tmp_path, args=YOLO) as server:
        config = {"url": f"{far.url}/mcp"}
        session = await session_with(server.wire, "far", config, *turn("far-weather", city="Oslo"))
        _, text = await call(server.wire, session)
    assert text == "sunny in Oslo"


async def test_a_tool_that_only_runs_as_a_task_is_not_offered(tmp_path: Path) -> None:
    kinds = ("required", "optional", "forbidden")
    tools = [{"name": kind, "execution": {"taskSupport": kind}} for kind in kinds]
    async with ModelServer(answer=spelled_out(tools)) as far, running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "far", {"url": f"{far.url}/mcp"}, {"text": "hi"})
        about = {"sessionId": session, "serverName": "far"}
        tools = (await server.wire.call("session.mcp.listTools", about))["tools"]
    assert [tool["name"] for tool in tools] == ["optional", "forbidden"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"allowAllMcpServerInstructions": True}, True),
        ({"allowAllMcpServerInstructions": True, "excludedTools": ["mcp:*"]}, False),
        ({}, False),
    ],
)
async def test_instructions_of_servers_reach_the_model_only_with_the_option(
    tmp_path: Path, options: JsonObject, expected: bool
) -> None:
    answer = spelled_out([{"name": "saw"}], instructions="Measure twice, cut once.")
    async with ModelServer(answer=answer) as far, serving(tmp_path) as (server, provider):
        servers = {"far": {"url": f"{far.url}/mcp"}}
        session = await server.wire.create(at(provider), model="m", mcpServers=servers, **options)
        await status(server.wire, session, "far", "connected")
        system = (await send_prompt(server.wire, provider, session)).json["messages"][0]
    assert system["role"] == "system"
    assert ("Measure twice, cut once." in system["content"]) is expected


async def test_a_changed_list_of_tools_is_used_from_the_next_model_call_on(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await session_with(wire, "testing", stdio(), *turn("testing-learn"), *turn("testing-learnt"))
        await call(wire, session)
        await wire.event("mcp.tools.list_changed", serverName="testing")
        completion, text = await call(wire, session)
    assert (completion["success"], text) == (True, "new")


# --- permission, filters, hooks -----------------------------------------------------------------------------------


async def test_a_call_needs_permission_and_an_approval_covers_the_tool(tmp_path: Path) -> None:
    turns = (calls("testing-echo", "1", text="a"), calls("testing-echo", "2", text="b"), {"text": "end"})
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await session_with(wire, "testing", stdio(), *turns, requestPermission=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        request = (await wire.event("permission.requested"))["data"]
        answer = {
            "kind": "approve-for-session",
            "approval": {"kind": "mcp", "serverName": "testing", "toolName": None},
        }
        params = {"sessionId": session, "requestId": request["requestId"], "result": answer}
        await wire.call("session.permissions.handlePendingPermissionRequest", params)
        await wire.event("session.idle")
        requests = [event for event in wire.events() if event["type"] == "permission.requested"]
    assert len(requests) == 1
    assert request["permissionRequest"] == {
        "kind": "mcp",
        "serverName": "testing",
        "toolName": "echo",
        "toolTitle": "Say it again",
        "readOnly": False,
        "args": {"text": "a"},
        "toolCallId": "1",
    }


async def test_without_permission_nothing_runs(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await session_with(server.wire, "testing", stdio(), *turn("testing-echo", text="x"))
        completion, _ = await call(server.wire, session)
    assert completion["error"]["code"] == "denied"


@pytest.mark.parametrize(
    ("config", "options", "offered"),
    [
        ({"tools": ["echo", "pid"]}, {}, {"testing-echo", "testing-pid"}),
        ({"tools": []}, {}, set[str]()),
        ({"excludeTools": ["echo"]}, {"availableTools": ["mcp:testing-echo", "mcp:testing-pid"]}, {"testing-pid"}),
        ({}, {"availableTools": ["mcp:testing-echo", "view"]}, {"testing-echo", "view"}),
        ({}, {"excludedTools": ["mcp:*"], "availableTools": ["view", "mcp:*"]}, {"view"}),
    ],
)
async def test_tools_are_filtered_by_the_server_and_by_the_session(
    tmp_path: Path, config: JsonObject, options: JsonObject, offered: set[str]
) -> None:
    async with running_server(tmp_path) as server:
        session = await session_with(server.wire, "testing", stdio(**config), **options)
        found = await server.wire.call("session.tools.getCurrentMetadata", {"sessionId": session})
    names = {tool["name"] for tool in found["tools"]}
    assert (names if options else {name for name in names if name.startswith("testing-")}) == offered


# --- environment of servers ---------------------------------------------------------------------------------------


async def test_a_server_gets_its_own_variables_and_none_of_our_keys(tmp_path: Path) -> None:
    env = {"OPENAI_API_KEY": "sk-ours", "LANG": "C", "PASSED_ON": "from outside"}
    config = "[mcp.servers.file]\ncommand = '{command}'\nargs = []\nenv = {{ GIVEN = '${{PASSED_ON}}' }}\n"
    command = stdio()["command"]
    text = config.format(command=command)
    async with running_server(tmp_path, args=YOLO, env=env, config=text) as server:
        session = await session_with(
            server.wire,
            "testing",
            stdio(env={"LITERAL": "${PASSED_ON}"}),
            *turn("testing-environment"),
            *turn("file-environment"),
        )
        await status(server.wire, session, "file", "connected")
        _, own = await call(server.wire, session)
        _, file = await call(server.wire, session)
    assert json.loads(own)["LITERAL"] == "${PASSED_ON}"
    assert json.loads(file)["GIVEN"] == "from outside"
    assert not {"OPENAI_API_KEY", "PASSED_ON", "COPILOT_HOME"} & {*json.loads(own), *json.loads(file)}


async def test_a_server_with_an_unset_variable_fails_with_its_name(tmp_path: Path) -> None:
    config = (
        "[mcp.servers.far]\nurl = 'http://127.0.0.1:9/mcp'\nheaders = { Authorization = 'Bearer ${MISSING}' }\n"
    )
    async with running_server(tmp_path, config=config) as server:
        session = await server.wire.create(scripted({"text": "hi"}))
        failed = await status(server.wire, session, "far", "failed")
        listing = await list_servers(server.wire, {"sessionId": session})
    assert failed["data"]["error"] == "the environment variable MISSING is not set"
    assert listing["servers"][0]["source"] == "user"


async def test_a_server_sees_the_working_directory_as_its_root(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    turns = (*turn("testing-roots"), *turn("testing-roots"))
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "testing", stdio(), *turns)
        _, first = await call(server.wire, session)
        moved = {"sessionId": session, "workingDirectory": str(elsewhere)}
        await server.wire.call("session.metadata.setWorkingDirectory", moved)
        _, second = await call(server.wire, session)
    assert (first, second) == (tmp_path.as_uri(), elsewhere.as_uri())


# --- start and end ------------------------------------------------------------------------------------------------


async def test_nothing_of_a_server_outlives_its_session(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await session_with(wire, "testing", stdio(), *turn("testing-pid"))
        _, pid = await call(wire, session)
        await wire.call("session.destroy", {"sessionId": session})
        await wait_until_gone(int(pid))


async def test_a_server_that_is_being_stopped_does_not_delay_the_exit(tmp_path: Path) -> None:
    # The fixture checks that the process and the server end in time.
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "deaf", rude("deaf"), {"text": "hi"})
        params = {"sessionId": session, "serverName": "deaf"}
        await server.wire.ask("session.mcp.stopServer", params)
        await server.wire.check_alive()


async def test_a_server_that_ignores_signals_is_killed_with_us(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        await session_with(server.wire, "deaf", rude("deaf", env={"SERVER_UNDER_TEST": server.mark}))


async def test_a_crashed_server_is_restarted(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await session_with(
            wire, "testing", stdio(), *turn("testing-leave"), *turn("testing-echo", text="back")
        )
        completion, text = await call(wire, session)
        failed = await status(wire, session, "testing", "failed")
        _, again = await call(wire, session)
    assert (completion["success"], again) == (False, "back")
    assert "ended before it answered" in text
    assert "restarting in 0.5 seconds" in failed["data"]["error"]


@pytest.mark.parametrize("code", [400, 404, 405])
async def test_a_url_without_a_server_fails_with_its_status(tmp_path: Path, code: int) -> None:
    async with (
        ModelServer(answer=lambda _: text_reply("", status=code)) as far,
        running_server(tmp_path) as server,
    ):
        session = await server.wire.create(scripted({"text": "hi"}), mcpServers={"far": {"url": f"{far.url}/mcp"}})
        failed = await status(server.wire, session, "far", "failed")
    assert failed["data"]["error"] == f"the server responded with status {code} at {far.url}/mcp"
    assert [request.method for request in far.requests] == ["POST", "POST", "GET"]


async def test_a_server_of_the_older_transport_that_refuses_a_message_fails_at_once(tmp_path: Path) -> None:
    def refuse(request: SeenRequest) -> Reply:
        if request.method == "POST":
            return text_reply("", status=500)
        return event_stream(b"event: endpoint\ndata: /messages\n\n", ending="hang")

    async with ModelServer(answer=refuse) as far, running_server(tmp_path) as server:
        config = {"type": "sse", "url": f"{far.url}/sse"}
        session = await server.wire.create(scripted({"text": "hi"}), mcpServers={"far": config})
        failed = await status(server.wire, session, "far", "failed")
    assert failed["data"]["error"] == "the server responded with status 500 to a message"


async def test_a_server_that_exits_at_once_fails_with_its_masked_stderr(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path) as server:
        config = rude("dying", env={"KEY": "hunter2-hunter2"})
        session = await server.wire.create(scripted({"text": "hi"}), mcpServers={"dying": config})
        failed = await status(server.wire, session, "dying", "failed")
        await server.wire.prompt(session)
    assert failed["data"]["error"] == "the process has ended: cannot open the database with key [redacted]"
    assert "hunter2-hunter2" not in server.stderr


@pytest.mark.parametrize(
    ("mode", "error"),
    [
        ("noisy", "its output is not that of an MCP server"),
        ("endless", "the server sent a message of more than 32 MiB"),
        ("unlisting", "the server's response does not match the protocol"),
    ],
)
async def test_a_server_that_violates_the_protocol_fails(tmp_path: Path, mode: str, error: str) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "hi"}), mcpServers={"rude": rude(mode)})
        failed = await status(server.wire, session, "rude", "failed")
        await server.wire.prompt(session)
    assert failed["data"]["error"] == error


async def test_an_unresponsive_server_delays_only_the_first_turn(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "hi"}), mcpServers={"silent": rude("silent")})
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await wire.event("user.message", session=session, since=since)
        moved = await wire.call("session.mcp.moveLoadingToBackground", {"sessionId": session})
        await wire.event("session.idle", session=session)
        listing = await list_servers(wire, {"sessionId": session})
    assert moved == {"movedToBackground": True}
    assert listing["servers"][0]["status"] == "pending"


async def test_a_server_that_floods_us_is_read_slowly(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await session_with(wire, "rude", rude("flooding"), *turn("rude-go"), {"text": "still here"})
        _, text = await call(wire, session)
        await wire.prompt(session)
        await wire.check_alive()
        changes = [event for event in wire.events() if event["type"] == "mcp.tools.list_changed"]
    assert text == "over"
    assert len(changes) < 20


async def test_the_model_gets_an_error_for_an_invalid_response(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "rude", rude("babbling"), *turn("rude-go"))
        completion, text = await call(server.wire, session)
    assert completion["success"] is False
    assert "does not match the protocol" in text


async def test_a_reply_that_cannot_be_read_fails_its_call_at_once(tmp_path: Path) -> None:
    unreadable = "the response is not a JSON-RPC message"
    result = {"content": [{"type": "text", "text": "fine"}]}
    replies: dict[str, Any] = {
        unreadable: {"id": "ID", "result": result},
        f"{unreadable}: no database": {"jsonrpc": "2.0", "id": "ID", "error": "no database"},
        f"call to `rude-go`: {unreadable}": {"jsonrpc": "2.0", "id": "ID"},
        "nested too deeply": {"jsonrpc": "2.0", "id": "ID", "result": {**result, "structuredContent": "NESTED"}},
        "invalid JSON, or nested": {"result": {**result, "_meta": {"a": "NESTED"}}, "id": "ID", "jsonrpc": "2.0"},
        "cannot read it": {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "cannot read it"}},
        "fine": [{"jsonrpc": "2.0", "id": "ID", "result": result}],
    }
    (tmp_path / "replies.json").write_text(json.dumps([*replies.values()]))
    turns = [step for _ in replies for step in turn("rude-go")]
    async with running_server(tmp_path, args=YOLO) as server:
        config = rude("garbling", str(tmp_path / "replies.json"))
        session = await session_with(server.wire, "rude", config, *turns)
        texts = [(await call(server.wire, session))[1] for _ in replies]
    assert [expected in text for expected, text in zip(replies, texts, strict=True)] == [True] * len(replies), texts


async def test_half_an_emoji_and_invalid_bytes_lose_no_reply(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "rude", rude("cutting"), *turn("rude-go"))
        completion, text = await call(server.wire, session)
    assert completion["success"] is True
    assert text == "cut \ufffd \ufffd"


async def test_an_endless_list_of_tools_is_cut_with_a_warning(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await session_with(server.wire, "rude", rude("many"))
        tools = await server.wire.call("session.mcp.listTools", {"sessionId": session, "serverName": "rude"})
        warning = await server.wire.event("session.warning", warningType="mcp")
    assert len(tools["tools"]) == 500
    assert "only the first 500 are offered" in warning["data"]["message"]


# --- methods ------------------------------------------------------------------------------------------------------


async def test_servers_are_stopped_started_disabled_and_enabled(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await session_with(wire, "testing", stdio())
        params = {"sessionId": session, "serverName": "testing"}
        for stop, start in (("stopServer", "startServer"), ("disable", "enable")):
            since = len(wire.messages)
            await wire.call(f"session.mcp.{stop}", params)
            assert await wire.call("session.mcp.isServerRunning", params) == {"running": False}
            await status(wire, session, "testing", "disabled", since=since)
            assert "not connected" in (await wire.error_of("session.mcp.listTools", params))["message"]
            await wire.call(f"session.mcp.{start}", params)
            await status(wire, session, "testing", "connected", since=since)
        since = len(wire.messages)
        await wire.call("session.mcp.restartServer", {**params, "config": stdio(tools=["pid"])})
        await status(wire, session, "testing", "connected", since=since)
        tools = await wire.call("session.mcp.listTools", params)
    assert [tool["name"] for tool in tools["tools"]] == ["pid"]


async def test_a_server_that_a_client_has_started_survives_a_reload(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await session_with(wire, "testing", stdio())
        await wire.call(
            "session.mcp.startServer",
            {"sessionId": session, "serverName": "brought", "config": stdio(tools=["pid"])},
        )
        await status(wire, session, "brought", "connected")
        await wire.call("session.mcp.reload", {"sessionId": session})
        listing = await list_servers(wire, {"sessionId": session})
    assert [(mcp_server["name"], mcp_server["status"]) for mcp_server in listing["servers"]] == [
        ("testing", "connected"),
        ("brought", "connected"),
    ]


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("enable", "No MCP host initialized"),
        ("disable", "No MCP host initialized"),
        ("reload", "MCP config reload not available"),
        ("listTools", "not connected"),
        ("oauth.login", "MCP host is not available"),
        ("apps.listTools", "mcp-apps"),
    ],
)
async def test_a_session_without_servers_says_so(tmp_path: Path, method: str, text: str) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "hi"}))
        params = {"sessionId": session, "serverName": "x", "originServerName": "x"}
        error = await server.wire.error_of(f"session.mcp.{method}", params)
        assert await list_servers(server.wire, {"sessionId": session}) == {"servers": []}
    assert text in error["message"]


async def test_resources_and_prompts_are_read_at_the_server(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await session_with(wire, "testing", stdio())
        params = {"sessionId": session, "serverName": "testing"}
        (resource,) = (await wire.call("session.mcp.resources.list", params))["resources"]
        (template,) = (await wire.call("session.mcp.resources.listTemplates", params))["resourceTemplates"]
        contents = await wire.call("session.mcp.resources.read", {**params, "uri": "test://greeting/you"})
        in_app = await wire.call("session.mcp.apps.readResource", {**params, "uri": "test://greeting/you"})
        diagnosis = await wire.call("session.mcp.apps.diagnose", params)
        (prompt,) = (await wire.call("session.mcp.prompts.list", params))["prompts"]
        filled = await wire.call(
            "session.mcp.prompts.get", {**params, "promptName": "review", "arguments": {"code": "x=1"}}
        )
        wrong = await wire.error_of("session.mcp.resources.read", {**params, "uri": "test://nothing"})
        invalid = await wire.error_of("session.mcp.resources.read", {**params, "uri": "nothing"})
    assert (resource["uri"], template["uriTemplate"]) == ("test://greeting", "test://greeting/{name}")
    assert contents["contents"][0]["text"] == in_app["contents"][0]["text"] == "hello you"
    assert (diagnosis["server"]["connected"], diagnosis["server"]["sampleToolNames"]) == (True, [])
    assert (prompt["name"], filled["messages"][0]["content"]["text"]) == ("review", "Review this: x=1")
    assert "not found on MCP server" in wrong["message"]
    assert invalid["message"] == "uri: expected a URI, got 'nothing'"


async def test_an_app_calls_tools_that_no_rule_and_no_plan_mode_forbids(tmp_path: Path) -> None:
    rules = '[permissions]\ndeny = ["mcp(testing:picture)"]\nask = ["mcp(testing:fail)"]\n'
    async with running_server(tmp_path, config=rules) as server:
        wire = server.wire
        session = await session_with(wire, "testing", stdio(), requestMcpApps=True)
        app = {"sessionId": session, "serverName": "testing", "originServerName": "testing"}
        echo = {**app, "toolName": "echo", "arguments": {"text": "a"}}
        called = await wire.call("session.mcp.apps.callTool", echo)
        denied = await wire.error_of("session.mcp.apps.callTool", {**app, "toolName": "picture"})
        asked = await wire.error_of("session.mcp.apps.callTool", {**app, "toolName": "fail"})
        await wire.call("session.mode.set", {"sessionId": session, "mode": "plan"})
        planned = await wire.error_of("session.mcp.apps.callTool", echo)
    assert called["content"][0]["text"] == "a"
    assert "mcp(testing:picture)" in denied["message"]
    assert "mcp(testing:fail)" in asked["message"]
    assert "plan mode" in planned["message"]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"command": ""},
        {"url": "file:///etc/passwd"},
        {"command": "x", "url": "http://h"},
        {"type": "http"},
        {"type": "telepathy", "command": "x"},
        {"command": "x", "args": "notalist"},
        {"command": "x", "timeout": -1},
        {"command": "x", "env": {"A": 1}},
    ],
)
async def test_invalid_settings_are_refused_with_their_names(tmp_path: Path, config: JsonObject) -> None:
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("session.create", {"mcpServers": {"wrong": config}})
        await server.wire.check_alive()
    assert error["message"].startswith("mcpServers.wrong: ")


async def test_servers_given_on_resume_replace_the_previous_ones(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await session_with(wire, "first", stdio())
        await wire.call("session.resume", {"sessionId": session, "mcpServers": {"second": stdio()}})
        await status(wire, session, "second", "connected")
        listing = await list_servers(wire, {"sessionId": session})
    assert [mcp_server["name"] for mcp_server in listing["servers"]] == ["second"]


async def test_a_resumed_session_has_its_servers_without_secrets(tmp_path: Path) -> None:
    home, plugin = tmp_path / "home", tmp_path / "plugin"
    plugin.mkdir()
    (plugin / ".mcp.json").write_text(json.dumps({"mcpServers": {"plugged": stdio()}}))
    servers: JsonObject = {"open": stdio(), "off": stdio(), "closed": stdio(env={"KEY": "hunter2-of-ada"})}
    options = {"disabledMcpServers": ["off"], "pluginDirectories": [str(plugin)]}
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "hi"}), mcpServers=servers, **options)
        await server.wire.prompt(session)
    for _ in range(2):
        # The second resume still reports the values that were lost at the first one.
        async with running_server(tmp_path) as server:
            wire = server.wire
            await wire.call("session.resume", {"sessionId": session})
            await status(wire, session, "open", "connected")
            await status(wire, session, "plugged", "connected")
            await wire.event("session.mcp_servers_loaded")
            mcp_servers = (await list_servers(wire, {"sessionId": session}))["servers"]
        states = {mcp_server["name"]: mcp_server["status"] for mcp_server in mcp_servers}
        assert states == {"open": "connected", "off": "disabled", "plugged": "connected", "closed": "failed"}
        assert "env KEY" in next(
            mcp_server["error"] for mcp_server in mcp_servers if mcp_server["name"] == "closed"
        )
    for file in home.rglob("*"):
        assert not file.is_file() or b"hunter2" not in file.read_bytes()
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("session.resume", {"sessionId": session, "mcpServers": {"closed": servers["closed"]}})
        await status(wire, session, "closed", "connected")
        mcp_servers = (await list_servers(wire, {"sessionId": session}))["servers"]
        assert [mcp_server["name"] for mcp_server in mcp_servers] == ["closed", "plugged"]
