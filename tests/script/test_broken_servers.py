"""The rules of every conversation report the fault of a broken server, whatever the script expects."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from jumpseat_testkit.play import Outcome, play
from jumpseat_testkit.play_setup import PlayOptions
from jumpseat_testkit.steps import parse_script

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).with_name("broken_server.py")

FAULTS = {
    "wrong_id": r"response to 102: no request has this id",
    "string_id": r"response to '2': no request has this id; the id 2 was sent, which is of another type",
    "result_and_error": r"response to 2: expected a result or an error, got both",
    "neither": r"response to 2: expected a result or an error, got neither",
    "bad_error": r"response to 2: expected an error with an integer code and a string message, got 'no'",
    "two_responses": r"response to 2 \(session.send\): the request was already answered",
    "no_response": r"step 2 \(call session.send\): no response within 1.5 s",
    "no_version": r'message without "jsonrpc": "2.0"',
    "not_json": r"body is not JSON: \"oops\"",
    "noise": r"broken frame: a header line is neither Content-Length nor Content-Type",
    "no_idle": r"session s-1: no session.idle after the last prompt",
    "two_idles": r"session.idle: sent twice without a message of the client in between",
    "event_after_idle": r"assistant.turn_start: sent after session.idle",
    "open_turn": r"session.idle: turn '0' has not ended",
    "no_tool_result": r"session.idle: tool calls without a result: c",
    "two_tool_results": r"tool.execution_complete: tool call 'c' is not running",
    "call_not_run": r"session.idle: tool calls that were never run: c",
    "other_content": r"assistant.message: expected content to equal the joined deltas \('Hello'\)",
    "late_delta": r"assistant.message_delta: sent after its assistant.message",
    "same_event_id": r"the event id 'the-same' was used by an earlier event",
    "unopened_session": r"session s-2: events of a session that the client has not opened",
    "event_as_request": r"session.event: a notification must not have an id",
    "array": r"expected every message to be a JSON object",
    "no_message": r"session.idle: deltas without an assistant.message: m2",
    "open_permission": r"session.idle: permission.requested 'p' without permission.completed",
    "unrequested_permission": r"permission.completed: request 'p' was never made",
    "late_call": r"external_tool.requested: sent after session.idle",
    "unknown_parent": r"assistant.turn_end: expected parentId to be the id of an earlier event, got 'nobody'",
}


async def play_against(fault: str, *more: Any) -> Outcome:
    """Play a script that expects only responses against a server with ``fault``."""
    script: dict[str, Any] = {
        "within": 1.5,
        "steps": [
            {"call": "session.create", "params": {}},
            {"call": "session.send", "params": {"sessionId": "s-1", "prompt": "go"}},
            *more,
        ],
    }
    return await play(parse_script(script, fault), fault, PlayOptions([sys.executable, str(SERVER), fault]))


async def test_a_correct_server_passes() -> None:
    assert (await play_against("none", {"events": ["session.idle"]}, {"close": True})).failures == []


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_fault_of_a_broken_server_is_reported(fault: str) -> None:
    failures = "\n".join((await play_against(fault)).failures)
    assert failures

    assert re.search(FAULTS[fault], failures), failures


async def test_a_request_without_a_waiting_step_must_be_answered_too() -> None:
    request = {"id": 7, "method": "session.send", "params": {"sessionId": "s-1", "prompt": "go"}}
    script = {"steps": [{"send": request}, {"events": ["session.idle"]}]}
    outcome = await play(parse_script(script, "x"), "x", PlayOptions([sys.executable, str(SERVER), "no_response"]))
    assert outcome.failures == ["request 7 (session.send) was never answered"]


async def test_a_response_without_result_and_error_is_reported_where_an_error_is_expected() -> None:
    outcome = await play_against("neither", {"call": "session.send", "params": {}, "error": {"code": 1}})
    assert outcome.failures[0].startswith(
        'step 3 (call session.send): expected the error {"code": 1}, got the result'
    )
    assert "response to 3: expected a result or an error, got neither" in outcome.failures


async def test_a_wrong_exit_code_is_reported() -> None:
    (failure,) = (await play_against("bad_exit", {"close": True})).failures
    assert "step 3 (close): expected exit code 0, got 3" in failure


async def test_a_server_that_does_not_exit_is_reported() -> None:
    (failure,) = (await play_against("stays", {"close": True, "within": 0.3})).failures
    assert "step 3 (close): the server is still running 0.3 s after its input was closed" in failure


async def test_an_unchecked_script_fails_by_its_steps_only() -> None:
    script: dict[str, Any] = {"unchecked": True, "steps": [{"call": "session.create", "params": {}}]}
    outcome = await play(
        parse_script(script, "x"), "x", PlayOptions([sys.executable, str(SERVER), "same_event_id"])
    )
    assert outcome.ok
