"""Estimate tokens, quickly for messages that are known to be shared with earlier requests."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from jumpseat.agent.blocks import (
    AssistantMessage,
    Block,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
)
from jumpseat.agent.conversation.attachments import IMAGE_TOKENS
from jumpseat.agent.model import ModelRequest, ToolSpec


class Settled(Struct):
    """Totals for the first messages of a conversation, which no longer change.

    ``tokens`` are those of the first ``counted`` messages. Any model can receive the first ``universal`` messages
    unchanged, and the first ``plain`` ones have neither pictures nor documents. ``clearable`` and ``lasting`` are
    tokens of the first ``measured`` messages, explained in ``agent/clearing/plan.py``. Each request asks for all of
    these: going through thousands of messages took a twentieth of a turn.
    """

    counted: int = 0
    tokens: int = 0
    universal: int = 0
    plain: int = 0
    measured: int = 0
    clearable: int = 0
    lasting: int = 0


class Messages(list[Message]):
    """The messages of a conversation; the first ``final`` ones are those of ``settled``."""

    __slots__ = ("final", "settled")

    def __init__(self, final: Sequence[Message], others: Sequence[Message], settled: Settled) -> None:
        super().__init__(final)
        self.extend(others)
        self.final = len(final)
        self.settled = settled


class TokenEstimate(Struct, frozen=True):
    """The estimated size of a request in tokens; ``messages`` is their number, including the system message."""

    system: int
    tools: int
    conversation: int
    messages: int

    @property
    def total(self) -> int:
        return self.system + self.tools + self.conversation


def of_request(request: ModelRequest) -> TokenEstimate:
    """Estimate the tokens of a request by its parts."""
    return TokenEstimate(
        of_text(request.system),
        of_tools(request.tools),
        of_messages(request.messages),
        len(request.messages) + 1,
    )


def of_text(text: str) -> int:
    """Estimate the tokens of a text."""
    return (_size(text) + 3) // 4


def _size(text: str) -> int:
    """Return the size of a text in bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def of_messages(messages: Sequence[Message]) -> int:
    """Estimate the tokens of a conversation, quickly if only its last messages are new."""
    known = 0
    if isinstance(messages, Messages) and messages.settled.counted <= messages.final:
        settled, final = messages.settled, messages.final
        settled.tokens += sum(map(of_message, messages[settled.counted : final]))
        settled.counted = final
        known, messages = settled.tokens, messages[final:]
    return known + sum(map(of_message, messages))


def of_message(message: Message) -> int:
    """Estimate the tokens of a message, including three for its role. Its blocks do not change afterwards."""
    if message.tokens is None:
        blocks: Sequence[Block] = message.results if isinstance(message, ToolMessage) else message.blocks
        message.tokens = sum(_of_block(block) for block in blocks) + 3
    return message.tokens


def of_tools(specs: Sequence[ToolSpec]) -> int:
    """Estimate the tokens of tool definitions."""
    return sum((_size(spec.name) + _size(spec.description) + len(spec.schema.json) + 3) // 4 for spec in specs)


def of_answer(message: AssistantMessage) -> int:
    """Estimate the tokens that the model generated for an answer."""
    return sum(_of_block(block) for block in message.blocks)


def _of_block(block: Block) -> int:
    match block:
        case TextBlock() | ReasoningBlock():
            return of_text(block.text)
        case ToolUseBlock():
            return of_text(block.name + block.arguments_json)
        case ToolResultBlock():
            return of_text(block.text) + IMAGE_TOKENS * len(block.images)
        case _:
            return IMAGE_TOKENS
