"""Run the samples of "Creating Tools" on a real server."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from jumpseat.tools.declared.view import ChatView
from tests.sources.running import install, programs, run_calls
from tests.sources.tools_2025 import approvals, asynchronous, calculator, commands, interface
from tests.support.model_server import ModelServer
from tests.support.server import JsonObject, running_server

pytestmark = pytest.mark.anyio

APPROVE = {"kind": "approve-once"}


def product(num1: object, num2: object, operation: str = "multiply") -> tuple[str, JsonObject]:
    return "calculator", {"num1": num1, "num2": num2, "operation": operation}


async def test_the_calculator_answers_and_calls_its_handlers(tmp_path: Path) -> None:
    install(tmp_path, calculator)
    async with running_server(tmp_path) as server:
        run = await run_calls(server, product(100, 50), decisions=(APPROVE,))
        assert run.results() == ["5000"]
        assert run.notices() == ["setup function called", "on_exit function called"]
        failed = await run_calls(server, product(1, 0, "divide"), decisions=None)
        assert failed.results() == ["Cannot divide by zero"]
        assert sorted(failed.notices()) == ["An error occurred", "on_exit function called", "setup function called"]
        # The function takes numbers in strings, and so does the check of the arguments.
        assert (await run_calls(server, product("21", "2"), decisions=None)).results() == ["42"]


async def test_the_calculator_is_described_to_openai_as_declared(tmp_path: Path) -> None:
    install(tmp_path, calculator)
    async with ModelServer() as model, running_server(tmp_path) as server:
        bodies: list[JsonObject] = []
        for wire_api in ("completions", "responses"):
            provider = {"type": "openai", "wireApi": wire_api, "baseUrl": f"{model.url}/v1", "apiKey": "k"}
            session = await server.wire.create(provider, model="m")
            await server.wire.call("session.tools.getCurrentMetadata", {"sessionId": session})
            params = {"sessionId": session, "prompt": "Use the @{calculator} tool for 100*50"}
            bodies.append((await server.wire.call("jumpseat.session.nextRequest", params))["body"])

    tool: JsonObject = vars(calculator)["TOOL"]["callback"]
    function = tool["schema"]["function"]
    (chat,) = [tool for tool in bodies[0]["tools"] if tool["function"]["name"] == "calculator"]
    assert chat == {"type": "function", "function": function}
    (responses,) = [tool for tool in bodies[1]["tools"] if tool["name"] == "calculator"]
    assert responses == {"type": "function", **function}
    assert tool["system_prompt"].strip() in bodies[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("decision", "result"),
    [
        (APPROVE, "5000"),
        ({"kind": "reject"}, "The user declined to run the calculator tool"),
        ({"kind": "reject", "feedback": "no"}, "The user declined to run the calculator tool"),
        ({"kind": "cancelled"}, "The user cancelled the execution of the calculator tool"),
    ],
)
async def test_the_calculator_asks_for_approval_in_its_own_words(
    tmp_path: Path, decision: JsonObject, result: str
) -> None:
    install(tmp_path, calculator, approvals)
    async with running_server(tmp_path) as server:
        run = await run_calls(server, product(100, 50), decisions=(decision,))

    assert run.questions()[0]["toolDescription"] == "Perform the calculation `100 multiply 50`?"
    assert run.results() == [result]


async def test_cancelling_one_calculation_cancels_all(tmp_path: Path) -> None:
    install(tmp_path, calculator, approvals)
    async with running_server(tmp_path) as server:
        run = await run_calls(server, product(1, 2), product(3, 4), decisions=({"kind": "cancelled"},))

    assert run.results() == ["The user cancelled the execution of the calculator tool"] * 2
    assert len(run.questions()) == 1


async def test_the_command_based_tools_run_their_commands(tmp_path: Path) -> None:
    install(tmp_path, commands)
    path = programs(tmp_path / "bin", docker='echo "docker $*"', make='echo "made $*"')
    async with running_server(tmp_path, env={"PATH": path}) as server:
        run = await run_calls(
            server,
            ("make_and_hello", {}),
            ("code_runner", {"lang": "python", "code": "print(1)"}),
            ("cmd_runner", {"cmd": "echo $((6 * 7))"}),
            decisions=(APPROVE, APPROVE, APPROVE),
        )

    made, ran, computed = run.results()
    assert made == (
        "$ make test\nmade test\n<exited with exit code 0>\n\n$ echo hello\nhello\n<exited with exit code 0>"
    )
    assert ran.split("\n")[1] == "docker pull python"
    folder, temp_input = ran.split("\n")[5].split(" ")[4].split(":")[0], ran.split("\n")[5].split(" ")[7]
    assert temp_input.startswith(folder)
    assert ran.split("\n")[5] == f"docker run --rm -v {folder}:{folder} python python {temp_input}"
    assert computed == "42\n<exited with exit code 0>"
    assert run.questions()[2]["fullCommandText"] == "sh -c 'echo $((6 * 7))'"


async def test_the_asynchronous_function_calls_back(tmp_path: Path) -> None:
    install(tmp_path, asynchronous)
    async with running_server(tmp_path) as server:
        run = await run_calls(server, ("asynchronous", {}), decisions=(APPROVE,))

    answer = {"method": "textDocument/definition", "line": 3}
    assert json.loads(run.results()[0]) == answer
    assert json.loads(run.data("user.message")[-1]["content"]) == answer


async def test_every_field_of_the_structure_is_used_and_handlers_are_called_once(tmp_path: Path) -> None:
    install(tmp_path, interface)
    async with running_server(tmp_path) as server:
        run = await run_calls(server, ("editor", {}), ("editor", {"n": 1}), decisions=None)

    (trace,) = run.notices()
    before = ["env", "setup", "requires_approval", "prompt_condition", "success:echo", "function"]
    first = before.index("function")
    assert trace.split(",")[: first + 1] == before
    assert (trace.count("setup"), trace.count("env")) == (1, 2)
    assert run.questions() == []


def test_add_tool_output_has_the_parameters_of_the_guide() -> None:
    # Line 381.
    assert list(inspect.signature(ChatView.add_tool_output).parameters) == ["self", "tool", "for_llm", "for_user"]
