"""Custom agents over the real wire: the effects of selecting one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_servers import list_servers, status, stdio
from tests.support.model_server import ModelServer, json_reply
from tests.support.server import JsonObject, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

REVIEWER: JsonObject = {
    "name": "reviewer",
    "displayName": "Reviewer",
    "description": "Reviews.",
    "prompt": "You review code and never change it.",
    "tools": ["view", "grep"],
}
PLAIN: JsonObject = {"name": "plain", "prompt": "You are plain."}


async def next_request(wire: Wire, session: str) -> JsonObject:
    return await wire.call("jumpseat.session.nextRequest", {"sessionId": session, "prompt": "hi"})


async def request_parts(wire: Wire, session: str) -> tuple[str, set[str]]:
    """Return the system message and the tools of the next model request."""
    body = (await next_request(wire, session))["body"]
    return body["messages"][0]["content"], {tool["function"]["name"] for tool in body.get("tools", ())}


def at(provider: ModelServer, **more: Any) -> JsonObject:
    return {"type": "openai", "baseUrl": f"{provider.url}/v1", "apiKey": "k", **more}


async def select(wire: Wire, session: str, name: str) -> JsonObject:
    return (await wire.call("session.agent.select", {"sessionId": session, "name": name}))["agent"]


async def test_a_selected_agent_adds_its_prompt_and_restricts_the_tools(tmp_path: Path) -> None:
    async with ModelServer() as provider, running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(at(provider), model="m", customAgents=[REVIEWER, PLAIN])
        before = await request_parts(wire, session)
        selected = await select(wire, session, "reviewer")
        current = (await wire.call("session.agent.getCurrent", {"sessionId": session}))["agent"]
        during = await request_parts(wire, session)
        assert await wire.call("session.agent.deselect", {"sessionId": session}) is None
        nobody = await wire.call("session.agent.getCurrent", {"sessionId": session})
        after = await request_parts(wire, session)
        told = [event for event in wire.events(session) if event["type"].startswith("subagent.")]
    assert selected == current
    assert (selected["name"], selected["displayName"], selected["tools"]) == (
        "reviewer",
        "Reviewer",
        ["view", "grep"],
    )
    assert during == (f"{before[0]}\n\n{REVIEWER['prompt']}", {"view", "grep"})
    assert {"bash", "view"} < before[1]
    assert nobody == {"agent": None}
    assert after == before
    assert [(event["type"], event["data"]) for event in told] == [
        (
            "subagent.selected",
            {"agentName": "reviewer", "agentDisplayName": "Reviewer", "tools": ["view", "grep"]},
        ),
        ("subagent.deselected", {}),
    ]


async def test_the_agent_of_a_session_can_be_selected_at_creation(tmp_path: Path) -> None:
    async with ModelServer() as provider, running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(at(provider), model="m", customAgents=[REVIEWER, PLAIN], agent="plain")
        system, tools = await request_parts(wire, session)
        (told,) = [event for event in wire.events(session) if event["type"] == "subagent.selected"]
        error = await wire.error_of(
            "session.create", {"provider": at(provider), "model": "m", "customAgents": [PLAIN], "agent": "nobody"}
        )
        unknown = await wire.error_of("session.agent.select", {"sessionId": session, "name": "nobody"})
    assert system.endswith("\n\nYou are plain.")
    assert "bash" in tools
    assert told["data"] == {"agentName": "plain", "agentDisplayName": "plain", "tools": None}
    assert error["message"] == "agent: unknown agent 'nobody'; the agents in customAgents and in files: 'plain'"
    assert unknown["message"] == "unknown agent 'nobody'; the agents of this session: 'reviewer', 'plain'"


async def test_a_prompt_that_replaces_the_system_message_keeps_that_of_the_agent(tmp_path: Path) -> None:
    async with ModelServer() as provider, running_server(tmp_path) as server:
        replaced = {"mode": "replace", "content": "Only this."}
        session = await server.wire.create(
            at(provider), model="m", customAgents=[PLAIN], agent="plain", systemMessage=replaced
        )
        system, _ = await request_parts(server.wire, session)
    assert system == "Only this.\n\nYou are plain."


@pytest.mark.parametrize(
    ("named", "offered"),
    [
        ([], set[str]()),
        (["*"], {"view", "hidden", "look_up"}),
        (["custom:*"], {"hidden", "look_up"}),
        (None, {"view"}),
    ],
)
async def test_tools_hidden_from_the_default_agent_are_offered_to_agents_that_name_them(
    tmp_path: Path, named: list[str] | None, offered: set[str]
) -> None:
    tools = [{"name": "hidden"}, {"name": "look_up"}]
    agent = {**PLAIN, "tools": named} if named is not None else PLAIN
    async with ModelServer() as provider, running_server(tmp_path) as server:
        session = await server.wire.create(
            at(provider),
            model="m",
            tools=tools,
            availableTools=["view", "custom:*"],
            defaultAgent={"excludedTools": ["hidden", "look_up"]},
            customAgents=[agent],
        )
        _, before = await request_parts(server.wire, session)
        await select(server.wire, session, "plain")
        _, during = await request_parts(server.wire, session)
    assert before == {"view"}
    assert during == offered


async def test_the_servers_of_an_agent_run_while_it_is_selected(tmp_path: Path) -> None:
    agent = {"name": "asker", "prompt": "Ask.", "mcpServers": {"mine": stdio()}, "tools": ["mine/echo"]}
    echo = calls("mine-echo", text="hello")
    async with running_server(tmp_path, args=("--yolo",)) as server:
        wire = server.wire
        session = await wire.create(scripted(echo, {"text": "a"}, echo, {"text": "b"}), customAgents=[agent])
        assert await list_servers(wire, {"sessionId": session}) == {"servers": []}
        await select(wire, session, "asker")
        # Immediately: the turn waits for the server.
        await wire.prompt(session)
        during = await wire.event("tool.execution_complete", session=session)
        listing = await list_servers(wire, {"sessionId": session})
        names = await wire.call("session.tools.getCurrentMetadata", {"sessionId": session})
        await wire.call("session.agent.deselect", {"sessionId": session})
        since = len(wire.messages)
        await wire.prompt(session)
        after = await wire.event("tool.execution_complete", session=session, since=since)
        left = await list_servers(wire, {"sessionId": session})
    assert during["data"]["result"]["content"] == "hello"
    assert listing["servers"] == [{"name": "mine", "status": "connected"}]
    assert [tool["name"] for tool in names["tools"]] == ["mine-echo"]
    assert "does not exist" in after["data"]["error"]["message"]
    assert left == {"servers": []}


async def test_an_agent_uses_its_own_model(tmp_path: Path) -> None:
    agent = {**PLAIN, "model": "other/o1", "reasoningEffort": "high"}
    async with ModelServer() as provider, running_server(tmp_path) as server:
        other = {"name": "other", "baseUrl": f"{provider.url}/other/v1", "apiKey": "k2"}
        models = [{"provider": "other", "id": "o1"}, {"provider": "other", "id": "o2"}]
        session = await server.wire.create(
            at(provider),
            model="m",
            reasoningEffort="low",
            providers=[other],
            models=models,
            customAgents=[agent],
        )
        before = await next_request(server.wire, session)
        await select(server.wire, session, "plain")
        during = await next_request(server.wire, session)
    assert (before["body"]["model"], before["body"]["reasoning_effort"]) == ("m", "low")
    assert (during["body"]["model"], during["body"]["reasoning_effort"]) == ("o1", "high")
    assert during["url"].startswith(f"{provider.url}/other/")


async def test_an_agent_without_its_model_uses_that_of_the_session(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": [{"text": "one"}, {"text": "two"}]}))
    config = f'[adapters.a]\ntype = "scripted"\nscript = "{script}"\n[adapters.b]\ntype = "scripted"\n'
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.toml").write_text(config + f'script = "{script}"\n')
    async with running_server(tmp_path) as server:
        wire = server.wire
        opened = await wire.call(
            "session.create", {"model": "a/x", "customAgents": [{**PLAIN, "model": "gone"}], "agent": "plain"}
        )
        session = opened["sessionId"]
        for _ in range(2):
            await wire.call("session.sendAndWait", {"sessionId": session, "prompt": "go"})
        warnings = [event["data"] for event in wire.events(session) if event["type"] == "session.warning"]
        said = [event["data"]["content"] for event in wire.events(session) if event["type"] == "assistant.message"]
    assert [warning["warningType"] for warning in warnings] == ["custom_agent"]
    assert "The model 'gone' of the agent 'plain' is not available" in warnings[0]["message"]
    assert said == ["one", "two"]


async def test_an_agent_that_requires_its_model_does_not_run_without_it(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": [{"text": "one"}]}))
    config = f'[adapters.a]\ntype = "scripted"\nscript = "{script}"\n[adapters.b]\ntype = "scripted"\n'
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.toml").write_text(config + f'script = "{script}"\n')
    agent = {**PLAIN, "model": "gone", "modelPolicy": "required"}
    async with running_server(tmp_path) as server:
        params = {"model": "a/x", "customAgents": [agent], "agent": "plain"}
        session = (await server.wire.call("session.create", params))["sessionId"]
        error = await server.wire.error_of("session.sendAndWait", {"sessionId": session, "prompt": "go"})
        assert "gone" in error["message"]
        assert not [event for event in server.wire.events(session) if event["type"] == "assistant.message"]


async def test_a_resumed_session_keeps_its_selected_agent(tmp_path: Path) -> None:
    keyed = stdio(env={"API_KEY": "sk-of-the-agent-1234567890"})
    agent = {**REVIEWER, "mcpServers": {"plain": stdio(), "keyed": keyed}}
    async with ModelServer(json_reply(answer("done"))) as provider:
        async with running_server(tmp_path) as server:
            session = await server.wire.create(at(provider), model="m", customAgents=[agent], agent="reviewer")
            await server.wire.prompt(session)
        stored = "".join(path.read_text() for path in (tmp_path / "home").rglob("*.json*"))
        async with running_server(tmp_path) as server:
            wire = server.wire
            await wire.call("session.resume", {"sessionId": session, "provider": at(provider), "model": "m"})
            current = await wire.call("session.agent.getCurrent", {"sessionId": session})
            system, tools = await request_parts(wire, session)
            await status(wire, session, "keyed", "failed")
            servers = (await list_servers(wire, {"sessionId": session}))["servers"]
    assert "sk-of-the-agent" not in stored
    assert current["agent"]["name"] == "reviewer"
    assert system.endswith(REVIEWER["prompt"])
    assert tools == {"view", "grep"}
    assert {mcp_server["name"] for mcp_server in servers} == {"plain", "keyed"}
    (lost,) = [mcp_server for mcp_server in servers if mcp_server["name"] == "keyed"]
    assert "env API_KEY is not stored" in lost["error"]


async def test_an_agent_missing_at_a_resume_is_deselected_with_a_warning(tmp_path: Path) -> None:
    async with ModelServer(json_reply(answer("done"))) as provider:
        async with running_server(tmp_path) as server:
            session = await server.wire.create(at(provider), model="m", customAgents=[REVIEWER], agent="reviewer")
            await server.wire.prompt(session)
        async with running_server(tmp_path) as server:
            wire = server.wire
            await wire.call("session.resume", {"sessionId": session, "customAgents": [PLAIN]})
            await wire.event("subagent.deselected", session=session)
            assert await wire.call("session.agent.getCurrent", {"sessionId": session}) == {"agent": None}


async def test_an_agent_selected_during_a_prompt_applies_to_the_next_call(tmp_path: Path) -> None:
    wait = {"id": "c1", "type": "function", "function": {"name": "wait", "arguments": "{}"}}
    asks = json_reply({"choices": [{"message": {"role": "assistant", "tool_calls": [wait]}}]})
    async with ModelServer(asks, json_reply(answer("Done"))) as provider, running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(
            at(provider), model="m", customAgents=[REVIEWER], tools=[{"name": "wait", "skipPermission": True}]
        )
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        question = await wire.event("external_tool.requested", session=session)
        await select(wire, session, "reviewer")
        answered = {"sessionId": session, "requestId": question["data"]["requestId"], "result": "ok"}
        await wire.call("session.tools.handlePendingToolCall", answered)
        await wire.event("session.idle", session=session)
    first, second = (request.json for request in provider.requests)
    assert REVIEWER["prompt"] not in first["messages"][0]["content"]
    assert second["messages"][0]["content"].endswith(REVIEWER["prompt"])
    assert {tool["function"]["name"] for tool in second["tools"]} == {"view", "grep"}


async def test_the_prompt_of_an_agent_can_be_changed(tmp_path: Path) -> None:
    async with ModelServer() as provider, running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(at(provider), model="m", customAgents=[PLAIN], agent="plain")
        changed = {"sessionId": session, "id": "plain", "prompt": "You are fancy."}
        assert await wire.call("session.agent.setPrompt", changed) is None
        system, _ = await request_parts(wire, session)
        listing = await wire.call("session.agent.list", {"sessionId": session, "includePrompt": True})
    assert system.endswith("\n\nYou are fancy.")
    assert [agent["prompt"] for agent in listing["agents"]] == ["You are fancy."]


async def test_an_agent_starts_with_its_skills(tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "tea"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: tea\ndescription: Make tea.\n---\nWarm the pot first.\n")
    async with ModelServer() as provider, running_server(tmp_path) as server:
        session = await server.wire.create(
            at(provider),
            model="m",
            skillDirectories=[str(tmp_path / "skills")],
            customAgents=[{**PLAIN, "skills": ["tea", "unknown"]}],
        )
        before, _ = await request_parts(server.wire, session)
        await select(server.wire, session, "plain")
        during, _ = await request_parts(server.wire, session)
    assert "Warm the pot" not in before
    assert "Warm the pot first." in during


async def test_an_invalid_server_of_an_agent_is_refused(tmp_path: Path) -> None:
    agent = {**PLAIN, "mcpServers": {"broken": {"command": 7}}}
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("session.create", {"provider": scripted(), "customAgents": [agent]})
    assert error["message"].startswith("customAgents.plain.mcpServers.broken: ")


def answer(text: str) -> JsonObject:
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
