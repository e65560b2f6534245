"""Plugins over the real wire: folders with skills and MCP servers for sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_servers import list_servers
from tests.support.server import JsonObject, Wire, running_server, scripted

pytestmark = pytest.mark.anyio

HI = scripted({"text": "Hi"}, {"text": "Hi again"})
# The lists of servers have the names of those that do not start, too.
SERVER = {"command": "false", "tools": ["*"]}


def write(folder: Path, name: str, manifest: JsonObject | None = None, *, place: str = "plugin.json") -> Path:
    """Write a plugin with one skill and one server, each named after it; returns its folder."""
    plugin = folder / name
    skill = plugin / "skills" / f"{name}-skill" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: d\n---\n\nDo it well.\n")
    (plugin / ".mcp.json").write_text(json.dumps({"mcpServers": {f"{name}-server": SERVER}}))
    if manifest is not None:
        (plugin / place).parent.mkdir(parents=True, exist_ok=True)
        (plugin / place).write_text(json.dumps(manifest))
    return plugin


async def plugin_parts(wire: Wire, session: str) -> dict[str, Any]:
    """Return the names of all plugins, and of the skills and servers of plugins."""
    at = {"sessionId": session}
    skills = (await wire.call("session.skills.list", at))["skills"]
    servers = (await list_servers(wire, at))["servers"]
    return {
        "plugins": [plugin["name"] for plugin in (await wire.call("session.plugins.list", at))["plugins"]],
        "skills": [(skill["name"], skill["pluginName"]) for skill in skills if skill["source"] == "plugin"],
        "servers": [
            (mcp_server["name"], mcp_server["sourcePlugin"])
            for mcp_server in servers
            if mcp_server["source"] == "plugin"
        ],
    }


def parts_of(*names: str) -> dict[str, Any]:
    return {
        "plugins": list(names),
        "skills": [(f"{name}-skill", name) for name in names],
        "servers": [(f"{name}-server", name) for name in names],
    }


async def test_plugins_come_from_the_session_the_command_line_and_the_application(tmp_path: Path) -> None:
    own, given, bundled = (write(tmp_path, name) for name in ("own", "given", "bundled"))
    async with running_server(tmp_path, args=("--plugin-dir", str(given))) as server:
        wire = server.wire
        assert await wire.call("plugins.builtin.set", {"paths": [str(bundled)]}) is None
        # The same folder twice is one plugin.
        session = await wire.create(HI, pluginDirectories=[str(own), str(given)])
        assert await plugin_parts(wire, session) == parts_of("own", "given", "bundled")
        assert await plugin_parts(wire, await wire.create(HI)) == parts_of("given", "bundled")
        assert await wire.call("plugins.builtin.set", {"paths": []}) is None
        assert await plugin_parts(wire, await wire.create(HI)) == parts_of("given")


@pytest.mark.parametrize("place", ["plugin.json", ".github/plugin.json", ".claude-plugin/plugin.json"])
async def test_a_manifest_has_the_name_of_a_plugin_and_the_paths_of_its_parts(tmp_path: Path, place: str) -> None:
    manifest = {"name": "named", "version": "1.2", "skills": ["./more"], "mcpServers": "servers.json"}
    plugin = write(tmp_path, "folder", manifest, place=place)
    (plugin / "servers.json").write_text(json.dumps({"mcpServers": {"else": SERVER}}))
    skill = plugin / "more" / "extra" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: d\n---\n\nDo more.\n")
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(HI, pluginDirectories=[str(plugin)])
        found = await plugin_parts(wire, session)
        listing = await wire.call("session.plugins.list", {"sessionId": session})
        events = await wire.prompt(session, "/extra")
    assert found["skills"] == [("folder-skill", "named"), ("extra", "named")]
    assert found["servers"] == [("folder-server", "named"), ("else", "named")]
    assert listing == {
        "plugins": [{"name": "named", "version": "1.2", "marketplace": "local", "enabled": True}],
    }
    (invoked,) = [event["data"] for event in events if event["type"] == "skill.invoked"]
    assert (invoked["pluginName"], invoked["pluginVersion"]) == ("named", "1.2")


async def test_a_plugin_with_a_single_skill_needs_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea" / "SKILL.md").write_text("---\ndescription: d\n---\n\nWarm the pot.\n")
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HI, pluginDirectories=["tea"], workingDirectory=str(tmp_path))
        found = await plugin_parts(server.wire, session)
    assert found == {"plugins": ["tea"], "skills": [("tea", "tea")], "servers": []}


async def test_invalid_parts_and_paths_outside_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "outside" / "s").mkdir(parents=True)
    (tmp_path / "outside" / "s" / "SKILL.md").write_text("---\ndescription: d\n---\n\nNo.\n")
    (tmp_path / "outside" / "mcp.json").write_text(json.dumps({"mcpServers": {"stray": SERVER}}))
    away = write(tmp_path, "away", {"skills": "../outside", "mcpServers": ["../outside/mcp.json", 7]})
    wrong = write(tmp_path, "wrong")
    (wrong / "plugin.json").write_text("{")
    async with running_server(tmp_path) as server:
        folders = [str(away), str(wrong), str(tmp_path / "nowhere")]
        session = await server.wire.create(HI, pluginDirectories=folders)
        assert await plugin_parts(server.wire, session) == parts_of("away", "wrong")


async def test_a_reload_finds_later_additions_to_a_plugin(tmp_path: Path) -> None:
    plugin = tmp_path / "late"
    plugin.mkdir()
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(HI, pluginDirectories=[str(plugin)])
        assert await plugin_parts(wire, session) == {"plugins": ["late"], "skills": [], "servers": []}
        write(tmp_path / "new", "late")
        (tmp_path / "new" / "late" / ".mcp.json").rename(plugin / ".mcp.json")
        (tmp_path / "new" / "late" / "skills").rename(plugin / "skills")
        assert await wire.call("session.plugins.reload", {"sessionId": session}) is None
        assert await plugin_parts(wire, session) == parts_of("late")


async def test_invalid_plugins_of_an_application_are_refused(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        for path, problem in (("here", "absolute"), (str(tmp_path / "nowhere"), "directory")):
            error = await server.wire.error_of("plugins.builtin.set", {"paths": [path]})
            assert problem in error["message"]
