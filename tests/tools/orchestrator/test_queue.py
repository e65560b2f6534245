"""The queue of one answer: the order of its calls, and the end of all of them by one decision."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from anyio.abc import TaskGroup

from jumpseat.tools.builtin.bash import TOOL as BASH
from jumpseat.tools.builtin.create import TOOL as CREATE
from jumpseat.tools.builtin.view import TOOL as VIEW
from jumpseat.tools.orchestrator.environment import CALLS_PER_ANSWER
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome
from jumpseat_protocol import events
from jumpseat_protocol.sessions import ClientTool
from tests.support.sessions import MadeSession
from tests.tools.declared.runs import completed, results, session_of

pytestmark = pytest.mark.anyio


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return "bash", {"command": command, "description": "Run it"}


def of_calls(made: MadeSession) -> list[tuple[str, str]]:
    """Return the events about calls, as pairs of the last part of the type and the call's id."""
    return [
        (event.type.rpartition("_")[2], event.payload.tool_call_id)
        for event in made.client.events
        if isinstance(event.payload, events.ToolExecutionStart | events.ToolExecutionComplete)
    ]


async def test_calls_with_effects_run_in_the_order_of_the_answer(tasks: TaskGroup, tmp_path: Path) -> None:
    made = session_of(
        tasks,
        {"build": {"cmds": ["sleep 0.05; echo built > made.txt"]}},
        ("build", {}),
        bash("cat made.txt; rm made.txt"),
        ("create", {"path": "made.txt", "file_text": "again"}),
        ("view", {"path": "made.txt"}),
        cwd=tmp_path,
        builtin=[BASH, CREATE, VIEW],
    )
    await made.ask("go")

    assert [completion.success for completion in completed(made)] == [True] * 4
    assert results(made)[1].startswith("built\n")
    assert "again" in results(made)[3]
    # A call is announced when its turn comes.
    assert of_calls(made) == [(step, f"c{number}") for number in (1, 2, 3, 4) for step in ("start", "complete")]
    assert made.client.payloads(events.TurnEnd)[0].tools_status == "success"


class NoArgs(ToolArgs):
    """Arguments of the tools that only read."""


def reading(name: str, run: Callable[[ToolContext, NoArgs], Awaitable[ToolOutcome]]) -> BuiltinTool[NoArgs]:
    return BuiltinTool(
        name=name, description="Read", args=NoArgs, run=run, intention=lambda _args: "Read", read_only=True
    )


async def test_neighbouring_calls_that_only_read_run_side_by_side(tasks: TaskGroup, tmp_path: Path) -> None:
    first_runs, second_runs = anyio.Event(), anyio.Event()

    async def first(_ctx: ToolContext, _args: NoArgs) -> ToolOutcome:
        first_runs.set()
        await second_runs.wait()
        return ToolOutcome("first")

    async def second(_ctx: ToolContext, _args: NoArgs) -> ToolOutcome:
        second_runs.set()
        await first_runs.wait()
        return ToolOutcome("second")

    made = session_of(
        tasks,
        {"t": {"cmds": [lambda args: "third"]}},  # pyright: ignore[reportUnknownLambdaType]
        ("first", {}),
        ("second", {}),
        ("t", {}),
        builtin=[reading("first", first), reading("second", second)],
    )
    await made.ask("go")

    assert results(made) == ["first", "second", "third"]
    starts = [call for step, call in of_calls(made) if step == "start"]
    assert starts == ["c1", "c2", "c3"]


@pytest.mark.thorough
async def test_of_an_answer_with_very_many_calls_only_the_first_run(tasks: TaskGroup, tmp_path: Path) -> None:
    count = 300
    made = session_of(
        tasks,
        {},
        *[("create", {"path": f"{number}", "file_text": ""}) for number in range(count)],
        cwd=tmp_path,
        builtin=[CREATE],
    )
    await made.ask("go")

    assert len(os.listdir(tmp_path)) == CALLS_PER_ANSWER
    assert of_calls(made) == [(step, f"c{n + 1}") for n in range(count) for step in ("start", "complete")]
    assert len(results(made)) == count
    assert set(results(made)[CALLS_PER_ANSWER:]) == {
        f"This tool call did not run: only the first {CALLS_PER_ANSWER} calls of one answer run."
    }
    assert made.client.payloads(events.TurnEnd)[0].tools_status == "failure"


WAIT: Final[tuple[str, dict[str, Any]]] = ("wait", {})


async def test_an_abort_leaves_no_call_of_many_without_a_result(tasks: TaskGroup) -> None:
    started = anyio.Event()

    async def wait(_ctx: ToolContext, _args: NoArgs) -> ToolOutcome:
        started.set()
        await anyio.sleep_forever()
        raise AssertionError

    made = session_of(tasks, {}, *[WAIT] * 300, builtin=[reading("wait", wait)])
    made.send("go")
    await started.wait()
    await made.session.abort("user_initiated")
    await made.idle()

    assert sorted(of_calls(made)) == sorted(
        (step, f"c{n + 1}") for n in range(300) for step in ("start", "complete")
    )


async def test_calls_of_clients_wait_for_no_other_call(tasks: TaskGroup) -> None:
    release = anyio.Event()

    async def waits(args: Any) -> str:
        await release.wait()
        return "waited"

    ask = ClientTool(name="ask", skip_permission=True)
    made = session_of(tasks, {"t": {"cmds": [waits]}}, ("t", {}), ("ask", {}), ("ask", {}), client_tools=[ask])
    made.send("go")
    await made.client.wait_for(events.ExternalToolRequested, 2)
    for request in made.client.payloads(events.ExternalToolRequested):
        made.answer_tool(request, "answered")
    await made.client.wait_for(events.ToolExecutionComplete, 2)
    release.set()
    await made.idle()

    assert results(made) == ["waited", "answered", "answered"]


def gated(trace: list[str]) -> dict[str, Any]:
    """Return a tool that records whether it ran, and has its own text for a cancelled call."""

    def run(args: Any) -> str:
        trace.append("ran")
        return "ran"

    def cancelled(self: Any, tools: Any, cmd: Any) -> None:
        trace.append("cancelled")
        tools.chat.add_tool_output(self, "Cancelled, says the tool", "You cancelled the tool")

    return {"cmds": [run], "output": {"cancelled": cancelled}}


async def test_cancelling_one_call_cancels_every_other_call_of_the_answer(tasks: TaskGroup, tmp_path: Path) -> None:
    trace: list[str] = []
    made = session_of(
        tasks,
        {"t": gated(trace)},
        ("t", {}),
        bash("touch made.txt"),
        ("t", {}),
        ("ask", {}),
        ("gone", {}),
        cwd=tmp_path,
        builtin=[BASH],
        client_tools=[ClientTool(name="ask")],
        approve_all=False,
    )
    made.send("go")
    await made.client.wait_for(events.PermissionRequested, 2)
    request = next(
        request
        for request in made.client.payloads(events.PermissionRequested)
        if request.permission_request.tool_call_id == "c1"
    )
    made.decide(request, {"kind": "cancelled"})
    await made.idle()

    by_user = "The user cancelled this tool call."
    text = "Cancelled, says the tool"
    assert results(made)[:4] == [text, by_user, text, by_user]
    assert trace == ["cancelled", "cancelled"]
    assert not (tmp_path / "made.txt").exists()
    assert len(made.client.payloads(events.PermissionRequested)) == 2
    assert [answer.result.kind for answer in made.client.payloads(events.PermissionCompleted)] == ["cancelled"] * 2
    assert sorted(of_calls(made)) == sorted(
        (step, f"c{number}") for number in range(1, 6) for step in ("start", "complete")
    )
    first = completed(made)[0]
    assert first.error is not None
    assert first.error.code == "denied"
    assert first.result == events.ToolResult(content=text, detailed_content="You cancelled the tool")
    # The model is told, and goes on.
    assert made.client.payloads(events.TurnEnd)[0].tools_status == "cancelled"
    assert made.client.payloads(events.AssistantMessage)[-1].content == "done"


async def test_a_rejection_that_ends_the_turn_leaves_the_queue_unasked(tasks: TaskGroup) -> None:
    trace: list[str] = []
    made = session_of(
        tasks,
        {"t": gated(trace)},
        bash("true"),
        bash("true"),
        ("t", {}),
        builtin=[BASH],
        approve_all=False,
    )
    made.send("go")
    made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": "reject"})
    await made.idle()

    assert len(made.client.payloads(events.PermissionRequested)) == 1
    assert results(made) == [
        "The user rejected this tool call.",
        "This tool call did not run, because the user rejected another call of the same answer.",
        "Cancelled, says the tool",
    ]
    assert made.client.payloads(events.TurnEnd)[0].tools_status == "rejected"
    assert len(made.client.payloads(events.AssistantMessage)) == 1


async def test_a_rejection_with_feedback_leaves_the_queue_running(tasks: TaskGroup) -> None:
    trace: list[str] = []
    made = session_of(tasks, {"t": gated(trace)}, ("t", {}), ("t", {}), approve_all=False)
    made.send("go")
    request = await made.client.wait_for(events.PermissionRequested)
    made.decide(request, {"kind": "reject", "feedback": "not this one"})
    made.decide(await made.client.wait_for(events.PermissionRequested, 2), {"kind": "approve-once"})
    await made.idle()

    assert (trace, results(made)[1]) == (["ran"], "ran")
    assert made.client.payloads(events.TurnEnd)[0].tools_status == "failure"


async def test_an_abort_asks_the_tools_of_running_and_queued_calls_for_their_texts(tasks: TaskGroup) -> None:
    trace: list[str] = []
    running = anyio.Event()

    async def endless(args: Any) -> None:
        running.set()
        await anyio.sleep_forever()

    tool = {**gated(trace), "cmds": [endless]}
    made = session_of(tasks, {"t": tool}, ("t", {}), ("t", {}))
    made.send("go")
    await running.wait()
    await made.session.abort("user_initiated")

    assert trace == ["cancelled", "cancelled"]
    assert results(made) == ["Cancelled, says the tool"] * 2
    assert of_calls(made) == [(step, f"c{number}") for number in (1, 2) for step in ("start", "complete")]
