"""Clients of protocol 2 are called; clients of protocol 3 are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Wire, calls, frame, running_server, scripted

pytestmark = pytest.mark.anyio

TOOL: dict[str, Any] = {
    "name": "lookup",
    "description": "Look it up",
    "parameters": {"type": "object", "properties": {}},
}
SCRIPT = scripted(calls("lookup", key="a"), {"text": "{{last_tool_result}}"})


async def asked(wire: Wire, method: str) -> dict[str, Any]:
    return await wire.until(lambda message: message.get("method") == method, what=method)


async def answer(wire: Wire, request: dict[str, Any], result: Any) -> None:
    await wire.send(frame({"jsonrpc": "2.0", "id": request["id"], "result": result}))


async def test_a_client_that_greets_with_ping_is_called_for_tools_and_permissions(tmp_path: Path) -> None:
    async with running_server(tmp_path, handshake=False) as server:
        wire = server.wire
        greeting = await wire.call("ping", {})
        assert greeting["protocolVersion"] == 2
        assert isinstance(greeting["timestamp"], int)
        session = await wire.create(SCRIPT, tools=[TOOL], requestPermission=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        permission = await asked(wire, "permission.request")
        assert permission["params"]["permissionRequest"]["kind"] == "custom-tool"
        assert isinstance(permission["id"], int)
        await answer(wire, permission, {"result": {"kind": "approved"}})
        call = await asked(wire, "tool.call")
        assert call["params"] == {
            "sessionId": session,
            "toolCallId": "call-1",
            "toolName": "lookup",
            "arguments": {"key": "a"},
        }
        # A handler may call the server while its call is open.
        assert (await wire.call("status.get", {}))["protocolVersion"] == 2
        odd = {"textResultForLlm": "found", "resultType": "text", "toolTelemetry": {"shown": True}}
        await answer(wire, call, {"result": odd})
        await wire.event("session.idle", session=session)
        kinds = {event["type"] for event in wire.events(session)}
        (done,) = [event for event in wire.events(session) if event["type"] == "tool.execution_complete"]
        answers = [event for event in wire.events(session) if event["type"] == "assistant.message"]
    assert done["data"]["toolTelemetry"] == {"shown": True}
    assert answers[-1]["data"]["content"] == "found"
    assert not kinds & {"external_tool.requested", "permission.requested", "permission.completed"}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"result": {"kind": "denied-interactively-by-user"}}, "The user rejected this tool call."),
        (None, "Permission denied and could not request permission from user"),
    ],
)
async def test_what_an_old_client_denies_does_not_run(tmp_path: Path, result: Any, message: str) -> None:
    async with running_server(tmp_path, handshake=False) as server:
        wire = server.wire
        await wire.call("ping", {})
        session = await wire.create(SCRIPT, tools=[TOOL], requestPermission=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await answer(wire, await asked(wire, "permission.request"), result)
        done = await wire.event("tool.execution_complete", session=session)
        await wire.event("session.idle", session=session)
    assert done["data"]["error"]["message"] == message
    assert not [message for message in wire.messages if message.get("method") == "tool.call"]


async def test_an_old_client_that_fails_a_call_leaks_nothing_to_the_model(tmp_path: Path) -> None:
    async with running_server(tmp_path, handshake=False) as server:
        wire = server.wire
        await wire.call("ping", {})
        session = await wire.create(SCRIPT, tools=[{**TOOL, "skipPermission": True}])
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        call = await asked(wire, "tool.call")
        error = {"code": -32603, "message": "secret boom"}
        await wire.send(frame({"jsonrpc": "2.0", "id": call["id"], "error": error}))
        await wire.event("session.idle", session=session)
        answers = [event for event in wire.events(session) if event["type"] == "assistant.message"]
    assert "due to error: Error: Tool execution failed" in answers[-1]["data"]["content"]
    assert "secret boom" not in str(wire.events(session))


async def test_old_clients_without_a_handler_are_denied_unless_the_configuration_allows_them(
    tmp_path: Path,
) -> None:
    script = scripted(calls("bash", command="touch made"), {"text": "ok"})
    async with running_server(tmp_path, handshake=False) as server:
        await server.wire.call("ping", {})
        events = await server.wire.prompt(await server.wire.create(script))
        assert [event["data"]["warningType"] for event in events if event["type"] == "session.warning"]
        assert not (tmp_path / "made").exists()
    config = "[permissions]\nallow_old_clients = true\n"
    async with running_server(tmp_path, handshake=False, config=config) as server:
        await server.wire.call("ping", {})
        await server.wire.prompt(await server.wire.create(script))
        assert (tmp_path / "made").exists()
    (tmp_path / "made").unlink()
    async with running_server(tmp_path, config=config) as server:
        await server.wire.prompt(await server.wire.create(script))
        assert not (tmp_path / "made").exists()


async def test_the_operator_can_fix_the_protocol(tmp_path: Path) -> None:
    async with running_server(tmp_path, handshake=False, args=["--protocol", "3"]) as server:
        assert (await server.wire.call("ping", {}))["protocolVersion"] == 3
    async with running_server(tmp_path, handshake=False, args=["--protocol", "2"]) as server:
        assert (await server.wire.call("connect", {}))["protocolVersion"] == 2
        assert (await server.wire.call("status.get", {}))["protocolVersion"] == 2


async def test_a_client_that_connects_speaks_protocol_3_from_then_on(tmp_path: Path) -> None:
    async with running_server(tmp_path, handshake=False) as server:
        await server.wire.call("ping", {})
        assert (await server.wire.call("connect", {}))["protocolVersion"] == 3
        assert (await server.wire.call("ping", {}))["protocolVersion"] == 3
