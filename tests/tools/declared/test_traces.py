"""The order in which the handlers of a declared tool are called."""

# These tests call functions of tools with arbitrary signatures.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# ruff: noqa: A002 - `input` is the convention's name

from __future__ import annotations

from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from jumpseat_protocol import events
from tests.tools.declared.runs import completed, results, session_of

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]


def traced(trace: list[str], *cmds: Any, **more: Any) -> dict[str, Any]:
    """Return a tool whose handlers record their calls."""

    def note(name: str) -> Any:
        return lambda *_args: trace.append(name)

    return {
        "cmds": list(cmds),
        "handlers": {"setup": note("Setup"), "on_exit": note("Exit")},
        "output": {kind: note(kind.capitalize()) for kind in ("success", "error", "rejected", "cancelled")},
        **more,
    }


def good(args: Any) -> dict[str, Any]:
    return {"status": "success", "data": "fine"}


def bad(args: Any) -> dict[str, Any]:
    return {"status": "error", "data": "not so fine"}


def raises(args: Any) -> None:
    raise ValueError("hidden")


@pytest.mark.parametrize(
    ("cmds", "expected"),
    [
        ([good], ["Setup", "Success", "Exit"]),
        ([bad], ["Setup", "Error", "Exit"]),
        ([raises], ["Setup", "Error", "Exit"]),
        ([good, good], ["Setup", "Success", "Success", "Exit"]),
        ([good, bad], ["Setup", "Success", "Error", "Exit"]),
        ([bad, good], ["Setup", "Error", "Exit"]),
        ([["true"]], ["Setup", "Success", "Exit"]),
        ([["true"], ["false"], ["true"]], ["Setup", "Success", "Error", "Exit"]),
        ([["no-such-program"]], ["Setup", "Error", "Exit"]),
    ],
)
async def test_handlers_are_called_around_each_command_and_function(
    tasks: TaskGroup, cmds: list[Any], expected: list[str]
) -> None:
    trace: list[str] = []
    made = session_of(tasks, {"t": traced(trace, *cmds)}, ("t", {}))
    await made.ask("go")

    assert trace == expected
    assert len(completed(made)) == 1


async def test_a_rejected_call_runs_setup_rejected_and_on_exit(tasks: TaskGroup) -> None:
    trace: list[str] = []
    made = session_of(tasks, {"t": traced(trace, good)}, ("t", {}), approve_all=False)
    made.send("go")
    made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": "reject"})
    await made.idle()

    assert trace == ["Setup", "Rejected", "Exit"]
    (completion,) = completed(made)
    assert completion.error == events.ToolError(message="The user rejected this tool call.", code="rejected")


async def test_withdrawing_a_question_cancels_all_remaining_calls(tasks: TaskGroup) -> None:
    trace: list[str] = []
    tool = traced(trace, good)
    made = session_of(tasks, {"t": tool}, ("t", {}), ("t", {}), approve_all=False)
    made.send("go")
    made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": "cancelled"})
    await made.idle()

    assert trace == ["Setup", "Cancelled", "Exit", "Cancelled"]
    assert results(made) == ["Permission request cancelled", "The user cancelled this tool call."]


async def test_an_abort_calls_cancelled_of_the_running_tool(tasks: TaskGroup) -> None:
    trace: list[str] = []
    running = anyio.Event()

    async def endless(args: Any) -> None:
        running.set()
        await anyio.sleep_forever()

    made = session_of(tasks, {"t": traced(trace, endless)}, ("t", {}))
    made.send("go")
    await running.wait()
    await made.session.abort("user_initiated")

    assert trace == ["Setup", "Cancelled", "Exit"]
    assert [completion.success for completion in completed(made)] == [False]


async def test_an_abort_calls_cancelled_and_on_exit_of_a_tool_that_is_set_up(tasks: TaskGroup) -> None:
    trace: list[str] = []
    running = anyio.Event()

    async def endless() -> None:
        running.set()
        await anyio.sleep_forever()

    tool = traced(trace, good)
    handlers = {**tool["handlers"], "setup": endless}
    made = session_of(tasks, {"t": {**tool, "handlers": handlers}}, ("t", {}))
    made.send("go")
    await running.wait()
    await made.session.abort("user_initiated")

    assert trace == ["Cancelled", "Exit"]
    assert [completion.success for completion in completed(made)] == [False]


async def test_an_abort_calls_cancelled_of_a_tool_that_awaits_permission(tasks: TaskGroup) -> None:
    trace: list[str] = []
    made = session_of(tasks, {"t": traced(trace, good)}, ("t", {}), approve_all=False)
    made.send("go")
    await made.client.wait_for(events.PermissionRequested)
    await made.session.abort("user_initiated")

    assert trace == ["Setup", "Cancelled", "Exit"]


async def test_shared_handlers_enclose_consecutive_calls_of_one_tool(tasks: TaskGroup) -> None:
    trace: list[str] = []
    tool = traced(trace, good, opts={"use_handlers_once": True})
    made = session_of(tasks, {"t": tool, "other": traced(trace, bad)}, ("t", {}), ("t", {}), ("other", {}))
    await made.ask("go")

    assert trace == ["Setup", "Success", "Success", "Exit", "Setup", "Error", "Exit"]


async def test_shared_handlers_exit_even_if_the_last_call_cannot_run(tasks: TaskGroup) -> None:
    trace: list[str] = []
    tool = traced(trace, good, opts={"use_handlers_once": True}, parameters={"n": {"type": "integer"}})
    made = session_of(tasks, {"t": tool}, ("t", {"n": 1}), ("t", {"n": "one"}))
    await made.ask("go")

    assert trace == ["Setup", "Success", "Exit"]


async def test_calls_with_shared_handlers_share_attributes(tasks: TaskGroup) -> None:
    steps: list[str] = []

    def setup(self: Any) -> None:
        self.connection = "open"

    def use(self: Any, args: Any, input: Any) -> str:
        steps.append(self.connection)
        return "used"

    tool = {"cmds": [use], "handlers": {"setup": setup}, "opts": {"use_handlers_once": True}}
    made = session_of(tasks, {"t": tool}, ("t", {}), ("t", {}))
    await made.ask("go")

    assert steps == ["open", "open"]


async def test_a_failed_call_does_not_prevent_the_next(tasks: TaskGroup) -> None:
    trace: list[str] = []
    made = session_of(
        tasks, {"broken": traced(trace, bad), "whole": traced(trace, good)}, ("broken", {}), ("whole", {})
    )
    await made.ask("go")

    assert trace == ["Setup", "Error", "Exit", "Setup", "Success", "Exit"]
    assert results(made) == ["not so fine", "fine"]


@pytest.mark.parametrize("place", ["setup", "success", "error", "on_exit", "prompt", "rejected"])
async def test_a_failing_handler_reveals_nothing_and_every_call_completes(
    tasks: TaskGroup, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_args: Any) -> None:
        raise ValueError("the password is swordfish")

    handlers = {place: fails} if place in ("setup", "on_exit") else {}
    output = {place: fails} if place in ("success", "error", "prompt", "rejected") else {}
    step = bad if place == "error" else good
    tool = {"cmds": [step], "handlers": handlers, "output": output}
    made = session_of(tasks, {"t": tool}, ("t", {}), approve_all=False)
    made.send("go")
    if place not in ("setup", "prompt"):
        kind = "reject" if place == "rejected" else "approve-once"
        made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": kind})
    await made.idle()

    (completion,) = completed(made)
    assert completion.success == (place == "on_exit")
    assert "swordfish" not in "".join(line.decode() for line in made.log.lines)
    assert f"tool 't': {place}: ValueError: the password is swordfish (" in caplog.text


async def test_a_function_cannot_end_the_process(tasks: TaskGroup) -> None:
    def leaves(args: Any) -> None:
        raise SystemExit(3)

    made = session_of(tasks, {"t": {"cmds": [leaves]}}, ("t", {}))
    await made.ask("go")

    assert results(made) == ["The tool `t` failed."]
