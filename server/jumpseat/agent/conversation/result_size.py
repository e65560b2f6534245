"""The share of a model's context window that the results of tools may take, so that one result never fills it."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from jumpseat.agent.blocks import Message, ToolMessage
from jumpseat.agent.conversation.conversation import shorten

REPEATABLE: Final = frozenset({"glob", "grep", "view"})
"""Tools that show the same again, as long as nothing is changed."""

LARGE_WINDOW: Final = 64_000
"""The prompt limit in tokens from which results are not shortened: other limits on them are lower."""


def largest_result(prompt_limit: int) -> int:
    """Return the characters of the largest result: a quarter of the prompt, at four characters per token."""
    return prompt_limit


def fit_results(messages: list[Message], prompt_limit: int) -> list[Message]:
    """Shorten results that are too large for a model; those of one answer may take half of the prompt.

    The results depend on the messages and the limit alone: the same prefix is sent with each request.
    """
    most = largest_result(prompt_limit)
    if prompt_limit >= LARGE_WINDOW or not any(_is_large(message, most) for message in messages):
        return messages
    return [_fit(message, most) if isinstance(message, ToolMessage) else message for message in messages]


def _share(message: ToolMessage, most: int) -> int:
    return min(most, 2 * most // max(1, len(message.results)))


def _is_large(message: Message, most: int) -> bool:
    return isinstance(message, ToolMessage) and any(
        len(result.text) > _share(message, most) for result in message.results
    )


def _fit(message: ToolMessage, most: int) -> ToolMessage:
    if not _is_large(message, most):
        return message
    share = _share(message, most)
    return ToolMessage([replace(result, text=shorten(result.text, share)) for result in message.results])
