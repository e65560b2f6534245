"""``responseFormat``: the last answer of a run matches the requested schema, or the run ends with an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.events import data_of
from tests.support.model_server import ModelServer, Reply, event_stream, json_reply
from tests.support.server import JsonObject, Wire, running_server, scripted

pytestmark = pytest.mark.anyio

CITY: Final[JsonObject] = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 2}, "population": {"type": "number"}},
    "required": ["city"],
}
GOOD: Final = '{"city": "Bonn"}'
TOOL: Final = {"name": "add", "description": "", "parameters": {"type": "object"}, "skipPermission": True}


def form(schema: JsonObject = CITY, **more: Any) -> JsonObject:
    return {"responseFormat": {"type": "json_schema", "jsonSchema": {"name": "place", "schema": schema, **more}}}


async def run_prompt(wire: Wire, session: str, **more: Any) -> list[JsonObject]:
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "Where?", **more})
    await wire.event("session.idle", session=session, since=since)
    return wire.events(session, since=since)


def messages(*blocks: JsonObject) -> Reply:
    reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    return json_reply({"type": "message", "content": list(blocks), "stop_reason": reason})


def use(name: str, given: JsonObject, number: int = 1) -> JsonObject:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}


async def test_a_matching_answer_ends_the_run_unchanged(tmp_path: Path) -> None:
    async with running_server(tmp_path) as ours:
        session = await ours.wire.create(scripted({"text": GOOD}))
        events = await run_prompt(ours.wire, session, **form())

    assert [message["content"] for message in data_of(events, "assistant.message")] == [GOOD]
    assert not data_of(events, "session.error")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ('{"city": "B", "population": "many"}', "/population: 'many' is not of type 'number'"),
        ("{}", "the answer: 'city' is a required property"),
        ("In Bonn.", "the answer is not JSON"),
    ],
)
async def test_a_model_is_asked_once_to_correct_a_violation(tmp_path: Path, answer: str, problem: str) -> None:
    async with running_server(tmp_path) as ours:
        session = await ours.wire.create(scripted({"text": answer}, {"text": GOOD}))
        events = await run_prompt(ours.wire, session, **form())

    told = data_of(events, "user.message")[1]
    assert told["source"] == "response_format"
    assert problem in told["content"]
    assert data_of(events, "assistant.message")[-1]["content"] == GOOD
    assert not data_of(events, "session.error")


async def test_a_second_violation_ends_the_run_with_a_specific_error(tmp_path: Path) -> None:
    async with running_server(tmp_path) as ours:
        wire = ours.wire
        session = await wire.create(scripted({"text": "{}"}, {"text": '{"city": 3}'}, {"text": "Hello"}))
        events = await run_prompt(wire, session, **form())
        # The session continues, and the format applied to one message.
        after = await run_prompt(wire, session)

    (error,) = data_of(events, "session.error")
    assert error["errorType"] == "response_format"
    assert "/city: 3 is not of type 'string'" in error["message"]
    assert len(data_of(events, "assistant.message")) == 2
    assert [message["content"] for message in data_of(after, "assistant.message")] == ["Hello"]


async def test_a_model_that_refuses_is_not_asked_again(tmp_path: Path) -> None:
    async with running_server(tmp_path) as ours:
        session = await ours.wire.create(scripted({"text": "I will not.", "stop_reason": "refusal"}))
        events = await run_prompt(ours.wire, session, **form())

    (error,) = data_of(events, "session.error")
    assert (error["errorType"], "refused" in error["message"]) == ("response_format", True)


@pytest.mark.parametrize("taken_back", [{"type": "text"}, None])
async def test_a_session_can_have_a_format_for_all_answers(tmp_path: Path, taken_back: JsonObject | None) -> None:
    reply = json_reply({"choices": [{"message": {"content": GOOD}, "finish_reason": "stop"}]})
    async with ModelServer(*[reply] * 6) as server, running_server(tmp_path) as ours:
        wire = ours.wire
        provider = {"type": "openai", "baseUrl": server.url}
        session = await wire.create(provider, model="m")
        await run_prompt(wire, session)
        await wire.call("session.options.update", {"sessionId": session, **form()})
        await run_prompt(wire, session)
        await run_prompt(wire, session, responseFormat={"type": "text"})
        await wire.call("session.destroy", {"sessionId": session})
        await wire.call("session.resume", {"sessionId": session, "provider": provider, "model": "m"})
        await run_prompt(wire, session)
        await wire.call("session.options.update", {"sessionId": session, "responseFormat": taken_back})
        await run_prompt(wire, session)
        await wire.call("session.options.update", {"sessionId": session, "streaming": True})
        await run_prompt(wire, session)

    wanted = ["response_format" in request.json for request in server.requests]
    assert wanted == [False, True, False, True, False, False]


async def test_an_invalid_schema_is_refused_with_its_location(tmp_path: Path) -> None:
    wrong = form({"type": "object", "properties": {"a": {"type": "nope"}}})
    async with running_server(tmp_path) as ours:
        session = await ours.wire.create(scripted({"text": "fine"}))
        for method, params in (
            ("session.send", {"sessionId": session, "prompt": "go"}),
            ("session.options.update", {"sessionId": session}),
            ("session.create", {"provider": scripted()}),
        ):
            error = await ours.wire.error_of(method, {**params, **wrong})
            assert error["code"] == -32003
            assert error["message"].startswith("responseFormat.jsonSchema.schema.properties.a.type ")
        assert data_of(await run_prompt(ours.wire, session), "assistant.message")[0]["content"] == "fine"


@pytest.mark.parametrize(("reference", "problem"), [("URL", "unresolvable reference"), ("#", "to itself")])
async def test_schemas_are_never_fetched_and_references_are_limited(
    tmp_path: Path, reference: str, problem: str
) -> None:
    async with ModelServer() as elsewhere, running_server(tmp_path) as ours:
        session = await ours.wire.create(scripted({"text": GOOD}))
        schema = {"$ref": f"{elsewhere.url}/schema" if reference == "URL" else reference}
        events = await run_prompt(ours.wire, session, **form(schema))

    (error,) = data_of(events, "session.error")
    assert (error["errorType"], problem in error["message"]) == ("response_format", True)
    assert elsewhere.requests == []


# --- requests to providers ----------------------------------------------------------------------------------------


async def test_models_of_anthropic_with_structured_output_get_the_schema_in_their_field(
    tmp_path: Path,
) -> None:
    async with ModelServer(messages({"type": "text", "text": GOOD})) as server, running_server(tmp_path) as ours:
        session = await ours.wire.create({"type": "anthropic", "baseUrl": server.url}, model="claude-sonnet-4-5")
        await run_prompt(ours.wire, session, **form())

    (request,) = server.requests
    city = {"type": "object", "properties": {"city": {"type": "string"}, "population": {"type": "number"}}}
    schema = {**city, "required": ["city"], "additionalProperties": False}
    assert request.json["output_config"] == {"format": {"type": "json_schema", "schema": schema}}


async def test_without_a_field_for_schemas_the_answer_is_a_hidden_forced_tool(tmp_path: Path) -> None:
    replies = [
        messages(use("add", {}), use("final_answer", {"city": "guess"}, 2)),
        messages({"type": "text", "text": "Well:"}, use("final_answer", {"city": "B"}, 3)),
        messages(use("final_answer", {"city": "Bonn"}, 4)),
        messages({"type": "text", "text": "Yes."}),
    ]
    async with ModelServer(*replies) as server, running_server(tmp_path) as ours:
        wire = ours.wire
        session = await wire.create(
            {"type": "anthropic", "baseUrl": server.url},
            model="claude-3-7-sonnet-latest",
            streaming=True,
            tools=[TOOL],
            availableTools=["add"],
        )
        await wire.call("session.send", {"sessionId": session, "prompt": "Where?", **form(description="A city")})
        call = await wire.event("external_tool.requested", session=session)
        answer = {"sessionId": session, "requestId": call["data"]["requestId"], "result": "3"}
        await wire.call("session.tools.handlePendingToolCall", answer)
        await wire.event("session.idle", session=session)
        events = wire.events(session)
        await run_prompt(wire, session)

    bodies = [request.json for request in server.requests]
    assert [body.get("tool_choice") for body in bodies] == [*[{"type": "any"}] * 3, None]
    final = bodies[0]["tools"][-1]
    assert (final["name"], final["input_schema"]) == ("final_answer", CITY)
    assert "A city" in final["description"]
    assert all("output_config" not in body for body in bodies)
    assert [tool["name"] for tool in bodies[3]["tools"]] == ["add"]
    contents = [
        json.loads(message["content"]) for message in data_of(events, "assistant.message") if message["content"]
    ]
    assert contents == [{"city": "B"}, {"city": "Bonn"}]
    assert "/city: 'B' is too short" in data_of(events, "user.message")[1]["content"]
    assert [start["toolName"] for start in data_of(events, "tool.execution_start")] == ["add"]
    assert "final_answer" not in json.dumps(events)
    deltas = "".join(delta["deltaContent"] for delta in data_of(events, "assistant.message_delta"))
    assert deltas.endswith('{"city":"Bonn"}')
    assert "final_answer" not in json.dumps(bodies[3])


async def test_an_answer_that_is_not_an_object_is_wrapped_for_the_tool_and_unwrapped(tmp_path: Path) -> None:
    schema = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "number"}}}
    reply = messages(use("final_answer", {"answer": [1, 2]}))
    async with ModelServer(reply) as server, running_server(tmp_path) as ours:
        provider = {"type": "anthropic", "baseUrl": server.url}
        session = await ours.wire.create(provider, model="claude-3-haiku", availableTools=[])
        events = await run_prompt(ours.wire, session, **form(schema))

    (body,) = (request.json for request in server.requests)
    assert body["tool_choice"] == {"type": "tool", "name": "final_answer"}
    assert body["tools"][0]["input_schema"] == {
        "type": "object",
        "properties": {"answer": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
        "required": ["answer"],
        "$defs": {"n": {"type": "number"}},
    }
    assert [message["content"] for message in data_of(events, "assistant.message")] == ["[1,2]"]


@pytest.mark.parametrize(
    ("model", "tools", "field"),
    [("gemini-2.5-pro", [], True), ("gemini-2.5-pro", ["view"], False), ("gemini-3-pro", ["view"], True)],
)
async def test_gemini_gets_the_schema_unless_its_model_cannot_combine_it_with_tools(
    tmp_path: Path, model: str, tools: list[str], field: bool
) -> None:
    part: JsonObject = (
        {"text": GOOD} if field else {"functionCall": {"name": "final_answer", "args": {"city": "Bonn"}}}
    )
    chunk = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    reply = event_stream(f"data: {json.dumps(chunk)}\n\n".encode())
    async with ModelServer(reply) as server, running_server(tmp_path) as ours:
        provider = {"type": "gemini", "baseUrl": server.url}
        session = await ours.wire.create(provider, model=model, streaming=True, availableTools=tools)
        events = await run_prompt(ours.wire, session, **form())

    (body,) = (request.json for request in server.requests)
    assert ("responseSchema" in body.get("generationConfig", {})) == field
    assert ("final_answer" in json.dumps(body)) != field
    assert json.loads(data_of(events, "assistant.message")[0]["content"]) == {"city": "Bonn"}
