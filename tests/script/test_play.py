"""Scripts with the real server: every kind of step, and what is said where one does not go as written."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from jumpseat.script.patterns import ScriptError
from jumpseat.script.play import Outcome, Playing, play
from jumpseat.script.steps import parse_script

pytestmark = pytest.mark.anyio

TOOL = {"name": "add", "description": "Add", "skipPermission": True, "parameters": {"type": "object"}}
PROVIDER = {"type": "openai", "baseUrl": "${model}", "apiKey": "none"}
CREATE: dict[str, Any] = {
    "call": "session.create",
    "params": {"provider": PROVIDER, "model": "m", "streaming": True, "tools": [TOOL]},
    "result": {"sessionId": "${session}"},
}
SEND = {"call": "session.send", "params": {"sessionId": "${session}", "prompt": "go"}}


async def played(*steps: Any, **head: Any) -> Outcome:
    head.setdefault("model", {"turns": [{"text": "Hello there."}]})
    return await play(parse_script({"within": 5, **head, "steps": list(steps)}, "test"), "test")


async def said(*steps: Any, **head: Any) -> str:
    """The one thing that did not go as written, which is the last step."""
    *before, last = steps
    (failure,) = (await played(*before, {"within": 0.5, **last}, **head)).failures
    return failure


async def test_a_whole_session_with_a_tool_goes_as_written_and_all_types_are_those_of_the_schema() -> None:
    outcome = await played(
        CREATE,
        SEND,
        {"events": ["user.message", {"type": "external_tool.requested", "data": {"requestId": "${request}"}}]},
        {
            "call": "session.tools.handlePendingToolCall",
            "params": {"sessionId": "${session}", "requestId": "${request}", "result": "3"},
            "result": {"success": True},
        },
        {"never": {"type": "session.error"}, "for": 0},
        {"events": [{"type": "assistant.message", "data": {"content": "It is 3."}}, "session.idle"]},
        {"close": True},
        strict=True,
        model={
            "turns": [
                {"reasoning": "Hm.", "tool_calls": [{"name": "add", "arguments": {"a": 1}}]},
                {"text": "It is {{last_tool_result}}.", "usage": {"input": 10, "output": 3}},
            ]
        },
    )
    assert outcome.failures == []
    assert outcome.steps == 7


async def test_a_request_of_the_server_is_answered() -> None:
    create: dict[str, Any] = {**CREATE, "params": {**CREATE["params"], "hooks": True}}
    outcome = await played(
        create,
        SEND,
        {"answer": "hooks.invoke", "params": {"hookType": "userPromptSubmitted"}, "result": {}},
        {"answer": "hooks.invoke", "params": {"hookType": "userPromptTransformed"}, "result": None},
        {"answer": "hooks.invoke", "params": {"hookType": "sessionStart"}, "error": {"code": 1, "message": "no"}},
        {"answer": "hooks.invoke", "params": {"hookType": "agentStop"}, "result": None},
    )
    assert outcome.failures == []


async def test_events_in_any_order_and_the_rest_from_the_last_of_them_on() -> None:
    outcome = await played(
        CREATE, SEND, {"events_in_any_order": ["assistant.message", "user.message"]}, {"events": ["session.idle"]}
    )
    assert outcome.failures == []


async def test_a_server_that_was_killed_has_its_sessions_afterwards() -> None:
    outcome = await played(
        CREATE,
        SEND,
        {"events": ["session.idle"]},
        {"restart": True},
        {"call": "session.resume", "params": {"sessionId": "${session}"}},
        {"close": True},
    )
    assert outcome.failures == []


async def test_files_and_settings_are_there_before_the_server_is() -> None:
    outcome = await played(
        {"set": {"name": "notes.txt"}},
        {"call": "session.create", "params": {"provider": {"type": "scripted", "script": {"turns": []}}}},
        {"call": "models.list", "result": {"models": {"$has": [{"id": "house/m"}]}}},
        files={"notes.txt": "in ${folder}"},
        config='[adapters.house]\ntype = "openai_compatible"\nbase_url = "${model}"\nmodels = ["m"]\n',
    )
    assert outcome.failures == []


async def test_broken_bytes_can_be_sent_and_their_error_waited_for() -> None:
    outcome = await played(
        {"raw": "Content-Length: 2\r\n\r\n{]"},
        {"expect": {"id": "<absent>", "error": {"code": -32700}}},
        {"call": "no.such.method", "error": {"code": -32601}},
        {"send": {"method": "nobody.listens", "params": {}}},
        {"call": "ping", "params": {"message": "x"}, "result": {"message": "pong: x"}},
    )
    assert outcome.failures == []


async def test_an_event_that_does_not_come_is_shown_beside_the_nearest_that_did() -> None:
    failure = await said(CREATE, SEND, {"events": [{"type": "assistant.message", "data": {"content": "Bye"}}]})
    assert failure.startswith('step 3 (events): no event like {"type": "assistant.message"')
    assert 'data.content: expected "Bye", got "Hello there."' in failure
    assert "<- event session.idle" in failure


async def test_an_answer_that_is_another_one_is_told_field_by_field() -> None:
    failure = await said(
        {"call": "ping"}, {"call": "ping", "params": {"message": "x"}, "result": {"message": "y", "z": 1}}
    )
    assert failure.startswith("step 2 (call of ping):\n    message: expected")
    assert 'message: expected "y", got "pong: x"' in failure
    assert "z: expected 1, got nothing" in failure


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({"call": "session.abort", "params": {"sessionId": "x"}}, "expected a result, got the error"),
        ({"call": "ping", "error": {"code": 1}}, 'expected the error {"code": 1}, got the result'),
        ({"answer": "userInput.request"}, "no such request within 0.5 s"),
        ({"expect": {"method": "nothing"}}, 'no message like {"method": "nothing"} within 0.5 s'),
        ({"never": {"id": 1}}, 'this came: {"jsonrpc": "2.0", "id": 1'),
    ],
)
async def test_what_is_said_of_a_step_that_does_not_go_as_written(step: Any, text: str) -> None:
    assert text in await said({"call": "ping"}, step)


async def test_events_besides_those_that_are_listed_count_where_only_they_may_come() -> None:
    step = {"events": ["user.message", "assistant.message", "session.idle"], "only": True}
    assert "events that are not in the list:\n    session.start" in await said(CREATE, SEND, step)
    ignore = [
        "session.start",
        "pending_messages.modified",
        "assistant.turn_start",
        "assistant.turn_end",
        "assistant.message_start",
        "assistant.message_delta",
        "assistant.usage",
        "session.usage_info",
        "assistant.idle",
    ]
    assert (await played(CREATE, SEND, {**step, "ignore": ignore})).failures == []


async def test_a_name_that_nothing_was_kept_under_is_named_with_its_step() -> None:
    with pytest.raises(ScriptError, match=r"step 1 \(call of session.send\): nothing is known as \$\{session\}"):
        await played(SEND)


async def test_a_server_that_cannot_be_run_is_named() -> None:
    script = parse_script({"steps": [{"call": "ping"}]}, "test")
    with pytest.raises(ScriptError, match="could not run '/no/such/server'"):
        await play(script, "test", Playing(["/no/such/server"]))


async def test_a_server_that_dies_is_told_with_the_end_of_its_stderr() -> None:
    script = parse_script({"steps": [{"call": "ping"}]}, "test")
    outcome = await play(script, "test", Playing(["sh", "-c", "echo out of luck >&2; exit 1"]))
    assert "the server has gone with exit code 1, its stderr ends with: out of luck" in outcome.failures[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"steps": [{"cal": "ping"}]}, r"steps\.0: a step has one of these: call, send"),
        ({"steps": [{"call": "ping", "reslt": 1}]}, "reslt"),
        ({"steps": [{"expect": "/(/"}]}, "step 1: /\\(/ is not a regular expression"),
        ({"stpes": []}, "stpes"),
    ],
)
def test_a_script_that_is_none_is_refused_with_the_place(value: Any, text: str) -> None:
    with pytest.raises(ScriptError, match=text):
        parse_script(value, "x.yaml")


async def test_no_file_is_written_outside_of_the_folder() -> None:
    with pytest.raises(ScriptError, match=r"the file '\.\./x' is not in the script's folder"):
        await played({"call": "ping"}, files={"../x": "y"})


LINES_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": asked.get("id")}
    if asked["method"] == "sum":
        print(json.dumps({"jsonrpc": "2.0", "method": "progress", "params": {"done": 0.5}}))
        answer["result"] = sum(asked["params"])
    else:
        answer["error"] = {"code": -32601, "message": "no such method: " + asked["method"]}
    if "id" in asked:
        print(json.dumps(answer), flush=True)
"""


async def test_a_server_of_another_protocol_is_played_with_in_lines() -> None:
    outcome = await played(
        {"send": {"id": "a", "method": "sum", "params": [1, 2]}},
        {"expect": {"method": "progress", "params": {"done": "<number>"}}},
        {"expect": {"id": "a", "result": 3}},
        {"call": "sum", "params": [2, 2], "result": 4},
        {"call": "difference", "error": {"code": -32601, "message": "/no such/"}},
        {"close": True},
        framing="lines",
        server=[sys.executable, "-c", LINES_SERVER],
    )
    assert outcome.failures == []
    outcome = await played(
        {"call": "sum", "params": [2, 2], "result": 5},
        framing="lines",
        server=[sys.executable, "-c", LINES_SERVER.replace('"id": asked.get("id")', '"id": 7')],
        within=0.5,
    )
    assert "an answer to 7, which was not asked" in "\n".join(outcome.failures)
