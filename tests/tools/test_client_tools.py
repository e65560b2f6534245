"""Results of client tools: their effect on the model, the event stream and the turn."""

from __future__ import annotations

from typing import Any

import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.blocks import ImageBlock, ToolMessage, ToolResultBlock, ToolUseBlock
from jumpseat.tools.client_tools import outcome_of
from jumpseat.tools.tool import ToolOutcome, ToolStatus
from jumpseat_protocol import events
from jumpseat_protocol.sessions import ClientTool
from jumpseat_protocol.tools import HandlePendingToolCallParams
from tests.support.sessions import MadeSession, make_session

CALL = ToolUseBlock("c1", "locate", '{"b":1,"a":"x"}', {"b": 1, "a": "x"})
THREW = 'Failed to execute `locate` tool with arguments: {"b":1,"a":"x"} due to error: Error: Tool execution failed'
SCRIPT: list[dict[str, Any]] = [{"tool_calls": [{"id": "c1", "name": "locate", "arguments": {}}]}, {"text": "done"}]
TOOL = ClientTool(name="locate", skip_permission=True)


def outcome(result: Any = None, **answer: Any) -> ToolOutcome:
    """Convert an answer in wire form."""
    params = {"sessionId": "s", "requestId": "r", "result": result, **answer}
    return outcome_of(CALL, HandlePendingToolCallParams.model_validate(params))


async def run_with_answer(tasks: TaskGroup, result: Any = None, **answer: Any) -> MadeSession:
    """Run a session in which the tool is called and gives this answer."""
    made = make_session(tasks, script=SCRIPT, tools=[TOOL])
    made.send("go")
    assert made.answer_tool(await made.client.wait_for(events.ExternalToolRequested), result, **answer)
    await made.idle()
    return made


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("Paris", "Paris"),
        ("", ""),
        (" \n", " \n"),
        (None, ""),
        (0, "0"),
        (False, "false"),
        (1.5, "1.5"),
        ([], "[]"),
        ([1, "a", None], '[1,"a",null]'),
        ({}, "{}"),
        ({"b": 1, "a": {"é": None}}, '{"b":1,"a":{"é":null}}'),
        ({"resultType": "failure"}, '{"resultType":"failure"}'),
    ],
)
def test_a_plain_result_is_its_text_or_compact_json(result: Any, text: str) -> None:
    assert outcome(result) == ToolOutcome(text)


@pytest.mark.parametrize("kind", [None, "success"])
def test_an_object_with_a_text_is_a_full_result(kind: str | None) -> None:
    assert outcome({"textResultForLlm": "Paris", "resultType": kind, "ofTomorrow": 1}) == ToolOutcome("Paris")


def test_the_text_of_a_full_result_may_be_empty() -> None:
    assert outcome({"textResultForLlm": ""}) == outcome({"textResultForLlm": None}) == ToolOutcome("")


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [
        ("failure", "failure", "E"),
        ("timeout", "timeout", "E"),
        ("of_tomorrow", "failure", "E"),
        ("denied", "denied", "T"),
    ],
)
def test_an_unsuccessful_result_has_its_status_and_error_and_the_turn_continues(
    kind: str, status: ToolStatus, error: str
) -> None:
    assert outcome({"textResultForLlm": "T", "resultType": kind, "error": "E"}) == ToolOutcome(
        "T", status=status, error=error
    )
    assert outcome({"textResultForLlm": "T", "resultType": kind}) == ToolOutcome("T", status=status, error="T")


def test_a_rejected_result_ends_the_turn() -> None:
    assert outcome({"textResultForLlm": "T", "resultType": "rejected", "error": "E"}) == ToolOutcome(
        "T", status="rejected", error="T", ends_turn=True
    )


@pytest.mark.parametrize("error", ["secret boom", ""])
def test_the_message_of_an_exception_is_not_shown_to_the_model(error: str) -> None:
    assert outcome(error=error) == ToolOutcome(THREW, status="failure", error="Tool execution failed")


def test_an_error_wins_over_a_result() -> None:
    assert outcome("fine", error="boom").status == "failure"


@pytest.mark.parametrize(
    "result",
    [
        {"textResultForLlm": 7},
        {"textResultForLlm": "x", "resultType": ["success"]},
        {"textResultForLlm": 7, "binaryResultsForLlm": "AAAA"},
        {"textResultForLlm": "x", "toolTelemetry": "x"},
    ],
)
def test_a_malformed_result_object_is_a_failure(result: dict[str, Any]) -> None:
    assert outcome(result) == ToolOutcome(
        "The result of the tool `locate` is malformed.",
        status="failure",
        error="Malformed tool result",
    )


@pytest.mark.parametrize("binary", ["AAAA", [{"type": "image", "data": "AAAA"}], [7]])
def test_an_invalid_binary_result_costs_no_other_part_of_a_result(binary: Any) -> None:
    found = outcome({"textResultForLlm": "x", "binaryResultsForLlm": binary})
    assert (found.status, found.text) == ("success", "x\n[1 invalid binary result(s) left out]")


def test_images_go_to_the_model_and_other_data_to_the_event_stream() -> None:
    result = {
        "textResultForLlm": "See",
        "binaryResultsForLlm": [
            {"type": "image", "data": "AAAA", "mimeType": "image/png", "description": "A map"},
            {"type": "image", "data": "BBBB", "mimeType": "image/jpeg"},
            {"type": "resource", "data": "CCCC", "mimeType": "application/pdf", "description": "A paper"},
            {"type": "image", "data": "DDDD", "mimeType": "application/pdf"},
            {"type": "of_tomorrow", "data": "EEEE", "mimeType": "image/png"},
        ],
    }

    assert outcome(result) == ToolOutcome(
        "See",
        images=[
            ImageBlock("AAAA", "image/png", label="A map"),
            ImageBlock("BBBB", "image/jpeg", label="Image from tool locate"),
        ],
        resources=[
            events.BinaryResult(data="CCCC", mime_type="application/pdf", description="A paper", type="resource"),
            events.BinaryResult(data="DDDD", mime_type="application/pdf", type="resource"),
            events.BinaryResult(data="EEEE", mime_type="image/png", type="resource"),
        ],
    )


def test_telemetry_and_the_session_log_are_kept_apart_from_the_text() -> None:
    result = {"textResultForLlm": "T", "toolTelemetry": {"ms": 5, "n": None}, "sessionLog": "L"}

    assert outcome(result) == ToolOutcome("T", telemetry={"ms": 5, "n": None}, session_log="L")
    assert outcome({"textResultForLlm": "T", "toolTelemetry": {}}) == ToolOutcome("T")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("result", "text", "error", "answers"),
    [
        ({"resultType": "success", "textResultForLlm": "T"}, "T", None, 2),
        ({"resultType": "failure", "textResultForLlm": "T", "error": "E"}, "T", ("E", "failure"), 2),
        ({"resultType": "timeout", "textResultForLlm": "T", "error": "E"}, "T", ("E", "timeout"), 2),
        ({"resultType": "of_tomorrow", "textResultForLlm": "T", "error": "E"}, "T", ("E", "failure"), 2),
        ({"resultType": "denied", "textResultForLlm": "T"}, "T", ("T", "denied"), 2),
        ({"resultType": "rejected", "textResultForLlm": "T"}, "T", ("T", "rejected"), 1),
    ],
)
async def test_each_outcome_reaches_the_model_and_the_event_stream_as_observed(
    tasks: TaskGroup, result: dict[str, Any], text: str, error: tuple[str, str] | None, answers: int
) -> None:
    made = await run_with_answer(tasks, result)

    (completed,) = made.client.payloads(events.ToolExecutionComplete)
    assert completed.success is (error is None)
    assert completed.error == (error and events.ToolError(message=error[0], code=error[1]))
    assert ToolMessage([ToolResultBlock("c1", "locate", text, is_error=error is not None)]) in (
        made.session.conversation.messages()
    )
    assert len(made.client.payloads(events.AssistantMessage)) == answers


@pytest.mark.anyio
async def test_the_text_of_an_exception_is_in_no_event(tasks: TaskGroup) -> None:
    made = await run_with_answer(tasks, error="secret boom")

    (completed,) = made.client.payloads(events.ToolExecutionComplete)
    assert completed == events.ToolExecutionComplete(
        tool_call_id="c1",
        success=False,
        result=events.ToolResult(
            content="Failed to execute `locate` tool with arguments: {} due to error: Error: Tool execution failed"
        ),
        error=events.ToolError(message="Tool execution failed", code="failure"),
        turn_id="0",
        jumpseat_decision=events.CallDecision(by="tool"),
    )
    assert not [event for event in made.client.events if b"secret boom" in event.encode()]


@pytest.mark.anyio
async def test_all_fields_of_a_result_are_in_its_event(tasks: TaskGroup) -> None:
    made = await run_with_answer(
        tasks,
        {
            "textResultForLlm": "T",
            "toolTelemetry": {"ms": 5},
            "sessionLog": "L",
            "binaryResultsForLlm": [{"type": "image", "data": "AAAA", "mimeType": "image/png", "description": "D"}],
        },
    )

    assert made.client.payloads(events.ToolExecutionComplete) == [
        events.ToolExecutionComplete(
            tool_call_id="c1",
            success=True,
            result=events.ToolResult(
                content="T",
                binary_results_for_llm=[
                    events.BinaryResult(data="AAAA", mime_type="image/png", description="D", type="image")
                ],
            ),
            tool_telemetry={"ms": 5},
            session_log="L",
            turn_id="0",
            jumpseat_decision=events.CallDecision(by="tool"),
        )
    ]


@pytest.mark.anyio
async def test_the_question_names_the_call_and_is_closed_by_its_answer(tasks: TaskGroup) -> None:
    made = await run_with_answer(tasks, "Paris")

    (request,) = made.client.payloads(events.ExternalToolRequested)
    assert request == events.ExternalToolRequested(
        request_id=request.request_id,
        session_id="session-1",
        tool_call_id="c1",
        tool_name="locate",
        arguments={},
        working_directory="/project",
    )
    assert made.client.payloads(events.ExternalToolCompleted) == [
        events.ExternalToolCompleted(request_id=request.request_id)
    ]
    assert not made.answer_tool(request, "again")
    assert made.session.clients.external_calls.open() == []


def test_a_result_object_sent_as_text_is_an_object_and_any_other_text_stays() -> None:
    call = ToolUseBlock("c1", "look_up", "{}", {})

    def outcome(text: str) -> ToolOutcome:
        return outcome_of(call, HandlePendingToolCallParams(session_id="s", request_id="r", result=text))

    found = outcome('{"textResultForLlm":"2 users","toolTelemetry":{"count":2}}')
    assert (found.text, found.telemetry) == ("2 users", {"count": 2})
    for text in ('{"textResultForLlm":"a","other":1}', '{"textResultForLlm":', '{"users":2}', "plain"):
        assert outcome(text).text == text
