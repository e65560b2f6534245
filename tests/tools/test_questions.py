"""Questions to the user, by ``ask_user`` and by forms, over the real wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.callbacks import SILENT, THROWS, answering, server_request
from tests.support.events import data_of
from tests.support.fake_openai import MODEL, calls, fake_openai, says, texts
from tests.support.server import JsonObject, Wire, running_server, scripted
from tests.support.server import calls as scripted_call

pytestmark = pytest.mark.anyio

QUESTION = scripted_call("ask_user", question="Which?", choices=["Red", "Blue"])
ASKING = scripted(QUESTION, {"text": "{{last_tool_result}}"})


# --- ask_user -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "answer", "text"),
    [
        ({"choices": ["Red", "Blue"]}, {"answer": "Red", "wasFreeform": False}, "User selected: Red"),
        ({"choices": ["Red", "Blue"]}, {"answer": "Green", "wasFreeform": True}, "User responded: Green"),
        (
            {"choices": ["Red"], "allow_freeform": False},
            {"answer": "Red", "wasFreeform": False},
            "User selected: Red",
        ),
        ({}, {"answer": "Whatever", "wasFreeform": True}, "User responded: Whatever"),
        ({}, {"answer": ""}, "User responded: "),
    ],
)
async def test_the_model_gets_the_answer_of_the_user(
    tmp_path: Path, arguments: JsonObject, answer: JsonObject, text: str
) -> None:
    turns = [calls("ask_user", question="Which?", **arguments), says("Thanks.")]
    async with (
        fake_openai({"Ask me": turns}) as model,
        running_server(tmp_path) as server,
        answering(server.wire, {"userInput.request": [answer]}) as client,
    ):
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        session = await server.wire.create(provider, model=MODEL, requestUserInput=True)
        events = await server.wire.prompt(session, "Ask me")
    expected: JsonObject = {"question": "Which?", "allowFreeform": arguments.get("allow_freeform", True)}
    expected |= {"choices": arguments["choices"]} if "choices" in arguments else {}
    assert client.inputs("userInput.request") == [{"sessionId": session, **expected}]
    (requested,), (completed,) = data_of(events, "user_input.requested"), data_of(events, "user_input.completed")
    (completion,) = data_of(events, "tool.execution_complete")
    assert requested == {"requestId": requested["requestId"], "toolCallId": completion["toolCallId"], **expected}
    assert (completed["requestId"], completed["answer"]) == (requested["requestId"], answer["answer"])
    assert texts(model.requests[-1], "tool") == [text]
    assert data_of(events, "permission.requested") == []


async def test_a_question_can_be_answered_by_the_id_of_its_event(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, answering(server.wire, {"userInput.request": [SILENT]}):
        wire = server.wire
        session = await wire.create(ASKING, requestUserInput=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        request = await wire.event("user_input.requested")
        answer: JsonObject = {"sessionId": session, "requestId": request["data"]["requestId"]}
        answer |= {"response": {"answer": "Blue", "wasFreeform": False}}
        assert await wire.call("session.ui.handlePendingUserInput", answer) == {"success": True}
        assert await wire.call("session.ui.handlePendingUserInput", answer) == {"success": False}
        await wire.event("assistant.message", content="User selected: Blue")
        # The request to the client is cancelled.
        await wire.until(lambda message: message.get("method") == "$/cancelRequest")


async def test_without_a_handler_the_tool_is_not_offered_and_a_call_of_it_fails(tmp_path: Path) -> None:
    turns = [calls("ask_user", question="Which?"), says("I see.")]
    async with fake_openai({"Ask me": turns}) as model, running_server(tmp_path) as server:
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        session = await server.wire.create(provider, model=MODEL)
        events = await server.wire.prompt(session, "Ask me")
    assert "ask_user" not in [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    (result,) = texts(model.requests[-1], "tool")
    assert result.startswith("Tool 'ask_user' does not exist.")
    assert data_of(events, "assistant.message")[-1]["content"] == "I see."


@pytest.mark.parametrize("answer", [THROWS, {}, {"answer": 5}, "Red", None, []], ids=str)
async def test_an_error_or_an_invalid_answer_of_the_handler_fails_the_call(tmp_path: Path, answer: Any) -> None:
    async with (
        running_server(tmp_path) as server,
        answering(server.wire, {"userInput.request": [answer]}),
    ):
        session = await server.wire.create(ASKING, requestUserInput=True)
        events = await server.wire.prompt(session)
    (completion,) = data_of(events, "tool.execution_complete")
    assert completion["success"] is False
    assert data_of(events, "assistant.message")[-1]["content"].startswith("The user could not be asked.")
    assert "threw" not in str(events)
    (requested,), (completed,) = data_of(events, "user_input.requested"), data_of(events, "user_input.completed")
    assert completed == {"requestId": requested["requestId"]}


async def test_a_question_fails_with_its_client_and_the_turn_continues(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as watcher:
        session = await watcher.create(ASKING)
        async with server.connect() as leaving:
            await leaving.call(
                "session.resume", {"sessionId": session, "provider": ASKING, "requestUserInput": True}
            )
            await watcher.call("session.send", {"sessionId": session, "prompt": "go"})
            await server_request(leaving, "userInput.request")
        await watcher.event("user_input.completed")
        completion = await watcher.event("tool.execution_complete")
        await watcher.event("session.idle")
    assert completion["data"]["success"] is False


async def test_a_question_moves_to_another_client_if_its_client_dies(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as stays:
        session = await stays.create(ASKING, requestUserInput=True)
        async with answering(stays, {"userInput.request": [{"answer": "Red", "wasFreeform": False}]}):
            async with server.connect() as dies:
                await dies.call(
                    "session.resume", {"sessionId": session, "provider": ASKING, "requestUserInput": True}
                )
                await stays.call("session.send", {"sessionId": session, "prompt": "go"})
                await server_request(dies, "userInput.request")
            await stays.event("assistant.message", content="User selected: Red")
    assert len([event for event in stays.events() if event["type"] == "user_input.requested"]) == 1


async def test_an_abort_withdraws_a_question(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, answering(server.wire, {"userInput.request": [SILENT]}):
        wire = server.wire
        session = await wire.create(ASKING, requestUserInput=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        request = await server_request(wire, "userInput.request")
        requested = await wire.event("user_input.requested")
        await wire.call("session.abort", {"sessionId": session})
        await wire.event("session.idle", aborted=True)
        cancellation = await wire.until(lambda message: message.get("method") == "$/cancelRequest")
        assert cancellation["params"] == {"id": request["id"]}
        request_id = requested["data"]["requestId"]
        late = {"sessionId": session, "requestId": request_id, "response": {"answer": "Red"}}
        assert await wire.call("session.ui.handlePendingUserInput", late) == {"success": False}
    assert data_of(wire.events(), "user_input.completed") == [{"requestId": request_id}]
    assert [completion["success"] for completion in data_of(wire.events(), "tool.execution_complete")] == [False]
    assert wire.events()[-1]["type"] == "session.idle"


async def test_a_question_does_not_delay_other_calls_of_the_same_answer(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("a note\n")
    (first,), (second,) = QUESTION["tool_calls"], scripted_call("view", "call-2", path="note.txt")["tool_calls"]
    provider = scripted({"tool_calls": [first, second]}, {"text": "ok"})
    async with running_server(tmp_path) as server, answering(server.wire, {"userInput.request": [SILENT]}):
        wire = server.wire
        session = await wire.create(provider, requestUserInput=True)
        await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        completion = await wire.event("tool.execution_complete")
        await wire.call("session.abort", {"sessionId": session})
    assert (completion["data"]["toolCallId"], completion["data"]["success"]) == ("call-2", True)


async def test_a_resumed_session_asks_the_client_that_resumed_it(tmp_path: Path) -> None:
    answers = {"userInput.request": [{"answer": "Red", "wasFreeform": False}]}
    provider = scripted({"text": "-"}, QUESTION, {"text": "{{last_tool_result}}"})
    async with running_server(tmp_path) as server, answering(server.wire, answers):
        wire = server.wire
        session = await wire.create(provider)
        await wire.prompt(session)
        await wire.call("session.detach", {"sessionId": session})
        await wire.call("session.resume", {"sessionId": session, "provider": provider, "requestUserInput": True})
        events = await wire.prompt(session)
    assert data_of(events, "assistant.message")[-1]["content"] == "User selected: Red"


# --- forms --------------------------------------------------------------------------------------------------------

QUIET = scripted({"text": "-"})
FORM: JsonObject = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}


async def open_form(wire: Wire, session: str, asker: Wire | None = None) -> tuple[int, str]:
    """Open a form; returns the id of the request for it, and the id of the form."""
    request = await (asker or wire).ask("session.ui.elicitation", {"sessionId": session, **FORM})
    return request, (await wire.event("elicitation.requested"))["data"]["requestId"]


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "accept", "content": {"value": "x", "number": 1, "list": ["a"]}},
        {"action": "decline"},
        {"action": "cancel"},
    ],
)
async def test_the_outcome_of_a_form_is_returned(tmp_path: Path, answer: JsonObject) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(QUIET, requestElicitation=True)
        request, form = await open_form(wire, session)
        handled = {"sessionId": session, "requestId": form, "result": answer}
        assert await wire.call("session.ui.handlePendingElicitation", handled) == {"success": True}
        assert (await wire.response(request))["result"] == answer
        assert (await wire.event("elicitation.completed"))["data"] == {"requestId": form, **answer}


async def test_a_form_is_cancelled_if_no_client_is_left_to_show_it(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as asker:
        session = await asker.create(QUIET)
        async with server.connect() as able:
            await able.call("session.resume", {"sessionId": session, "requestElicitation": True})
            request, form = await open_form(able, session, asker)
        assert (await asker.response(request))["result"] == {"action": "cancel"}
        assert (await asker.event("elicitation.completed"))["data"] == {"requestId": form, "action": "cancel"}


async def test_a_form_is_cancelled_with_its_session(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(QUIET, requestElicitation=True)
        request, _ = await open_form(wire, session)
        await wire.call("session.shutdown", {"sessionId": session})
        assert (await wire.response(request))["result"] == {"action": "cancel"}


async def test_a_form_is_withdrawn_with_the_request_for_it(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as able:
        session = await able.create(QUIET, requestElicitation=True)
        async with server.connect() as asker:
            await asker.call("session.resume", {"sessionId": session})
            _, form = await open_form(able, session, asker)
        completed = await able.event("elicitation.completed")
        late = {"sessionId": session, "requestId": form, "result": {"action": "decline"}}
        assert await able.call("session.ui.handlePendingElicitation", late) == {"success": False}
    assert completed["data"] == {"requestId": form, "action": "cancel"}


async def test_a_resume_without_forms_changes_the_capabilities(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as first:
        session = await first.create(QUIET, requestElicitation=True)
        async with server.connect() as second:
            answer = await second.call("session.resume", {"sessionId": session})
            assert answer["capabilities"]["ui"]["elicitation"] is True
            answer = await first.call("session.resume", {"sessionId": session})
            assert answer["capabilities"]["ui"]["elicitation"] is False
            changed = await second.event("capabilities.changed")
    assert changed["data"] == {"ui": {"elicitation": False}}
    assert changed["ephemeral"] is True
