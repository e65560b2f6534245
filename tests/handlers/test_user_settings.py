"""``user.settings.*`` over the real wire: reading, changing and using settings, and refusing invalid ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Wire, running_server, scripted

pytestmark = pytest.mark.anyio

HELLO = scripted({"text": "Hello!"})
UNSET: dict[str, Any] = {
    "model": {"value": None, "default": None, "isDefault": True},
    "reasoningEffort": {"value": None, "default": None, "isDefault": True},
    "skipCustomInstructions": {"value": False, "default": False, "isDefault": True},
    "allowAllMcpServerInstructions": {"value": False, "default": False, "isDefault": True},
    "enableHostGitOperations": {"value": True, "default": True, "isDefault": True},
}


async def settings(wire: Wire) -> dict[str, Any]:
    return (await wire.call("user.settings.get"))["settings"]


async def change(wire: Wire, **changes: Any) -> None:
    assert await wire.call("user.settings.set", {"settings": changes}) == {"shadowedKeys": []}


async def test_a_setting_is_stored_and_can_be_unset(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        assert await settings(server.wire) == UNSET
        await change(server.wire, skipCustomInstructions=False, model="mine")
        file = server.home / "settings.json"
        assert json.loads(file.read_text()) == {"skipCustomInstructions": False, "model": "mine"}
    async with running_server(tmp_path) as server:
        # A setting with the default value counts as set.
        changed = {
            "skipCustomInstructions": {"value": False, "default": False, "isDefault": False},
            "model": {"value": "mine", "default": None, "isDefault": False},
        }
        assert await settings(server.wire) == UNSET | changed
        await change(server.wire, skipCustomInstructions=None, model=None, reasoningEffort=None)
        assert await settings(server.wire) == UNSET
        assert json.loads(file.read_text()) == {}


async def test_settings_are_only_the_defaults_of_new_sessions(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Speak Latin.")
    script = scripted({"text": "ok", "expect": {"system": "/^(?!.*Speak Latin)/s"}})
    async with running_server(tmp_path) as server:
        wire = server.wire
        old = await wire.create(HELLO)
        await change(
            wire, skipCustomInstructions=True, enableHostGitOperations=False, model="mine", reasoningEffort="low"
        )

        async def model(session: str) -> Any:
            return await wire.call("session.model.getCurrent", {"sessionId": session})

        new = await wire.create(script)
        other = await wire.create(HELLO, model="theirs", reasoningEffort="high")
        assert await model(new) == {"modelId": "mine", "reasoningEffort": "low"}
        assert await model(other) == {"modelId": "theirs", "reasoningEffort": "high"}
        assert await model(old) == {"modelId": "scripted"}
        sources = {
            session: (await wire.call("session.instructions.getSources", {"sessionId": session}))["sources"]
            for session in (old, new)
        }
        assert [bool(found) for found in sources.values()] == [True, False]
        off = await wire.error_of("session.workspaces.diff", {"sessionId": new, "mode": "unstaged"})
        assert off["message"] == "git is disabled for this session"


async def test_changes_of_other_processes_apply_after_a_reload(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        assert await settings(server.wire) == UNSET
        file = server.home / "settings.json"
        file.write_text('{"model": "theirs", "skipCustomInstructions": "yes", "theme": {"dark": true}}')
        assert await settings(server.wire) == UNSET
        assert await server.wire.call("user.settings.reload") is None
        found = await settings(server.wire)
        # A value of the wrong type is ignored.
        assert found == UNSET | {"model": {"value": "theirs", "default": None, "isDefault": False}}
        await change(server.wire, model="mine")
        assert json.loads(file.read_text())["theme"] == {"dark": True}


async def test_an_invalid_setting_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        for wrong, why in (
            ({"colour": "red"}, "unknown setting 'colour'"),
            ({"skipCustomInstructions": "yes"}, "a boolean"),
            ({"skipCustomInstructions": 1}, "a boolean"),
            ({"model": True}, "a non-empty string"),
            ({"model": ""}, "a non-empty string"),
        ):
            error = await server.wire.error_of(
                "user.settings.set", {"settings": {"reasoningEffort": "low", **wrong}}
            )
            assert (error["code"], why in error["message"]) == (-32003, True), error
        bad: list[Any] = [{}, {"settings": []}, {"settings": None}]
        for params in bad:
            assert (await server.wire.error_of("user.settings.set", params))["code"] == -32602
        assert await settings(server.wire) == UNSET
        assert not (server.home / "settings.json").exists()


@pytest.mark.parametrize("text", ["{broken", "[1, 2]"])
async def test_an_invalid_file_is_reported_not_overwritten_and_does_not_stop_sessions(
    tmp_path: Path, text: str
) -> None:
    async with running_server(tmp_path) as server:
        file = server.home / "settings.json"
        file.write_text(text)
        assert "settings.json is not" in (await server.wire.error_of("user.settings.get"))["message"]
        error = await server.wire.error_of("user.settings.set", {"settings": {"model": "mine"}})
        assert "settings.json is not" in error["message"]
        assert file.read_text() == text
        await server.wire.create(HELLO)
