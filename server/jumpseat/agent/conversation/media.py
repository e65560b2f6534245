"""Replace pictures and documents in messages by notes, after a provider has refused them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from jumpseat.agent.blocks import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    UserBlock,
    UserMessage,
)
from jumpseat.agent.conversation.attachments import media_note
from jumpseat.agent.conversation.tokens import Messages

REFUSED: Final = "the provider refused it"
NO_VISION: Final = "the model does not see images"


def has_media(messages: Sequence[Message], *, vision: bool) -> bool:
    """Return whether a request with these messages contains documents, or with ``vision`` pictures.

    Quick if only its last messages are new: each request asks.
    """
    begin = 0
    if isinstance(messages, Messages) and messages.settled.plain <= messages.final:
        settled = messages.settled
        settled.plain = begin = next(
            (n for n in range(settled.plain, messages.final) if _has_media(messages[n], vision=True)),
            messages.final,
        )
    return any(_has_media(message, vision=vision) for message in messages[begin:])


def _has_media(message: Message, *, vision: bool) -> bool:
    match message:
        case UserMessage():
            return any(
                _is_document(block) or (vision and isinstance(block, ImageBlock)) for block in message.blocks
            )
        case ToolMessage():
            return vision and any(result.images for result in message.results)
        case AssistantMessage():
            return False


def without_media(messages: Sequence[Message], begin: int = 0) -> list[Message]:
    """Replace the media of the messages from number ``begin`` on by notes."""
    return [*messages[:begin], *(_without_media(message) for message in messages[begin:])]


def without_images(messages: Sequence[Message]) -> list[Message]:
    """Remove all pictures, for a model that does not see them; those of the user leave notes.

    The wire fixes the results of tools for such models: their text stays as it is.
    """
    return [_without_images(message) for message in messages]


def _without_images(message: Message) -> Message:
    if isinstance(message, ToolMessage):
        return ToolMessage([_shown_as_text(result) for result in message.results])
    return user_without_media(message, NO_VISION, documents=False) if isinstance(message, UserMessage) else message


def _shown_as_text(result: ToolResultBlock) -> ToolResultBlock:
    if result.text:
        return replace(result, images=[]) if result.images else result
    return result_without_images(result, NO_VISION)


def first_unanswered(messages: Sequence[Message]) -> int:
    """Return the number of the first message after the last answer of the model."""
    places = (place for place in reversed(range(len(messages))) if isinstance(messages[place], AssistantMessage))
    return next(places, -1) + 1


def user_without_media(message: UserMessage, problem: str = REFUSED, *, documents: bool = True) -> UserMessage:
    """Replace the pictures of a message by notes, and with ``documents`` those too."""
    blocks: list[UserBlock] = []
    for block in message.blocks:
        match block:
            case ImageBlock():
                blocks.append(TextBlock(media_note(block.label or "image", problem)))
            case DocumentBlock() if documents and _is_document(block):
                blocks.append(TextBlock(media_note(block.title or "document", problem)))
            case _:
                blocks.append(block)
    return message if blocks == message.blocks else UserMessage(blocks)


def result_without_images(result: ToolResultBlock, problem: str = REFUSED) -> ToolResultBlock:
    """Replace the pictures of a result by notes at the end of its text."""
    notes = [media_note(image.label or "image", problem) for image in result.images]
    return replace(result, text="\n".join(filter(None, [result.text, *notes])), images=[])


def _without_media(message: Message) -> Message:
    match message:
        case UserMessage():
            return user_without_media(message)
        case ToolMessage():
            if not any(result.images for result in message.results):
                return message
            return ToolMessage([result_without_images(result) for result in message.results])
        case AssistantMessage():
            return message


def _is_document(block: UserBlock) -> bool:
    """Return whether a block is a document that is not sent as text."""
    return isinstance(block, DocumentBlock) and not block.mime_type.startswith("text/")
