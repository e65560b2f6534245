"""Tools that follow another one: they are in requests once that one has left something to work on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

OF_COMMANDS = {"read_bash", "write_bash", "stop_bash", "list_bash"}
OF_AGENTS = {"read_agent", "write_agent", "list_agents"}
FOLLOWERS = OF_COMMANDS | OF_AGENTS
SAYS = {"text": "-"}
AGENT = {"name": "look", "agent_type": "explore", "description": "look", "prompt": "look"}
STARTS = {"tool_calls": [{"id": "call-1", "name": "task", "arguments": AGENT}]}


async def shown(wire: Wire, session: str) -> set[str]:
    """Return the followers that the next request has."""
    found: dict[str, Any] = await wire.call("session.tools.getCurrentMetadata", {"sessionId": session})
    assert {tool["name"] for tool in found["tools"]} >= FOLLOWERS
    return {tool["name"] for tool in found["tools"] if not tool.get("deferLoading")} & FOLLOWERS


async def test_a_command_in_the_background_brings_the_tools_for_it_and_they_stay(tmp_path: Path) -> None:
    waits = "until [ -e go ]; do sleep 0.01; done"
    model = scripted(
        calls("bash", command="true"),
        SAYS,
        calls("bash", command=waits, initial_wait=0),
        calls("stop_bash", "call-2", shellId="1"),
        SAYS,
        SAYS,
    )
    async with running_server(tmp_path, args=["--yolo"]) as server:
        session = await server.wire.create(model)
        await server.wire.prompt(session)
        assert await shown(server.wire, session) == set()
        await server.wire.prompt(session)
        assert await shown(server.wire, session) == OF_COMMANDS
    # The beginning of requests stays the same after a resume, too.
    async with running_server(tmp_path, args=["--yolo"]) as server:
        await server.wire.call("session.resume", {"sessionId": session, "provider": model})
        assert await shown(server.wire, session) == OF_COMMANDS


async def test_a_sub_agent_brings_the_tools_for_it(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=["--yolo"]) as server:
        session = await server.wire.create(scripted(STARTS, SAYS, SAYS, SAYS))
        assert await shown(server.wire, session) == set()
        await server.wire.prompt(session)
        assert await shown(server.wire, session) == OF_AGENTS


async def test_chosen_and_mentioned_tools_are_there_from_the_beginning(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        everything = await server.wire.create(scripted(SAYS), availableTools=["@all"])
        assert await shown(server.wire, everything) == FOLLOWERS
        named = await server.wire.create(scripted(SAYS), availableTools=["builtin:*"])
        assert await shown(server.wire, named) == FOLLOWERS
        session = await server.wire.create(scripted(SAYS))
        await server.wire.prompt(session, "Use @{list_agents}.")
        assert await shown(server.wire, session) == {"list_agents"}


async def test_a_tool_that_is_not_shown_can_be_called(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted(calls("list_bash"), SAYS))
        events = await server.wire.prompt(session)
        (done,) = [event["data"] for event in events if event["type"] == "tool.execution_complete"]
        assert (done["success"], done["result"]["content"]) == (True, "No shells.")
        assert await shown(server.wire, session) == OF_COMMANDS
