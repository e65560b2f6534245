"""Five faults that an operator finds from the log alone, at the default level or at ``info``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.model_server import ModelServer, json_reply
from tests.support.provided import at
from tests.support.server import calls, running_server, scripted

pytestmark = pytest.mark.anyio

NO_RETRY = "[retry]\nattempts = 1\n"


async def test_the_model_is_down(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=NO_RETRY) as server:
        session = await server.wire.create({"type": "openai", "baseUrl": "http://127.0.0.1:9/v1"}, model="m")
        await server.wire.prompt(session)

    (line,) = [line for line in server.stderr.splitlines() if "model call failed" in line]
    assert "provider=openai model=m" in line
    assert "127.0.0.1:9" in line
    assert "refused" in line


async def test_the_key_is_wrong(tmp_path: Path) -> None:
    refusal = json_reply({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, status=401)
    async with ModelServer(refusal) as provider, running_server(tmp_path) as server:
        await server.wire.prompt(await server.wire.create(at(provider), model="m"))

    (line,) = [line for line in server.stderr.splitlines() if "model call failed" in line]
    assert "provider=openai model=m status=401" in line
    assert "error=authentication code=invalid_api_key" in line


async def test_a_tool_is_denied(tmp_path: Path) -> None:
    config = '[permissions]\ndeny = ["shell(rm)"]\n'
    async with running_server(tmp_path, args=("--log-level", "info"), config=config) as server:
        turns = (calls("bash", command="rm -rf build"), calls("bash", "call-2", command="make"), {"text": "ok"})
        await server.wire.prompt(await server.wire.create(scripted(*turns)))

    lines = [line for line in server.stderr.splitlines() if "tool call refused" in line]
    assert "tool=bash call=call-1 kind=shell decision=denied by=rule" in lines[0]
    assert "tool=bash call=call-2 kind=shell decision=denied by=nobody" in lines[1]


async def test_an_mcp_server_is_dead(tmp_path: Path) -> None:
    servers = {"tickets": {"command": "false", "args": [], "tools": ["*"]}}
    async with running_server(tmp_path) as server:
        await server.wire.prompt(await server.wire.create(scripted({"text": "ok"}), mcpServers=servers))
        await server.wire.event("session.mcp_server_status_changed", status="failed")

    (line,) = [line for line in server.stderr.splitlines() if "MCP server failed" in line]
    assert "server=tickets status=failed" in line
    assert "the process has ended" in line


async def test_the_disk_is_full(tmp_path: Path) -> None:
    async with running_server(tmp_path, file_limit_blocks=16) as server:
        session = await server.wire.create(scripted({"text": "x" * 20_000}))
        await server.wire.prompt(session)

    (line,) = [line for line in server.stderr.splitlines() if "prompt failed" in line]
    assert f"session={session}" in line
    assert "cannot write the session log: the disk is full" in line
