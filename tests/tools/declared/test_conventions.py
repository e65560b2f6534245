"""The tools of CodeCompanion's documentation, in Python, and functions of all calling conventions."""

# These tests call functions of tools with arbitrary signatures.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# ruff: noqa: A002, A006 - `input` is the convention's name

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup

from jumpseat_protocol import events
from jumpseat_protocol.permissions import CustomToolPermission
from tests.tools.declared.runs import completed, results, session_of

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]

NUMBERS = {"num1": {"type": "integer"}, "num2": {"type": "integer"}}


def worked_out(args: dict[str, Any]) -> dict[str, Any]:
    first, second = args["num1"], args["num2"]
    match args["operation"]:
        case "add":
            result = first + second
        case "subtract":
            result = first - second
        case "multiply":
            result = first * second
        case _ if second == 0:
            return {"status": "error", "data": "Cannot divide by zero"}
        case _:
            result = first / second
    return {"status": "success", "data": result}


def calculator(trace: list[str], *, today: bool) -> dict[str, Any]:
    """Return the documented calculator, with functions of 2025 or of today."""

    def calculate_2025(self: Any, args: Any, input: Any) -> dict[str, Any]:
        return worked_out(args)

    def calculate(tools: Any, args: Any, opts: Any) -> dict[str, Any]:
        return worked_out(args)

    def success_2025(self: Any, tools: Any, cmd: Any, stdout: list[Any]) -> None:
        tools.chat.add_tool_output(self, str(stdout[0]))

    def success(self: Any, stdout: list[Any], meta: dict[str, Any]) -> None:
        meta["tools"].chat.add_tool_output(self, str(stdout[0]))

    def prompt(self: Any, tools: Any) -> str:
        return f"Perform the calculation `{self.args['num1']} {self.args['operation']} {self.args['num2']}`?"

    def rejected_2025(self: Any, tools: Any, cmd: Any) -> None:
        tools.chat.add_tool_output(self, "The user declined to run the calculator tool")

    def rejected(self: Any, meta: dict[str, Any]) -> None:
        meta["tools"].chat.add_tool_output(self, "The user declined to run the calculator tool")

    return {
        "description": "Perform calculations",
        "callback": {
            "name": "calculator",
            "cmds": [calculate if today else calculate_2025],
            "system_prompt": "## Calculator Tool (`calculator`)\nAdds, subtracts, multiplies or divides.",
            "schema": {
                "type": "function",
                "function": {
                    "name": "calculator",
                    "description": "Perform simple mathematical operations on a user's machine",
                    "parameters": {
                        "type": "object",
                        "properties": {
                            **NUMBERS,
                            "operation": {"type": "string", "enum": ["add", "subtract", "multiply", "divide"]},
                        },
                        "required": ["num1", "num2", "operation"],
                        "additionalProperties": False,
                    },
                    "strict": True,
                },
            },
            "handlers": {
                "setup": lambda self, tools: trace.append("setup function called"),
                "on_exit": lambda self, tools: trace.append("on_exit function called"),
            },
            "output": {
                "prompt": prompt,
                "success": success if today else success_2025,
                # As in the documentation, where the model gets no text in this case.
                "error": lambda self, tools, cmd, stderr: trace.append("An error occurred"),
                "rejected": rejected if today else rejected_2025,
            },
        },
        "opts": {"requires_approval": True},
    }


@pytest.mark.parametrize("today", [True, False], ids=["today", "2025"])
async def test_the_calculator_multiplies_after_approval(tasks: TaskGroup, today: bool) -> None:
    trace: list[str] = []
    call = ("calculator", {"num1": 100, "num2": 50, "operation": "multiply"})
    made = session_of(tasks, {"calculator": calculator(trace, today=today)}, call, approve_all=False)
    made.send("Use the @{calculator} tool for 100*50")
    request = await made.client.wait_for(events.PermissionRequested)
    made.decide(request, {"kind": "approve-once"})
    await made.idle()

    assert results(made) == ["5000"]
    assert trace == ["setup function called", "on_exit function called"]
    assert request.permission_request == CustomToolPermission(
        tool_name="calculator",
        tool_description="Perform the calculation `100 multiply 50`?",
        args=call[1],
        tool_call_id="c1",
    )
    (message,) = made.client.payloads(events.UserMessage)
    assert "\n\nUse the `calculator` tool for 100*50\n\n" in (message.transformed_content or "")


@pytest.mark.parametrize("today", [True, False], ids=["today", "2025"])
async def test_the_calculator_has_a_result_even_if_its_handler_adds_none(tasks: TaskGroup, today: bool) -> None:
    trace: list[str] = []
    call = ("calculator", {"num1": 1, "num2": 0, "operation": "divide"})
    made = session_of(tasks, {"calculator": calculator(trace, today=today)}, call)
    await made.ask("go")

    assert results(made) == ["Cannot divide by zero"]
    assert trace == ["setup function called", "An error occurred", "on_exit function called"]


@pytest.mark.parametrize("today", [True, False], ids=["today", "2025"])
async def test_the_calculator_has_its_own_text_for_a_rejection(tasks: TaskGroup, today: bool) -> None:
    call = ("calculator", {"num1": 1, "num2": 0, "operation": "divide"})
    made = session_of(tasks, {"calculator": calculator([], today=today)}, call, approve_all=False)
    made.send("go")
    made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": "reject", "feedback": "no"})
    await made.idle()

    assert results(made) == ["The user declined to run the calculator tool"]
    assert completed(made)[0].error == events.ToolError(
        message="The user rejected this tool call. User feedback: no", code="denied"
    )


async def test_invalid_arguments_are_reported_with_their_places(tasks: TaskGroup) -> None:
    call = ("calculator", {"num1": "x", "num2": 0, "operation": "root"})
    made = session_of(tasks, {"calculator": calculator([], today=True)}, call)
    await made.ask("go")

    (text,) = results(made)
    assert text.startswith("Invalid arguments for `calculator`: ")
    assert "/num1: 'x' is not of type 'integer'" in text
    assert "/operation: 'root' is not one of" in text


async def test_the_code_runner_of_2024_runs_code(tasks: TaskGroup, tmp_path: Path) -> None:
    # With local programs in place of docker.
    messages: list[Any] = []

    def env(schema: Any) -> dict[str, Any]:
        temp_input = tmp_path / "input"
        inputs = schema["parameters"]["inputs"]
        temp_input.write_text(inputs["code"])
        return {"code": inputs["code"], "lang": inputs["lang"], "temp_dir": tmp_path, "temp_input": temp_input}

    def success(self: Any, cmd: Any, output: Any) -> None:
        messages.append((cmd, output))

    runner = {
        "name": "code_runner",
        "cmds": [["echo", "pull", "${lang}"], ["env", "-C", "${temp_dir}", "${lang}", "${temp_input}"]],
        "schema": {
            "name": "code_runner",
            "parameters": {"inputs": {"lang": "sh", "code": "echo 'Hello World'"}},
        },
        "env": env,
        "system_prompt": lambda schema: f"### You have gained access to {schema['name']}",
        "handlers": {"approved": lambda self: True},
        "output": {"success": success},
    }
    call = ("code_runner", {"inputs": {"lang": "sh", "code": "echo 6 times 7; pwd"}})
    made = session_of(tasks, {"code_runner": runner}, call)
    await made.ask("go")

    assert results(made) == [
        "$ echo pull sh\npull sh\n<exited with exit code 0>\n\n"
        f"$ env -C {tmp_path} sh {tmp_path}/input\n6 times 7\n{tmp_path}\n<exited with exit code 0>"
    ]
    assert [len(output) for _, output in messages] == [1, 2]


async def test_the_handler_approved_is_called_for_each_command(tasks: TaskGroup) -> None:
    rejected: list[Any] = []

    def approved(self: Any, cmd: Any) -> bool:
        return cmd[1] != "two"

    tool = {
        "cmds": [["echo", "one"], ["echo", "two"], ["echo", "three"]],
        "handlers": {"approved": approved},
        "output": {"rejected": lambda self, cmd: rejected.append(cmd)},
    }
    made = session_of(tasks, {"t": tool}, ("t", {}))
    await made.ask("go")

    assert results(made) == [
        "$ echo one\none\n<exited with exit code 0>\n\n$ echo two\nThe user rejected this command.\n\n"
        "$ echo three\nthree\n<exited with exit code 0>"
    ]
    assert completed(made)[0].error == events.ToolError(message="The user rejected this tool call.", code="denied")
    assert rejected == [["echo", "two"]]


@pytest.mark.parametrize("answer", [lambda self: False, lambda self: 1 / 0], ids=["no", "failing"])
async def test_a_command_that_approved_refuses_does_not_run(tasks: TaskGroup, answer: Callable[..., Any]) -> None:
    made = session_of(tasks, {"t": {"cmds": [["echo"]], "handlers": {"approved": answer}}}, ("t", {}))
    await made.ask("go")

    assert completed(made)[0].error == events.ToolError(message="The user rejected this tool call.", code="denied")


async def test_functions_of_2024_pass_on_their_results_and_end_with_a_status(tasks: TaskGroup) -> None:
    tool = {
        "schema": {"name": "t", "parameters": {"inputs": {"lang": "python"}}},
        "cmds": [
            lambda self, input: f"Hello, {self.request['parameters']['inputs']['lang']}",
            lambda self, input: {"status": "success", "msg": f"{input}!"},
        ],
    }
    made = session_of(tasks, {"t": tool}, ("t", {"inputs": {"lang": "World"}}))
    await made.ask("go")

    assert results(made) == ["Hello, World!"]


async def test_a_request_of_2024_has_the_actions_of_its_examples(tasks: TaskGroup) -> None:
    schema = [
        {"tool": {"_attr": {"name": "editor"}, "action": {"_attr": {"type": "add"}, "line": 3, "code": "x"}}},
        {"tool": {"_attr": {"name": "editor"}, "action": {"_attr": {"type": "delete"}, "line": 4}}},
    ]

    def act(self: Any, input: Any) -> dict[str, Any]:
        action = self.request["action"]
        return {"status": "success", "msg": f"{action['_attr']['type']} {action['line']}"}

    made = session_of(
        tasks,
        {"editor": {"schema": schema, "cmds": [act]}},
        ("editor", {"action": {"_attr": {"type": "delete"}, "line": 9}}),
    )
    await made.ask("go")

    assert results(made) == ["delete 9"]
    (spec,) = made.session.tools.specs()
    assert spec.parameters["properties"]["action"]["required"] == ["_attr", "line"]


async def test_a_function_gets_the_last_result_of_the_call_before_it(tasks: TaskGroup) -> None:
    first = {"cmds": [lambda args: {"status": "success", "data": 20}]}
    second = {
        "cmds": [
            lambda self, args, input, output_handler: output_handler(input["data"] + 1),
            lambda args, input: input * 2,
        ]
    }
    made = session_of(tasks, {"first": first, "second": second}, ("first", {}), ("second", {}))
    await made.ask("go")

    assert results(made) == ["20", "42"]


def calls_back_at_once(args: Any, output_cb: Any) -> None:
    output_cb({"status": "success", "data": "first"})
    output_cb({"status": "error", "data": "second"})


def calls_back_from_a_thread(args: Any, output_cb: Any) -> None:
    threading.Thread(target=output_cb, args=["first"]).start()


async def calls_back_from_a_task(tools: Any, args: Any, opts: Any) -> None:
    await anyio.lowlevel.checkpoint()
    opts["output_cb"]("first")
    await anyio.sleep_forever()


async def returns_in_a_task(args: Any) -> str:
    await anyio.lowlevel.checkpoint()
    return "first"


def returns_and_calls_back(args: Any, output_cb: Any) -> str:
    output_cb("first")
    return "second"


@pytest.mark.parametrize(
    "function",
    [
        calls_back_at_once,
        calls_back_from_a_thread,
        calls_back_from_a_task,
        returns_in_a_task,
        returns_and_calls_back,
    ],
)
async def test_the_first_result_of_a_function_is_used(tasks: TaskGroup, function: Callable[..., Any]) -> None:
    made = session_of(tasks, {"t": {"cmds": [function]}}, ("t", {}))
    await made.ask("go")

    assert results(made) == ["first"]
    assert completed(made)[0].success


async def test_a_late_result_is_ignored(tasks: TaskGroup) -> None:
    kept: list[Any] = []

    def promises(self: Any, args: Any, input: Any, output_handler: Any) -> None:
        kept.extend((self, output_handler))

    made, timeout_s = None, 0.0
    # A busy machine may not have begun the call before its end.
    for timeout_s in (0.25, 1, 10):
        made = session_of(tasks, {"t": {"cmds": [promises], "timeout_s": timeout_s}}, ("t", {}))
        await made.ask("go")
        if kept:
            break
    assert made is not None
    view, answer = kept
    answer("late")
    view.chat.add_tool_output(view, "late")
    view.chat.add_message({"role": "user", "content": "late"})
    await made.ask("again")

    assert results(made) == [f"The tool `t` gave no result within {timeout_s:g} s."]
    assert len(completed(made)) == 1


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_that_never_finishes_times_out(tasks: TaskGroup, is_async: bool) -> None:
    end = threading.Event()

    async def sleeps(args: Any) -> None:
        await anyio.sleep_forever()

    function: Callable[..., Any] = sleeps if is_async else lambda args: end.wait()
    made = session_of(tasks, {"t": {"cmds": [function], "timeout_s": 0.25}}, ("t", {}))
    await made.ask("go")
    end.set()

    assert results(made) == ["The tool `t` gave no result within 0.25 s."]
    assert completed(made)[0].error == events.ToolError(
        message="The tool `t` gave no result within 0.25 s.", code="timeout"
    )


@pytest.mark.parametrize("error", [SystemExit, BaseException, asyncio.CancelledError])
@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("place", ["cmds", "setup", "success", "enabled", "env"])
async def test_an_exception_in_a_function_ends_only_its_call(
    tasks: TaskGroup, error: type[BaseException], is_async: bool, place: str
) -> None:
    def leaves(*_args: Any) -> None:
        raise error

    async def leaves_later(*_args: Any) -> None:
        await anyio.lowlevel.checkpoint()
        raise error

    function: Any = leaves_later if is_async else leaves
    tool: dict[str, Any] = {"cmds": [lambda args: "ran"]}
    match place:
        case "cmds":
            tool["cmds"] = [function]
        case "setup":
            tool["handlers"] = {"setup": function}
        case "success":
            tool["output"] = {"success": function}
        case _:
            tool[place] = function
    made = session_of(tasks, {"t": tool, "other": {"cmds": [lambda args: "fine"]}}, ("t", {}), ("other", {}))
    await made.ask("go")

    assert [completion.success for completion in completed(made)] == [False, True]
    assert results(made)[1] == "fine"


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("a secret")


@pytest.mark.parametrize(
    ("given", "text"),
    [("a\ud800b", "a?b"), (Unspeakable(), "<Unspeakable>"), ({"x": "\ud800"}, "{'x': '\\ud800'}")],
)
async def test_a_result_that_json_cannot_carry_is_converted_to_text(
    tasks: TaskGroup, given: Any, text: str
) -> None:
    made = session_of(
        tasks, {"t": {"cmds": [lambda args: given], "output": {"success": lambda tool: given}}}, ("t", {})
    )
    await made.ask("go")

    assert results(made) == [text]


async def test_a_registered_job_ends_with_its_function(tasks: TaskGroup) -> None:
    ended: list[str] = []

    class Job:
        returncode = None

        def terminate(self) -> None:
            ended.append("terminated")

    async def runs(tools: Any, args: Any, opts: Any) -> None:
        opts["register_job"](Job())
        await anyio.sleep_forever()

    made = session_of(tasks, {"t": {"cmds": [runs], "timeout_s": 0.25}}, ("t", {}))
    await made.ask("go")

    assert ended == ["terminated"]


async def test_output_for_the_model_and_for_the_user_is_separate(tasks: TaskGroup) -> None:
    def success(self: Any, tools: Any) -> None:
        tools.chat.add_tool_output(self, "for the model", "for the user")
        tools.chat.add_tool_output(self, "more for both")
        tools.chat.add_message({"role": "user", "content": "Mind the gap."})

    made = session_of(tasks, {"t": {"cmds": [lambda args: "x"], "output": {"success": success}}}, ("t", {}))
    await made.ask("go")

    (completion,) = completed(made)
    assert completion.result == events.ToolResult(
        content="for the model\n\nmore for both", detailed_content="for the user\n\nmore for both"
    )
    assert [message.content for message in made.client.payloads(events.UserMessage)] == ["go", "Mind the gap."]


async def test_a_tool_can_hide_its_output_from_the_user(tasks: TaskGroup) -> None:
    def success(self: Any, tools: Any) -> None:
        tools.chat.add_tool_output(self, "for the model", "")

    made = session_of(tasks, {"t": {"cmds": [lambda args: "x"], "output": {"success": success}}}, ("t", {}))
    await made.ask("go")

    assert completed(made)[0].result == events.ToolResult(content="for the model", detailed_content="")


async def test_data_of_any_kind_becomes_text(tasks: TaskGroup) -> None:
    for given, text in (
        (None, "The tool `t` ran and gave no output."),
        ([1, {"a": None}], '[1,{"a":null}]'),
        (5, "5"),
    ):
        made = session_of(tasks, {"t": {"cmds": [lambda args, given=given: given]}}, ("t", {}))
        await made.ask("go")
        assert results(made) == [text]


@pytest.mark.parametrize(
    ("parameters", "seen"),
    [
        # As documented in 2024, and in a combination of today.
        (("self", "cmd", "output"), (["echo", "a"], ["a"])),
        (("self", "cmd", "stdout"), (["echo", "a"], [["a"]])),
        (("self", "tools", "cmd", "stdout"), (["echo", "a"], [["a"]])),
    ],
)
async def test_the_form_of_the_output_follows_the_names_of_the_parameters(
    tasks: TaskGroup, parameters: tuple[str, ...], seen: tuple[Any, Any]
) -> None:
    got: list[Any] = []
    names = ", ".join(parameters)
    success = eval(f"lambda {names}: got.append(({parameters[-2]}, {parameters[-1]}))", {"got": got})
    made = session_of(tasks, {"t": {"cmds": [["echo", "a"]], "output": {"success": success}}}, ("t", {}))
    await made.ask("go")

    assert got == [seen]
