"""Models that call tools in their text, over the real wire: selected by configuration or after a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.events import data_of
from tests.support.model_server import ModelServer, Reply, event_stream, json_reply
from tests.support.server import JsonObject, RunningServer, Wire, running_server, scripted

pytestmark = pytest.mark.anyio

ADD: Final = {
    "name": "add",
    "description": "Add two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["a", "b"],
    },
}
FREE: Final = {**ADD, "skipPermission": True}
ONLY: Final = {"availableTools": ["custom:*"]}
CALL: Final = '<tools><tool name="add"><a>1</a><b>2</b></tool></tools>'
NO_TOOLS: Final = json_reply({"error": {"message": "tiny does not support tools"}}, status=400)


def says(*pieces: str) -> Reply:
    """Return a streamed chat completion."""
    chunks: list[JsonObject] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return event_stream(*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n")


async def run_prompt(wire: Wire, session: str, *, result: Any = "3") -> list[JsonObject]:
    """Send a prompt and return its events; calls of client tools are answered with ``result``."""
    since = seen = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "go"})
    while True:
        message = await wire.until(
            lambda message: _kind(message, session) in ("external_tool.requested", "session.idle"), since=seen
        )
        seen = wire.messages.index(message) + 1
        if _kind(message, session) == "session.idle":
            return wire.events(session, since=since)
        answer = {"requestId": message["params"]["event"]["data"]["requestId"], "result": result}
        await wire.call("session.tools.handlePendingToolCall", {"sessionId": session, **answer})


def _kind(message: JsonObject, session: str) -> str | None:
    params: JsonObject = message.get("params") or {}
    return params["event"]["type"] if params.get("sessionId") == session and "event" in params else None


async def create_session(ours: RunningServer, provider: JsonObject, **more: Any) -> str:
    given: JsonObject = {"model": "tiny", "tools": [FREE], "streaming": True, **ONLY, **more}
    return await ours.wire.create(provider, **given)


async def test_a_call_in_the_text_runs_like_any_other_and_is_never_shown(tmp_path: Path) -> None:
    pieces = [
        "I'll a",
        "dd.\n",
        "```x",
        "ml\n<too",
        "ls>\n<tool name='add'><a>1</a>",
        "<b>2</",
        "b></tool></tools>\n``",
    ]
    async with ModelServer(says(*pieces, "`"), says("It is <3>.")) as model, running_server(tmp_path) as ours:
        session = await create_session(ours, {"baseUrl": model.url, "toolProtocol": "xml"})
        events = await run_prompt(ours.wire, session)

    first, second = [request.json for request in model.requests]
    assert "tools" not in first
    assert '<tool name="add">' in first["messages"][0]["content"]
    (call,) = data_of(events, "assistant.message")[0]["toolRequests"]
    assert (call["name"], call["arguments"]) == ("add", {"a": 1, "b": 2})
    assert [message["content"] for message in data_of(events, "assistant.message")] == ["I'll add.\n", "It is <3>."]
    shown = "".join(delta["deltaContent"] for delta in data_of(events, "assistant.message_delta"))
    assert shown == "I'll add.\nIt is <3>."
    assert data_of(events, "assistant.tool_call_delta")[0]["toolCallId"] == call["toolCallId"]
    assert data_of(events, "tool.execution_complete")[0]["success"]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "user"]
    said = f'<tool_result name="add" id="{call["toolCallId"]}" status="success">\n3\n</tool_result>'
    assert second["messages"][3]["content"] == said


async def test_a_resumed_session_sends_the_same_request(tmp_path: Path) -> None:
    async with ModelServer(says(CALL), says("3"), says("ok"), says("ok")) as model:
        provider = {"baseUrl": model.url, "toolProtocol": "xml"}
        async with running_server(tmp_path) as ours:
            session = await create_session(ours, provider)
            await run_prompt(ours.wire, session)
            await run_prompt(ours.wire, session)
        async with running_server(tmp_path) as ours:
            again = {"sessionId": session, "provider": provider, "model": "tiny", "tools": [FREE], **ONLY}
            await ours.wire.call("session.resume", again)
            await run_prompt(ours.wire, session)

    before, after = model.requests[2].json["messages"], model.requests[3].json["messages"]
    assert after[1 : len(before) - 1] == before[1:-1]


async def test_a_call_in_the_text_is_approved_and_rejected_like_any_other(tmp_path: Path) -> None:
    provider = {**scripted({"text": CALL}, {"text": "never"}), "toolProtocol": "xml"}
    async with running_server(tmp_path) as ours:
        wire = ours.wire
        session = await create_session(ours, provider, tools=[ADD], requestPermission=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        question = await wire.event("permission.requested", session=session)
        await wire.call(
            "session.permissions.handlePendingPermissionRequest",
            {"sessionId": session, "requestId": question["data"]["requestId"], "result": {"kind": "reject"}},
        )
        await wire.event("session.idle", session=session)
        events = wire.events(session)

    assert question["data"]["permissionRequest"]["args"] == {"a": 1, "b": 2}
    assert data_of(events, "tool.execution_complete")[0]["error"]["code"] == "rejected"
    assert len(data_of(events, "assistant.message")) == 1


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ('<tools><tool name="add"><a>1</a></add></tool></tools>', "</add> where </tool> was expected"),
        (
            '<tools><tool name="sub"/></tools>',
            "Tool 'sub' does not exist. Available tools that can be called are add.",
        ),
        ('<tools><tool name="add"><a>1</a><note>x', "<note> is never closed"),
        ('<tools><tool name="add">1 and 2</tool></tools>', "text where parameters were expected: '1 and 2'"),
    ],
)
async def test_the_model_gets_the_error_of_a_malformed_call(tmp_path: Path, written: str, problem: str) -> None:
    async with ModelServer(says(f"So: {written}"), says("Sorry.")) as model, running_server(tmp_path) as ours:
        session = await create_session(ours, {"baseUrl": model.url, "toolProtocol": "xml"})
        events = await run_prompt(ours.wire, session)

    (completed,) = data_of(events, "tool.execution_complete")
    assert problem in completed["error"]["message"]
    assert [message["content"] for message in data_of(events, "assistant.message")] == ["So: ", "Sorry."]
    _, said, result = [message["content"] for message in model.requests[1].json["messages"][1:]]
    assert said.startswith("So: \n<t")
    assert problem in result
    assert 'status="error"' in result


CONFIG: Final = """
[adapters.plain]
type = "openai"
base_url = "URL"
tool_protocol = "xml"
models = ["tiny", {id = "big", tool_protocol = "native"}]

[adapters.other]
type = "openai"
base_url = "URL"
models = ["big", {id = "tiny", tool_protocol = "xml"}]

[adapters.declared]
type = "openai"
base_url = "URL"
opts = {can_use_tools = false}
models = ["tiny", {id = "big", tool_protocol = "native"}]

[adapters.written]
type = "openai"
base_url = "URL"
opts = {tool_protocol = "xml"}
models = ["big"]
"""


async def test_the_configuration_selects_models_that_call_tools_in_their_text(tmp_path: Path) -> None:
    chosen = {
        "plain/tiny": True,
        "plain/big": False,
        "plain/unlisted": True,
        "other/tiny": True,
        "other/big": False,
        "declared/tiny": True,
        "declared/big": False,
        "declared/unlisted": True,
        "written/unlisted": True,
        "named/tiny": True,
        "named/big": False,
    }
    async with ModelServer(*[says("ok")] * len(chosen)) as model:
        config = CONFIG.replace("URL", model.url)
        async with running_server(tmp_path, config=config) as ours:
            for name in chosen:
                named: JsonObject = {
                    "providers": [{"name": "named", "baseUrl": model.url, "toolProtocol": "xml"}],
                    "models": [{"id": "big", "provider": "named", "toolProtocol": "native"}],
                }
                params = {"model": name, "tools": [FREE], **ONLY, **(named if name.startswith("named") else {})}
                session = (await ours.wire.call("session.create", params))["sessionId"]
                assert data_of(await run_prompt(ours.wire, session), "assistant.message")[0]["content"] == "ok"

    assert {
        name: "tools" not in request.json for name, request in zip(chosen, model.requests, strict=True)
    } == chosen


async def test_an_invalid_setting_is_named(tmp_path: Path) -> None:
    async with running_server(tmp_path) as ours:
        error = await ours.wire.error_of("session.create", {"provider": {**scripted(), "toolProtocol": "yaml"}})
    assert "toolProtocol" in error["message"]


async def test_a_refusal_of_tools_is_retried_with_calls_in_the_text_and_remembered(tmp_path: Path) -> None:
    answers = [NO_TOOLS, says(CALL), says("3"), says("ok"), says("ok")]
    async with (
        ModelServer(*answers) as model,
        ModelServer(says("fine")) as elsewhere,
        running_server(tmp_path) as ours,
    ):
        session = await create_session(ours, {"baseUrl": model.url})
        events = await run_prompt(ours.wire, session)
        assert data_of(await run_prompt(ours.wire, session), "session.warning") == []
        assert (
            data_of(
                await run_prompt(ours.wire, await create_session(ours, {"baseUrl": model.url})), "session.warning"
            )
            == []
        )
        # A model with the same name on another server is not affected.
        await run_prompt(ours.wire, await create_session(ours, {"baseUrl": elsewhere.url}))

    (warning,) = data_of(events, "session.warning")
    assert warning["warningType"] == "tool_protocol"
    assert "tiny does not support tools" in warning["message"]
    assert data_of(events, "session.error") == []
    assert [message["content"] for message in data_of(events, "assistant.message")] == ["", "3"]
    assert ["tools" in request.json for request in model.requests] == [True, False, False, False, False]
    assert "tools" in elsewhere.requests[0].json


async def test_a_second_refusal_ends_the_turn_and_is_not_remembered(tmp_path: Path) -> None:
    async with ModelServer(NO_TOOLS, NO_TOOLS, NO_TOOLS, says("ok")) as model, running_server(tmp_path) as ours:
        session = await create_session(ours, {"baseUrl": model.url})
        (error,) = data_of(await run_prompt(ours.wire, session), "session.error")
        await run_prompt(ours.wire, session)

    assert "tiny does not support tools" in error["message"]
    assert ["tools" in request.json for request in model.requests] == [True, False, True, False]


async def test_with_function_calling_configured_the_refusal_is_reported(tmp_path: Path) -> None:
    async with ModelServer(NO_TOOLS) as model, running_server(tmp_path) as ours:
        session = await create_session(ours, {"baseUrl": model.url, "toolProtocol": "native"})
        events = await run_prompt(ours.wire, session)

    assert (len(data_of(events, "session.error")), data_of(events, "session.warning")) == (1, [])


async def test_a_structured_answer_is_requested_as_a_call_in_the_text(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    form = {"type": "json_schema", "jsonSchema": {"name": "sum", "schema": schema}}
    final = '<tools><tool name="final_answer"><sum>3</sum></tool></tools>'
    async with ModelServer(says(CALL), says(final)) as model, running_server(tmp_path) as ours:
        session = await create_session(ours, {"baseUrl": model.url, "toolProtocol": "xml"}, responseFormat=form)
        events = await run_prompt(ours.wire, session)

    assert "response_format" not in model.requests[0].json
    assert data_of(events, "assistant.message")[-1]["content"] == '{"sum":3}'
    assert data_of(events, "session.error") == []


async def test_the_next_request_has_the_tools_in_its_text(tmp_path: Path) -> None:
    async with ModelServer(says("ok")) as model, running_server(tmp_path) as ours:
        session = await create_session(ours, {"baseUrl": model.url, "toolProtocol": "xml"})
        params = {"sessionId": session, "prompt": "go"}
        body = (await ours.wire.call("jumpseat.session.nextRequest", params))["body"]
        await run_prompt(ours.wire, session)

    assert body["messages"][0] == model.requests[0].json["messages"][0]
    assert "tools" not in body


async def test_a_call_in_the_form_of_the_models_training_runs(tmp_path: Path) -> None:
    written = 'I add.\n<tool_call>{"name": "Add", "arguments": {"a": 1, "b": 2, "note": null}}</tool_call>'
    async with ModelServer(says(written), says("It is 3.")) as model, running_server(tmp_path) as ours:
        session = await create_session(ours, {"baseUrl": model.url, "toolProtocol": "xml"})
        events = await run_prompt(ours.wire, session)

    first, _ = data_of(events, "assistant.message")
    (call,) = first["toolRequests"]
    assert (first["content"], call["name"], call["arguments"]) == ("I add.\n", "add", {"a": 1, "b": 2})
    assert "<" not in "".join(data["deltaContent"] for data in data_of(events, "assistant.message_delta"))
    assert data_of(events, "tool.execution_complete")[0]["success"]


async def test_a_native_model_whose_answer_is_a_written_call_is_understood_with_one_warning(tmp_path: Path) -> None:
    written = says('<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>')
    async with ModelServer(written, written, says("It is 3.")) as model, running_server(tmp_path) as ours:
        events = await run_prompt(ours.wire, await create_session(ours, {"baseUrl": model.url}))

    (warning,) = data_of(events, "session.warning")
    assert "vLLM: --enable-auto-tool-choice --tool-call-parser hermes" in warning["message"]
    assert "It is taken as a call" in warning["message"]
    assert [message["content"] for message in data_of(events, "assistant.message")] == ["", "", "It is 3."]
    assert [done["success"] for done in data_of(events, "tool.execution_complete")] == [True, True]
    assert "".join(data["deltaContent"] for data in data_of(events, "assistant.message_delta")) == "It is 3."
    # The call is sent back as the provider's own.
    assert [message["role"] for message in model.requests[1].json["messages"][-2:]] == ["assistant", "tool"]
    assert "<tool_call>" not in str(model.requests[2].json)


async def test_a_malformed_written_call_is_answered_to_the_model(tmp_path: Path) -> None:
    written = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": }}</tool_call>'
    async with ModelServer(says(written), says("Oh.")) as model, running_server(tmp_path) as ours:
        events = await run_prompt(ours.wire, await create_session(ours, {"baseUrl": model.url}))

    assert [done["success"] for done in data_of(events, "tool.execution_complete")] == [False]
    assert "could not be parsed" in model.requests[1].json["messages"][-1]["content"]
    assert [message["content"] for message in data_of(events, "assistant.message")] == ["", "Oh."]
    (warning,) = data_of(events, "session.warning")
    assert "It cannot be run as written: the model gets the reason" in warning["message"]


async def test_a_native_model_that_writes_a_call_into_a_text_gets_one_warning(tmp_path: Path) -> None:
    written = 'I add.\n<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
    async with ModelServer(says(written), says(written)) as model, running_server(tmp_path) as ours:
        session = await create_session(ours, {"baseUrl": model.url})
        first = await run_prompt(ours.wire, session)
        second = await run_prompt(ours.wire, session)

    (warning,) = data_of(first, "session.warning")
    assert "--tool-call-parser" in warning["message"]
    assert 'tool_protocol = "xml"' in warning["message"]
    assert data_of(second, "session.warning") == []
    assert data_of(first, "assistant.message")[0]["content"] == written


@pytest.mark.parametrize("protocol", ["native", "xml"])
async def test_thinking_at_the_beginning_is_reasoning_and_is_not_sent_back(tmp_path: Path, protocol: str) -> None:
    answer = says("\n<think>\nHm, 2 < 3.\n</think>\n\nHello.")
    async with ModelServer(answer, says("Bye.")) as model, running_server(tmp_path) as ours:
        session = await create_session(ours, {"baseUrl": model.url, "toolProtocol": protocol})
        events = await run_prompt(ours.wire, session)
        await run_prompt(ours.wire, session)

    (message,) = data_of(events, "assistant.message")
    assert (message["content"], message["reasoningText"]) == ("Hello.", "Hm, 2 < 3.")
    assert "".join(data["deltaContent"] for data in data_of(events, "assistant.message_delta")) == "Hello."
    assert "2 < 3" in "".join(data["deltaContent"] for data in data_of(events, "assistant.reasoning_delta"))
    assert "2 < 3" not in str(model.requests[1].json)
