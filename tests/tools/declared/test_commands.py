"""Command tools: the processes that run, their values and their results."""

# These tests call functions of tools with arbitrary signatures.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol import events
from jumpseat_protocol.permissions import ShellPermission
from jumpseat_protocol.sessions import LargeOutputConfig
from tests.support.limits import WAIT_S
from tests.support.server import wait_until_gone
from tests.tools.declared.runs import completed, results, session_of

pytestmark = pytest.mark.anyio

TEXT = {"text": {"type": "string"}}
HOSTILE = "'\"; echo gone $(echo wrong) `echo wrong` \\ ${PATH} && exit 7 #"


async def result_of_call(tasks: TaskGroup, tool: dict[str, Any], cwd: Path = Path("/"), **args: Any) -> str:
    made = session_of(tasks, {"t": tool}, ("t", args), cwd=cwd)
    await made.ask("go")
    (text,) = results(made)
    return text


async def test_the_result_has_both_streams_and_the_exit_code(tasks: TaskGroup) -> None:
    tool = {"cmds": ["echo out; echo err >&2; exit 3"]}

    assert await result_of_call(tasks, tool) == "out\n<stderr>\nerr\n</stderr>\n<exited with exit code 3>"


async def test_several_commands_run_one_after_the_other_until_one_fails(tasks: TaskGroup) -> None:
    tool = {"cmds": [["echo", "one"], "echo two; false", ["echo", "three"]]}

    assert await result_of_call(tasks, tool) == (
        "$ echo one\none\n<exited with exit code 0>\n\n$ echo two; false\ntwo\n<exited with exit code 1>"
    )


async def test_escape_sequences_are_removed(tasks: TaskGroup) -> None:
    assert await result_of_call(tasks, {"cmds": [["printf", "\\033[31mred\\033[0m\\033]0;t\\007"]]}) == (
        "red\n<exited with exit code 0>"
    )


async def test_a_program_that_does_not_exist_is_a_failure_the_model_can_read(tasks: TaskGroup) -> None:
    text = await result_of_call(tasks, {"cmds": [["no-such-program"]]})

    assert "The command could not be started: No such file or directory (no-such-program)." in text


@pytest.mark.parametrize(
    "cmd",
    [
        ["printf", "%s", "${text}"],
        ["printf", "%s", "${args.text}"],
        'printf %s "${text}"',
        'printf %s "${args.text}"',
        {"cmd": ["cat"], "stdin": "${text}"},
        {"cmd": "cat", "stdin": "${args.text}"},
    ],
)
async def test_no_value_can_become_a_command(tasks: TaskGroup, cmd: Any) -> None:
    tool = {"cmds": [cmd], "parameters": TEXT}

    assert await result_of_call(tasks, tool, text=HOSTILE) == f"{HOSTILE}\n<exited with exit code 0>"


async def test_an_array_becomes_several_words_and_a_missing_argument_none(tasks: TaskGroup) -> None:
    parameters = {
        "names": {"type": "array", "items": {"type": "string"}},
        "flag": {"type": "string", "optional": True},
    }
    tool = {"cmds": [["printf", "[%s]", "${flag}", "${names}", "${count}"]], "parameters": parameters}

    assert await result_of_call(tasks, tool | {"env": {"count": 2}}, names=["a b", "c"]) == (
        "[a b][c][2]\n<exited with exit code 0>"
    )


async def test_env_resolves_values_in_the_forms_of_adapters(tasks: TaskGroup, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from a file\n")
    env = {
        "command": "cmd:echo from a command",
        "file": f"file:{tmp_path / 'file'}",
        "path": "args.text",
        "text": "plain",
    }
    tool = {"cmds": [["printf", "%s|%s|%s|%s", "${command}", "${file}", "${path}", "${text}"]], "env": env}

    assert await result_of_call(tasks, tool | {"parameters": TEXT}, text="cmd:echo no") == (
        "from a command|from a file|cmd:echo no|plain\n<exited with exit code 0>"
    )


async def test_a_missing_value_fails_the_call_and_is_named(tasks: TaskGroup) -> None:
    text = await result_of_call(tasks, {"cmds": [["echo", "${key}"]], "env": {"key": "NO_SUCH_KEY"}})

    assert "${key} has no value: the environment variable NO_SUCH_KEY is not set" in text


async def test_secrets_of_env_are_masked(tasks: TaskGroup) -> None:
    tool = {"cmds": [["echo", "${api_key}"]], "env": {"api_key": "cmd:echo sword-of-fish"}}
    made = session_of(tasks, {"t": tool}, ("t", {}), approve_all=False)
    made.send("go")
    request = await made.client.wait_for(events.PermissionRequested)
    made.decide(request, {"kind": "approve-once"})
    await made.idle()

    assert isinstance(request.permission_request, ShellPermission)
    assert request.permission_request.full_command_text == "echo [redacted]"
    assert results(made) == ["[redacted]\n<exited with exit code 0>"]


async def test_commands_run_in_the_directory_of_the_session_or_tool(tasks: TaskGroup, tmp_path: Path) -> None:
    (tmp_path / "inner" / "most").mkdir(parents=True)

    assert (await result_of_call(tasks, {"cmds": [["pwd"]]}, cwd=tmp_path)).startswith(f"{tmp_path}\n")
    tool = {"cmds": [["pwd"], {"cmd": ["pwd"], "cwd": "most"}], "cwd": "inner"}
    text = await result_of_call(tasks, tool, cwd=tmp_path)
    assert f"\n{tmp_path}/inner\n" in text
    assert f"\n{tmp_path}/inner/most\n" in text


async def test_flags_record_whether_their_command_succeeded(tasks: TaskGroup) -> None:
    flags: list[Any] = []

    def look(tools: Any, args: Any) -> None:
        flags.append(dict(tools.flags))

    tools = {
        "test": {"cmds": [{"cmd": ["false"], "flag": "testing"}]},
        "look": {"cmds": [look]},
    }
    made = session_of(tasks, tools, ("test", {}), ("look", {}))
    await made.ask("go")

    assert flags == [{"testing": False}]


@pytest.mark.parametrize("limit", [lambda s: {"timeout_s": s}, lambda s: {"opts": {"timeout": 1000 * s}}])
async def test_a_command_that_times_out_ends_with_all_its_processes(
    tasks: TaskGroup, tmp_path: Path, limit: Callable[[float], dict[str, Any]]
) -> None:
    pid = tmp_path / "pid"
    command = f"echo begun; sleep 60 & echo $! > {pid}; wait"
    # A busy machine may not have begun the command before its end.
    for seconds in (0.3, 3, 30):
        text = await result_of_call(tasks, {"cmds": [command], **limit(seconds)})
        assert f"<timed out after {seconds} s>\n<exited with exit code 124>" in text
        if pid.exists() and pid.read_text():
            break

    assert "begun\n" in text
    await wait_until_gone(int(pid.read_text()))


async def test_an_abort_ends_the_command_with_all_its_processes(tasks: TaskGroup, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    os.mkfifo(pid)
    tool = {"cmds": [f"sleep 60 & echo $! > {pid}; wait"]}
    made = session_of(tasks, {"t": tool}, ("t", {}))
    made.send("go")
    child = int(await anyio.Path(pid).read_text())
    await made.session.abort("user_initiated")

    await wait_until_gone(child)


async def test_background_processes_end_with_the_command(tasks: TaskGroup, tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    await result_of_call(tasks, {"cmds": [f"sleep 60 >/dev/null 2>&1 & echo $! > {pid}"]})

    await wait_until_gone(int(pid.read_text()))


async def test_output_is_shown_while_a_command_runs(tasks: TaskGroup, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    made = session_of(tasks, {"t": {"cmds": [f"echo first; cat {tmp_path / 'go'}"]}}, ("t", {}))
    prompt = made.send("go")
    shown = await made.client.wait_for(events.ToolExecutionPartialResult)
    await anyio.Path(tmp_path / "go").write_text("second\n")
    await prompt.run.done.wait()

    assert shown.partial_output == "first"
    assert results(made) == ["first\nsecond\n<exited with exit code 0>"]


async def test_a_large_output_goes_to_a_file(tasks: TaskGroup, tmp_path: Path) -> None:
    settings = SessionSettings.of(tmp_path, large_output=LargeOutputConfig(max_size_bytes=1000))
    made = session_of(tasks, {"t": {"cmds": ["yes | head -c 5000"]}}, ("t", {}), settings=settings)
    await made.ask("go")

    assert results(made)[0].startswith("Output too large to read at once")


async def test_a_command_that_does_not_read_its_input_succeeds(tasks: TaskGroup) -> None:
    tool = {"cmds": [{"cmd": ["true"], "stdin": "x" * 1_000_000}]}

    assert await result_of_call(tasks, tool) == "<exited with exit code 0>"


async def test_commands_made_by_setup_are_not_substituted(tasks: TaskGroup) -> None:
    def setup(self: Any) -> None:
        self.cmds = [["echo", self.args["text"], "${api_key}"]]

    tool = {"handlers": {"setup": setup}, "env": {"api_key": "a-secret"}, "parameters": TEXT}

    assert await result_of_call(tasks, tool, text="hi") == "hi ${api_key}\n<exited with exit code 0>"


async def test_build_cmd_makes_the_command_from_the_arguments(tasks: TaskGroup) -> None:
    tool = {
        "extends": "cmd_tool",
        "name": "t",
        "description": "Say it",
        "schema": {"properties": {"text": {"type": "string"}}, "required": ["text"]},
        "build_cmd": lambda args: ["echo", args["text"]],
    }

    assert await result_of_call(tasks, tool, text="hi") == "hi\n<exited with exit code 0>"


@pytest.mark.parametrize("parallel", [False, True])
async def test_calls_run_one_after_the_other_unless_the_tool_is_parallel(tasks: TaskGroup, parallel: bool) -> None:
    started: list[str] = []

    async def note(args: Any) -> str:
        started.append(args["mine"])
        if parallel:
            while len(started) < 2:
                await anyio.lowlevel.checkpoint()
        else:
            await anyio.lowlevel.checkpoint()
            started.append(f"end of {args['mine']}")
        return "ok"

    tool = {"cmds": [note], "opts": {"parallel": parallel}, "parameters": {"mine": {"type": "string"}}}
    made = session_of(tasks, {"t": tool}, ("t", {"mine": "a"}), ("t", {"mine": "b"}))
    with anyio.fail_after(WAIT_S):
        await made.ask("go")

    if parallel:
        # Either may be first.
        assert sorted(started) == ["a", "b"]
    else:
        assert started == ["a", "end of a", "b", "end of b"]
    assert [completion.success for completion in completed(made)] == [True, True]


async def test_an_unresolvable_reference_in_parameters_ends_the_call_and_fetches_nothing(tasks: TaskGroup) -> None:
    parameters = {"text": {"$ref": "http://127.0.0.1:1/schema"}}

    assert (
        "cannot be run: its parameters are not a usable schema: unresolvable reference in the schema"
        in await result_of_call(tasks, {"cmds": [["true"]], "parameters": parameters}, text="x")
    )
