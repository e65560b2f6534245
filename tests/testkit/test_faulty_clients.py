"""Clients with faults, and what becomes of agents."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import pytest

from jumpseat_testkit.faults.agents import AgentFinding, client_kinds, try_agent
from jumpseat_testkit.faults.clients import CLIENT_FAULTS
from jumpseat_testkit.faults.report import peer_command
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.play_setup import PlayOptions
from jumpseat_testkit.protocols import ProtocolName
from jumpseat_testkit.steps import parse_script
from tests.script.scripts import one_turn

pytestmark = pytest.mark.anyio

MODEL = {"turns": [{"tool_calls": [{"name": "bash", "arguments": {"command": "touch x", "description": "x"}}]}]}


async def try_kinds(
    kinds: str, protocol: ProtocolName, command: list[str] | None, **head: Any
) -> dict[str, AgentFinding]:
    script = parse_script(one_turn(protocol, within=20, **head), "x")
    options = PlayOptions(command)
    return {one.kind: one async for one in try_agent(script, "x", client_kinds(kinds, protocol), options)}


@pytest.mark.thorough
async def test_our_agent_survives_faulty_clients() -> None:
    # `jumpseat-testkit --client-faults all` tries all kinds in all protocols, which takes minutes.
    kinds = "cut_json,half_message,same_id,two_prompts,two_answers,late_answer,closes_in_question"
    found = await try_kinds(kinds, "acp-1", None, model={**MODEL, "after_last": "repeat"})
    assert [one for one in found.values() if not one.ok] == []
    assert found["half_message"].how == "ends"
    assert found["two_answers"].how == "goes on"


@pytest.mark.parametrize("protocol", ["copilot", "acp-2", "ahp"])
async def test_a_client_finds_its_place_in_every_protocol(protocol: ProtocolName) -> None:
    command = peer_command("none", protocol)
    found = await try_kinds("half_first_message,pieces,cancel_at_once,two_answers", protocol, command)
    assert {kind: one.how for kind, one in found.items()} == {
        "half_first_message": "ends",
        "pieces": "goes on",
        "cancel_at_once": "goes on",
        "two_answers": "goes on",
    }


async def test_what_an_agent_must_not_do_is_told() -> None:
    crashing = ["sh", "-c", f"{shlex.join(peer_command('dies_in_turn', 'acp-1'))}; kill -SEGV $$"]
    found = await try_kinds("late_unasked_answer", "acp-1", crashing)
    assert (found["late_unasked_answer"].how, found["late_unasked_answer"].ok) == ("crash", False)

    found = await try_kinds("broken_line", "acp-1", peer_command("none", "acp-1"))
    assert (found["broken_line"].how, found["broken_line"].ok) == ("ends", False)

    found = await try_kinds("closes_after_prompt", "acp-1", peer_command("stays", "acp-1"))
    assert (found["closes_after_prompt"].how, found["closes_after_prompt"].ok) == ("hang", False)


async def test_a_script_without_the_message_is_refused() -> None:
    script = parse_script({"protocol": "acp-1", "greet": True, "steps": []}, "x")
    options = PlayOptions([sys.executable, "-P", "-m", "jumpseat_testkit.faults", "none", "acp-1"])
    with pytest.raises(ScriptError, match="two_answers: the script has not come to the message it needs"):
        await anext(aiter(try_agent(script, "x", ["two_answers"], options)))
    assert len(CLIENT_FAULTS) > 50
