"""MCP servers that an editor serves over its own connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.editor import Editor, Schemas, failing, option, running_editor
from tests.support.server import JsonObject, calls

pytestmark = pytest.mark.anyio

SERVER = {"type": "acp", "name": "ide", "serverId": "server-1"}
VERSION = "2026-07-28"
TOOL = {"name": "selection", "description": "Return the selection", "inputSchema": {"type": "object"}}
MADE = calls("ide-selection")
ALLOWED = {"session/request_permission": option("allow_once")}


def outcome(params: JsonObject) -> JsonObject:
    """Return what the server of the editor answers."""
    base = {"resultType": "complete"}
    match params["method"]:
        case "server/discover":
            about = {"name": "ide", "version": "1"}
            found: JsonObject = {"supportedVersions": [VERSION], "capabilities": {"tools": {}}, "serverInfo": about}
            return {"result": {**base, "ttlMs": 0, "cacheScope": "private", **found}}
        case "tools/list":
            return {"result": {**base, "ttlMs": 0, "cacheScope": "private", "tools": [TOOL]}}
        case "tools/call":
            return {"result": {**base, "content": [{"type": "text", "text": "three lines"}]}}
        case other:
            return {"error": {"code": -32601, "message": f"no {other}"}}


def output_of(editor: Editor, session: str) -> str:
    return editor.updates(session, "tool_call_update")[-1]["rawOutput"].get("output", "")


async def serve(editor: Editor, *, with_progress: bool = False, answers_calls: bool = True) -> None:
    """Serve the tools of the editor; runs as a task beside the test."""
    position = 0
    while True:
        await editor.wait_for_message_at(position)
        message = editor.messages[position]
        position += 1
        if message.get("method") != "mcp/message":
            continue
        params = message["params"]
        is_call = params["method"] == "tools/call"
        if is_call and with_progress:
            token = params["params"]["_meta"]["progressToken"]
            progress = {"progressToken": token, "progress": 1, "message": "half way"}
            note = {"serverId": params["serverId"], "method": "notifications/progress", "params": progress}
            await editor.notify("mcp/message", {**note, "requestId": "another"})
            await editor.notify("mcp/message", {**note, "requestId": params["requestId"]})
            await editor.until(lambda one: "half way" in str(one), what="progress")
        if answers_calls or not is_call:
            await editor.answer(message, outcome(params))


async def test_the_model_calls_a_tool_of_the_editor(tmp_path: Path, each_version: Schemas) -> None:
    asked: list[JsonObject] = []

    def answer(params: JsonObject) -> JsonObject:
        asked.append(params)
        return outcome(params)

    answers = {"mcp/message": answer, **ALLOWED}
    async with running_editor(tmp_path, each_version, MADE, {"text": "done"}, answers=answers) as (_, editor):
        session = await editor.new(tmp_path, mcpServers=[SERVER])
        await editor.say(session, "what is selected?")
        assert "three lines" in output_of(editor, session)
        assert {one["serverId"] for one in asked} == {"server-1"}
        assert len({one["requestId"] for one in asked}) == len(asked)
        assert asked[-1]["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == VERSION


async def test_progress_belongs_to_its_request(tmp_path: Path, schemas: Schemas) -> None:
    async with (
        running_editor(tmp_path, schemas, MADE, {"text": "done"}, answers=ALLOWED) as (_, editor),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(lambda: serve(editor, with_progress=True))
        session = await editor.new(tmp_path, mcpServers=[SERVER])
        await editor.say(session, "what is selected?")
        tasks.cancel_scope.cancel()
        assert "three lines" in output_of(editor, session)


async def test_a_cancelled_call_is_cancelled_in_the_editor(tmp_path: Path, schemas: Schemas) -> None:
    async with (
        running_editor(tmp_path, schemas, MADE, answers=ALLOWED) as (_, editor),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(lambda: serve(editor, answers_calls=False))
        session = await editor.new(tmp_path, mcpServers=[SERVER])
        prompt = await editor.begin(session, "what is selected?")
        called = await editor.until(lambda one: one.get("params", {}).get("method") == "tools/call", what="call")
        await editor.cancel(session)
        await editor.until(
            lambda one: one.get("method") == "$/cancel_request" and one["params"]["requestId"] == called["id"],
            what="cancellation",
        )
        assert (await editor.response(prompt))["result"]["stopReason"] == "cancelled"
        tasks.cancel_scope.cancel()


def refuses(_params: JsonObject) -> JsonObject:
    return {"error": {"code": 1, "message": "not today"}}


@pytest.mark.parametrize("answer", [failing("not today"), refuses])
async def test_a_server_that_fails_is_reported(tmp_path: Path, schemas: Schemas, answer: Any) -> None:
    capabilities: JsonObject = {"session": {"notices": {}}}
    answers = {"mcp/message": answer}
    async with running_editor(tmp_path, schemas, capabilities=capabilities, answers=answers) as (_, editor):
        session = await editor.new(tmp_path, mcpServers=[SERVER])
        notice = await editor.update("notice")
        assert "MCP server 'ide' has failed" in notice["title"]
        assert (await editor.say(session, "hi"))["stopReason"] == "end_turn"


async def test_a_server_needs_an_id(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        params = {"cwd": str(tmp_path), "mcpServers": [{"type": "acp", "name": "ide"}]}
        error = await editor.error_of("session/new", params)
        assert (error["code"], error["message"]) == (-32602, "mcpServers.ide: serverId is required")
