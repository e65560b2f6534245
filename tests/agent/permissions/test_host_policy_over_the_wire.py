"""The policy of a host, ``managedSettings``, over the wire: above everything else that decides about calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from jumpseat_client.permissions import approve_all, approve_once, no_result
from jumpseat_protocol.permissions import ReadPermission
from tests.agent.permissions.test_permissions_over_the_wire import (
    DONE,
    REJECT,
    bash,
    data_of,
    open_session,
    outcomes,
    run,
)
from tests.agent.session.test_hook_commands import write
from tests.agent.subagents.test_subagents_over_the_wire import by_prompt, task, turn
from tests.support.callbacks import answering
from tests.support.cases import all_cases
from tests.support.server import JsonObject, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

ALL_ALLOWED: Final = 'permissions.allow = ["shell", "read", "write", "tool(*)", "sandboxed"]\n'
TOUCHES: Final = (bash("touch a"), DONE, bash("touch b"), DONE)

WAYS_AROUND: Final[Mapping[str, tuple[str, JsonObject]]] = {
    "approve all": ("session.permissions.setApproveAll", {"enabled": True}),
    "mode": ("session.permissions.setMode", {"mode": "allow-all"}),
    "sandboxed": ("session.permissions.setMode", {"mode": "sandboxed"}),
    "configured": ("session.permissions.configure", {"approveAllToolPermissionRequests": True}),
    "rules": ("session.permissions.configure", {"rules": {"approved": [{"kind": "shell"}], "denied": []}}),
    "added rule": (
        "session.permissions.modifyRules",
        {"scope": "session", "add": [{"kind": "tool", "argument": "*"}]},
    ),
    "stored rule": ("session.permissions.modifyRules", {"scope": "location", "add": [{"kind": "shell"}]}),
    "folder": ("session.options.update", {"workingDirectory": "/"}),
    "reset": ("session.permissions.resetSessionApprovals", {}),
}
"""Methods by which a client lets calls run, with their params."""


def policy(**permissions: Any) -> JsonObject:
    return {"managedSettings": {"permissions": permissions}}


async def test_no_mode_rule_hook_or_approval_overrides_what_a_host_forbids(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=ALL_ALLOWED, args=["--yolo"]) as server:
        wire = server.wire
        with all_cases() as case:
            for number, (name, (method, params)) in enumerate(WAYS_AROUND.items()):
                with case(name):
                    project = tmp_path / f"project {number}"
                    project.mkdir()
                    session = await open_session(wire, project, *TOUCHES, **policy(deny=["Shell(touch *)"]))
                    await wire.call(method, {"sessionId": session, **params})
                    async with answering(wire, {"preToolUse": [{"permissionDecision": "allow"}]}):
                        events = await run(wire, session)
                    assert outcomes(events) == ["denied"]
                    (denied,) = data_of(events, "tool.execution_complete")
                    assert denied["error"]["message"].endswith("of the host's policy: shell(touch *)")
                    assert [*project.iterdir()] == []


async def test_a_person_decides_about_each_call_that_a_host_wants_asked_about(tmp_path: Path) -> None:
    lasting = {"kind": "approve-for-location"}
    async with running_server(tmp_path, config=ALL_ALLOWED, args=["--yolo"]) as server:
        wire = server.wire
        with all_cases() as case:
            for number, (name, (method, params)) in enumerate(WAYS_AROUND.items()):
                with case(name):
                    project = tmp_path / f"project {number}"
                    project.mkdir()
                    asks = policy(ask=["Shell(touch *)"])
                    session = await open_session(wire, project, *TOUCHES, hooks=True, **asks)
                    await wire.call(method, {"sessionId": session, **params})
                    async with answering(wire, {"preToolUse": [{"permissionDecision": "allow"}] * 2}):
                        events = await run(wire, session, lasting)
                        again = await run(wire, session, REJECT)
                    (asked,) = data_of(events, "permission.requested")
                    assert asked["permissionRequest"]["managedApprovalRequired"] is True
                    assert data_of(events, "permission.completed")[0]["result"] == {"kind": "approved"}
                    assert outcomes(events) == ["ok"]
                    assert outcomes(again) == ["denied"]
        alone = await open_session(wire, tmp_path, *TOUCHES, asks=False, **policy(ask=["Shell(touch *)"]))
        assert outcomes(await run(wire, alone)) == ["denied"]


async def test_a_policy_holds_for_sub_agents_and_for_changed_arguments(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [turn(task()), {"text": "Done."}],
            "look": [bash("touch a", "call-2"), DONE],
            "change": [bash("true", "call-3"), DONE],
        }
    )
    async with running_server(tmp_path, config=ALL_ALLOWED, args=["--yolo"]) as server:
        wire = server.wire
        asks = {"requestPermission": True, "workingDirectory": str(tmp_path)}
        session = await wire.create(model, **asks, **policy(deny=["Shell(touch *)"], ask=["Shell(true)"]))
        events = await wire.prompt(session, "delegate")
        assert outcomes(events) == ["denied", "ok"]
        await wire.call("session.send", {"sessionId": session, "prompt": "change"})
        asked = await wire.event("permission.requested", session=session)
        changed = {"kind": "approve-once", "modifiedArgs": {"command": "touch a", "description": "x"}}
        answer = {"sessionId": session, "requestId": asked["data"]["requestId"], "result": changed}
        since = len(wire.messages)
        await wire.call("session.permissions.handlePendingPermissionRequest", answer)
        await wire.event("session.idle", session=session, since=since)
        assert outcomes(wire.events(session, since=since)) == ["denied"]
        assert not (tmp_path / "a").exists()


async def test_a_hook_neither_allows_what_a_host_wants_asked_about_nor_changes_a_call_into_it(
    tmp_path: Path,
) -> None:
    changes = {"decision": {"behavior": "allow", "updatedInput": {"command": "touch b"}}}
    output = json.dumps({"hookSpecificOutput": {"hookEventName": "PermissionRequest", **changes}})
    hooks = tmp_path / "hooks"
    write(hooks, PermissionRequest=f"echo '{output}'")
    async with running_server(tmp_path) as server:
        wire = server.wire
        turns = (bash("touch a"), DONE, bash("true; mkdir c"), DONE)
        options: dict[str, Any] = {"hookDirectories": [str(hooks)], **policy(ask=["Shell(touch *)"])}
        session = await open_session(wire, tmp_path, *turns, **options)
        asked = await run(wire, session, REJECT)
        changed = await wire.prompt(session)
    assert len(data_of(asked, "permission.requested")) == 1
    assert outcomes([*asked, *changed]) == ["denied", "denied"]
    (denied,) = data_of(changed, "tool.execution_complete")
    assert "A person has to decide" in denied["error"]["message"]
    assert not (tmp_path / "b").exists()


async def test_what_a_host_does_not_list_is_asked_about(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "a").write_text("a\n")
    (project / "b").write_text("b\n")
    listed = ["Read(/src/**)", "Shell(ls src)", "Shell(echo *)", "Domain(docs.example)"]
    turns = {
        "listed file": (calls("view", path="src/a"), True),
        "listed command": (bash("ls src"), True),
        "listed beginning": (bash("echo 1 2"), True),
        "other file": (calls("view", path="b"), False),
        "harmless variant": (bash("ls -l src"), False),
        "more than is listed": (bash("echo 1 > f"), False),
        "second command": (bash("echo 1; ls"), False),
        "change": (calls("create", path="src/new", file_text="x"), False),
        "other scheme": (calls("web_fetch", url="http://docs.example/"), False),
    }
    async with running_server(tmp_path, config=ALL_ALLOWED, args=["--yolo"]) as server:
        with all_cases() as case:
            for name, (call, allowed) in turns.items():
                with case(name):
                    session = await open_session(server, project, call, DONE, **policy(allow=listed))
                    await server.wire.call(
                        "session.permissions.setApproveAll", {"sessionId": session, "enabled": True}
                    )
                    assert outcomes(await run(server.wire, session, *([] if allowed else [REJECT]))) == [
                        "ok" if allowed else "denied"
                    ]


async def test_a_rule_of_a_host_means_any_place_that_its_path_may_mean(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    for path in (project / "secret", project / "sub" / "secret", tmp_path / "secret"):
        path.write_text("secret\n")
    (project / "link").symlink_to(project / "secret")
    rules = {
        "Read(/secret)": ("secret", "link"),
        "read(./secret)": ("secret",),
        "Read(secret)": ("secret", "sub/secret", str(tmp_path / "secret")),
        "Read(**/secret)": ("secret", "sub/secret", str(tmp_path / "secret")),
        f"Read(/{tmp_path}/*)": (str(tmp_path / "secret"),),
        "Read(/sub/**)": ("sub/secret",),
        "Read": ("secret", str(tmp_path / "secret")),
    }
    async with running_server(tmp_path, config=ALL_ALLOWED) as server:
        with all_cases() as case:
            for rule, paths in rules.items():
                for path in paths:
                    for call in (calls("view", path=path), bash(f"cat {path}")):
                        with case((rule, path, call)):
                            session = await open_session(server, project, call, DONE, **policy(deny=[rule]))
                            assert outcomes(await run(server.wire, session)) == ["denied"]


async def test_nothing_is_approved_wholesale_where_a_host_forbids_it(tmp_path: Path) -> None:
    refused = {
        "allow_all": ("session.permissions.setApproveAll", {"enabled": True}),
        "approve_all": ("session.permissions.configure", {"approveAllReadPermissionRequests": True}),
        "unrestricted_paths": ("session.permissions.configure", {"paths": {"unrestricted": True}}),
        "unrestricted_urls": ("session.permissions.urls.setUnrestrictedMode", {"enabled": True}),
    }
    async with running_server(tmp_path, config=ALL_ALLOWED, args=["--yolo"]) as server:
        wire = server.wire
        session = await open_session(wire, tmp_path, *TOUCHES)
        here = {"sessionId": session}
        for method, params in refused.values():
            await wire.call(method, here | params)
        # A later version may know other values: they restrict as well.
        await wire.call("session.resume", here | policy(disableBypassPermissionsMode="allow-auto-only"))
        assert (await wire.call("session.permissions.getMode", here))["mode"] == "manual"
        for escalation, (method, params) in refused.items():
            error = await wire.error_of(method, here | params)
            assert "permissions.disableBypassPermissionsMode of the host's policy" in error["message"]
            await wire.event("session.managed_settings_enforced", session=session, escalation=escalation)
        await wire.error_of("session.permissions.setMode", here | {"mode": "sandboxed"})
        await wire.error_of("session.commands.invoke", here | {"name": "allow-all"})
        # The rule for the kind of call still holds, but none that covers every tool.
        assert outcomes(await run(wire, session)) == ["ok"]
        every = [calls("store_memory", subject="s", fact="f", citations="c", reason="r"), DONE]
        assert outcomes(await run(wire, await open_session(wire, tmp_path, *every, memory={"enabled": True}))) == [
            "ok"
        ]
        bound = await open_session(
            wire, tmp_path, *every, memory={"enabled": True}, **policy(disableBypassPermissionsMode="disable")
        )
        assert outcomes(await run(wire, bound, REJECT)) == ["denied"]

        bound = await open_session(wire, tmp_path, DONE, **policy(disableAssistedPermissionsMode=True))
        error = await wire.error_of("session.permissions.setMode", {"sessionId": bound, "mode": "assisted"})
        assert "disableAssistedPermissionsMode" in error["message"]


async def test_the_handler_that_approves_everything_leaves_such_calls_to_a_person() -> None:
    for managed, decision in ((True, no_result()), (None, approve_once())):
        request = ReadPermission(intention="Read", path="a", managed_approval_required=managed)
        assert await approve_all(request) == decision


async def denied(wire: Wire, session: str) -> bool:
    return outcomes(await run(wire, session)) == ["denied"]


async def test_a_policy_stays_for_other_clients_later_processes_and_forks(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    provider, where = scripted(*[bash("touch a"), DONE] * 9), {"workingDirectory": str(project)}
    forbids, forbids_less = policy(deny=["Shell(touch *)"]), policy(deny=["Shell(rm *)"])
    async with running_server(tmp_path, tcp=True, config=ALL_ALLOWED) as server, server.connect() as host:
        session = await host.create(provider, **where, **forbids)
        here = {"sessionId": session}
        assert await denied(host, session)
        async with server.connect() as other:
            for weaker in ({}, policy(), forbids_less, policy(allow=["Shell"])):
                await other.call("session.resume", {**here, "provider": provider, **where, **weaker})
                assert await denied(other, session)
            refused = await other.error_of("session.options.update", here | policy())
            assert "managedSettings is not supported" in refused["message"]
        fork = (await host.call("sessions.fork", here))["sessionId"]
    async with running_server(tmp_path, config=ALL_ALLOWED) as server:
        wire = server.wire
        for one in (session, fork):
            await wire.call("session.resume", {"sessionId": one, "provider": provider})
            await wire.event("session.managed_settings_resolved", session=one, bypassPermissionsDisabled=False)
            assert await denied(wire, one)
        # The only client sets another policy in place of the stored one.
        await wire.call("session.resume", {**here, "provider": provider, **forbids_less})
        await wire.call("session.resume", {**here, "provider": provider, **policy(deny=["Shell(mv *)"])})
        announced = data_of(wire.events(session), "session.managed_settings_resolved")
        assert announced[-1]["settings"]["permissions"]["deny"] == ["Shell(touch *)", "Shell(mv *)"]


async def test_a_host_is_told_what_is_enforced(tmp_path: Path) -> None:
    given = {"deny": ["Shell(rm *)"], "ask": ["Edit(/src/**)"], "disableBypassPermissionsMode": "disable"}
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted(DONE), **policy(**given))
        (resolved,) = data_of(wire.events(session), "session.managed_settings_resolved")
        assert resolved == {
            "source": "client",
            "managedKeys": ["permissions"],
            "settings": {"permissions": {**given, "disableAssistedPermissionsMode": False}},
            "bypassPermissionsDisabled": True,
            "clientManaged": True,
            "permissionsAllowIntersected": False,
            "deviceManaged": False,
            "serverManaged": False,
            "failClosed": False,
        }
        assert await wire.call("session.managedSettings.get", {"sessionId": session}) == resolved
        free = await wire.create(scripted(DONE))
        assert data_of(wire.events(free), "session.managed_settings_resolved") == []
        assert (await wire.call("session.managedSettings.get", {"sessionId": free}))["source"] == "none"


async def test_a_policy_that_cannot_be_enforced_refuses_the_session(tmp_path: Path) -> None:
    policies: dict[str, tuple[JsonObject, str]] = {
        "limit": (policy(limitTo=[]), "managedSettings.permissions.limitTo is not supported"),
        "fetched": ({"enableManagedSettings": True}, "enableManagedSettings is not supported"),
        "other key": ({"managedSettings": {"model": "m"}}, "managedSettings.model: unknown"),
        "other permission": (policy(forbid=["Shell"]), "managedSettings.permissions.forbid: unknown"),
        "kind": (policy(deny=["Mcp(github)"]), "deny: invalid rule 'Mcp(github)'"),
        "syntax": (policy(ask=["Shell(git push"]), "ask: invalid rule 'Shell(git push'"),
        "empty": (policy(deny=["Shell()"]), "deny: invalid rule"),
        "wildcard inside": (policy(deny=["Shell(git * main)"]), "deny: invalid rule"),
        "character class": (policy(deny=["Read(/[ab])"]), "deny: invalid rule"),
        "path of a host": (policy(deny=["Domain(a b)"]), "deny: invalid rule"),
        "port that is allowed": (policy(allow=["Domain(a.example:8080)"]), "allow: invalid rule"),
        "too many": (policy(deny=["Shell(a)"] * 1001), "deny: 1001 rules"),
        "not a list": (policy(deny="Shell"), "deny: expected an array"),
        "not a mode": (
            policy(disableBypassPermissionsMode=True),
            "disableBypassPermissionsMode: expected a string",
        ),
    }
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted(DONE))
        with all_cases() as case:
            for name, (options, message) in policies.items():
                for method, params in (("session.create", {}), ("session.resume", {"sessionId": session})):
                    with case(name):
                        assert message in (await wire.error_of(method, {**params, **options}))["message"]
        await wire.create(scripted(DONE), enableManagedSettings=False, managedSettings={})


async def test_a_question_of_a_hook_lets_no_mode_answer_in_place_of_a_person(tmp_path: Path) -> None:
    host, user = policy(ask=["Shell(touch *)"]), bash("mkdir c")
    asks = {"preToolUse": [{"permissionDecision": "ask"}] * 4}
    config = 'permissions.ask = ["shell(mkdir *)"]\n'
    async with (
        running_server(tmp_path, config=config, args=["--yolo"]) as server,
        answering(server.wire, asks),
    ):
        for turns, options in ((TOUCHES, host), ([user, DONE], {})):
            for can_ask in (True, False):
                session = await open_session(server, tmp_path, *turns, asks=can_ask, hooks=True, **options)
                mode = {"sessionId": session, "mode": "allow-all"}
                await server.wire.call("session.permissions.setMode", mode)
                events = await run(server.wire, session, *([REJECT] if can_ask else []))
                assert outcomes(events) == ["denied"]


async def test_a_policy_forbids_commands_of_other_clients_too(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    forbidden: dict[str, tuple[str, JsonObject]] = {
        "word": ("touch a", {}),
        "later": ("true; touch a", {}),
        "unknown program": ("$X a", {}),
        "path": ("cat sub/key", {}),
        "path in another folder": ("cat key", {"cwd": "sub"}),
    }
    async with running_server(tmp_path) as server:
        denied = policy(deny=["Shell(touch *)", "Read(/sub/key)"])
        session = await open_session(server, tmp_path, DONE, **denied)
        with all_cases() as case:
            for name, (command, more) in forbidden.items():
                for method in ("exec", *(() if more else ("executeUserRequested",))):
                    with case(f"{name}: {method}"):
                        params = {"sessionId": session, "requestId": name, "command": command, **more}
                        error = await server.wire.error_of(f"session.shell.{method}", params)
                        assert "host's policy" in error["message"]
        allowed = {"sessionId": session, "requestId": "x", "command": "ls"}
        assert (await server.wire.call("session.shell.executeUserRequested", allowed))["success"]
        assert not (tmp_path / "a").exists()


async def test_rules_about_commands_hold_for_declared_tools_that_waive_approval(tmp_path: Path) -> None:
    tools = tmp_path / "home" / "tools"
    tools.mkdir(parents=True)
    waived = '"requires_approval": False, "parameters": {"file": {"type": "string"}}'
    lines = f'[["true"], ["touch", "${{file}}"]], {waived}'
    (tools / "lines.py").write_text(f'TOOL = {{"cmds": {lines}}}\n')
    (tools / "steps.py").write_text(f'TOOL = {{"cmds": [lambda args: "x", ["touch", "${{file}}"]], {waived}}}\n')
    ways: dict[str, tuple[JsonObject, list[JsonObject], str]] = {
        "forbidden by a host": (policy(deny=["Shell(touch *)"]), [], "denied"),
        "asked for by a host": (policy(ask=["Shell(touch *)"]), [REJECT], "denied"),
        "forbidden by the user": ({}, [], "denied"),
        "free": ({}, [], "ok"),
    }
    project = tmp_path / "project"
    project.mkdir()
    async with running_server(tmp_path, config='permissions.deny = ["shell(touch forbidden)"]\n') as server:
        with all_cases() as case:
            for name, (options, answers, outcome) in ways.items():
                for form in ("lines", "steps"):
                    with case(f"{form}: {name}"):
                        file = project / ("forbidden" if "user" in name else f"{form} {name}")
                        turns = (calls(form, file=file.name), DONE)
                        session = await open_session(server, project, *turns, **options)
                        events = await run(server.wire, session, *answers)
                        assert outcomes(events) == [outcome]
                        assert file.exists() == (outcome == "ok")
