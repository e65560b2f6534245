"""What of a conversation another provider cannot be given as it was.

Adapters rewrite on their own what is not theirs: tools that a provider ran itself become sentences, signed and
encrypted reasoning stays away, images stay away from models that see none. This says so beforehand; and what a
model is asked for that it is known not to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
from jumpseat.agent.model import ModelInfo, ModelRequest


@dataclass(frozen=True, slots=True)
class Portability:
    """How many blocks reach the model in another form, or not at all; false where all of them arrive.

    ``hosted_tools`` are the names of tools that another provider ran; ``signatures`` are those of tool calls.
    """

    reasoning: int = 0
    hosted_tools: tuple[str, ...] = ()
    citations: int = 0
    signatures: int = 0
    images: int = 0

    def __bool__(self) -> bool:
        return self != Portability()

    def sentence(self, model: str) -> str:
        """For the user."""
        left_out = [
            _count(self.reasoning, "reasoning block"),
            _count(self.signatures, "signature of tool calls", "signatures of tool calls"),
            _count(self.citations, "citation"),
            _count(self.images, "image", "images") + (" (the model has no vision)" if self.images else ""),
        ]
        text = f"The conversation cannot go to {model} as it was."
        if self.hosted_tools:
            text += f" Sent as plain text: what another provider's {', '.join(self.hosted_tools)} did."
        if any(left_out):
            text += f" Left out: {', '.join(part for part in left_out if part)}."
        return text


def check_portability(messages: Iterable[Message], family: str, *, vision: bool = True) -> Portability:
    """What a model of ``family``, the adapter family that marks its own blocks, cannot be given as it was."""
    reasoning = citations = signatures = images = 0
    hosted: dict[str, None] = {}
    for message in messages:
        match message:
            case AssistantMessage():
                for block in message.blocks:
                    match block:
                        case ReasoningBlock():
                            reasoning += block.provider_data is not None and block.provider != family
                        case HostedToolUseBlock() if block.provider != family:
                            hosted[block.name] = None
                        case ToolUseBlock() if block.provider != family:
                            # Nothing is lost of a call that only looked otherwise there.
                            signatures += block.provider_data is not None and NATIVE not in block.provider_data
                        case TextBlock():
                            citations += sum(one.provider not in (None, family) for one in block.citations)
                        case _:
                            pass
            case UserMessage():
                images += not vision and sum(isinstance(block, ImageBlock) for block in message.blocks)
            case ToolMessage():
                images += not vision and sum(len(result.images) for result in message.results)
    return Portability(reasoning, tuple(hosted), citations, signatures, images)


def check_capability(request: ModelRequest, known: ModelInfo) -> str:
    """What ``request`` asks for that the model is known not to do, as a sentence; empty where there is nothing."""
    lacking: list[str] = []
    if known.vision is False and request.vision and any(_has_images(message) for message in request.messages):
        lacking.append("take images")
    if known.tools is False and request.tools:
        lacking.append("call tools")
    if known.reasoning is False and request.reasoning_effort not in (None, "none", "off"):
        lacking.append(f"reason, with effort {request.reasoning_effort!r} or any other")
    if not lacking:
        return ""
    return f"{known.id} is not known to {', or to '.join(lacking)}. It was asked all the same."


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
