"""MCP servers of every protocol revision and transport, over the real wire."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE

import anyio
import pytest

from tests.support.forked import Program, executable
from tests.support.limits import WAIT_S
from tests.support.mcp_servers import call, session_with, turn
from tests.support.server import JsonObject, Wire, running_server

pytestmark = pytest.mark.anyio
YOLO = ("--yolo",)
PROGRAM = Program(str(Path(__file__).parents[1] / "support" / "revised_mcp_server.py"))
WITH_FORMS = ("2025-06-18", "2025-11-25", "2026-07-28")
SERVERS = [
    ("2024-11-05", "stdio"),
    ("2024-11-05", "sse"),
    *((revision, way) for revision in ("2025-03-26", *WITH_FORMS) for way in ("stdio", "http")),
]
of_every_revision = pytest.mark.parametrize(("revision", "transport"), SERVERS)


@asynccontextmanager
async def revised(revision: str, transport: str, manner: str = "", **env: str) -> AsyncGenerator[JsonObject, None]:
    """Yield the settings of a server of one revision."""
    command, args = executable(PROGRAM, "revised-mcp-server"), [revision, transport, manner]
    if transport == "stdio":
        yield {"command": command, "args": args, "env": env}
        return
    process = await anyio.open_process([command, *args], stdout=PIPE, stderr=None, env=env)
    try:
        assert process.stdout is not None
        port = int(await process.stdout.receive())
        path = "mcp" if transport == "http" else "sse"
        yield {"type": transport, "url": f"http://127.0.0.1:{port}/{path}"}
    finally:
        process.kill()
        await process.aclose()


@of_every_revision
async def test_tools_resources_prompts_and_changed_lists(tmp_path: Path, revision: str, transport: str) -> None:
    turns = (*turn("old-echo", text="hello"), *turn("old-learn"), *turn("old-learnt"))
    async with revised(revision, transport) as config, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await session_with(wire, "old", config, *turns)
        _, text = await call(wire, session)
        progress = await wire.event("tool.execution_progress")
        params = {"sessionId": session, "serverName": "old"}
        (resource,) = (await wire.call("session.mcp.resources.list", params))["resources"]
        contents = await wire.call("session.mcp.resources.read", {**params, "uri": "test://greeting"})
        (prompt,) = (await wire.call("session.mcp.prompts.list", params))["prompts"]
        filled = await wire.call(
            "session.mcp.prompts.get", {**params, "name": "review", "arguments": {"code": "x=1"}}
        )
        await call(wire, session)
        for kind in ("tools", "resources", "prompts"):
            await wire.event(f"mcp.{kind}.list_changed", serverName="old")
        _, learnt = await call(wire, session)
    assert (text, progress["data"]["progressMessage"], learnt) == ("hello", "1/2", "new")
    assert (resource["uri"], contents["contents"]) == (
        "test://greeting",
        [{"uri": "test://greeting", "text": "hello"}],
    )
    assert prompt["name"] == "review"
    content = {"type": "text", "text": "Review this: x=1"}
    assert filled == {"messages": [{"role": "user", "content": content}]}


@of_every_revision
async def test_a_cancelled_call_is_cancelled_at_the_server(tmp_path: Path, revision: str, transport: str) -> None:
    mark = tmp_path / "cancelled"
    async with (
        revised(revision, transport, CANCELLED=str(mark)) as config,
        running_server(tmp_path, args=YOLO) as server,
    ):
        wire = server.wire
        session = await session_with(wire, "old", config, *turn("old-wait"))
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await wire.event("tool.execution_progress")
        await wire.call("session.abort", {"sessionId": session})
        idle = await wire.event("session.idle")
        with anyio.fail_after(WAIT_S):
            while not mark.exists():
                await wire.call("session.mcp.resources.list", {"sessionId": session, "serverName": "old"})
    assert idle["data"]["aborted"] is True


@of_every_revision
async def test_sampling_and_roots(tmp_path: Path, revision: str, transport: str) -> None:
    async with revised(revision, transport) as config, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await session_with(wire, "old", config, *turn("old-think"), *turn("old-roots"))
        interest = {"sessionId": session, "eventType": "sampling.requested"}
        await wire.call("session.eventLog.registerInterest", interest)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        request = (await wire.event("sampling.requested"))["data"]
        response = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "four"}}
        params = {"sessionId": session, "requestId": request["requestId"], "response": response}
        await wire.call("session.ui.handlePendingSampling", params)
        completion = await wire.event("tool.execution_complete")
        await wire.event("session.idle")
        _, roots = await call(wire, session)
    assert request["request"]["messages"][0]["content"]["text"] == "What is 2+2?"
    assert '"text": "four"' in completion["data"]["result"]["content"]
    assert tmp_path.as_uri() in roots


async def answer_form(wire: Wire, session: str, result: JsonObject) -> JsonObject:
    request = (await wire.event("elicitation.requested", session=session))["data"]
    params = {"sessionId": session, "requestId": request["requestId"], "result": result}
    await wire.call("session.ui.handlePendingElicitation", params)
    return request


@pytest.mark.parametrize(("revision", "transport"), [server for server in SERVERS if server[0] in WITH_FORMS])
async def test_forms(tmp_path: Path, revision: str, transport: str) -> None:
    async with revised(revision, transport) as config, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await session_with(wire, "old", config, *turn("old-ask"), requestElicitation=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        form = await answer_form(wire, session, {"action": "accept", "content": {"colour": "red"}})
        completion = await wire.event("tool.execution_complete")
        await wire.event("session.idle")
    assert form["message"] == "Which colour?"
    assert '"colour": "red"' in completion["data"]["result"]["content"]


async def test_a_probe_of_a_server_without_a_handshake(tmp_path: Path) -> None:
    async with revised("2026-07-28", "http") as config, running_server(tmp_path) as server:
        session = await session_with(server.wire, "new", config)
        probed = await server.wire.call("session.mcp.oauth.probe", {"sessionId": session, "serverName": "new"})
    assert probed["status"] == "no-auth-required"


@pytest.mark.parametrize("manner", ["silent", "exits"])
async def test_an_older_server_that_cannot_be_asked_for_its_revisions(tmp_path: Path, manner: str) -> None:
    async with (
        revised("2025-06-18", "stdio", manner) as config,
        running_server(tmp_path, args=YOLO) as server,
    ):
        session = await session_with(server.wire, "old", config, *turn("old-echo", text="hello"))
        _, text = await call(server.wire, session)
        states = [
            event["data"]["status"] for event in server.wire.events() if "serverName" in event.get("data", {})
        ]
    assert text == "hello"
    assert "failed" not in states
