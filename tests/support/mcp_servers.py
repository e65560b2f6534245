"""Settings of the MCP servers that tests run, and helpers for sessions with them."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any, Final

import anyio

from tests.support.forked import Program, executable
from tests.support.server import JsonObject, Wire, calls, scripted

HERE = Path(__file__).parent
PROGRAM = Program(str(HERE / "mcp_server.py"))
SAYING = {"text": "{{last_tool_result}}"}


def stdio(**more: Any) -> JsonObject:
    """Return the settings of ``mcp_server.py`` as a child process."""
    return {"command": executable(PROGRAM, "mcp-server"), "args": [], "tools": ["*"], **more}


def rude(mode: str, *args: str, **more: Any) -> JsonObject:
    """Return the settings of ``rude_mcp_server.py``, which misbehaves as ``mode`` says."""
    return {"command": sys.executable, "args": [str(HERE / "rude_mcp_server.py"), mode, *args], **more}


@asynccontextmanager
async def remote(kind: str) -> AsyncGenerator[str, None]:
    """Run ``mcp_server.py`` over ``http`` or ``sse`` and yield its URL."""
    process = await anyio.open_process([executable(PROGRAM, "mcp-server"), kind], stdout=PIPE, stderr=None)
    try:
        assert process.stdout is not None
        port = int(await process.stdout.receive())
        yield f"http://127.0.0.1:{port}/{'mcp' if kind == 'http' else 'sse'}"
    finally:
        process.kill()
        await process.aclose()


async def session_with(wire: Wire, name: str, config: JsonObject, *turns: JsonObject, **options: Any) -> str:
    """Create a session with one server, wait until that is connected, and return the id of the session."""
    options = {"requestPermission": False, **options}
    session = await wire.create(scripted(*turns), mcpServers={name: config}, **options)
    await status(wire, session, name, "connected")
    return session


async def status(wire: Wire, session: str, name: str, wanted: str, *, since: int = 0) -> JsonObject:
    """Wait until a server has a status, and return the event that announces it."""
    return await wire.event(
        "session.mcp_server_status_changed", session=session, since=since, serverName=name, status=wanted
    )


async def call(wire: Wire, session: str, *, text: str = "go") -> tuple[JsonObject, str]:
    """Send a prompt; return the data of the first completed call and the last message of the model."""
    events = await wire.prompt(session, text)
    done = next(event["data"] for event in events if event["type"] == "tool.execution_complete")
    texts = [event["data"]["content"] for event in events if event["type"] == "assistant.message"]
    return done, texts[-1]


def turn(tool: str, **arguments: Any) -> tuple[JsonObject, JsonObject]:
    """Return two turns of a script: a call, and a message with its result."""
    return calls(tool, **arguments), SAYING


BUILTIN: Final[JsonObject] = {"name": "github-mcp-server", "status": "disabled", "source": "builtin"}
"""The entry of GitHub's own server, which every session has."""


async def list_servers(wire: Wire, params: JsonObject) -> JsonObject:
    """Return the answer to ``session.mcp.list`` without :data:`BUILTIN`, which it must contain."""
    answer = await wire.call("session.mcp.list", params)
    assert BUILTIN in answer["servers"]
    return {**answer, "servers": [entry for entry in answer["servers"] if entry != BUILTIN]}
