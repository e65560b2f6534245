"""What of a conversation another provider cannot be given as it was."""

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


def test_a_conversation_goes_back_to_the_provider_that_made_it_as_it_was() -> None:
    found = check_portability(SAID, "anthropic")

    assert not found
    assert found == Portability()


def test_what_is_foreign_is_counted_once_each() -> None:
    found = check_portability(SAID, "openai")

    assert found == Portability(reasoning=1, hosted_tools=("web_search",), citations=1, signatures=1)


def test_images_count_where_the_model_has_no_vision() -> None:
    assert check_portability(SAID, "anthropic", vision=False) == Portability(images=2)


def test_the_user_is_told_what_is_rewritten_and_what_is_left_out() -> None:
    found = Portability(reasoning=1, hosted_tools=("web_search", "bash"), citations=3, images=2)

    assert found.sentence("gpt-5") == (
        "The conversation cannot go to gpt-5 as it was. Sent as plain text: what another provider's web_search,"
        " bash did. Left out: 1 reasoning block, 3 citations, 2 images (the model has no vision)."
    )
