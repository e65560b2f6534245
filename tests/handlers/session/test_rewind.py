"""``session.history`` goes back: the conversation and the files, whoever of the model's tools has changed them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.server import RunningServer, calls, running_server, scripted

pytestmark = pytest.mark.anyio

DONE = {"text": "Done."}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "old.txt").write_text("one\n")
    (folder / "gone.sh").write_text("echo\n")
    (folder / "gone.sh").chmod(0o750)
    return folder


async def opened(server: RunningServer, project: Path, *turns: dict[str, Any], **options: Any) -> str:
    """Create a session that tracks files and may do everything."""
    options = {"workingDirectory": str(project), "enableFileChangeTracking": True} | options
    session = await server.wire.create(scripted(*turns), **options)
    await server.wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
    return session


def edit(call_id: str, old: str, new: str) -> dict[str, Any]:
    return calls("edit", call_id, path="old.txt", old_str=old, new_str=new)


def bash(call_id: str, command: str) -> dict[str, Any]:
    return calls("bash", call_id, command=command)


THREE_PROMPTS = (
    calls("create", "c1", path="new.txt", file_text="n\n"),
    edit("c2", "one", "two"),
    DONE,
    edit("c3", "two", "three"),
    bash("c4", "echo b > bash.txt; rm gone.sh"),
    DONE,
    calls("create", "c5", path="third.txt", file_text="t\n"),
    DONE,
)


async def points_of(server: RunningServer, session: str) -> list[dict[str, Any]]:
    result = await server.wire.call("session.history.listRewindPoints", {"sessionId": session})
    assert result["fileChangeTrackingEnabled"] is True
    return result["points"]


async def rewind(server: RunningServer, session: str, event_id: str, mode: str = "conversation-and-files") -> Any:
    params = {"sessionId": session, "eventId": event_id, "mode": mode}
    return await server.wire.call("session.history.rewind", params)


async def test_points_and_previews_name_what_each_prompt_has_changed(tmp_path: Path, project: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, project, *THREE_PROMPTS)
        for prompt in ("first", "second", "third"):
            await server.wire.prompt(session, prompt)
        points = await points_of(server, session)
        names = ("userMessage", "fileCount", "turnChangedFiles", "linesAdded", "linesRemoved", "canRestoreFiles")
        assert [[point[name] for name in names] for point in points] == [
            ["first", 5, True, 2, 1, True],
            ["second", 4, True, 2, 2, True],
            ["third", 1, True, 1, 0, True],
        ]
        params = {"sessionId": session, "eventId": points[0]["eventId"]}
        preview = await server.wire.call("session.history.previewRewind", params)
        assert (preview["available"], preview["fileCount"]) == (True, 5)
        assert [(Path(file["path"]).name, file["changeType"]) for file in preview["files"]] == [
            ("bash.txt", "created"),
            ("gone.sh", "deleted"),
            ("new.txt", "created"),
            ("old.txt", "modified"),
            ("third.txt", "created"),
        ]


async def test_a_rewind_restores_the_conversation_and_files_of_all_tools(tmp_path: Path, project: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, project, *THREE_PROMPTS, {"text": "Again."})
        for prompt in ("first", "second", "third"):
            await server.wire.prompt(session, prompt)
        second = (await points_of(server, session))[1]["eventId"]
        outcome = await rewind(server, session, second)
        assert outcome["outcome"] == "success"
        assert [os.path.basename(path) for path in outcome["restoredFiles"]] == [
            "old.txt",
            "bash.txt",
            "gone.sh",
            "third.txt",
        ]
        assert outcome["skippedFiles"] == []
        told = await server.wire.event("session.snapshot_rewind", session=session)
        assert told["data"] == {"eventsRemoved": outcome["eventsRemoved"], "upToEventId": second}
        assert sorted(os.listdir(project)) == ["gone.sh", "new.txt", "old.txt"]
        assert (project / "old.txt").read_text() == "two\n"
        assert stat.S_IMODE((project / "gone.sh").stat().st_mode) == 0o750
        assert [point["userMessage"] for point in await points_of(server, session)] == ["first"]
        await server.wire.prompt(session, "other")
        messages = await server.wire.call("session.getMessages", {"sessionId": session})
        said = [event["data"]["content"] for event in messages["events"] if event["type"] == "user.message"]
        assert said == ["first", "other"]


async def test_files_that_the_user_has_changed_are_named_and_left_alone(tmp_path: Path, project: Path) -> None:
    turns = (
        edit("c1", "one", "two"),
        calls("create", "c2", path="new.txt", file_text="n\n"),
        DONE,
        edit("c3", "mine", "three"),
        DONE,
    )
    async with running_server(tmp_path) as server:
        session = await opened(server, project, *turns)
        await server.wire.prompt(session, "first")
        # Between two changes of the model, and after the last one.
        (project / "old.txt").write_text("mine\n")
        await server.wire.prompt(session, "second")
        (project / "new.txt").write_text("mine, too\n")
        first, second = [point["eventId"] for point in await points_of(server, session)]
        outcome = await rewind(server, session, first)
        assert outcome["skippedFiles"] == [
            {"path": str(project / name), "reason": "user-modified"} for name in ("old.txt", "new.txt")
        ]
        assert (outcome["outcome"], outcome["restoredFiles"]) == ("success", [])
        assert second not in [point["eventId"] for point in await points_of(server, session)]
    assert (project / "old.txt").read_text() == "three\n"
    assert (project / "new.txt").read_text() == "mine, too\n"


async def test_a_rewind_of_the_conversation_forgets_the_changes_of_removed_prompts(
    tmp_path: Path, project: Path
) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, project, *THREE_PROMPTS)
        for prompt in ("first", "second", "third"):
            await server.wire.prompt(session, prompt)
        first, _, third = [point["eventId"] for point in await points_of(server, session)]
        outcome = await rewind(server, session, third, "conversation")
        assert (outcome["outcome"], outcome["restoredFiles"]) == ("success", [])
        await rewind(server, session, first)
    assert sorted(os.listdir(project)) == ["gone.sh", "old.txt", "third.txt"]


async def test_points_survive_a_resume_in_a_new_process_and_go_into_forks(tmp_path: Path, project: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, project, *THREE_PROMPTS)
        await server.wire.prompt(session, "first")
        await server.wire.prompt(session, "second")
    async with running_server(tmp_path) as server:
        fork = (await server.wire.call("sessions.fork", {"sessionId": session}))["sessionId"]
        await server.wire.call("session.resume", {"sessionId": fork, "provider": scripted(DONE)})
        points = await points_of(server, fork)
        assert [(point["userMessage"], point["fileCount"]) for point in points] == [("first", 4), ("second", 3)]
        assert (await rewind(server, fork, points[0]["eventId"]))["outcome"] == "success"
    assert sorted(os.listdir(project)) == ["gone.sh", "old.txt"]
    assert (project / "old.txt").read_text() == "one\n"


async def test_what_git_ignores_and_what_the_user_does_meanwhile_is_not_tracked(
    tmp_path: Path, project: Path
) -> None:
    await anyio.run_process(["git", "init", "-q"], cwd=project)
    (project / ".gitignore").write_text("built/\n")
    turns = (
        bash("c1", "mkdir built && echo x > built/x && echo y > y.txt"),
        DONE,
        bash("c2", "echo z > z.txt"),
        DONE,
    )
    async with running_server(tmp_path) as server:
        session = await opened(server, project, *turns)
        await server.wire.prompt(session, "first")
        (project / "mine.txt").write_text("mine\n")
        await server.wire.prompt(session, "second")
        first, second = await points_of(server, session)
        assert (first["fileCount"], second["fileCount"]) == (2, 1)
        outcome = await rewind(server, session, first["eventId"])
        assert [os.path.basename(path) for path in outcome["restoredFiles"]] == ["y.txt", "z.txt"]
    assert (project / "built/x").exists()
    assert (project / "mine.txt").exists()


async def test_an_aborted_command_is_tracked_until_the_end_of_the_prompt(tmp_path: Path, project: Path) -> None:
    async with running_server(tmp_path) as server:
        command = "echo 1 > early.txt; echo ready; sleep 60"
        session = await opened(server, project, calls("bash", "c1", command=command), DONE)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "first"})
        await server.wire.event("tool.execution_partial_result", session=session)
        await server.wire.call("session.abort", {"sessionId": session})
        await server.wire.event("session.idle", session=session)
        (point,) = await points_of(server, session)
        assert point["fileCount"] == 1
        assert (await rewind(server, session, point["eventId"]))["outcome"] == "success"
    assert not (project / "early.txt").exists()


async def test_a_command_in_the_background_is_tracked_while_a_prompt_runs(tmp_path: Path, project: Path) -> None:
    turns = (
        calls("bash", "c1", command="read line; echo 1 > late.txt; sleep 60", mode="async"),
        calls("write_bash", "c2", shellId="0", input="go\n", delay=0),
        bash("c3", "until [ -s late.txt ]; do sleep 0.01; done"),
        DONE,
    )
    async with running_server(tmp_path) as server:
        session = await opened(server, project, *turns)
        await server.wire.prompt(session, "first")
        (point,) = await points_of(server, session)
        assert (await rewind(server, session, point["eventId"]))["restoredFiles"] == [str(project / "late.txt")]


@pytest.mark.parametrize("cwd", ["", "sub"], ids=["of a folder", "of the working directory"])
async def test_a_rewind_does_not_follow_a_link_that_a_command_has_put_in_place(
    tmp_path: Path, project: Path, cwd: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / "sub").mkdir()
    for name in ("written", "deleted"):
        (outside / name).write_text("known")
    (project / "sub" / "written").write_text("evil")
    turns = [
        bash("c1", f"cd {project}/sub; printf known > written; printf known > deleted"),
        bash("c2", f"cd {project}; mv sub old; ln -s ../outside sub"),
        DONE,
    ]
    async with running_server(tmp_path) as server:
        session = await opened(server, project / cwd, *turns, sandboxConfig={"enabled": False})
        await server.wire.prompt(session, "go")
        points = await points_of(server, session)
        await rewind(server, session, points[0]["eventId"])
    assert {file.name: file.read_text() for file in outside.iterdir()} == {"written": "known", "deleted": "known"}


async def test_files_that_a_sub_agent_has_changed_belong_to_the_prompt(tmp_path: Path, project: Path) -> None:
    arguments = {"agent_type": "general-purpose", "description": "d", "name": "n", "prompt": "change it"}
    task = {"tool_calls": [{"id": "c1", "name": "task", "arguments": arguments}]}
    work = [edit("c2", "one", "two"), bash("c3", "echo b > bash.txt"), {"text": "It is changed."}]
    script: list[dict[str, Any]] = [{"when": "change it", "turns": work}, {"when": "first", "turns": [task, DONE]}]
    options = {"workingDirectory": str(project), "enableFileChangeTracking": True}
    async with running_server(tmp_path) as server:
        session = await server.wire.create({"type": "scripted", "script": {"prompts": script}}, **options)
        await server.wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        await server.wire.prompt(session, "first")
        (point,) = await points_of(server, session)
        assert point["fileCount"] == 2
        assert (await rewind(server, session, point["eventId"]))["outcome"] == "success"
        left = await server.wire.call("session.getMessages", {"sessionId": session})
        assert not [event for event in left["events"] if event.get("agentId")]
    assert sorted(os.listdir(project)) == ["gone.sh", "old.txt"]
    assert (project / "old.txt").read_text() == "one\n"


async def test_a_rewind_goes_back_before_a_compaction_and_keeps_the_settings(tmp_path: Path, project: Path) -> None:
    turns = ({"text": "One."}, {"text": "Two."}, {"text": "<overview>Summary</overview>"}, {"text": "Three."}, DONE)
    async with running_server(tmp_path) as server:
        session = await opened(server, project, *turns)
        here = {"sessionId": session}
        await server.wire.prompt(session, "first")
        before = await server.wire.call("session.metadata.getContextHeaviestMessages", here)
        await server.wire.prompt(session, "second")
        await server.wire.call("session.history.compact", here)
        await server.wire.call("session.mode.set", here | {"mode": "plan"})
        second = (await points_of(server, session))[1]["eventId"]
        assert (await rewind(server, session, second))["outcome"] == "success"
        assert await server.wire.call("session.metadata.getContextHeaviestMessages", here) == before
        assert (await server.wire.call("session.workspaces.listCheckpoints", here))["checkpoints"] == []
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", here | {"provider": scripted(DONE)})
        assert await server.wire.call("session.metadata.getContextHeaviestMessages", here) == before
        assert await server.wire.call("session.mode.get", here) == "plan"


async def test_without_tracking_only_the_conversation_goes_back(tmp_path: Path, project: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, project, edit("c1", "one", "two"), DONE, enableFileChangeTracking=False)
        await server.wire.prompt(session, "first")
        found = await server.wire.call("session.history.listRewindPoints", {"sessionId": session})
        (point,) = found["points"]
        assert (found["fileChangeTrackingEnabled"], point["canRestoreFiles"], point["fileCount"]) == (
            False,
            False,
            0,
        )
        params = {"sessionId": session, "eventId": point["eventId"]}
        assert await server.wire.call("session.history.previewRewind", params) == {
            "available": False,
            "reason": "file-change-tracking-disabled",
            "fileCount": 0,
            "files": [],
        }
        refused = await rewind(server, session, point["eventId"])
        assert refused == {"outcome": "file-change-tracking-disabled", "restoredFiles": [], "skippedFiles": []}
        # Too late: the changes of the first prompt would be missing.
        await server.wire.call("session.resume", {"sessionId": session, "enableFileChangeTracking": True})
        assert (await rewind(server, session, point["eventId"])) == refused
        assert (await rewind(server, session, point["eventId"], "conversation"))["outcome"] == "success"
    assert (project / "old.txt").read_text() == "two\n"


async def test_bad_requests_and_busy_sessions_are_refused(tmp_path: Path, project: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, project, DONE, {"hang": True})
        await server.wire.prompt(session, "first")
        (point,) = await points_of(server, session)
        for event_id, mode, problem in (
            ("nope", "conversation", "Rewind event 'nope' is not a current root user turn"),
            (
                point["eventId"],
                "wrong",
                "Invalid rewind mode 'wrong'; expected 'conversation' or 'conversation-and-files'",
            ),
        ):
            params = {"sessionId": session, "eventId": event_id, "mode": mode}
            error = await server.wire.error_of("session.history.rewind", params)
            assert error["message"].endswith(problem)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "second"})
        await server.wire.event("assistant.turn_start", session=session, since=len(server.wire.messages))
        busy = await server.wire.call("session.history.listRewindPoints", {"sessionId": session})
        assert busy == {"fileChangeTrackingEnabled": True, "unavailableReason": "session-busy", "points": []}
        assert (await rewind(server, session, point["eventId"]))["outcome"] == "session-busy"


async def test_a_rewind_that_fails_at_a_file_leaves_all_files_and_the_conversation(
    tmp_path: Path, project: Path
) -> None:
    (project / "sub").mkdir()
    (project / "sub/x.txt").write_text("x\n")
    async with running_server(tmp_path) as server:
        session = await opened(server, project, edit("c1", "one", "two"), bash("c2", "rm -r sub"), DONE)
        await server.wire.prompt(session, "first")
        (point,) = await points_of(server, session)
        (project / "sub").write_text("in the way\n")
        outcome = await rewind(server, session, point["eventId"])
        assert (outcome["outcome"], outcome["restoredFiles"]) == ("files-rolled-back", [])
        assert "a file cannot be restored" in outcome["error"]
        assert (project / "old.txt").read_text() == "two\n"
        assert len(await points_of(server, session)) == 1


async def test_cleared_context_leaves_the_prompt_alone_and_events_go_on(tmp_path: Path, project: Path) -> None:
    tool = {"name": "start_over", "description": "Start over", "parameters": {"type": "object"}}
    turns = (DONE, calls("start_over", "c1"), {"text": "Fresh."}, {"text": "Next."})
    async with running_server(tmp_path) as server:
        session = await opened(server, project, *turns, tools=[tool])
        params = {"sessionId": session, "prompt": "begin anew"}
        refused = await server.wire.error_of("session.history.clearContext", params)
        assert "session.history.clearContext must be called from inside a tool handler" in refused["message"]
        await server.wire.prompt(session, "first")
        await server.wire.call("session.send", {"sessionId": session, "prompt": "second"})
        asked = await server.wire.event("external_tool.requested", session=session)
        assert await server.wire.call("session.history.clearContext", params) == {"messagesCleared": 4}
        cleared = await server.wire.event("session.context_cleared", session=session)
        assert cleared["data"] == {"initialMessage": "begin anew", "messagesCleared": 4}
        since = len(server.wire.messages)
        answer = {"sessionId": session, "requestId": asked["data"]["requestId"], "result": "ok"}
        await server.wire.call("session.tools.handlePendingToolCall", answer)
        await server.wire.event("session.idle", session=session, since=since)
        said = [event for event in server.wire.events(session, since=since) if event["type"] == "user.message"]
        assert [event["data"]["content"] for event in said] == ["begin anew"]
        heavy = await server.wire.call("session.metadata.getContextHeaviestMessages", {"sessionId": session})
        assert sorted(message["role"] for message in heavy["messages"]) == ["assistant", "user"]
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": session, "provider": scripted(DONE)})
        again = await server.wire.call("session.metadata.getContextHeaviestMessages", {"sessionId": session})
        assert again["messages"] == heavy["messages"]
