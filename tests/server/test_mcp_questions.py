"""What MCP servers ask of the clients of a session, over the real wire: tokens, forms, a model's answers, hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.callbacks import answering
from tests.support.guarded_mcp_server import guarded
from tests.support.mcp_servers import call, session_with, status, stdio, turn
from tests.support.model_server import ModelServer
from tests.support.server import JsonObject, Wire, running_server, scripted

pytestmark = pytest.mark.anyio
YOLO = ("--yolo",)


# --- tokens -------------------------------------------------------------------------------------------------------


async def asked_for_token(wire: Wire, session: str, answer: JsonObject, *, since: int = 0) -> JsonObject:
    asked = (await wire.event("mcp.oauth_required", session=session, since=since))["data"]
    params = {"sessionId": session, "requestId": asked["requestId"], "result": answer}
    assert await wire.call("session.mcp.oauth.handlePendingRequest", params) == {"success": True}
    assert await wire.call("session.mcp.oauth.handlePendingRequest", params) == {"success": False}
    return asked


async def guarded_session(wire: Wire, url: str) -> str:
    session = await wire.create(scripted(*turn("far-go")), mcpServers={"far": {"url": f"{url}/mcp"}})
    interest = {"sessionId": session, "eventType": "mcp.oauth_required"}
    await wire.call("session.eventLog.registerInterest", interest)
    return session


async def test_a_client_gives_the_token_and_a_wider_one_when_a_call_wants_it(tmp_path: Path) -> None:
    async with ModelServer(answer=guarded) as far, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await guarded_session(wire, far.url)
        first = await asked_for_token(wire, session, {"kind": "token", "accessToken": "one"})
        await status(wire, session, "far", "connected")
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        second = await asked_for_token(wire, session, {"kind": "token", "accessToken": "two"}, since=since)
        done = await wire.event("tool.execution_complete", session=session)
        await wire.event("session.idle", session=session)
    assert (first["reason"], second["reason"]) == ("initial", "upscope")
    assert first["wwwAuthenticateParams"]["scope"] == "read"
    assert first["resourceMetadata"] == '{"resource":"here","scopes_supported":["read"]}'
    assert second["wwwAuthenticateParams"] == {"scope": "write", "error": "insufficient_scope"}
    assert second["resourceMetadata"] == first["resourceMetadata"]
    assert done["data"]["result"]["content"] == "gone"
    assert "authorization" not in next(one for one in far.requests if "well-known" in one.path).headers


async def test_without_a_token_the_server_waits_for_one(tmp_path: Path) -> None:
    async with ModelServer(answer=guarded) as far, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await guarded_session(wire, far.url)
        await asked_for_token(wire, session, {"kind": "cancelled"})
        await status(wire, session, "far", "needs-auth", since=0)
        await wire.until(lambda one: "it wants a login" in str(one))
        since = len(wire.messages)
        await wire.call("session.mcp.oauth.authenticationStateChanged", {"sessionId": session})
        await asked_for_token(wire, session, {"kind": "token", "accessToken": "one"}, since=since)
        await status(wire, session, "far", "connected")


async def test_a_server_that_wants_a_token_nobody_gives_takes_nothing_with_it(tmp_path: Path) -> None:
    async with ModelServer(answer=guarded) as far, running_server(tmp_path, args=YOLO) as server:
        provider = scripted({"text": "hi"})
        session = await server.wire.create(provider, mcpServers={"far": {"url": f"{far.url}/mcp"}})
        await status(server.wire, session, "far", "needs-auth")
        await server.wire.prompt(session)


# --- forms, models, hooks -----------------------------------------------------------------------------------------


async def test_a_form_of_a_server_is_shown_by_the_client(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await session_with(wire, "testing", stdio(), *turn("testing-ask"), requestElicitation=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        asked = (await wire.event("elicitation.requested"))["data"]
        result = {"action": "accept", "content": {"colour": "blue"}}
        params = {"sessionId": session, "requestId": asked["requestId"], "result": result}
        await wire.call("session.ui.handlePendingElicitation", params)
        done = await wire.event("tool.execution_complete")
        await wire.event("session.idle")
    assert (asked["message"], asked["mode"], asked["elicitationSource"]) == ("Which colour?", "form", "testing")
    assert asked["requestedSchema"]["properties"]["colour"]["type"] == "string"
    assert done["data"]["result"]["content"] == "accept blue"


@pytest.mark.parametrize("tool", ["testing-ask", "testing-think"])
async def test_what_no_client_answers_is_refused_at_once(tmp_path: Path, tool: str) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "testing", stdio(), *turn(tool))
        done, said = await call(server.wire, session)
    assert done["success"] is False
    assert "client" in said


async def test_a_model_answers_a_server_where_a_client_has_it_do_so(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        prompts = [
            {"when": "What is", "turns": [{"text": "four"}]},
            {"when": ".", "turns": [*turn("testing-think")]},
        ]
        provider = {"type": "scripted", "script": {"prompts": prompts}}
        session = await wire.create(provider, mcpServers={"testing": stdio()})
        await status(wire, session, "testing", "connected")
        interest = {"sessionId": session, "eventType": "sampling.requested"}
        await wire.call("session.eventLog.registerInterest", interest)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        asked = (await wire.event("sampling.requested"))["data"]
        named = {"sessionId": session, "requestId": asked["requestId"]}
        params = {
            **named,
            "serverName": "testing",
            "mcpRequestId": asked["mcpRequestId"],
            "request": asked["request"],
        }
        unknown = await wire.call("session.mcp.executeSampling", {**params, "mcpRequestId": "x"})
        ran = await wire.call("session.mcp.executeSampling", params)
        answered = await wire.call("session.ui.handlePendingSampling", {**named, "response": ran["result"]})
        done = await wire.event("tool.execution_complete")
        await wire.event("sampling.completed", requestId=asked["requestId"])
        await wire.event("session.idle")
    assert unknown["action"] == "failure"
    assert asked["request"]["messages"][0]["content"]["text"] == "What is 2+2?"
    assert (ran["action"], ran["result"]["content"]["text"]) == ("success", "four")
    assert answered == {"success": True}
    assert done["data"]["result"]["content"] == "four"


async def test_a_hook_sees_a_call_and_gives_its_meta(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, args=YOLO) as server,
        answering(server.wire, {"preMcpToolCall": [{"metaToUse": {"by": "hook"}}]}) as client,
    ):
        session = await session_with(server.wire, "testing", stdio(), *turn("testing-meta"), hooks=True)
        _, said = await call(server.wire, session)
        seen = client.inputs("preMcpToolCall")
    assert said == "hook"
    assert (seen[0]["serverName"], seen[0]["toolName"], seen[0]["arguments"]) == ("testing", "meta", {})


# --- the user's own servers ---------------------------------------------------------------------------------------


async def test_servers_of_the_user_are_kept_and_every_session_has_them(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("mcp.config.add", {"name": "mine", "config": {**stdio(), "displayName": "Mine"}})
        await wire.call("mcp.config.add", {"name": "other", "config": stdio()})
        again = await wire.refused("mcp.config.add", {"name": "mine", "config": stdio()})
        await wire.call("mcp.config.update", {"name": "mine", "config": stdio(tools=["pid"])})
        await wire.call("mcp.config.disable", {"names": ["other"]})
        listed = await wire.call("mcp.config.list", {})
        discovered = await wire.call("mcp.discover", {"workingDirectory": str(tmp_path)})
        session = await wire.create(scripted({"text": "hi"}))
        await status(wire, session, "mine", "connected")
        servers = (await wire.call("session.mcp.list", {"sessionId": session}))["servers"]
        await wire.call("mcp.config.remove", {"name": "mine"})
        missing = await wire.refused("mcp.config.remove", {"name": "mine"})
    assert listed["servers"]["mine"]["tools"] == ["pid"]
    assert {one["name"]: one["enabled"] for one in discovered["servers"]} == {"mine": True, "other": False}
    assert {one["name"]: (one["status"], one["source"]) for one in servers} == {
        "mine": ("connected", "user"),
        "other": ("disabled", "user"),
    }
    assert "configured already" in again["message"]
    assert "is not configured" in missing["message"]
    assert (tmp_path / "home" / "mcp-config.json").stat().st_mode & 0o777 == 0o600
