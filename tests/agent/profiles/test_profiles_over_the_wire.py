"""The tools of a session follow its model, and so does the form of earlier calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_server import ModelServer, Reply, event_stream
from tests.support.server import running_server

pytestmark = pytest.mark.anyio

PATCH = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch\n"
FREE_FORM = {"type": "custom_tool_call", "id": "i", "call_id": "c1", "name": "apply_patch", "input": PATCH}


def answer(*items: dict[str, Any]) -> Reply:
    """Return a streamed answer of the Responses API."""
    done = [
        {"type": "response.output_item.done", "output_index": index, "item": {**item, "status": "completed"}}
        for index, item in enumerate(items)
    ]
    response = {"id": "r", "status": "completed", "model": "m", "output": [event["item"] for event in done]}
    events = [*done, {"type": "response.completed", "response": response}]
    return event_stream(*(f"data: {json.dumps(event)}\n\n".encode() for event in events))


def says(text: str) -> Reply:
    return answer(
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    )


def calls(name: str, **arguments: Any) -> Reply:
    return answer(
        {"type": "function_call", "id": "i", "call_id": "c2", "name": name, "arguments": json.dumps(arguments)}
    )


def edit_tools(request: dict[str, Any]) -> dict[str, str]:
    names = ("edit", "create", "apply_patch")
    return {tool["name"]: tool["type"] for tool in request["tools"] if tool["name"] in names}


def kinds(request: dict[str, Any]) -> list[str]:
    return [item["type"] for item in request["input"] if item["type"] != "message"]


async def test_tools_and_history_follow_the_model_of_a_session(tmp_path: Path) -> None:
    replies = [
        *(answer(FREE_FORM), says("Done."), says("Hello.")),
        # The tool of the other family is understood, too.
        *(calls("edit", path="a.txt", old_str="one", new_str="two"), says("Done.")),
    ]
    async with ModelServer(*replies) as model, running_server(tmp_path) as server:
        provider = {"type": "openai", "baseUrl": model.url, "apiKey": "k", "wireApi": "responses"}
        session = await server.wire.create(provider, model="team/gpt-5.2-eu", workingDirectory=str(tmp_path))
        await server.wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        await server.wire.prompt(session, "Write a file.")
        assert (tmp_path / "a.txt").read_text() == "one\n"

        await server.wire.call("session.model.switchTo", {"sessionId": session, "modelId": "o3"})
        await server.wire.prompt(session, "Hello.")
        await server.wire.call("session.model.switchTo", {"sessionId": session, "modelId": "gpt-5-codex"})
        await server.wire.prompt(session, "Change it.")
        assert (tmp_path / "a.txt").read_text() == "two\n"

    first, second, third, fourth, fifth = (request.json for request in model.requests)
    assert edit_tools(first) == edit_tools(fourth) == {"apply_patch": "custom"}
    assert edit_tools(third) == {"create": "function", "edit": "function"}
    free_form = ["custom_tool_call", "custom_tool_call_output"]
    ordinary = ["function_call", "function_call_output"]
    assert kinds(second) == kinds(fourth) == free_form
    assert kinds(third) == ordinary
    assert kinds(fifth) == [*free_form, *ordinary]
    assert next(item for item in second["input"] if item["type"] == "custom_tool_call")["input"] == PATCH
    assert next(item for item in second["input"] if "output" in item)["output"] == "Created a.txt."


async def test_the_configuration_overrides_the_family(tmp_path: Path) -> None:
    async with ModelServer(*[says("Hi.")] * 3) as model:
        config = f"""
[adapters.work]
type = "openai_responses"
base_url = "{model.url}"
models = [
    {{id = "gpt-5", edit_tools = "edit"}},
    {{id = "deployment-1", wire_model = "gpt-5-mini"}},
    {{id = "tiny", edit_tools = "apply_patch"}},
]
"""
        async with running_server(tmp_path, config=config) as server:
            for name in ("work/gpt-5", "work/deployment-1", "work/tiny"):
                session = (await server.wire.call("session.create", {"model": name}))["sessionId"]
                await server.wire.prompt(session, "Hello.")
    assert [edit_tools(request.json) for request in model.requests] == [
        {"create": "function", "edit": "function"},
        {"apply_patch": "custom"},
        # Its family is not known to take free-form tools.
        {"apply_patch": "function"},
    ]


async def test_clients_learn_which_tools_a_model_gets_and_when_they_change(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        listed = {
            model: {tool["name"] for tool in (await server.wire.call("tools.list", {"model": model}))["tools"]}
            for model in ("gpt-5", "claude-opus-4")
        }
        session = await server.wire.create({"type": "openai", "baseUrl": "http://127.0.0.1:1"}, model="gpt-5")
        switched: list[list[str]] = []
        for model in ("gpt-5-mini", "claude-opus-4"):
            since = len(server.wire.messages)
            await server.wire.call("session.model.switchTo", {"sessionId": session, "modelId": model})
            switched.append([event["type"] for event in server.wire.events(session, since=since)])
    assert listed["gpt-5"] ^ listed["claude-opus-4"] == {"apply_patch", "edit", "create"}
    assert "apply_patch" in listed["gpt-5"]
    assert "session.tools_updated" not in switched[0]
    assert "session.tools_updated" in switched[1]
