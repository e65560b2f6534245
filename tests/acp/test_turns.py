"""Prompts over the real wire. Every message is validated by the protocol's schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import Editor, Schemas, failing, option, running_editor
from tests.support.server import calls

pytestmark = pytest.mark.anyio

HANG: dict[str, Any] = {"text": "I am thinking", "hang": True}


async def test_a_prompt_gets_its_response_when_its_turn_has_ended(tmp_path: Path, schemas: Schemas) -> None:
    turn = {"text": "hello there", "reasoning": "hm", "usage": {"input": 10, "output": 3, "reasoning": 1}}
    async with running_editor(tmp_path, schemas, turn) as (_, editor):
        session = await editor.new(tmp_path)
        answer = await editor.say(session, "hi")
        assert answer["stopReason"] == "end_turn"
        assert answer["usage"]["inputTokens"] == 10
        assert answer["usage"]["totalTokens"] == 13
        assert editor.answer_text(session) == "hello there"
        thoughts = editor.updates(session, "agent_thought_chunk")
        assert "".join(thought["content"]["text"] for thought in thoughts) == "hm"
        assert editor.updates(session, "usage_update")[0]["size"] > 0
        assert editor.updates(session, "session_info_update")[0]["title"] == "hi"
        assert editor.messages[-1].get("id") is not None, "the response is the last message"


async def test_nothing_is_changed_in_plan_mode(tmp_path: Path, each_version: Schemas) -> None:
    turns = [calls("bash", command="touch a", description="x"), {"text": "Done."}]
    async with running_editor(tmp_path, each_version, *turns, args=["--yolo"]) as (_, editor):
        opened = await editor.call("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        session, options = opened["sessionId"], opened["configOptions"][0]["options"]
        (plan,) = (choice["value"] for choice in options if choice["name"] == "Plan")
        change = {"sessionId": session, "configId": "mode", "type": "id", "value": plan}
        await editor.call("session/set_config_option", change)
        await editor.say(session, "go")
        assert not (tmp_path / "a").exists()
        await editor.update("tool_call_update", status="failed")


@pytest.mark.parametrize(
    ("reason", "expected"), [("max_tokens", "max_tokens"), ("refusal", "refusal"), ("content_filter", "refusal")]
)
async def test_the_stop_reason_is_that_of_the_model(
    tmp_path: Path, schemas: Schemas, reason: str, expected: str
) -> None:
    async with running_editor(tmp_path, schemas, {"text": "I", "stop_reason": reason}) as (_, editor):
        assert (await editor.say(await editor.new(tmp_path), "hi"))["stopReason"] == expected


async def test_a_failing_model_is_an_error_without_data(tmp_path: Path, schemas: Schemas) -> None:
    turn = {"text": "never", "errors": [{"status": 400, "message": "no such thing"}]}
    async with running_editor(tmp_path, schemas, turn) as (_, editor):
        session = await editor.new(tmp_path)
        error = (await editor.response(await editor.begin(session, "hi")))["error"]
        assert "no such thing" in error["message"]
        assert "data" not in error
        assert (await editor.say(session, "/help"))["stopReason"] == "end_turn"


async def test_a_wrong_key_is_an_authentication_error(tmp_path: Path, schemas: Schemas) -> None:
    turn = {"text": "never", "errors": [{"status": 401, "message": "bad key"}]}
    async with running_editor(tmp_path, schemas, turn) as (_, editor):
        error = (await editor.response(await editor.begin(await editor.new(tmp_path), "hi")))["error"]
        assert error["code"] == -32000


async def test_the_permission_request_for_an_edit_has_its_diff_and_location(
    tmp_path: Path, schemas: Schemas
) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    turns = [calls("edit", path="a.txt", old_str="two", new_str="three"), {"text": "done"}]
    async with running_editor(tmp_path, schemas, *turns) as (_, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "edit it")
        request = await editor.question("session/request_permission")
        path = str(tmp_path / "a.txt")
        diff = {"type": "diff", "path": path, "oldText": "one\ntwo\n", "newText": "one\nthree\n"}
        assert request["params"]["toolCall"]["content"] == [diff]
        assert request["params"]["toolCall"]["locations"] == [{"path": path, "line": 1}]
        assert request["params"]["toolCall"]["kind"] == "edit"
        kinds = [choice["kind"] for choice in request["params"]["options"]]
        assert kinds == ["allow_once", "allow_always", "reject_once"]
        assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
        await editor.answer(request, option("allow_once"))
        assert (await editor.response(prompt))["result"]["stopReason"] == "end_turn"
        assert (tmp_path / "a.txt").read_text() == "one\nthree\n"
        start = editor.updates(session, "tool_call")[0]
        assert (start["status"], start["kind"], start["title"]) == ("in_progress", "edit", "Edit a.txt")
        assert start["rawInput"]["new_str"] == "three"
        later = editor.updates(session, "tool_call_update")
        assert [update["status"] for update in later] == ["pending", "in_progress", "completed"]
        assert later[-1]["content"] == [diff]


async def test_a_change_with_several_hunks_is_shown_as_the_whole_file(tmp_path: Path, schemas: Schemas) -> None:
    lines = [f"line {number}\n" for number in range(40)]
    before = "".join(lines)
    after = "".join(["first\n", *lines[1:39], "last\n"])
    (tmp_path / "a.txt").write_text(before)
    turns = [calls("edit", path="a.txt", old_str=before, new_str=after), {"text": "done"}]
    answers = {"session/request_permission": option("allow_once")}
    async with running_editor(tmp_path, schemas, *turns, answers=answers) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        diff = {"type": "diff", "path": str(tmp_path / "a.txt"), "oldText": before, "newText": after}
        request = await editor.question("session/request_permission")
        assert request["params"]["toolCall"]["content"] == [diff]
        assert [location["line"] for location in request["params"]["toolCall"]["locations"]] == [1, 37]
        assert (await editor.update("tool_call_update", status="completed"))["content"] == [diff]


async def test_a_new_file_has_no_old_text(tmp_path: Path, schemas: Schemas) -> None:
    turns = [calls("create", path="new.txt", file_text="one\n"), {"text": "done"}]
    answers = {"session/request_permission": option("allow_once")}
    async with running_editor(tmp_path, schemas, *turns, answers=answers) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        update = await editor.update("tool_call_update", status="completed")
        assert update["content"] == [{"type": "diff", "path": str(tmp_path / "new.txt"), "newText": "one\n"}]


async def test_an_approval_for_the_session_is_not_asked_for_again(tmp_path: Path, schemas: Schemas) -> None:
    turns = [
        calls("create", "call-1", path="1.txt", file_text="1"),
        calls("create", "call-2", path="2.txt", file_text="2"),
        {"text": "done"},
    ]
    answers = {"session/request_permission": option("allow_always")}
    async with running_editor(tmp_path, schemas, *turns, answers=answers) as (_, editor):
        await editor.say(await editor.new(tmp_path), "go")
        assert (tmp_path / "2.txt").exists()
        assert (
            len([message for message in editor.messages if message.get("method") == "session/request_permission"])
            == 1
        )


@pytest.mark.parametrize(
    "answer", [option("reject_once"), option("something else"), {"outcome": {"outcome": "cancelled"}}, None]
)
async def test_a_call_that_is_not_approved_does_not_run(tmp_path: Path, schemas: Schemas, answer: Any) -> None:
    turns = [calls("create", path="new.txt", file_text="one\n"), {"text": "done"}]
    response: Any = answer if answer is not None else failing("not today")
    async with running_editor(tmp_path, schemas, *turns, answers={"session/request_permission": response}) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        assert (await editor.say(session, "go"))["stopReason"] == "end_turn"
        assert not (tmp_path / "new.txt").exists()
        assert editor.updates(session, "tool_call_update")[-1]["status"] == "failed"
        # The model is told, and continues.
        assert editor.answer_text(session) == "done"


async def test_a_rejection_leaves_the_other_calls_to_the_user(tmp_path: Path, schemas: Schemas) -> None:
    made = [{"id": f"c{n}", "name": "create", "arguments": {"path": f"{n}.txt", "file_text": "x"}} for n in (1, 2)]
    async with running_editor(tmp_path, schemas, {"tool_calls": made}, {"text": "done"}) as (_, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "go")
        since = 0
        for choice in ("reject_once", "allow_once"):
            question = await editor.question("session/request_permission", since=since)
            since = len(editor.messages)
            await editor.answer(question, option(choice))
        assert (await editor.response(prompt))["result"]["stopReason"] == "end_turn"
        assert [(tmp_path / name).exists() for name in ("1.txt", "2.txt")] == [False, True]


async def test_a_command_is_shown_with_its_exact_text_and_its_output(tmp_path: Path, schemas: Schemas) -> None:
    turns = [calls("bash", command="echo one && echo two"), {"text": "done"}]
    answers = {"session/request_permission": option("allow_once")}
    async with running_editor(tmp_path, schemas, *turns, answers=answers) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        start = editor.updates(session, "tool_call")[0]
        assert (start["kind"], start["title"]) == ("execute", "`echo one && echo two`")
        update = await editor.update("tool_call_update", status="completed")
        assert "one\ntwo" in update["content"][0]["content"]["text"]
        assert "one\ntwo" in update["rawOutput"]["output"]


async def test_a_dismissed_question_cancels_the_other_calls_of_the_answer(tmp_path: Path, schemas: Schemas) -> None:
    made = [{"id": f"c{n}", "name": "create", "arguments": {"path": f"{n}.txt", "file_text": "x"}} for n in (1, 2)]
    answers = {"session/request_permission": {"outcome": {"outcome": "cancelled"}}}
    async with running_editor(tmp_path, schemas, {"tool_calls": made}, {"text": "done"}, answers=answers) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        assert (await editor.say(session, "go"))["stopReason"] == "end_turn"
        asked = [message for message in editor.messages if message.get("method") == "session/request_permission"]
        ended = [update for update in editor.updates(session, "tool_call_update") if update["status"] == "failed"]
        assert (len(asked), [update["toolCallId"] for update in ended]) == (1, ["c1", "c2"])
        assert not any((tmp_path / f"{n}.txt").exists() for n in (1, 2))


# --- cancelling -------------------------------------------------------------------------------------------------


async def _cancelled(editor: Editor, session: str, prompt: int) -> None:
    await editor.cancel(session)
    answer = await editor.response(prompt)
    assert answer["result"]["stopReason"] == "cancelled"
    assert editor.messages[-1] == answer


async def test_cancel_while_the_model_streams(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, HANG) as (_, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "go")
        await editor.update("agent_message_chunk")
        await _cancelled(editor, session, prompt)


async def test_cancel_directly_after_the_prompt(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, HANG) as (_, editor):
        session = await editor.new(tmp_path)
        await _cancelled(editor, session, await editor.begin(session, "go"))


async def test_cancel_withdraws_a_permission_request(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, calls("bash", command="touch x; sleep 9")) as (_, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "go")
        request = await editor.question("session/request_permission")
        await _cancelled(editor, session, prompt)
        cancellation = await editor.until(lambda message: message.get("method") == "$/cancel_request")
        assert cancellation["params"] == {"requestId": request["id"]}
        assert editor.updates(session, "tool_call_update")[-1]["status"] == "failed"
        # The protocol demands this response, which comes too late to matter.
        await editor.answer(request, {"outcome": {"outcome": "cancelled"}})
        assert not (tmp_path / "x").exists()


async def test_cancel_while_a_command_runs_leaves_no_process(tmp_path: Path, schemas: Schemas) -> None:
    turn = calls("bash", command="echo started; sleep 60 & sleep 60")
    answers = {"session/request_permission": option("allow_once")}
    async with running_editor(tmp_path, schemas, turn, answers=answers) as (server, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "go")
        await editor.until(lambda message: "started\\n" in str(message) and "console" in str(message))
        await _cancelled(editor, session, prompt)
        assert server.descendants() == []


async def test_cancel_cancels_queued_prompts(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, HANG) as (_, editor):
        session = await editor.new(tmp_path)
        first, second = await editor.begin(session, "one"), await editor.begin(session, "two")
        await editor.update("agent_message_chunk")
        await editor.cancel(session)
        for prompt in (first, second):
            assert (await editor.response(prompt))["result"]["stopReason"] == "cancelled"


async def test_cancel_without_a_turn_does_nothing(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, {"text": "fine"}) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.cancel(session)
        await editor.cancel("no-such-session")
        assert (await editor.say(session, "hi"))["stopReason"] == "end_turn"


async def test_cancelling_the_request_of_a_prompt_aborts_its_turn(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, HANG) as (_, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "go")
        await editor.update("agent_message_chunk")
        await editor.notify("$/cancel_request", {"requestId": prompt})
        assert (await editor.response(prompt))["error"]["code"] == -32800
        since = len(editor.messages)
        second = await editor.begin(session, "again")
        await editor.update("agent_message_chunk", since=since)
        await _cancelled(editor, session, second)


async def test_cancelling_the_request_of_a_queued_prompt_leaves_the_others_alone(
    tmp_path: Path, schemas: Schemas
) -> None:
    prompts = [
        {"when": "ask", "turns": [calls("ask_user", question="Which?", choices=["a", "b"]), {"text": "asked"}]},
        {"turns": [{"text": "{{last_user}}"}]},
    ]
    async with running_editor(tmp_path, schemas, prompts=prompts) as (_, editor):
        session = await editor.new(tmp_path)
        first = await editor.begin(session, "ask me")
        request = await editor.question("session/request_permission")
        second, third = await editor.begin(session, "second"), await editor.begin(session, "third")
        await editor.notify("$/cancel_request", {"requestId": second})
        assert (await editor.response(second))["error"]["code"] == -32800
        await editor.answer(request, option("choice-0"))
        assert (await editor.response(first))["result"]["stopReason"] == "end_turn"
        assert (await editor.response(third))["result"]["stopReason"] == "end_turn"
        assert editor.answer_text(session) == "askedthird"


async def test_a_prompt_queued_behind_a_cancelled_request_runs(tmp_path: Path, schemas: Schemas) -> None:
    prompts = [{"when": "go", "turns": [HANG]}, {"turns": [{"text": "fine"}]}]
    async with running_editor(tmp_path, schemas, prompts=prompts) as (_, editor):
        session = await editor.new(tmp_path)
        first = await editor.begin(session, "go")
        await editor.update("agent_message_chunk")
        second = await editor.begin(session, "second")
        await editor.notify("$/cancel_request", {"requestId": first})
        assert (await editor.response(first))["error"]["code"] == -32800
        assert (await editor.response(second))["result"]["stopReason"] == "end_turn"


async def test_closing_a_session_cancels_its_prompt(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, HANG) as (_, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "go")
        await editor.update("agent_message_chunk")
        await editor.call("session/close", {"sessionId": session})
        assert (await editor.response(prompt))["result"]["stopReason"] == "cancelled"
        assert (await editor.error_of("session/prompt", {"sessionId": session, "prompt": []}))["code"] == -32002


async def test_an_editor_that_disconnects_during_a_turn_leaves_no_process(tmp_path: Path, schemas: Schemas) -> None:
    turn = calls("bash", command="echo started; sleep 60")
    answers = {"session/request_permission": option("allow_once")}
    async with running_editor(tmp_path, schemas, turn, answers=answers) as (server, editor):
        prompt = await editor.begin(await editor.new(tmp_path), "go")
        await editor.until(lambda message: "started\\n" in str(message) and "console" in str(message))
        opened = await editor.ask("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        await server.close_stdin()
        assert "sessionId" in (await editor.response(opened))["result"]
        assert (await editor.response(prompt))["result"]["stopReason"] == "cancelled"
        # The exit of running_editor checks that it took half a second at most and left no process.
        assert await server.exit_code() == 0


async def test_the_todos_of_the_model_are_its_plan_also_after_a_load(tmp_path: Path, schemas: Schemas) -> None:
    noted = (
        "INSERT INTO todos (id, title, status) VALUES ('a', 'Look', 'in_progress');"
        "INSERT INTO todos (id, title) VALUES ('b', 'Write');"
    )
    turns = [
        calls("sql", query=noted),
        calls("sql", "call-2", query="UPDATE todos SET status = 'done' WHERE id = 'a'"),
        calls("sql", "call-3", query="SELECT * FROM todos"),
        {"text": "ok"},
    ]
    looking = [
        {"content": "Look", "priority": "medium", "status": "in_progress"},
        {"content": "Write", "priority": "medium", "status": "pending"},
    ]
    looked = [{**looking[0], "status": "completed"}, looking[1]]
    async with running_editor(tmp_path, schemas, *turns) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        plans = [update["entries"] for update in editor.updates(session, "plan")]
        assert plans[-1] == looked
        assert all(plan in (looking, looked) for plan in plans)
    async with running_editor(tmp_path, schemas, {"text": "ok"}) as (_, editor):
        await editor.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        await editor.update("plan", entries=looked)


async def test_an_editor_with_plans_gets_the_plan_and_its_removal(tmp_path: Path, schemas: Schemas) -> None:
    noted = "INSERT INTO todos (id, title) VALUES ('a', 'Look');"
    turns = [calls("sql", query=noted), calls("sql", "call-2", query="DELETE FROM todos"), {"text": "ok"}]
    async with running_editor(tmp_path, schemas, *turns, initialize=False) as (_, editor):
        editor.unstable = True
        await editor.initialize({"plan": {}})
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        shown = [update["sessionUpdate"] for update in editor.updates(session) if "plan" in update["sessionUpdate"]]
        # Two changes that follow each other closely may be one.
        assert shown in (["plan_update", "plan_removed"], [])


SHOWS: dict[str, Any] = {"session": {"compaction": {}}}
SUMMARY: dict[str, Any] = {
    "when": "^Please create a detailed summary",
    "turns": [{"text": "<overview>All.</overview>"}],
}


async def test_a_compaction_by_command_is_shown(tmp_path: Path, schemas: Schemas) -> None:
    prompts = [SUMMARY, {"turns": [{"text": "ok"}]}]
    async with running_editor(tmp_path, schemas, prompts=prompts, capabilities=SHOWS) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "hi")
        full = editor.updates(session, "usage_update")[-1]["used"]
        assert (await editor.say(session, "/compact Keep it short."))["stopReason"] == "end_turn"
        begun, compaction = editor.updates(session, "compaction_update")
        assert (begun["status"], compaction["status"]) == ("in_progress", "completed")
        assert begun["compactionId"] == compaction["compactionId"]
        assert compaction["summary"] == [{"type": "text", "text": "<overview>All.</overview>"}]
        assert "was compacted from about" in editor.answer_text(session)
        assert editor.updates(session, "usage_update")[-1]["used"] != full
        await editor.call("session/close", {"sessionId": session})
        since = len(editor.messages)
        await editor.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        again = editor.updates(session, "compaction_update", since=since)
        assert [update["status"] for update in again] == ["completed"]


async def test_compactions_are_sent_only_to_editors_that_support_them_and_failures_are_shown(
    tmp_path: Path, schemas: Schemas
) -> None:
    refuses = {**SUMMARY, "turns": [{"text": "never", "errors": [{"status": 400, "message": "not now"}] * 9}]}
    prompts = [refuses, {"turns": [{"text": "ok"}]}]
    async with running_editor(tmp_path, schemas, prompts=prompts) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "hi")
        failed = await editor.response(await editor.begin(session, "/compact"))
        assert "not now" in failed["error"]["message"]
        assert editor.updates(session, "compaction_update") == []
    async with running_editor(tmp_path / "two", schemas, prompts=prompts, capabilities=SHOWS) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "hi")
        await editor.response(await editor.begin(session, "/compact"))
        last = editor.updates(session, "compaction_update")[-1]
        assert last["status"] == "failed"
        assert "not now" in last["error"]


async def test_the_log_of_a_failed_prompt_has_no_word_that_a_provider_quotes(
    tmp_path: Path, schemas: Schemas
) -> None:
    turn = {"errors": [{"status": 400, "message": "you said: the-plan-for-thursday"}], "text": "never"}
    async with running_editor(tmp_path, schemas, turn, args=["--log-level", "info"]) as (server, editor):
        error = await editor.response(await editor.begin(await editor.new(tmp_path), "the-plan-for-thursday"))

    assert "the-plan-for-thursday" in error["error"]["message"]
    assert "request refused" in server.stderr
    assert "the-plan-for-thursday" not in server.stderr
