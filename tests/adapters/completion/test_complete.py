"""``jumpseat.complete`` over the wire: blocks in, blocks out, streamed and whole, with every kind of provider."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from tests.adapters.golden import DATA
from tests.support.cases import all_cases
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, event_stream, json_reply, text_reply
from tests.support.server import JsonObject, RunningServer, Wire, running_server, scripted

pytestmark = pytest.mark.anyio

WEATHER: Final[JsonObject] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Get the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
STREAMS: Final = (
    ("anthropic", "tools.sse"),
    ("anthropic", "thinking.sse"),
    ("anthropic", "web_search.sse"),
    ("openai", "tools_parallel.sse"),
    ("openai_responses", "tools_with_reasoning_between.sse"),
    ("openai_responses", "web_search.sse"),
    ("gemini", "thinking_and_tools.sse"),
    ("gemini_interactions", "google_search.sse"),
    ("openrouter", "web_search.sse"),
    ("mistral", "thinking.sse"),
    ("ollama", "tools_parallel.jsonl"),
)


def provider(kind: str, server: ModelServer) -> JsonObject:
    return {"type": kind, "baseUrl": server.url, "apiKey": "k"}


def notified(wire: Wire, stream_id: str) -> list[JsonObject]:
    """Return the events of one stream."""
    return [
        message["params"]
        for message in wire.messages
        if message.get("method") == "jumpseat.complete.event" and message["params"]["streamId"] == stream_id
    ]


def joined(events: list[JsonObject], delta_type: str, field: str) -> str:
    deltas = [event["delta"] for event in events if "delta" in event]
    return "".join(delta[field] for delta in deltas if delta["deltaType"] == delta_type)


@pytest.mark.parametrize(("kind", "recording"), STREAMS, ids=[f"{kind}-{name}" for kind, name in STREAMS])
async def test_a_stream_has_the_deltas_and_each_block_of_the_answer_once(
    tmp_path: Path, kind: str, recording: str
) -> None:
    data = (DATA / kind / recording).read_bytes()
    lines = text_reply(data.decode(), content_type="application/x-ndjson")
    async with (
        ModelServer(lines if recording.endswith(".jsonl") else event_stream(data)) as server,
        running_server(tmp_path) as ours,
    ):
        params = {"provider": provider(kind, server), "model": "m", "prompt": "hi", "tools": [WEATHER]}
        result = await ours.wire.call("jumpseat.complete", {**params, "stream": True, "streamId": "s"})
        stored = await ours.wire.call("session.list", {})

    events = notified(ours.wire, "s")
    blocks = [event["block"] for event in events if "block" in event]
    assert blocks == result["blocks"]
    assert joined(events, "text_delta", "text") == result["text"]
    started = [e["delta"] for e in events if e.get("delta", {}).get("deltaType") == "tool_call_start"]
    calls = [block for block in blocks if block["type"] == "tool_use"]
    assert [(d["toolCallId"], d["toolCallName"]) for d in started] == [
        (c["toolUseId"], c["toolName"]) for c in calls
    ]
    for call in calls:
        own = [e for e in events if e.get("delta", {}).get("toolCallId") == call["toolUseId"]]
        assert json.loads(joined(own, "input_json_delta", "inputJsonDelta") or "{}") == call["input"]
    assert stored["sessions"] == []


@pytest.mark.parametrize(
    ("kind", "recording", "marks"),
    [
        ("anthropic", "tools.sse", ('content_block_stop\ndata: {"type":"content_block_stop","index":1}',)),
        ("openai_responses", "tools_with_reasoning_between.sse", ("response.output_item.done", "function_call")),
    ],
)
async def test_a_finished_call_arrives_while_the_model_still_writes(
    tmp_path: Path, kind: str, recording: str, marks: tuple[str, ...]
) -> None:
    data = (DATA / kind / recording).read_bytes()
    gate = asyncio.Event()
    at = 0
    pieces = data.split(b"\n\n")
    at = next(n for n, piece in enumerate(pieces) if all(mark.encode() in piece for mark in marks)) + 1
    first, rest = b"\n\n".join(pieces[:at]) + b"\n\n", b"\n\n".join(pieces[at:])
    async with ModelServer(event_stream(first, rest, gate=gate)) as server, running_server(tmp_path) as ours:
        params = {"provider": provider(kind, server), "model": "m", "prompt": "hi", "tools": [WEATHER]}
        request = await ours.wire.ask("jumpseat.complete", {**params, "stream": True, "streamId": "s"})
        event = await ours.wire.until(
            lambda message: message.get("params", {}).get("block", {}).get("type") == "tool_use"
        )
        assert not gate.is_set()
        gate.set()
        result = (await ours.wire.response(request))["result"]

    assert event["params"]["block"] == next(block for block in result["blocks"] if block["type"] == "tool_use")


async def test_cancelling_the_request_ends_the_call_of_the_provider(tmp_path: Path) -> None:
    head = b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
    async with ModelServer(event_stream(head, ending="hang")) as server, running_server(tmp_path) as ours:
        params = {"provider": provider("openai", server), "model": "m", "prompt": "hi"}
        request = await ours.wire.ask("jumpseat.complete", {**params, "stream": True, "streamId": "s"})
        await ours.wire.until(lambda message: message.get("method") == "jumpseat.complete.event")
        cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": request}}
        await ours.wire.send(ours.wire.encode(cancel))
        answer = await ours.wire.response(request)
        with anyio.fail_after(WAIT_S):
            await server.wait_for_hang_up()

    assert answer["error"]["message"] == "request cancelled"


CHOICES: Final[dict[str, tuple[str, Any]]] = {
    "openai": ("tool_choice", {"type": "function", "function": {"name": "weather"}}),
    "anthropic": ("tool_choice", {"type": "tool", "name": "weather"}),
    "openai_responses": ("tool_choice", {"type": "function", "name": "weather"}),
    "gemini": ("toolConfig", {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}}),
}
RECORDED: Final = {
    "openai": "tools_parallel.sse",
    "anthropic": "tools.sse",
    "openai_responses": "tools_parallel.sse",
    "gemini": "tools_without_ids_in_several_chunks.sse",
}


@pytest.mark.parametrize("kind", CHOICES)
async def test_the_blocks_of_an_answer_go_back_with_the_results_of_its_calls(tmp_path: Path, kind: str) -> None:
    data = (DATA / kind / RECORDED[kind]).read_bytes()
    question: JsonObject = {"role": "user", "content": "Weather?"}
    async with ModelServer(event_stream(data), event_stream(data)) as server, running_server(tmp_path) as ours:
        params: JsonObject = {
            "provider": provider(kind, server),
            "model": "m",
            "tools": [WEATHER],
            "toolChoice": {"mode": "specific", "toolName": "weather"},
            "temperature": 0.5,
            "stop": ["END"],
            "maxOutputTokens": 100,
            "stream": True,
            "streamId": "s",
        }
        if kind == "openai_responses":
            del params["stop"]
        first = await ours.wire.call("jumpseat.complete", {**params, "messages": [question]})
        calls = [block for block in first["blocks"] if block["type"] == "tool_use"]
        results = [
            {"type": "tool_result", "toolUseId": call["toolUseId"], "text": f"sunny {number}"}
            for number, call in enumerate(calls)
        ]
        messages = [
            question,
            {"role": "assistant", "blocks": first["blocks"]},
            {"role": "user", "blocks": [{"type": "text", "text": "And now?"}, *results]},
        ]
        await ours.wire.call("jumpseat.complete", {**params, "messages": messages})

    field, choice = CHOICES[kind]
    one, two = (request.json for request in server.requests)
    assert one[field] == choice
    written = json.dumps(one)
    assert "0.5" in written
    assert "100" in written
    assert ("END" in written) == (kind != "openai_responses")
    assert calls
    conversation = json.dumps(two)
    assert all(f"sunny {number}" in conversation for number in range(len(calls)))
    # The results follow their calls directly, before the text of the same message.
    assert conversation.index("sunny 0") < conversation.index("And now?")


async def test_signed_thinking_and_search_results_go_back_unchanged(tmp_path: Path) -> None:
    data = [(DATA / "anthropic" / name).read_bytes() for name in ("thinking.sse", "web_search.sse", "plain.sse")]
    async with ModelServer(*map(event_stream, data)) as server, running_server(tmp_path) as ours:
        messages: list[JsonObject] = [{"role": "user", "content": "a"}]
        params = {"provider": provider("anthropic", server), "model": "claude-sonnet-4-5", "stream": True}
        for number in range(3):
            result = await ours.wire.call(
                "jumpseat.complete",
                {**params, "messages": messages, "streamId": str(number), "hostedTools": ["web_search"]},
            )
            messages += [{"role": "assistant", "blocks": result["blocks"]}, {"role": "user", "content": "b"}]

    sent = server.requests[2].json["messages"]
    thinking = sent[1]["content"][0]
    assert (thinking["type"], bool(thinking["signature"])) == ("thinking", True)
    kinds = [part["type"] for part in sent[3]["content"]]
    assert kinds == ["server_tool_use", "web_search_tool_result", "text"]
    assert sent[3]["content"][1]["content"][0]["encrypted_content"] == "RU4="
    search = next(b for b in messages[3]["blocks"] if b["type"] == "web_search_result")
    assert search["results"] == [{"title": "A", "url": "https://a.example"}]
    assert (search["provider"], search["toolUseId"]) == ("anthropic", "srvtoolu_1")


async def test_an_answer_that_the_provider_has_paused_is_continued_by_another_call(tmp_path: Path) -> None:
    data = [(DATA / "anthropic" / name).read_bytes() for name in ("pause_turn.sse", "plain.sse")]
    async with ModelServer(*map(event_stream, data)) as server, running_server(tmp_path) as ours:
        messages: list[JsonObject] = [{"role": "user", "content": "a"}]
        params = {"provider": provider("anthropic", server), "model": "m", "hostedTools": ["web_search"]}
        params |= {"stream": True, "streamId": "s"}
        paused = await ours.wire.call("jumpseat.complete", {**params, "messages": messages})
        messages.append({"role": "assistant", "blocks": paused["blocks"]})
        result = await ours.wire.call("jumpseat.complete", {**params, "messages": messages})

    assert (paused["stopReason"], result["stopReason"]) == ("pause_turn", "end_turn")
    (failed,) = [block for block in paused["blocks"] if block["type"] == "web_search_result"]
    assert (failed["isError"], failed["errorCode"]) == (True, "max_uses_exceeded")
    assert [message["role"] for message in server.requests[1].json["messages"]] == ["user", "assistant"]


async def test_strict_of_a_function_reaches_the_provider(tmp_path: Path) -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}
    strict = {**WEATHER, "function": {**WEATHER["function"], "strict": True}}
    async with ModelServer(json_reply(answer)) as server, running_server(tmp_path) as ours:
        params = {"provider": provider("openai", server), "model": "m", "prompt": "hi", "tools": [strict]}
        await ours.wire.call("jumpseat.complete", params)
    assert server.requests[0].json["tools"][0]["function"]["strict"] is True


async def test_bash_and_the_text_editor_work_with_every_provider(tmp_path: Path) -> None:
    edit = {"command": "view", "path": "a.txt"}
    claude = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "tool_use", "id": "t1", "name": "str_replace_based_edit_tool", "input": edit},
            {"type": "tool_use", "id": "t2", "name": "bash", "input": {"command": "ls"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    gpt = {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "id": "t1",
                            "type": "function",
                            "function": {"name": "text_editor", "arguments": json.dumps(edit)},
                        }
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ]
    }
    built_in = [
        {"type": "function", "function": {"name": name}, "builtIn": True} for name in ("bash", "text_editor")
    ]
    async with (
        ModelServer(json_reply(claude), json_reply(claude)) as anthropic,
        ModelServer(json_reply(gpt), json_reply(gpt)) as openai,
        running_server(tmp_path) as ours,
    ):
        question: JsonObject = {"role": "user", "content": "Look."}
        params: JsonObject = {"model": "m", "messages": [question], "tools": built_in}
        params["toolChoice"] = {"mode": "specific", "toolName": "text_editor"}
        of_claude = await ours.wire.call(
            "jumpseat.complete", {**params, "provider": provider("anthropic", anthropic)}
        )
        of_gpt = await ours.wire.call("jumpseat.complete", {**params, "provider": provider("openai", openai)})
        results = [{"type": "tool_result", "toolUseId": call, "text": "done"} for call in ("t1", "t2")]
        messages = [
            question,
            {"role": "assistant", "blocks": of_claude["blocks"]},
            {"role": "user", "blocks": results},
        ]
        for other in (provider("anthropic", anthropic), provider("openai", openai)):
            await ours.wire.call("jumpseat.complete", {**params, "messages": messages, "provider": other})

    called = [(block["toolName"], block["input"]) for block in of_claude["blocks"]]
    assert called == [("text_editor", edit), ("bash", {"command": "ls"})]
    assert [(block["toolName"], block["input"]) for block in of_gpt["blocks"]] == called[:1]
    native, again = (request.json for request in anthropic.requests)
    assert [tool["type"] for tool in native["tools"]] == ["bash_20250124", "text_editor_20250728"]
    assert (
        native["tool_choice"]["name"] == again["messages"][1]["content"][0]["name"] == "str_replace_based_edit_tool"
    )
    function, switched = (request.json for request in openai.requests)
    assert [tool["function"]["name"] for tool in function["tools"]] == ["bash", "text_editor"]
    assert switched["messages"][1]["tool_calls"][0]["function"]["name"] == "text_editor"


async def test_a_model_with_xml_tools_returns_and_receives_the_same_blocks(tmp_path: Path) -> None:
    call = '<tools><tool name="weather"><city>Bonn</city></tool></tools>'
    lines = [
        f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': text}}]})}\n\n".encode()
        for text in ("Looking. ", call)
    ]
    end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    stream = event_stream(*lines, end)
    async with ModelServer(stream, stream) as server, running_server(tmp_path) as ours:
        model = {**provider("openai", server), "toolProtocol": "xml"}
        question: JsonObject = {"role": "user", "content": "Weather?"}
        params = {"provider": model, "model": "m", "tools": [WEATHER], "stream": True, "streamId": "s"}
        first = await ours.wire.call("jumpseat.complete", {**params, "messages": [question]})
        block = first["blocks"][-1]
        result = {"type": "tool_result", "toolUseId": block["toolUseId"], "text": "rain"}
        messages = [
            question,
            {"role": "assistant", "blocks": first["blocks"]},
            {"role": "user", "blocks": [result]},
        ]
        await ours.wire.call("jumpseat.complete", {**params, "messages": messages, "streamId": "t"})

    assert (block["toolName"], block["input"], first["stopReason"]) == ("weather", {"city": "Bonn"}, "tool_use")
    assert [event["block"] for event in notified(ours.wire, "s") if "block" in event] == first["blocks"]
    assert "tools" not in server.requests[0].json
    assert "rain" in json.dumps(server.requests[1].json["messages"])


async def test_many_streams_at_once_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    async with running_server(tmp_path) as ours:
        asked = [
            await ours.wire.ask(
                "jumpseat.complete",
                {
                    "provider": scripted({"text": f"answer {number}"}),
                    "prompt": "hi",
                    "stream": True,
                    "streamId": f"s{number}",
                },
            )
            for number in range(20)
        ]
        results = [(await ours.wire.response(request))["result"] for request in asked]

    for number, result in enumerate(results):
        assert (
            joined(notified(ours.wire, f"s{number}"), "text_delta", "text") == f"answer {number}" == result["text"]
        )


async def test_the_cost_and_the_images_of_a_call(tmp_path: Path) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    reply = {
        "choices": [{"message": {"content": "Red."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100},
    }
    async with ModelServer(json_reply(reply)) as server, running_server(tmp_path) as ours:
        blocks = [
            {"type": "text", "text": "Which colour?"},
            {"type": "image", "data": pixel, "mimeType": "image/png", "altText": "pixel.png"},
            {"type": "document", "data": "cmVk", "mimeType": "text/plain", "title": "notes.txt"},
        ]
        result = await ours.wire.call(
            "jumpseat.complete",
            {
                "provider": provider("openai", server),
                "model": "gpt-4.1",
                "messages": [{"role": "user", "content": blocks}],
            },
        )

    parts = server.requests[0].json["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["text", "text", "image_url", "text"]
    assert parts[-1]["text"] == "notes.txt\nred"
    assert result["costUsd"] == pytest.approx(0.0028)


TOOL: Final[JsonObject] = {"type": "function", "function": {"name": "x"}}
USE: Final[JsonObject] = {"role": "assistant", "blocks": [{"type": "tool_use", "toolUseId": "1", "toolName": "x"}]}
USER: Final[JsonObject] = {"role": "user", "content": "a"}
CALL: Final[JsonObject] = {"type": "tool_use", "toolUseId": "1", "toolName": "x"}
RESULT: Final[JsonObject] = {"type": "tool_result", "toolUseId": "1"}
PDF: Final[JsonObject] = {"type": "image", "data": "aGk=", "mimeType": "application/pdf"}


REFUSED: Final[tuple[tuple[JsonObject, str], ...]] = (
    ({"prompt": "a", "frequency": 1}, "frequency"),
    ({"prompt": "a", "temperature": 1}, "the adapter 'scripted' has no setting for 'temperature'"),
    ({"prompt": "a", "settings": {"heat": 1}}, "the adapter 'scripted' has no settings"),
    (
        {"prompt": "a", "hostedTools": [{"name": "bash", "timeout": 1}]},
        "hostedTools[0]: scripted gets 'bash' as a function, which has no options",
    ),
    ({"prompt": "a", "hostedTools": ["web_search"]}, "has no built-in tool 'web_search', expected one of bash"),
    ({"prompt": "a", "stream": True}, "stream needs a streamId"),
    ({"prompt": "a", "tools": [TOOL, TOOL]}, "tools[1]: duplicate tool 'x'"),
    ({"prompt": "a", "toolChoice": {"mode": "specific", "toolName": "y"}, "tools": [TOOL]}, "unknown tool 'y'"),
    ({"prompt": "a", "toolChoice": {"mode": "required"}}, "expected tools for the mode 'required'"),
    ({"messages": [USER, USE, USER]}, "messages[2]: expected a tool_result for the call '1' of 'x'"),
    (
        {"messages": [{"role": "user", "blocks": [{"type": "tool_result", "toolUseId": "9"}]}]},
        "messages[0].blocks[0]: tool_result for '9', which is not a call of the message before",
    ),
    (
        {"messages": [{"role": "user", "blocks": [{"type": "reasoning", "text": "a"}]}]},
        "messages[0].blocks[0]: reasoning is a block of the assistant",
    ),
    (
        {"messages": [{"role": "user", "blocks": [{"type": "image", "data": "?", "mimeType": "image/png"}]}]},
        "expected the data of an image in base64",
    ),
    ({"messages": [{"role": "user"}]}, "expected either content or blocks"),
    ({"messages": []}, "messages: expected a message of the user"),
    ({"messages": [{"role": "user", "blocks": [{"type": "txt"}]}]}, "unknown type 'txt', did you mean 'text'?"),
    ({"messages": [{"role": "user", "blocks": [{"text": "a"}]}]}, "type is required, but missing"),
    (
        {"messages": [{"role": "user", "blocks": [{"type": "document", "data": "?", "mimeType": "text/plain"}]}]},
        "expected the data of a document in base64",
    ),
    ({"prompt": "a", "cwd": "/no/such/folder"}, "cwd '/no/such/folder' is not a directory"),
    ({"prompt": "a", "provider": {"type": "opnai"}}, "provider.type: unknown type 'opnai', did you mean 'openai'?"),
    ({"prompt": "a", "streamId": "s"}, "streamId is for a streamed answer"),
    ({"messages": [{"role": "user", "content": []}]}, "messages[0]: expected at least one block"),
    (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]},
        "messages[0].content[0].text: expected a string, got an integer",
    ),
    (
        {"messages": [USER, {"role": "assistant", "content": [CALL, CALL]}, USER]},
        "messages[1]: two calls have the id '1'",
    ),
    (
        {"messages": [USER, USE, {"role": "user", "content": [RESULT, RESULT]}]},
        "messages[2].content[1]: second tool_result for the call '1'",
    ),
    (
        {"messages": [USER, USE, {"role": "user", "content": [{**RESULT, "images": [PDF]}]}]},
        "messages[2].content[0].images[0]: expected a whole image of type image/gif",
    ),
    (
        {"messages": [{"role": "user", "content": [{**PDF, "mimeType": "png"}]}]},
        "messages[0].content[0]: expected a media type such as image/png, got 'png'",
    ),
    (
        {"messages": [{"role": "user", "content": [{**PDF, "data": ""}]}]},
        "messages[0].content[0]: expected the data of an image in base64",
    ),
    (
        {"prompt": "a", "provider": {"type": "openai", "hasBearerTokenProvider": True}, "model": "m"},
        "provider.hasBearerTokenProvider: only sessions ask for tokens, expected a current bearerToken",
    ),
)


async def test_what_cannot_be_honoured_is_refused(server: RunningServer) -> None:
    with all_cases() as case:
        for params, expected in REFUSED:
            with case(expected):
                request = {"provider": scripted({"text": "hi"}), **params}
                error = await server.wire.error_of("jumpseat.complete", request)
                assert expected in error["message"]


async def test_a_choice_that_the_provider_cannot_express_and_tools_that_are_not_sent_cause_warnings(
    tmp_path: Path,
) -> None:
    declared = """
def parse_chat(data):
    return {"status": "success", "output": {"content": "Hi."}}
ADAPTER = {"url": "%s", "opts": {"stream": False}, "handlers": {"parse_chat": parse_chat}}
"""
    answer = {"candidates": [{"content": {"parts": [{"text": "Hi."}]}, "finishReason": "STOP"}]}
    adapters = tmp_path / "home" / "adapters"
    adapters.mkdir(parents=True)
    async with ModelServer(json_reply(answer), json_reply({})) as model:
        (adapters / "mine.py").write_text(declared % model.url)
        async with running_server(tmp_path) as ours:
            params = {"model": "m", "prompt": "a", "tools": [TOOL], "toolChoice": {"parallel": False}}
            gemini = await ours.wire.call("jumpseat.complete", {**params, "provider": provider("gemini", model)})
            mine = await ours.wire.call("jumpseat.complete", {**params, "adapter": "mine"})
    assert gemini["warnings"] == [
        "m may call several tools at once, because its provider has no setting for parallel: false."
    ]
    assert [warning.partition(":")[0] for warning in mine["warnings"]] == ["Tools are not sent to the model"]


async def test_two_running_streams_cannot_have_one_id(tmp_path: Path) -> None:
    head = b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
    async with ModelServer(event_stream(head, ending="hang")) as model, running_server(tmp_path) as ours:
        params = {"provider": provider("openai", model), "model": "m", "prompt": "hi"}
        await ours.wire.ask("jumpseat.complete", {**params, "stream": True, "streamId": "s"})
        await ours.wire.until(lambda message: message.get("method") == "jumpseat.complete.event")
        own = {"provider": scripted({"text": "hi"}), "prompt": "a", "stream": True}
        error = await ours.wire.error_of("jumpseat.complete", {**own, "streamId": "s"})
        other = await ours.wire.call("jumpseat.complete", {**own, "streamId": "t"})
        await ours.wire.hang_up()
        with anyio.fail_after(WAIT_S):
            # A client that has left ends its calls.
            await model.wait_for_hang_up()
    assert error["message"] == "streamId 's' belongs to another running request"
    assert other["text"] == "hi"


@pytest.fixture
async def server(tmp_path: Path) -> Any:
    async with running_server(tmp_path) as running:
        yield running


async def test_a_declared_adapter_whose_handlers_do_everything_streams_blocks_too(tmp_path: Path) -> None:
    recording = event_stream((DATA / "oracle" / "tools.sse").read_bytes())
    async with ModelServer(recording, recording) as server:
        adapters = tmp_path / "home" / "adapters"
        adapters.mkdir(parents=True)
        code = (DATA / "adapters" / "oracle.py").read_text()
        (adapters / "oracle.py").write_text(f"{code}\n\nADAPTER['url'] = {server.url!r}\n")
        async with running_server(tmp_path) as ours:
            question: JsonObject = {"role": "user", "content": "Add."}
            add: JsonObject = {"type": "function", "function": {"name": "add", "description": "Add numbers."}}
            now: JsonObject = {"type": "function", "function": {"name": "now", "description": "Get the time."}}
            params: JsonObject = {"adapter": "oracle", "model": "m", "tools": [add, now], "stream": True}
            first = await ours.wire.call("jumpseat.complete", {**params, "messages": [question], "streamId": "s"})
            calls = [block for block in first["blocks"] if block["type"] == "tool_use"]
            results = [{"type": "tool_result", "toolUseId": call["toolUseId"], "text": "3"} for call in calls]
            messages = [
                question,
                {"role": "assistant", "blocks": first["blocks"]},
                {"role": "user", "blocks": results},
            ]
            await ours.wire.call("jumpseat.complete", {**params, "messages": messages, "streamId": "t"})

    assert [(call["toolName"], call["input"]) for call in calls] == [("add", {"a": 1}), ("now", {})]
    events = notified(ours.wire, "s")
    assert [event["block"] for event in events if "block" in event] == first["blocks"]
    assert joined(events, "text_delta", "text") == first["text"] == "I ask twice."
    assert "3" in json.dumps(server.requests[1].json["talk"])


async def test_a_provider_that_refuses_tools_gets_them_as_text_from_then_on(tmp_path: Path) -> None:
    refusal = json_reply({"error": {"message": "m does not support tools"}}, status=400)
    call = '<tools><tool name="weather"><city>Bonn</city></tool></tools>'
    answer = json_reply({"choices": [{"message": {"content": call}, "finish_reason": "stop"}]})
    async with ModelServer(refusal, answer, answer) as server, running_server(tmp_path) as ours:
        params = {"provider": provider("openai", server), "model": "m", "prompt": "hi", "tools": [WEATHER]}
        first = await ours.wire.call("jumpseat.complete", params)
        second = await ours.wire.call("jumpseat.complete", params)

    (block,) = first["blocks"]
    assert (block["toolName"], block["input"], first["stopReason"]) == ("weather", {"city": "Bonn"}, "tool_use")
    (warning,) = first["warnings"]
    assert warning.startswith("m rejects tools (")
    assert (second["blocks"][0]["input"], second["warnings"]) == (block["input"], [])
    assert ["tools" in request.json for request in server.requests] == [True, False, False]
