"""A server that records what its sessions call, and one that answers from it: as operators start them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_server import ModelServer, event_stream
from tests.support.provided import at, failed, says
from tests.support.server import RunningServer, running_server

pytestmark = pytest.mark.anyio

KEY = "sk-key-of-the-session-1234"


def calls_a_tool() -> bytes:
    call = {"index": 0, "id": "call_1", "function": {"name": "lookup", "arguments": '{"word": "ü"}'}}
    chunks: list[Any] = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    return b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"


async def tool_loop(server: RunningServer, provider: dict[str, Any], prompt: str = "What is ü?") -> list[str]:
    """What the model says in a session with one tool, the prompt's answer last."""
    wire = server.wire
    session = await wire.create(
        provider, model="m", tools=[{"name": "lookup", "description": "Look up", "skipPermission": True}]
    )
    await wire.call("session.send", {"sessionId": session, "prompt": prompt})
    asked = await wire.event("external_tool.requested", session=session)
    await wire.call(
        "session.tools.handlePendingToolCall",
        {"sessionId": session, "requestId": asked["data"]["requestId"], "result": "a letter"},
    )
    await wire.event("session.idle", session=session)
    return [one["data"]["content"] for one in wire.events(session) if one["type"] == "assistant.message"]


async def test_a_session_with_tools_is_recorded_and_goes_the_same_way_offline(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    online, offline = tmp_path / "one", tmp_path / "two"
    replies = (event_stream(calls_a_tool()), says("It is a letter."))
    async with (
        ModelServer(*replies) as provider,
        running_server(online, args=["--record", str(folder)]) as server,
    ):
        said = await tool_loop(server, at(provider, apiKey=KEY))
    assert said == ["", "It is a letter."]
    assert len(list(folder.iterdir())) == 2
    assert KEY not in "".join(path.read_text() for path in folder.iterdir())

    nowhere = {"type": "openai", "baseUrl": "https://nowhere.invalid/v1", "apiKey": "none"}
    async with running_server(offline, env={"JUMPSEAT_REPLAY": str(folder)}) as server:
        assert await tool_loop(server, nowhere) == said
        session = await server.wire.create(nowhere, model="m")
        complaint = await failed(server.wire, session)
    assert "offline, and no recording in 'recorded' is of this POST /v1/chat/completions" in complaint


async def test_what_a_client_registers_as_secret_is_in_no_recording(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    async with (
        ModelServer(says("the word is xyzzy-42")) as provider,
        running_server(tmp_path / "one", args=["--record", str(folder)]) as server,
    ):
        await server.wire.call("secrets.addFilterValues", {"values": ["xyzzy-42"]})
        session = await server.wire.create(at(provider), model="m")
        await server.wire.prompt(session)
        await server.wire.event("session.idle", session=session)

    (path,) = folder.iterdir()
    assert "xyzzy-42" not in path.read_text()


@pytest.mark.parametrize("option", ["--record", "--replay"])
def test_a_folder_that_is_no_good_ends_the_start_with_one_line(tmp_path: Path, option: str) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "jumpseat", "--stdio", option, str(tmp_path / "file")],
        check=False,
        capture_output=True,
        text=True,
        timeout=20,
        env={"HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: cannot ")
    assert done.stderr.count("\n") == 1


def test_a_server_that_does_not_record_loads_nothing_for_it() -> None:
    code = "import jumpseat.app, jumpseat.adapters.http, sys; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    loaded = {name.rpartition(".")[2] for name in json.loads(done.stdout.replace("'", '"')) if "jumpseat." in name}
    assert not loaded & {"recorder", "recordings", "replayer", "masking"}
