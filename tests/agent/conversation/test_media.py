"""The blocks sent to models for attached bytes: none that a provider would reject in every later turn."""

from __future__ import annotations

import base64

import pytest

from jumpseat.agent.blocks import DocumentBlock, ImageBlock, TextBlock, ToolMessage, UserBlock
from jumpseat.agent.conversation.attachments import user_block
from jumpseat.agent.conversation.conversation import Conversation
from jumpseat_protocol import events


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


PNG = encoded(b"\x89PNG\r\n\x1a\n and so on")
JPEG = encoded(b"\xff\xd8\xff\xe0 and so on")
DRAWING = encoded(b"<svg/>")
UNKNOWN = encoded(b"something else")


@pytest.mark.parametrize(
    ("data", "mime_type", "expected"),
    [
        (PNG, "image/png", ImageBlock(PNG, "image/png", "a")),
        (PNG, "IMAGE/PNG; q=1", ImageBlock(PNG, "image/png", "a")),
        (PNG, "application/octet-stream", ImageBlock(PNG, "image/png", "a")),
        (JPEG, "image/jpg", ImageBlock(JPEG, "image/jpeg", "a")),
        (JPEG, "image/png", ImageBlock(JPEG, "image/jpeg", "a")),
        (UNKNOWN, "image/jpg", ImageBlock(UNKNOWN, "image/jpeg", "a")),
        (DRAWING, "image/svg+xml", DocumentBlock(DRAWING, "text/plain", "a")),
        (UNKNOWN, "application/json", DocumentBlock(UNKNOWN, "text/plain", "a")),
        (UNKNOWN, "text/csv", DocumentBlock(UNKNOWN, "text/csv", "a")),
        (UNKNOWN, "application/pdf", DocumentBlock(UNKNOWN, "application/pdf", "a")),
        (UNKNOWN, "image/bmp", TextBlock("[a: an image of type image/bmp, which cannot be shown to you]")),
        ("", "image/png", TextBlock("[a: an image of type image/png, which cannot be shown to you]")),
        ("@@", "image/tiff", TextBlock("[a: an image of type image/tiff, which cannot be shown to you]")),
    ],
)
def test_the_type_of_an_image_is_sniffed_from_its_content(data: str, mime_type: str, expected: UserBlock) -> None:
    assert user_block(data, mime_type, "a") == expected


def test_an_unsupported_image_in_a_result_is_replaced_by_a_note() -> None:
    conversation = Conversation()
    request = events.ToolRequest(tool_call_id="c", name="draw", arguments={})
    conversation.apply(events.AssistantMessage(message_id="m", content="", tool_requests=[request]))
    pictures = [
        events.BinaryResult(data=UNKNOWN, mime_type="image/bmp", description="chart", type="image"),
        events.BinaryResult(data=JPEG, mime_type="image/jpg", description="photo", type="image"),
    ]
    result = events.ToolResult(content="Drawn.", binary_results_for_llm=pictures)
    conversation.apply(events.ToolExecutionComplete(tool_call_id="c", success=True, result=result))

    answered = conversation.messages()[-1]
    assert isinstance(answered, ToolMessage)
    (found,) = answered.results
    assert found.text == "Drawn.\n[chart: an image of type image/bmp, which cannot be shown to you]"
    assert found.images == [ImageBlock(JPEG, "image/jpeg", "photo")]
