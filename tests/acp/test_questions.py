"""Questions of the model to the user, as forms or as buttons."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import Schemas, option, running_editor
from tests.support.fake_copilot import ALICE, fake_copilot
from tests.support.server import calls

pytestmark = pytest.mark.anyio

FORM: dict[str, Any] = {"elicitation": {"form": {}}}
DONE = {"text": "{{last_tool_result}}"}


async def test_a_question_is_a_form_if_the_editor_supports_forms(tmp_path: Path, schemas: Schemas) -> None:
    turn = calls("ask_user", question="Which one?", choices=["red", "blue"])
    async with running_editor(tmp_path, schemas, turn, DONE, capabilities=FORM) as (_, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "go")
        request = await editor.question("elicitation/create")
        assert request["params"]["message"] == "Which one?"
        assert request["params"]["requestedSchema"]["properties"]["choice"]["enum"] == ["red", "blue"]
        await editor.answer(request, {"action": "accept", "content": {"choice": "blue"}})
        await editor.response(prompt)
        assert "blue" in editor.answer_text(session)


async def test_a_question_with_choices_is_buttons_without_forms(tmp_path: Path, schemas: Schemas) -> None:
    turn = calls("ask_user", question="Which one?", choices=["red", "blue"])
    async with running_editor(tmp_path, schemas, turn, DONE) as (_, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "go")
        request = await editor.question("session/request_permission")
        assert request["params"]["toolCall"]["title"] == "Which one?"
        blue = next(choice["optionId"] for choice in request["params"]["options"] if choice["name"] == "blue")
        await editor.answer(request, {"outcome": {"outcome": "selected", "optionId": blue}})
        await editor.response(prompt)
        assert "blue" in editor.answer_text(session)


async def test_buttons_appear_on_the_tool_call_that_asks(tmp_path: Path, schemas: Schemas) -> None:
    turn = calls("ask_user", question="Which one?", choices=["red", "blue"])
    answers = {"session/request_permission": option("choice-0")}
    async with running_editor(tmp_path, schemas, turn, DONE, answers=answers) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        request = await editor.question("session/request_permission")
        assert request["params"]["toolCall"]["toolCallId"] == "call-1"
        assert (await editor.update("tool_call_update", toolCallId="call-1", status="completed"))["content"]


@pytest.mark.parametrize(
    ("choice", "mode", "text"),
    [
        ("interactive", "agent", "Start implementing"),
        ("autopilot", "autopilot", "to its end"),
        ("reject_once", "plan", "not approved"),
    ],
)
async def test_a_plan_is_approved_with_buttons_and_the_mode_follows(
    tmp_path: Path, schemas: Schemas, choice: str, mode: str, text: str
) -> None:
    turn = calls("exit_plan_mode", summary="Do it in two steps")
    answers = {"session/request_permission": option(choice)}
    async with running_editor(tmp_path, schemas, turn, DONE, answers=answers) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.call("session/set_mode", {"sessionId": session, "modeId": "plan"})
        since = len(editor.messages)
        assert (await editor.say(session, "go"))["stopReason"] == "end_turn"
        request = (await editor.question("session/request_permission"))["params"]
        assert (request["toolCall"]["title"], request["toolCall"]["kind"]) == ("Do it in two steps", "switch_mode")
        kinds = [choice["kind"] for choice in request["options"]]
        assert kinds == ["allow_once", "allow_always", "reject_once"]
        assert text in editor.answer_text(session)
        changed = [
            update["currentModeId"].partition("#")[2]
            for update in editor.updates(session, "current_mode_update", since=since)
        ]
        assert (changed or ["plan"])[-1] == mode


@pytest.mark.parametrize(
    ("choice", "answered"),
    [("yes", "auto"), ("yes_always", "auto"), ("no", "by-chat")],
    ids=["yes", "always", "no"],
)
async def test_the_user_decides_whether_the_provider_replaces_a_rate_limited_model(
    tmp_path: Path, schemas: Schemas, choice: str, answered: str
) -> None:
    async with fake_copilot() as copilot:
        copilot.models.append({"id": "auto"})
        copilot.limited["by-chat"] = "user_weekly_rate_limited"
        env = {**copilot.environ, "COPILOT_GITHUB_TOKEN": ALICE}
        async with running_editor(tmp_path, schemas, config="", env=env) as (_, editor):
            session = await editor.new(tmp_path)
            prompt = await editor.begin(session, "go")
            request = await editor.question("session/request_permission")
            assert request["params"]["toolCall"]["title"] == "The model is rate limited"
            kinds = [choice["kind"] for choice in request["params"]["options"]]
            assert kinds == ["allow_once", "allow_always", "reject_once"]
            copilot.limited.clear()
            await editor.answer(request, {"outcome": {"outcome": "selected", "optionId": choice}})
            assert (await editor.response(prompt))["result"]["stopReason"] == "end_turn"
            assert "of alice" in editor.answer_text(session)
        assert copilot.called_models()[-1] == answered


@pytest.mark.parametrize("action", ["decline", "cancel", "something new"])
async def test_a_turn_goes_on_if_the_user_does_not_answer(tmp_path: Path, schemas: Schemas, action: str) -> None:
    turn = calls("ask_user", question="Why?")
    answers = {"elicitation/create": {"action": action}}
    async with running_editor(tmp_path, schemas, turn, DONE, capabilities=FORM, answers=answers) as (_, editor):
        session = await editor.new(tmp_path)
        assert (await editor.say(session, "go"))["stopReason"] == "end_turn"


async def test_a_question_without_choices_fails_without_forms(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, calls("ask_user", question="Why?"), DONE) as (_, editor):
        session = await editor.new(tmp_path)
        assert (await editor.say(session, "go"))["stopReason"] == "end_turn"
        assert editor.updates(session, "tool_call_update")[-1]["status"] == "failed"


ASKING = """
import json
import sys


def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "asking", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
            say(id=message["id"], result=result)
        case "tools/list":
            say(id=message["id"], result={"tools": [{"name": "sign_in", "inputSchema": {"type": "object"}}]})
        case "tools/call":
            call = message["id"]
            asked = {"mode": "url", "message": "Sign in", "url": "https://example.com/sign-in"}
            say(id="asked", method="elicitation/create", params={**asked, "elicitationId": "one"})
        case None if message.get("id") == "asked":
            text = json.dumps(message.get("result") or message.get("error"))
            say(id=call, result={"content": [{"type": "text", "text": text}]})
        case _ if "id" in message:
            say(id=message["id"], error={"code": -32601, "message": "Method not found"})
"""
"""An MCP server that starts at once, because it imports almost nothing, and asks the user to open a URL."""


@pytest.mark.parametrize(
    ("capabilities", "action"),
    [({"elicitation": {"url": {}}}, "accept"), ({"elicitation": {"url": {}}}, "decline"), (FORM, "cancel")],
)
async def test_a_url_is_opened_if_the_editor_supports_it_and_cancelled_otherwise(
    tmp_path: Path, schemas: Schemas, capabilities: dict[str, Any], action: str
) -> None:
    (tmp_path / "asking.py").write_text(ASKING)
    server = {"name": "asking", "command": sys.executable, "args": [str(tmp_path / "asking.py")], "env": []}
    answers = {"session/request_permission": option("allow_once"), "elicitation/create": {"action": action}}
    async with running_editor(
        tmp_path, schemas, calls("asking-sign_in"), DONE, capabilities=capabilities, answers=answers
    ) as (_, editor):
        session = await editor.new(tmp_path, mcpServers=[server])
        assert (await editor.say(session, "go"))["stopReason"] == "end_turn"
        assert action in editor.answer_text(session)
        requests = [
            message["params"] for message in editor.messages if message.get("method") == "elicitation/create"
        ]
        assert [question["url"] for question in requests] == ["https://example.com/sign-in"] * (
            "url" in capabilities["elicitation"]
        )


async def test_cancel_withdraws_a_question(tmp_path: Path, schemas: Schemas) -> None:
    turn = calls("ask_user", question="Why?")
    async with running_editor(tmp_path, schemas, turn, capabilities=FORM) as (_, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "go")
        request = await editor.question("elicitation/create")
        await editor.cancel(session)
        assert (await editor.response(prompt))["result"]["stopReason"] == "cancelled"
        cancellation = await editor.until(lambda message: message.get("method") == "$/cancel_request")
        assert cancellation["params"]["requestId"] == request["id"]
