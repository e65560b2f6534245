"""Malformed arguments of tool calls: repaired where their meaning is certain, reported elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat.agent.blocks import AssistantMessage, TextBlock, ToolUseBlock
from jumpseat.agent.model import Completed, ModelRequest, StopReason, ToolSchema, ToolSpec
from jumpseat.agent.model_calls.arguments import repair_calls
from jumpseat.agent.model_calls.written_calls.repair import repair_arguments
from jumpseat_protocol.json_values import MOST_DEPTH, parse_arguments


def repaired_calls(*texts: str, stop_reason: StopReason = "tool_use") -> list[ToolUseBlock]:
    """Return the repaired calls of an answer whose arguments are ``texts``."""
    calls = [ToolUseBlock(str(number), "add", text, None, "wire", {"raw": 1}) for number, text in enumerate(texts)]
    completed = Completed(AssistantMessage([TextBlock("So:"), *calls]), stop_reason)
    return repair_calls(completed, ModelRequest("m", "", [])).message.tool_uses()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('{"a": [1, 2,], "b": {"c": 1,},}', {"a": [1, 2], "b": {"c": 1}}),
        ('{"a": ",]",\n}', {"a": ",]"}),
        ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}),
        ('```json\n{"a": 1}\n```\n', {"a": 1}),
        ('```\n{"a": 1,}\n```', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": 1}{"a": 1}', {"a": 1}),
        ('{"a": 1}\n{"a":1}\n{"a": 1}', {"a": 1}),
        ('{"a": 123456789012345678901234567890,}', {"a": 123456789012345678901234567890.0}),
    ],
)
def test_malformed_arguments_with_a_certain_meaning_are_repaired(written: str, meant: dict[str, Any]) -> None:
    assert repair_arguments(written) == meant
    (call,) = repaired_calls(written)
    assert (call.arguments, call.problem, call.provider_data) == (meant, None, None)
    assert repair_arguments(call.arguments_json) == meant


@pytest.mark.parametrize(
    "written",
    [
        '{"a": 1',
        '{"a": "b',
        '{"a": [1, 2}',
        '{"a": 1} {"a": 2}',
        '{"a": 1} and more',
        '{"a" 1}',
        "{'a': 1}",
        "{a: 1}",
        '{"a": NaN}',
        '{"a": "\\ud800",}',
        "[1, 2]",
        '"a"',
        "null",
        ",",
        "{,}}",
        "[" * 100_000,
        '"' + '\\"' * 400_000,
        '{"a": ' + "1" * 5000 + ",}",
    ],
)
def test_other_malformed_arguments_are_kept_and_reported_to_the_model(written: str) -> None:
    assert repair_arguments(written) is None
    (call,) = repaired_calls(written)
    assert (call.arguments, call.arguments_json) == (None, written)
    assert call.problem is not None
    assert call.problem.startswith("The arguments of `add` are not a JSON object")
    assert len(call.problem) < 250


def test_a_call_cut_off_by_the_token_limit_is_not_run_however_little_is_missing() -> None:
    first, last = repaired_calls('{"a": 1,}', '{"a": 1,', stop_reason="max_tokens")
    assert (first.arguments, first.problem) == ({"a": 1}, None)
    assert last.arguments is None
    assert last.problem is not None
    assert "cut off by the limit on output tokens" in last.problem


def test_a_well_formed_answer_is_returned_unchanged() -> None:
    completed = Completed(AssistantMessage([ToolUseBlock("1", "add", "{}", {})]), "tool_use")
    assert repair_calls(completed, ModelRequest("m", "", [])) is completed


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (" bash ", "bash"),
        ("Bash", "bash"),
        ("functions.bash", "bash"),
        ("functions.bash:0", "bash"),
        ("bash<|channel|>commentary", "bash"),
        ("default_api:Bash", "bash"),
        ("bash()", "bash"),
        ("server.Tool", "server.tool"),
        ("LIST", "LIST"),
        ("rm", "rm"),
    ],
)
def test_a_name_with_noise_means_the_only_tool_that_it_can_mean(written: str, meant: str) -> None:
    schema = ToolSchema.of({"type": "object"})
    tools = [ToolSpec(name, "", schema) for name in ("bash", "server.tool", "list", "List")]
    completed = Completed(AssistantMessage([ToolUseBlock("1", written, "{}", {})]), "tool_use")
    (call,) = repair_calls(completed, ModelRequest("m", "", [], tools=tools)).message.tool_uses()
    assert call.name == meant


def test_null_leaves_out_an_optional_argument_that_cannot_be_null() -> None:
    schema = {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "mode": {"enum": ["sync", "async"]},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "timeout": {"type": ["integer", "null"]},
            "any": {},
        },
        "required": ["command"],
    }
    arguments = dict.fromkeys(["command", "mode", "limit", "timeout", "any", "other"])
    call = ToolUseBlock("1", "bash", "{}", arguments, "wire", {"signature": "s"})
    request = ModelRequest("m", "", [], tools=[ToolSpec("bash", "", ToolSchema.of(schema))])
    (repaired,) = repair_calls(Completed(AssistantMessage([call]), "tool_use"), request).message.tool_uses()
    assert repaired.arguments == dict.fromkeys(["command", "timeout", "any", "other"])
    assert repair_arguments(repaired.arguments_json) == repaired.arguments
    assert repaired.provider_data == {"signature": "s"}


def test_arguments_that_cannot_be_written_as_a_part_of_a_message_are_reported() -> None:
    def nested(levels: int) -> str:
        return f"{'[' * levels}{']' * levels}"

    assert parse_arguments(f'{{"a": {nested(MOST_DEPTH - 1)}}}') is not None
    for text in (f'{{"a": {nested(MOST_DEPTH)}}}', f'{{"a": {nested(MOST_DEPTH)},}}', f'{{"a": {nested(900)}}}'):
        assert parse_arguments(text) is None
        (call,) = repaired_calls(text)
        assert call.problem is not None
        assert call.problem.startswith("The arguments of `add` are not a JSON object")
