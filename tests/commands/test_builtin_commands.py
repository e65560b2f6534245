"""The built-in slash commands over the real wire: what they change, show and offer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumpseat.commands.running import BUILTINS
from tests.support.mcp_servers import status
from tests.support.server import JsonObject, RunningServer, running_server, scripted

pytestmark = pytest.mark.anyio

HELLO = scripted({"text": "Hello!"}, {"text": "Hello again!"})


class Scene:
    """A session whose commands are invoked."""

    def __init__(self, server: RunningServer, session: str) -> None:
        self.server = server
        self.session = session

    async def call(self, method: str, **params: Any) -> Any:
        return await self.server.wire.call(method, {"sessionId": self.session, **params})

    async def invoke(self, name: str, text: str = "") -> JsonObject:
        return await self.call("session.commands.invoke", name=name, input=text)

    async def text(self, name: str, text: str = "") -> str:
        result = await self.invoke(name, text)
        assert result["kind"] == "text"
        return result["text"]

    async def problem(self, name: str, text: str = "") -> str:
        params = {"sessionId": self.session, "name": name, "input": text}
        return (await self.server.wire.error_of("session.commands.invoke", params))["message"]


async def scene_in(server: RunningServer, **params: Any) -> Scene:
    return Scene(server, await server.wire.create(HELLO, **params))


def test_names_and_aliases_are_different() -> None:
    names = [name for builtin in BUILTINS for name in builtin.names]
    assert len(set(names)) == len(names)


async def test_the_list_tells_how_a_command_is_called(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        scene = await scene_in(server, commands=[{"name": "loop"}])
        listed = {one["name"]: one for one in (await scene.call("session.commands.list"))["commands"]}
        assert listed["autopilot"]["aliases"] == ["goal"]
        assert [choice["name"] for choice in listed["autopilot"]["input"]["choices"]] == ["off", "clear"]
        assert listed["add-dir"]["input"] == {"hint": "path", "required": True, "completion": "directory"}
        assert "input" not in listed["env"]
        # An alias that is the name of a client's command means that command.
        assert "aliases" not in listed["every"]
        assert await scene.problem("rename") == "expected /rename name"
        assert (await scene.invoke("GOAL", "off"))["message"] == "Already in interactive mode."


async def test_commands_show_and_change_the_session(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    async with running_server(tmp_path) as server:
        scene = await scene_in(server, workingDirectory=str(tmp_path))
        assert await scene.text("rename", "Spring cleaning") == "The session is named Spring cleaning."
        assert (await scene.call("session.name.get"))["name"] == "Spring cleaning"
        shown = await scene.text("sessions")
        assert f"id: {scene.session}" in shown
        assert "name: Spring cleaning" in shown
        assert await scene.text("cwd") == str(tmp_path)
        assert await scene.text("cd", "inner") == str(tmp_path / "inner")
        snapshot = await scene.call("session.metadata.snapshot")
        assert snapshot["workingDirectory"] == str(tmp_path / "inner")
        assert await scene.problem("cwd", "nowhere") == "'nowhere' is not a directory"
        environment = await scene.invoke("env")
        assert environment["markdown"] is True
        assert f"## Folders\n\n- {tmp_path / 'inner'}" in environment["text"]
        assert "- grep" in environment["text"]
        assert await scene.text("plugin") == "There are no plugins."


async def test_commands_show_and_change_what_needs_approval(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with running_server(tmp_path) as server:
        scene = await scene_in(server)
        offered = await scene.invoke("permissions")
        assert (offered["kind"], offered["command"]) == ("select-subcommand", "permissions")
        assert offered["title"] == "Permissions: manual, 0 approvals"
        assert [option["name"] for option in offered["options"]] == ["manual", "assisted", "allow-all"]
        await scene.text("permissions", "allow-all")
        assert await scene.call("session.permissions.getMode") == {"mode": "allow-all"}
        assert await scene.text("allow-all", "show") == "All calls are approved."
        assert await scene.text("allow-all", "off") == "Calls need approval."
        assert await scene.problem("permissions", "none") == "expected manual, assisted or allow-all, got 'none'"
        assert await scene.problem("allow-all", "maybe") == "expected on, off or show, got 'maybe'"
        await scene.text("add-dir", "other")
        assert (await scene.text("list-dirs")).splitlines()[-1] == str(tmp_path / "other")
        assert await scene.text("reset-allowed-tools") == "The approvals of this session were removed."


async def test_commands_show_and_change_skills_and_servers(tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "tea" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: Make tea.\n---\n\nWarm the pot.\n")
    servers: JsonObject = {"gone": {"command": "no-such-program-here", "args": []}}
    async with running_server(tmp_path) as server:
        scene = await scene_in(server, skillDirectories=[str(tmp_path / "skills")], mcpServers=servers)
        offered = await scene.invoke("skills")
        assert {"name": "disable tea", "description": "Make tea."} in offered["options"]
        assert "tea (off): Make tea." in await scene.text("skills", "disable tea")
        assert "tea: Make tea." in await scene.text("skills", "enable tea")
        assert await scene.problem("skills", "enable coffee") == "unknown skill 'coffee'"
        assert (await scene.problem("skills", "stir")).startswith("expected list, reload")
        await status(server.wire, scene.session, "gone", "failed")
        offered = await scene.invoke("mcp")
        assert "enable gone" in [option["name"] for option in offered["options"]]
        assert "gone: " in await scene.text("mcp", "list")
        assert "github-mcp-server: disabled" in await scene.text("mcp", "list")
        assert "github-mcp-server: disabled" not in await scene.text("mcp", "enable github-mcp-server")
        assert await scene.problem("mcp", "enable other") == "unknown MCP server 'other'"


async def test_the_models_of_the_session_are_offered(tmp_path: Path) -> None:
    providers = [{"name": "stage", **HELLO}]
    models = [{"id": one, "provider": "stage"} for one in ("first", "second")]
    async with running_server(tmp_path) as server:
        session = await server.wire.call(
            "session.create", {"providers": providers, "models": models, "model": "stage/first"}
        )
        scene = Scene(server, session["sessionId"])
        offered = await scene.invoke("models")
        assert (offered["kind"], offered["title"]) == ("select-subcommand", "The model is stage/first")
        assert "stage/second" in [option["name"] for option in offered["options"]]
        assert "stage/second" in await scene.text("model", "stage/second")


async def test_some_commands_are_prompts_and_a_skill_can_take_their_place(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        scene = await scene_in(server)
        for name, words, expected in (
            ("init", "name the owner", "AGENTS.md"),
            ("review", "the last release", "Review the last release."),
            ("fleet", "test it", "Request: test it"),
        ):
            result = await scene.invoke(name, words)
            assert result["kind"] == "agent-prompt"
            assert expected in result["prompt"]
            assert words in result["displayPrompt"]
        assert "not committed" in (await scene.invoke("review"))["prompt"]

        skill = tmp_path / "skills" / "review" / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("---\ndescription: Our own.\n---\n\nLook closely.\n")
        other = await scene_in(server, skillDirectories=[str(tmp_path / "skills")])
        listed = {one["name"]: one["kind"] for one in (await other.call("session.commands.list"))["commands"]}
        assert (listed["review"], listed["init"]) == ("skill", "builtin")
        assert (await other.invoke("review", "this"))["prompt"] == "/review this"


async def test_a_choice_is_shown_as_text_to_clients_that_cannot_offer_it(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        scene = await scene_in(server)
        await scene.call("session.commands.enqueue", command="/permissions")
        shown = await server.wire.event("session.info", infoType="command")
        assert "/permissions allow-all  Approve all calls" in shown["data"]["message"]
