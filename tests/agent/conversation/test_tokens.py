"""Token estimates: four bytes to a token, rounded up."""

from __future__ import annotations

import pytest

from jumpseat.agent.blocks import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.conversation import tokens
from jumpseat.agent.model import ToolSchema, ToolSpec


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("éé", 1), ("🙂🙂", 2)])
def test_a_text_is_estimated_by_its_bytes(text: str, count: int) -> None:
    assert tokens.of_text(text) == count


@pytest.mark.parametrize(
    ("message", "count"),
    [
        (UserMessage([]), 3),
        (UserMessage([TextBlock("abcd"), ImageBlock("AAAA", "image/png")]), 1004),
        (UserMessage([DocumentBlock("AAAA", "application/pdf")]), 1003),
        (AssistantMessage([ReasoningBlock("abcd"), TextBlock("abcdefgh")]), 6),
        (AssistantMessage([ToolUseBlock("id", "add", '{"a":1}', {"a": 1})]), 6),
        (ToolMessage([ToolResultBlock("id", "add", "abcd"), ToolResultBlock("id", "add", "")]), 4),
        (ToolMessage([ToolResultBlock("id", "add", "a", images=[ImageBlock("A", "image/png")] * 2)]), 2004),
    ],
)
def test_a_message_is_estimated_by_its_blocks_and_its_role(message: Message, count: int) -> None:
    assert tokens.of_message(message) == count


def test_an_answer_is_estimated_by_its_blocks() -> None:
    assert tokens.of_answer(AssistantMessage([TextBlock("abcde"), ToolUseBlock("i", "add", "", {})])) == 3


def test_tools_are_estimated_by_their_definitions() -> None:
    assert tokens.of_tools([]) == 0
    assert tokens.of_tools([ToolSpec("add", "Add numbers", ToolSchema.of({"type": "object"}))] * 2) == 2 * 8
