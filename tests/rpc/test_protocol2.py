"""Clients of protocol 2 get requests where clients of protocol 3 get events."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_openai import fake_openai, says
from tests.support.pictures import PNG
from tests.support.server import Wire, calls, frame, running_server, scripted

pytestmark = pytest.mark.anyio

TOOL: dict[str, Any] = {
    "name": "lookup",
    "description": "Look it up",
    "parameters": {"type": "object", "properties": {}},
}
SCRIPT = scripted(calls("lookup", key="a"), {"text": "{{last_tool_result}}"})


async def requested(wire: Wire, method: str) -> dict[str, Any]:
    return await wire.until(lambda message: message.get("method") == method, what=method)


async def answer(wire: Wire, request: dict[str, Any], result: Any) -> None:
    await wire.send(frame({"jsonrpc": "2.0", "id": request["id"], "result": result}))


async def test_a_client_that_starts_with_ping_gets_requests_for_tools_and_permissions(tmp_path: Path) -> None:
    async with running_server(tmp_path, handshake=False) as server:
        wire = server.wire
        greeting = await wire.call("ping", {})
        assert greeting["protocolVersion"] == 2
        assert isinstance(greeting["timestamp"], int)
        session = await wire.create(SCRIPT, tools=[TOOL], requestPermission=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        permission = await requested(wire, "permission.request")
        assert permission["params"]["permissionRequest"]["kind"] == "custom-tool"
        assert isinstance(permission["id"], int)
        await answer(wire, permission, {"result": {"kind": "approved"}})
        call = await requested(wire, "tool.call")
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
        (completions,) = [event for event in wire.events(session) if event["type"] == "tool.execution_complete"]
        answers = [event for event in wire.events(session) if event["type"] == "assistant.message"]
    assert completions["data"]["toolTelemetry"] == {"shown": True}
    assert answers[-1]["data"]["content"] == "found"
    assert not kinds & {"external_tool.requested", "permission.requested", "permission.completed"}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"result": {"kind": "denied-interactively-by-user"}}, "The user rejected this tool call."),
        (None, "Permission denied and could not request permission from user"),
    ],
)
async def test_a_call_that_an_old_client_denies_does_not_run(tmp_path: Path, result: Any, message: str) -> None:
    async with running_server(tmp_path, handshake=False) as server:
        wire = server.wire
        await wire.call("ping", {})
        session = await wire.create(SCRIPT, tools=[TOOL], requestPermission=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await answer(wire, await requested(wire, "permission.request"), result)
        completion = await wire.event("tool.execution_complete", session=session)
        await wire.event("session.idle", session=session)
    assert completion["data"]["error"]["message"] == message
    assert not [message for message in wire.messages if message.get("method") == "tool.call"]


@pytest.mark.parametrize(
    "response",
    [
        {"result": {"kind": "allow"}},
        {"result": {"kind": "no-result"}},
        {"result": {"kind": "approved-for-session", "approval": "all"}},
        {"result": "approved"},
        "approved",
    ],
    ids=str,
)
async def test_an_invalid_decision_denies_and_the_turn_goes_on(tmp_path: Path, response: Any) -> None:
    async with running_server(tmp_path, handshake=False) as server:
        wire = server.wire
        await wire.call("ping", {})
        session = await wire.create(SCRIPT, tools=[TOOL], requestPermission=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await answer(wire, await requested(wire, "permission.request"), response)
        completion = await wire.event("tool.execution_complete", session=session)
        await wire.event("session.idle", session=session)
    assert completion["data"]["error"]["message"] == "Permission denied and could not request permission from user"


async def test_only_old_clients_with_request_permission_are_asked(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, tcp=True) as server,
        server.connect(handshake=False) as decides,
        server.connect(handshake=False) as watches,
    ):
        await decides.call("ping", {})
        await watches.call("ping", {})
        session = await decides.create(SCRIPT, tools=[TOOL], requestPermission=True)
        await watches.call("session.resume", {"sessionId": session, "requestPermission": False})
        await decides.call("session.send", {"sessionId": session, "prompt": "go"})
        await answer(decides, await requested(decides, "permission.request"), {"result": {"kind": "approved"}})
        await answer(decides, await requested(decides, "tool.call"), {"result": "found"})
        await watches.event("session.idle", session=session)
        assert [message["method"] for message in watches.messages if "id" in message and "method" in message] == []


async def test_a_question_that_another_client_has_answered_is_cancelled(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, tcp=True) as server,
        server.connect(handshake=False) as first,
        server.connect(handshake=False) as second,
    ):
        await first.call("ping", {})
        await second.call("ping", {})
        session = await first.create(SCRIPT, tools=[TOOL], requestPermission=True)
        await second.call("session.resume", {"sessionId": session, "requestPermission": True})
        await first.call("session.send", {"sessionId": session, "prompt": "go"})
        late = await requested(second, "permission.request")
        await answer(first, await requested(first, "permission.request"), {"result": {"kind": "approved"}})
        withdrawn = await requested(second, "$/cancelRequest")
        assert withdrawn["params"] == {"id": late["id"]}
        await answer(second, late, {"result": {"kind": "denied-interactively-by-user"}})
        await answer(first, await requested(first, "tool.call"), {"result": "found"})
        completion = await second.event("tool.execution_complete", session=session)
        assert completion["data"]["success"] is True


async def test_an_abort_cancels_the_tool_call_of_an_old_client(tmp_path: Path) -> None:
    async with running_server(tmp_path, handshake=False) as server:
        wire = server.wire
        await wire.call("ping", {})
        session = await wire.create(SCRIPT, tools=[{**TOOL, "skipPermission": True}])
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        call = await requested(wire, "tool.call")
        await wire.call("session.abort", {"sessionId": session})
        assert (await requested(wire, "$/cancelRequest"))["params"] == {"id": call["id"]}
        await answer(wire, call, {"result": "late"})
        await wire.event("session.idle", session=session, aborted=True)
        events = await wire.prompt(session)
    assert [event["data"]["content"] for event in events if event["type"] == "assistant.message"] != ["late"]


@pytest.mark.parametrize(("method", "decides"), [("tool.call", False), ("permission.request", True)])
async def test_a_client_that_resumes_a_session_is_asked_the_open_questions_of_a_dead_client(
    tmp_path: Path, method: str, decides: bool
) -> None:
    options = {"tools": [{**TOOL, "skipPermission": not decides}], "requestPermission": decides}
    async with running_server(tmp_path, tcp=True) as server:
        async with server.connect(handshake=False) as wire:
            await wire.call("ping", {})
            session = await wire.create(SCRIPT, **options)
            await wire.call("session.send", {"sessionId": session, "prompt": "go"})
            left = await requested(wire, method)
        async with server.connect(handshake=False) as wire:
            await wire.call("ping", {})
            await wire.call("session.resume", {"sessionId": session, **options})
            again = await requested(wire, method)
            assert again["params"] == left["params"]
            # After the response to the resume: until then the client does not know the session.
            types = ["method" in message and message["method"] for message in wire.messages]
            assert types.index(method) == len(types) - 1
            # A second resume must not ask twice.
            await wire.call("session.resume", {"sessionId": session, **options})
            await answer(wire, again, {"result": {"kind": "approved"} if decides else "found"})
            if decides:
                await answer(wire, await requested(wire, "tool.call"), {"result": "found"})
            await wire.event("session.idle", session=session)
            assert len([message for message in wire.messages if message.get("method") == method]) == 1
            assert wire.events(session)[-1]["type"] == "session.idle"


async def test_an_old_client_that_fails_a_call_leaks_nothing_to_the_model(tmp_path: Path) -> None:
    async with running_server(tmp_path, handshake=False) as server:
        wire = server.wire
        await wire.call("ping", {})
        session = await wire.create(SCRIPT, tools=[{**TOOL, "skipPermission": True}])
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        call = await requested(wire, "tool.call")
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
        (warning,) = [event["data"] for event in events if event["type"] == "session.warning"]
        assert warning["warningType"] == "permission"
        assert "--yolo" in warning["message"]
        assert "permissions.allow_old_clients" in warning["message"]
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


@pytest.mark.parametrize("config", ['[permissions]\nallow_old_clients = "client_tools"\n', None])
async def test_tools_of_an_old_client_may_run_unasked_while_commands_may_not(
    tmp_path: Path, config: str | None
) -> None:
    """By the setting, or without it under the name ``copilot``."""
    script = scripted(calls("lookup"), calls("bash", command="touch made"), {"text": "ok"})
    name = "copilot" if config is None else "jumpseat"
    async with running_server(tmp_path, handshake=False, config=config, name=name) as server:
        wire = server.wire
        await wire.call("ping", {})
        session = await wire.create(script, tools=[TOOL])
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await answer(wire, await requested(wire, "tool.call"), {"result": "found"})
        await wire.event("session.idle", session=session)
        outcomes = [
            event["data"]["success"] for event in wire.events(session) if event["type"] == "tool.execution_complete"
        ]
    assert outcomes == [True, False]
    assert not (tmp_path / "made").exists()


async def test_under_the_name_copilot_tools_of_new_clients_and_of_the_configuration_stay_denied(
    tmp_path: Path,
) -> None:
    config = '[tools.lookup]\ndescription = "Look it up"\ncommand = ["touch", "made"]\n'
    async with running_server(tmp_path, handshake=False, config=config, name="copilot") as server:
        await server.wire.call("ping", {})
        await server.wire.prompt(await server.wire.create(SCRIPT, availableTools=["lookup"]))
    async with running_server(tmp_path, name="copilot") as server:
        await server.wire.prompt(await server.wire.create(SCRIPT, tools=[TOOL]))
        assert not [event for event in server.wire.events() if event["type"] == "external_tool.requested"]
    assert not (tmp_path / "made").exists()


async def test_the_operator_can_force_the_protocol(tmp_path: Path) -> None:
    async with running_server(tmp_path, handshake=False, args=["--protocol", "3"]) as server:
        assert (await server.wire.call("ping", {}))["protocolVersion"] == 3
    async with running_server(tmp_path, handshake=False, args=["--protocol", "2"]) as server:
        assert (await server.wire.call("connect", {}))["protocolVersion"] == 2
        assert (await server.wire.call("status.get", {}))["protocolVersion"] == 2


async def test_a_client_uses_protocol_3_after_connect(tmp_path: Path) -> None:
    async with running_server(tmp_path, handshake=False) as server:
        await server.wire.call("ping", {})
        assert (await server.wire.call("connect", {}))["protocolVersion"] == 3
        assert (await server.wire.call("ping", {}))["protocolVersion"] == 3


async def test_an_attached_screenshot_survives_the_deletion_of_its_file(tmp_path: Path) -> None:
    content = PNG
    screenshot = tmp_path / "screenshot.png"
    screenshot.write_bytes(content)
    url = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    async with fake_openai({"What": [says("A cat.")], "And": [says("It is grey.")]}) as model:
        provider = {"type": "openai", "baseUrl": model.base_url}
        async with running_server(tmp_path, handshake=False) as server:
            wire = server.wire
            await wire.call("ping", {})
            session = await wire.create(provider, model="m")
            attachments = [{"type": "file", "path": str(screenshot)}]
            params = {"sessionId": session, "prompt": "What is it?", "attachments": attachments}
            await wire.call("session.send", params)
            await wire.event("session.idle", session=session)
            screenshot.unlink()
        async with running_server(tmp_path, handshake=False) as server:
            wire = server.wire
            await wire.call("ping", {})
            await wire.call("session.resume", {"sessionId": session, "provider": provider})
            await wire.prompt(session, "And its colour?")
    first, second = (request["messages"][1] for request in model.requests)
    assert first == second
    assert [part["image_url"]["url"] for part in first["content"] if part["type"] == "image_url"] == [url]
