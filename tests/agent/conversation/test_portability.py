"""Content of a conversation that another provider cannot receive unchanged."""

from __future__ import annotations

from jumpseat.agent.blocks import (
    AssistantMessage,
    Citation,
    HostedToolResultBlock,
    HostedToolUseBlock,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.conversation.portability import Portability, check_portability

IMAGE = ImageBlock("aWk=", "image/png")

SAID: list[Message] = [
    UserMessage([TextBlock("look"), IMAGE]),
    AssistantMessage(
        [
            ReasoningBlock("signed", "anthropic", {"signature": "MQ=="}),
            ReasoningBlock("plain", "anthropic"),
            HostedToolUseBlock("s1", "web_search", {}, "anthropic"),
            HostedToolResultBlock("s1", "found", "anthropic"),
            HostedToolUseBlock("s2", "web_search", {}, "anthropic"),
            HostedToolResultBlock("s2", "found", "anthropic"),
            TextBlock("cited", [Citation("x", provider="anthropic"), Citation("y")]),
            ToolUseBlock("1", "view", "{}", {}, "anthropic", {"caller": "x"}),
        ]
    ),
    ToolMessage([ToolResultBlock("1", "view", "ok", images=[IMAGE])]),
]


def test_a_conversation_returns_unchanged_to_its_own_provider() -> None:
    found = check_portability(SAID, "anthropic")

    assert not found
    assert found == Portability()


def test_foreign_blocks_are_counted() -> None:
    found = check_portability(SAID, "openai")

    assert found == Portability(reasoning=1, hosted_tools=("web_search",), citations=1, signatures=1)


def test_images_are_counted_for_a_model_without_vision() -> None:
    assert check_portability(SAID, "anthropic", vision=False) == Portability(images=2)


def test_the_warning_names_what_is_rewritten_and_what_is_left_out() -> None:
    found = Portability(reasoning=1, hosted_tools=("web_search", "bash"), citations=3, images=2)

    assert found.describe("gpt-5") == (
        "Parts of the conversation cannot be sent to gpt-5 unchanged. Sent as plain text: calls of another"
        " provider's web_search, bash."
        " Left out: 1 reasoning block, 3 citations, 2 images (the model has no vision)."
    )
