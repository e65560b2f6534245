"""Report for each block of a conversation how a model would receive it. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from jumpseat.adapters.completion.conversion import from_conversation
from jumpseat.adapters.wire import as_object
from jumpseat.agent.blocks import (
    NATIVE,
    AssistantMessage,
    HostedToolResultBlock,
    HostedToolUseBlock,
    ImageBlock,
    Message,
    TextBlock,
    ToolMessage,
)
from jumpseat.agent.conversation.portability import check_portability
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat_protocol import blocks as wire
from jumpseat_protocol.portability import BlockPortability, Portability

Outcome: TypeAlias = Literal["kept", "converted", "dropped"]


def depends_on_the_model(messages: Iterable[Message]) -> bool:
    """Return whether a conversation has anything that some model would not receive unchanged."""
    for message in messages:
        if isinstance(message, ToolMessage):
            if any(result.images for result in message.results):
                return True
            continue
        for block in message.blocks:
            match block:
                case HostedToolUseBlock() | HostedToolResultBlock() | ImageBlock():
                    return True
                case TextBlock():
                    if block.citations:
                        return True
                case _:
                    if isinstance(message, AssistantMessage) and getattr(block, "provider_data", None) is not None:
                        return True
    return False


def report(
    messages: list[Message], resolved: ResolvedModel, given: list[wire.Message] | None = None
) -> Portability:
    """Return the report for a model. ``given`` are the messages whose positions count, by default ``messages``."""
    family = resolved.model.signs_as
    vision = resolved.info.vision is not False and resolved.model.capabilities(resolved.wire_name).images
    changes = check_portability(messages, family, vision=vision)
    blocks: list[BlockPortability] = []
    for place, message in enumerate(from_conversation(messages) if given is None else given):
        for number, block in enumerate(message.all_blocks()):
            outcome, reason = _fate(block, family, vision=vision)
            blocks.append(
                BlockPortability(message=place, block=number, type=block.type, outcome=outcome, reason=reason)
            )
    return Portability(
        model=resolved.info.id or resolved.wire_name,
        provider=family,
        portable=not changes,
        summary=changes.describe(resolved.info.id or resolved.wire_name) if changes else None,
        blocks=blocks,
    )


def _fate(block: wire.Block, family: str, *, vision: bool) -> tuple[Outcome, str | None]:
    """Return how a model whose own blocks carry ``family`` receives a block, and the reason for a change."""
    foreign = block.provider != family
    match block:
        case wire.TextBlock():
            lost = sum(citation.provider not in (None, family) for citation in block.citations)
            return ("converted", f"sent without its {_count(lost, 'citation')}") if lost else ("kept", None)
        case wire.ReasoningBlock():
            if block.provider_data is None:
                return "dropped", "reasoning without a provider's data is not sent back"
            return ("dropped", f"only {block.provider} can read its signature") if foreign else ("kept", None)
        case wire.ToolUseBlock():
            if block.provider_data is None or not foreign:
                return "kept", None
            if NATIVE in as_object(block.provider_data):
                return "converted", f"sent as a call of our own tool, not of {block.provider}'s"
            return "converted", f"sent without the signature of {block.provider}"
        case wire.ImageBlock():
            return ("kept", None) if vision else ("dropped", "the model has no vision")
        case wire.ToolResultBlock():
            lost = 0 if vision else len(block.images)
            text = f"sent without its {_count(lost, 'image')}: the model has no vision"
            return ("converted", text) if lost else ("kept", None)
        case wire.WebSearchUseBlock() | wire.HostedToolUseBlock():
            text = f"sent as text: {block.provider} has run the call"
            return ("converted", text) if foreign else ("kept", None)
        case wire.WebSearchResultBlock() | wire.HostedToolResultBlock():
            if not foreign:
                return "kept", None
            if not block.text and not getattr(block, "results", None):
                return "dropped", f"only {block.provider} can read it"
            return "converted", f"sent as text: only {block.provider} can read its data"
        case wire.DocumentBlock():
            return "kept", None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
