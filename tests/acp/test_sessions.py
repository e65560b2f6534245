"""Listing, opening, configuring and closing sessions over the real wire."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.editor import CONFIG, Schemas, option, running_editor, value_of
from tests.support.forked import executable
from tests.support.server import JsonObject, calls, running_server, scripted

pytestmark = pytest.mark.anyio

MODES = "https://agentclientprotocol.com/protocol/session-modes#"


async def test_initialize_returns_the_capabilities(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, initialize=False) as (_, editor):
        answer = await editor.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}, "_meta": {}})
        assert answer["protocolVersion"] == 1
        capabilities = answer["agentCapabilities"]
        assert capabilities["loadSession"] is True
        assert capabilities["promptCapabilities"] == {"image": True, "audio": False, "embeddedContext": True}
        assert [method["id"] for method in answer["authMethods"]] == ["configured"]
        assert answer["agentInfo"]["name"] == "jumpseat"
        assert await editor.call("authenticate", {"methodId": "configured"}) == {}
        assert (await editor.error_of("authenticate", {"methodId": "other"}))["code"] == -32602


async def test_an_editor_with_a_terminal_can_offer_the_setup(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, initialize=False) as (_, editor):
        methods = (await editor.initialize({"auth": {"terminal": True}}))["authMethods"]
        assert [method["id"] for method in methods] == ["configured", "setup"]
        assert (methods[1]["type"], methods[1]["args"]) == ("terminal", ["--setup"])
        # The editor itself runs it.
        assert (await editor.error_of("authenticate", {"methodId": "setup"}))["code"] == -32602
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COPILOT_HOME": str(tmp_path / "home")}
    for command in (["acp", "--setup"], ["--acp", "--stdio", "--log-level", "error", "--setup"]):
        ran = await anyio.run_process([executable(), *command], input=b"", env=environ, check=False)
        # Without a terminal nobody can be asked.
        assert ran.returncode != 0
        assert b"setup asks questions in a terminal" in ran.stderr, ran.stderr


async def test_the_status_of_the_login_and_of_sessions(tmp_path: Path, each_version: Schemas) -> None:
    async with running_editor(tmp_path, each_version) as (_, editor):
        assert await editor.call("auth/status") == {"state": "authenticated", "accounts": [{"label": "fake"}]}
        session = await editor.new(tmp_path)
        await editor.say(session, "hi")
        state = {} if each_version.version == 1 else {"state": {"state": "idle"}}
        assert await editor.call("session/status", {"sessionId": session}) == {"status": "open", **state}
        await editor.call("session/close", {"sessionId": session})
        assert await editor.call("session/status", {"sessionId": session}) == {"status": "saved"}
        assert (await editor.error_of("session/status", {"sessionId": "other"}))["code"] == -32002


async def test_a_stored_session_gets_a_title(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "hi")
        await editor.call("session/close", {"sessionId": session})
        answer = await editor.call("session/set_title", {"sessionId": session, "title": " My work "})
        assert answer == {"title": "My work"}
        assert [one["title"] for one in (await editor.call("session/list"))["sessions"]] == ["My work"]
        assert (await editor.error_of("session/set_title", {"sessionId": session, "title": " "}))["code"] == -32602
        assert (await editor.error_of("session/set_title", {"sessionId": "other", "title": "x"}))["code"] == -32002


async def test_sessions_are_not_archived(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "hi")
        for filters, count in (({}, 1), ({"archived": "exclude"}, 1), ({"archived": "include"}, 1)):
            assert len((await editor.call("session/list", filters))["sessions"]) == count
        assert (await editor.error_of("session/list", {"archived": "only"}))["code"] == -32602


async def test_an_editor_may_have_any_name(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, initialize=False) as (_, editor):
        info = {"name": "Ed\r\nitor: é\u0000", "title": "Editor", "version": "1"}
        await editor.call("initialize", {"protocolVersion": 1, "clientInfo": info})
        assert (await editor.say(await editor.new(tmp_path), "hi"))["stopReason"] == "end_turn"


async def test_invalid_capabilities_count_as_missing(tmp_path: Path, schemas: Schemas) -> None:
    invalid: list[JsonObject] = [
        {"clientCapabilities": None, "clientInfo": None},
        {"clientCapabilities": "all", "clientInfo": 7},
        {"clientCapabilities": {"fs": {"readTextFile": "yes"}, "terminal": 1, "elicitation": {"form": 3}}},
        {"clientCapabilities": {"fs": [], "session": []}, "clientInfo": {"name": 5}},
    ]
    turn = calls("ask_user", question="Why?")
    async with running_editor(tmp_path, schemas, turn, initialize=False) as (_, editor):
        for more in invalid:
            assert (await editor.call("initialize", {"protocolVersion": 1, **more}))["protocolVersion"] == 1
        # Valid ones count beside invalid ones. An empty table of Lua is an array: this editor supports forms.
        capabilities: JsonObject = {"terminal": "?", "elicitation": {"form": []}}
        await editor.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
        await editor.begin(await editor.new(tmp_path), "go")
        await editor.question("elicitation/create")


async def test_authenticate_names_the_settings_if_no_model_is_configured(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, config="", args=["--no-auto-login"]) as (_, editor):
        error = await editor.error_of("authenticate", {"methodId": "configured"})
        assert error["code"] == -32000
        assert "OPENAI_API_KEY" in error["message"]
        # Opening a session works, because the editor may set a provider later.
        session = await editor.new(tmp_path)
        error = (await editor.response(await editor.begin(session, "hi")))["error"]
        assert "no model is configured" in error["message"]


async def test_updates_of_a_session_follow_the_response_that_names_it(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        session = await editor.new(tmp_path)
        commands = await editor.update("available_commands_update")
        assert "help" in [command["name"] for command in commands["availableCommands"]]
        named = next(
            place
            for place, message in enumerate(editor.messages)
            if session == message.get("result", {}).get("sessionId")
        )
        assert not editor.updates(session) or all(
            message.get("method") != "session/update" for message in editor.messages[:named]
        )


async def test_only_sessions_with_a_prompt_are_listed(tmp_path: Path, schemas: Schemas) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with running_editor(tmp_path, schemas) as (_, editor):
        await editor.new(tmp_path)
        prompted = await editor.new(other)
        await editor.say(prompted, "What is new?")
        sessions = (await editor.call("session/list"))["sessions"]
        assert [(session["sessionId"], session["title"], session["cwd"]) for session in sessions] == [
            (prompted, "What is new?", str(other))
        ]
        assert (await editor.call("session/list", {"cwd": str(tmp_path)}))["sessions"] == []
        assert (await editor.error_of("session/list", {"cursor": "nonsense"}))["code"] == -32602


async def test_sessions_that_nobody_would_resume_are_not_listed(tmp_path: Path, schemas: Schemas) -> None:
    fails: JsonObject = {"text": "never", "errors": [{"status": 401, "message": "bad key"}] * 9}
    async with running_editor(tmp_path, schemas, fails) as (_, editor):
        session = await editor.new(tmp_path)
        response = await editor.response(await editor.begin(session, "What is new?"))
        assert "error" in response
        assert (await editor.call("session/list"))["sessions"] == []
        # The session can still be loaded by its id.
        await editor.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})


async def test_a_long_list_has_pages_without_gaps(tmp_path: Path, schemas: Schemas) -> None:
    home = tmp_path / "home" / "session-state"
    for number in range(205):
        folder = home / f"session-{number:03}"
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_text("{}\n")
        (folder / "workspace.yaml").write_text(f'cwd: "/"\nsummary: "number {number}"\n')
    async with running_editor(tmp_path, schemas) as (_, editor):
        session_ids: list[str] = []
        page: dict[str, Any] = {}
        while not session_ids or "nextCursor" in page:
            page = await editor.call("session/list", {"cursor": page["nextCursor"]} if page else {})
            session_ids += [session["sessionId"] for session in page["sessions"]]
        assert len(session_ids) == len(set(session_ids)) == 205


async def test_a_load_sends_the_history_before_its_response(tmp_path: Path, schemas: Schemas) -> None:
    image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    link = {"type": "resource_link", "uri": f"file://{tmp_path}/a%20b.txt", "name": "a b.txt"}
    (tmp_path / "a b.txt").write_text("text")
    turns = [
        {
            "tool_calls": [{"id": "c1", "name": "glob", "arguments": {"pattern": "*.none"}}],
            "reasoning": "let me see",
        },
        {"text": "nothing there"},
    ]
    answers = {"session/request_permission": option("allow_once")}
    async with running_editor(tmp_path, schemas, *turns, answers=answers) as (_, editor):
        session = await editor.new(tmp_path)
        text = {"type": "text", "text": "Look"}
        await editor.call("session/prompt", {"sessionId": session, "prompt": [text, image, link]})
    async with running_editor(tmp_path, schemas, *turns) as (_, editor):
        loading = await editor.ask("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        answer = await editor.response(loading)
        place = editor.messages.index(answer)
        updates = [
            message["params"]["update"]
            for message in editor.messages[:place]
            if message.get("method") == "session/update"
        ]
        assert [update["sessionUpdate"] for update in updates] == [
            *["user_message_chunk"] * 3,
            "agent_thought_chunk",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk",
        ]
        assert [update["content"] for update in updates[:3]] == [text, image, link]
        assert value_of(answer["result"]["configOptions"], "model") == "fake/one"
        assert (await editor.say(session, "and now?"))["stopReason"] == "end_turn"


async def test_events_without_a_translation_do_not_end_the_session_of_an_editor(
    tmp_path: Path, schemas: Schemas
) -> None:
    async with running_editor(tmp_path, schemas, {"text": "one"}) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "first")
    log = tmp_path / "home" / "session-state" / session / "events.jsonl"
    records: list[JsonObject] = [json.loads(line) for line in log.read_text().splitlines()]
    newer: JsonObject = {
        **records[-1],
        "id": "newer",
        "parentId": records[-1]["id"],
        "type": "session.clock_read",
        "data": {},
    }
    log.write_text("".join(json.dumps(record) + "\n" for record in (*records, newer)))

    async with running_editor(tmp_path, schemas, {"text": "two"}) as (_, editor):
        await editor.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert editor.answer_text(session) == "one"
        # A turn has events without a translation too, such as its start.
        for prompt in ("second", "third"):
            assert (await editor.say(session, prompt))["stopReason"] == "end_turn"
        assert editor.answer_text(session) == "onetwotwo"
    types = [json.loads(line)["type"] for line in log.read_text().splitlines()]
    assert types.count("session.clock_read") == 1
    assert "assistant.turn_start" in types


async def test_a_resume_does_not_send_the_history(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "hi")
        await editor.call("session/close", {"sessionId": session})
        since = len(editor.messages)
        await editor.call("session/resume", {"sessionId": session, "cwd": str(tmp_path)})
        assert editor.updates(session, "user_message_chunk", since=since) == []
        await editor.say(session, "again")


async def test_unknown_sessions_are_resource_not_found_errors(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        for method in ("session/load", "session/resume", "session/fork"):
            params: JsonObject = {"sessionId": "nope", "cwd": str(tmp_path), "mcpServers": []}
            assert (await editor.error_of(method, params))["code"] == -32002
        assert (await editor.error_of("session/close", {"sessionId": "nope"}))["code"] == -32002
        # Deleting is idempotent.
        assert await editor.call("session/delete", {"sessionId": "nope"}) == {}


async def test_a_deleted_session_is_not_listed(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "hi")
        await editor.call("session/delete", {"sessionId": session})
        assert (await editor.call("session/list"))["sessions"] == []


async def test_a_fork_is_independent_of_its_session(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, {"text": "one"}, {"text": "two"}, {"text": "three"}) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        await editor.say(session, "first")
        forked = await editor.call("session/fork", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert forked["sessionId"] != session
        await editor.say(forked["sessionId"], "second")
        await editor.say(session, "second")
        assert editor.answer_text(forked["sessionId"]) == "two"
        assert editor.answer_text(session) == "onetwo"


async def test_loading_shows_what_was_answered_before_a_prompt_was_cancelled(
    tmp_path: Path, schemas: Schemas
) -> None:
    begun: JsonObject = {"deltas": ["It was a dark", " and stormy"], "hang": True}
    async with running_editor(tmp_path, schemas, begun) as (_, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "Write an essay")
        await editor.update("agent_message_chunk", content={"type": "text", "text": " and stormy"})
        await editor.cancel(session)
        assert (await editor.response(prompt))["result"]["stopReason"] == "cancelled"
        assert editor.answer_text(session) == "It was a dark and stormy"
    continued: JsonObject = {"text": " night", "expect": {"user": "go on"}}
    async with running_editor(tmp_path, schemas, continued) as (_, editor):
        await editor.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert editor.answer_text(session) == "It was a dark and stormy\n\n*(interrupted)*"
        assert (await editor.say(session, "go on"))["stopReason"] == "end_turn"


async def test_a_session_can_alternate_between_both_protocols(tmp_path: Path, schemas: Schemas) -> None:
    turns = [{"text": "one"}, {"text": "two"}, {"text": "three"}]
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted(*turns), workingDirectory=str(tmp_path))
        await server.wire.prompt(session, "from an SDK")
    async with running_editor(tmp_path, schemas, *turns) as (_, editor):
        await editor.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert editor.updates(session, "user_message_chunk")[0]["content"]["text"] == "from an SDK"
        since = len(editor.messages)
        await editor.say(session, "from an editor")
        assert editor.answer_text(session, since=since) == "two"
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": session, "provider": scripted(*turns)})
        events = await server.wire.prompt(session, "from an SDK again")
        assert next(event for event in events if event["type"] == "assistant.message")["data"]["content"] == "three"


# --- modes and options ------------------------------------------------------------------------------------------


async def test_the_mode_is_sent_as_mode_and_as_option(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        opened = await editor.call("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        session = opened["sessionId"]
        assert opened["modes"]["currentModeId"] == value_of(opened["configOptions"], "mode") == f"{MODES}agent"
        await editor.call("session/set_mode", {"sessionId": session, "modeId": f"{MODES}plan"})
        await editor.update("current_mode_update", currentModeId=f"{MODES}plan")
        assert value_of((await editor.update("config_option_update"))["configOptions"], "mode") == f"{MODES}plan"
        since = len(editor.messages)
        answer = await editor.call(
            "session/set_config_option", {"sessionId": session, "configId": "mode", "value": f"{MODES}autopilot"}
        )
        assert value_of(answer["configOptions"], "mode") == f"{MODES}autopilot"
        await editor.update("current_mode_update", since=since, currentModeId=f"{MODES}autopilot")
        error = await editor.error_of("session/set_mode", {"sessionId": session, "modeId": "fast"})
        assert error["code"] == -32602
        assert f"{MODES}plan" in error["message"]


async def test_only_listed_models_can_be_chosen(tmp_path: Path, schemas: Schemas) -> None:
    turn = {"text": "{{model}}"}
    async with running_editor(tmp_path, schemas, turn) as (_, editor):
        opened = await editor.call("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        session = opened["sessionId"]
        model = next(option for option in opened["configOptions"] if option["category"] == "model")
        assert [choice["value"] for choice in model["options"]] == ["fake/one", "fake/two"]
        assert model["currentValue"] == "fake/one"
        change = {"sessionId": session, "configId": "model", "value": "fake/two"}
        answer = await editor.call("session/set_config_option", change)
        assert value_of(answer["configOptions"], "model") == "fake/two"
        await editor.say(session, "who are you?")
        assert editor.answer_text(session) == "two"
        for method, params in (
            ("session/set_config_option", {**change, "value": "gpt-17"}),
            ("session/set_model", {"sessionId": session, "modelId": "gpt-17"}),
        ):
            error = await editor.error_of(method, params)
            assert error["code"] == -32602
            assert "fake/one" in error["message"]
        assert await editor.call("session/set_model", {"sessionId": session, "modelId": "fake/one"}) == {}


async def test_the_reasoning_effort_is_an_option(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        session = await editor.new(tmp_path)
        change = {"sessionId": session, "configId": "reasoning_effort", "value": "high"}
        answer = await editor.call("session/set_config_option", change)
        assert value_of(answer["configOptions"], "reasoning_effort") == "high"
        answer = await editor.call("session/set_config_option", {**change, "value": "default"})
        assert value_of(answer["configOptions"], "reasoning_effort") == "default"
        assert (await editor.error_of("session/set_config_option", {**change, "value": "hardest"}))[
            "code"
        ] == -32602
        assert (await editor.error_of("session/set_config_option", {**change, "configId": "x"}))["code"] == -32602


@pytest.mark.parametrize("booleans", [True, False])
async def test_all_calls_can_be_allowed_by_an_option(tmp_path: Path, schemas: Schemas, *, booleans: bool) -> None:
    capabilities: JsonObject = {"session": {"configOptions": {"boolean": {}}}} if booleans else {}
    turns = [
        {"tool_calls": [{"id": "c", "name": "create", "arguments": {"path": "x", "file_text": ""}}]},
        {"text": "done"},
    ]
    async with running_editor(tmp_path, schemas, *turns, capabilities=capabilities) as (_, editor):
        opened = await editor.call("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        shown = next(option for option in opened["configOptions"] if option["id"] == "allow_all")
        assert (shown["type"], shown["currentValue"]) == (("boolean", False) if booleans else ("select", "off"))
        change = {"sessionId": opened["sessionId"], "configId": "allow_all", "value": True if booleans else "on"}
        await editor.call("session/set_config_option", change | ({"type": "boolean"} if booleans else {}))
        await editor.say(opened["sessionId"], "go")
        assert (tmp_path / "x").exists()


async def test_a_session_can_be_renamed(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "hi")
        assert await editor.call("session/set_title", {"sessionId": session, "title": "Work"}) == {"title": "Work"}
        await editor.update("session_info_update", title="Work")
        assert (await editor.call("session/list"))["sessions"][0]["title"] == "Work"


async def test_slash_commands_are_prompts(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, {"text": "You said {{last_user}}"}) as (_, editor):
        session = await editor.new(tmp_path)
        assert (await editor.say(session, "/help"))["stopReason"] == "end_turn"
        assert "/usage" in editor.answer_text(session)
        since = len(editor.messages)
        await editor.say(session, "/model fake/two")
        options = (await editor.update("config_option_update", since=since))["configOptions"]
        assert value_of(options, "model") == "fake/two"
        since = len(editor.messages)
        await editor.say(session, "/etc/hosts is what?")
        assert editor.answer_text(session, since=since) == "You said /etc/hosts is what?"


async def test_a_prompt_cannot_loosen_what_needs_approval(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, {"text": "You said {{last_user}}"}) as (_, editor):
        session = await editor.new(tmp_path)
        names = {one["name"] for one in (await editor.update("available_commands_update"))["availableCommands"]}
        assert "usage" in names
        assert not names & {"allow-all", "permissions", "add-dir", "cwd"}
        # It may contain text that the user has not written.
        await editor.say(session, "/allow-all on")
        assert editor.answer_text(session) == "You said /allow-all on"
        since = len(editor.messages)
        await editor.say(session, "/goal off")
        assert editor.answer_text(session, since=since) == "Already in interactive mode."


async def test_skills_are_slash_commands_that_run_as_prompts(tmp_path: Path, schemas: Schemas) -> None:
    path = tmp_path / "home" / "skills" / "tea" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\ndescription: Make tea.\nargument-hint: '[kind]'\n---\n\nWarm the pot.\n")
    prompt = tmp_path / ".github" / "prompts" / "brew.prompt.md"
    prompt.parent.mkdir(parents=True)
    prompt.write_text("---\ndescription: Brew it.\n---\nBrew ${input:what}.\n")
    async with running_editor(tmp_path, schemas, {"text": "You said {{last_user}}"}) as (_, editor):
        session = await editor.new(tmp_path)
        commands = (await editor.update("available_commands_update"))["availableCommands"]
        assert {"name": "tea", "description": "Make tea.", "input": {"hint": "[kind]"}} in commands
        assert "Brew it." in [command["description"] for command in commands if command["name"] == "brew"]
        assert (await editor.say(session, "/tea green"))["stopReason"] == "end_turn"
        assert editor.answer_text(session) == "You said /tea green"


async def test_the_system_prompt_of_the_editor_is_used(tmp_path: Path, schemas: Schemas) -> None:
    prompts: list[dict[str, Any]] = [
        {"turns": [{"text": "aye", "expect": {"system": "/^You are a pirate\\.$/"}}]},
    ]
    system = {"mode": "override", "content": [{"type": "text", "text": "You are a pirate."}]}
    async with running_editor(tmp_path, schemas, prompts=prompts) as (_, editor):
        assert (await editor.say(await editor.new(tmp_path, systemPrompt=system), "hi"))["stopReason"] == "end_turn"


async def test_embedded_files_reach_the_model(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, {"text": "{{last_user}}"}) as (_, editor):
        session = await editor.new(tmp_path)
        resource = {"uri": "file:///work/a%20b.py", "text": "print(1)", "mimeType": "text/x-python"}
        blocks = [{"type": "text", "text": "What is"}, {"type": "resource", "resource": resource}]
        await editor.call("session/prompt", {"sessionId": session, "prompt": blocks})
        assert '<file path="/work/a b.py">\nprint(1)\n</file>' in editor.answer_text(session)
        audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
        assert (await editor.error_of("session/prompt", {"sessionId": session, "prompt": [audio]}))[
            "code"
        ] == -32602
        assert (await editor.call("session/prompt", {"sessionId": session, "prompt": []}))["stopReason"]


async def test_additional_folders_are_named_to_the_model_and_replaced_by_each_load(
    tmp_path: Path, schemas: Schemas
) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    for folder in (work, other):
        folder.mkdir()
    prompts: list[JsonObject] = [
        {"when": "alone", "turns": [{"text": "ok", "expect": {"system": "/^(?![\\s\\S]*More folders)/"}}]},
        {"turns": [{"text": "ok", "expect": {"system": f"More folders of the workspace: {other}"}}]},
    ]
    async with running_editor(tmp_path, schemas, prompts=prompts) as (_, editor):
        session = await editor.new(work, additionalDirectories=[str(other)])
        await editor.say(session, "first")
        params: JsonObject = {"sessionId": session, "cwd": str(work), "mcpServers": []}
        await editor.call("session/load", params)
        await editor.say(session, "alone")
        await editor.call("session/resume", {**params, "additionalDirectories": [str(other)]})
        await editor.say(session, "third")


async def test_an_approval_for_the_session_covers_additional_folders_only(tmp_path: Path, schemas: Schemas) -> None:
    work, other, third = (tmp_path / name for name in ("work", "other", "third"))
    for folder in (work, other, third):
        folder.mkdir()
    turns = [
        calls("create", "call-1", path="a.txt", file_text="a"),
        calls("create", "call-2", path=str(other / "a.txt"), file_text="a"),
        calls("create", "call-3", path=str(third / "a.txt"), file_text="a"),
        {"text": "ok"},
    ]
    answers = {"session/request_permission": option("allow_always")}
    async with running_editor(tmp_path, schemas, *turns, answers=answers) as (_, editor):
        await editor.say(await editor.new(work, additionalDirectories=[str(other)]), "go")
        requests = [
            message["params"]
            for message in editor.messages
            if message.get("method") == "session/request_permission"
        ]
        assert [question["toolCall"]["toolCallId"] for question in requests] == ["call-1", "call-3"]


async def test_invalid_servers_and_folders_are_refused(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        good: JsonObject = {"name": "a", "command": "true", "args": [], "env": []}
        wrong: list[JsonObject] = [
            {"cwd": "relative", "mcpServers": []},
            {"cwd": str(tmp_path / "missing"), "mcpServers": []},
            {"cwd": str(tmp_path), "mcpServers": [good, good]},
            {"cwd": str(tmp_path), "mcpServers": [{"name": "a", "args": [], "env": []}]},
            {"cwd": str(tmp_path), "mcpServers": [{"type": "http", "name": "a", "headers": []}]},
            {"cwd": str(tmp_path), "mcpServers": "none"},
            {"cwd": str(tmp_path), "mcpServers": [], "additionalDirectories": ["relative"]},
            {"cwd": str(tmp_path), "mcpServers": [], "additionalDirectories": [str(tmp_path / "missing")]},
            {"mcpServers": []},
        ]
        for params in wrong:
            assert (await editor.error_of("session/new", params))["code"] == -32602, params
        assert (await editor.error_of("session/list", {"cwd": "relative"}))["code"] == -32602


# --- bad input --------------------------------------------------------------------------------------------------


async def test_every_invalid_message_gets_an_error(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas) as (_, editor):
        bad: list[tuple[Any, int]] = [
            (b"{broken", -32700),
            (b"[]", -32600),
            (b'"text"', -32600),
            (b'{"id": 1, "method": "initialize"}', -32600),
            (b'{"jsonrpc": "2.0", "id": 1.5, "method": "initialize"}', -32600),
            (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
        ]
        for line, code in bad:
            since = len(editor.messages)
            await editor.send(line + b"\n")
            answer = await editor.until(lambda message: "error" in message, since=since)
            assert answer["error"]["code"] == code, line
        # Empty lines, Windows line ends and split lines are valid.
        await editor.send(b"\n\r\n")
        message = json.dumps({"jsonrpc": "2.0", "id": "x", "method": "session/list", "params": {}}).encode()
        editor.encode({"id": "x", "method": "session/list"})
        await editor.send(message[:20])
        await editor.send(message[20:] + b"\r\n")
        assert (await editor.response("x"))["result"] == {"sessions": []}
        for method in ("_vendor/anything", "session/unknown", "fs/read_text_file"):
            assert (await editor.error_of(method))["code"] == -32601
        message = (await editor.error_of("session/promt"))["message"]
        assert message == "Unhandled method session/promt, did you mean 'session/prompt'?"
        for method in ("initialize", "session/new", "session/prompt", "session/set_mode", "authenticate"):
            assert (await editor.error_of(method, {"sessionId": 7}))["code"] == -32602
        assert (await editor.error_of("initialize", {"protocolVersion": "1"}))["code"] == -32602
        for method in ("_vendor/anything", "session/unknown", "session/cancel", "$/cancel_request"):
            await editor.send(editor.encode({"jsonrpc": "2.0", "method": method, "params": [1, 2]}))
        await editor.call("session/list")


async def test_meta_is_accepted_on_every_object(tmp_path: Path, schemas: Schemas) -> None:
    meta: JsonObject = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "own": [1]}
    with_meta: JsonObject = {"_meta": meta}
    async with running_editor(tmp_path, schemas, initialize=False) as (_, editor):
        capabilities: JsonObject = {"fs": with_meta, "elicitation": {"form": with_meta}, **with_meta}
        hello: JsonObject = {"protocolVersion": 1, "clientCapabilities": capabilities, **with_meta}
        await editor.call("initialize", hello)
        where: JsonObject = {"cwd": str(tmp_path), "mcpServers": [], **with_meta}
        session: JsonObject = {"sessionId": (await editor.call("session/new", where))["sessionId"]}
        block: JsonObject = {"type": "text", "text": "hi", "annotations": with_meta, **with_meta}
        answer = await editor.call("session/prompt", {**session, "prompt": [block], **with_meta})
        assert answer["stopReason"] == "end_turn"
        await editor.call("session/load", {**session, **where})
        await editor.call("session/list", {"cursor": None, **with_meta})
        await editor.call("session/close", {**session, **with_meta})


async def test_an_editor_gets_no_requests_that_it_does_not_support(tmp_path: Path, schemas: Schemas) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    turns = [
        calls("view", "call-1", path="a.txt"),
        calls("create", "call-2", path="b.txt", file_text="b"),
        calls("bash", "call-3", command="echo c"),
        calls("ask_user", "call-4", question="Why?"),
        {"text": "done"},
    ]
    answers = {"session/request_permission": option("allow_once")}
    async with running_editor(tmp_path, schemas, *turns, answers=answers) as (_, editor):
        assert (await editor.say(await editor.new(tmp_path), "go"))["stopReason"] == "end_turn"
        methods = {message["method"] for message in editor.messages if "method" in message and "id" in message}
        assert methods == {"session/request_permission"}


async def test_stray_output_never_reaches_the_editor(tmp_path: Path, schemas: Schemas) -> None:
    config = CONFIG + '\n[adapters.bad]\ntype = "nonsense"\nmodels = ["x"]\n'
    async with running_editor(tmp_path, schemas, config=config, args=["--log-level", "debug"]) as (server, editor):
        # The exit of running_editor fails if anything but JSON was read.
        await editor.say(await editor.new(tmp_path), "hi")
    assert "Traceback" not in server.stderr
