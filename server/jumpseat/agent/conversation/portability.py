"""Find content that a model cannot receive unchanged, and features that it is known to lack.

Adapters convert foreign content by themselves: hosted tool calls become text, signed and encrypted reasoning is
omitted, and so are images for models without vision. The checks here allow a warning beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from jumpseat.agent.blocks import (
    NATIVE,
    AssistantMessage,
    HostedToolUseBlock,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.conversation.tokens import Messages
from jumpseat.agent.model import Capabilities, ModelInfo, ModelRequest


class Portability(Struct, frozen=True):
    """The numbers of blocks that are converted or omitted; false if there are none.

    ``hosted_tools`` are the names of tools run by another provider; ``signatures`` are those of tool calls.
    """

    reasoning: int = 0
    hosted_tools: tuple[str, ...] = ()
    citations: int = 0
    signatures: int = 0
    images: int = 0

    def __bool__(self) -> bool:
        return self != Portability()

    def describe(self, model: str) -> str:
        """Describe the changes to the user."""
        left_out = [
            _count(self.reasoning, "reasoning block"),
            _count(self.signatures, "signature of tool calls", "signatures of tool calls"),
            _count(self.citations, "citation"),
            _count(self.images, "image", "images") + (" (the model has no vision)" if self.images else ""),
        ]
        text = f"Parts of the conversation cannot be sent to {model} unchanged."
        if self.hosted_tools:
            text += f" Sent as plain text: calls of another provider's {', '.join(self.hosted_tools)}."
        if any(left_out):
            text += f" Left out: {', '.join(part for part in left_out if part)}."
        return text


def check_portability(messages: Sequence[Message], family: str, *, vision: bool = True) -> Portability:
    """Count the blocks that a model cannot receive unchanged; ``family`` is the ``provider`` of its own blocks."""
    reasoning = citations = signatures = images = 0
    hosted: dict[str, None] = {}
    for message in messages[_count_universal(messages) :]:
        if _is_universal(message):
            continue
        match message:
            case AssistantMessage():
                for block in message.blocks:
                    match block:
                        case ReasoningBlock():
                            reasoning += block.provider_data is not None and block.provider != family
                        case HostedToolUseBlock() if block.provider != family:
                            hosted[block.name] = None
                        case ToolUseBlock() if block.provider != family:
                            # A call translated from a provider-specific form loses nothing.
                            signatures += block.provider_data is not None and NATIVE not in block.provider_data
                        case TextBlock():
                            citations += sum(
                                citation.provider not in (None, family) for citation in block.citations
                            )
                        case _:
                            pass
            case UserMessage():
                images += not vision and sum(isinstance(block, ImageBlock) for block in message.blocks)
            case ToolMessage():
                images += not vision and sum(len(result.images) for result in message.results)
    return Portability(reasoning, tuple(hosted), citations, signatures, images)


def _count_universal(messages: Sequence[Message]) -> int:
    """Return the number of messages at the beginning that are universal, as far as that is kept."""
    if not isinstance(messages, Messages) or messages.settled.universal > messages.final:
        return 0
    settled = messages.settled
    while settled.universal < messages.final and _is_universal(messages[settled.universal]):
        settled.universal += 1
    return settled.universal


def _is_universal(message: Message) -> bool:
    """Return whether the message has no images and no blocks of one provider."""
    if message.universal is None:
        message.universal = _has_no_special_blocks(message)
    return message.universal


def _has_no_special_blocks(message: Message) -> bool:
    if not isinstance(message, AssistantMessage):
        return not _has_images(message)
    return not any(
        isinstance(block, HostedToolUseBlock)
        or (isinstance(block, ReasoningBlock | ToolUseBlock) and block.provider_data is not None)
        or (isinstance(block, TextBlock) and block.citations)
        for block in message.blocks
    )


def check_capability(request: ModelRequest, known: ModelInfo, can: Capabilities, *, xml_tools: bool = False) -> str:
    """Return a warning about features used by ``request`` that the model lacks, or an empty string.

    ``known`` are facts about the model, and ``can`` those about its adapter. With ``xml_tools``, the model calls
    tools as XML in its text, which needs no support.
    """
    warnings: list[str] = []
    lacking: list[str] = []
    if known.vision is False and request.vision and any(_has_images(message) for message in request.messages):
        lacking.append("images")
    if request.tools and xml_tools:
        if known.tools is False:
            warnings.append(f"{known.id} is not known to support tool calls, and was asked to write them as XML.")
    elif request.tools and can.drops_tools:
        warnings.append(can.drops_tools)
    elif request.tools:
        if known.tools is False:
            lacking.append("tool calls")
        choice = request.tool_choice
        if choice is not None and choice.parallel is False and not can.limits_calls:
            warnings.append(
                f"{known.id} may call several tools at once, because its provider has no setting for"
                " parallel: false."
            )
    if known.reasoning is False and request.reasoning_effort not in (None, "none", "off"):
        lacking.append(f"reasoning (effort {request.reasoning_effort!r})")
    if lacking:
        warnings.append(f"{known.id} is not known to support {' or '.join(lacking)}. The request was sent anyway.")
    return " ".join(warnings)


def _has_images(message: Message) -> bool:
    match message:
        case UserMessage():
            return any(isinstance(block, ImageBlock) for block in message.blocks)
        case ToolMessage():
            return any(result.images for result in message.results)
        case AssistantMessage():
            return False


def _count(number: int, one: str, many: str | None = None) -> str:
    if number == 0:
        return ""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
