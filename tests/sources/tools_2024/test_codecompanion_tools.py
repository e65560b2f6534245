"""Run the samples of "codecompanion-tools.txt" of November 2024 on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sources.running import Run, install, programs, run_calls
from tests.sources.tools_2024 import code_runner, hello, interface
from tests.support.model_server import ModelServer
from tests.support.server import JsonObject, running_server, scripted

pytestmark = pytest.mark.anyio

APPROVE = {"kind": "approve-once"}

EXAMPLE = """```xml
<tool>
  <name>code_runner</name>
  <parameters>
    <inputs>
      <lang>python</lang>
      <code>print('Hello World')</code>
    </inputs>
  </parameters>
</tool>
```"""


async def test_the_code_runner_runs_code_as_the_model_asks(tmp_path: Path) -> None:
    install(tmp_path, code_runner)
    path = programs(tmp_path / "bin", docker='echo "docker $*"')
    async with running_server(tmp_path, env={"PATH": path}) as server:
        call = ("code_runner", {"inputs": {"lang": "python", "code": "print(1)"}})
        run = await run_calls(server, call, decisions=(APPROVE,))

    pulled, ran = (part.split("\n")[1] for part in run.results()[0].split("\n\n"))
    assert pulled == "docker pull python"
    folder = ran.split(" ")[4].split(":")[0]
    assert ran.startswith(f"docker run --rm -v {folder}:{folder} python python {folder}")


async def test_the_code_runner_runs_a_call_written_as_xml(tmp_path: Path) -> None:
    install(tmp_path, code_runner)
    path = programs(tmp_path / "bin", docker='echo "docker $*"')
    provider = {**scripted({"text": f"I run it.\n\n{EXAMPLE}"}, {"text": "done"}), "toolProtocol": "xml"}
    async with running_server(tmp_path, env={"PATH": path}) as server:
        session = await server.wire.create(provider)
        await server.wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        run = Run(session, await server.wire.prompt(session))

    assert "docker pull python" in run.results()[0]


async def test_the_code_runner_is_explained_by_an_example_in_xml(tmp_path: Path) -> None:
    install(tmp_path, code_runner)
    async with ModelServer() as model, running_server(tmp_path) as server:
        session = await server.wire.create(
            {"type": "openai", "baseUrl": f"{model.url}/v1", "apiKey": "k"}, model="m"
        )
        params = {"sessionId": session, "prompt": "hi"}
        body = (await server.wire.call("jumpseat.session.nextRequest", params))["body"]

    assert EXAMPLE in body["messages"][0]["content"]


async def test_a_function_gets_the_output_of_the_one_before(tmp_path: Path) -> None:
    install(tmp_path, hello)
    async with running_server(tmp_path) as server:
        run = await run_calls(server, ("hello", {}), decisions=(APPROVE,))
        await server.wire.call("session.destroy", {"sessionId": run.session})

    assert run.data("tool.execution_complete")[0]["success"]
    assert "Hello, World" in server.stderr


def commands(*lines: str) -> tuple[str, JsonObject]:
    return "cmd_runner", {"action": {"commands": list(lines)}}


def messages(events: list[JsonObject]) -> list[str]:
    """Return what the tool has added to the conversation."""
    return [event["content"] for event in events[1:]]


async def test_handlers_get_the_tools_object_the_command_and_flat_output(tmp_path: Path) -> None:
    install(tmp_path, interface)
    async with running_server(tmp_path) as server:
        run = await run_calls(
            server, commands("printf one\\ntwo\\n", "rm -r /nowhere", "ls /nowhere"), decisions=(APPROVE, APPROVE)
        )

    succeeded, refused, failed = messages(run.data("user.message"))
    assert succeeded == r"The output from ['printf', 'one\\ntwo\\n']: ['one', 'two']"
    assert refused == "I chose not to run ['rm', '-r', '/nowhere']"
    assert failed.startswith("There was an error from ['ls', '/nowhere']: [")
    assert run.notices() == ["cmd_runner is done"]
    assert [question["fullCommandText"] for question in run.questions()] == [r"printf 'one\ntwo\n'", "ls /nowhere"]


async def test_the_model_reads_an_output_that_is_added_as_a_message_once(tmp_path: Path) -> None:
    install(tmp_path, interface)
    async with running_server(tmp_path) as server:
        run = await run_calls(server, commands("echo one", "echo two"), decisions=None)

    assert run.results() == ["The tool `cmd_runner` ran. Its output is in a message."]
    (shown,) = (done["result"]["detailedContent"] for done in run.data("tool.execution_complete"))
    assert "one" in shown
    assert "The output from ['echo', 'two']: ['two']" in messages(run.data("user.message"))


@pytest.mark.parametrize(
    ("veto", "asked", "ran", "model_goes_on"),
    [
        ({"kind": "reject", "feedback": "not that"}, 3, ["one", "three"], True),
        ({"kind": "reject"}, 2, ["one"], False),
        ({"kind": "cancelled"}, 2, ["one"], True),
    ],
)
async def test_the_user_is_asked_before_each_command_and_a_veto_is_no_success(
    tmp_path: Path, veto: JsonObject, asked: int, ran: list[str], model_goes_on: bool
) -> None:
    install(tmp_path, interface)
    decisions = (APPROVE, veto, APPROVE)[:asked]
    async with running_server(tmp_path) as server:
        run = await run_calls(server, commands("echo one", "echo two", "echo three"), decisions=decisions)

    (completion,) = run.data("tool.execution_complete")
    assert not completion["success"]
    result = completion["result"]["content"]
    assert [word for word in ("one", "two", "three") if f"\n{word}\n<exited" in f"\n{result}"] == ran
    assert "$ echo two\n" in result
    assert [question["fullCommandText"] for question in run.questions()][1] == "echo two"
    assert bool(run.data("assistant.message")[-1]["content"] == "done") is model_goes_on
