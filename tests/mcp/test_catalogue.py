"""Where MCP servers come from, and what their settings mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.plugins import Plugin
from jumpseat.mcp.catalogue import MissingVariableError, ServerEntry, check_server, find_servers, resolve_config
from jumpseat.store.plugins import read_plugin


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


def test_of_two_servers_with_one_name_the_nearer_one_counts(tmp_path: Path) -> None:
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
    assert {name: (one.config.command, one.source) for name, one in servers.items() if one.config} == {
        "a": ("own", None),
        "b": ("project", "workspace"),
        "c": ("user", "user"),
        "d": ("file", "user"),
    }


def test_a_folder_that_is_not_trusted_brings_no_servers(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": command("project")}}))
    assert found(tmp_path, project=None) == {}


def test_a_plugin_knows_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "plugin.json").write_text(json.dumps({"mcpServers": {"p": command("${CLAUDE_PLUGIN_ROOT}/run")}}))
    entry = found(tmp_path, plugins=[read_plugin(tmp_path)])["p"]
    assert entry.config is not None
    assert (entry.source, entry.plugin) == ("plugin", tmp_path.name)
    assert resolve_config(entry, entry.config, {}).command == f"{tmp_path}/run"


def test_servers_are_switched_off_by_name(tmp_path: Path) -> None:
    servers = found(
        tmp_path,
        user={"a": command("x"), "b": {**command("x"), "disabled": True}},
        user_file={"c": command("x"), "d": command("x")},
        disabled=frozenset({"c"}),
        disabled_here=frozenset({"a"}),
    )
    assert [name for name, one in servers.items() if one.enabled] == ["d"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"mcpServers": 1}', '{"mcpServers": {}}'])
def test_a_file_that_is_wrong_costs_its_servers_only(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    assert list(found(tmp_path, project=tmp_path, user={"u": command("x")})) == ["u"]


def test_an_entry_that_is_wrong_says_what_is_wrong(tmp_path: Path) -> None:
    (entry,) = found(tmp_path, user={"u": {"command": 1}}).values()
    assert entry.config is None
    assert "command" in (entry.problem or "")


def test_variables_in_files_are_resolved_and_what_a_client_says_is_taken_literally() -> None:
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
