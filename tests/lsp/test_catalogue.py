"""The language servers of a session, from all sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jumpseat.config import LanguageServerConfig
from jumpseat.lsp.catalogue import Found, Sources, find_servers
from jumpseat.store.plugins.manifests import read_plugin

PROGRAMS = {"own", "gopls", "project-gopls", "clangd"}


def servers(home: Path, project: Path | None, plugin: Path | None = None, **configured: Any) -> Found:
    program = home / "program"
    program.touch(mode=0o700)
    return find_servers(
        Sources(
            {name: LanguageServerConfig.model_validate(table) for name, table in configured.items()},
            home,
            project,
            [] if plugin is None else [read_plugin(plugin)],
            lambda name: str(program) if name in PROGRAMS else None,
            {"PLACE": "here"},
        )
    )


def write(path: Path, **found: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"lspServers": found}))


def test_well_known_servers_that_are_installed_need_no_configuration(tmp_path: Path) -> None:
    found = servers(tmp_path, None)
    assert [server.name for server in found.servers] == ["gopls", "clangd"]
    assert (go := found.of(Path("/p/a.GO"))) is not None
    assert (go.name, found.of(Path("/p/a.py"))) == ("gopls", None)
    assert [server.name for server in servers(tmp_path, None, gopls={"disabled": True}).servers] == ["clangd"]


def test_a_project_has_precedence_over_the_user_and_plugins(tmp_path: Path) -> None:
    project, plugin = tmp_path / "project", tmp_path / "plugin"
    write(project / ".github" / "lsp.json", gopls={"command": "project-gopls", "args": ["${PLACE}", "${NO:-a}"]})
    write(
        tmp_path / "lsp-config.json", gopls={"command": "own"}, own={"command": "own", "fileExtensions": {"a": "a"}}
    )
    write(plugin / "lsp.json", own={"command": "no"}, more={"command": "own", "extensionToLanguage": {".b": "b"}})
    found = servers(tmp_path, project, plugin, gopls={"settings": {"x": 1}})
    assert [server.name for server in found.servers] == ["gopls", "own", "more", "clangd"]
    assert found.servers[0].config.args == ["here", "a"]
    assert found.servers[0].config.extensions == {".go": "go"}
    assert (own := found.of(Path("x.a"))) is not None
    assert own.name == "own"
    untrusted = servers(tmp_path, None, plugin, gopls={"settings": {"x": 1}})
    assert untrusted.servers[0].config.settings == {"x": 1}
    assert untrusted.servers[0].config.args == []


def test_what_is_wrong_with_a_server_concerns_that_server_only(tmp_path: Path) -> None:
    write(
        tmp_path / "lsp-config.json",
        missing={"command": "missing", "fileExtensions": {".m": "m"}},
        relative={"command": "./own", "fileExtensions": {".r": "r"}},
        none={"command": "own"},
        wrong={"command": 3},
        own={"command": "own", "fileExtensions": {".o": "o"}, "requestTimeoutMs": 500, "unknown": 1},
    )
    found = servers(tmp_path, None)
    assert [server.name for server in found.servers] == ["own", "gopls", "clangd"]
    assert found.servers[0].config.timeout_s == 0.5
    assert sorted(problem.rpartition(": ")[2] for problem in found.problems) == [
        "expected a command and the extensions of its files",
        "expected a string, got an integer",
        "expected the name of a program or an absolute path, got './own'",
        "program 'missing' not found",
    ]
