"""Scripts of all protocols, against our server and others."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat_testkit.faults.report import peer_command
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.play import play
from jumpseat_testkit.play_setup import PlayOptions
from jumpseat_testkit.protocols import name_of
from jumpseat_testkit.steps import parse_script
from tests.script.scripts import one_turn

pytestmark = pytest.mark.anyio

MODEL = {"turns": [{"tool_calls": [{"name": "bash", "arguments": {"command": "echo hi"}}]}, {"text": "Done."}]}


async def failures(script: dict[str, Any], *command: str) -> list[str]:
    options = PlayOptions(list(command)) if command else None
    return (await play(parse_script({"within": 30, **script}, "x"), "x", options)).failures


@pytest.mark.thorough
async def test_an_editor_and_a_client_of_agent_hosts_are_played_against_our_server() -> None:
    assert await failures(one_turn("acp-1", model=MODEL)) == []
    assert await failures(one_turn("ahp", model=MODEL)) == []
    assert await failures(one_turn("ahp", model=MODEL, url="ws://127.0.0.1:${port}/ahp")) == []


@pytest.mark.thorough
async def test_protocol_2_is_played_over_tcp() -> None:
    steps: list[Any] = [
        {
            "call": "session.create",
            "params": {
                "provider": {"type": "openai", "baseUrl": "${model}", "apiKey": "none"},
                "model": "any",
                "tools": [{"name": "add", "description": "Add", "skipPermission": True}],
            },
            "result": {"sessionId": "${session}"},
        },
        {"call": "session.send", "params": {"sessionId": "${session}", "prompt": "go"}},
        {
            "answer": "tool.call",
            "params": {"toolName": "add"},
            "result": {"result": {"textResultForLlm": "1", "resultType": "success"}},
        },
        {"events": [{"type": "assistant.message", "data": {"content": "It is 1"}}, "session.idle"]},
    ]
    turns: list[Any] = [{"tool_calls": [{"name": "add", "arguments": {}}]}, {"text": "It is {{last_tool_result}}"}]
    head: dict[str, Any] = {
        "protocol": "copilot-2",
        "greet": True,
        "url": "tcp://127.0.0.1:${port}",
        "model": {"turns": turns},
    }
    assert await failures({**head, "steps": steps}) == []


async def test_the_draft_of_acp_2_is_played_against_a_server_that_speaks_it() -> None:
    assert await failures(one_turn("acp-2"), *peer_command("none", "acp-2")) == []


async def test_a_server_of_another_version_fails_at_the_greeting() -> None:
    (failure,) = await failures(one_turn("acp-2"), *peer_command("none", "acp-1"))
    assert failure.startswith("greeting (initialize): protocolVersion: expected 2, got 1")


async def test_an_address_that_cannot_be_used_is_named() -> None:
    with pytest.raises(ScriptError, match="expected one that begins with ws://"):
        await failures(one_turn("ahp", url="http://127.0.0.1:1"))
    with pytest.raises(ScriptError, match="the server has ended"):
        await failures(one_turn("ahp", url="ws://127.0.0.1:${port}", server="false"))


def test_the_protocol_of_a_conversation_is_known_by_its_first_request() -> None:
    def named(method: str, **params: Any) -> str:
        return name_of([{"id": 1, "method": method, "params": params}])

    assert named("initialize", protocolVersion=2) == "acp-2"
    assert named("initialize", protocolVersion=1) == "acp-1"
    assert named("initialize", channel="ahp-root://", protocolVersions=["1.0.0"]) == "ahp"
    assert named("connect") == "copilot"
    assert named("ping") == "copilot-2"
