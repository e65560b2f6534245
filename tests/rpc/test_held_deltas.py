"""Deltas that wait for a client are joined by message, and states are replaced by later ones."""

from __future__ import annotations

import tracemalloc

import pytest

from jumpseat.rpc.connection import HeldDeltas
from jumpseat_protocol.events import (
    Event,
    EventPayload,
    MessageDelta,
    ReasoningDelta,
    ToolCallDelta,
    ToolExecutionPartialResult,
    ToolExecutionProgress,
    TurnStart,
)


def event(payload: EventPayload) -> Event:
    return Event.of("id", "now", None, payload)


def test_the_deltas_of_each_message_become_one_and_nothing_is_lost() -> None:
    held = HeldDeltas()
    payloads: list[EventPayload] = [
        ReasoningDelta(reasoning_id="r", delta_content="think "),
        MessageDelta(message_id="m", delta_content="one "),
        ReasoningDelta(reasoning_id="r", delta_content="more"),
        MessageDelta(message_id="m", delta_content="two "),
        ToolCallDelta(tool_call_id="c", input_delta='{"a"', tool_name="t"),
        ToolCallDelta(tool_call_id="c", input_delta=": 1}", tool_name="t"),
        ToolExecutionPartialResult(tool_call_id="c", partial_output="first"),
        ToolExecutionPartialResult(tool_call_id="c", partial_output="first second"),
        ToolExecutionProgress(tool_call_id="c", progress_message="half"),
        ToolExecutionProgress(tool_call_id="c", progress_message="done"),
    ]
    for payload in payloads:
        assert held.hold("s", event(payload))
    assert held.hold("other", event(MessageDelta(message_id="m", delta_content="else")))
    assert not held.hold("s", event(TurnStart(turn_id="0")))
    assert held.size == len("think more" + "one two " + '{"a": 1}' + "first second" + "done" + "else")
    assert [(session, joined.payload) for session, joined in held.take("s")] == [
        ("s", ReasoningDelta(reasoning_id="r", delta_content="think more")),
        ("s", MessageDelta(message_id="m", delta_content="one two ")),
        ("s", ToolCallDelta(tool_call_id="c", input_delta='{"a": 1}', tool_name="t")),
        ("s", ToolExecutionPartialResult(tool_call_id="c", partial_output="first second")),
        ("s", ToolExecutionProgress(tool_call_id="c", progress_message="done")),
    ]
    assert [joined.payload for _, joined in held.take()] == [MessageDelta(message_id="m", delta_content="else")]
    assert held.size == 0
    assert list(held.take()) == []


@pytest.mark.thorough
def test_many_short_deltas_take_little_more_memory_than_their_text() -> None:
    held = HeldDeltas()
    tracemalloc.start()
    try:
        for number in range(110_000):
            held.hold("s", event(MessageDelta(message_id="m", delta_content=f"{number % 100_000:05}\r\n")))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held.size == 770_000
    assert taken < 4 * held.size
    ((_, joined),) = held.take()
    assert isinstance(joined.payload, MessageDelta)
    assert joined.payload.delta_content.count("\r\n") == 110_000
