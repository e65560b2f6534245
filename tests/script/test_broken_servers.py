"""The rules that always hold find what a broken server does wrong, whatever the script expects."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from jumpseat.script.play import Outcome, Playing, play
from jumpseat.script.steps import parse_script

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).with_name("broken_server.py")

FAULTS = {
    "wrong_id": r"an answer to 102, which was not asked",
    "id_as_text": r"an answer to '2', which was not asked; 2 was, which is another type",
    "result_and_error": r"the answer to 2 has both a result and an error",
    "neither": r"the answer to 2 has neither a result nor an error",
    "bad_error": r"the answer to 2 has an error without a code",
    "two_answers": r"a second answer to 2 \(session.send\)",
    "no_answer": r"step 2 \(call of session.send\): no answer within 1.5 s",
    "no_version": r'a message without "jsonrpc": "2.0"',
    "not_json": r"a body that is not JSON: \"oops\"",
    "noise": r"broken frame: header without Content-Length",
    "no_idle": r"session s-1: no session.idle after its last prompt",
    "two_idles": r"session.idle: comes a second time",
    "event_after_idle": r"assistant.turn_start: comes after session.idle",
    "open_turn": r"session.idle: the turn '0' has not ended",
    "no_tool_result": r"session.idle: calls without a result: c",
    "two_tool_results": r"tool.execution_complete: the call 'c' is not open",
    "call_not_run": r"session.idle: calls that were never run: c",
    "other_text": r"assistant.message: its text is not what its deltas said \('Hello'\)",
    "late_delta": r"assistant.message_delta: comes after its assistant.message",
    "same_event_id": r"the id the-same of an earlier event",
    "strange_session": r"session s-2: events of a session that nobody has opened",
    "event_as_request": r"session.event: a notification has no id",
    "list": r"a message is not a JSON object",
    "no_message": r"session.idle: deltas without their assistant.message: m2",
    "open_permission": r"session.idle: permission.requested p without its permission.completed",
    "permission_twice": r"permission.completed: 'p' was not asked",
    "late_call": r"external_tool.requested: comes after session.idle",
    "lost_parent": r"assistant.turn_end: the parent 'nobody', which is no event that was announced before",
}


async def played(fault: str, *more: Any) -> Outcome:
    """A script that expects nothing but answers."""
    script: dict[str, Any] = {
        "within": 1.5,
        "steps": [
            {"call": "session.create", "params": {}},
            {"call": "session.send", "params": {"sessionId": "s-1", "prompt": "go"}},
            *more,
        ],
    }
    return await play(parse_script(script, fault), fault, Playing([sys.executable, str(SERVER), fault]))


async def test_a_server_that_does_all_right_passes() -> None:
    assert (await played("right", {"events": ["session.idle"]}, {"close": True})).failures == []


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_a_broken_server_does_wrong_is_found(fault: str) -> None:
    failures = "\n".join((await played(fault)).failures)
    assert failures

    assert re.search(FAULTS[fault], failures), failures


async def test_a_request_that_nobody_waited_for_must_be_answered_too() -> None:
    request = {"id": 7, "method": "session.send", "params": {"sessionId": "s-1", "prompt": "go"}}
    script = {"steps": [{"send": request}, {"events": ["session.idle"]}]}
    outcome = await play(parse_script(script, "x"), "x", Playing([sys.executable, str(SERVER), "no_answer"]))
    assert outcome.failures == ["the request 7 (session.send) was never answered"]


async def test_an_exit_code_that_is_another_one_is_found() -> None:
    (failure,) = (await played("bad_exit", {"close": True})).failures
    assert "step 3 (close): expected exit code 0, got 3" in failure


async def test_a_server_that_does_not_go_is_found() -> None:
    (failure,) = (await played("stays", {"close": True, "within": 0.3})).failures
    assert "the server still runs 0.3 s after its client has hung up" in failure


async def test_an_unchecked_script_is_only_held_to_its_steps() -> None:
    script: dict[str, Any] = {"unchecked": True, "steps": [{"call": "session.create", "params": {}}]}
    outcome = await play(parse_script(script, "x"), "x", Playing([sys.executable, str(SERVER), "same_event_id"]))
    assert outcome.ok
