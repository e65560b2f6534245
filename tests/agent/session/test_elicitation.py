"""Forms, and the capability of a session to show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.session.forms import shown_form
from jumpseat.errors import InvalidRequestError
from tests.support.cases import all_cases
from tests.support.server import running_server, scripted

pytestmark = pytest.mark.anyio

QUIET = scripted({"text": "-"})
SCHEMA = {"type": "object", "properties": {"confirmed": {"type": "boolean"}}}


async def test_a_form_is_shown_and_its_first_answer_is_returned(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(QUIET, requestElicitation=True)
        form = await wire.ask(
            "session.ui.elicitation", {"sessionId": session, "message": "Sure?", "requestedSchema": SCHEMA}
        )
        shown = await wire.event("elicitation.requested", session=session)
        assert (shown["data"]["message"], shown["data"]["requestedSchema"]) == ("Sure?", SCHEMA)
        answer = {
            "sessionId": session,
            "requestId": shown["data"]["requestId"],
            "result": {"action": "accept", "content": {"confirmed": True}},
        }
        method = "session.ui.handlePendingElicitation"
        assert await wire.call(method, answer) == {"success": True}
        assert (await wire.response(form))["result"] == {"action": "accept", "content": {"confirmed": True}}
        assert await wire.call(method, answer) == {"success": False}
        completion = await wire.event("elicitation.completed", session=session)
    assert completion["data"] == {
        "requestId": shown["data"]["requestId"],
        "action": "accept",
        "content": {"confirmed": True},
    }


async def test_a_form_is_refused_if_no_client_can_show_it(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(QUIET)
        error = await server.wire.error_of(
            "session.ui.elicitation", {"sessionId": session, "message": "?", "requestedSchema": SCHEMA}
        )
    assert "elicitation" in error["message"]


async def test_clients_are_notified_when_forms_become_possible_or_impossible(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as first:
        session = await first.create(QUIET)
        async with server.connect() as second:
            answer = await second.call("session.resume", {"sessionId": session, "requestElicitation": True})
            assert answer["capabilities"]["ui"]["elicitation"] is True
            joined = await first.event("capabilities.changed", session=session)
            assert joined["data"] == {"ui": {"elicitation": True}}
            position = len(first.messages)
        left = await first.event("capabilities.changed", session=session, since=position)
        assert left["data"] == {"ui": {"elicitation": False}}


async def test_a_direct_handler_of_mode_switches_is_removed_once_by_its_handle(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        here = {"sessionId": await server.wire.create(scripted({"text": "Hello!"}))}
        handle = await server.wire.call("session.ui.registerDirectAutoModeSwitchHandler", here)
        other = await server.wire.call("session.eventLog.registerInterest", here | {"eventType": "command.queued"})
        assert handle["handle"] != other["handle"]
        for given, expected in ((other, False), (handle, True), (handle, False), ({"handle": "nobody"}, False)):
            answer = await server.wire.call("session.ui.unregisterDirectAutoModeSwitchHandler", here | given)
            assert answer == {"unregistered": expected}


async def test_an_open_form_is_cancelled_with_its_session(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(QUIET, requestElicitation=True)
        form = {"sessionId": session, "message": "Sure?", "requestedSchema": SCHEMA}
        request_id = await server.wire.ask("session.ui.elicitation", form)
        await server.wire.event("elicitation.requested")
        await server.wire.call("session.delete", {"sessionId": session})
        assert (await server.wire.response(request_id))["result"] == {"action": "cancel"}


NO_FORMS: dict[str, Any] = {
    "a field that is no object": {"properties": {"a": "text"}},
    "fields that are no object": {"properties": "abc"},
    "required fields that are no array": {"properties": {"a": {"type": "string"}}, "required": 5},
    "a title that is an object": {"properties": {"a": {"title": {"x": 1}}}},
    "choices that are objects": {"properties": {"a": {"enum": [{"b": 1}]}}},
    "titled choices without a value": {"properties": {"a": {"oneOf": [{"title": "A"}]}}},
    "choices of an array that are objects": {"properties": {"a": {"type": "array", "items": {"enum": [[]]}}}},
    "a default that is an object": {"properties": {"a": {"default": {"b": 1}}}},
    "a length that is a text": {"properties": {"a": {"minLength": "1"}}},
    "a description without an end": {"properties": {"a": {"description": "x" * 70_000}}},
    "very many fields": {"properties": {f"field-{number}": {} for number in range(6000)}},
    "very deep": {"properties": {"a": {"items": json.loads('{"a":' * 300 + "1" + "}" * 300)}}},
}


def test_a_schema_that_clients_cannot_show_is_refused() -> None:
    with all_cases() as case:
        for name, schema in NO_FORMS.items():
            with case(name), pytest.raises(InvalidRequestError, match="form"):
                shown_form({"type": "object", **schema})


def test_a_form_keeps_what_people_see_and_loses_members_without_a_value() -> None:
    field = {
        "type": "array",
        "title": "Colours",
        "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
        "default": ["r"],
        "x-own": {"anything": [1]},
    }
    form = {"type": "object", "properties": {"colours": field}, "required": ["colours"]}
    given = {**form, "properties": {"colours": {**field, "description": None}}, "title": None}
    assert shown_form(given) == form
