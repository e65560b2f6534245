"""The blocks sent to models for attached bytes: none that a provider would reject in every later turn."""

from __future__ import annotations

import base64

import pytest

from jumpseat.agent.blocks import (
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    ToolMessage,
    UserBlock,
    UserMessage,
)
from jumpseat.agent.conversation.attachments import user_block
from jumpseat.agent.conversation.conversation import REFUSED_ALL_MEDIA, REFUSED_MEDIA, Conversation
from jumpseat.agent.conversation.media import has_media
from jumpseat.agent.conversation.pictures import MAX_IMAGE_BYTES, PictureError, check_picture
from jumpseat.agent.conversation.tokens import Messages, Settled
from jumpseat_protocol import events
from tests.support.pictures import GIF, JPEG, PNG, WEBP, png


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


DRAWING = encoded(b"<svg/>")
UNKNOWN = encoded(b"something else")
PDF = encoded(b"%PDF-1.7")
NOT_A_PICTURE = TextBlock("[a is left out: not a PNG, JPEG, GIF or WebP picture]")


@pytest.mark.parametrize(
    ("data", "mime_type", "expected"),
    [
        (encoded(PNG), "image/png", ImageBlock(encoded(PNG), "image/png", "a")),
        (encoded(PNG), "IMAGE/PNG; q=1", ImageBlock(encoded(PNG), "image/png", "a")),
        (encoded(PNG), "application/octet-stream", ImageBlock(encoded(PNG), "image/png", "a")),
        (encoded(JPEG), "image/jpg", ImageBlock(encoded(JPEG), "image/jpeg", "a")),
        (encoded(JPEG), "image/png", ImageBlock(encoded(JPEG), "image/jpeg", "a")),
        (UNKNOWN, "image/jpg", NOT_A_PICTURE),
        (DRAWING, "image/svg+xml", DocumentBlock(DRAWING, "text/plain", "a")),
        (UNKNOWN, "application/json", DocumentBlock(UNKNOWN, "text/plain", "a")),
        (UNKNOWN, "text/csv", DocumentBlock(UNKNOWN, "text/csv", "a")),
        (PDF, "application/pdf", DocumentBlock(PDF, "application/pdf", "a")),
        (UNKNOWN, "application/pdf", TextBlock("[a is left out: not a PDF document]")),
        (UNKNOWN, "image/bmp", TextBlock("[a is left out: an image of type image/bmp]")),
        ("", "image/png", NOT_A_PICTURE),
        ("@@", "image/tiff", TextBlock("[a is left out: not valid base64]")),
    ],
)
def test_the_type_of_an_image_is_sniffed_from_its_content(data: str, mime_type: str, expected: UserBlock) -> None:
    assert user_block(data, mime_type, "a") == expected


@pytest.mark.parametrize("content", [PNG, JPEG, GIF, WEBP, png(8000, 2)])
def test_a_picture_is_checked_to_its_last_byte(content: bytes) -> None:
    assert check_picture(content).startswith("image/")
    for length in range(1, len(content)):
        with pytest.raises(PictureError):
            check_picture(content[:length])


@pytest.mark.parametrize("content", [png(8001, 2), png(2, 9000), png(0, 5), PNG + b"\0" * MAX_IMAGE_BYTES])
def test_a_picture_that_some_provider_refuses_is_not_sent(content: bytes) -> None:
    with pytest.raises(PictureError):
        check_picture(content)


def test_an_unsupported_image_in_a_result_is_replaced_by_a_note() -> None:
    conversation = Conversation()
    request = events.ToolRequest(tool_call_id="c", name="draw", arguments={})
    conversation.apply(events.AssistantMessage(message_id="m", content="", tool_requests=[request]))
    pictures = [
        events.BinaryResult(data=UNKNOWN, mime_type="image/bmp", description="chart", type="image"),
        events.BinaryResult(data=DRAWING, mime_type="image/svg+xml", description="plan", type="image"),
        events.BinaryResult(data=encoded(JPEG), mime_type="image/jpg", description="photo", type="image"),
    ]
    result = events.ToolResult(content="Drawn.", binary_results_for_llm=pictures)
    conversation.apply(events.ToolExecutionComplete(tool_call_id="c", success=True, result=result))

    answered = conversation.messages()[-1]
    assert isinstance(answered, ToolMessage)
    (found,) = answered.results
    assert found.text == (
        "Drawn.\n[chart is left out: an image of type image/bmp]"
        "\n[plan is left out: not a picture that you can see]"
    )
    assert found.images == [ImageBlock(encoded(JPEG), "image/jpeg", "photo")]


def test_refused_media_stay_left_out_from_the_last_answer_on_or_altogether() -> None:
    def look(name: str) -> events.UserMessage:
        blob = {"type": "blob", "data": encoded(PNG), "mimeType": "image/png", "displayName": name}
        return events.UserMessage(content="look", message_id="m", attachments=[blob])

    def blocks() -> list[UserBlock]:
        users = [message for message in conversation.messages() if isinstance(message, UserMessage)]
        return [block for message in users for block in message.blocks]

    def seen() -> list[str | None]:
        return [block.label for block in blocks() if isinstance(block, ImageBlock)]

    conversation = Conversation()
    conversation.apply(look("one"))
    conversation.apply(events.AssistantMessage(message_id="m", content="A cat.", tool_requests=[]))
    conversation.apply(look("two"))
    assert seen() == ["one", "two"]
    conversation.apply(events.SessionWarning(warning_type=REFUSED_MEDIA, message="refused"))
    assert seen() == ["one"]
    assert TextBlock("[two is left out: the provider refused it]") in blocks()
    conversation.apply(events.SessionWarning(warning_type=REFUSED_ALL_MEDIA, message="refused"))
    assert seen() == []


def test_media_are_found_wherever_they_come_into_a_conversation_that_was_looked_at_before() -> None:
    pdf, png_block = DocumentBlock(PDF, "application/pdf", "a"), ImageBlock(encoded(PNG), "image/png", "a")
    for block, seen_blind in ((pdf, True), (png_block, False)):
        final: list[Message] = []
        settled = Settled()
        for _ in range(3):
            final.append(UserMessage([TextBlock("plain")]))
            assert not has_media(Messages(final, [ToolMessage([])], settled), vision=True)
        assert has_media(Messages(final, [UserMessage([block])], settled), vision=True)
        final += [UserMessage([TextBlock("plain"), block]), ToolMessage([])]
        for _ in range(2):
            assert has_media(Messages(final, [], settled), vision=True)
            assert has_media(Messages(final, [], settled), vision=False) is seen_blind
            final.append(UserMessage([TextBlock("plain")]))
