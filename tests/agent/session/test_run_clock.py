"""Each moment of a run counts once: for people, for models, for tools, or for none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.clock import new_id, utc_now
from jumpseat.agent.interfaces import RunUsage
from jumpseat.agent.session.metrics import ModelUsage, RunClock
from jumpseat_protocol import events
from tests.support.server import calls, running_server, scripted

pytestmark = pytest.mark.anyio


class Played:
    """A clock that is told what happens, second by second."""

    def __init__(self) -> None:
        self.kept: list[RunUsage] = []
        self.usage = {"large": ModelUsage(calls=3, input_tokens=100, dollars=1.0)}
        self._now = 0.0
        self.clock = RunClock(lambda: self.usage, self.kept.append, lambda: self._now)

    def after(self, seconds: float, payload: events.EventPayload, agent: str | None = None) -> None:
        self._now += seconds
        self.clock.note(events.Event.of(new_id(), utc_now(), None, payload, agent))

    def call(self, seconds: float, name: str, agent: str | None = None) -> None:
        self.after(seconds, events.ToolExecutionStart(tool_call_id=name, tool_name="bash", arguments={}), agent)

    def end(self, seconds: float, name: str, agent: str | None = None) -> None:
        self.after(seconds, events.ToolExecutionComplete(tool_call_id=name, success=True), agent)


def prompt(interaction: str, **more: Any) -> events.UserMessage:
    return events.UserMessage(content="go", message_id=new_id(), interaction_id=interaction, **more)


def question() -> events.UserInputRequested:
    return events.UserInputRequested(request_id="q", question="?", tool_call_id="a")


def answer() -> events.UserInputCompleted:
    return events.UserInputCompleted(request_id="q")


def times(run: RunUsage) -> tuple[int, int, int, int]:
    return run.waiting_ms, run.model_ms, run.tools_ms, run.other_ms


def test_each_moment_counts_once() -> None:
    played = Played()
    played.after(9, events.TurnStart(turn_id="0"))
    assert played.clock.running() is None
    played.after(1, prompt("i1"))
    played.after(1, events.TurnStart(turn_id="1"))
    played.after(2, events.AssistantMessage(message_id="m", content=""))
    # Two calls side by side, of which one asks while the other runs.
    played.call(0, "a")
    played.call(1, "b")
    played.after(1, question())
    played.after(10, prompt("i1", delivery="steering"))
    played.end(10, "b")
    played.after(10, answer())
    # A sub-agent calls a model while a tool of the session runs.
    played.after(1, events.TurnStart(turn_id="1"), "agent")
    played.after(4, events.TurnEnd(turn_id="1"), "agent")
    running = played.clock.running()
    assert running is not None
    assert (times(running[0]), running[1]) == ((30_000, 6_000, 3_000, 1_000), "tools")
    played.end(1, "a")
    played.usage["large"] = ModelUsage(calls=5, input_tokens=150, output_tokens=7, dollars=1.5)
    played.after(1, events.SessionIdle(mode="interactive"))
    (run,) = played.kept
    assert times(run) == (30_000, 6_000, 4_000, 2_000)
    assert (run.interaction_id, run.input_tokens, run.output_tokens, run.cost_usd) == ("i1", 50, 7, 0.5)
    assert played.clock.running() is None


def test_short_phases_are_not_lost_and_a_queued_prompt_is_another_run() -> None:
    played = Played()
    played.after(0, prompt("i1"))
    for number in range(1000):
        played.call(0.0004, str(number))
        played.end(0.0004, str(number))
    played.after(0, prompt("i2"))
    played.after(1, events.SessionIdle(mode="interactive"))
    first, second = played.kept
    assert 799 <= sum(times(first)) <= 800
    assert (second.interaction_id, times(second)) == ("i2", (0, 0, 0, 1000))


async def test_runs_are_the_same_after_the_server_was_started_again(tmp_path: Path) -> None:
    turns = [calls("bash", command="true"), {"text": "Done.", "usage": {"input": 20, "output": 3}}]
    asked: dict[str, Any] = {}
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted(*turns), workingDirectory=str(tmp_path))
        asked = {"sessionId": session}
        assert await server.wire.call("jumpseat.runs.list", asked) == {"runs": []}
        await server.wire.call("session.permissions.setApproveAll", {**asked, "enabled": True})
        await server.wire.prompt(session, "begin")
        before = await server.wire.call("jumpseat.runs.list", asked)
        (run,) = before["runs"]
        assert run["interactionId"]
        assert run["endedAt"] >= run["startedAt"]
        assert (run["inputTokens"], run["outputTokens"]) == (20, 3)
        assert "phase" not in run
    async with running_server(tmp_path) as server:
        assert await server.wire.call("jumpseat.runs.list", asked) == before
