"""Plan mode is read-only, by whichever way a session or a prompt comes into it, and whatever was approved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.agent.permissions.test_permissions_over_the_wire import (
    DONE,
    bash,
    data_of,
    open_session,
    outcomes,
)
from tests.agent.subagents.test_subagents_over_the_wire import by_prompt, task, turn
from tests.support.callbacks import answering
from tests.support.cases import all_cases
from tests.support.mcp_servers import status, stdio
from tests.support.server import JsonObject, RunningServer, Wire, calls, running_server

pytestmark = pytest.mark.anyio

ALL_ALLOWED: Final = 'permissions.allow = ["shell", "read", "write", "tool(*)", "sandboxed"]\n'
PLAN: Final = {"agentMode": "plan"}

WAYS: Final[Mapping[str, tuple[str, JsonObject, JsonObject]]] = {
    "mode of the session": ("session.mode.set", {"mode": "plan"}, {}),
    "agent mode of a prompt": ("session.name.set", {"name": "n"}, PLAN),
    "mode of a prompt": ("session.name.set", {"name": "n"}, {"mode": "plan"}),
    "slash command": ("session.commands.invoke", {"name": "plan"}, {}),
}
"""Ways into plan mode: a method, its params, and the members of the prompt."""


async def plan(
    wire: Wire, session: str, *, way: str = "agent mode of a prompt", text: str = "go"
) -> list[JsonObject]:
    """Send a prompt in plan mode to a session in which everything is allowed; returns the events."""
    method, params, members = WAYS[way]
    here = {"sessionId": session}
    await wire.call("session.permissions.setApproveAll", {**here, "enabled": True})
    await wire.call(method, {**here, **params})
    async with answering(wire, {"preToolUse": [{"permissionDecision": "allow"}] * 9}):
        return await wire.prompt(session, text, **members)


async def test_every_way_into_plan_mode_refuses_changes_and_tells_the_model(tmp_path: Path) -> None:
    changes = [bash("touch a"), calls("create", path="b", file_text="x"), DONE]
    async with running_server(tmp_path, config=ALL_ALLOWED, args=["--yolo"]) as server:
        with all_cases() as case:
            for number, way in enumerate(WAYS):
                with case(way):
                    project = tmp_path / f"project {number}"
                    project.mkdir()
                    session = await open_session(server, project, *changes, hooks=True)
                    events = await plan(server.wire, session, way=way)
                    assert outcomes(events) == ["denied", "denied"]
                    assert [*project.iterdir()] == []
                    for refused in data_of(events, "tool.execution_complete"):
                        assert "the session is in plan mode" in refused["error"]["message"]
                    assert data_of(events, "permission.requested") == []
                    assert data_of(events, "assistant.message")[-1]["content"] == "Done."


async def test_calls_that_are_known_to_only_read_run_in_plan_mode(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "note").write_text("a note\n")
    cases: dict[str, tuple[JsonObject, str]] = {
        "read": (calls("view", path="note"), "ok"),
        "search": (calls("grep", pattern="note"), "ok"),
        "todos": (calls("sql", query="SELECT 1"), "ok"),
        "commands": (calls("list_bash"), "ok"),
        "reading command": (bash("cat note | sort -u; git log"), "ok"),
        "redirection": (bash("cat note > other"), "denied"),
        "output of a reading program": (bash("sort -o other note"), "denied"),
        "unknown program": (bash("python3 -c 'print(1)'"), "denied"),
        "test": (bash("pytest"), "denied"),
        "unknown word": (bash("$X note"), "denied"),
        "second command": (bash("ls && rm note"), "denied"),
        "inner command": (bash("echo $(touch other)"), "denied"),
        "background": (calls("bash", command="touch other", mode="async", description="x"), "denied"),
        "input": (calls("write_bash", shellId="1", input="touch other"), "denied"),
        "end of a command": (calls("stop_bash", shellId="1"), "denied"),
        "memory": (calls("store_memory", subject="s", fact="f", citations="c", reason="r"), "denied"),
        "client's tool": (calls("deploy"), "denied"),
        "client's tool without questions": (calls("send"), "denied"),
        "server's tool": (calls("testing-visit"), "denied"),
    }
    tools = [{"name": "deploy", "metadata": {"readOnlyHint": "yes"}}, {"name": "send", "skipPermission": True}]
    more = {"tools": tools, "memory": {"enabled": True}, "mcpServers": {"testing": stdio()}}
    async with running_server(tmp_path, config=ALL_ALLOWED) as server:
        wire = server.wire
        with all_cases() as case:
            for name, (call, outcome) in cases.items():
                with case(name):
                    given: JsonObject = more if "tool" in name or name == "memory" else {}
                    session = await open_session(server, project, call, DONE, **given)
                    if "server" in name:
                        await status(wire, session, "testing", "connected")
                    assert outcomes(await plan(wire, session)) == [outcome]
        assert (project / "note").read_text() == "a note\n"
        assert not (project / "other").exists()


async def test_tools_that_declare_to_only_read_run_in_plan_mode(tmp_path: Path) -> None:
    # The calls of `meet` wait for each other.
    meet: list[JsonObject] = [{"id": f"call-{n}", "name": "testing-meet", "arguments": {}} for n in "12"]
    turns = [turn(*meet), calls("look_up"), DONE]
    tools = [{"name": "look_up", "metadata": {"readOnlyHint": True}, "skipPermission": True}]
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await open_session(server, tmp_path, *turns, tools=tools, mcpServers={"testing": stdio()})
        here = {"sessionId": session}
        await status(wire, session, "testing", "connected")
        await wire.call("session.permissions.setApproveAll", {**here, "enabled": True})
        await wire.call("session.send", {**here, "prompt": "go", **PLAN})
        asked = await wire.event("external_tool.requested", session=session)
        answer = {**here, "requestId": asked["data"]["requestId"], "result": "found"}
        await wire.call("session.tools.handlePendingToolCall", answer)
        await wire.event("session.idle", session=session)
        assert outcomes(wire.events(session)) == ["ok", "ok", "ok"]


async def written(server: RunningServer, session: str, *files: Path) -> list[bool]:
    await server.wire.event("session.idle", session=session)
    return [file.exists() for file in files]


async def test_work_that_was_asked_for_in_plan_mode_stays_read_only(tmp_path: Path) -> None:
    starts = turn(task(prompt="look", mode="background"))
    model = by_prompt(
        {
            "delegate": [starts, {"text": "Started."}],
            "look": [bash("touch a", "call-2"), {"text": "I looked."}],
            "has finished": [bash("touch b", "call-3"), {"text": "Noted."}],
            "and now": [bash("touch c", "call-4"), {"text": "Done."}],
        }
    )
    async with running_server(tmp_path, config=ALL_ALLOWED) as server:
        wire = server.wire
        session = await wire.create(model, workingDirectory=str(tmp_path))
        events = await plan(wire, session, text="delegate")
        assert "Noted." in [data["content"] for data in data_of(events, "assistant.message")]
        assert [(tmp_path / name).exists() for name in "ab"] == [False, False]
        # The next prompt has the usual mode of the session.
        await wire.prompt(session, "and now")
        assert (tmp_path / "c").exists()


async def test_the_mode_counts_that_holds_when_a_question_is_answered(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await open_session(server, tmp_path, bash("touch a"), DONE)
        here = {"sessionId": session}
        await wire.call("session.send", {**here, "prompt": "go"})
        asked = await wire.event("permission.requested", session=session)
        await wire.call("session.mode.set", {**here, "mode": "plan"})
        answer = {**here, "requestId": asked["data"]["requestId"], "result": {"kind": "approve-once"}}
        await wire.call("session.permissions.handlePendingPermissionRequest", answer)
        assert await written(server, session, tmp_path / "a") == [False]


async def test_an_approved_plan_ends_plan_mode_and_the_plan_itself_may_be_written(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=ALL_ALLOWED) as server:
        wire = server.wire
        created = await wire.call("session.create", {"sessionId": "planned"})
        own = f"{created['workspacePath']}/plan.md"
        turns = [
            calls("create", path=own, file_text="1. touch\n"),
            bash("touch a"),
            calls("exit_plan_mode", "call-plan", summary="Touch it"),
            bash("touch b"),
            DONE,
        ]
        provider: dict[str, Any] = {"type": "scripted", "script": {"turns": turns}}
        session = created["sessionId"]
        given = {"workingDirectory": str(tmp_path), "requestExitPlanMode": True, "provider": provider}
        await wire.call("session.resume", {"sessionId": session, **given})
        async with answering(wire, {"exitPlanMode.request": [{"approved": True, "selectedAction": "interactive"}]}):
            events = await plan(wire, session)
        assert outcomes(events) == ["ok", "denied", "ok", "ok"]
        assert [(tmp_path / name).exists() for name in "ab"] == [False, True]
