"""Events of every type survive the log."""

from __future__ import annotations

from typing import Any, get_args

import orjson
import pytest

from jumpseat_protocol import events
from jumpseat_protocol.permissions import PermissionRequest
from tests.protocol.samples import VARIANTS, sample
from tests.support.cases import check_each

ID = "00000000-0000-4000-8000-000000000000"
PARENT = "00000000-0000-4000-8000-000000000001"
NOW = "2026-01-01T00:00:00.000Z"
PAYLOADS = get_args(events.EventPayload)


def encoded(payload: events.EventPayload) -> dict[str, Any]:
    """Return the payload as it is read from a log."""
    return orjson.loads(events.Event.of(ID, NOW, PARENT, payload).encode())


@pytest.mark.thorough
def test_every_payload_survives_the_log() -> None:
    def check(cls: type[events.Payload]) -> None:
        for variant in range(VARIANTS):
            for optional in (True, False):
                payload = sample(cls, variant, optional=optional)
                record = encoded(payload)

                assert events.decode_payload(record["type"], record["data"]) == payload

    check_each(events.EVENT_TYPES, check)


def test_null_means_absent_in_every_payload() -> None:
    def check(cls: type[events.Payload]) -> None:
        whole, bare = encoded(sample(cls)), encoded(sample(cls, optional=False))
        nulls = {name: None for name in whole["data"] if name not in bare["data"]}

        assert events.decode_payload(cls.type, {**nulls, **bare["data"]}) == sample(cls, optional=False)

    check_each(events.EVENT_TYPES, check)


def test_fields_of_another_version_are_ignored() -> None:
    def check(cls: type[events.Payload]) -> None:
        payload = sample(cls)

        assert events.decode_payload(cls.type, {**encoded(payload)["data"], "ofTomorrow": {"a": 1}}) == payload

    check_each(events.EVENT_TYPES, check)


def test_wire_names_are_camel_case_and_unset_fields_are_left_out() -> None:
    def check(cls: type[events.Payload]) -> None:
        record = encoded(sample(cls, optional=False))

        assert not [name for name in encoded(sample(cls))["data"] if "_" in name]
        nulls = [name for name, value in record["data"].items() if value is None]
        assert nulls == (["tools"] if cls is events.SubagentSelected else [])

    check_each(events.EVENT_TYPES, check)


def test_every_type_of_event_has_its_own_name() -> None:
    assert list(events.EVENT_TYPES.values()) == list(PAYLOADS)


def test_the_envelope_marks_ephemeral_events() -> None:
    persisted = events.Event.of(ID, NOW, None, events.TurnEnd(turn_id="0"))
    ephemeral = events.Event.of(ID, NOW, PARENT, events.MessageStart(message_id="m"), agent_id="agent")

    assert persisted.wire() == {
        "id": ID,
        "timestamp": NOW,
        "parentId": None,
        "type": "assistant.turn_end",
        "data": {"turnId": "0"},
    }
    assert ephemeral.wire() == {
        "id": ID,
        "timestamp": NOW,
        "parentId": PARENT,
        "type": "assistant.message_start",
        "data": {"messageId": "m"},
        "ephemeral": True,
        "agentId": "agent",
    }
    assert (persisted.type, persisted.persisted) == ("assistant.turn_end", True)
    assert (ephemeral.type, ephemeral.persisted) == ("assistant.message_start", False)


def test_an_event_is_encoded_once_as_compact_json() -> None:
    event = events.Event.of(ID, NOW, None, events.SessionInfo(info_type="x", message="é\n"))

    assert event.encode() == orjson.dumps(event.wire())
    assert event.encode() is event.encode()


def test_events_of_the_conversation_are_persisted_and_their_deltas_are_not() -> None:
    made_of = {events.UserMessage, events.AssistantMessage, events.ToolExecutionComplete, events.Abort}
    repeats = {events.MessageStart, events.MessageDelta, events.ReasoningDelta, events.ToolCallDelta}
    repeats |= {events.ToolExecutionPartialResult, events.ToolExecutionProgress}

    assert {cls.persisted for cls in made_of} == {True}
    assert {cls.persisted for cls in repeats} == {False}


@pytest.mark.parametrize(
    ("kind", "data", "kept"),
    [
        ("session.of_tomorrow", {"a": [1, None]}, {"a": [1, None]}),
        ("session.of_tomorrow", None, {}),
        ("assistant.message", {"content": "no id"}, {"content": "no id"}),
        ("assistant.message", {"messageId": 7, "content": None}, {"messageId": 7, "content": None}),
        ("assistant.message", [1], {}),
        ("user.message", "text", {}),
        (
            "session.mode_changed",
            {"newMode": "zen", "previousMode": "plan"},
            {"newMode": "zen", "previousMode": "plan"},
        ),
        (
            "permission.requested",
            {"requestId": "1", "permissionRequest": {"kind": "url", "url": "http://x"}},
            {"requestId": "1", "permissionRequest": {"kind": "url", "url": "http://x"}},
        ),
    ],
)
def test_an_unknown_or_invalid_payload_is_kept_unchanged(kind: str, data: Any, kept: dict[str, Any]) -> None:
    assert events.decode_payload(kind, data) == events.UnknownPayload(type=kind, data=kept)


@pytest.mark.parametrize("cls", get_args(PermissionRequest))
def test_every_kind_of_permission_request_survives_the_log(cls: type[PermissionRequest]) -> None:
    payload = events.PermissionRequested(request_id="1", permission_request=sample(cls, 1))
    record = encoded(payload)
    read = events.decode_payload(record["type"], record["data"])

    assert read == payload
    assert isinstance(read, events.PermissionRequested)
    assert type(read.permission_request) is cls
