"""Version 2, a draft, over the real wire. Every message is validated by its schemas."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.editor import Editor, Schemas, option, running_editor
from tests.support.server import JsonObject, calls

pytestmark = pytest.mark.anyio

HANG: JsonObject = {"text": "I am thinking", "hang": True}
ALLOWED = {"session/request_permission": option("allow_once")}


def states(editor: Editor, session: str, since: int = 0) -> list[str]:
    """Return the states of a session so far."""
    return [update["state"] for update in editor.updates(session, "state_update", since=since)]


def messages(editor: Editor, session: str, since: int = 0) -> dict[str, tuple[str, str]]:
    """Return the messages as an editor keeps them: by their ids, the kind and the text."""
    kept: dict[str, tuple[str, str]] = {}
    for update in editor.updates(session, since=since):
        kind = update["sessionUpdate"].removesuffix("_chunk")
        if kind in ("user_message", "agent_message", "agent_thought"):
            is_chunk = kind != update["sessionUpdate"]
            blocks = [update["content"]] if is_chunk else update["content"]
            text = "".join(block["text"] for block in blocks)
            before = kept[update["messageId"]][1] if is_chunk and update["messageId"] in kept else ""
            kept[update["messageId"]] = kind, before + text
    return kept


def tool_calls(editor: Editor, session: str, since: int = 0) -> dict[str, JsonObject]:
    """Return the tool calls as an editor keeps them."""
    kept: dict[str, JsonObject] = {}
    for update in editor.updates(session, "tool_call_update", since=since):
        kept.setdefault(update["toolCallId"], {}).update(update)
    return kept


def terminals(editor: Editor, session: str, since: int = 0) -> dict[str, JsonObject]:
    """Return the terminals as an editor keeps them, with the bytes that they show."""
    kept: dict[str, JsonObject] = {}
    for update in editor.updates(session, since=since):
        if update["sessionUpdate"] in ("terminal_update", "terminal_output_chunk"):
            terminal = kept.setdefault(update["terminalId"], {"bytes": b""})
            terminal.update(update)
            if "output" in update:
                terminal["bytes"] = b64decode(update["output"]["data"])
            terminal["bytes"] += b64decode(update.get("data", ""))
    return kept


@pytest.mark.parametrize(("wanted", "given"), [(0, 1), (1, 1), (2, 2), (65535, 2)])
async def test_the_version_is_the_highest_that_both_sides_have(
    tmp_path: Path, schemas: Schemas, draft_schemas: Schemas, wanted: int, given: int
) -> None:
    async with running_editor(tmp_path, schemas if given == 1 else draft_schemas, initialize=False) as (_, editor):
        info = {"name": "tests", "version": "1"}
        params = {"protocolVersion": wanted, "clientCapabilities": {}, "capabilities": {}, "info": info}
        answer = await editor.call("initialize", params)
        assert answer["protocolVersion"] == given
        assert ("capabilities" in answer, "agentCapabilities" in answer) == (given == 2, given == 1)


async def test_the_version_is_chosen_once(tmp_path: Path, draft_schemas: Schemas) -> None:
    async with running_editor(tmp_path, draft_schemas) as (_, editor):
        assert (await editor.error_of("initialize", {"protocolVersion": 1}))["code"] == -32602
        assert (await editor.error_of("initialize", {"protocolVersion": 2}))["message"] == "info is required"
        await editor.initialize()
        for gone in ("authenticate", "logout", "session/load", "session/set_mode"):
            error = await editor.error_of(gone, {})
            assert (error["code"], error["message"]) == (-32601, f"Unhandled method {gone}")
        assert await editor.call("auth/login", {"methodId": "configured"}) == {}
        assert await editor.call("auth/logout") == {}


async def test_a_prompt_is_acknowledged_and_ended_by_updates(tmp_path: Path, draft_schemas: Schemas) -> None:
    turn = {"text": "hello there", "reasoning": "hm", "usage": {"input": 10, "output": 3}}
    async with running_editor(tmp_path, draft_schemas, turn) as (_, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "hi")
        message_id = (await editor.response(prompt))["result"]["messageId"]
        idle = await editor.update("state_update", state="idle")
        assert (idle["stopReason"], idle["background"], idle["usage"]["totalTokens"]) == ("end_turn", [], 13)
        assert states(editor, session) == ["running", "idle"]
        kept = messages(editor, session)
        assert kept.pop(message_id) == ("user_message", "hi")
        assert sorted(kept.values()) == [("agent_message", "hello there"), ("agent_thought", "hm")]


async def test_a_session_opens_with_its_options_and_commands(tmp_path: Path, draft_schemas: Schemas) -> None:
    async with running_editor(tmp_path, draft_schemas) as (_, editor):
        params = {"cwd": str(tmp_path)}
        opened = await editor.call("session/new", params)
        options = [choice["configId"] for choice in opened["configOptions"]]
        assert options[0] == "mode"
        assert "help" in [command["name"] for command in opened["availableCommands"]]
        assert "modes" not in opened
        plan = next(value["value"] for value in opened["configOptions"][0]["options"] if value["name"] == "Plan")
        changed = await editor.call(
            "session/set_config_option",
            {"sessionId": opened["sessionId"], "configId": "mode", "type": "id", "value": plan},
        )
        assert changed["configOptions"][0]["currentValue"] == plan
        allowed = await editor.call(
            "session/set_config_option",
            {"sessionId": opened["sessionId"], "configId": "allow_all", "type": "boolean", "value": True},
        )
        assert allowed["configOptions"][-1]["currentValue"] is True


async def test_an_edit_is_a_patch_of_git(tmp_path: Path, draft_schemas: Schemas) -> None:
    (tmp_path / "a b.txt").write_text("one\ntwo\n")
    turns = [
        calls("edit", "c1", path="a b.txt", old_str="two", new_str="three"),
        calls("create", "c2", path="new.txt", file_text="first\n"),
        {"text": "done"},
    ]
    async with running_editor(tmp_path, draft_schemas, *turns, answers=ALLOWED) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "edit it")
        questions = [one for one in editor.messages if one.get("method") == "session/request_permission"]
        subject = questions[0]["params"]["subject"]
        assert (questions[0]["params"]["title"], subject["type"]) == ("Edit a b.txt", "tool_call")
        kept = tool_calls(editor, session)
        assert subject["toolCall"]["content"] == kept["c1"]["content"]
        changes = [
            [(one["operation"], one["path"]) for one in kept[c]["content"][0]["changes"]] for c in ("c1", "c2")
        ]
        assert changes == [[("modify", str(tmp_path / "a b.txt"))], [("add", str(tmp_path / "new.txt"))]]
        patches = [kept[c]["content"][0]["patch"] for c in ("c1", "c2")]
        assert [patch["format"] for patch in patches] == ["git_patch"] * 2
        # Its paths are absolute, so that git needs a root.
        command = ["git", "apply", "-R", "-p0", "--unsafe-paths", "--directory=/", "-"]
        text = "".join(patch["text"] for patch in patches).encode()
        reverted = await anyio.run_process(command, input=text, check=False, cwd=tmp_path)
        assert reverted.returncode == 0, reverted.stderr
        assert (tmp_path / "a b.txt").read_text() == "one\ntwo\n"
        assert not (tmp_path / "new.txt").exists()


async def test_a_question_is_a_state(tmp_path: Path, draft_schemas: Schemas) -> None:
    turns = [calls("create", path="new.txt", file_text="one\n"), {"text": "done"}]
    async with running_editor(tmp_path, draft_schemas, *turns) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.response(await editor.begin(session, "go"))
        question = await editor.question("session/request_permission")
        await editor.update("state_update", state="requires_action")
        await editor.answer(question, option("allow_once"))
        await editor.update("state_update", state="idle")
        assert states(editor, session) == ["running", "requires_action", "running", "idle"]


async def test_the_output_of_a_command_is_a_terminal(tmp_path: Path, draft_schemas: Schemas) -> None:
    turns = [calls("bash", "c1", command="echo one; echo two; exit 3"), {"text": "done"}]
    async with running_editor(tmp_path, draft_schemas, *turns, answers=ALLOWED) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        kept = tool_calls(editor, session)["c1"]
        (terminal,) = terminals(editor, session).values()
        assert kept["content"] == [{"type": "terminal", "terminalId": terminal["terminalId"]}]
        assert (terminal["command"], terminal["cwd"]) == ("echo one; echo two; exit 3", str(tmp_path))
        assert (terminal["bytes"].strip(), terminal["exitStatus"]) == (b"one\r\ntwo", {"exitCode": 3})


async def test_a_command_that_does_not_run_says_so_in_words(tmp_path: Path, draft_schemas: Schemas) -> None:
    turns = [calls("bash", "c1", command="touch x"), {"text": "done"}]
    answers = {"session/request_permission": option("reject_once")}
    async with running_editor(tmp_path, draft_schemas, *turns, answers=answers) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        kept = tool_calls(editor, session)["c1"]
        assert (kept["status"], kept["content"][0]["type"]) == ("failed", "content")
        (terminal,) = terminals(editor, session).values()
        assert terminal["exitStatus"] == {}


async def test_a_prompt_steers_the_running_one(tmp_path: Path, draft_schemas: Schemas) -> None:
    turns = [calls("create", path="new.txt", file_text="one\n"), {"text": "done"}, {"text": "once more"}]
    async with running_editor(tmp_path, draft_schemas, *turns) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.response(await editor.begin(session, "go"))
        question = await editor.question("session/request_permission")
        steering = await editor.begin(session, "and hurry")
        queued = await editor.ask(
            "session/prompt",
            {
                "sessionId": session,
                "prompt": [{"type": "text", "text": "later"}],
                "_meta": {"jumpseat/delivery": "queue"},
            },
        )
        # The acknowledgement is that of the place in the conversation: neither has one yet.
        await editor.call("session/list")
        assert not [one for one in editor.messages if one.get("id") in (steering, queued)]
        await editor.answer(question, option("allow_once"))
        ids = [(await editor.response(one))["result"]["messageId"] for one in (steering, queued)]
        await editor.update("state_update", state="idle")
        kept = messages(editor, session)
        assert [kept[one][1] for one in ids] == ["and hurry", "later"]
        order = [text for _, text in kept.values()]
        assert order == ["go", "and hurry", "done", "later", "once more"]
        assert states(editor, session).count("idle") == 1


async def test_a_cancelled_prompt_ends_as_cancelled(tmp_path: Path, draft_schemas: Schemas) -> None:
    async with running_editor(tmp_path, draft_schemas, HANG) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.response(await editor.begin(session, "go"))
        await editor.update("agent_message_chunk")
        waiting = await editor.begin(session, "and then")
        await editor.cancel(session)
        assert (await editor.response(waiting))["error"]["code"] == -32800
        assert (await editor.update("state_update", state="idle"))["stopReason"] == "cancelled"


async def test_a_cancelled_call_has_a_status_of_its_own(tmp_path: Path, draft_schemas: Schemas) -> None:
    turn = calls("bash", "c1", command="echo started; sleep 60")
    async with running_editor(tmp_path, draft_schemas, turn, answers=ALLOWED) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.response(await editor.begin(session, "go"))
        await editor.update("terminal_output_chunk")
        await editor.cancel(session)
        await editor.update("state_update", state="idle")
        assert tool_calls(editor, session)["c1"]["status"] == "cancelled"


async def test_a_failed_model_call_is_a_stop_reason(tmp_path: Path, draft_schemas: Schemas) -> None:
    turn = {"text": "never", "errors": [{"status": 401, "message": "bad key"}]}
    async with running_editor(tmp_path, draft_schemas, turn) as (_, editor):
        idle = await editor.say(await editor.new(tmp_path), "hi")
        assert (idle["stopReason"], idle["error"]["code"]) == ("error", -32000)
        assert "bad key" in idle["error"]["message"]


async def test_a_slash_command_has_the_same_life(tmp_path: Path, draft_schemas: Schemas) -> None:
    async with running_editor(tmp_path, draft_schemas) as (_, editor):
        session = await editor.new(tmp_path)
        idle = await editor.say(session, "/help")
        assert idle["stopReason"] == "end_turn"
        assert states(editor, session) == ["running", "idle"]
        kinds = [kind for kind, _ in messages(editor, session).values()]
        assert kinds == ["user_message", "agent_message"]


async def test_a_command_in_the_background_outlasts_its_prompt(tmp_path: Path, draft_schemas: Schemas) -> None:
    (tmp_path / "wait").touch()
    command = "echo begun; while [ -e wait ]; do sleep 0.1; done"
    turns: list[Any] = [calls("bash", "c1", command=command, mode="async"), {"text": "done"}]
    async with running_editor(tmp_path, draft_schemas, *turns, answers=ALLOWED) as (_, editor):
        session = await editor.new(tmp_path)
        idle = await editor.say(session, "go")
        (terminal,) = terminals(editor, session)
        assert idle["background"] == [{"type": "terminal", "terminalId": terminal}]
        assert tool_calls(editor, session)["c1"]["status"] == "completed"
        since = len(editor.messages)
        (tmp_path / "wait").unlink()
        await editor.update("state_update", since=since, background=[])
        assert terminals(editor, session)[terminal]["exitStatus"] == {"exitCode": 0}


async def test_a_sub_agent_in_the_background_outlasts_its_prompt(tmp_path: Path, draft_schemas: Schemas) -> None:
    arguments = {"agent_type": "explore", "description": "look", "prompt": "look around", "mode": "background"}
    task = {"tool_calls": [{"id": "c1", "name": "task", "arguments": {**arguments, "name": "scout"}}]}
    prompts: list[JsonObject] = [
        {"when": "look around", "turns": [{"text": "seen", "delay_ms": 1000}]},
        {"turns": [task, {"text": "done"}, {"text": "all done"}]},
    ]
    async with running_editor(tmp_path, draft_schemas, prompts=prompts, answers=ALLOWED) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.response(await editor.begin(session, "go"))
        await editor.update("state_update", background=[{"type": "tool_call", "toolCallId": "c1"}])
        await editor.update("state_update", background=[], state="idle", stopReason="end_turn")
        assert tool_calls(editor, session)["c1"]["status"] == "completed"


async def test_a_resumed_session_is_replayed_on_demand(tmp_path: Path, draft_schemas: Schemas) -> None:
    turns = [calls("bash", "c1", command="echo one"), {"text": "done"}]
    async with running_editor(tmp_path, draft_schemas, *turns, answers=ALLOWED) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        live = messages(editor, session), tool_calls(editor, session), terminals(editor, session)
        await editor.call("session/close", {"sessionId": session})
        params: JsonObject = {"sessionId": session, "cwd": str(tmp_path)}
        since = len(editor.messages)
        resumed = await editor.call("session/resume", params)
        assert resumed["configOptions"]
        assert states(editor, session, since) == ["idle"]
        assert not messages(editor, session, since)
        since = len(editor.messages)
        await editor.call("session/resume", {**params, "replayFrom": {"type": "start"}})
        assert states(editor, session, since) == ["idle"]
        assert messages(editor, session, since) == live[0]
        (replayed,), (before,) = tool_calls(editor, session, since).values(), live[1].values()
        assert replayed == before
        (shown,), (before,) = terminals(editor, session, since).values(), live[2].values()
        assert (shown["bytes"].strip(), shown["exitStatus"]) == (before["bytes"].strip(), before["exitStatus"])
        # Once more into the same editor, nothing is doubled.
        assert messages(editor, session) == live[0]
        assert (await editor.error_of("session/resume", {**params, "replayFrom": {"type": "end"}}))[
            "code"
        ] == -32602


async def test_questions_of_the_model_are_forms(tmp_path: Path, draft_schemas: Schemas) -> None:
    turns = [calls("ask_user", question="Which?", choices=["a", "b"]), {"text": "done"}]
    answers = {"elicitation/create": {"action": "accept", "content": {"choice": "b"}}}
    capabilities: JsonObject = {"elicitation": {"form": {}}, "auth": {"terminal": {}}}
    async with running_editor(tmp_path, draft_schemas, *turns, capabilities=capabilities, answers=answers) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        assert "requires_action" in states(editor, session)
        (call,) = tool_calls(editor, session).values()
        assert "b" in call["rawOutput"]["output"]
