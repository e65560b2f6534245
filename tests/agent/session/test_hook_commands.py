"""Hook commands in files over the real wire: who may decide what, and that failing commands stop no session."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.support.callbacks import answering
from tests.support.events import data_of, tool_texts
from tests.support.fake_openai import MODEL, fake_openai, says, texts
from tests.support.fake_openai import calls as model_calls
from tests.support.server import Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

VIEW = scripted(calls("view", path="note.txt"), {"text": "Done."})


def write(folder: Path, name: str = "guard.json", **events: Any) -> Path:
    """Write a hook file, with a command or a list of hooks for each event."""
    folder.mkdir(parents=True, exist_ok=True)
    hooks = {
        event: [{"type": "command", "bash": entry}] if isinstance(entry, str) else entry
        for event, entry in events.items()
    }
    (folder / name).write_text(json.dumps({"version": 1, "hooks": hooks}))
    return folder / name


def project_in(folder: Path, **events: Any) -> tuple[Path, str]:
    """Write a project with hooks; returns its folder, and a configuration that trusts it."""
    project = folder / "project"
    (project / ".git").mkdir(parents=True)
    (project / "note.txt").write_text("a note\n")
    (project / "other.txt").write_text("another note\n")
    write(project / ".github" / "hooks", **events)
    return project, f'trusted_folders = ["{project}"]\n'


async def open_in(wire: Wire, project: Path, provider: Any = VIEW, *, approves: bool = True, **options: Any) -> str:
    asked = {"workingDirectory": str(project), "enableFileHooks": True, **options}
    session = await wire.create(provider, **asked)
    await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": approves})
    return session


def says_json(**output: Any) -> str:
    """Return a command that answers with an object."""
    return f"echo '{json.dumps(output)}'"


async def test_a_hook_of_a_trusted_project_gets_the_call_and_denies_it(tmp_path: Path) -> None:
    denial = says_json(permissionDecision="deny", permissionDecisionReason="no notes")
    project, config = project_in(tmp_path, preToolUse=f"cat > seen.json; {denial}")
    async with running_server(tmp_path, config=config) as server:
        session = await open_in(server.wire, project)
        events = await server.wire.prompt(session)
    assert tool_texts(events) == ["Denied by preToolUse hook: no notes"]
    seen = json.loads((project / "seen.json").read_text())
    assert (seen["toolName"], seen["toolArgs"], seen["cwd"]) == ("view", {"path": "note.txt"}, str(project))
    assert [start["hookType"] for start in data_of(events, "hook.start")] == ["preToolUse"]


async def test_hooks_of_a_folder_that_the_client_names_run_without_trust_and_after_a_resume(tmp_path: Path) -> None:
    project, _ = project_in(tmp_path, preToolUse="touch ran")
    folder = tmp_path / "given"
    write(folder, preToolUse="echo 'named by the client' >&2; exit 2")
    provider = scripted(*VIEW["script"]["turns"], calls("view", "call-2", path="note.txt"), {"text": "Done."})
    async with running_server(tmp_path) as server:
        given = ["../given"]
        session = await open_in(server.wire, project, provider, hookDirectories=given, enableFileHooks=False)
        events = await server.wire.prompt(session)
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": session, "provider": provider})
        await server.wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        events += await server.wire.prompt(session)
        asked = {"hookDirectories": [str(folder)], "excludeHostHooks": True}
        (hook,) = (await server.wire.call("hooks.discover", asked))["hooks"]
    assert tool_texts(events) == ["Denied by preToolUse hook: named by the client"] * 2
    assert not (project / "ran").exists()
    assert (hook["enabled"], hook["source"]) == (True, str(folder / "guard.json"))


async def test_hooks_of_a_folder_that_is_not_trusted_do_not_run_and_the_user_is_told_once(tmp_path: Path) -> None:
    project, _ = project_in(tmp_path, preToolUse="exit 2", sessionStart="touch ran")
    provider = scripted(calls("view", path="note.txt"), {"text": "One."}, {"text": "Two."})
    async with running_server(tmp_path) as server:
        session = await open_in(server.wire, project, provider)
        events = await server.wire.prompt(session) + await server.wire.prompt(session)
    assert "a note" in tool_texts(events)[0]
    assert not (project / "ran").exists()
    (warning,) = data_of(events, "session.warning")
    assert warning["warningType"] == "hooks"
    assert "(2) do not run, because the folder is not trusted" in warning["message"]


@pytest.mark.parametrize(
    ("command", "told", "succeeded"),
    [
        ("echo 'not that one' >&2; exit 2", "Denied by preToolUse hook: not that one", True),
        (f"{says_json(permissionDecision='allow')}; exit 3", "hook errored: the command exited with code 3", False),
        ("exec sleep 60", "hook errored: the command took longer than 0.25 s", False),
        ("echo busy; echo {{{", "hook errored: the command answered with invalid JSON", False),
        ("echo busy", "a note", False),
        ("head -c 3000000 /dev/zero", "a note", False),
        ('echo \'{"type": "progress", "message": "busy"}\'; echo', "a note", True),
        (says_json(permissionDecision="perhaps"), "hook errored: the hook answered with invalid fields", False),
        (says_json(permissionDecision="allow", decision="block", reason="not here"), "hook: not here", True),
        (says_json(permissionDecision="deny", decision="maybe"), "Denied by preToolUse hook: No reason", True),
        (says_json(behavior="deny"), "hook errored: the hook answered with fields that have no effect", False),
        (says_json(decision="block", reason="not here"), "Denied by preToolUse hook: not here", True),
        (says_json(**{"continue": False, "stopReason": "enough"}), "Denied by preToolUse hook: enough", True),
        (says_json(hookSpecificOutput={"updatedInput": {"path": "other.txt"}}), "another note", True),
    ],
    ids=[
        *("exit 2", "exit 3", "hangs", "broken JSON", "no JSON", "floods", "progress"),
        *(
            "unknown decision",
            "block beside allow",
            "denial beside nonsense",
            "decision of another hook",
            "block",
            "continue",
            "updated input",
        ),
    ],
)
async def test_a_guard_that_fails_denies_the_call_and_one_that_says_nothing_does_not(
    tmp_path: Path, command: str, told: str, succeeded: bool
) -> None:
    entry = {"bash": command, "timeoutSec": 0.25 if "sleep" in command else 20}
    project, config = project_in(tmp_path, preToolUse=[entry])
    async with running_server(tmp_path, config=config) as server:
        session = await open_in(server.wire, project)
        events = await server.wire.prompt(session)
    assert told in tool_texts(events)[0]
    assert [end["success"] for end in data_of(events, "hook.end")] == [succeeded]


@pytest.mark.parametrize("source", ["user", "project"])
async def test_only_a_hook_of_the_user_can_allow_a_call_that_would_be_asked_about(
    tmp_path: Path, source: str
) -> None:
    allow = says_json(permissionDecision="allow")
    project, config = project_in(tmp_path, **({"preToolUse": allow} if source == "project" else {}))
    if source == "user":
        script = write(tmp_path / "home" / "hooks", preToolUse="bash ~/home/hooks/allow.sh").with_name("allow.sh")
        script.write_text(allow)
    provider = scripted(calls("bash", command="touch made", description="d"), {"text": "Done."})
    async with running_server(tmp_path, config=config) as server:
        session = await open_in(server.wire, project, provider, approves=False, requestPermission=True)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
        if source == "project":
            asked = await server.wire.event("permission.requested", session=session)
            decision = {"requestId": asked["data"]["requestId"], "result": {"kind": "reject"}}
            await server.wire.call(
                "session.permissions.handlePendingPermissionRequest", {"sessionId": session, **decision}
            )
        await server.wire.event("session.idle", session=session)
    assert (project / "made").exists() == (source == "user")


async def test_each_hook_gets_the_changes_of_the_one_before_and_their_contexts_are_joined(tmp_path: Path) -> None:
    project, config = project_in(
        tmp_path,
        preToolUse=[
            {"bash": f"cat > first.json; {says_json(modifiedArgs={'path': 'third.txt'}, additionalContext='two')}"},
            {"bash": f"cat > second.json; {says_json(additionalContext='three')}"},
        ],
    )
    (project / "third.txt").write_text("the third\n")
    turns = [model_calls("view", path="note.txt"), says("Done.")]
    async with fake_openai({"go": turns}) as model, running_server(tmp_path, config=config) as server:
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        wire = server.wire
        session = await open_in(wire, project, provider, model=MODEL, hooks=True)
        by_client = {"modifiedArgs": {"path": "second.txt"}, "additionalContext": "one"}
        async with answering(wire, {"preToolUse": [by_client]}):
            events = await wire.prompt(session)
    inputs = [json.loads((project / name).read_text())["toolArgs"] for name in ("first.json", "second.json")]
    assert inputs == [{"path": "second.txt"}, {"path": "third.txt"}]
    assert "the third" in tool_texts(events)[0]
    assert any("one\n\ntwo\n\nthree" in text for text in texts(model.requests[-1], "user"))


async def test_an_abort_ends_a_command_that_hangs(tmp_path: Path) -> None:
    project, config = project_in(tmp_path, preToolUse="echo > begun; while true; do echo; done")
    os.mkfifo(project / "begun")
    async with running_server(tmp_path, config=config) as server:
        session = await open_in(server.wire, project)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await anyio.to_thread.run_sync((project / "begun").read_text)
        await server.wire.call("session.abort", {"sessionId": session})
        await server.wire.event("session.idle", session=session)
        # The server checks at its end that it leaves no process behind.
        ends = data_of(server.wire.events(session), "hook.end")
    assert [end["error"]["message"] for end in ends] == ["the hook was cancelled"]


async def test_a_session_begins_goes_on_and_ends_with_its_commands(tmp_path: Path) -> None:
    block = says_json(decision="block", reason="Tidy up first.")
    project, config = project_in(
        tmp_path,
        sessionStart=says_json(additionalContext="The branch is called main."),
        userPromptSubmitted=says_json(modifiedPrompt="something else"),
        agentStop=f"mkdir stopped && {block}; true",
        sessionEnd="cat > end.json",
    )
    async with (
        fake_openai({"Go ahead": [says("One."), says("Two.")]}) as model,
        running_server(tmp_path, config=config) as server,
    ):
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        session = await open_in(server.wire, project, provider, model=MODEL)
        await server.wire.prompt(session, "Go ahead")
        await server.wire.call("session.destroy", {"sessionId": session})
    told = texts(model.requests[-1], "user")
    assert any("The branch is called main." in text for text in told)
    assert any("Go ahead" in text for text in told)
    assert any("Tidy up first." in text for text in told)
    assert json.loads((project / "end.json").read_text())["reason"] == "complete"


async def test_commands_neither_get_credentials_nor_write_outside_of_the_project(tmp_path: Path) -> None:
    project, config = project_in(
        tmp_path,
        sessionStart=[{"bash": "env > env.txt; touch ../outside; true", "env": {"MINE": "in $HOME", "PLAIN": "1"}}],
    )
    keys = {"OPENAI_API_KEY": "sk-something-secret", "GH_TOKEN": "ghp_something-secret"}
    async with running_server(tmp_path, config=config, env=keys) as server:
        await server.wire.prompt(await open_in(server.wire, project, scripted({"text": "Hi"})))
    variables = (project / "env.txt").read_text()
    assert f"MINE=in {tmp_path}" in variables
    assert "secret" not in variables
    assert not (tmp_path / "outside").exists()


async def test_invalid_files_and_hooks_are_reported_and_the_others_run(tmp_path: Path) -> None:
    project, config = project_in(
        tmp_path,
        sessionStart=[{"type": "prompt", "prompt": "/help"}, {"bash": 7}, {"bash": "touch ran", "timeout": 9}],
        notification="touch never",
    )
    folder = project / ".github" / "hooks"
    (folder / "a.json").write_text("{")
    (folder / "b.json").write_text('{"version": 2, "hooks": {}}')
    (folder / "c.json").write_text('{"version": 1, "hooks": {"sessionEnd": {}}}')
    outside = write(tmp_path / "outside", "evil.json", sessionStart="touch never")
    (folder / "d.json").symlink_to(outside)
    os.mkfifo(folder / "e.json")
    (folder / "f.json").write_text(
        json.dumps({"hooks": {"sessionStart": [{"bash": "touch never"}]}, "disableAllHooks": True})
    )
    async with running_server(tmp_path, config=config) as server:
        events = await server.wire.prompt(await open_in(server.wire, project, scripted({"text": "Hi"})))
    warnings = [warning["message"].replace(str(folder), "") for warning in data_of(events, "session.warning")]
    assert warnings == [
        "The hooks in /a.json are ignored: not JSON",
        "The hooks in /b.json are ignored: expected the version 1",
        "The hooks in /c.json are ignored: hooks.sessionEnd: expected an array",
        "The hooks in /d.json are ignored: leads out of the project",
        "The hooks in /e.json are ignored: not a regular file",
        "The hook 1 for sessionStart in /guard.json is ignored: only hooks of the type 'command' run here",
        "The hook 2 for sessionStart in /guard.json is ignored: bash: expected a string",
        "The hooks for 'notification' in /guard.json are ignored: there is no such hook here",
    ]
    assert (project / "ran").exists()
    assert not (project / "never").exists()


async def test_hooks_of_a_plugin_run_once_a_person_has_agreed_in_the_form_of_other_agents(tmp_path: Path) -> None:
    project, config = project_in(tmp_path)
    plugin = tmp_path / "tea"
    group = [
        {"matcher": "Read|Edit", "hooks": [{"command": '"${CLAUDE_PLUGIN_ROOT}/guard.sh"'}]},
        {"matcher": "Bash", "hooks": [{"command": "exit 2"}]},
    ]
    write(plugin / "hooks", "hooks.json", PreToolUse=group)
    (plugin / "plugin.json").write_text('{"name": "tea"}')
    (plugin / "guard.sh").write_text(
        "#!/bin/sh\ncat > seen.json\n"
        + says_json(hookSpecificOutput={"permissionDecision": "deny", "permissionDecisionReason": "by tea"})
    )
    (plugin / "guard.sh").chmod(0o755)
    provider = scripted(*[calls("view", path="note.txt"), {"text": "Done."}] * 2)
    async with running_server(tmp_path, config=config) as server:
        wire = server.wire
        session = await open_in(wire, project, provider)
        done = await wire.call("session.plugins.install", {"sessionId": session, "source": str(plugin)})
        assert "jumpseat plugins trust" in done["postInstallMessage"]
        events = await wire.prompt(session)
        assert "a note" in tool_texts(events)[0]
        assert "not trusted" in data_of(wire.events(session), "session.warning")[0]["message"]
        environ = {**os.environ, "COPILOT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
        trust = await anyio.run_process(
            [sys.executable, "-m", "jumpseat", "plugins", "trust", "tea", "--yes"], env=environ
        )
        assert "hook" in trust.stdout.decode()
        await wire.call("session.plugins.reload", {"sessionId": session})
        events = await wire.prompt(session)
    assert tool_texts(events) == ["Denied by preToolUse hook: by tea"]
    seen = json.loads((project / "seen.json").read_text())
    assert (seen["hook_event_name"], seen["tool_name"], seen["tool_input"]) == (
        "PreToolUse",
        "Read",
        {"path": "note.txt"},
    )


async def test_hooks_of_a_project_can_wait_until_the_client_asks_for_them(tmp_path: Path) -> None:
    project, config = project_in(tmp_path, preToolUse="exit 2")
    provider = scripted(*[calls("view", path="note.txt"), {"text": "Done."}] * 2)
    async with running_server(tmp_path, config=config) as server:
        wire = server.wire
        session = await open_in(wire, project, provider)
        await wire.call("sessions.reloadPluginHooks", {"sessionId": session, "deferRepoHooks": True})
        assert "a note" in tool_texts(await wire.prompt(session))[0]
        loaded = await wire.call("sessions.loadDeferredRepoHooks", {"sessionId": session})
        assert loaded == {"startupPrompts": [], "hookCount": 1}
        assert "Denied by preToolUse hook" in tool_texts(await wire.prompt(session))[0]


@pytest.mark.parametrize("switch", ["client", "operator"])
async def test_hook_files_can_be_switched_off(tmp_path: Path, switch: str) -> None:
    project, config = project_in(tmp_path, preToolUse="exit 2")
    write(tmp_path / "home" / "hooks", preToolUse="exit 2")
    config += "[hooks]\nfiles = false\n" if switch == "operator" else ""
    async with running_server(tmp_path, config=config) as server:
        session = await open_in(server.wire, project, enableFileHooks=switch != "client")
        events = await server.wire.prompt(session)
    assert "a note" in tool_texts(events)[0]
    assert data_of(events, "hook.start") == []


async def test_hooks_are_discovered_with_their_files_and_whether_they_run(tmp_path: Path) -> None:
    project, config = project_in(
        tmp_path, preToolUse=[{"bash": "./guard.sh", "matcher": "bash"}], sessionEnd="true"
    )
    other, _ = project_in(tmp_path / "other", agentStop="true")
    async with running_server(tmp_path, config=config) as server:
        mine = write(server.home / "hooks", postToolUse="./format.sh", nonsense="true")

        async def discover(**params: Any) -> tuple[list[tuple[Any, ...]], Any]:
            found = await server.wire.call("hooks.discover", params)
            names = ("hookType", "origin", "enabled", "command", "matcher", "projectPath")
            return [tuple(hook.get(name) for name in names) for hook in found["hooks"]], found

        hooks, found = await discover()
        assert hooks == [("postToolUse", "user", True, "./format.sh", None, None)]
        assert (found["hooks"][0]["source"], found["warnings"]) == (str(mine), [])
        assert "'nonsense'" in found["errors"][0]

        hooks, found = await discover(projectPaths=[str(project), str(other)], excludeHostHooks=True)
        assert hooks == [
            ("preToolUse", "repository", True, "./guard.sh", "bash", str(project)),
            ("sessionEnd", "repository", True, "true", None, str(project)),
            ("agentStop", "repository", False, "true", None, str(other)),
        ]
        assert len({hook["id"] for hook in found["hooks"]}) == 3
        assert "is not trusted" in found["warnings"][0]
        refused = await server.wire.error_of("hooks.discover", {"projectPaths": ["/no/such/folder"]})
        assert "/no/such/folder" in refused["message"]
