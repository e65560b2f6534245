"""The answers of hook commands in the forms of Copilot, VS Code and Claude Code: each has an effect, or is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent.session.test_hook_commands import says_json, write
from tests.support.events import data_of, tool_texts
from tests.support.fake_openai import MODEL, FakeOpenAI, calls, fake_openai, says
from tests.support.server import RunningServer, running_server

pytestmark = pytest.mark.anyio

BASH = calls("bash", command="echo original", description="d")


def specific(**output: Any) -> str:
    return says_json(hookSpecificOutput=output)


async def open_with(
    server: RunningServer, model: FakeOpenAI, folder: Path, hooks: dict[str, Any], *, asks: bool = False
) -> str:
    """Open a session whose client names a folder with ``hooks``."""
    write(folder, **hooks)
    provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
    options = {"hookDirectories": [str(folder)], "requestPermission": asks}
    session = await server.wire.create(provider, model=MODEL, **options)
    if not asks:
        await server.wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
    return session


BLOCKS: list[tuple[str, str, str]] = [
    ("UserPromptSubmit", says_json(decision="block", reason="has a key"), "has a key"),
    ("UserPromptSubmit", specific(decision="block", reason="has a key"), "has a key"),
    ("UserPromptSubmit", "echo 'has a key' >&2; exit 2", "has a key"),
    ("UserPromptSubmit", says_json(**{"continue": False, "stopReason": "has a key"}), "has a key"),
    ("UserPromptSubmit", says_json(decision="deny"), "invalid fields: decision"),
    ("UserPromptSubmit", says_json(permissionDecision="deny"), "no effect: permissionDecision"),
    ("UserPromptSubmit", says_json(**{"continue": "false"}), "invalid fields: continue"),
    ("UserPromptSubmit", """echo '{"decision": "block", "reason": "a "quote""}'""", "invalid JSON"),
    ("userPromptSubmitted", says_json(decision="block", reason="has a key"), "has a key"),
    ("userPromptSubmitted", "echo 'has a key' >&2; exit 2", "has a key"),
    ("SessionStart", says_json(**{"continue": False, "stopReason": "not today"}), "not today"),
]


async def test_a_blocked_prompt_never_reaches_the_model_and_the_next_one_does(tmp_path: Path) -> None:
    async with fake_openai({"good": [says("Fine.")]}) as model, running_server(tmp_path) as server:
        for number, (event, command, reason) in enumerate(BLOCKS):
            only_once = f"if mkdir used-{number} 2>/dev/null; then {command}; fi"
            session = await open_with(server, model, tmp_path / f"hooks-{number}", {event: only_once})
            model.requests.clear()
            events = await server.wire.prompt(session, "the SECRET")
            (error,) = data_of(events, "session.error")
            assert error["errorType"] == "hook", command
            assert reason in error["message"], command
            assert (model.requests, data_of(events, "user.message")) == ([], []), command

            events = await server.wire.prompt(session, "good")
            assert data_of(events, "assistant.message")[-1]["content"] == "Fine.", command
            assert "SECRET" not in json.dumps(model.requests), command


CONTEXTS: list[tuple[str, str]] = [
    ("UserPromptSubmit", "echo 'the {context}'"),
    ("UserPromptSubmit", specific(additionalContext="the {context}")),
    ("userPromptSubmitted", says_json(additionalContext="the {context}")),
    ("SessionStart", "echo 'the {context}'"),
    ("SessionStart", "head -c 20000 /dev/zero | tr '\\0' x | sed 's/^/the {context} /'"),
    ("SessionStart", specific(additionalContext="the {context}")),
    ("PreToolUse", specific(additionalContext="the {context}")),
    ("PostToolUse", says_json(decision="block", reason="the {context}")),
    ("PostToolUse", specific(additionalContext="the {context}")),
    ("PostToolUse", specific(updatedToolOutput="the {context}")),
    ("PostToolUse", "echo 'the {context}' >&2; exit 2"),
    ("PostToolUseFailure", "echo 'the {context}' >&2; exit 2"),
    ("PostToolUse", "grep -o '\"tool_response\":\"original' | sed 's/.*/the {context}/' >&2; exit 2"),
    ("Stop", says_json(decision="block", reason="the {context}")),
    ("Stop", specific(decision="block", reason="the {context}")),
    ("Stop", "grep -q '\"stop_hook_active\":true' || { echo 'the {context}' >&2; exit 2; }"),
]


async def test_what_a_hook_says_to_the_model_reaches_it(tmp_path: Path) -> None:
    script = {
        "works": [BASH, says("Done.")],
        "fails": [calls("view", path="missing.txt"), says("Done.")],
        "the {context}": [says("Seen.")],
    }
    async with fake_openai(script) as model, running_server(tmp_path) as server:
        for number, (event, command) in enumerate(CONTEXTS):
            session = await open_with(server, model, tmp_path / f"hooks-{number}", {event: command})
            model.requests.clear()
            prompt = "fails" if event == "PostToolUseFailure" else "works"
            await server.wire.prompt(session, prompt)
            told = json.dumps(model.requests[-1]["messages"])
            assert "the {context}" in told, command
            assert "x" * 10_000 not in told


async def test_the_end_of_a_run_can_be_blocked_a_limited_number_of_times(tmp_path: Path) -> None:
    script = {"go": [says("One.")], "more": [says("Again.")]}
    async with fake_openai(script) as model, running_server(tmp_path) as server:
        for number, stop in enumerate(("Stop", "agentStop")):
            command = "cat >> seen.txt; echo >> seen.txt; " + says_json(decision="block", reason="more")
            session = await open_with(server, model, tmp_path / f"hooks-{number}", {stop: command})
            events = await server.wire.prompt(session, "go")
            assert len(data_of(events, "assistant.message")) == 9
            (warning,) = data_of(events, "session.warning")
            assert "go on 8 times" in warning["message"]
        order = says_json(**{"continue": False, "stopReason": "enough", "decision": "block", "reason": "more"})
        events = await server.wire.prompt(await open_with(server, model, tmp_path / "last", {"Stop": order}), "go")
        assert [message["content"] for message in data_of(events, "assistant.message")] == ["One."]
        assert [warning["message"] for warning in data_of(events, "session.warning")] == [
            "a hook ended the run: enough"
        ]
        # In the other format, the exit code has no such meaning.
        failing = await open_with(server, model, tmp_path / "native", {"agentStop": "echo no >&2; exit 2"})
        events = await server.wire.prompt(failing, "go")
        assert [message["content"] for message in data_of(events, "assistant.message")] == ["One."]
        assert "exited with code 2: no" in data_of(events, "session.warning")[0]["message"]
    seen = [json.loads(line)["stop_hook_active"] for line in (tmp_path / "seen.txt").read_text().splitlines()]
    assert seen == [False, *[True] * 7] * 2


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "postToolUse"])
async def test_a_hook_of_a_call_can_end_the_run(tmp_path: Path, event: str) -> None:
    command = says_json(**{"continue": False, "stopReason": "enough"})
    script = {"go": [BASH, says("Never.")], "next": [says("Fine.")]}
    async with fake_openai(script) as model, running_server(tmp_path) as server:
        session = await open_with(server, model, tmp_path / "hooks", {event: command})
        events = await server.wire.prompt(session, "go")
        (error,) = data_of(events, "session.error")
        assert error["message"] == "Execution failed: a hook ended the run: enough"
        assert len(model.requests) == 1
        assert ("original" in tool_texts(events)[0]) == (event != "PreToolUse")
        events = await server.wire.prompt(session, "next")
        assert data_of(events, "assistant.message")[-1]["content"] == "Fine."


PERMISSIONS: list[tuple[str, str, bool]] = [
    (specific(decision={"behavior": "deny", "message": "not that"}), "hook: not that", True),
    (says_json(behavior="deny", message="not that"), "hook: not that", True),
    ("echo 'not that' >&2; exit 2", "hook: not that", True),
    ("exit 1", "hook errored: the command exited with code 1", True),
    (specific(decision={"behavior": "perhaps"}), "hook errored: the hook answered with invalid", True),
    (specific(decision={"behavior": "allow"}), "original", True),
    (
        specific(decision={"behavior": "allow", "updatedInput": {"command": "echo changed", "description": "d"}}),
        "changed",
        True,
    ),
    ("true", "rejected", True),
    # Calls that nobody is asked about are guarded, too.
    (specific(decision={"behavior": "deny", "message": "not that"}), "hook: not that", False),
]


async def test_a_hook_answers_in_place_of_the_user(tmp_path: Path) -> None:
    async with fake_openai({"go": [BASH, says("Done.")]}) as model, running_server(tmp_path) as server:
        for number, (command, told, asks) in enumerate(PERMISSIONS):
            hooks: dict[str, Any] = {
                "PermissionRequest": [{"matcher": "Bash", "hooks": [{"command": f"cat > seen.json; {command}"}]}]
            }
            session = await open_with(server, model, tmp_path / f"hooks-{number}", hooks, asks=asks)
            await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
            asked = await server.wire.event("permission.requested", session=session)
            assert asked["data"].get("resolvedByHook", False) == (command != "true")
            if command == "true":
                decision = {"requestId": asked["data"]["requestId"], "result": {"kind": "reject", "feedback": "x"}}
                answer = {"sessionId": session, **decision}
                await server.wire.call("session.permissions.handlePendingPermissionRequest", answer)
            await server.wire.event("session.idle", session=session)
            assert told in tool_texts(server.wire.events(session))[0], command
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert (seen["hook_event_name"], seen["tool_name"]) == ("PermissionRequest", "Bash")
    assert seen["tool_input"]["command"] == "echo original"


async def test_a_hook_that_interrupts_ends_the_run(tmp_path: Path) -> None:
    denial = specific(decision={"behavior": "deny", "message": "never", "interrupt": True})
    async with fake_openai({"go": [BASH, says("Never.")]}) as model, running_server(tmp_path) as server:
        session = await open_with(server, model, tmp_path / "hooks", {"PermissionRequest": denial})
        events = await server.wire.prompt(session, "go")
        assert len(model.requests) == 1
        assert [warning["message"] for warning in data_of(events, "session.warning")] == [
            "A hook ended the run: never"
        ]


TOLD: list[tuple[str, str, str | None]] = [
    ("PostToolUse", says_json(systemMessage="Tests are red."), "Tests are red."),
    ("PostToolUse", says_json(suppressOutput=True, **{"continue": True}), None),
    ("PostToolUse", specific(hookEventName="PostToolUse"), None),
    ("PostToolUse", "echo formatted", None),
    ("PostToolUse", says_json(retry=True), "answered with fields that have no effect: retry"),
    ("PreToolUse", specific(permissionDecision="allow", updatedPermissions=[]), "no effect: updatedPermissions"),
    ("PostToolUse", "echo oh >&2; exit 1", "exited with code 1: oh"),
    ("UserPromptSubmit", "echo oh >&2; exit 1", "exited with code 1: oh"),
    ("userPromptSubmitted", says_json(modifiedPrompt="else"), "modifiedPrompt, which only clients can decide"),
    ("SessionEnd", "true", None),
    ("PreCompact", "true", "there is no such hook here"),
]


async def test_what_has_no_effect_is_told_once_and_what_a_hook_says_to_the_user_is_shown(tmp_path: Path) -> None:
    async with fake_openai({"go": [BASH, says("Done.")]}) as model, running_server(tmp_path) as server:
        for number, (event, command, told) in enumerate(TOLD):
            session = await open_with(server, model, tmp_path / f"hooks-{number}", {event: command})
            events = await server.wire.prompt(session, "go")
            assert "original" in tool_texts(events)[0]
            warnings = [warning["message"] for warning in data_of(events, "session.warning")]
            assert len(warnings) == (told is not None), (command, warnings)
            assert told is None or told in warnings[0]
            assert [message["content"] for message in data_of(events, "user.message")] == ["go"]


async def test_a_hook_may_be_a_script_in_a_folder_that_the_sandbox_hides(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scripts = tmp_path_factory.mktemp("scripts")
    (scripts / "words.sh").write_text("words=blocked\n")
    (scripts / "guard.sh").write_text(f". {scripts}/words.sh; echo $words by the guard >&2; exit 2\n")
    async with fake_openai({"go": [says("Fine.")]}) as model, running_server(tmp_path) as server:
        hooks = {"UserPromptSubmit": f"sh {scripts}/guard.sh"}
        session = await open_with(server, model, tmp_path_factory.mktemp("hooks"), hooks)
        (error,) = data_of(await server.wire.prompt(session, "go"), "session.error")
    assert "blocked by the guard" in error["message"]
