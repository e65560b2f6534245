"""Files of adapters and tools that are added, changed, broken, mended and removed while a server runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumpseat.tools.builtin import BUILTIN_NAMES
from tests.support.model_server import ModelServer
from tests.support.provided import says
from tests.support.server import JsonObject, RunningServer, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

SAY = 'cmds = [["echo", "${text}"]]\nparameters.text.type = "string"\n'
"""A tool that needs no more."""


def folder_of(place: str, tmp_path: Path, kind: str) -> Path:
    """Return the folder of declarations of the user or of the project, and create it."""
    folder = tmp_path / "home" / kind if place == "home" else tmp_path / "project" / ".jumpseat" / kind
    folder.mkdir(parents=True)
    (tmp_path / "project").mkdir(exist_ok=True)
    return folder


def trusting(tmp_path: Path) -> str:
    return f'trusted_folders = ["{tmp_path / "project"}"]\n[retry]\nattempts = 1\n'


# --- tools --------------------------------------------------------------------------------------------------------


async def tools_at_next_prompt(wire: Wire) -> list[str]:
    """Return the declared tools that the open session ``s`` has during its next prompt."""
    await wire.call("session.sendAndWait", {"sessionId": "s", "prompt": "hi"})
    tools = (await wire.call("session.tools.getCurrentMetadata", {"sessionId": "s"}))["tools"]
    return [tool["name"] for tool in tools if tool["name"] not in BUILTIN_NAMES]


async def open_session(server: RunningServer, tmp_path: Path, **options: Any) -> Wire:
    turns: list[JsonObject] = [{"text": "ok"}] * 9
    options = {"provider": scripted(*turns), **options}
    await server.wire.call(
        "session.create", {"sessionId": "s", "workingDirectory": str(tmp_path / "project"), **options}
    )
    return server.wire


@pytest.mark.parametrize("place", ["home", "project"])
async def test_an_open_session_has_the_tools_of_the_files_as_they_are_at_each_prompt(
    tmp_path: Path, place: str
) -> None:
    folder = folder_of(place, tmp_path, "tools")
    async with running_server(tmp_path, config=trusting(tmp_path)) as server:
        wire = await open_session(server, tmp_path)
        assert await tools_at_next_prompt(wire) == []
        (folder / "say.toml").write_text(SAY)
        assert await tools_at_next_prompt(wire) == ["say"]
        (folder / "say.toml").write_text(f'name = "tell"\n{SAY}')
        assert await tools_at_next_prompt(wire) == ["tell"]
        (folder / "say.toml").write_text(f"cmdz = 1\n{SAY}")
        assert await tools_at_next_prompt(wire) == []
        listed = await wire.call("jumpseat.tools.list", {"workingDirectory": str(tmp_path / "project")})
        assert "say.toml:1: cmdz: unknown" in listed["tools"][0]["problem"]
        (folder / "say.toml").write_text(SAY)
        assert await tools_at_next_prompt(wire) == ["say"]
        (folder / "say.toml").rename(folder / "said.toml")
        assert await tools_at_next_prompt(wire) == ["said"]
        (folder / "said.toml").unlink()
        assert await tools_at_next_prompt(wire) == []


@pytest.mark.parametrize("place", ["home", "project"])
async def test_a_changed_function_of_a_tool_is_called_in_open_sessions(tmp_path: Path, place: str) -> None:
    file = folder_of(place, tmp_path, "tools") / "count.py"
    turns = [turn for _ in range(3) for turn in (calls("count"), {"text": "ok"})]
    async with running_server(tmp_path, config=trusting(tmp_path)) as server:
        wire = await open_session(server, tmp_path, provider=scripted(*turns, {"text": "ok"}))
        await wire.call("session.permissions.setApproveAll", {"sessionId": "s", "enabled": True})
        results: list[str] = []
        for code in ("lambda args: 'one'", "lambda args: 'two'", "lambda args: 1 / 0"):
            # ``enabled`` is a function, whose results are kept for a while.
            file.write_text(f"TOOL = {{'cmds': [{code}], 'enabled': lambda: True}}\n")
            since = len(wire.messages)
            await wire.call("session.sendAndWait", {"sessionId": "s", "prompt": "go"})
            done = (await wire.event("tool.execution_complete", session="s", since=since))["data"]
            results.append(done["result"]["content"] if done["success"] else "failed")
        file.write_text("TOOL = {'cmds': [['true']], 'enabled': lambda: False}\n")
        assert await tools_at_next_prompt(wire) == []
    assert results == ["one", "two", "failed"]


async def test_a_tool_that_is_registered_again_applies_to_open_sessions(tmp_path: Path) -> None:
    folder_of("home", tmp_path, "tools")
    async with running_server(tmp_path) as server:
        wire = await open_session(server, tmp_path)
        for description in ("one", "two"):
            declaration = {"name": "say", "description": description, "cmds": [["true"]]}
            await wire.call("jumpseat.tools.register", {"declaration": declaration})
            assert await tools_at_next_prompt(wire) == ["say"]
            tools = (await wire.call("session.tools.getCurrentMetadata", {"sessionId": "s"}))["tools"]
            assert [tool["description"] for tool in tools if tool["name"] == "say"] == [description]


# --- adapters -----------------------------------------------------------------------------------------------------


def adapter(provider: ModelServer, team: str) -> str:
    return (
        f'extends = "openai_compatible"\nenv.base_url = "{provider.url}/v1"\n'
        f'headers = {{X-Team = "{team}"}}\nschema.model = {{default = "m", choices = ["m"]}}\n'
    )


async def error_of_prompt(wire: Wire, session: str = "s") -> str:
    """Send a prompt to an open session and return its error, or nothing if it is answered."""
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
    await wire.event("session.idle", session=session, since=since)
    errors = [event for event in wire.events(session, since=since) if event["type"] == "session.error"]
    return errors[0]["data"]["message"] if errors else ""


@pytest.mark.parametrize("place", ["home", "project"])
async def test_an_open_session_calls_its_adapter_as_its_file_is_at_each_prompt(tmp_path: Path, place: str) -> None:
    folder = folder_of(place, tmp_path, "adapters")
    file = folder / "late.toml"
    cwd = str(tmp_path / "project")
    async with (
        ModelServer(*[says("ok")] * 9) as provider,
        running_server(tmp_path, config=trusting(tmp_path)) as server,
    ):
        wire = server.wire

        async def listed() -> list[str]:
            adapters = (await wire.call("jumpseat.adapters.list", {"cwd": cwd}))["adapters"]
            return [item.get("problem", "valid") for item in adapters if item["name"] == "late"]

        assert await listed() == []
        # A server that has already looked for its adapters sees a new one.
        file.write_text(adapter(provider, "red"))
        assert await listed() == ["valid"]
        await open_session(server, tmp_path, provider=None, model="late/m")
        assert await error_of_prompt(wire) == ""
        file.write_text(adapter(provider, "blue"))
        assert await error_of_prompt(wire) == ""
        file.write_text("extends = ")
        assert "late.toml: not valid TOML" in await error_of_prompt(wire)
        assert "not valid TOML" in (await listed())[0]
        file.write_text(adapter(provider, "green"))
        assert await error_of_prompt(wire) == ""
        file.unlink()
        assert "late" in await error_of_prompt(wire)
        assert await listed() == []
        file.write_text(adapter(provider, "white"))
        assert await error_of_prompt(wire) == ""

    assert [request.headers["x-team"] for request in provider.requests] == ["red", "blue", "green", "white"]


async def test_the_models_of_a_new_adapter_file_are_listed_and_chosen_by_name_alone(tmp_path: Path) -> None:
    folder = folder_of("home", tmp_path, "adapters")
    async with ModelServer(says("ok")) as provider, running_server(tmp_path) as server:
        wire = server.wire
        (folder / "first.toml").write_text(adapter(provider, "red"))
        assert [model["id"] for model in (await wire.call("models.list", {}))["models"]] == ["first/m"]
        (folder / "second.toml").write_text(adapter(provider, "blue").replace('"m"', '"n"'))
        assert [model["id"] for model in (await wire.call("models.list", {}))["models"]] == ["first/m", "second/n"]
        await open_session(server, tmp_path, provider=None, model="n")
        assert await error_of_prompt(wire) == ""
        (folder / "first.toml").unlink()
        assert [model["id"] for model in (await wire.call("models.list", {}))["models"]] == ["second/n"]

    assert provider.requests[0].headers["x-team"] == "blue"


@pytest.mark.parametrize("place", ["home", "project"])
async def test_a_changed_handler_of_an_adapter_is_called_in_open_sessions(tmp_path: Path, place: str) -> None:
    file = folder_of(place, tmp_path, "adapters") / "late.py"
    async with (
        ModelServer(*[says("ok")] * 9) as provider,
        running_server(tmp_path, config=trusting(tmp_path)) as server,
    ):
        for seed in (1, 2):
            file.write_text(
                f"ADAPTER = {{'extends': 'openai_compatible', 'env': {{'base_url': '{provider.url}'}},\n"
                f"    'handlers': {{'build_parameters': lambda self, params: {{'seed': {seed}}}}}}}\n"
            )
            if seed == 1:
                await open_session(server, tmp_path, provider=None, model="late/m")
            assert await error_of_prompt(server.wire) == ""
        file.write_text("1 / 0\n")
        assert "cannot be run: ZeroDivisionError" in await error_of_prompt(server.wire)

    assert [request.json["seed"] for request in provider.requests] == [1, 2]


async def test_an_adapter_that_is_registered_again_applies_to_open_sessions(tmp_path: Path) -> None:
    folder_of("home", tmp_path, "adapters")
    async with ModelServer(*[says("ok")] * 2) as provider, running_server(tmp_path) as server:
        for team in ("red", "blue"):
            declaration = {
                "name": "theirs",
                "extends": "openai_compatible",
                "env": {"base_url": f"{provider.url}/v1"},
                "headers": {"X-Team": team},
            }
            await server.wire.call("jumpseat.adapters.register", {"declaration": declaration})
            if team == "red":
                await open_session(server, tmp_path, provider=None, model="theirs/m")
            assert await error_of_prompt(server.wire) == ""

    assert [request.headers["x-team"] for request in provider.requests] == ["red", "blue"]


# --- the configuration --------------------------------------------------------------------------------------------


async def test_the_log_says_that_a_changed_configuration_needs_a_restart(tmp_path: Path) -> None:
    file = folder_of("home", tmp_path, "tools") / "say.toml"
    file.write_text(SAY)
    async with running_server(tmp_path) as server:
        wire = await open_session(server, tmp_path)
        assert await tools_at_next_prompt(wire) == ["say"]
        (tmp_path / "home" / "config.toml").write_text(f"[tools.more]\n{SAY}")
        for _ in range(2):
            assert await tools_at_next_prompt(wire) == ["say"]
        log = server.stderr
    assert log.count("config.toml has changed: restart the server to apply its tables [tools.NAME]") == 1
