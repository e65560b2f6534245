"""Clearing over the wire: seldom, for many results at once, and the same after a resume."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import anyio
import pytest

from tests.support.events import data_of
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply
from tests.support.provided import at
from tests.support.server import JsonObject, running_server

pytestmark = pytest.mark.anyio

CONFIG = '[permissions]\nallow_unasked = true\n[sandbox]\nmode = "off"\n'
STEPS = 20


def answer(request: SeenRequest) -> Reply:
    """View a file and run commands in turns, with results of about 600 tokens, and then say that it is done."""
    body: JsonObject = request.json
    made = sum(message["role"] == "tool" for message in body["messages"])
    message: JsonObject = {"role": "assistant", "content": "done"}
    if made < STEPS:
        name, arguments = "view", {"path": "big.txt"}
        if made % 2:
            name, arguments = (
                "bash",
                {"command": f"for n in $(seq 100); do echo {made:02} $n bottles of beer; done"},
            )
        function = {"name": name, "arguments": json.dumps(arguments)}
        message = {
            "role": "assistant",
            "tool_calls": [{"id": f"call-{made}", "type": "function", "function": function}],
        }
    finish = "tool_calls" if "tool_calls" in message else "stop"
    usage = {"prompt_tokens": len(request.body) // 4, "completion_tokens": 9, "total_tokens": 0}
    return json_reply({"choices": [{"message": message, "finish_reason": finish}], "usage": usage})


def prompts_of(model: ModelServer) -> list[list[str]]:
    """Return the tools and the messages of each request."""
    return [
        [json.dumps(request.json["tools"]), *map(json.dumps, request.json["messages"])]
        for request in model.requests
    ]


async def test_results_are_cleared_many_at_once_and_requests_only_grow_in_between(tmp_path: Path) -> None:
    await anyio.Path(tmp_path / "big.txt").write_text("".join(f"line {n} of a file\n" for n in range(130)))
    options: JsonObject = {"model": "m", "availableTools": ["view", "bash"]}
    async with ModelServer(answer=answer) as model:
        provider = at(model, maxPromptTokens=8_000)
        async with running_server(tmp_path, config=CONFIG) as server:
            session = await server.wire.create(provider, **options)
            told = await server.wire.prompt(session, "work")
        before = len(model.requests)
        async with running_server(tmp_path, config=CONFIG) as server:
            resumed = {"sessionId": session, "provider": provider, **options}
            await server.wire.call("session.resume", resumed)
            await server.wire.prompt(session, "go on")

    cleared = data_of(told, "session.truncation")
    assert data_of(told, "session.compaction_start") == data_of(told, "session.warning") == []
    sent = prompts_of(model)
    rewritten = [number for number, (a, b) in enumerate(pairwise(sent)) if a != b[: len(a)]]
    assert len(rewritten) == len(cleared) > 0
    # The first request after the resume repeats the last one before.
    assert sent[before][: len(sent[before - 1])] == sent[before - 1]
    notes = [note for event in cleared for note in event["clearedResults"].values()]
    assert len(notes) > 3 * len(cleared)
    for note in notes:
        if note.startswith("[Cleared: bash"):
            # What a command printed is in a file; the file of a view can be viewed again.
            saved = anyio.Path(note.rpartition("saved as ")[2].removesuffix("]"))
            assert "99 bottles of beer" in await saved.read_text()
        else:
            assert note.startswith("[Cleared: view big.txt")


async def test_nothing_is_cleared_without_automatic_compaction(tmp_path: Path) -> None:
    await anyio.Path(tmp_path / "big.txt").write_text("".join(f"line {n} of a file\n" for n in range(130)))
    async with ModelServer(answer=answer) as model, running_server(tmp_path, config=CONFIG) as server:
        session = await server.wire.create(
            at(model, maxPromptTokens=8_000),
            model="m",
            availableTools=["view", "bash"],
            infiniteSessions={"enabled": False},
        )
        assert data_of(await server.wire.prompt(session, "work"), "session.truncation") == []


@pytest.mark.parametrize("configured", [False, True])
async def test_calls_that_fill_a_large_window_are_summarized_early(tmp_path: Path, configured: bool) -> None:
    """Results of a few tokens are never cleared; 300 calls with long paths take some 15,000 tokens."""
    await anyio.Path(tmp_path / "small.txt").write_text("a line\n")

    def work(request: SeenRequest) -> Reply:
        body: JsonObject = request.json
        if "create a detailed summary" in str(body["messages"][-1]["content"]):
            return json_reply({"choices": [{"message": {"content": "<overview>done</overview>"}}]})
        made = sum(len(message.get("tool_calls") or ()) for message in body["messages"])
        if made >= 300:
            return json_reply({"choices": [{"message": {"content": "done"}, "finish_reason": "stop"}]})
        function = {"name": "view", "arguments": json.dumps({"path": f"{'./' * 90}small.txt"})}
        calls = [{"id": f"c{made + n}", "type": "function", "function": function} for n in range(50)]
        message = {"role": "assistant", "tool_calls": calls}
        return json_reply({"choices": [{"message": message, "finish_reason": "tool_calls"}]})

    config = f"{CONFIG}[compaction]\nbackground_threshold = 0.9\n" if configured else CONFIG
    async with ModelServer(answer=work) as model, running_server(tmp_path, config=config) as server:
        session = await server.wire.create(at(model, maxPromptTokens=32_000), model="m", availableTools=["view"])
        told = await server.wire.prompt(session, "work")
        told += await server.wire.prompt(session, "go on")
    assert bool(data_of(told, "session.compaction_start")) is not configured
