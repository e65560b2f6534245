"""Tools that a client replaces, runs itself and lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.events import data_of
from tests.support.fake_openai import MODEL, fake_openai, says
from tests.support.server import running_server, scripted

pytestmark = pytest.mark.anyio

HI = scripted({"text": "Hi"})


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"About {name}", **more}


async def test_a_client_runs_a_tool_with_its_permission_and_the_conversation_does_not_get_it(
    tmp_path: Path,
) -> None:
    async with fake_openai({"go": [says("Hi")]}) as model, running_server(tmp_path) as server:
        wire = server.wire
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        session = await wire.create(provider, model=MODEL, requestPermission=True)
        at = {"sessionId": session}
        arguments = {"command": "echo made > file; echo done", "description": "d"}
        asked = await wire.ask("session.tools.execute", {**at, "name": "bash", "arguments": arguments})
        request = (await wire.event("permission.requested", session=session))["data"]
        decision = {"requestId": request["requestId"], "result": {"kind": "approve-once"}}
        await wire.call("session.permissions.handlePendingPermissionRequest", {**at, **decision})
        result = (await wire.response(asked))["result"]
        assert (result["resultType"], "done" in result["textResultForLlm"]) == ("success", True)
        assert (tmp_path / "file").read_text() == "made\n"
        (ended,) = data_of(wire.events(session), "tool.execution_complete")
        assert ended["success"]
        await wire.prompt(session, "go")
        assert "tool.execution" not in server.log_of(session).read_text()
    assert [message["role"] for message in model.requests[-1]["messages"]] == ["system", "user"]


async def test_a_refused_call_of_a_client_is_a_result_and_an_unknown_tool_an_error(tmp_path: Path) -> None:
    config = '[permissions]\ndeny = ["shell(rm:*)"]\n'
    async with running_server(tmp_path, config=config) as server:
        wire = server.wire
        at = {"sessionId": await wire.create(HI)}
        arguments = {"command": "rm -rf x", "description": "d"}
        result = await wire.call("session.tools.execute", {**at, "name": "bash", "arguments": arguments})
        assert result["resultType"] == "denied"
        result = await wire.call("session.tools.execute", {**at, "name": "view", "arguments": {}})
        assert result["resultType"] == "failure"
        error = await wire.error_of("session.tools.execute", {**at, "name": "nothing", "arguments": {}})
        assert "offers no tool 'nothing'" in error["message"]


async def test_a_command_that_a_client_runs_ends_with_its_session(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=("--yolo",)) as server:
        wire = server.wire
        at = {"sessionId": await wire.create(HI)}
        arguments = {"command": "sleep 60", "description": "d", "initial_wait": 50}
        asked = await wire.ask("session.tools.execute", {**at, "name": "bash", "arguments": arguments})
        await wire.event("tool.execution_start", session=at["sessionId"])
        await wire.call("session.shutdown", at)
        assert "result" in await wire.response(asked)


async def test_calls_that_a_client_asks_for_end_with_their_session(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=("--yolo",)) as server:
        wire = server.wire
        at = {"sessionId": await wire.create(HI)}
        files = [tmp_path / f"{number}.txt" for number in range(20)]
        asked: list[int] = []
        for file in files:
            file.write_text("one")
            arguments = {"path": str(file), "old_str": "one", "new_str": "two"}
            asked.append(await wire.ask("session.tools.execute", {**at, "name": "edit", "arguments": arguments}))
        await wire.call("session.shutdown", at)
        texts = [file.read_text() for file in files]
        for number in asked:
            assert "result" in await wire.response(number)
        # What has not happened when the session is closed does not happen any more, and nothing is logged.
        assert [file.read_text() for file in files] == texts
        assert "ERROR" not in server.stderr


async def test_a_client_replaces_its_own_tools(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as wire, server.connect() as other:
        session = await wire.create(HI, tools=[tool("first")], availableTools=["custom:*"])
        at = {"sessionId": session}
        await other.call("session.resume", {**at, "tools": [tool("theirs")]})

        async def names() -> list[str]:
            return [found["name"] for found in (await wire.call("session.tools.getCurrentMetadata", at))["tools"]]

        assert sorted(await names()) == ["first", "theirs"]
        await wire.call("session.tools.set", {**at, "tools": [tool("second"), tool("third", parameters={})]})
        assert sorted(await names()) == ["second", "theirs", "third"]
        for tools, problem in (
            ([tool("a"), tool("a")], "two tools have the same name"),
            ([tool("theirs")], "already registered by another client"),
            ([tool("bash")], "bash"),
        ):
            assert problem in (await wire.error_of("session.tools.set", {**at, "tools": tools}))["message"]
        assert sorted(await names()) == ["second", "theirs", "third"]
        await wire.call("session.tools.set", {**at, "tools": []})
        assert await names() == ["theirs"]
        async with server.connect() as stranger:
            error = await stranger.error_of("session.tools.set", {**at, "tools": []})
    assert "not attached" in error["message"]


async def test_clients_hear_that_the_tools_of_other_clients_have_come_or_gone(tmp_path: Path) -> None:
    tools: list[dict[str, Any]] = [{"name": "ephemeral", "description": "d", "parameters": {}}]
    async with running_server(tmp_path, tcp=True) as server, server.connect() as wire:
        session = await wire.create(scripted({"text": "a"}), model="m", tools=[{"name": "stable"}])
        async with server.connect() as other:
            resume = {"sessionId": session, "disableResume": True}
            await other.call("session.resume", resume)
            await other.call("session.resume", resume | {"tools": tools})
            await other.call("session.resume", resume | {"tools": tools})
            assert data_of(wire.events(session), "session.tools_updated") == [{"model": "m"}]
            since = len(wire.messages)
        gone = await wire.event("session.tools_updated", session=session, since=since)
        assert (gone["data"], gone["ephemeral"]) == ({"model": "m"}, True)


async def test_built_in_tools_and_models_are_described(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(HI, availableTools=["bash", "view"], tools=[tool("mine")])
        described = await wire.call("session.tools.getBuiltinDescriptors", {"sessionId": session})
        assert [(found["name"], found["isTerminal"]) for found in described["tools"]] == [
            ("bash", True),
            ("view", False),
        ]
        assert all(found["inputSchema"]["type"] == "object" for found in described["tools"])
        models = [model["id"] for model in (await wire.call("models.getBuiltInCatalog", {}))["models"]]
    assert {"gpt-5", "claude-sonnet-4.5"} & set(models)
    assert models == sorted(set(models))
