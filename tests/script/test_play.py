"""Scripts against the real server: every kind of step, and the message where a step fails."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.play import Outcome, play
from jumpseat_testkit.play_setup import PlayOptions
from jumpseat_testkit.steps import parse_script
from tests.support.forked import executable

pytestmark = pytest.mark.anyio

TOOL = {"name": "add", "description": "Add", "skipPermission": True, "parameters": {"type": "object"}}
PROVIDER = {"type": "openai", "baseUrl": "${model}", "apiKey": "none"}
CREATE: dict[str, Any] = {
    "call": "session.create",
    "params": {"provider": PROVIDER, "model": "m", "streaming": True, "tools": [TOOL]},
    "result": {"sessionId": "${session}"},
}
SEND = {"call": "session.send", "params": {"sessionId": "${session}", "prompt": "go"}}


async def play_steps(*steps: Any, **head: Any) -> Outcome:
    head.setdefault("model", {"turns": [{"text": "Hello there."}]})
    command = None if "server" in head else [executable(), "--headless", "--stdio", "--no-auto-login"]
    script = parse_script({"within": 10, **head, "steps": list(steps)}, "test")
    return await play(script, "test", PlayOptions(command))


async def only_failure(*steps: Any, **head: Any) -> str:
    """Return the failure of the last step, which is the only one."""
    (failure,) = (await play_steps(*steps, **head)).failures
    return failure


async def test_a_session_with_a_tool_passes_and_conforms_to_the_schema() -> None:
    outcome = await play_steps(
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


async def test_a_step_answers_a_request_of_the_server() -> None:
    create: dict[str, Any] = {**CREATE, "params": {**CREATE["params"], "hooks": True}}
    outcome = await play_steps(
        create,
        SEND,
        {"answer": "hooks.invoke", "params": {"hookType": "userPromptSubmitted"}, "result": {}},
        {"answer": "hooks.invoke", "params": {"hookType": "userPromptTransformed"}, "result": None},
        {"answer": "hooks.invoke", "params": {"hookType": "sessionStart"}, "error": {"code": 1, "message": "no"}},
        {"answer": "hooks.invoke", "params": {"hookType": "agentStop"}, "result": None},
    )
    assert outcome.failures == []


async def test_reading_goes_on_after_the_last_of_the_events_in_any_order() -> None:
    outcome = await play_steps(
        CREATE, SEND, {"events_in_any_order": ["assistant.message", "user.message"]}, {"events": ["session.idle"]}
    )
    assert outcome.failures == []


async def test_a_restarted_server_has_the_sessions_of_the_killed_one() -> None:
    outcome = await play_steps(
        CREATE,
        SEND,
        {"events": ["session.idle"]},
        {"restart": True},
        {"call": "session.resume", "params": {"sessionId": "${session}"}},
        {"close": True},
    )
    assert outcome.failures == []


async def test_files_and_configuration_are_written_before_the_server_starts() -> None:
    outcome = await play_steps(
        {"set": {"name": "notes.txt"}},
        {"call": "session.create", "params": {"provider": {"type": "scripted", "script": {"turns": []}}}},
        {"call": "models.list", "result": {"models": {"$has": [{"id": "house/m"}]}}},
        files={"notes.txt": "in ${folder}"},
        config='[adapters.house]\ntype = "openai_compatible"\nbase_url = "${model}"\nmodels = ["m"]\n',
    )
    assert outcome.failures == []


async def test_raw_bytes_are_sent_and_the_error_for_them_is_matched() -> None:
    outcome = await play_steps(
        {"raw": "Content-Length: 2\r\n\r\n{]"},
        {"expect": {"id": "<absent>", "error": {"code": -32700}}},
        {"call": "no.such.method", "error": {"code": -32601}},
        {"send": {"method": "nobody.listens", "params": {}}},
        {"call": "ping", "params": {"message": "x"}, "result": {"message": "pong: x"}},
    )
    assert outcome.failures == []


async def test_a_missing_event_is_reported_with_the_closest_one() -> None:
    # All events have come when the step begins, so that its short time limit does not matter.
    send = {"call": "session.send", "params": {"sessionId": "${session}", "prompt": "go", "wait": True}}
    other = {"type": "assistant.message", "data": {"content": "Bye"}}
    failure = await only_failure(CREATE, send, {"events": [other], "within": 0.5})
    assert failure.startswith('step 3 (events): no event like {"type": "assistant.message"')
    assert 'data.content: expected "Bye", got "Hello there."' in failure
    assert "<- event session.idle" in failure


QUESTION = {"type": "permission.requested", "data": {"permissionRequest": {"kind": "shell"}}}


@pytest.mark.parametrize(
    ("turns", "event"),
    [
        ([{"text": "Hello there."}], {"type": "assistant.message", "data": {"content": "Bye"}}),
        ([{"tool_calls": [{"name": "create", "arguments": {"path": "new", "file_text": ""}}]}], QUESTION),
    ],
    ids=["the run is over", "a question waits for the client"],
)
async def test_a_wrong_event_fails_once_the_server_rests_and_not_at_the_time_limit(turns: Any, event: Any) -> None:
    provider = {"type": "scripted", "script": {"turns": turns}}
    create = {
        "call": "session.create",
        "params": {"provider": provider, "requestPermission": True},
        "result": {"sessionId": "${session}"},
    }
    send = {"call": "session.send", "params": {"sessionId": "${session}", "prompt": "go"}}
    for steps in ({"events": [event]}, {"events_in_any_order": [event]}):
        outcome = await play_steps(create, send, steps, within=600)
        assert "and nothing more came for 1 s" in outcome.failures[0]
        assert "expected" in outcome.failures[0]


async def test_a_wrong_result_is_reported_field_by_field() -> None:
    failure = await only_failure(
        {"call": "ping"}, {"call": "ping", "params": {"message": "x"}, "result": {"message": "y", "z": 1}}
    )
    assert failure.startswith("step 2 (call ping):\n    message: expected")
    assert 'message: expected "y", got "pong: x"' in failure
    assert "z: expected 1, got nothing" in failure


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({"call": "session.abort", "params": {"sessionId": "x"}}, "expected a result, got the error"),
        ({"call": "ping", "error": {"code": 1}}, 'expected the error {"code": 1}, got the result'),
        ({"answer": "userInput.request", "within": 0.5}, "no matching request within 0.5 s"),
        ({"expect": {"method": "nothing"}, "within": 0.5}, 'no message like {"method": "nothing"} within 0.5 s'),
        (
            {"events_in_any_order": ["x"], "within": 0.5},
            'step 2 (events_in_any_order): no event like {"type": "x"}',
        ),
        ({"never": {"id": 1}}, 'unexpected message: {"id": 1, "jsonrpc": "2.0", "result": '),
    ],
)
async def test_a_failed_step_is_explained(step: Any, text: str) -> None:
    assert text in await only_failure({"call": "ping"}, step)


async def test_events_outside_the_list_are_reported_where_only_those_listed_are_allowed() -> None:
    step = {"events": ["user.message", "assistant.message", "session.idle"], "only": True}
    assert "unexpected events:\n    session.start" in await only_failure(CREATE, SEND, step)
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
    assert (await play_steps(CREATE, SEND, {**step, "ignore": ignore})).failures == []


async def test_a_name_without_a_value_is_reported_with_the_step() -> None:
    with pytest.raises(ScriptError, match=r"step 1 \(call session.send\): \$\{session\} has no value"):
        await play_steps(SEND)


async def test_a_command_that_cannot_be_run_is_named() -> None:
    script = parse_script({"steps": [{"call": "ping"}]}, "test")
    with pytest.raises(ScriptError, match="cannot run '/no/such/server'"):
        await play(script, "test", PlayOptions(["/no/such/server"]))


async def test_files_of_the_command_are_found_beside_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here.py").write_text("import sys; sys.exit('from here')")
    monkeypatch.chdir(tmp_path)
    ping = {"call": "ping"}
    assert "from here" in await only_failure(ping, server=[sys.executable, "here.py"])
    # A file of the script comes first.
    files = {"here.py": "import sys; sys.exit('from the script')"}
    assert "from the script" in await only_failure(ping, server=[sys.executable, "here.py"], files=files)


async def test_an_exited_server_is_reported_with_the_end_of_its_stderr() -> None:
    script = parse_script({"steps": [{"call": "ping"}]}, "test")
    outcome = await play(script, "test", PlayOptions(["sh", "-c", "echo out of luck >&2; exit 1"]))
    assert "the server has exited with code 1, end of its stderr: out of luck" in outcome.failures[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"steps": [{"xyz": "ping"}]}, r"steps\[0\]: expected a step with one of these fields: call, send"),
        ({"steps": [{"cal": "ping"}]}, r"steps\[0\].cal: unknown, did you mean 'call'"),
        ({"steps": [{"call": "ping", "reslt": 1}]}, "reslt"),
        ({"steps": [{"expect": "/(/"}]}, "step 1: invalid regular expression /\\(/"),
        ({"stpes": []}, "stpes"),
    ],
)
def test_an_invalid_script_is_refused_with_the_place(value: Any, text: str) -> None:
    with pytest.raises(ScriptError, match=text):
        parse_script(value, "x.yaml")


async def test_no_file_is_written_outside_of_the_folder() -> None:
    with pytest.raises(ScriptError, match=r"file '\.\./x' is outside of the script's folder"):
        await play_steps({"call": "ping"}, files={"../x": "y"})


LINES_SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    response = {"jsonrpc": "2.0", "id": request.get("id")}
    if request["method"] == "sum":
        print(json.dumps({"jsonrpc": "2.0", "method": "progress", "params": {"done": 0.5}}))
        response["result"] = sum(request["params"])
    else:
        response["error"] = {"code": -32601, "message": "no such method: " + request["method"]}
    if "id" in request:
        print(json.dumps(response), flush=True)
"""


async def test_a_server_of_another_protocol_is_tested_over_json_lines() -> None:
    outcome = await play_steps(
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
    outcome = await play_steps(
        {"send": {"id": "a", "method": "sum", "params": [2, 2]}},
        {"expect": {"id": 7, "result": 4}},
        framing="lines",
        server=[sys.executable, "-c", LINES_SERVER.replace('"id": request.get("id")', '"id": 7')],
    )
    assert "response to 7: no request has this id" in "\n".join(outcome.failures)
