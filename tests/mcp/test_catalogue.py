"""Sources of MCP servers, and variables in their settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.skills import Plugin
from jumpseat.mcp.catalogue import (
    MOST_SERVERS,
    MissingVariableError,
    ServerEntry,
    check_server,
    find_servers,
    resolve_config,
)
from jumpseat.store.plugins.manifests import read_plugin


def found(tmp_path: Path, **given: Any) -> dict[str, ServerEntry]:
    everything: dict[str, Any] = {
        "user": {},
        "user_file": {},
        "disabled": frozenset[str](),
        "project": None,
        "plugins": list[Plugin](),
    }
    return find_servers(given.pop("own", {}), **(everything | given))


def command(name: str) -> dict[str, Any]:
    return {"command": name}


def test_of_servers_with_the_same_name_the_nearest_is_used(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"a": command("project"), "b": command("project")}})
    )
    servers = found(
        tmp_path,
        own={"a": check_server("a", command("own"))},
        project=tmp_path,
        user={"b": command("user"), "c": command("user")},
        user_file={"c": command("file"), "d": command("file")},
    )
    assert {
        name: (mcp_server.config.command, mcp_server.source)
        for name, mcp_server in servers.items()
        if mcp_server.config
    } == {
        "a": ("own", None),
        "b": ("project", "workspace"),
        "c": ("user", "user"),
        "d": ("file", "user"),
    }


def test_servers_of_untrusted_folders_are_ignored(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": command("project")}}))
    assert found(tmp_path, project=None) == {}


def test_of_a_file_with_too_many_servers_the_first_are_used(tmp_path: Path) -> None:
    many = {f"s{number}": command("project") for number in range(MOST_SERVERS + 1)}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": many}))
    assert [*found(tmp_path, project=tmp_path)] == [*many][:MOST_SERVERS]


def test_a_plugin_knows_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "plugin.json").write_text(json.dumps({"mcpServers": {"p": command("${CLAUDE_PLUGIN_ROOT}/run")}}))
    entry = found(tmp_path, plugins=[read_plugin(tmp_path)])["p"]
    assert entry.config is not None
    assert (entry.source, entry.plugin) == ("plugin", tmp_path.name)
    assert resolve_config(entry, entry.config, {}).command == f"{tmp_path}/run"


def test_servers_are_disabled_by_name_or_by_their_configuration(tmp_path: Path) -> None:
    servers = found(
        tmp_path,
        own={"own": check_server("own", {**command("x"), "disabled": True})},
        user={"a": command("x"), "b": {**command("x"), "disabled": True}},
        user_file={"c": command("x"), "d": command("x")},
        disabled=frozenset({"c"}),
        disabled_here=frozenset({"a"}),
    )
    assert [name for name, mcp_server in servers.items() if mcp_server.enabled] == ["d"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"mcpServers": 1}', '{"mcpServers": {}}'])
def test_an_invalid_file_affects_its_servers_only(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    assert list(found(tmp_path, project=tmp_path, user={"u": command("x")})) == ["u"]


def test_an_invalid_entry_has_a_problem(tmp_path: Path) -> None:
    (entry,) = found(tmp_path, user={"u": {"command": 1}}).values()
    assert entry.config is None
    assert "command" in (entry.problem or "")


def test_variables_are_replaced_in_files_but_not_in_values_of_clients() -> None:
    raw = {"command": "x", "args": ["${A}", "${B:-b}"], "env": {"K": "${A}"}}
    config = check_server("s", raw)
    from_file, from_client = ServerEntry("s", config, "user"), ServerEntry("s", config, literal=True)
    file = resolve_config(from_file, config, {"A": "a"})
    assert (file.args, file.env) == (["a", "b"], {"K": "a"})
    client = resolve_config(from_client, config, {"A": "a"})
    assert (client.args, client.env) == (["${A}", "${B:-b}"], {"K": "${A}"})
    with pytest.raises(MissingVariableError, match="A is not set"):
        resolve_config(from_file, config, {})


def test_in_indirect_mode_env_holds_names_of_variables() -> None:
    config = check_server("s", {"command": "x", "env": {"K": "A"}})
    entry = ServerEntry("s", config, literal=True)
    assert resolve_config(entry, config, {"A": "a"}, indirect=True).env == {"K": "a"}
    with pytest.raises(MissingVariableError, match="A is not set"):
        resolve_config(entry, config, {}, indirect=True)
