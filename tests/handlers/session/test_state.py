"""The state of a session: the methods that read and change it, and their events, over the real wire."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

HELLO = scripted({"text": "Hello!"}, {"text": "Hello again!"})


class At:
    """One session on one connection."""

    def __init__(self, wire: Wire, session: str) -> None:
        self.wire = wire
        self.session = session

    async def call(self, method: str, **params: Any) -> Any:
        return await self.wire.call(f"session.{method}", {"sessionId": self.session, **params})

    async def error_of(self, method: str, **params: Any) -> str:
        error = await self.wire.error_of(f"session.{method}", {"sessionId": self.session, **params})
        return error["message"]

    async def event(self, kind: str, **data: Any) -> dict[str, Any]:
        return await self.wire.event(kind, session=self.session, **data)

    async def history(self) -> list[dict[str, Any]]:
        return (await self.call("getMessages"))["events"]

    def answers(self) -> list[str]:
        return [
            event["data"]["content"]
            for event in self.wire.events(self.session)
            if event["type"] == "assistant.message"
        ]


async def start(wire: Wire, provider: dict[str, Any] = HELLO, **options: Any) -> At:
    return At(wire, await wire.create(provider, **options))


def everything_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


# --- log --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "kind", "word"),
    [
        (None, "session.info", "infoType"),
        ("info", "session.info", "infoType"),
        ("warning", "session.warning", "warningType"),
        ("error", "session.error", "errorType"),
    ],
)
async def test_a_logged_message_becomes_an_event_of_its_level_with_only_the_given_fields(
    tmp_path: Path, level: str | None, kind: str, word: str
) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        answer = await at.call("log", message="done", **({"level": level} if level else {}))
        event = await at.event(kind)
        assert event["id"] == answer["eventId"]
        assert event["data"] == {word: "notification", "message": "done"}
        assert event in await at.history()


async def test_a_logged_message_has_its_type_url_and_tip(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await at.call("log", message="full", type="disk", url="https://example.test/", tip="make room")
        event = await at.event("session.info")
    assert event["data"] == {
        "infoType": "disk",
        "message": "full",
        "url": "https://example.test/",
        "tip": "make room",
    }


async def test_an_ephemeral_message_is_sent_and_not_stored(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await at.call("log", message="passing by", level="warning", ephemeral=True)
        assert (await at.event("session.warning"))["ephemeral"] is True
        assert kinds(await at.history()) == ["session.start"]


# --- name -------------------------------------------------------------------------------------------------------


async def test_a_name_is_stripped_stored_and_emitted_each_time_it_is_set(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        assert await at.call("name.get") == {"name": None}
        assert await at.call("name.set", name="  Mine\n") is None
        await at.call("name.set", name="Mine")
        assert await at.call("name.get") == {"name": "Mine"}
        titles = [event for event in server.wire.events(at.session) if event["type"] == "session.title_changed"]
        assert [(title["data"], title["ephemeral"]) for title in titles] == [({"title": "Mine"}, True)] * 2


@pytest.mark.parametrize("name", ["", "   ", "\t\n  \r"])
async def test_an_empty_name_is_rejected(tmp_path: Path, name: str) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        assert "empty" in await at.error_of("name.set", name=name)


async def test_a_generated_name_does_not_replace_that_of_the_user(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        assert await at.call("name.setAuto", summary=" \n") == {"applied": False}
        assert await at.call("name.setAuto", summary="  first  ") == {"applied": True}
        assert await at.call("name.setAuto", summary="second") == {"applied": True}
        await at.call("name.set", name="third")
        assert await at.call("name.setAuto", summary="fourth") == {"applied": False}
        assert await at.call("name.get") == {"name": "third"}


async def test_a_named_session_is_listed_by_its_name_and_keeps_it(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await server.wire.prompt(at.session, "a long story")
        await at.call("name.set", name="Short: näme")
    async with running_server(tmp_path) as server:
        (sessions,) = (await server.wire.call("session.list", {}))["sessions"]
        assert (sessions["summary"], sessions["name"]) == ("Short: näme", "Short: näme")
        await server.wire.call("session.resume", {"sessionId": at.session, "provider": HELLO})
        again = At(server.wire, at.session)
        assert await again.call("name.get") == {"name": "Short: näme"}
        assert await again.call("name.setAuto", summary="other") == {"applied": False}


# --- plan and files ---------------------------------------------------------------------------------------------


async def test_a_plan_is_created_updated_and_deleted_with_an_event_for_each(tmp_path: Path) -> None:
    plan = "# Plan\r\n- grüßen 🙂"
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        path = server.log_of(at.session).with_name("plan.md")
        assert await at.call("plan.read") == {"exists": False, "content": None, "path": str(path)}
        assert await at.call("plan.update", content="# Draft") is None
        await at.call("plan.update", content=plan)
        assert path.read_bytes().decode() == plan
        assert await at.call("plan.read") == {"exists": True, "content": plan, "path": str(path)}
        assert await at.call("plan.delete") is None
        await at.call("plan.delete")
        assert (await at.call("plan.read"))["exists"] is False
        changes = [event["data"] for event in await at.history() if event["type"] == "session.plan_changed"]
    assert changes == [{"operation": "create"}, {"operation": "update"}, {"operation": "delete"}]


async def test_files_of_the_workspace_are_written_listed_and_read(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        assert await at.call("workspaces.listFiles") == {"files": []}
        assert await at.call("workspaces.createFile", path="a/b/./c.txt", content="one") is None
        await at.call("workspaces.createFile", path="a/b/./c.txt", content="two\r\n")
        await at.call("workspaces.createFile", path="z.txt", content="")
        assert await at.call("workspaces.listFiles") == {"files": ["a/b/c.txt", "z.txt"]}
        assert await at.call("workspaces.readFile", path="a/b/c.txt") == {"content": "two\r\n"}
        changes = [event["data"] for event in await at.history() if "file_changed" in event["type"]]
        files = server.log_of(at.session).with_name("files")
        assert sorted(path.name for path in files.rglob("*")) == ["a", "b", "c.txt", "z.txt"]
    assert changes == [
        {"operation": "create", "path": "a/b/./c.txt"},
        {"operation": "update", "path": "a/b/./c.txt"},
        {"operation": "create", "path": "z.txt"},
    ]


async def test_paths_of_the_workspace_are_made_looked_at_renamed_and_removed(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        assert "no such path" in await at.error_of("workspaces.createDirectory", path="a/b")
        await at.call("workspaces.createDirectory", path="a/b", recursive=True)
        assert "it exists" in await at.error_of("workspaces.createDirectory", path="a/b")
        await at.call("workspaces.createFile", path="a/b/c.txt", content="four")
        found = await at.call("workspaces.statFile", path="a/b/c.txt")
        assert (found["isFile"], found["isDirectory"], found["size"]) == (True, False, 4)
        assert found["mtimeMs"] > found["birthtimeMs"] - 1000 > 0
        assert (await at.call("workspaces.statFile", path="a"))["isDirectory"] is True
        await at.call("workspaces.renamePath", source="a/b", destination="d")
        assert "'a/b'" in await at.error_of("workspaces.renamePath", source="a/b", destination="d")
        assert await at.call("workspaces.listFiles") == {"files": ["d/c.txt"]}
        assert "not empty" in await at.error_of("workspaces.removePath", path="d")
        await at.call("workspaces.removePath", path="d", recursive=True)
        assert "'d'" in await at.error_of("workspaces.removePath", path="d")
        await at.call("workspaces.removePath", path="d", force=True)
        assert "'d'" in await at.error_of("workspaces.statFile", path="d")


async def test_a_link_of_the_workspace_is_removed_and_its_target_is_left(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await at.call("workspaces.createDirectory", path="a", recursive=True)
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "kept").touch()
        (server.log_of(at.session).with_name("files") / "a/link").symlink_to(outside)
        for path in ("a/link/kept", "..", ".", "a/.."):
            problem = await at.error_of("workspaces.removePath", path=path, recursive=True, force=True)
            assert "workspace files directory" in problem
        await at.call("workspaces.removePath", path="a/link", recursive=True)
        assert (outside / "kept").exists()


async def test_hosts_add_summaries_and_name_the_workspace(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        for title in ("One", "Two"):
            added = await at.call("workspaces.addSummary", title=title, content=f"about {title}")
        assert added["summary"] == {"number": 2, "title": "Two", "filename": "002-two.md"}
        assert added["workspace"]["summary_count"] == 2
        left = await at.call("workspaces.truncateSummaries", keepCount=1)
        assert left["workspace"]["summary_count"] == 1
        (checkpoint,) = (await at.call("workspaces.listCheckpoints"))["checkpoints"]
        assert checkpoint["title"] == "One"
        context = {"branch": "topic", "repository": "one/two", "other": 1}
        named = await at.call("workspaces.updateMetadata", name="Mine", context=context)
        assert (named["workspace"]["name"], named["workspace"]["branch"]) == ("Mine", "topic")
        assert await at.call("workspaces.ensure") == named


async def test_the_error_about_a_missing_file_or_a_folder_names_it(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await at.call("workspaces.createFile", path="folder/file", content="")
        assert "'nowhere'" in await at.error_of("workspaces.readFile", path="nowhere")
        assert "'folder'" in await at.error_of("workspaces.readFile", path="folder")
        assert "folder" in await at.error_of("workspaces.createFile", path="folder", content="")
        assert "its parent is a file" in await at.error_of(
            "workspaces.createFile", path="folder/file/x", content=""
        )
        assert await at.error_of("workspaces.createFile", path="x" * 300, content="")


async def test_a_path_outside_of_the_workspace_is_rejected(tmp_path: Path) -> None:
    out = ["../x", "../../x", "a/../../x", "/etc/passwd", ".", "", "a/..", "x\0y", "out/x", "alias", "circle"]
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await at.call("workspaces.createFile", path="a/inside", content="")
        files = server.log_of(at.session).with_name("files")
        (tmp_path / "secret").write_text("hidden")
        (files / "out").symlink_to(tmp_path)
        (files / "alias").symlink_to(tmp_path / "secret")
        (files / "circle").symlink_to("circle")
        before = everything_in(tmp_path)
        for path in out:
            assert "workspace files directory" in await at.error_of("workspaces.readFile", path=path)
            assert "workspace files directory" in await at.error_of("workspaces.createFile", path=path, content="x")
        assert await at.call("workspaces.listFiles") == {"files": ["a/inside"]}
        assert everything_in(tmp_path) == before
        assert (tmp_path / "secret").read_text() == "hidden"


async def test_reading_a_named_pipe_in_the_workspace_does_not_block(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await at.call("workspaces.createFile", path="x", content="")
        os.mkfifo(server.log_of(at.session).with_name("files") / "pipe")
        assert "regular file" in await at.error_of("workspaces.readFile", path="pipe")
        assert await at.call("workspaces.listFiles") == {"files": ["x"]}


async def test_the_workspace_is_returned_without_the_prompt(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await server.wire.prompt(at.session, "a secret wish")
        await at.call("name.set", name="N")
        answer = await at.call("workspaces.getWorkspace")
        assert answer["path"] == str(server.log_of(at.session).parent)
    workspace = answer["workspace"]
    assert (workspace["id"], workspace["cwd"], workspace["name"]) == (at.session, str(tmp_path), "N")
    assert workspace["user_named"] is True
    assert "secret" not in json.dumps(workspace)


async def test_a_large_paste_becomes_a_file_of_the_workspace(tmp_path: Path) -> None:
    text = "pasted 🙂\n" * 1000
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        saved = (await at.call("workspaces.saveLargePaste", content=text))["saved"]
        assert saved["sizeBytes"] == len(text.encode())
        assert saved["filePath"] == str(server.log_of(at.session).parent / "files" / saved["filename"])
        assert await at.call("workspaces.readFile", path=saved["filename"]) == {"content": text}


# --- metadata ---------------------------------------------------------------------------------------------------


async def test_a_session_reports_whether_a_prompt_is_running(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire, scripted({"hang": True}))
        assert await at.call("metadata.isProcessing") == {"processing": False}
        assert await at.call("metadata.activity") == {"hasActiveWork": False, "abortable": False}
        await at.call("send", prompt="go")
        assert await at.call("metadata.isProcessing") == {"processing": True}
        assert await at.call("metadata.activity") == {"hasActiveWork": True, "abortable": True}
        await at.call("abort")
        assert await at.call("metadata.isProcessing") == {"processing": False}


async def test_the_snapshot_has_the_fields_that_user_interfaces_show(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire, model="m-1", clientName="tester")
        await at.call("mode.set", mode="plan")
        snapshot = await at.call("metadata.snapshot")
        assert snapshot["workspacePath"] == str(server.log_of(at.session).parent)
    assert snapshot["workspace"]["id"] == snapshot["sessionId"] == at.session
    assert snapshot["modifiedTime"] >= snapshot["startTime"]
    assert snapshot["workingDirectory"] == str(tmp_path)
    expected = {"isRemote": False, "alreadyInUse": False, "currentMode": "plan", "sessionLimits": None}
    expected |= {"selectedModel": "m-1", "clientName": "tester"}
    assert {name: snapshot[name] for name in expected} == expected


async def test_a_changed_working_directory_is_used_and_survives_a_resume(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    pwd = scripted(calls("bash", command="pwd"), {"text": "{{last_tool_result}}"}, {"text": "-"})
    async with running_server(tmp_path, args=["--yolo"]) as server:
        at = await start(server.wire, pwd)
        answer = await at.call("metadata.setWorkingDirectory", workingDirectory=str(elsewhere))
        assert answer == {"workingDirectory": str(elsewhere)}
        await server.wire.prompt(at.session)
        assert at.answers()[-1].startswith(f"{elsewhere}\n")
        for wrong in (str(tmp_path / "nowhere"), "elsewhere"):
            assert wrong in await at.error_of("metadata.setWorkingDirectory", workingDirectory=wrong)
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": at.session, "provider": pwd})
        snapshot = await At(server.wire, at.session).call("metadata.snapshot")
    assert snapshot["workingDirectory"] == str(elsewhere)


async def test_a_host_reports_the_git_state_but_cannot_change_the_working_directory(tmp_path: Path) -> None:
    context = {
        "cwd": f"{tmp_path}/.",
        "gitRoot": "/repo",
        "branch": "topic",
        "repository": "me/mine",
        "repositoryHost": "example.test",
        "hostType": "github",
        "headCommit": "1" * 40,
        "baseCommit": "0" * 40,
    }
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        assert await at.call("metadata.recordContextChange", context={**context, "cwd": "/elsewhere"}) == {}
        assert await at.call("metadata.recordContextChange", context=context) == {}
        changes = [event["data"] for event in await at.history() if event["type"] == "session.context_changed"]
        workspace = (await at.call("workspaces.getWorkspace"))["workspace"]
    assert changes == [context]
    assert (workspace["branch"], workspace["cwd"]) == ("topic", str(tmp_path))


async def test_the_instruction_files_of_the_project_are_listed_with_their_text(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        (source,) = (await at.call("instructions.getSources"))["sources"]
        without = await start(server.wire, skipCustomInstructions=True)
        assert await without.call("instructions.getSources") == {"sources": []}
    assert (source["sourcePath"], source["content"]) == (str(tmp_path / "AGENTS.md"), "Be kind.")
    assert all(source[name] for name in ("id", "label", "type", "location"))


async def test_instructions_of_projects_are_found_without_a_session(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "AGENTS.md").write_text("Be brief.")
    (project / "below").mkdir()
    projects = {"projectPaths": [str(project / "below")]}
    async with running_server(tmp_path) as server:
        found = (await server.wire.call("instructions.discover", projects))["sources"]
        paths = (await server.wire.call("instructions.getDiscoveryPaths", projects))["paths"]
        error = await server.wire.error_of("instructions.discover", {"projectPaths": ["below"]})

    path = str(project / "AGENTS.md")
    assert found == [
        {
            "id": path,
            "label": "AGENTS.md",
            "sourcePath": path,
            "content": "Be brief.",
            "type": "repo",
            "location": "repository",
            "projectPath": str(project / "below"),
        }
    ]
    assert [entry["path"] for entry in paths if entry["preferredForCreation"]] == [
        str(project / "below" / "AGENTS.md")
    ]
    assert path in [entry["path"] for entry in paths]
    assert error["message"] == "'below' is not an absolute path"


async def test_the_parts_of_the_context_are_measured_once_there_is_a_conversation(tmp_path: Path) -> None:
    limits = {"promptTokenLimit": 1000, "outputTokenLimit": 50, "selectedModel": "m-2"}
    (tmp_path / "AGENTS.md").write_text("Be kind. " * 20)
    async with running_server(tmp_path) as server:
        at = await start(server.wire, model="m-1")
        assert await at.call("metadata.contextInfo", **limits) == {"contextInfo": None}
        # Their sum would not fit into an integer of the wire.
        huge = {"sessionId": at.session, **dict.fromkeys(("promptTokenLimit", "outputTokenLimit"), 2**63)}
        assert (await server.wire.error_of("session.metadata.contextInfo", huge))["code"] == -32602
        assert await at.call("metadata.getContextAttribution") == {"contextAttribution": None}
        assert await at.call("history.summarizeForHandoff") == {"summary": ""}
        await server.wire.prompt(at.session, "a long story " * 100)
        info = (await at.call("metadata.contextInfo", **limits))["contextInfo"]
        counted = await at.call("metadata.recomputeContextTokens", modelId="any")
        attribution = (await at.call("metadata.getContextAttribution"))["contextAttribution"]
        heaviest = await at.call("metadata.getContextHeaviestMessages", limit=1)
        announced = (await at.event("session.usage_info"))["data"]
    parts = [info[name] for name in ("systemTokens", "conversationTokens", "toolDefinitionsTokens")]
    assert min(parts) > 0
    assert sum(parts) == info["totalTokens"] == attribution["totalTokens"]
    assert (info["modelName"], info["promptTokenLimit"], info["limit"]) == ("m-2", 1000, 1050)
    assert info["systemTokens"] == announced["systemTokens"] == counted["systemTokenCount"]
    assert info["toolDefinitionsTokens"] == announced["toolDefinitionsTokens"]
    assert counted["totalTokens"] == counted["systemTokenCount"] + counted["messagesTokenCount"]
    assert sum(entry["tokens"] for entry in attribution["entries"]) == attribution["totalTokens"]
    assert attribution["categories"]["customInstructions"] > 0
    assert attribution["modelId"] == "m-1"
    (message,) = heaviest["messages"]
    assert message["role"] == "user"
    assert 300 < message["tokens"] <= heaviest["totalTokens"]


# --- model, tools, permissions, usage -----------------------------------------------------------------------------


async def test_the_reasoning_effort_is_returned_used_and_stored(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire, model="m-1")
        answer = await at.call("model.setReasoningEffort", reasoningEffort="high")
        assert answer == {"reasoningEffort": "high"}
        await server.wire.prompt(at.session)
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": at.session, "provider": HELLO})
        current = await At(server.wire, at.session).call("model.getCurrent")
    assert current == {"modelId": "m-1", "reasoningEffort": "high"}


async def test_a_session_lists_the_models_it_can_switch_to(tmp_path: Path) -> None:
    config = '[adapters.scripted]\nscript = "s.json"\n[models.play]\nadapter = "scripted"\nmodel = "one"\n'
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "s.json").write_text(json.dumps({"turns": [{"text": "x"}]}))
    async with running_server(tmp_path, config=config) as server:
        own = await start(server.wire, model="mine")
        servers = At(server.wire, (await server.wire.call("session.create", {}))["sessionId"])
        assert [model["id"] for model in (await own.call("model.list"))["list"]] == ["mine"]
        assert [model["id"] for model in (await servers.call("model.list"))["list"]] == ["play"]


async def test_tools_are_listed_for_the_server_and_as_a_session_offers_them(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        tools = (await server.wire.call("tools.list", {}))["tools"]
        at = await start(server.wire, tools=[{"name": "mine", "description": "d"}], excludedTools=["bash"])
        assert await at.call("tools.initializeAndValidate") == {}
        offered = {tool["name"]: tool for tool in (await at.call("tools.getCurrentMetadata"))["tools"]}
    names = [tool["name"] for tool in tools]
    assert {"bash", "view", "sql", "skill", "store_memory", "vote_memory", "exit_plan_mode"} <= set(names)
    assert len(names) == len(set(names))
    assert all(tool["description"] and tool["parameters"]["type"] == "object" for tool in tools)
    assert "view" in offered
    assert "bash" not in offered
    assert offered["mine"] == {
        "name": "mine",
        "description": "d",
        "input_schema": {"type": "object", "properties": {}},
    }


async def test_the_permission_mode_decides_whether_calls_require_approval(tmp_path: Path) -> None:
    script = scripted(calls("bash", command="echo ran"), {"text": "{{last_tool_result}}"})
    async with running_server(tmp_path) as server:
        at = await start(server.wire, script, requestPermission=True)
        assert await at.call("permissions.getMode") == {"mode": "manual"}
        answer = await at.call("permissions.setMode", mode="allow-all")
        assert answer == {"success": True, "mode": "allow-all"}
        changed = await at.event("session.permissions_changed")
        assert changed["data"] == {
            "mode": "allow-all",
            "previousMode": "manual",
            "allowAllPermissions": True,
            "previousAllowAllPermissions": False,
        }
        assert "permission.requested" not in kinds(await server.wire.prompt(at.session))
        assert at.answers()[-1].startswith("ran")
        assert "mode" in await at.error_of("permissions.setMode", mode="unheard")
        assert await at.call("permissions.getMode") == {"mode": "allow-all"}
        await at.call("permissions.setMode", mode="manual")
        assert await at.call("permissions.getMode") == {"mode": "manual"}


@pytest.mark.parametrize("truth", ["yes", "true", 1, [], {}])
async def test_approving_all_calls_requires_a_boolean(tmp_path: Path, truth: Any) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        for method in ("permissions.setApproveAll", "permissions.setAllowAll"):
            assert "enabled" in await at.error_of(method, enabled=truth)
        assert await at.call("permissions.getMode") == {"mode": "manual"}


async def test_the_method_names_of_older_sdks_work(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await at.call("workspace.createFile", path="a", content="b")
        assert await at.call("workspace.listFiles") == {"files": ["a"]}
        assert await at.call("workspace.readFile", path="a") == {"content": "b"}
        assert await at.call("permissions.getAllowAll") == {"enabled": False, "mode": "off"}
        answer = await at.call("permissions.setAllowAll", enabled=True)
        assert answer == {"success": True, "enabled": True, "mode": "on"}
        assert await at.call("permissions.getMode") == {"mode": "allow-all"}
        answer = await at.call("permissions.setAllowAll", enabled=True, mode="off")
        assert answer == {"success": True, "enabled": False, "mode": "off"}
        assert "auto" in await at.error_of("permissions.setAllowAll", mode="auto")


async def test_usage_is_counted_by_model_and_changes_by_file(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("a\nb\nc\n")
    usage = {"input": 100, "output": 10, "cache_read": 60, "cache_write": 5, "reasoning": 3}
    script = scripted(
        calls("create", path="new.txt", file_text="1\n2\n") | {"usage": usage},
        calls("edit", path="old.txt", old_str="b\n", new_str="B\nBB\n") | {"usage": usage},
        {"text": "done", "usage": {"input": 7, "output": 2}},
        {"text": "again"},
    )
    changes = {
        "linesAdded": 4,
        "linesRemoved": 1,
        "filesModifiedCount": 2,
        "filesModified": [str(tmp_path / "new.txt"), str(tmp_path / "old.txt")],
    }
    async with running_server(tmp_path, args=["--yolo"]) as server:
        at = await start(server.wire, script, model="m-1")
        fresh = await at.call("usage.getMetrics")
        assert (fresh["totalUserRequests"], fresh["modelMetrics"], fresh["lastCallInputTokens"]) == (0, {}, 0)
        await server.wire.prompt(at.session)
        metrics = await at.call("usage.getMetrics")
    assert metrics["codeChanges"] == changes
    assert (metrics["totalUserRequests"], metrics["currentModel"]) == (1, "m-1")
    assert (metrics["lastCallInputTokens"], metrics["lastCallOutputTokens"]) == (7, 2)
    assert metrics["sessionStartTime"].endswith("Z")
    assert metrics["modelMetrics"] == {
        "m-1": {
            "requests": {"count": 3, "cost": 0},
            "usage": {
                "inputTokens": 207,
                "outputTokens": 22,
                "cacheReadTokens": 120,
                "cacheWriteTokens": 10,
                "reasoningTokens": 6,
            },
        }
    }
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": at.session, "provider": script})
        resumed = await At(server.wire, at.session).call("usage.getMetrics")
    assert (resumed["codeChanges"], resumed["modelMetrics"]) == (changes, {})


# --- the end of a session ---------------------------------------------------------------------------------------


async def test_shutdown_stops_the_run_emits_the_usage_and_closes_the_session(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire, scripted({"text": "one"}, {"hang": True}))
        await server.wire.prompt(at.session)
        await at.call("send", prompt="and on")
        await at.event("assistant.turn_start")
        assert await at.call("shutdown", type="error", reason="out of patience") is None
        last = server.wire.events(at.session)[-1]
        assert last["type"] == "session.shutdown"
        assert (last["data"]["shutdownType"], last["data"]["errorReason"]) == ("error", "out of patience")
        assert last["data"]["codeChanges"] == {"linesAdded": 0, "linesRemoved": 0, "filesModified": []}
        (usage,) = last["data"]["modelMetrics"].values()
        assert usage["requests"]["count"] == 1
        assert await at.error_of("send", prompt="hi") == f"Session not found: {at.session}"
        assert await at.call("destroy") == {"success": True}
        await server.wire.call("session.resume", {"sessionId": at.session, "provider": HELLO})
        assert "session.shutdown" in kinds(await at.history())
        await at.call("shutdown")
        await at.event("session.shutdown", shutdownType="routine")


async def test_suspending_withdraws_open_questions_and_keeps_the_session_live(tmp_path: Path) -> None:
    script = scripted(calls("bash", command="touch no"), {"text": "here I am"})
    async with running_server(tmp_path) as server:
        at = await start(server.wire, script, requestPermission=True)
        await at.call("send", prompt="go")
        request = await at.event("permission.requested")
        assert await at.call("suspend") is None
        late = {"requestId": request["data"]["requestId"], "result": {"kind": "approve-once"}}
        answer = await at.call("permissions.handlePendingPermissionRequest", **late)
        assert answer == {"success": False}
        assert await at.call("suspend") is None
        await server.wire.prompt(at.session, "still there?")
        assert at.answers()[-1] == "here I am"
    assert not (tmp_path / "no").exists()


# --- queue ------------------------------------------------------------------------------------------------------


async def test_queued_prompts_are_listed_and_can_be_removed(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire, scripted({"hang": True}))
        empty: dict[str, Any] = {"items": [], "steeringMessages": [], "inFlightSteeringCount": 0}
        assert await at.call("queue.pendingItems") == empty
        assert await at.call("queue.removeMostRecent") == {"removed": False}
        assert await at.call("queue.clear") is None
        await at.call("send", prompt="first")
        await at.event("assistant.turn_start")
        ids = [(await at.call("send", prompt=text))["messageId"] for text in ("second", "third")]
        await at.call("send", prompt="by the way", mode="immediate")
        shown = await at.call("queue.pendingItems")
        assert [(item["id"], item["kind"], item["displayText"]) for item in shown["items"]] == [
            (ids[0], "message", "second"),
            (ids[1], "message", "third"),
        ]
        assert shown["steeringMessages"] == ["by the way"]
        assert await at.call("queue.removeMostRecent") == {"removed": True}
        shown = await at.call("queue.pendingItems")
        assert [item["displayText"] for item in shown["items"]] == ["second"]
        await at.call("queue.clear")
        assert await at.call("queue.pendingItems") == empty
        assert await at.call("metadata.isProcessing") == {"processing": True}
        await at.call("abort")
        prompts = [event["data"]["content"] for event in await at.history() if event["type"] == "user.message"]
    assert prompts == ["first"]


# --- event log --------------------------------------------------------------------------------------------------


async def test_the_event_log_is_read_page_by_page_from_its_beginning(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await server.wire.prompt(at.session)
        history = await at.history()
        pages: list[dict[str, Any]] = []
        cursor: dict[str, str] = {}
        while not pages or pages[-1]["hasMore"]:
            pages.append(await at.call("eventLog.read", max=2, **cursor))
            cursor = {"cursor": pages[-1]["cursor"]}
        assert [event for page in pages for event in page["events"]] == history
        assert {page["cursorStatus"] for page in pages} == {"ok"}
        assert [len(page["events"]) for page in pages] == [2, 2, 1]
        assert (await at.call("eventLog.tail"))["cursor"] == pages[-1]["cursor"]
        again = await at.call("eventLog.read", **cursor)
        assert (again["events"], again["hasMore"]) == ([], False)
        only = await at.call("eventLog.read", types=["user.message", "assistant.message"])
        assert kinds(only["events"]) == ["user.message", "assistant.message"]


async def test_the_event_log_is_read_backward_from_its_end(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await server.wire.prompt(at.session)
        history = await at.history()
        page = await at.call("eventLog.read", direction="backward", max=2)
        assert (page["events"], page["hasMore"]) == (history[-2:], True)
        # The cursor continues in its own direction.
        page = await at.call("eventLog.read", cursor=page["cursor"], max=2)
        assert (page["events"], page["hasMore"]) == (history[-4:-2], True)
        page = await at.call("eventLog.read", cursor=page["cursor"], max=2, direction="backward")
        assert (page["events"], page["hasMore"]) == (history[:-4], False)


async def test_pages_of_the_log_of_an_earlier_process_have_every_event_once(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        for _ in range(4):
            await server.wire.prompt(at.session)
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": at.session, "provider": HELLO})
        at = At(server.wire, at.session)
        history = await at.history()
        for options in ({}, {"types": ["user.message"]}, {"direction": "backward"}):
            pages: list[list[dict[str, Any]]] = []
            page: dict[str, Any] = {"hasMore": True}
            while page["hasMore"]:
                cursor = {"cursor": page["cursor"]} if pages else {}
                page = await at.call("eventLog.read", max=3, includeEphemeral=False, **options, **cursor)
                assert page["cursorStatus"] == "ok"
                pages.append(page["events"])
            in_order = pages[::-1] if "direction" in options else pages
            kinds_wanted = options.get("types", kinds(history))
            assert [event for events in in_order for event in events] == [
                event for event in history if event["type"] in kinds_wanted
            ]


async def test_a_waiting_reader_gets_new_events_including_ephemeral_ones(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        cursor = (await at.call("eventLog.tail"))["cursor"]
        params = {"sessionId": at.session, "cursor": cursor, "waitMs": 9000, "types": ["session.title_changed"]}
        # The read is requested and begun before the event; its response comes later.
        waiting = await server.wire.ask("session.eventLog.read", params)
        await at.call("mode.set", mode="plan")
        await at.call("name.set", name="New")
        read = (await server.wire.response(waiting))["result"]
        assert [event["data"] for event in read["events"]] == [{"title": "New"}]
        nothing = await at.call("eventLog.read", cursor=read["cursor"], waitMs=1)
        assert nothing["events"] == []


async def test_events_between_two_polls_are_not_missed(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire, streaming=True)
        cursor = (await at.call("eventLog.tail"))["cursor"]
        announced = await server.wire.prompt(at.session)
        polled: list[dict[str, Any]] = []
        while "session.idle" not in kinds(polled):
            page = await at.call("eventLog.read", cursor=cursor, max=3, waitMs=5000)
            polled += page["events"]
            cursor = page["cursor"]
        assert polled == announced
        durable = await at.call("eventLog.read", includeEphemeral=False)
        assert durable["events"] == await at.history()


async def test_a_cursor_expires_when_its_event_is_removed(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await server.wire.prompt(at.session)
        forward = (await at.call("eventLog.tail"))["cursor"]
        backward = (await at.call("eventLog.read", direction="backward", max=1))["cursor"]
        (prompt,) = [event for event in await at.history() if event["type"] == "user.message"]
        await at.call("history.truncate", eventId=prompt["id"])
        await server.wire.prompt(at.session)
        for cursor in (forward, backward):
            page = await at.call("eventLog.read", cursor=cursor)
            assert page["cursorStatus"] == "expired"
            assert page["events"] == await at.history()
        for cursor in ("yesterday", "1.2@.id", f"1.2@{'9' * 5000}.id"):
            assert "cursor" in await at.error_of("eventLog.read", cursor=cursor)
        page = await at.call("eventLog.read", cursor=f"1.99@{'9' * 18}.{prompt['id']}")
        assert page["cursorStatus"] == "expired"


async def test_a_waiting_read_ends_when_the_session_closes(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        params = {"sessionId": at.session, "waitMs": 30_000, "types": ["session.title_changed"]}
        waiting = await server.wire.ask("session.eventLog.read", params)
        await at.call("destroy")
        assert (await server.wire.response(waiting))["result"]["events"] == []
        assert await at.error_of("eventLog.tail") == f"Session not found: {at.session}"


# --- history ----------------------------------------------------------------------------------------------------


async def test_truncating_removes_an_event_and_all_later_ones_for_the_model_too(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        await server.wire.prompt(at.session, "first")
        before = await at.history()
        await server.wire.prompt(at.session, "second")
        second = (await at.history())[len(before)]
        removed = len(await at.history()) - len(before)
        answer = await at.call("history.truncate", eventId=second["id"])
        rewind = await at.event("session.snapshot_rewind")
        assert answer == {"eventsRemoved": removed}
        assert (rewind["data"], rewind["ephemeral"]) == (
            {"eventsRemoved": removed, "upToEventId": second["id"]},
            True,
        )
        assert await at.history() == before
        await server.wire.prompt(at.session, "other")
        # The script answers "Hello again!" only after an earlier answer in the conversation.
        assert at.answers() == ["Hello!", "Hello again!", "Hello again!"]
        chain = await at.history()
        assert [event["parentId"] for event in chain] == [None, *(event["id"] for event in chain[:-1])]
    async with running_server(tmp_path) as server:
        await server.wire.call(
            "session.resume", {"sessionId": at.session, "provider": HELLO, "disableResume": True}
        )
        assert await At(server.wire, at.session).history() == chain


async def test_truncating_at_an_unknown_event_at_the_first_or_during_a_run_is_an_error(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire, scripted({"hang": True}))
        (first,) = await at.history()
        assert "not found" in await at.error_of("history.truncate", eventId=str(uuid.uuid4()))
        assert "first event" in await at.error_of("history.truncate", eventId=first["id"])
        sent = await at.call("send", prompt="go")
        await at.event("assistant.turn_start")
        assert "a prompt is running" in await at.error_of("history.truncate", eventId=sent["messageId"])
        await at.call("abort")


async def test_a_fork_is_independent_of_its_source(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        at = await start(wire)
        await wire.prompt(at.session, "first")
        await at.call("plan.update", content="the plan")
        await at.call("workspaces.createFile", path="a/b", content="kept")
        before = await at.history()
        await wire.prompt(at.session, "second")
        second = (await at.history())[len(before)]
        answer = await wire.call(
            "sessions.fork", {"sessionId": at.session, "toEventId": second["id"], "name": " Branch "}
        )
        assert answer["name"] == "Branch"
        assert answer["sessionId"] != at.session
        fork = At(wire, answer["sessionId"])
        await wire.call("session.resume", {"sessionId": fork.session, "provider": HELLO, "disableResume": True})
        copied = await fork.history()
        assert copied[0]["data"].pop("sessionId") == fork.session
        assert before[0]["data"].pop("sessionId") == at.session
        assert copied == before
        assert await fork.call("name.get") == {"name": "Branch"}
        assert (await fork.call("plan.read"))["content"] == "the plan"
        assert await fork.call("workspaces.readFile", path="a/b") == {"content": "kept"}
        length = len(await at.history())
        await wire.prompt(fork.session, "on")
        assert fork.answers() == ["Hello again!"]
        assert len(await at.history()) == length
        assert await at.call("name.get") == {"name": None}


async def test_a_session_that_cannot_be_forked_is_an_error(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        at = await start(wire)
        empty = await wire.error_of("sessions.fork", {"sessionId": at.session})
        await wire.prompt(at.session)
        event = str(uuid.uuid4())
        unknown = await wire.error_of("sessions.fork", {"sessionId": at.session, "toEventId": event})
        nobody = await wire.error_of("sessions.fork", {"sessionId": "nobody"})
        assert len(list((tmp_path / "home" / "session-state").iterdir())) == 1
    assert "not found or has no persisted events" in empty["message"]
    assert f"Event {event} not found" in unknown["message"]
    assert nobody["message"] == "Session not found: nobody"


# --- notes and answers --------------------------------------------------------------------------------------------


async def test_a_report_on_remote_steering_is_logged(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        for steerable in (True, False):
            assert await at.call("remote.notifySteerableChanged", remoteSteerable=steerable) == {}
        notes = [event["data"] for event in await at.history() if "steerable" in event["type"]]
    assert notes == [{"remoteSteerable": True}, {"remoteSteerable": False}]


async def test_an_answer_to_an_unknown_request_gets_success_false(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire)
        response = {"answer": "yes", "wasFreeform": True}
        answer = await at.call("ui.handlePendingUserInput", requestId="nobody's", response=response)
    assert answer == {"success": False}
