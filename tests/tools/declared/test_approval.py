"""Permission requests of declared tools."""

# These tests call functions of tools with arbitrary signatures.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import pytest
from anyio.abc import TaskGroup

from jumpseat_protocol import events
from jumpseat_protocol.permissions import CustomToolPermission, ShellPermission
from tests.tools.declared.runs import completed, results, session_of

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]


def yes(*_args: Any) -> bool:
    return True


def no(*_args: Any) -> bool:
    return False


def fails(*_args: Any) -> bool:
    raise ValueError


def table(*_args: Any) -> dict[str, bool]:
    return {"buffer": True, "file": False}


@pytest.mark.parametrize(
    ("opts", "condition", "expected"),
    [
        ({}, None, True),
        ({}, no, False),
        ({}, yes, True),
        ({"requires_approval": False}, yes, False),
        ({"require_approval_before": False}, None, False),
        ({"requires_approval": True}, no, False),
        ({"requires_approval": True}, yes, True),
        ({"requires_approval": {"buffer": True}}, None, True),
        ({"requires_approval": {"buffer": True}}, no, False),
        ({"requires_approval": {}}, yes, False),
        ({"requires_approval": no}, None, False),
        ({"requires_approval": yes}, no, False),
        ({"requires_approval": table}, no, False),
        ({"requires_approval": table}, yes, True),
        # A function that returns None does not waive approval.
        ({"requires_approval": lambda *_args: None}, None, True),
    ],
)
async def test_approval_follows_the_options_and_functions_of_the_tool(
    tasks: TaskGroup, opts: dict[str, Any], condition: Any, expected: bool
) -> None:
    handlers = {"prompt_condition": condition} if condition else {}
    tool = {"cmds": [lambda args: "ran"], "opts": opts, "handlers": handlers}
    made = session_of(tasks, {"t": tool}, ("t", {}), approve_all=False)
    made.send("go")
    if expected:
        made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": "approve-once"})
    await made.idle()

    assert len(made.client.payloads(events.PermissionRequested)) == expected
    assert results(made) == ["ran"]


@pytest.mark.parametrize("place", ["requires_approval", "prompt_condition"])
async def test_a_call_whose_approval_function_fails_does_not_run(tasks: TaskGroup, place: str) -> None:
    ran: list[Any] = []
    tool = {
        "cmds": [ran.append],
        "opts": {"requires_approval": fails} if place == "requires_approval" else {},
        "handlers": {"prompt_condition": fails} if place == "prompt_condition" else {},
    }
    made = session_of(tasks, {"t": tool}, ("t", {}), approve_all=False)
    await made.ask("go")

    assert (ran, results(made)) == ([], ["The tool `t` failed."])


async def test_without_a_client_to_ask_a_tool_does_not_run(tasks: TaskGroup) -> None:
    made = session_of(tasks, {"t": {"cmds": [["true"]]}}, ("t", {}), approve_all=False, handles_permissions=False)
    await made.ask("go")

    assert results(made) == ["Permission denied and could not request permission from user"]


async def test_the_request_shows_the_commands_that_will_run(tasks: TaskGroup) -> None:
    tool = {
        "description": "Test it",
        "cmds": [["make", "${target}"], 'echo "${target}" | wc -c'],
        "parameters": {"target": {"type": "string"}},
        "output": {"prompt": "Make ${target}?"},
    }
    made = session_of(tasks, {"t": tool}, ("t", {"target": "a; b"}), approve_all=False)
    made.send("go")
    request = (await made.client.wait_for(events.PermissionRequested)).permission_request
    await made.session.abort("user_initiated")

    assert isinstance(request, ShellPermission)
    assert request.full_command_text == "make 'a; b' && target='a; b'; echo \"${target}\" | wc -c"
    assert request.intention == "Make a; b?"
    assert request.can_offer_session_approval is False


async def test_functions_beside_commands_make_it_a_custom_tool_request(tasks: TaskGroup) -> None:
    tool = {"description": "Both", "cmds": [["true"], lambda args: "x"]}
    made = session_of(tasks, {"t": tool}, ("t", {}), approve_all=False)
    made.send("go")
    request = (await made.client.wait_for(events.PermissionRequested)).permission_request
    await made.session.abort("user_initiated")

    assert request == CustomToolPermission(tool_name="t", tool_description="Both", args={}, tool_call_id="c1")


async def test_the_user_can_change_the_arguments(tasks: TaskGroup) -> None:
    tool = {"cmds": [lambda args: args["n"]], "parameters": {"n": {"type": "integer"}}}
    made = session_of(tasks, {"t": tool}, ("t", {"n": 1}), approve_all=False)
    made.send("go")
    request = await made.client.wait_for(events.PermissionRequested)
    made.decide(request, {"kind": "approve-once", "modifiedArgs": {"n": 2}})
    await made.idle()

    assert results(made) == ["2"]


@pytest.mark.parametrize("excluded", [True, False])
@pytest.mark.parametrize("kind", ["command", "function"])
async def test_a_tool_excluded_from_yolo_mode_needs_approval_even_if_everything_is_allowed(
    tasks: TaskGroup, kind: str, excluded: bool
) -> None:
    cmds: list[Any] = [["true"]] if kind == "command" else [lambda args: "ran"]
    tool = {"cmds": cmds, "opts": {"allowed_in_yolo_mode": not excluded}}
    made = session_of(tasks, {"t": tool}, ("t", {}), ("t", {}), approve_all=False)
    made.session.permissions.set_mode("allow-all")
    made.send("go")
    if excluded:
        made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": "approve-for-session"})
    await made.idle()

    # A call that was approved for the session needs no further approval.
    assert len(made.client.payloads(events.PermissionRequested)) == excluded
    assert [completion.success for completion in completed(made)] == [True, True]


async def test_a_tool_excluded_from_yolo_mode_is_denied_without_a_client_to_ask(tasks: TaskGroup) -> None:
    tool = {"cmds": [lambda args: "ran"], "opts": {"allowed_in_yolo_mode": False}}
    made = session_of(
        tasks, {"t": tool}, ("t", {}), approve_all=False, handles_permissions=False, allow_unasked=True
    )
    made.send("go")
    await made.idle()

    (warning,) = made.client.payloads(events.SessionWarning)
    assert [completion.success for completion in completed(made)] == [False]
    assert "The tool t requires a person to decide, or a rule that allows it." in warning.message


@pytest.mark.parametrize("cmd_string", [None, lambda args: args["path"].lower()])
async def test_with_require_cmd_approval_an_approval_covers_the_same_command_only(
    tasks: TaskGroup, cmd_string: Any
) -> None:
    output = {"cmd_string": cmd_string} if cmd_string else {}
    tool = {"cmds": [lambda args: args["path"]], "opts": {"require_cmd_approval": True}, "output": output}
    paths = ("a", "b", "a", "A")
    made = session_of(tasks, {"t": tool}, *(("t", {"path": path}) for path in paths), approve_all=False)
    made.send("go")
    requests: list[Any] = []
    while len(requests) < (2 if cmd_string else 3):
        question = await made.client.wait_for(events.PermissionRequested, count=len(requests) + 1)
        request = question.permission_request
        assert isinstance(request, CustomToolPermission)
        requests.append(request.args)
        made.decide(question, {"kind": "approve-for-session"})
    await made.idle()

    assert requests == [{"path": path} for path in ("a", "b", "A")][: len(requests)]
    assert results(made) == list(paths)


@pytest.mark.parametrize("scoped", [True, False])
async def test_an_approved_program_may_run_with_other_arguments_by_default(tasks: TaskGroup, scoped: bool) -> None:
    parameters = {"text": {"type": "string"}}
    tool = {"cmds": [["echo", "${text}"]], "opts": {"require_cmd_approval": scoped}, "parameters": parameters}
    texts = ("a", "b", "a")
    made = session_of(tasks, {"t": tool}, *(("t", {"text": text}) for text in texts), approve_all=False)
    made.send("go")
    for count in (1, 2) if scoped else (1,):
        made.decide(await made.client.wait_for(events.PermissionRequested, count), {"kind": "approve-for-session"})
    await made.idle()

    assert len(made.client.payloads(events.PermissionRequested)) == (2 if scoped else 1)
    assert [completion.success for completion in completed(made)] == [True, True, True]
