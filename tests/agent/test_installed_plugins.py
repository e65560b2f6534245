"""Installed plugins over the real wire: marketplaces, copies, and the programs that a person has to agree to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.mcp_servers import list_servers, status
from tests.support.server import Wire, running_server, scripted

pytestmark = pytest.mark.anyio

HI = scripted({"text": "Hi"})


def write(folder: Path, name: str, version: str = "1.0") -> Path:
    """Write a plugin with a skill, a command, an agent and an MCP server; returns its folder."""
    plugin = folder / name
    files = {
        "plugin.json": json.dumps({"name": name, "version": version}),
        f"skills/{name}-skill/SKILL.md": "---\ndescription: d\n---\n\nDo it well.\n",
        f"agents/{name}-agent.md": "---\ndescription: d\n---\n\nBe an agent.\n",
        "commands/brew.md": "---\ndescription: Brew tea\n---\n\nBrew tea now.\n",
        ".mcp.json": json.dumps({"mcpServers": {f"{name}-server": {"command": "false", "args": ["--now"]}}}),
    }
    for path, text in files.items():
        (plugin / path).parent.mkdir(parents=True, exist_ok=True)
        (plugin / path).write_text(text)
    return plugin


def write_marketplace(folder: Path, *names: str) -> Path:
    """Write a marketplace with plugins; returns its folder."""
    for name in names:
        write(folder, name)
    plugins = [{"name": name, "source": f"./{name}", "description": f"About {name}"} for name in names]
    (folder / "marketplace.json").write_text(json.dumps({"name": "shop", "plugins": plugins}))
    return folder


def command(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``jumpseat plugins`` with the home folder of a server."""
    environ = {**os.environ, "COPILOT_HOME": str(home), "HOME": str(home.parent)}
    argv = [sys.executable, "-m", "jumpseat", "plugins", *words]
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


async def parts(wire: Wire) -> dict[str, Any]:
    """Return the plugins, skills, commands and MCP servers of a new session."""
    at = {"sessionId": await wire.create(HI)}
    skills = (await wire.call("session.skills.list", at))["skills"]
    servers = (await list_servers(wire, at))["servers"]
    return {
        "plugins": [plugin["name"] for plugin in (await wire.call("session.plugins.list", at))["plugins"]],
        "skills": sorted(skill["name"] for skill in skills if skill["source"] == "plugin"),
        "servers": [server["name"] for server in servers if server["source"] == "plugin"],
    }


async def test_a_plugin_of_a_marketplace_is_copied_updated_disabled_and_removed(tmp_path: Path) -> None:
    shop = write_marketplace(tmp_path / "shop", "tea")
    async with running_server(tmp_path) as server:
        wire = server.wire
        assert await wire.call("plugins.marketplaces.add", {"source": str(shop)}) == {"name": "shop"}
        assert (
            "already registered"
            in (await wire.error_of("plugins.marketplaces.add", {"source": str(shop)}))["message"]
        )
        offered = (await wire.call("plugins.marketplaces.browse", {"name": "shop"}))["plugins"]
        assert [(entry["name"], entry["description"]) for entry in offered] == [("tea", "About tea")]
        done = await wire.call("plugins.install", {"source": "tea@shop"})
        plugin = {"name": "tea", "marketplace": "shop", "version": "1.0", "enabled": True}
        assert (done["plugin"], done["skillsInstalled"]) == (plugin, 1)
        assert "jumpseat plugins trust tea@shop" in done["postInstallMessage"]
        expected = {"plugins": ["tea"], "skills": ["tea-skill", "tea:brew"], "servers": ["tea-server"]}
        assert await parts(wire) == expected
        # The copy does not follow its source until it is updated.
        write(shop, "tea", "2.0")
        assert (await wire.call("plugins.list", {}))["plugins"] == [plugin]
        updated = await wire.call("plugins.update", {"name": "tea"})
        assert updated == {"previousVersion": "1.0", "newVersion": "2.0", "skillsInstalled": 1}
        await wire.call("plugins.disable", {"names": ["tea@shop", "unknown"]})
        assert (await parts(wire))["skills"] == []
        await wire.call("plugins.enable", {"names": ["tea"]})
        refused = await wire.call("plugins.marketplaces.remove", {"name": "shop"})
        assert refused == {"removed": False, "dependentPlugins": ["tea"]}
        assert await wire.call("plugins.marketplaces.remove", {"name": "shop", "force": True}) == {"removed": True}
        assert (await wire.call("plugins.list", {}))["plugins"] == []
        assert list((server.home / "installed-plugins" / "shop").iterdir()) == []


async def test_a_failed_update_keeps_the_installed_copy(tmp_path: Path) -> None:
    shop = write_marketplace(tmp_path / "shop", "tea", "milk")
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("plugins.marketplaces.add", {"source": str(shop)})
        for name in ("tea", "milk"):
            await wire.call("plugins.install", {"source": f"{name}@shop"})
        (shop / "tea" / "skills" / "secret").symlink_to("/etc/passwd")
        results = (await wire.call("plugins.updateAll", {}))["results"]
        assert [(result["name"], result["success"]) for result in results] == [("tea", False), ("milk", True)]
        assert "skills/secret" in results[0]["error"]
        assert "tea-skill" in (await parts(wire))["skills"]


async def test_plugins_come_from_folders_and_git_repositories(tmp_path: Path) -> None:
    direct = write(tmp_path / "direct", "cup")
    repository = write(tmp_path / "repositories", "pot")
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ):
        await anyio.run_process(["git", *words], cwd=repository)
    async with running_server(tmp_path) as server:
        wire = server.wire
        cup = await wire.call("plugins.install", {"source": "./cup", "workingDirectory": str(direct.parent)})
        assert (cup["plugin"]["marketplace"], len(cup["plugin"]["directSourceId"])) == ("", 64)
        assert "deprecated" in cup["deprecationWarning"]
        await wire.call("plugins.install", {"source": repository.as_uri()})
        assert (await parts(wire))["plugins"] == ["cup", "pot"]
        (copy,) = (server.home / "installed-plugins" / "_direct").glob("pot-*")
        assert not (copy / ".git").exists()
        of_cup = {"name": "cup", "directSourceId": cup["plugin"]["directSourceId"]}
        assert await wire.call("plugins.uninstall", of_cup) is None
        assert "not installed" in (await wire.error_of("plugins.uninstall", of_cup))["message"]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("nowhere/at/all", "does not exist"),
        ("ext::sh -c true", "does not exist"),
        ("http://127.0.0.1/x", "https, ssh or file"),
        ("tea@unknown", 'Marketplace "unknown" not found'),
        ("--upload-pack=x", "does not exist"),
        ("", "invalid source"),
    ],
)
async def test_a_source_that_is_none_is_refused(tmp_path: Path, source: str, problem: str) -> None:
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("plugins.install", {"source": source})
        assert problem in error["message"]


async def test_a_marketplace_offers_nothing_from_outside_of_its_folder(tmp_path: Path) -> None:
    write(tmp_path, "outside")
    shop = write_marketplace(tmp_path / "shop", "tea")
    entries = [{"name": "outside", "source": "../outside"}, {"name": "linked", "source": "./link"}]
    (shop / "marketplace.json").write_text(json.dumps({"name": "shop", "plugins": entries}))
    (shop / "link").symlink_to(tmp_path / "outside")
    async with running_server(tmp_path) as server:
        await server.wire.call("plugins.marketplaces.add", {"source": str(shop)})
        for name in ("outside", "linked"):
            error = await server.wire.error_of("plugins.install", {"source": f"{name}@shop"})
            assert "is not a folder in" in error["message"]


async def test_servers_of_a_plugin_start_only_after_a_person_has_agreed_to_this_version(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    plugin = write(tmp_path / "direct", "cup")
    server_config = {"command": "touch", "args": [str(marker)]}
    (plugin / ".mcp.json").write_text(json.dumps({"mcpServers": {"cup-server": server_config}}))
    agent = "---\ndescription: d\nmcp-servers:\n  of-agent:\n    command: touch\n---\n\nBe an agent.\n"
    (plugin / "agents" / "cup-agent.md").write_text(agent)

    async def servers_of_agent(wire: Wire) -> list[str]:
        at = {"sessionId": await wire.create(HI)}
        await wire.call("session.agent.select", {**at, "name": "cup-agent"})
        servers = (await list_servers(wire, at))["servers"]
        return [server["name"] for server in servers if server["name"] == "of-agent"]

    async def problem(wire: Wire) -> str:
        at = {"sessionId": await wire.create(HI)}
        await status(wire, at["sessionId"], "cup-server", "failed")
        (listed,) = (await list_servers(wire, at))["servers"]
        return listed.get("error") or ""

    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("plugins.install", {"source": str(plugin)})
        assert "jumpseat plugins trust cup" in await problem(wire)
        assert not marker.exists()
        shown = command(server.home, "trust", "cup")
        assert shown.returncode == 3
        assert f"touch {marker}" in shown.stdout
        assert "of-agent" in shown.stdout
        assert await servers_of_agent(wire) == []
        assert "jumpseat plugins trust cup" in await problem(wire)
        assert command(server.home, "trust", "cup", "--yes").returncode == 0
        assert "trust" not in await problem(wire)
        assert marker.exists()
        assert await servers_of_agent(wire) == ["of-agent"]
        # Another version has to be agreed to again, even if only a script changes.
        (plugin / "script.sh").write_text("changed\n")
        await wire.call("plugins.update", {"name": "cup"})
        assert "jumpseat plugins trust cup" in await problem(wire)


async def test_the_command_manages_plugins_of_a_running_server(tmp_path: Path) -> None:
    shop = write_marketplace(tmp_path / "shop", "tea")
    async with running_server(tmp_path) as server:
        home = server.home
        assert command(home, "marketplaces", "add", str(shop)).returncode == 0
        assert "has programs that do not run yet" in command(home, "install", "tea@shop").stdout
        assert (await parts(server.wire))["plugins"] == ["tea"]
        assert json.loads(command(home, "list", "--json").stdout) == [
            {"name": "tea@shop", "version": "1.0", "enabled": True, "runs": 1, "trusted": False}
        ]
        assert command(home, "disable", "tea").returncode == 0
        assert (await server.wire.call("plugins.list", {}))["plugins"][0]["enabled"] is False
        assert command(home, "remove", "tea").returncode == 0
        assert "not installed" in command(home, "update", "tea").stderr
        assert (await parts(server.wire))["plugins"] == []


async def test_a_client_shows_what_a_plugin_runs_and_sends_the_agreement_of_the_person(tmp_path: Path) -> None:
    source = write(tmp_path / "sources", "cup")
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("plugins.install", {"source": str(source)})
        session = await wire.create(HI)

        async def problem(since: int) -> str:
            event = await status(wire, session, "cup-server", "failed", since=since)
            return event["data"]["error"]

        assert "is not trusted to run programs" in await problem(0)
        shown = await wire.call("jumpseat.plugins.programs", {"name": "cup"})
        assert (shown["name"], shown["trusted"]) == ("cup", False)
        assert shown["programs"] == [{"kind": "MCP server", "name": "cup-server", "command": "false --now"}]

        # An agreement counts for the files that were shown only.
        (source / "extra.txt").write_text("new")
        await wire.call("plugins.update", {"name": "cup"})
        agreed = {"name": "cup", "digest": shown["digest"]}
        assert "has changed" in (await wire.error_of("jumpseat.plugins.trust", agreed))["message"]
        agreed["digest"] = (await wire.call("jumpseat.plugins.programs", {"name": "cup"}))["digest"]
        assert await wire.call("jumpseat.plugins.trust", agreed) == {"success": True}
        since = len(wire.messages)
        await wire.call("session.plugins.reload", {"sessionId": session})
        assert "is not trusted" not in await problem(since)

        await wire.call("jumpseat.plugins.trust", {**agreed, "trusted": False})
        assert (await wire.call("jumpseat.plugins.programs", {"name": "cup"}))["trusted"] is False
        unknown = await wire.error_of("jumpseat.plugins.programs", {"name": "pot"})
        assert 'Plugin "pot" is not installed' in unknown["message"]
