"""The user's settings for sub-agents over the real wire, with a scripted model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.subagents.test_subagents_over_the_wire import by_prompt, named, results, task, turn
from tests.support.server import JsonObject, Wire, running_server

pytestmark = pytest.mark.anyio

DELEGATE = "delegate"


async def set_for(wire: Wire, session: str, subagents: JsonObject | None) -> None:
    assert (
        await wire.call("session.tools.updateSubagentSettings", {"sessionId": session, "subagents": subagents})
        == {}
    )


async def offered(wire: Wire, session: str) -> str:
    """Return the definition of the tool ``task`` in the next request of the model."""
    metadata = await wire.call("session.tools.getCurrentMetadata", {"sessionId": session})
    return next(str(tool) for tool in metadata["tools"] if tool["name"] == "task")


async def test_a_disabled_agent_is_neither_offered_nor_started_until_the_settings_are_cleared(
    tmp_path: Path,
) -> None:
    model = by_prompt({DELEGATE: [turn(task()), {"text": "done"}], "look": [{"text": "found"}]})
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(model)
        assert "security-review" in await offered(wire, session)
        await set_for(wire, session, {"disabledSubagents": ["task", "security-review"]})
        assert "security-review" not in await offered(wire, session)
        listed = await wire.call("session.agent.list", {"sessionId": session, "includeBuiltInAgents": True})
        assert {agent["name"] for agent in listed["agents"]}.isdisjoint(("task", "security-review"))
        events = await wire.prompt(session, DELEGATE)
        assert "Unknown agent_type: task. Valid types are: explore" in results(events)["call-1"]
        assert named(events, "subagent.started") == []

        await set_for(wire, session, None)
        assert "security-review" in await offered(wire, session)


async def test_the_model_of_the_user_replaces_that_of_an_agent(tmp_path: Path) -> None:
    model = by_prompt({DELEGATE: [turn(task()), {"text": "done"}], "look": [{"text": "found"}]})
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(model)
        entry = {"model": "of-the-user", "effortLevel": "low", "contextTier": "default"}
        await set_for(wire, session, {"agents": {"task": entry, "explore": {"model": "of-others"}}})
        events = await wire.prompt(session, DELEGATE)
        (configured,) = named(events, "subagent.configured")
        assert configured["data"]["model"] == "of-the-user"
        assert configured["data"]["reasoningEffort"] == "low"


async def test_the_limits_of_the_user_are_lower_than_those_of_the_server(tmp_path: Path) -> None:
    model = by_prompt(
        {
            DELEGATE: [turn(task("call-1", prompt="nest")), {"text": "done"}],
            "nest": [turn(task("call-2", prompt="look")), {"text": "nested"}],
        }
    )
    async with running_server(tmp_path) as server:
        session = await server.wire.create(model)
        await set_for(server.wire, session, {"maxDepth": 1, "maxConcurrency": 99})
        events = await server.wire.prompt(session, DELEGATE)
        assert "agents may start others 1 deep" in results(events)["call-2"]


async def test_the_settings_are_returned_and_survive_the_process(tmp_path: Path) -> None:
    model = by_prompt({})
    wanted = {"agents": {"explore": {"model": "small"}}, "disabledSubagents": ["security-review"]}
    async with running_server(tmp_path) as server:
        session = await server.wire.create(model)
        here = {"sessionId": session}
        assert await server.wire.call("session.tools.getSubagentSettings", here) == {"subagents": None}
        await set_for(server.wire, session, wanted)
        await server.kill()
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {**here, "provider": model})
        assert await server.wire.call("session.tools.getSubagentSettings", here) == {"subagents": wanted}
        assert "security-review" not in await offered(server.wire, session)


@pytest.mark.parametrize("bad", [{"maxDepth": 0}, {"maxConcurrency": "2"}, {"agents": {"task": {"model": ""}}}])
async def test_invalid_settings_are_refused(bad: JsonObject, tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(by_prompt({}))
        params = {"sessionId": session, "subagents": bad}
        error = await server.wire.error_of("session.tools.updateSubagentSettings", params)
        assert error["code"] == -32602
        assert "subagents" in error["message"]
