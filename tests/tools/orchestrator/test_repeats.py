"""A model that repeats a call gets a hint, then its user is asked, or the call fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.settings import SessionSettings
from jumpseat.tools.builtin.apply_patch import TOOL as PATCH
from jumpseat.tools.builtin.bash import TOOL as BASH
from jumpseat.tools.orchestrator.environment import RepeatLimits
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import UserInputResponse
from tests.support.sessions import MadeSession, make_session

pytestmark = pytest.mark.anyio

HINT = "\n[This call had the same result {} times. Repeating it will not help: do something else.]"


class LookArgs(ToolArgs):
    place: str = "here"
    far: bool = False


def looking(ran: list[str], *, changing: bool = False) -> BuiltinTool[LookArgs]:
    """Return a tool with the same result each time, or another one; it notes its calls."""

    async def run(_ctx: ToolContext, args: LookArgs) -> ToolOutcome:
        ran.append(args.place)
        return ToolOutcome(f"nothing {len(ran)}" if changing else "nothing")

    return BuiltinTool(name="look", description="Look", args=LookArgs, run=run, intention=lambda args: args.place)


def script(*places: str) -> list[dict[str, Any]]:
    """Return a script with a call in each answer."""
    return [
        *({"tool_calls": [{"name": "look", "arguments": {"place": place}}]} for place in places),
        {"text": "done"},
    ]


def results(made: MadeSession) -> list[str]:
    return [
        payload.result.content if payload.result is not None else payload.error.message if payload.error else ""
        for payload in made.client.payloads(events.ToolExecutionComplete)
    ]


async def test_the_third_equal_result_has_a_hint_and_the_fifth_call_does_not_run(tasks: TaskGroup) -> None:
    ran: list[str] = []
    made = make_session(tasks, script=script(*["here"] * 7), builtin=[looking(ran)])
    await made.ask("look")
    assert results(made)[:4] == ["nothing", "nothing", "nothing" + HINT.format(3), "nothing" + HINT.format(4)]
    refused = "This call did not run, because it had the same result 4 times. Do something else."
    assert results(made)[4:] == [refused] * 3
    assert len(ran) == 4


async def test_the_user_decides_whether_a_repeated_call_runs(tasks: TaskGroup) -> None:
    ran: list[str] = []
    made = make_session(
        tasks,
        script=script(*["here"] * 9),
        builtin=[looking(ran)],
        handles_user_input=True,
        repeats=RepeatLimits(0, 3),
    )
    made.client.user_answers = [
        UserInputResponse(answer="Continue", was_freeform=False),
        UserInputResponse(answer="Stop", was_freeform=False),
        UserInputResponse(answer="look elsewhere", was_freeform=True),
    ]
    await made.ask("look")
    stopped = "The user stopped this call, because it had the same result 2 times."
    assert results(made)[:6] == ["nothing"] * 4 + [stopped, f"{stopped} They said: look elsewhere"]
    assert len(ran) == 4


@pytest.mark.parametrize("exempt", [False, True])
async def test_calls_between_which_something_is_new_are_no_repetition(tasks: TaskGroup, exempt: bool) -> None:
    ran: list[str] = []
    places = ["here"] * 8 if exempt else ["a", "here", "b", "here", "c", "here", "d", "here", "e", "here", "here"]
    made = make_session(
        tasks,
        script=script(*places),
        builtin=[looking(ran)],
        repeats=RepeatLimits(exempt=frozenset({"builtin:look"} if exempt else ())),
    )
    await made.ask("look")
    assert results(made) == ["nothing"] * len(places)


async def test_calls_in_turns_are_repetitions_and_a_prompt_begins_again(tasks: TaskGroup) -> None:
    ran: list[str] = []
    made = make_session(
        tasks, script=[*script("a", "b", "a", "b", "a", "b", "a"), *script("a", "a")], builtin=[looking(ran)]
    )
    await made.ask("look")
    assert [text.removeprefix("nothing") for text in results(made)] == [
        "",
        "",
        "",
        "",
        "",
        HINT.format(3),
        HINT.format(3),
    ]
    await made.ask("again")
    assert results(made)[7:] == ["nothing", "nothing"]


async def test_the_order_of_arguments_and_remarks_make_no_other_call(tasks: TaskGroup) -> None:
    given: list[dict[str, Any]] = [
        {"place": "here", "far": True, "reason": "first"},
        {"far": True, "place": "here"},
        {"description": "again", "place": "here", "far": True},
    ]
    steps = [{"tool_calls": [{"name": "look", "arguments": arguments}]} for arguments in given]
    made = make_session(tasks, script=[*steps, {"text": "done"}], builtin=[looking([])])
    await made.ask("look")
    assert [text.removesuffix(HINT.format(3)) != text for text in results(made)] == [False, False, True]


async def test_a_call_whose_result_changes_is_no_repetition(tasks: TaskGroup) -> None:
    ran: list[str] = []
    made = make_session(tasks, script=script(*["here"] * 8), builtin=[looking(ran, changing=True)])
    await made.ask("look")
    assert results(made) == [f"nothing {number}" for number in range(1, 9)]


async def test_the_model_is_told_once_what_a_tool_of_another_agent_is_called_here(tasks: TaskGroup) -> None:
    calls = [{"tool_calls": [{"name": "Bash", "arguments": {"cmd": f"echo {number}"}}]} for number in (1, 2)]
    made = make_session(tasks, script=[*calls, {"text": "done"}], builtin=[BASH], approve_all=True)
    await made.ask("go")
    first, second = results(made)
    note = "\n[This tool is called `bash`, not `Bash`, and its arguments are command, description, "
    assert note in first
    assert "This tool is called" not in second


async def test_the_model_is_told_again_after_it_cannot_see_what_it_was_told(tasks: TaskGroup) -> None:
    calls = [
        step
        for number in (1, 2, 3)
        for step in (
            {"tool_calls": [{"name": "Bash", "arguments": {"cmd": f"echo {number}"}}]},
            {"text": "done"},
        )
    ]
    made = make_session(tasks, script=calls, builtin=[BASH], approve_all=True)
    await made.ask("go")
    await made.ask("go")
    made.session.emit(events.SessionContextCleared(initial_message="", messages_cleared=2))
    await made.ask("go")
    assert ["This tool is called" in text for text in results(made)] == [True, False, True]


async def test_a_patch_in_a_command_is_described_as_one(tasks: TaskGroup, tmp_path: Path) -> None:
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+a\n*** End Patch\nEOF"
    calls = [{"tool_calls": [{"name": "bash", "arguments": {"command": patch}}]}, {"text": "done"}]
    made = make_session(
        tasks, script=calls, builtin=[BASH, PATCH], approve_all=True, settings=SessionSettings(cwd=tmp_path)
    )
    await made.ask("go")
    (told,) = results(made)
    assert told.endswith(
        "[This was run as a call of `apply_patch`: call that tool itself, with the arguments input.]"
    )
