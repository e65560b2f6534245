"""Sub-agents that ended long ago, in a session that has had many."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumpseat.agent.session.sub_agents import AgentLimits
from jumpseat.agent.subagents.history import forget_old
from jumpseat.agent.subagents.subagent import SubAgent
from tests.agent.subagents.test_subagents_over_the_wire import named, results, task, turn
from tests.support.server import calls, running_server

pytestmark = pytest.mark.anyio

AT_ONCE = 16
REMEMBERED = AgentLimits().remembered


async def test_the_answer_of_an_agent_that_was_forgotten_is_read_from_the_log(tmp_path: Path) -> None:
    agents = [task(f"call-{number}", name=f"agent {number}") for number in range(AT_ONCE)]
    prompts = {
        "delegate": [turn(*agents), {"text": "done"}],
        "look": [{"text": "found it"}],
        "-4[0-9a-f]{3}-": [
            calls("read_agent", "call-r", agent_id="{{last_user}}"),
            calls("write_agent", "call-w", agent_id="{{last_user}}", message="look again"),
            {"text": "done"},
        ],
    }
    entries = [{"when": text, "turns": turns} for text, turns in prompts.items()]
    model = {"type": "scripted", "script": {"prompts": entries, "after_last": "repeat"}}
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(model)
        first = named(await wire.prompt(session, "delegate"), "subagent.started")[0]["agentId"]
        for _ in range(REMEMBERED // AT_ONCE):
            await wire.prompt(session, "delegate")
        usage = await wire.call("session.usage.getMetrics", {"sessionId": session})
        of_agents = usage["agentMetrics"]
        assert first not in of_agents
        main = of_agents["main"]["modelMetrics"].values()
        assert sum(used["requests"]["count"] for used in main) == 2 * (REMEMBERED // AT_ONCE + 1)

        found = results(await wire.prompt(session, first))
        assert found["call-r"].startswith(
            f"Agent is idle (waiting for messages). agent_id: {first}, agent_type: task"
        )
        assert found["call-r"].endswith("[Turn 0]\nfound it")
        assert found["call-w"].endswith("only the last 64 agents are kept.")
        nobody = "00000000-0000-4000-8000-000000000000"
        assert results(await wire.prompt(session, nobody))["call-r"] == "Agent not found"


def test_agents_that_matter_are_not_forgotten() -> None:
    def agent(name: str, parent_id: str | None = None, *, running: bool = False, unread: bool = False) -> SubAgent:
        return SubAgent(
            id=name,
            type="task",
            name=name,
            description="",
            call_id=name,
            parent_id=parent_id,
            started_at="",
            status="running" if running else "idle",
            unread=unread,
        )

    given = [
        agent("parent"),
        agent("child of parent", "parent", running=True),
        agent("unread", unread=True),
        agent("over"),
        agent("parent of an unread one"),
        agent("unread by a parent that is over", "parent of an unread one", unread=True),
    ]
    agents = {one.id: one for one in given}
    assert [one.id for one in forget_old(agents, 4)] == ["over", "unread by a parent that is over"]
    assert [one.id for one in forget_old(agents, 0)] == ["parent of an unread one"]
    assert list(agents) == ["parent", "child of parent", "unread"]
