"""Selection of the MCP servers of a session that are stored on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.secrets import Secrets
from jumpseat.agent.settings import SessionSettings
from jumpseat.store.session.mcp_servers import split_servers
from jumpseat.store.session.options import FILE, read_options, write_options
from jumpseat.store.session.state_files import DiskFiles
from jumpseat_protocol.mcp_servers import McpServerConfig


@pytest.mark.parametrize(
    "config",
    [
        {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@2025.8.21", "/srv/my data"]},
        {
            "command": "/usr/bin/python3.11",
            "args": ["-m", "tickets", "--port=8080", "--root=/srv/2024"],
            "cwd": "/",
        },
        {"command": "uvx", "args": ["mcp-server-git==0.6.2", "--at", "http://localhost:9000/v1"], "timeout": 500},
        {"command": "python3", "args": ["serve", "--level", "3"], "env": {"TOKEN": "${TICKETS}", "EMPTY": ""}},
        {"type": "http", "url": "https://auth.example.com:8443/v1/mcp", "tools": ["*"], "excludeTools": ["drop"]},
        {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "oauthClientId": "us"},
    ],
)
def test_a_server_without_secrets_is_stored_unchanged(config: dict[str, Any]) -> None:
    kept, lost = split_servers({"one": McpServerConfig.model_validate(config)}, Secrets())
    assert (kept, lost) == ({"one": config}, {})


def test_a_server_that_is_too_long_to_be_examined_is_not_stored() -> None:
    long = {"command": "run", "args": ["a/" * 1000] * 40}
    servers = {
        name: McpServerConfig.model_validate(config)
        for name, config in (("long", long), ("next", {"url": "http://a/"}))
    }
    kept, lost = split_servers(servers, Secrets())
    assert (kept, lost) == ({}, {"long": "args", "next": "url"})


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        ({"command": "x", "env": {"MODE": "fast"}}, "env MODE"),
        ({"command": "x", "env": {"KEY": "${KEY:-hunter2}"}}, "env KEY"),
        ({"url": "https://h/mcp", "headers": {"X-Key": "abc", "A": "Bearer abc"}}, "headers X-Key, headers A"),
        ({"url": "https://ada:hunter2@h/mcp"}, "url"),
        ({"url": "https://h/mcp?key=abc"}, "url"),
        ({"url": "https://h/s/Zm9vYmFyYmF6cXV4MTIz/mcp"}, "url"),
        ({"command": "x", "args": ["--api-key", "abc"]}, "args"),
        ({"command": "x", "args": ["--api-key=abc"]}, "args"),
        ({"command": "x", "args": ["ghp_16C7e42F292c6912E7710c838347Ae178B4a"]}, "args"),
        ({"command": "x", "args": ["-u", "ada:hunter"]}, "args"),
        ({"command": "x", "args": ["-p", "hunter2"]}, "args"),
        ({"command": "x", "args": ["postgresql://ada:abc@localhost/db"]}, "args"),
        ({"command": "x", "args": ["--db=postgresql://ada:abc@localhost/db"]}, "args"),
        ({"command": "sh", "args": ["-c", "KEY=abc serve"]}, "args"),
        ({"command": "x", "args": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3"]}, "args"),
        ({"command": "KEY=hunter2 serve"}, "command"),
        ({"command": "x", "args": ["correcthorse"]}, "args"),
    ],
)
def test_possible_secrets_are_named_and_not_stored(config: dict[str, Any], missing: str) -> None:
    secrets = Secrets()
    secrets.add(["correcthorse"])
    kept, lost = split_servers({"one": McpServerConfig.model_validate(config)}, secrets)
    assert (kept, lost) == ({}, {"one": missing})


def test_unknown_fields_are_not_stored() -> None:
    config = McpServerConfig.model_validate({"command": "x", "auth": {"clientSecret": "abc"}})
    assert split_servers({"one": config}, Secrets()) == ({"one": {"command": "x"}}, {})


def test_an_invalid_stored_server_affects_nothing_else(tmp_path: Path) -> None:
    settings = SessionSettings.of(
        tmp_path,
        mcp_servers={"good": {"command": "x"}, "bad": {"command": "y"}},
        disabled_mcp_servers=["good"],
        plugin_directories=["/plugins"],
    )
    write_options(DiskFiles(tmp_path), settings)
    file = tmp_path / FILE
    file.write_text(file.read_text().replace('"command":"y"', '"command":""'))
    options, _ = read_options(DiskFiles(tmp_path))
    assert options.mcp_servers == {"good": {"command": "x"}}
    assert (options.disabled_mcp_servers, options.plugin_directories) == (["good"], ["/plugins"])
