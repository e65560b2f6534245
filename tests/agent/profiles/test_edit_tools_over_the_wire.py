"""The tools for edits of a client's own models, and what models are told about their names, over the real wire."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer, Reply, event_stream
from tests.support.server import JsonObject, Wire, running_server

pytestmark = pytest.mark.anyio


def answers(delta: JsonObject) -> Reply:
    """Return a streamed chat completion of one piece."""
    reason = "tool_calls" if "tool_calls" in delta else "stop"
    chunks: list[JsonObject] = [
        {"choices": [{"index": 0, "delta": delta}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    ]
    return event_stream(*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n")


def looks_at(call_id: str, path: Path) -> Reply:
    return calls(call_id, "ReadFile", {"filePath": str(path)})


def calls(call_id: str, name: str, arguments: JsonObject) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return answers({"tool_calls": [{"index": 0, "id": call_id, "type": "function", "function": function}]})


async def run_prompt(wire: Wire, session: str) -> None:
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "go"})
    await wire.event("session.idle", session=session, since=since)


async def test_a_client_says_what_its_own_models_edit_with(tmp_path: Path) -> None:
    wanted: dict[str, tuple[JsonObject, set[str]]] = {
        "our-coder": ({"editTools": "apply_patch"}, {"apply_patch"}),
        "gpt-5": ({"editTools": "edit"}, {"edit", "create"}),
        "coder": ({}, {"edit", "create"}),
    }
    async with ModelServer(*[answers({"content": "ok"})] * 5) as model, running_server(tmp_path) as ours:
        for name, (settings, _) in wanted.items():
            provider = {"baseUrl": model.url, **settings}
            created = await ours.wire.call("session.create", {"model": name, "provider": provider})
            await run_prompt(ours.wire, created["sessionId"])
        named: JsonObject = {
            "providers": [{"name": "own", "baseUrl": model.url, "editTools": "apply_patch"}],
            "models": [{"id": "a", "provider": "own"}, {"id": "b", "provider": "own", "editTools": "edit"}],
        }
        for name in ("own/a", "own/b"):
            created = await ours.wire.call("session.create", {"model": name, **named})
            await run_prompt(ours.wire, created["sessionId"])
    offered = [
        {tool["function"]["name"] for tool in request.json["tools"]} & {"edit", "create", "apply_patch"}
        for request in model.requests
    ]
    assert offered == [*(tools for _, tools in wanted.values()), {"apply_patch"}, {"edit", "create"}]


async def test_names_are_told_once_even_if_the_session_is_resumed(tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    seen.write_text("text\n")
    done = answers({"content": "ok"})
    async with ModelServer(looks_at("1", seen), looks_at("2", seen), done, looks_at("3", seen), done) as model:
        provider = {"provider": {"baseUrl": model.url}, "model": "m", "requestPermission": False}
        async with running_server(tmp_path) as ours:
            await ours.wire.call("session.create", {"sessionId": "kept", **provider})
            await run_prompt(ours.wire, "kept")
        async with running_server(tmp_path) as ours:
            await ours.wire.call("session.resume", {"sessionId": "kept", **provider})
            await run_prompt(ours.wire, "kept")
    last = model.requests[-1].json["messages"]
    results = [message["content"] for message in last if message["role"] == "tool"]
    told = ["This tool is called `view`, not `ReadFile`" in str(result) for result in results]
    assert told == [True, False, False]


async def test_a_result_names_the_arguments_that_had_no_effect(tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    seen.write_text("text\n")
    path: JsonObject = {"path": str(seen)}
    given: list[tuple[str, JsonObject, str | None]] = [
        ("view", {**path, "encoding": "utf-16", "max_depth": 2, "explanation": "why"}, "`encoding`, `max_depth`"),
        ("Read", {**path, "encoding": "utf-16"}, "`encoding`"),
        ("view", {"path": str(tmp_path / "none"), "encoding": "utf-16"}, "`encoding`"),
        ("view", {**path, "encoding": None, "explanation": "why"}, None),
        ("edit", {**path, "old_str": "", "new_str": "more\n", "insert_line": 0}, None),
        ("grep", {"pattern": "x", "path": str(seen), "ignore_case": True}, None),
        ("sql", {"query": "SELECT 1", "database": "session", "limit": 3}, "`limit`"),
    ]
    replies = [calls(str(index), name, arguments) for index, (name, arguments, _) in enumerate(given)]
    async with ModelServer(*replies, answers({"content": "ok"})) as model, running_server(tmp_path) as ours:
        session: JsonObject = {"provider": {"baseUrl": model.url}, "model": "m", "requestPermission": False}
        created = await ours.wire.call("session.create", {**session, "workingDirectory": str(tmp_path)})
        await run_prompt(ours.wire, created["sessionId"])
    results = [message["content"] for message in model.requests[-1].json["messages"] if message["role"] == "tool"]
    for (name, _, ignored), result in zip(given, results, strict=True):
        assert ("[Ignored" in result) == (ignored is not None), (name, result)
        assert ignored is None or f"has no such argument: {ignored}]" in result
