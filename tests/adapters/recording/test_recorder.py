"""Servers that record model calls and replay them, as operators start them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_copilot import ALICE, fake_copilot
from tests.support.model_server import ModelServer, event_stream
from tests.support.provided import at, says, send_failing_prompt
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
    """Return the answers of the model in a session with one tool call."""
    wire = server.wire
    session = await wire.create(
        provider, model="m", tools=[{"name": "lookup", "description": "Look up", "skipPermission": True}]
    )
    await wire.call("session.send", {"sessionId": session, "prompt": prompt})
    request = await wire.event("external_tool.requested", session=session)
    await wire.call(
        "session.tools.handlePendingToolCall",
        {"sessionId": session, "requestId": request["data"]["requestId"], "result": "a letter"},
    )
    await wire.event("session.idle", session=session)
    return [event["data"]["content"] for event in wire.events(session) if event["type"] == "assistant.message"]


async def test_a_recorded_session_with_tools_replays_identically(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    online, offline = tmp_path / "one", tmp_path / "two"
    replies = (event_stream(calls_a_tool()), says("It is a letter."))
    async with (
        ModelServer(*replies) as provider,
        running_server(online, args=["--record", str(folder)]) as server,
    ):
        answer = await tool_loop(server, at(provider, apiKey=KEY, maxPromptTokens=100_000))
    assert answer == ["", "It is a letter."]
    assert len(list(folder.iterdir())) == 2
    assert KEY not in "".join(path.read_text() for path in folder.iterdir())

    nowhere = {"type": "openai", "baseUrl": "https://nowhere.invalid/v1", "apiKey": "none"}
    async with running_server(offline, env={"JUMPSEAT_REPLAY": str(folder)}) as server:
        assert await tool_loop(server, nowhere) == answer
        session = await server.wire.create(nowhere, model="m")
        complaint = await send_failing_prompt(server.wire, session)
    assert "offline, and no recording in 'recorded' is of this POST /v1/chat/completions" in complaint


async def test_values_registered_as_secret_are_in_no_recording(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    async with (
        ModelServer(says("the word is xyzzy-42")) as provider,
        running_server(tmp_path / "one", args=["--record", str(folder)]) as server,
    ):
        await server.wire.call("secrets.addFilterValues", {"values": ["xyzzy-42"]})
        session = await server.wire.create(at(provider, maxPromptTokens=100_000), model="m")
        await server.wire.prompt(session)
        await server.wire.event("session.idle", session=session)

    (path,) = folder.iterdir()
    assert "xyzzy-42" not in path.read_text()


@pytest.mark.parametrize("option", ["--record", "--replay"])
def test_an_unusable_folder_ends_the_start_with_one_line(tmp_path: Path, option: str) -> None:
    (tmp_path / "file").write_text("")
    process = subprocess.run(
        [sys.executable, "-m", "jumpseat", "--stdio", option, str(tmp_path / "file")],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={"HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
    )

    assert (process.returncode, process.stdout) == (1, "")
    assert process.stderr.startswith("error: cannot ")
    assert process.stderr.count("\n") == 1


def test_a_server_that_does_not_record_does_not_import_the_recorder() -> None:
    code = "import jumpseat.app, jumpseat.adapters.transport.http, sys; print(sorted(sys.modules))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    loaded = {
        name.rpartition(".")[2] for name in json.loads(process.stdout.replace("'", '"')) if "jumpseat." in name
    }
    assert not loaded & {"recorder", "recordings", "replayer", "masking"}


async def test_a_call_sent_by_a_client_is_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    nowhere = {"type": "openai", "baseUrl": "https://model.invalid/v1", "apiKey": KEY}
    async with running_server(tmp_path / "one", args=["--record", str(folder)]) as server:
        wire = server.wire
        await wire.call("llmInference.setProvider", {})
        session = await wire.create(nowhere, model="m")
        await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        start = await wire.until(lambda message: message.get("method") == "llmInference.httpRequestStart")
        await wire.answer(start, {})
        await wire.answer(
            await wire.until(lambda message: message.get("method") == "llmInference.httpRequestChunk"), {}
        )
        request_id = start["params"]["requestId"]
        head = {"requestId": request_id, "status": 200, "headers": {"content-type": ["application/json"]}}
        await wire.call("llmInference.httpResponseStart", head)
        body = json.dumps({"choices": [{"message": {"content": "by hand"}, "finish_reason": "stop"}]})
        await wire.call("llmInference.httpResponseChunk", {"requestId": request_id, "data": body, "end": True})
        await wire.event("session.idle", session=session)

    async with running_server(tmp_path / "two", args=["--replay", str(folder)]) as server:
        # Offline, requests do not go to a client that registered for them either.
        await server.wire.call("llmInference.setProvider", {})
        session = await server.wire.create(nowhere, model="m")
        await server.wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        answer = await server.wire.event("assistant.message", session=session)
    assert answer["data"]["content"] == "by hand"


async def test_an_account_and_its_models_are_replayed_and_its_tokens_are_not_recorded(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "recorded"
    answer: list[str] = []
    async with fake_copilot() as copilot:
        environ = {**copilot.environ, "COPILOT_GITHUB_TOKEN": ALICE}
        async with running_server(tmp_path / "one", env=environ, args=["--record", str(folder)]) as server:
            answer += await answers(server)
    stored = "".join(path.read_text() for path in folder.iterdir())
    assert ALICE not in stored
    async with running_server(tmp_path / "two", env=environ, args=["--replay", str(folder)]) as server:
        answer += await answers(server)
    assert len(answer) == 2
    assert answer[0] == answer[1]


async def answers(server: RunningServer) -> list[str]:
    session = (await server.wire.call("session.create", {}))["sessionId"]
    events = await server.wire.prompt(session)
    return [event["data"]["content"] for event in events if event["type"] == "assistant.message"]


async def test_an_abort_ends_the_recording_with_the_call(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    first = b'data: {"choices": [{"index": 0, "delta": {"content": "Well"}}]}\n\n'
    async with (
        ModelServer(event_stream(first, ending="hang")) as provider,
        running_server(tmp_path / "one", args=["--record", str(folder)]) as server,
    ):
        session = await server.wire.create(at(provider, maxPromptTokens=100_000), model="m", streaming=True)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        await server.wire.event("assistant.message_delta", session=session)
        await server.wire.call("session.abort", {"sessionId": session})
        await server.wire.event("session.idle", session=session)

    (path,) = folder.iterdir()
    *_, piece, end = map(json.loads, path.read_text().splitlines())
    assert (piece["text"], end["how"]) == (first.decode(), "closed")
