"""Token estimates where no provider has counted: four bytes of UTF-8 to a token, close enough for a gauge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.conversation.media import IMAGE_TOKENS
from jumpseat.agent.model import ModelRequest, ToolSpec


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """How large a request is; ``messages`` is how many there are, with the system message."""

    system: int
    tools: int
    conversation: int
    messages: int

    @property
    def total(self) -> int:
        return self.system + self.tools + self.conversation


def of_request(request: ModelRequest) -> TokenEstimate:
    return TokenEstimate(
        of_text(request.system),
        of_tools(request.tools),
        sum(of_message(one) for one in request.messages),
        len(request.messages) + 1,
    )


def of_text(text: str) -> int:
    return (len(text.encode()) + 3) // 4


def of_message(message: Message) -> int:
    blocks: Sequence[Block] = message.results if isinstance(message, ToolMessage) else message.blocks
    return sum(_of_block(block) for block in blocks) + 3


def of_tools(specs: Sequence[ToolSpec]) -> int:
    return sum(of_text(spec.name + spec.description + canonical_json(spec.parameters)) for spec in specs)


def of_answer(message: AssistantMessage) -> int:
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
