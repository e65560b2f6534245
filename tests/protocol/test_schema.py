"""The schema of the protocol: it is complete, up to date, and agrees with the types."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, Final, cast

import pytest

from jumpseat_protocol.events import EVENT_TYPES, Event, Payload
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.schema import DIALECT, encoded
from jumpseat_protocol.server_requests import SERVER_REQUESTS
from jumpseat_protocol.wire import WireModel
from tests.protocol.json_schema import SCHEMA_FILE, Document
from tests.protocol.samples import VARIANTS, sample
from tests.support.cases import check_each
from tests.support.commands import run_command

# The file is compared with the types below: deriving it from them takes a second.
if os.environ.get("UPDATE_SCHEMA"):
    # Before anything reads it, and at once: the tests run in several processes.
    written = SCHEMA_FILE.with_suffix(f".{os.getpid()}")
    written.write_bytes(encoded())
    written.replace(SCHEMA_FILE)
SCHEMA: Final = json.loads(SCHEMA_FILE.read_bytes())
DOCUMENT: Final = Document(SCHEMA)
STRICT: Final = Document(SCHEMA, strict=True)

# All models, by the section of the document, the method and the part.
Spot = tuple[str, str, str]
MODELS: Final[dict[Spot, Any]] = {
    (section, name, part): model
    for section, table in (("clientRequests", CLIENT_REQUESTS), ("serverRequests", SERVER_REQUESTS))
    for name, row in table.items()
    for part, model in (("params", row.params), ("result", row.result))
    if isinstance(model, type) and issubclass(model, WireModel)
}
# One location for each type: the locations of types in the document have their own test.
FROM_CLIENTS: Final[dict[Any, Spot]] = {
    model: spot
    for spot, model in MODELS.items()
    if (spot[0] == "clientRequests") == (spot[2] == "params") and spot[1] != "session.create"
}
# Free-form in the type, events in the schema; real events are checked below.
HOLDING_EVENTS: Final = ("session.sendAndWait", "session.eventLog.read", "sessions.readPersistedEvents")
FROM_THE_SERVER: Final[dict[Any, Spot]] = {
    model: spot
    for spot, model in MODELS.items()
    if (spot[0] == "clientRequests") == (spot[2] == "result") and spot[1] not in HOLDING_EVENTS
}


def inner_schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Yield ``value`` and all schemas in it."""
    if isinstance(value, dict):
        values = cast("dict[str, Any]", value)
        yield values
        for item in values.values():
            yield from inner_schemas(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from inner_schemas(item)


def test_the_schema_in_the_repository_is_up_to_date() -> None:
    fresh = SCHEMA_FILE.exists() and SCHEMA_FILE.read_bytes() == encoded()
    assert fresh, (
        f"{SCHEMA_FILE.name} is out of date: run UPDATE_SCHEMA=1 make test ARGS=tests/protocol/test_schema.py"
    )


def test_the_schema_describes_every_type_request_and_member() -> None:
    owners: dict[str, Any] = {"the document": {**SCHEMA, "$defs": {}}, **SCHEMA["$defs"]}
    undescribed = [
        f"{owner}: {name}"
        for owner, schema in owners.items()
        for inner in inner_schemas(schema)
        if inner.get("type") == "object"
        for name, member in inner.get("properties", {}).items()
        if not (member.get("description") or DOCUMENT.resolved(member).get("description"))
    ]
    assert undescribed == []
    assert [name for name, schema in SCHEMA["$defs"].items() if not schema.get("description")] == []


def test_the_schema_has_every_method_event_and_notification() -> None:
    assert DOCUMENT.root["$schema"] == DIALECT
    assert DOCUMENT.at("clientRequests")["properties"].keys() == CLIENT_REQUESTS.keys()
    assert DOCUMENT.at("serverRequests")["properties"].keys() == SERVER_REQUESTS.keys()
    assert DOCUMENT.at("events")["properties"].keys() == EVENT_TYPES.keys()
    assert DOCUMENT.at("notifications")["properties"].keys() == {
        "session.event",
        "session.lifecycle",
        "gitHubTelemetry.event",
        "jumpseat.complete.event",
        "shell.output",
        "shell.exit",
        "$/cancelRequest",
    }


def reference(schema: dict[str, Any]) -> str:
    """Return the reference of a schema that consists of one and a description."""
    assert schema.keys() == {"description", "allOf"}
    return schema["allOf"][0]["$ref"]


def test_every_method_refers_to_the_definitions_of_its_types() -> None:
    # A type that goes both ways has a stricter definition for what the server sends.
    wrong = {
        spot: at
        for spot, model in MODELS.items()
        if (at := reference(DOCUMENT.at(*spot)).removeprefix("#/$defs/")).removesuffix("Output") != model.__name__
    }
    assert wrong == {}


def test_every_definition_has_a_plain_name_and_is_used() -> None:
    named = {inner["$ref"].rpartition("/")[2] for inner in inner_schemas(DOCUMENT.root) if "$ref" in inner}
    assert named == DOCUMENT.root["$defs"].keys()
    assert [name for name in named if not re.fullmatch("[A-Z][A-Za-z0-9]*", name)] == []


def test_descriptions_are_the_docstrings_with_wire_names() -> None:
    definitions = DOCUMENT.root["$defs"]
    assert (
        definitions["SessionSendResult"]["description"]
        == "`messageId` is the id that the `user.message` event will have."
    )
    assert definitions["UserMessageData"]["description"].startswith("`content` is the prompt as sent, ")
    texts = [
        inner["description"] for inner in inner_schemas(DOCUMENT.root) if isinstance(inner.get("description"), str)
    ]
    assert [text for text in texts if "``" in text or "\n\n\n" in text or text != text.strip()] == []


@pytest.mark.thorough
def test_params_that_the_server_accepts_match_the_schema_with_null_for_absent() -> None:
    def check(spot: Spot) -> None:
        model = MODELS[spot]
        optional = [field.alias or name for name, field in model.model_fields.items() if not field.is_required()]
        for variant in range(VARIANTS):
            bare = sample(model, variant, optional=False)
            given = bare.model_dump(mode="json", by_alias=True, exclude_unset=True)
            for value in (sample(model, variant).wire(), given, {**given, **dict.fromkeys(optional)}):
                assert DOCUMENT.problems(DOCUMENT.at(*spot), value) == []

    check_each(FROM_CLIENTS, check)


def test_params_that_the_server_rejects_do_not_match_the_schema() -> None:
    def check(spot: Spot) -> None:
        fields = MODELS[spot].model_fields.items()
        required = [
            field.alias or name for name, field in fields if field.is_required() and field.annotation is not Any
        ]
        whole = sample(MODELS[spot]).wire()
        for name in required:
            assert DOCUMENT.problems(
                DOCUMENT.at(*spot), {key: value for key, value in whole.items() if key != name}
            )
            assert DOCUMENT.problems(DOCUMENT.at(*spot), {**whole, name: None})

    check_each(FROM_CLIENTS, check)


@pytest.mark.thorough
def test_messages_of_the_server_match_the_schema_without_unknown_fields() -> None:
    def check(spot: Spot) -> None:
        for variant in range(VARIANTS):
            for optional in (True, False):
                value = sample(MODELS[spot], variant, optional=optional).wire()
                assert STRICT.problems(STRICT.at(*spot), value) == []

    check_each(FROM_THE_SERVER, check)


@pytest.mark.thorough
def test_every_event_matches_the_schema_without_unknown_fields() -> None:
    def check(payload: type[Payload]) -> None:
        for variant in range(VARIANTS):
            for optional in (True, False):
                event = Event.of("id", "time", None, sample(payload, variant, optional=optional)).wire()
                assert STRICT.problems(STRICT.at("events", payload.type), event) == []

    check_each(EVENT_TYPES, check)


def test_the_schema_marks_ephemeral_events() -> None:
    kept = {"id": "1", "timestamp": "t", "parentId": None, "type": "assistant.turn_end", "data": {"turnId": "0"}}
    lost = {**kept, "type": "assistant.idle", "data": {}}
    assert DOCUMENT.problems(DOCUMENT.at("events", "assistant.turn_end"), kept) == []
    assert DOCUMENT.problems(DOCUMENT.at("events", "assistant.idle"), lost) == [": 'ephemeral' is missing"]
    assert DOCUMENT.problems(DOCUMENT.at("events", "assistant.idle"), {**lost, "ephemeral": True}) == []


def test_the_command_has_no_options(capsys: pytest.CaptureFixture[str]) -> None:
    for argument, kind in (("--stdio", "unknown option"), ("twice", "unexpected argument")):
        with pytest.raises(SystemExit):
            run_command(["schema", argument])
        assert capsys.readouterr().err == f"error: {kind} {argument!r}\n"
