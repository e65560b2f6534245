"""Commands of the user over the real wire: streamed ones, ones that are waited for, and their end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.conversation.conversation import Conversation
from jumpseat_protocol.events import decode_payload
from tests.support.server import JsonObject, Wire, running_server, scripted

pytestmark = pytest.mark.anyio

ANSWERS = scripted({"text": "One"}, {"text": "Two"})


async def call(wire: Wire, session: str, method: str, **params: Any) -> Any:
    return await wire.call(f"session.shell.{method}", {"sessionId": session, **params})


async def output(wire: Wire, process: str, stream: str, text: str) -> None:
    """Wait until the output of a process so far contains ``text``."""

    def fits(_: JsonObject) -> bool:
        return text in text_of(wire, process, stream)

    await wire.until(fits, what=f"{text!r} in {stream}")


def text_of(wire: Wire, process: str, stream: str) -> str:
    sent = [message["params"] for message in wire.messages if message.get("method") == "shell.output"]
    return "".join(part["data"] for part in sent if (part["processId"], part["stream"]) == (process, stream))


async def exit_code(wire: Wire, process: str) -> int:
    def fits(message: JsonObject) -> bool:
        return message.get("method") == "shell.exit" and message["params"]["processId"] == process

    return (await wire.until(fits, what="shell.exit"))["params"]["exitCode"]


async def test_the_output_of_a_command_is_streamed_while_it_runs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    async with running_server(tmp_path) as server:
        session = await server.wire.create(ANSWERS, workingDirectory=str(tmp_path))
        command = "echo begun; read line < gate; echo $line; echo oops >&2; pwd; exit 3"
        process = (await call(server.wire, session, "exec", command=command))["processId"]
        await output(server.wire, process, "stdout", "begun\n")
        assert text_of(server.wire, process, "stderr") == ""
        (tmp_path / "gate").write_text("on we go\n")
        assert await exit_code(server.wire, process) == 3
        assert text_of(server.wire, process, "stdout") == f"begun\non we go\n{tmp_path}\n"
        assert text_of(server.wire, process, "stderr") == "oops\n"
        assert {event["type"] for event in server.wire.events(session)} <= {"session.start"}
        assert await call(server.wire, session, "kill", processId=process) == {"killed": False}


async def test_commands_end_by_signals_time_limits_and_with_their_session(tmp_path: Path) -> None:
    trap = "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.01; done"
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(ANSWERS)
        trapped = (await call(wire, session, "exec", command=trap))["processId"]
        await output(wire, trapped, "stdout", "ready")
        assert await call(wire, session, "kill", processId=trapped, signal="SIGINT") == {"killed": True}
        assert await exit_code(wire, trapped) == 7
        limited = (await call(wire, session, "exec", command="sleep 100 & sleep 100", timeout=1))["processId"]
        assert await exit_code(wire, limited) == 1
        unlimited = (await call(wire, session, "exec", command="sleep 0.1; echo over", timeout=0))["processId"]
        assert await exit_code(wire, unlimited) == 0
        early = (await call(wire, session, "exec", command="sleep 100"))["processId"]
        assert await call(wire, session, "kill", processId=early) == {"killed": True}
        assert await exit_code(wire, early) == 1
        left = (await call(wire, session, "exec", command="sleep 100 & echo started"))["processId"]
        assert await exit_code(wire, left) == 0
        last = (await call(wire, session, "exec", command="echo up; sleep 100"))["processId"]
        await output(wire, last, "stdout", "up")
        await wire.call("session.destroy", {"sessionId": session})
        await wire.call("session.delete", {"sessionId": session})
        assert await exit_code(wire, last) == 1


async def test_a_command_gets_no_keys_and_its_output_shows_no_registered_secret(tmp_path: Path) -> None:
    async with running_server(tmp_path, env={"OPENAI_API_KEY": "sk-of-the-server"}) as server:
        session = await server.wire.create(ANSWERS)
        await server.wire.call("secrets.addFilterValues", {"values": ["hunter2hunter2"]})
        command = "printf hunter2; printf hunter2; echo; echo key=$OPENAI_API_KEY"
        process = (await call(server.wire, session, "exec", command=command))["processId"]
        assert await exit_code(server.wire, process) == 0
        assert text_of(server.wire, process, "stdout") == "[redacted]\nkey=\n"


async def test_bad_commands_are_reported_or_refused(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(ANSWERS)
        process = (await call(server.wire, session, "exec", command="true", cwd="/nowhere/at/all"))["processId"]
        assert await exit_code(server.wire, process) == 1
        assert text_of(server.wire, process, "stderr") != ""
        empty = (await call(server.wire, session, "exec", command=""))["processId"]
        assert await exit_code(server.wire, empty) == 0
        bad: list[tuple[str, dict[str, Any]]] = [
            ("exec", {}),
            ("exec", {"command": "true", "timeout": -1}),
            ("kill", {"processId": process, "signal": "SIGSTOP"}),
            ("executeUserRequested", {"command": "true"}),
        ]
        for method, params in bad:
            error = await server.wire.error_of(f"session.shell.{method}", {"sessionId": session, **params})
            assert error["code"] == -32602, method


async def test_the_model_learns_the_command_that_the_user_has_run(tmp_path: Path) -> None:
    script = scripted({"text": "First"}, {"text": "{{last_user}}", "expect": {"user": "next"}})
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(script, workingDirectory=str(tmp_path))
        await wire.prompt(session)
        since = len(wire.messages)
        done = await call(wire, session, "executeUserRequested", requestId="1", command="echo one; echo two >&2")
        assert (done["success"], done["output"], done["exitCode"]) == (True, "one\ntwo", 0)
        failed = await call(wire, session, "executeUserRequested", requestId="1", command="exit 4")
        assert (failed["success"], failed["output"], failed["exitCode"]) == (False, "", 4)
        kinds = [event["type"] for event in wire.events(session, since=since)]
        assert kinds.count("tool.user_requested") == kinds.count("tool.execution_complete") == 2
        assert "session.idle" not in kinds
        complete = await wire.event("tool.execution_complete", since=since, isUserRequested=True)
        assert complete["data"]["result"]["content"] == "one\ntwo"
        await wire.prompt(session, "next")
    conversation = Conversation()
    for line in server.log_of(session).read_text().splitlines():
        event = json.loads(line)
        conversation.apply(decode_payload(event["type"], event["data"]))
    prompts = [message for message in conversation.messages() if isinstance(message, UserMessage)]
    texts = [block.text for prompt in prompts for block in prompt.blocks if isinstance(block, TextBlock)]
    assert [text.splitlines()[1] for text in texts if text.startswith("<user_shell_command_output>")] == [
        "The user has run a shell command (exit code 0).",
        "The user has run a shell command (exit code 4).",
    ]
    assert "next" in texts[-1]


async def test_a_command_that_is_waited_for_can_be_cancelled(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(ANSWERS)
        assert await call(wire, session, "cancelUserRequested", requestId="7") == {"cancelled": False}
        params = {"sessionId": session, "requestId": "7", "command": "echo begun; sleep 100"}
        waiting = await wire.ask("session.shell.executeUserRequested", params)
        await wire.event("tool.execution_partial_result", partialOutput="begun\n")
        error = await wire.error_of("session.shell.executeUserRequested", params)
        assert "still active" in error["message"]
        assert await call(wire, session, "cancelUserRequested", requestId="7") == {"cancelled": True}
        result = (await wire.response(waiting))["result"]
        assert (result["success"], result["output"], "exitCode" in result) == (False, "begun", False)
        assert (await wire.event("tool.execution_complete"))["data"]["success"] is False


async def test_a_session_that_requires_the_sandbox_confines_commands_of_the_user(tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    async with running_server(tmp_path) as server:
        folder = tmp_path / "work"
        folder.mkdir()
        session = await server.wire.create(ANSWERS, workingDirectory=str(folder), sandboxConfig={"enabled": True})
        process = (await call(server.wire, session, "exec", command=f"touch inside {outside}"))["processId"]
        await exit_code(server.wire, process)
        await call(server.wire, session, "executeUserRequested", requestId="1", command=f"touch second {outside}")
    # Without a mechanism that works, nothing runs at all.
    assert {path.name for path in folder.iterdir()} in ({"inside", "second"}, set())
    assert not outside.exists()
