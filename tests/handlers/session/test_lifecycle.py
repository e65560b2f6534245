"""Sessions from their creation to their end, over the real wire, as clients in any language call the methods."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat.agent.conversation.conversation import INTERRUPTED
from tests.support.fake_copilot import ALICE, fake_copilot
from tests.support.limits import WAIT_S
from tests.support.server import READABLE, JsonObject, Wire, calls, frame, request, running_server, scripted

pytestmark = pytest.mark.anyio

HELLO = scripted({"text": "Hello!"}, {"text": "Hello again!"})


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


async def lifecycle(wire: Wire, kind: str, session: str) -> dict[str, Any]:
    def fits(message: dict[str, Any]) -> bool:
        params: dict[str, Any] = message.get("params", {})
        return (
            message.get("method") == "session.lifecycle"
            and params["type"] == kind
            and params["sessionId"] == session
        )

    return (await wire.until(fits, what=kind))["params"]


async def test_create_returns_the_given_id_after_announcing_the_session(tmp_path: Path) -> None:
    session = str(uuid.uuid4())
    async with running_server(tmp_path) as server:
        answer = await server.wire.call("session.create", {"sessionId": session, "provider": HELLO})
        started = await server.wire.event("session.start", session=session)
        created = await lifecycle(server.wire, "session.created", session)
    assert answer["sessionId"] == session
    assert answer["capabilities"] == {"ui": {"elicitation": False, "mcpApps": False, "canvases": False}}
    assert (answer["mode"], answer["isRemote"]) == ("interactive", False)
    assert Path(answer["workspacePath"]) == tmp_path / "home" / "session-state" / session
    assert started["data"]["sessionId"] == session
    assert started["data"]["context"] == {"cwd": str(tmp_path)}
    assert started["parentId"] is None
    assert created["metadata"]["startTime"] == answer["startTime"]
    messages = [message.get("id") or message["method"] for message in server.wire.messages]
    assert messages.index("session.lifecycle") < messages.index("session.event")
    assert messages[-1] != "session.event"


async def test_create_rejects_an_id_that_is_taken_or_invalid(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO)
        taken = await server.wire.error_of("session.create", {"sessionId": session, "provider": HELLO})
        hostile = await server.wire.error_of("session.create", {"sessionId": "../../etc", "provider": HELLO})
    assert taken["message"] == f"session {session!r} already exists"
    assert hostile["code"] == -32602
    assert "sessionId" in hostile["message"]
    assert "etc" not in hostile["message"]


async def test_create_reports_an_elicitation_handler_as_capability(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        answer = await server.wire.call("session.create", {"provider": HELLO, "requestElicitation": True})
    assert answer["capabilities"]["ui"]["elicitation"] is True


async def test_create_rejects_a_working_directory_that_does_not_exist(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("session.create", {"workingDirectory": str(tmp_path / "no")})
    assert "workingDirectory" in error["message"]


async def test_send_answers_at_once_with_the_id_of_the_message_to_come(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"hang": True}))
        answer = await server.wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        user = await server.wire.event("user.message", session=session)
    assert user["id"] == user["data"]["messageId"] == answer["messageId"]
    assert user["data"]["content"] == "hi"
    assert user["data"]["transformedContent"].startswith("<current_datetime>")


async def test_send_and_wait_returns_the_response_at_the_end_of_the_run(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO)
        answer = await server.wire.call("session.sendAndWait", {"sessionId": session, "prompt": "hi"})
        idle = await server.wire.event("session.idle", session=session)
    assert answer["response"]["data"]["content"] == "Hello!"
    assert answer["response"]["data"]["originatingMessageId"] == answer["messageId"]
    assert (answer["aborted"], answer["completionEventId"]) == (False, idle["id"])


async def test_send_and_wait_fails_with_the_error_of_the_run(tmp_path: Path) -> None:
    failing = scripted({"text": "-", "errors": [{"status": 401, "message": "who are you"}]})
    async with running_server(tmp_path) as server:
        session = await server.wire.create(failing)
        error = await server.wire.error_of("session.sendAndWait", {"sessionId": session, "prompt": "hi"})
        error_event = await server.wire.event("session.error", session=session)
    assert "who are you" in error["message"]
    assert error["data"] == {"completionEventId": error_event["id"]}
    assert error_event["data"]["errorType"] == "authentication"


async def test_messages_are_the_persisted_events_as_they_were_sent(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO, streaming=True)
        await server.wire.prompt(session)
        answer = await server.wire.call("session.getMessages", {"sessionId": session})
        announced = [event for event in server.wire.events(session) if not event.get("ephemeral")]
    assert answer["events"] == announced
    assert types(announced) == [
        "session.start",
        "user.message",
        "assistant.turn_start",
        "assistant.message",
        "assistant.turn_end",
    ]


async def test_a_session_shows_in_lists_from_its_first_prompt_on(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        assert await wire.call("session.getLastId", {}) == {}
        session = await wire.create(HELLO)
        assert await wire.call("session.list", {}) == {"sessions": []}
        await wire.prompt(session, "Tell me\nabout it")
        (sessions,) = (await wire.call("session.list", {}))["sessions"]
        assert sessions["sessionId"] == session
        assert sessions["summary"] == "Tell me about it"
        assert sessions["context"] == {"cwd": str(tmp_path)}
        assert await wire.call("session.getMetadata", {"sessionId": session}) == {"session": sessions}
        assert await wire.call("session.getMetadata", {"sessionId": "unknown"}) == {}
        assert await wire.call("session.getLastId", {}) == {"sessionId": session}
        assert await wire.call("session.list", {"filter": {"cwd": "/elsewhere"}}) == {"sessions": []}


async def test_lists_by_folder_compare_real_paths(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    async with running_server(tmp_path) as server:
        wire = server.wire
        for number, folder in enumerate((real, link)):
            session = await wire.create(HELLO, workingDirectory=str(folder), sessionId=f"s{number}")
            await wire.prompt(session)
        for folder in (str(real), str(link), f"{link}/", f"{real}/../link/.", f"{real}//"):
            listed = (await wire.call("session.list", {"filter": {"cwd": folder}}))["sessions"]
            assert [session["sessionId"] for session in listed] == ["s1", "s0"], folder
            best = await wire.call("sessions.getLastForContext", {"context": {"cwd": folder}})
            assert best == {"sessionId": "s1"}


async def test_lists_mark_sessions_for_one_prompt_and_those_without_an_answer(tmp_path: Path) -> None:
    fails = scripted({"errors": [{"status": 401, "message": "bad key"}], "text": "never"})
    async with running_server(tmp_path) as server:
        wire = server.wire
        answered = await wire.create(HELLO, oneOff=True)
        failed = await wire.create(fails)
        for session in (answered, failed):
            await wire.prompt(session)
        listed = {one["sessionId"]: one for one in (await wire.call("session.list", {}))["sessions"]}
        await wire.call("session.destroy", {"sessionId": answered})
        await wire.call("session.resume", {"sessionId": answered, "provider": HELLO, "oneOff": False})
        await wire.prompt(answered)
        later = {one["sessionId"]: one for one in (await wire.call("session.list", {}))["sessions"]}

    marks = [(listed[session].get("oneOff"), listed[session].get("unanswered")) for session in (answered, failed)]
    assert marks == [(True, None), (None, True)]
    assert "oneOff" not in later[answered]


async def test_usage_counts_on_when_a_session_is_resumed_in_a_new_process(tmp_path: Path) -> None:
    turn = {"text": "Hi.", "usage": {"input": 100, "output": 5}}
    provider = scripted(turn, turn)
    async with running_server(tmp_path) as server:
        session = await server.wire.create(provider)
        await server.wire.prompt(session)
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": session, "provider": provider})
        await server.wire.prompt(session)
        metrics = await server.wire.call("session.usage.getMetrics", {"sessionId": session})
        copy = (await server.wire.call("sessions.fork", {"sessionId": session}))["sessionId"]
        await server.wire.call("session.resume", {"sessionId": copy, "provider": provider})
        of_copy = await server.wire.call("session.usage.getMetrics", {"sessionId": copy})

    def calls(metrics: dict[str, Any], kind: str) -> list[int]:
        return [used["requests"]["count"] for used in metrics[kind].values()]

    assert (calls(metrics, "modelMetrics"), calls(metrics, "totalModelMetrics")) == ([1], [2])
    # What the copy repeats was paid for once.
    assert calls(of_copy, "totalModelMetrics") == []


async def test_a_folder_whose_name_is_too_long_is_a_missing_one(tmp_path: Path) -> None:
    folder = "a" * 300
    async with running_server(tmp_path) as server:
        wire = server.wire
        # Projects lose folders: missing ones are ignored.
        session = await wire.create(HELLO, pluginDirectories=[folder], skillDirectories=[folder])
        await wire.prompt(session)
        requests: list[tuple[str, JsonObject]] = [
            ("session.create", {"provider": HELLO, "workingDirectory": folder}),
            ("session.metadata.setWorkingDirectory", {"sessionId": session, "workingDirectory": f"/{folder}"}),
            ("plugins.builtin.set", {"paths": [f"/{folder}"]}),
        ]
        for method, params in requests:
            error = (await wire.response(await wire.ask(method, params)))["error"]
            assert error["code"] != -32603, f"{method}: {error}"


async def test_delete_removes_live_and_stored_sessions_and_notifies_all_clients(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        live = await wire.create(HELLO)
        await wire.prompt(live)
        stored = await wire.create(HELLO)
        await wire.prompt(stored)
        await wire.call("session.destroy", {"sessionId": stored})
        for session in (live, stored):
            assert await wire.call("session.delete", {"sessionId": session}) == {"success": True}
            assert "metadata" not in await lifecycle(wire, "session.deleted", session)
        again = await wire.call("session.delete", {"sessionId": live})
        assert again == {"success": False, "error": f"Session not found: {live}"}
        assert await wire.call("session.list", {}) == {"sessions": []}
    assert list((tmp_path / "home" / "session-state").iterdir()) == []


@pytest.mark.parametrize("method", ["session.destroy", "session.detach"])
async def test_detaching_keeps_the_files_and_succeeds_twice(tmp_path: Path, method: str) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(HELLO)
        await wire.prompt(session)
        assert await wire.call(method, {"sessionId": session}) == {"success": True}
        assert await wire.call(method, {"sessionId": session}) == {"success": True}
        assert await wire.call(method, {"sessionId": "unknown"}) == {"success": True}
        gone = await wire.error_of("session.send", {"sessionId": session, "prompt": "hi"})
        assert gone["message"] == f"Session not found: {session}"
        assert server.log_of(session).exists()


async def test_a_session_without_prompts_leaves_no_files(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO)
        await server.wire.call("session.destroy", {"sessionId": session})
        assert not server.log_of(session).parent.exists()


async def test_a_session_resumes_in_a_new_process_where_it_was(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO, model="first")
        await server.wire.prompt(session)
        await server.wire.call("session.mode.set", {"sessionId": session, "mode": "plan"})
        await server.wire.call("session.model.switchTo", {"sessionId": session, "modelId": "second"})
        before = await server.wire.call("session.getMessages", {"sessionId": session})
    async with running_server(tmp_path) as server:
        answer = await server.wire.call("session.resume", {"sessionId": session, "provider": HELLO})
        resumed = await server.wire.event("session.resume", session=session)
        current = await server.wire.call("session.model.getCurrent", {"sessionId": session})
        await server.wire.prompt(session)
        after = await server.wire.call("session.getMessages", {"sessionId": session})
    assert (answer["sessionId"], answer["mode"]) == (session, "plan")
    assert current["modelId"] == "second"
    assert resumed["data"]["eventCount"] == len(before["events"])
    assert resumed["data"]["sessionWasActive"] is False
    assert after["events"][: len(before["events"])] == before["events"]
    answers = [event["data"]["content"] for event in after["events"] if event["type"] == "assistant.message"]
    assert answers == ["Hello!", "Hello again!"]


async def test_resume_can_suppress_its_event_and_rejects_unknown_ids(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO)
        await server.wire.prompt(session)
        await server.wire.call("session.resume", {"sessionId": session, "disableResume": True})
        assert "session.resume" not in types(server.wire.events(session))
        error = await server.wire.error_of("session.resume", {"sessionId": "nobody"})
    assert error["message"] == "Session not found: nobody"


async def test_a_second_client_joins_sees_everything_and_leaves_without_ending_it(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, tcp=True) as server,
        server.connect() as first,
        server.connect() as second,
    ):
        session = await first.create(HELLO, tools=[{"name": "one"}])
        await second.call("session.resume", {"sessionId": session, "tools": [{"name": "two"}]})
        clash = await second.error_of("session.resume", {"sessionId": session, "tools": [{"name": "one"}]})
        assert clash["message"] == "tool 'one' is already registered by another client"
        await first.call("session.send", {"sessionId": session, "prompt": "hi"})
        await second.event("session.idle", session=session)
        await second.call("session.detach", {"sessionId": session})
        await first.prompt(session, "again")
        assert "assistant.message" in types(first.events(session))
        assert [
            event["data"]["content"] for event in second.events(session) if event["type"] == "user.message"
        ] == ["hi"]


async def test_events_of_a_session_go_to_attached_clients_only_and_lifecycle_to_all(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, tcp=True) as server,
        server.connect() as owner,
        server.connect() as other,
    ):
        session = await owner.create(HELLO)
        await owner.prompt(session)
        await lifecycle(other, "session.updated", session)
        assert other.events() == []


async def test_mode_set_emits_a_persisted_event(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(HELLO)
        assert await wire.call("session.mode.get", {"sessionId": session}) == "interactive"
        answer = await wire.call("session.mode.set", {"sessionId": session, "mode": "autopilot"})
        assert answer["modelChanged"] is False
        changed = await wire.event("session.mode_changed", session=session)
        assert changed["data"] == {"newMode": "autopilot", "previousMode": "interactive"}
        await lifecycle(wire, "session.updated", session)
        assert await wire.call("session.mode.get", {"sessionId": session}) == "autopilot"
        wrong = await wire.error_of("session.mode.set", {"sessionId": session, "mode": "sideways"})
    assert wrong["code"] == -32602


async def test_a_mode_is_changed_only_from_the_expected_one(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = {"sessionId": await server.wire.create(HELLO)}
        change = {**at, "mode": "plan", "expectedMode": "autopilot"}
        answer = await server.wire.call("session.mode.set", change)
        assert answer == {"status": "unchanged", "modelChanged": False, "modeApplied": False}
        assert await server.wire.call("session.mode.get", at) == "interactive"
        await server.wire.call("session.mode.set", {**change, "expectedMode": "interactive"})
        assert await server.wire.call("session.mode.get", at) == "plan"


async def test_a_switch_can_require_that_the_model_is_available(tmp_path: Path) -> None:
    async with fake_copilot() as copilot, running_server(tmp_path, env=copilot.environ) as server:
        wire = server.wire
        copilot.models += [{"id": "listed"}, {"id": "off", "policy": {"state": "disabled"}}]
        opened = await wire.call("session.create", {"model": "listed", "gitHubToken": ALICE})
        at = {"sessionId": opened["sessionId"]}
        for model in ("gone", "off"):
            wanted = {**at, "modelId": model, "requireAvailable": True}
            error = await wire.error_of("session.model.switchTo", wanted)
            assert f"the model {model!r} is not available" in error["message"]
        assert (await wire.call("session.model.getCurrent", at))["modelId"] == "listed"
        await wire.call("session.model.switchTo", {**at, "modelId": "gone"})
        await wire.call("session.model.switchTo", {**at, "modelId": "listed", "requireAvailable": True})
        assert (await wire.call("session.model.getCurrent", at))["modelId"] == "listed"


async def test_the_server_has_no_foreground_session(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        assert await server.wire.call("session.getForeground", {}) == {}
        answer = await server.wire.call("session.setForeground", {"sessionId": "any"})
    assert answer == {"success": False, "error": "Not running in TUI+server mode"}


async def test_a_built_in_tool_runs_after_approval_and_its_result_is_logged(tmp_path: Path) -> None:
    script = scripted(calls("create", path="made.txt", file_text="hello"), {"text": "made"})
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(script, requestPermission=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "make it"})
        permission_request = await wire.event("permission.requested", session=session)
        assert permission_request["data"]["permissionRequest"]["kind"] == "write"
        assert permission_request["data"]["permissionRequest"]["toolCallId"] == "call-1"
        assert not (tmp_path / "made.txt").exists()
        request = permission_request["data"]["requestId"]
        pending = await wire.call("session.permissions.pendingRequests", {"sessionId": session})
        assert [item["requestId"] for item in pending["items"]] == [request]
        decision = {"sessionId": session, "requestId": request, "result": {"kind": "approve-once"}}
        method = "session.permissions.handlePendingPermissionRequest"
        assert await wire.call(method, decision) == {"success": True}
        await wire.event("session.idle", session=session)
        assert await wire.call(method, decision) == {"success": False}
    assert (tmp_path / "made.txt").read_text() == "hello"
    lines = [json.loads(line) for line in server.log_of(session).read_text().splitlines()]
    order = [line["type"] for line in lines if line["type"].startswith(("tool.", "permission."))]
    assert order == [
        "tool.execution_start",
        "permission.requested",
        "permission.completed",
        "tool.execution_complete",
    ]


async def test_without_a_permission_handler_a_call_is_denied_and_the_setting_is_named_once(tmp_path: Path) -> None:
    script = scripted(calls("bash", command="touch no"), calls("bash", command="touch no"), {"text": "I could not"})
    async with running_server(tmp_path) as server:
        session = await server.wire.create(script)
        events = await server.wire.prompt(session)
    assert not (tmp_path / "no").exists()
    completions = [event["data"] for event in events if event["type"] == "tool.execution_complete"]
    assert [done["error"] for done in completions] == [
        {"code": "denied", "message": "Permission denied and could not request permission from user"}
    ] * 2
    (warning,) = [event["data"] for event in events if event["type"] == "session.warning"]
    assert "--yolo" in warning["message"]
    assert "permissions.allow_unasked" in warning["message"]


@pytest.mark.parametrize(
    ("args", "config"), [(["--yolo"], None), ([], "[permissions]\nallow_unasked = true\n")], ids=["flag", "config"]
)
async def test_the_operator_can_allow_calls_without_a_permission_handler(
    tmp_path: Path, args: list[str], config: str | None
) -> None:
    async with running_server(tmp_path, args=args, config=config) as server:
        session = await server.wire.create(scripted(calls("bash", command="touch yes"), {"text": "done"}))
        await server.wire.prompt(session)
    assert (tmp_path / "yes").exists()


async def test_approve_all_lets_calls_run_without_a_question(tmp_path: Path) -> None:
    script = scripted(calls("bash", command="echo hi"), {"text": "{{last_tool_result}}"})
    async with running_server(tmp_path) as server:
        session = await server.wire.create(script, requestPermission=True)
        params = {"sessionId": session, "enabled": True}
        assert await server.wire.call("session.permissions.setApproveAll", params) == {"success": True}
        events = await server.wire.prompt(session)
    assert "permission.requested" not in types(events)
    assert events[-1]["type"] == "session.idle"
    answers = [event["data"]["content"] for event in events if event["type"] == "assistant.message"]
    assert answers[-1] == "hi\n<exited with exit code 0>"


async def test_the_filters_select_the_offered_tools(tmp_path: Path) -> None:
    def offering(*names: str) -> dict[str, Any]:
        return scripted({"text": "ok", "expect": {"tools": list(names)}})

    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(
            offering("view", "mine"), availableTools=["view", "custom:*"], tools=[{"name": "mine"}]
        )
        assert "session.error" not in types(await wire.prompt(session))
        session = await wire.create(offering("bash"), excludedTools=["bash"])
        (error,) = [e for e in await wire.prompt(session) if e["type"] == "session.error"]
    assert "bash" in error["data"]["message"]


async def test_a_client_tool_replaces_a_built_in_one_only_if_it_declares_that(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("session.create", {"provider": HELLO, "tools": [{"name": "grep"}]})
        assert "overridesBuiltInTool" in error["message"]
        await server.wire.create(HELLO, tools=[{"name": "grep", "overridesBuiltInTool": True}])


async def test_a_script_in_the_configuration_serves_sessions_without_a_provider(tmp_path: Path) -> None:
    config = 'default_model = "play"\n[adapters.scripted]\nscript = "s.json"\n'
    config += '[models.play]\nadapter = "scripted"\nmodel = "one"\n'
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "s.json").write_text(json.dumps({"turns": [{"text": "from {{model}}"}]}))
    async with running_server(tmp_path, config=config) as server:
        session = (await server.wire.call("session.create", {}))["sessionId"]
        events = await server.wire.prompt(session)
        models = (await server.wire.call("models.list", {}))["models"]
        status = await server.wire.call("auth.getStatus", {})
    assert [e["data"]["content"] for e in events if e["type"] == "assistant.message"] == ["from one"]
    assert [model["id"] for model in models] == ["play"]
    assert status == {
        "isAuthenticated": True,
        "authType": "api-key",
        "statusMessage": "Configured providers: scripted",
    }


async def test_without_a_configured_model_the_error_names_the_remedy(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = (await server.wire.call("session.create", {}))["sessionId"]
        events = await server.wire.prompt(session)
        assert "no model is configured" in (await server.wire.error_of("models.list", {}))["message"]
    (error,) = [event["data"] for event in events if event["type"] == "session.error"]
    assert "jumpseat setup" in error["message"]
    assert events[-1]["type"] == "session.idle"


async def test_ping_without_connect_returns_a_numeric_timestamp(tmp_path: Path) -> None:
    async with running_server(tmp_path, handshake=False) as server:
        answer = await server.wire.call("ping", {"message": "x"})
        assert isinstance(answer["timestamp"], int)
        await server.wire.call("connect", {})
        answer = await server.wire.call("ping", {"message": "x"})
    assert answer["timestamp"].endswith("Z")
    assert (answer["message"], answer["protocolVersion"]) == ("pong: x", 3)


async def test_tcp_listens_on_both_loopback_addresses(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server:
        for host in ("127.0.0.1", "::1"):
            assert server.port is not None
            async with await anyio.connect_tcp(host, server.port):
                pass


async def test_a_broken_configuration_file_stops_the_start_with_its_name_and_the_field(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[adapters.x]\nbase_urll = 'y'\n")
    command = [str(Path(sys.executable).with_name("jumpseat")), "--stdio"]
    with anyio.fail_after(WAIT_S):
        process = await anyio.run_process(command, env={"COPILOT_HOME": str(tmp_path)}, input=b"", check=False)
    assert (process.returncode, process.stdout) == (1, b"")
    assert process.stderr.decode().startswith("error: ")
    assert "config.toml:2: adapters.x.base_urll" in process.stderr.decode()


async def test_a_resumed_session_keeps_the_options_that_the_client_does_not_set(tmp_path: Path) -> None:
    script = scripted(
        {"text": "one"},
        {"text": "two", "expect": {"system": "/^You are a parrot\\.$/", "tools": ["view"]}},
        {"text": "three", "expect": {"system": "/^You are a crow\\.$/"}},
    )
    options = {
        "systemMessage": {"mode": "replace", "content": "You are a parrot."},
        "excludedTools": ["bash", "create"],
        "provider": {**script, "apiKey": "sk-very-secret"},
    }
    async with running_server(tmp_path) as server:
        session = (await server.wire.call("session.create", options))["sessionId"]
        await server.wire.prompt(session)
    assert "sk-very-secret" not in "".join(
        path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file()
    )
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": session, "provider": script})
        assert "session.error" not in types(await server.wire.prompt(session))
        metadata = await server.wire.call("session.getMetadata", {"sessionId": session})
        assert metadata["session"]["context"]["cwd"] == str(tmp_path)
        (tmp_path / "elsewhere").mkdir()
        elsewhere = {"sessionId": session, "workingDirectory": str(tmp_path / "elsewhere")}
        await server.wire.call("session.options.update", elsewhere)
        metadata = await server.wire.call("session.getMetadata", {"sessionId": session})
        assert metadata["session"]["context"]["cwd"] == str(tmp_path / "elsewhere")
    async with running_server(tmp_path) as server:
        crow = {"mode": "replace", "content": "You are a crow."}
        await server.wire.call("session.resume", {"sessionId": session, "provider": script, "systemMessage": crow})
        assert "session.error" not in types(await server.wire.prompt(session))


async def test_idle_sessions_hold_no_open_files(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=READABLE) as server:
        for _ in range(30):
            await server.wire.create(HELLO)
        await server.wait_until_logs_are_closed()


@pytest.mark.parametrize("goes_on", [False, True])
async def test_a_resume_ends_the_open_calls_of_a_client_that_left_unless_it_continues_them(
    tmp_path: Path, goes_on: bool
) -> None:
    tools = [{"name": "lookup", "skipPermission": True}]
    script = scripted(calls("lookup"), {"text": "{{last_tool_result}}"})
    async with running_server(tmp_path, tcp=True) as server:
        async with server.connect() as gone:
            session = await gone.create(script, tools=tools)
            await gone.call("session.send", {"sessionId": session, "prompt": "look"})
            request = await gone.event("external_tool.requested", session=session)
        async with server.connect() as wire:
            # The other connection ended before this one began.
            resume = {"sessionId": session, "tools": tools, "continuePendingWork": goes_on}
            await wire.call("session.resume", resume)
            answer = {"sessionId": session, "requestId": request["data"]["requestId"], "result": "found it"}
            answered = await wire.call("session.tools.handlePendingToolCall", answer)
            if goes_on:
                await wire.event("session.idle", session=session)
            log = await wire.call("session.getMessages", {"sessionId": session})

    assert answered == {"success": goes_on}
    (result,) = [event["data"] for event in log["events"] if event["type"] == "tool.execution_complete"]
    text = result["result"]["content"] if goes_on else result["error"]["message"]
    assert text == ("found it" if goes_on else INTERRUPTED)
    (resumed,) = [event["data"] for event in log["events"] if event["type"] == "session.resume"]
    assert (resumed["continuePendingWork"], resumed["sessionWasActive"]) == (goes_on, False)


async def test_only_clients_that_ask_for_it_receive_telemetry_about_their_sessions(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, tcp=True) as server,
        server.connect() as other,
        server.connect(handshake=False) as wire,
    ):
        await wire.call("connect", {"enableGitHubTelemetryForwarding": True})
        session = await wire.create(HELLO, model="a", clientName="app/1")
        await other.call("session.resume", {"sessionId": session})
        told = await wire.until(lambda message: message.get("method") == "gitHubTelemetry.event")
        await other.check_alive()
    params = told["params"]
    assert (params["sessionId"], params["restricted"], params["event"]["kind"]) == (session, False, "session_start")
    assert params["event"]["properties"] == {"mode": "interactive", "model": "a"}
    assert params["event"]["client"]["client_name"] == "app/1"
    assert "gitHubTelemetry.event" not in [message.get("method") for message in other.messages]


async def test_a_request_waits_for_the_session_that_is_being_opened(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = str(uuid.uuid4())
        token = {"gitHubTokenProviderRegistrationId": "r"}
        create = await wire.ask("session.create", {"sessionId": session, "provider": HELLO, **token})
        asked = await wire.until(lambda message: message.get("method") == "gitHubToken.getToken")
        early = await wire.ask("session.mode.get", {"sessionId": session})
        await wire.check_alive()
        assert early not in [message.get("id") for message in wire.messages if "method" not in message]
        await wire.answer(asked, {"kind": "token", "accessToken": "t", "expiresIn": 9999})
        created, mode = await wire.response(create), await wire.response(early)
        failed = str(uuid.uuid4())
        since = len(wire.messages)
        create = await wire.ask("session.create", {"sessionId": failed, "provider": HELLO, **token})
        asked = await wire.until(lambda message: message.get("method") == "gitHubToken.getToken", since=since)
        early = await wire.ask("session.mode.get", {"sessionId": failed})
        await wire.answer(asked, {"kind": "cancelled"})
        refused, unknown = await wire.response(create), await wire.response(early)
    assert created["result"]["sessionId"] == session
    assert mode["result"] == "interactive"
    assert "error" in refused
    assert unknown["error"]["message"] == f"Session not found: {failed}"


async def test_requests_that_arrive_together_with_the_one_that_opens_their_session_wait_for_it(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session, unknown = str(uuid.uuid4()), str(uuid.uuid4())

        async def burst(*sent: tuple[str, JsonObject]) -> list[JsonObject]:
            """Send requests in one write, and return their responses."""
            ids = [wire.new_id() for _ in sent]
            frames = [frame(request(msg_id, *one)) for msg_id, one in zip(ids, sent, strict=True)]
            await wire.send(b"".join(frames))
            return [await wire.response(msg_id) for msg_id in ids]

        of, opened = {"sessionId": session}, {"sessionId": session, "provider": HELLO}
        created, mode, resumed, sent = await burst(
            ("session.create", opened),
            ("session.mode.get", of),
            ("session.resume", opened),
            ("session.send", {**of, "prompt": "hi"}),
        )
        await wire.event("session.idle", session=session)
        await wire.call("session.destroy", of)
        loaded, messages, destroyed, late = await burst(
            ("session.resume", opened),
            ("session.getMessages", of),
            ("session.destroy", of),
            ("session.mode.get", of),
        )
        bad = {"sessionId": unknown, "provider": {"type": "nonsense"}}
        refused, missing = await burst(("session.create", bad), ("session.mode.get", {"sessionId": unknown}))
    assert (
        created["result"]["sessionId"] == resumed["result"]["sessionId"] == loaded["result"]["sessionId"] == session
    )
    assert mode["result"] == "interactive"
    assert sent["result"]["messageId"]
    assert messages["result"]["events"][0]["type"] == "session.start"
    assert destroyed["result"] == {"success": True}
    assert late["error"]["message"] == f"Session not found: {session}"
    assert "nonsense" in refused["error"]["message"]
    assert missing["error"]["message"] == f"Session not found: {unknown}"


async def test_a_session_that_is_named_at_its_creation_is_kept_and_listed_without_a_prompt(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(HELLO, name="Häfen 🚢")
        await wire.event("session.title_changed", title="Häfen 🚢")
        listed = (await wire.call("session.list", {}))["sessions"]
        await wire.call("session.destroy", {"sessionId": session})
        kept = (await wire.call("session.list", {}))["sessions"]
        await wire.call("session.resume", {"sessionId": session, "provider": HELLO})
        assert await wire.call("session.name.get", {"sessionId": session}) == {"name": "Häfen 🚢"}
        for wrong in ("", " x", "x ", "x" * 101, "🚢" * 51, 'a "b"', "a\nb"):
            error = await wire.error_of("session.create", {"provider": HELLO, "name": wrong})
            assert error["message"].startswith("name: "), wrong
        await wire.create(HELLO, name="🚢" * 50)
    assert [entry["sessionId"] for entry in listed] == [entry["sessionId"] for entry in kept] == [session]
    assert kept[0]["summary"] == "Häfen 🚢"


async def test_the_model_is_told_once_which_tools_have_left_with_their_client(tmp_path: Path) -> None:
    notice = (
        "<tools_changed_notice>\nTools no longer available: fleeting\n\nImportant: Do not attempt to call"
        " tools that are no longer available unless you've been notified that they're available again.\n"
        "</tools_changed_notice>"
    )

    def tools(*names: str) -> list[JsonObject]:
        return [{"name": name} for name in names]

    async with running_server(tmp_path, tcp=True) as server, server.connect() as wire:
        provider = scripted({"text": "One"}, {"text": "Two"}, {"text": "Three"})
        session = await wire.create(provider, tools=tools("lasting"), excludedTools=["hidden"])
        async with server.connect() as other:
            joined = {"sessionId": session, "provider": provider, "tools": tools("fleeting", "hidden")}
            await other.call("session.resume", joined)
            await wire.prompt(session, "first")
        since = len(wire.messages)
        sent = [(await wire.prompt(session, prompt))[1:] for prompt in ("second", "third")]
        prompts = [event["data"] for event in wire.events(session, since=since) if event["type"] == "user.message"]
    assert len(sent) == 2
    second, third = (prompt["transformedContent"].split("</current_datetime>\n\n")[1] for prompt in prompts)
    assert second.startswith(f"{notice}\n\nsecond\n\n<reminder>")
    assert third.startswith("third\n\n<reminder>")
    assert [prompt["content"] for prompt in prompts] == ["second", "third"]


async def test_a_client_lists_the_tool_calls_that_wait_for_an_answer(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        provider = scripted(calls("look_up", "call-1", key="a"), {"text": "done"})
        session = await wire.create(provider, tools=[{"name": "look_up", "skipPermission": True}])
        of = {"sessionId": session}
        assert await wire.call("session.tools.listPendingRequests", of) == {"items": []}
        await wire.call("session.send", {**of, "prompt": "go"})
        asked = (await wire.event("external_tool.requested"))["data"]
        listed = await wire.call("session.tools.listPendingRequests", of)
        answer = {**of, "requestId": asked["requestId"], "result": "found"}
        await wire.call("session.tools.handlePendingToolCall", answer)
        await wire.event("session.idle")
        assert await wire.call("session.tools.listPendingRequests", of) == {"items": []}
    expected = {"requestId": asked["requestId"], "toolCallId": "call-1", "toolName": "look_up"}
    assert listed == {"items": [{**expected, "arguments": {"key": "a"}}]}


async def test_changed_instructions_are_read_without_a_reload(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        of = {"sessionId": await server.wire.create(HELLO)}
        assert await server.wire.call("session.instructions.reload", of) == {"sources": []}
        (tmp_path / "AGENTS.md").write_text("Be brief.\n")
        (source,) = (await server.wire.call("session.instructions.reload", of))["sources"]
        assert await server.wire.call("mcp.listBuiltinServerNames") == {"names": ["github-mcp-server"]}
    assert source["content"].strip() == "Be brief."
