"""Arguments that are no JSON, or none that a tool can take."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat.agent.blocks import AssistantMessage, TextBlock, ToolUseBlock
from jumpseat.agent.model import Completed, StopReason
from jumpseat.agent.model_calls.arguments import mended, repaired


def answered(*texts: str, stop_reason: StopReason = "tool_use") -> list[ToolUseBlock]:
    """The calls of an answer whose arguments are ``texts``."""
    calls = [ToolUseBlock(str(number), "add", text, None, "wire", {"raw": 1}) for number, text in enumerate(texts)]
    return mended(Completed(AssistantMessage([TextBlock("So:"), *calls]), stop_reason)).message.tool_uses()


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
def test_what_is_meant_beyond_doubt_is_mended(written: str, meant: dict[str, Any]) -> None:
    assert repaired(written) == meant
    (call,) = answered(written)
    assert (call.arguments, call.problem, call.provider_data) == (meant, None, None)
    assert repaired(call.arguments_json) == meant


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
def test_what_is_in_doubt_is_not_touched_and_the_model_is_told(written: str) -> None:
    assert repaired(written) is None
    (call,) = answered(written)
    assert (call.arguments, call.arguments_json) == (None, written)
    assert call.problem is not None
    assert call.problem.startswith("The arguments of `add` are not a JSON object")
    assert len(call.problem) < 250


def test_what_the_token_limit_has_cut_off_is_not_run_however_little_is_missing() -> None:
    first, last = answered('{"a": 1,}', '{"a": 1,', stop_reason="max_tokens")
    assert (first.arguments, first.problem) == ({"a": 1}, None)
    assert last.arguments is None
    assert last.problem is not None
    assert "cut off by the limit of output tokens" in last.problem


def test_an_answer_with_nothing_to_mend_is_the_same() -> None:
    completed = Completed(AssistantMessage([ToolUseBlock("1", "add", "{}", {})]), "tool_use")
    assert mended(completed) is completed
