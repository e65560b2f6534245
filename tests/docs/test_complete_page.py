"""The examples in the page about model calls without a session run as they stand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import pytest

from jumpseat_protocol.complete import CompleteParams, PortabilityParams
from jumpseat_protocol.tool_definitions import Tool
from tests.adapters.golden import DATA
from tests.support.model_server import ModelServer, Reply, SeenRequest, event_stream, json_reply
from tests.support.pages import code_blocks, contains
from tests.support.server import frame, running_server

pytestmark = pytest.mark.anyio

PAGE: Final = "docs/complete.md"


def claude(request: SeenRequest) -> Reply:
    """Answer like Claude: search if possible, else call the offered tool first."""
    tools = request.json.get("tools", [])
    if any("type" in tool for tool in tools):
        return event_stream((DATA / "anthropic" / "web_search.sse").read_bytes())
    if request.json["stream"]:
        return event_stream((DATA / "anthropic" / "plain.sse").read_bytes())
    content: dict[str, Any] = {"type": "text", "text": "It rains, and Paris is the capital."}
    if tools and len(request.json["messages"]) == 1:
        content = {"type": "tool_use", "id": "t1", "name": tools[0]["name"], "input": {"city": "Bonn"}}
    return json_reply(
        {
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [content],
            "stop_reason": "tool_use" if content["type"] == "tool_use" else "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
    )


PRINTED: Final = ("Paris is the capital.", "It rains", "end_turn", "https://a.example")


@pytest.mark.parametrize("number", range(4))
async def test_the_programs_in_the_page_run(tmp_path: Path, number: int) -> None:
    programs = code_blocks(PAGE, "python")
    assert len(programs) == len(PRINTED)
    async with ModelServer(answer=claude) as server:
        environ = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": server.url,
        }
        done = await anyio.to_thread.run_sync(
            lambda: subprocess.run(
                [sys.executable, "-c", programs[number]],
                env=environ,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        )
    assert done.returncode == 0, done.stderr
    assert PRINTED[number] in done.stdout


async def test_the_server_answers_as_the_exchange_in_the_page_shows(tmp_path: Path) -> None:
    (exchange,) = code_blocks(PAGE, "wire")
    async with running_server(tmp_path, handshake=False) as server:
        for line in exchange.splitlines():
            direction, message = line[:2], json.loads(line[3:])
            if direction == "->":
                await server.wire.send(frame({"jsonrpc": "2.0", **message}))
                continue
            await server.wire.until(lambda actual, wanted=message: contains(actual, wanted), what=line)


def test_the_json_in_the_page_is_valid() -> None:
    tool, conversation = (json.loads(example) for example in code_blocks(PAGE, "json"))
    assert Tool.model_validate(tool).function.name == "get_weather"
    assert PortabilityParams.model_validate(conversation).messages


def test_the_page_names_every_parameter() -> None:
    text = (Path(__file__).parents[2] / PAGE).read_text()
    names = {field.alias or name for name, field in CompleteParams.model_fields.items()}
    assert {name for name in names if f"`{name}`" not in text} == set()
