"""Permissions over the wire: requests, decisions, lasting approvals, rules, modes, and the methods."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import JsonObject, RunningServer, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

DONE = {"text": "Done."}
ONCE = {"kind": "approve-once"}
REJECT = {"kind": "reject", "feedback": "no"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "note.txt").write_text("a note\n")
    return folder


def bash(command: str, call_id: str = "call-1") -> JsonObject:
    return calls("bash", call_id, command=command, description="Run it")


async def open_session(
    server: RunningServer | Wire, project: Path, *turns: JsonObject, asks: bool = True, **options: Any
) -> str:
    wire = server if isinstance(server, Wire) else server.wire
    return await wire.create(scripted(*turns), requestPermission=asks, workingDirectory=str(project), **options)


async def run(wire: Wire, session: str, *decisions: JsonObject) -> list[JsonObject]:
    """Send a prompt and answer exactly its permission requests, in order; returns the events."""
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "go"})
    place = since
    for decision in decisions:
        asked = await wire.until(
            lambda message: _type(message) == "permission.requested", since=place, what="permission.requested"
        )
        place = wire.messages.index(asked) + 1
        answer = {
            "sessionId": session,
            "requestId": asked["params"]["event"]["data"]["requestId"],
            "result": decision,
        }
        assert (await wire.call("session.permissions.handlePendingPermissionRequest", answer))["success"]
    await wire.event("session.idle", session=session, since=since)
    events = wire.events(session, since=since)
    assert len(data_of(events, "permission.requested")) == len(decisions)
    return events


def _type(message: JsonObject) -> str:
    return message["params"]["event"]["type"] if message.get("method") == "session.event" else ""


def data_of(events: list[JsonObject], kind: str) -> list[JsonObject]:
    return [event["data"] for event in events if event["type"] == kind]


def outcomes(events: list[JsonObject]) -> list[str]:
    """Return the outcome of each call: ``ok``, or the code of its error."""
    return [
        "ok" if completion["success"] else completion["error"]["code"]
        for completion in data_of(events, "tool.execution_complete")
    ]


@asynccontextmanager
async def served(folder: Path, config: str | None = None) -> AsyncGenerator[RunningServer]:
    async with running_server(folder, config=config) as server:
        yield server


# --- decisions and scopes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "again"),
    [
        (ONCE, "asked"),
        ({"kind": "approve-for-session"}, "silent"),
        (
            {"kind": "approve-for-session", "approval": {"kind": "commands", "commandIdentifiers": ["touch"]}},
            "silent",
        ),
        ({"kind": "approve-for-session", "approval": {"kind": "commands", "commandIdentifiers": ["ls"]}}, "asked"),
        ({"kind": "approve-for-location"}, "silent"),
        ({"kind": "approve-permanently"}, "silent"),
    ],
)
async def test_an_approval_applies_for_its_scope(
    tmp_path: Path, project: Path, decision: JsonObject, again: str
) -> None:
    turns = [bash("touch a"), DONE, bash("touch b"), DONE]
    async with served(tmp_path) as server:
        session = await open_session(server, project, *turns)
        assert outcomes(await run(server.wire, session, decision)) == ["ok"]
        second = await run(server.wire, session, *([REJECT] if again == "asked" else []))
    assert outcomes(second) == (["ok"] if again == "silent" else ["denied"])
    assert (project / "b").exists() == (again == "silent")


@pytest.mark.parametrize(
    ("kind", "here", "elsewhere"),
    [
        ("approve-for-session", False, False),
        ("approve-for-location", True, False),
        ("approve-permanently", True, True),
    ],
)
async def test_approvals_for_a_location_apply_to_other_sessions_and_processes(
    tmp_path: Path, project: Path, kind: str, here: bool, elsewhere: bool
) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (project / "sub").mkdir()
    other = tmp_path / "other"
    other.mkdir()
    turns = (bash("touch a"), DONE)
    async with served(tmp_path) as server:
        await run(server.wire, await open_session(server, project, *turns), {"kind": kind})
        for folder, silent in ((project / "sub", here), (other, elsewhere)):
            session = await open_session(server, folder, *turns)
            assert outcomes(await run(server.wire, session, *([] if silent else [REJECT]))) == [
                "ok" if silent else "denied"
            ]
    async with served(tmp_path) as server:
        session = await open_session(server, project, *turns)
        await run(server.wire, session, *([] if here else [REJECT]))
    kept = tmp_path / "home" / "approvals.json"
    assert kept.exists() == here
    assert not here or stat.S_IMODE(kept.stat().st_mode) == 0o600


async def test_a_torn_file_of_approvals_approves_nothing_and_accepts_new_ones(
    tmp_path: Path, project: Path
) -> None:
    turns = (bash("touch a"), DONE)
    async with served(tmp_path) as server:
        await run(server.wire, await open_session(server, project, *turns), {"kind": "approve-for-location"})
        kept = server.home / "approvals.json"
        kept.write_bytes(kept.read_bytes()[:-20])
        session = await open_session(server, project, *turns)
        assert outcomes(await run(server.wire, session, {"kind": "approve-for-location"})) == ["ok"]
        assert outcomes(await run(server.wire, await open_session(server, project, *turns))) == ["ok"]
        assert (server.home / "approvals.json.broken").exists()


async def test_the_server_answers_other_clients_while_an_approval_is_being_stored(
    tmp_path: Path, project: Path
) -> None:
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, bash("touch a"), DONE)
        with (server.home / "approvals.json.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            await wire.call("session.send", {"sessionId": session, "prompt": "go"})
            request = await wire.event("permission.requested")
            answer = {"sessionId": session, "requestId": request["data"]["requestId"]}
            await wire.call(
                "session.permissions.handlePendingPermissionRequest",
                answer | {"result": {"kind": "approve-for-location"}},
            )
            await wire.check_alive()
            assert data_of(wire.events(session), "permission.completed") == []
        await wire.event("session.idle")
        assert data_of(wire.events(session), "permission.completed")[0]["result"]["kind"] == "approved-for-location"
        assert outcomes(wire.events(session)) == ["ok"]


async def test_an_approval_that_cannot_be_stored_applies_to_the_session(tmp_path: Path, project: Path) -> None:
    turns = [bash("touch a"), DONE, bash("touch b"), DONE]
    async with served(tmp_path) as server:
        (server.home / "approvals.json.lock").mkdir()
        session = await open_session(server, project, *turns)
        events = await run(server.wire, session, {"kind": "approve-for-location"})
        assert outcomes(events) == ["ok"]
        (warning,) = data_of(events, "session.warning")
        assert "holds for this session only" in warning["message"]
        assert outcomes(await run(server.wire, session)) == ["ok"]


async def test_approved_folders_are_read_without_further_requests(tmp_path: Path, project: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("a")
    (project / "link").symlink_to(outside)
    turns = [calls("view", path="link/a"), calls("view", path=str(outside)), DONE]
    async with served(tmp_path) as server:
        session = await open_session(server, project, *turns)
        decision = {"kind": "approve-read-only-for-session", "directories": [str(outside)]}
        events = await run(server.wire, session, decision)
    assert outcomes(events) == ["ok", "ok"]
    assert data_of(events, "permission.requested")[0]["permissionRequest"]["resolvedPath"] == str(outside / "a")
    assert data_of(events, "permission.completed")[0]["result"] == {
        "kind": "approved-read-only-for-session",
        "directories": [str(outside)],
    }


async def test_revoked_approvals_are_requested_again(tmp_path: Path, project: Path) -> None:
    turns = [bash("touch a"), DONE] * 5
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, *turns)
        here = {"sessionId": session}
        await run(wire, session, {"kind": "approve-for-location"})
        await run(wire, session)
        # The lasting approval no longer applies to this session, but still to others.
        await wire.call("session.permissions.resetSessionApprovals", here)
        await run(wire, session, REJECT)
        applied = await wire.call("session.permissions.locations.apply", here | {"workingDirectory": str(project)})
        assert applied["appliedRules"] == [{"kind": "shell", "argument": "touch"}]
        assert applied["changed"] is True
        await run(wire, session)
        await wire.call("session.permissions.modifyRules", here | {"scope": "location", "removeAll": True})
        await run(wire, session, REJECT)


async def test_the_user_can_change_a_call_and_the_model_is_informed(tmp_path: Path, project: Path) -> None:
    changed = {"command": "touch better", "description": "Better"}
    async with served(tmp_path) as server:
        session = await open_session(server, project, bash("touch a"), DONE, bash("touch b"), DONE)
        decision = {"kind": "approve-for-session", "modifiedArgs": changed}
        events = await run(server.wire, session, decision)
        assert outcomes(events) == ["ok"]
        # The arguments of the model were not approved.
        assert data_of(events, "permission.completed")[0]["result"] == {"kind": "approved"}
        await run(server.wire, session, REJECT)
    assert set(os.listdir(project)) == {"note.txt", "better"}
    (told,) = [message for message in data_of(events, "user.message") if message.get("source")]
    assert "touch a" in told["content"]
    assert "touch better" in told["content"]


async def test_rules_apply_to_a_changed_call(tmp_path: Path, project: Path) -> None:
    async with served(tmp_path, "[permissions]\ndeny = ['shell(rm)']\n") as server:
        session = await open_session(server, project, bash("touch a"), DONE)
        changed = {"command": "rm note.txt", "description": "x"}
        events = await run(server.wire, session, {"kind": "approve-once", "modifiedArgs": changed})
    assert outcomes(events) == ["denied"]
    assert (project / "note.txt").exists()


# --- rules --------------------------------------------------------------------------------------------------------


RULES = """
[permissions]
allow = ["read", "shell(touch)", "shell(git status)", "write(out/**)", "custom-tool(look*)"]
ask = ["shell(touch precious)", "tool(glob)"]
deny = ["shell(rm)", "read(secret.txt)", "tool(forbidden)"]
"""


CASES: list[tuple[JsonObject, str, str]] = [
    # The turn and its outcome, in manual mode and in allow-all mode.
    (bash("touch a"), "ok", "ok"),
    (bash("touch a && touch b"), "ok", "ok"),
    (bash("touch a && mkdir b"), "asked", "ok"),
    (bash("touch a && rm a"), "denied", "denied"),
    (bash("touch precious"), "asked", "asked"),
    (bash("touch $(rm a)"), "denied", "denied"),
    (bash("touch ../a"), "asked", "ok"),
    (bash("sudo rm a"), "denied", "denied"),
    (bash("$X"), "asked", "asked"),
    (calls("view", path="note.txt"), "ok", "ok"),
    (calls("view", path="secret.txt"), "denied", "denied"),
    (calls("view", path="link.txt"), "denied", "denied"),
    (calls("view", path="/etc/hostname"), "asked", "ok"),
    (calls("grep", pattern="x", path="."), "asked", "asked"),
    (calls("glob", pattern="*"), "asked", "asked"),
    (calls("create", path="out/a", file_text="x"), "ok", "ok"),
    (calls("create", path="a", file_text="x"), "asked", "ok"),
    (calls("create", path="out/../a", file_text="x"), "asked", "ok"),
    (calls("create", path="out/.git/hooks/x", file_text="x"), "asked", "ok"),
    (calls("lookup"), "ok", "ok"),
    (calls("other"), "asked", "ok"),
    (calls("forbidden"), "denied", "denied"),
]


@pytest.mark.parametrize("mode", ["manual", "allow-all"])
async def test_rules_are_applied_before_any_request(tmp_path: Path, project: Path, mode: str) -> None:
    (project / "secret.txt").write_text("x")
    (project / "link.txt").symlink_to("secret.txt")
    tools: list[JsonObject] = [{"name": name, "description": name} for name in ("lookup", "other")]
    # This call needs no permission, but rules apply to it.
    tools.append({"name": "forbidden", "description": "x", "skipPermission": True})
    wrong: list[tuple[JsonObject, str]] = []
    async with served(tmp_path, RULES) as server:
        wire = server.wire
        for turn, manual, everything in CASES:
            (project / "out").mkdir(exist_ok=True)
            (project / "out" / "a").unlink(missing_ok=True)
            (project / "a").unlink(missing_ok=True)
            session = await open_session(server, project, turn, DONE, tools=tools)
            if mode == "allow-all":
                await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
            expected = manual if mode == "manual" else everything
            came = await outcome_of(wire, session)
            if came != expected:
                wrong.append((turn, came))
    assert wrong == []


async def outcome_of(wire: Wire, session: str) -> str:
    """Return ``asked``, ``denied`` for a denial by a rule, or ``ok`` if the call runs."""
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "go"})
    kinds = ("permission.requested", "external_tool.requested", "tool.execution_complete")
    message = await wire.until(lambda message: _type(message) in kinds, since=since, what="what comes of the call")
    await wire.call("session.abort", {"sessionId": session})
    event = message["params"]["event"]
    if event["type"] == "permission.requested":
        return "asked"
    if event["type"] == "external_tool.requested" or event["data"]["success"]:
        return "ok"
    return "denied" if "denied by a rule" in event["data"]["error"]["message"] else str(event["data"]["error"])


async def test_ask_rules_apply_even_with_yolo(tmp_path: Path, project: Path) -> None:
    config = "[permissions]\nallow_unasked = true\nask = ['shell(touch b)']\n"
    async with served(tmp_path, config) as server:
        session = await open_session(server, project, bash("touch a"), bash("touch b"), DONE, asks=False)
        events = await run(server.wire, session)
    assert outcomes(events) == ["ok", "denied"]
    (warning,) = data_of(events, "session.warning")
    assert "shell(touch b)" in warning["message"]


async def test_an_invalid_rule_is_reported_at_the_start(tmp_path: Path) -> None:
    async with running_server(tmp_path, config="[permissions]\ndeny = ['bash(rm)']\n", handshake=False) as server:
        server.expect_exit = 1
        await server.wire.ended.wait()
        assert await server.exit_code() == 1
    assert "permissions.deny: invalid rule 'bash(rm)': expected one of shell, read" in server.stderr


@pytest.mark.parametrize("trusted", [False, True])
async def test_rules_of_a_project_allow_calls_only_if_it_is_trusted(
    tmp_path: Path, project: Path, trusted: bool
) -> None:
    (project / ".jumpseat").mkdir()
    (project / ".jumpseat" / "config.toml").write_text(
        "[permissions]\nallow = ['shell(touch)']\ndeny = ['shell(ls)']\n"
    )
    turns = [bash("touch a"), bash("ls"), DONE]
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, *turns)
        trust = {"sessionId": session, "path": str(project)}
        assert await wire.call("session.permissions.folderTrust.isTrusted", trust) == {"trusted": False}
        if trusted:
            assert await wire.call("session.permissions.folderTrust.addTrusted", trust) == {"success": True}
            assert await wire.call("session.permissions.folderTrust.isTrusted", trust) == {"trusted": True}
        events = await run(wire, session, *([] if trusted else [REJECT]))
    assert outcomes(events) == (["ok", "denied"] if trusted else ["denied", "denied"])
    assert len(
        [warning for warning in data_of(events, "session.warning") if "not trusted" in warning["message"]]
    ) == (not trusted)


async def test_a_call_is_judged_after_the_calls_before_it_have_run(tmp_path: Path, project: Path) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "up").symlink_to("../..")
    (tmp_path / "secret").write_text("a secret")
    both = bash("cp -r sub copy"), bash("sleep 0.1; cat copy/up/secret", "call-2")
    turn = {"tool_calls": [call for turn in both for call in turn["tool_calls"]]}
    allow = "allow = ['read', 'shell(cp)', 'shell(sleep)', 'shell(cat)']"
    async with served(tmp_path, f"[permissions]\n{allow}\n") as server:
        session = await open_session(server, project, turn, DONE)
        events = await run(server.wire, session, REJECT)
    assert outcomes(events) == ["ok", "denied"]
    (asked,) = data_of(events, "permission.requested")
    assert str(tmp_path / "secret") in asked["permissionRequest"]["warning"]


@pytest.mark.parametrize("sandbox", [True, False], ids=["sandbox", "no sandbox"])
async def test_files_are_unknown_while_a_command_runs_that_may_move_them(
    tmp_path: Path, project: Path, sandbox: bool
) -> None:
    def background(line: str) -> JsonObject:
        turn = bash(line)
        turn["tool_calls"][0]["arguments"] |= {"mode": "async", "detach": True}
        return turn

    (project / "f").write_text("f")
    for_session = {"kind": "approve-for-session"}
    read = [bash("cat f; pwd; sleep 0"), background("sleep 100"), bash("cat f"), DONE]
    move = [
        background("sleep 100; mv k k2"),
        bash("pwd"),
        bash("cat k2/up/secret.txt"),
        bash("cat < k2/up/s"),
        DONE,
    ]
    async with running_server(tmp_path) as server:
        options: dict[str, Any] = {} if sandbox else {"sandboxConfig": {"enabled": False}}
        session = await open_session(server, project, *read, *move, **options)
        # A command that only reads moves nothing.
        await run(server.wire, session, for_session)
        events = await run(server.wire, session, for_session, REJECT, REJECT)
    assert outcomes(events) == ["ok", "ok", "denied", "denied"]


async def test_without_a_sandbox_a_command_that_leaves_its_group_may_go_on(tmp_path: Path, project: Path) -> None:
    (project / "f").write_text("f")
    for_session = {"kind": "approve-for-session"}
    turns = [bash("cat f"), bash("setsid sh -c 'sleep 100; mv k k2' > /dev/null 2>&1 &"), bash("cat k2/up/s"), DONE]
    async with running_server(tmp_path) as server:
        session = await open_session(server, project, *turns, sandboxConfig={"enabled": False})
        events = await run(server.wire, session, for_session, for_session, REJECT)
    assert outcomes(events) == ["ok", "ok", "denied"]


async def test_an_approved_line_is_asked_about_when_it_is_typed_or_would_configure_servers(
    tmp_path: Path, project: Path
) -> None:
    turns = [
        bash("touch proof"),
        calls("bash", "call-2", command="bash", mode="async", detach=True),
        calls("write_bash", "call-3", shellId="1", input="touch proof"),
        bash("touch .mcp.json", "call-4"),
        DONE,
    ]
    async with served(tmp_path) as server:
        session = await open_session(server, project, *turns)
        lasting = {"kind": "approve-for-session"}
        events = await run(server.wire, session, lasting, ONCE, REJECT, REJECT)
    assert outcomes(events) == ["ok", "ok", "denied", "denied"]


async def test_a_hook_cannot_allow_what_a_rule_denies(tmp_path: Path, project: Path) -> None:
    from tests.support.callbacks import answering

    async with served(tmp_path, "[permissions]\ndeny = ['shell(touch)']\n") as server:
        session = await open_session(server, project, bash("touch a"), DONE, hooks=True)
        async with answering(server.wire, {"preToolUse": [{"permissionDecision": "allow"}]}):
            assert outcomes(await run(server.wire, session)) == ["denied"]


# --- the judging model --------------------------------------------------------------------------------------------


def judge(folder: Path, answers: Sequence[JsonObject], rules: str = "", *, timeout_s: float = 20) -> str:
    """Return a configuration with a judge that gives these answers in order, within ``timeout_s``."""
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "judge.json").write_text(json.dumps({"turns": list(answers)}))
    return (
        f'[permissions]\n{rules}\n[permissions.judge]\nmodel = "judge/m"\ntimeout_s = {timeout_s}\n'
        '[adapters.judge]\ntype = "scripted"\nscript = "judge.json"\nmodels = ["m"]\n'
    )


SAFE = {"text": '{"decision": "approve", "reason": "It is what was asked for."}'}


async def test_a_call_approved_by_the_judge_runs_and_is_logged(tmp_path: Path, project: Path) -> None:
    async with served(tmp_path, judge(tmp_path, [SAFE])) as server:
        wire, session = server.wire, await open_session(server, project, bash("touch a"), DONE)
        assert await wire.call("session.permissions.getMode", {"sessionId": session}) == {"mode": "assisted"}
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await wire.event("session.idle")
        events = wire.events(session)
    assert outcomes(events) == ["ok"]
    (asked,) = data_of(events, "permission.requested")
    assert asked["resolvedByHook"] is True
    assert asked["promptRequest"]["assistedApproval"]["recommendation"] == "approve"
    assert data_of(events, "permission.completed")[0]["result"]["kind"] == "approved"


@pytest.mark.parametrize(
    ("answer", "recommendation"),
    [
        ({"text": '{"decision": "ask", "reason": "Not sure."}'}, "requireApproval"),
        ({"text": '{"decision": "approve"}'}, "error"),
        ({"text": '```json\n{"decision": "approve", "reason": ""}\n```'}, "error"),
        ({"text": '{"decision": "approve", "reason": "", "also": 1}'}, "error"),
        ({"text": '{"decision": true, "reason": ""}'}, "error"),
        ({"text": "approve"}, "error"),
        ({"text": ""}, "error"),
        ({"text": '[{"decision": "approve", "reason": ""}]'}, "error"),
        ({"error": {"message": "down", "status": 500}}, "error"),
        ({"text": '{"decision": "approve", "reason": ""}', "hang": True}, "error"),
    ],
)
async def test_without_an_approval_of_the_judge_the_user_decides(
    tmp_path: Path, project: Path, answer: JsonObject, recommendation: str
) -> None:
    config = judge(tmp_path, [answer], timeout_s=0.25 if "hang" in answer else 20)
    async with served(tmp_path, config) as server:
        session = await open_session(server, project, bash("touch a"), DONE)
        events = await run(server.wire, session, REJECT)
    assert outcomes(events) == ["denied"]
    (asked,) = data_of(events, "permission.requested")
    assert asked["promptRequest"]["assistedApproval"]["recommendation"] == recommendation


@pytest.mark.parametrize(
    ("rules", "turn", "decisions"),
    [
        ("deny = ['shell(touch)']", bash("touch a"), []),
        ("ask = ['shell(touch)']", bash("touch a"), [REJECT]),
        ("", calls("create", path=".git/hooks/x", file_text="x"), [REJECT]),
    ],
)
async def test_the_judge_cannot_override_rules(
    tmp_path: Path, project: Path, rules: str, turn: JsonObject, decisions: list[JsonObject]
) -> None:
    async with served(tmp_path, judge(tmp_path, [SAFE], rules)) as server:
        session = await open_session(server, project, turn, DONE)
        assert outcomes(await run(server.wire, session, *decisions)) == ["denied"]


# --- the methods --------------------------------------------------------------------------------------------------


async def test_every_change_of_the_mode_is_announced(tmp_path: Path, project: Path) -> None:
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, DONE)
        here = {"sessionId": session}
        for method, params in (
            ("setApproveAll", {"enabled": True}),
            ("setApproveAll", {"enabled": True}),
            ("setMode", {"mode": "assisted", "assistedApprovalModel": "m"}),
            ("configure", {"approveAllToolPermissionRequests": True}),
            ("setApproveAll", {"enabled": False}),
        ):
            assert (await wire.call(f"session.permissions.{method}", here | params))["success"] is True
        await wire.check_alive()
        changes = data_of(wire.events(session), "session.permissions_changed")
    assert [(change["previousMode"], change["mode"]) for change in changes] == [
        ("manual", "allow-all"),
        ("allow-all", "assisted"),
        ("assisted", "allow-all"),
        ("allow-all", "manual"),
    ]
    assert changes[1]["assistedApprovalModel"] == "m"


async def test_a_client_that_joins_late_gets_the_open_requests(tmp_path: Path, project: Path) -> None:
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, bash("touch a"), DONE)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        request = (await wire.event("permission.requested"))["data"]
        (item,) = (await wire.call("session.permissions.pendingRequests", {"sessionId": session}))["items"]
    assert item["requestId"] == request["requestId"]
    assert item["permissionRequest"] == request["permissionRequest"]
    assert item["request"] == {
        "kind": "commands",
        "fullCommandText": "touch a",
        "intention": "Run it",
        "canOfferSessionApproval": True,
        "commandIdentifiers": ["touch"],
        "toolCallId": "call-1",
    }


async def test_a_client_can_register_a_permission_handler_later(tmp_path: Path, project: Path) -> None:
    turns = [bash("touch a"), DONE] * 3
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, *turns, asks=False)
        await run(wire, session)
        await wire.call("session.permissions.setRequired", {"sessionId": session, "required": True})
        await run(wire, session, ONCE)
        await wire.call("session.permissions.setRequired", {"sessionId": session, "required": False})
        await run(wire, session)


async def test_folders_are_listed_added_and_checked_with_links_resolved(tmp_path: Path, project: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / "link").symlink_to(outside)
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, DONE)

        async def ask(method: str, **params: Any) -> Any:
            return await wire.call(f"session.permissions.paths.{method}", {"sessionId": session, **params})

        async def allowed(path: str) -> bool:
            return (await ask("isPathWithinAllowedDirectories", path=path))["allowed"]

        assert await ask("list") == {"directories": [str(project)], "primary": str(project)}
        assert await allowed("note.txt")
        assert not await allowed("link/x")
        assert not await allowed("../outside")
        assert await ask("add", path="../outside") == {"success": True}
        assert await allowed("link/x")
        assert (await ask("isPathWithinWorkspace", path=str(project / "new")))["allowed"]
        assert not (await ask("isPathWithinWorkspace", path=str(outside)))["allowed"]
        await ask("updatePrimary", path=str(outside))
        listed = await ask("list")
        assert listed == {"directories": [str(outside), str(project)], "primary": str(outside)}
        assert (await ask("isPathWithinWorkspace", path=str(outside)))["allowed"]
        error = await wire.error_of("session.permissions.paths.add", {"sessionId": session, "path": "note.txt"})
        assert "is not a directory" in error["message"]


async def test_options_of_a_client_apply_to_its_session(tmp_path: Path, project: Path) -> None:
    rules = {
        "approved": [{"kind": "shell", "argument": "touch"}, {"kind": "shell", "argument": "cat"}],
        "denied": [{"kind": "shell", "argument": "rm"}],
    }
    turns = [bash("touch a"), bash("rm a"), bash("cat /etc/hostname"), DONE]
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, *turns, *turns, *turns)
        configure = {"sessionId": session, "rules": rules}
        assert await wire.call("session.permissions.configure", configure) == {"success": True}
        assert outcomes(await run(wire, session, REJECT)) == ["ok", "denied", "denied"]
        paths = {"sessionId": session, "paths": {"unrestricted": True}}
        await wire.call("session.permissions.configure", paths)
        assert outcomes(await run(wire, session)) == ["ok", "denied", "ok"]
        await wire.call(
            "session.permissions.configure", {"sessionId": session, "rules": {"approved": [], "denied": []}}
        )
        await run(wire, session, REJECT, REJECT, REJECT)
        policies = {"sessionId": session, "additionalContentExclusionPolicies": [{"scope": "all"}]}
        assert (
            "additionalContentExclusionPolicies"
            in (await wire.error_of("session.permissions.configure", policies))["message"]
        )


FETCH = calls("web_fetch", url="http://127.0.0.1:9/")
CURL = bash("curl -s -m 1 -X POST http://127.0.0.1:9/ || true")


async def test_a_client_can_disable_and_enable_requests_for_hosts(tmp_path: Path, project: Path) -> None:
    turns = [FETCH, CURL, bash("cat /etc/hostname"), DONE]
    rules = "[permissions]\nallow = ['shell(curl)', 'shell(true)']\ndeny = ['url(denied.example)']\n"
    denied = [calls("web_fetch", url="http://denied.example/"), bash("curl -s http://denied.example/"), DONE]
    async with served(tmp_path, rules) as server:
        wire, session = server.wire, await open_session(server, project, *turns, *turns, *turns, *denied)
        await run(wire, session, REJECT, REJECT, REJECT)
        lift = {"sessionId": session, "enabled": True}
        assert await wire.call("session.permissions.urls.setUnrestrictedMode", lift) == {"success": True}
        # Permission for all URLs does not include files.
        assert outcomes(await run(wire, session, REJECT)) == ["failure", "ok", "denied"]
        await wire.call("session.permissions.urls.setUnrestrictedMode", lift | {"enabled": False})
        await run(wire, session, REJECT, REJECT, REJECT)
        await wire.call("session.permissions.urls.setUnrestrictedMode", lift)
        assert outcomes(await run(wire, session)) == ["denied", "denied"]


async def test_hosts_allowed_at_creation_need_no_approval(tmp_path: Path, project: Path) -> None:
    turns = [FETCH, calls("web_fetch", url="http://other.example/"), DONE]
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, *turns, *turns, *turns)
        urls = {"sessionId": session, "urls": {"initialAllowed": ["127.0.0.1"]}}
        await wire.call("session.permissions.configure", urls)
        assert outcomes(await run(wire, session, REJECT)) == ["failure", "denied"]
        # Rules and hosts are replaced independently.
        await wire.call(
            "session.permissions.configure",
            {"sessionId": session, "rules": {"approved": [{"kind": "url", "argument": "other.example"}]}},
        )
        await run(wire, session)
        await wire.call("session.permissions.configure", {"sessionId": session, "urls": {"initialAllowed": []}})
        await run(wire, session, REJECT)


async def test_a_client_can_approve_all_reads(tmp_path: Path, project: Path) -> None:
    (project / "secret.txt").write_text("x")
    turns = [
        calls("view", path="/etc/hostname"),
        calls("grep", pattern="x", path="note.txt"),
        FETCH,
        calls("view", path="secret.txt"),
        calls("create", path="a", file_text="x"),
        bash("cat note.txt"),
        DONE,
    ]
    async with served(tmp_path, "[permissions]\ndeny = ['read(secret.txt)']\n") as server:
        wire, session = server.wire, await open_session(server, project, *turns, *turns)
        reads = {"sessionId": session, "approveAllReadPermissionRequests": True}
        assert await wire.call("session.permissions.configure", reads) == {"success": True}
        events = await run(wire, session, REJECT, REJECT)
        assert outcomes(events) == ["ok", "ok", "failure", "denied", "denied", "denied"]
        await wire.call("session.permissions.configure", reads | {"approveAllReadPermissionRequests": False})
        await run(wire, session, REJECT, REJECT, REJECT, REJECT, REJECT)


async def test_rules_of_a_session_are_added_and_removed(tmp_path: Path, project: Path) -> None:
    turns = [bash("touch a"), DONE]
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, *turns, *turns, *turns)
        rule = {"kind": "shell", "argument": "touch"}
        for change, decisions in (({"add": [rule]}, []), ({"remove": [rule]}, [REJECT])):
            modify = {"sessionId": session, "scope": "session", **change}
            assert await wire.call("session.permissions.modifyRules", modify) == {"success": True}
            await run(wire, session, *decisions)


async def test_a_relative_folder_is_resolved_from_the_working_directory(tmp_path: Path, project: Path) -> None:
    (project / "sub").mkdir()
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, DONE)
        for method in ("resolve", "apply"):
            for folder, key in ((".", project), ("sub", project / "sub"), ("sub/..", project)):
                found = await wire.call(
                    f"session.permissions.locations.{method}", {"sessionId": session, "workingDirectory": folder}
                )
                assert found["locationKey"] == str(key)
            odd = {"sessionId": session, "workingDirectory": "a\0b"}
            error = await wire.error_of(f"session.permissions.locations.{method}", odd)
            assert error["message"] == "invalid path 'a\\x00b'"


async def test_approvals_for_a_location_are_added_and_applied(tmp_path: Path, project: Path) -> None:
    async with served(tmp_path) as server:
        wire, session = server.wire, await open_session(server, project, DONE)
        here = {"sessionId": session, "workingDirectory": str(project)}
        location = await wire.call("session.permissions.locations.resolve", here)
        assert location == {"locationKey": str(project), "locationType": "dir"}
        approval = {"kind": "commands", "commandIdentifiers": ["git fetch", "make test"]}
        await wire.call(
            "session.permissions.locations.addToolApproval",
            {"sessionId": session, "locationKey": str(project), "approval": approval},
        )
        applied = await wire.call("session.permissions.locations.apply", here)
        assert applied["appliedRules"] == [
            {"kind": "shell", "argument": "git fetch"},
            {"kind": "shell", "argument": "make test"},
        ]
        assert (applied["appliedRuleCount"], applied["changed"]) == (2, True)
        assert (await wire.call("session.permissions.locations.apply", here))["changed"] is False


async def test_an_edit_that_cannot_succeed_is_refused_unasked_without_the_content_of_a_file_that_may_not_be_read(
    tmp_path: Path, project: Path
) -> None:
    (project / "note.txt").write_text("a secret = 1\n")
    wrong = calls("edit", path="note.txt", old_str="a secrat = 1", new_str="x")
    there = calls("create", path="note.txt", file_text="x")
    patch = calls("apply_patch", input="*** Update File: note.txt\n-a secrat = 2\n+x\n")
    right = calls("edit", path="note.txt", old_str="secret", new_str="x")
    view = calls("view", path="note.txt")
    async with served(tmp_path) as server:
        session = await open_session(
            server, project, wrong, there, patch, wrong, right, DONE, view, wrong, DONE, wrong, DONE
        )
        events = await run(server.wire, session)
        messages = [data["error"]["message"] for data in data_of(events, "tool.execution_complete")]
        assert not data_of(events, "permission.requested")
        assert "secret" not in "".join(messages)
        assert messages[0].startswith("The change does not fit note.txt as it is")
        assert messages[1] == "Path note.txt already exists. Use edit to change it, or choose another path."
        assert messages[2] == messages[3] == messages[0]
        # Otherwise the model could find out what is in the file, by trying.
        assert messages[4].startswith("View ")
        # Once it was allowed to view the file, it may know the reason.
        events = await run(server.wire, session, ONCE)
        _, completion = data_of(events, "tool.execution_complete")
        assert completion["error"]["message"].startswith("old_str was not found in note.txt.")
        assert "a secret = 1" in completion["error"]["message"]
        rules: JsonObject = {"approved": [{"kind": "read"}], "denied": [{"kind": "write"}]}
        await server.wire.call("session.permissions.configure", {"sessionId": session, "rules": rules})
        assert outcomes(await run(server.wire, session)) == ["denied"]


async def test_the_log_says_why_a_call_ran_or_did_not_without_a_question(tmp_path: Path, project: Path) -> None:
    config = 'permissions.allow = ["shell(git status)"]\npermissions.deny = ["shell(rm *)"]\n'
    turns = [
        bash("git status", "rule"),
        bash("rm note.txt", "denied"),
        calls("sql", "none", query="SELECT 1"),
        bash("true", "person"),
        bash("true", "approval"),
        bash("touch b", "mode"),
        {"text": "ok"},
    ]
    async with running_server(tmp_path, config=config) as server:
        session = await open_session(server.wire, project, *turns[:5], turns[-1])
        events = await run(server.wire, session, {"kind": "approve-for-session"})
        other = await open_session(server.wire, project, *turns[5:])
        await server.wire.call("session.permissions.setMode", {"sessionId": other, "mode": "allow-all"})
        events += await run(server.wire, other)
    why = {data["toolCallId"]: data.get("jumpseatDecision") for data in data_of(events, "tool.execution_complete")}
    assert why == {
        "rule": {"by": "rule", "reason": "shell(git status)"},
        "denied": {"by": "rule", "reason": "shell(rm *)"},
        "none": {"by": "tool"},
        # `permission.completed` says it.
        "person": None,
        "approval": {"by": "approval"},
        "mode": {"by": "mode", "reason": "allow-all"},
    }
