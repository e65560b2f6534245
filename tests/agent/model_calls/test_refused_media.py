"""Providers that refuse pictures and documents: one warning, and the session stays usable."""

from __future__ import annotations

import json

import anyio
import pytest

from jumpseat.adapters.failures import failure_of_response
from jumpseat.agent.blocks import AssistantMessage, ImageBlock, TextBlock, UserMessage
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.agent.retry import RetryPolicy
from jumpseat.errors import ProviderError, ProviderImagesError, ProviderRequestError
from jumpseat_protocol import events
from tests.agent.turns.test_loop import Recorder
from tests.support.pictures import PNG_BASE64
from tests.support.sessions import make_session

pytestmark = pytest.mark.anyio

PICTURE = {"type": "blob", "data": PNG_BASE64, "mimeType": "image/png", "displayName": "shot.png"}

BLIND = [
    (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    (400, "this model does not support image input"),
    (400, "At most 0 image(s) may be provided in one request."),
    (400, "Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`"),
    (404, "No endpoints found that support image input"),
    (400, "Invalid content type. image_url is only supported by certain models."),
    (422, "Images are not supported by this model"),
    (400, "model 'm' is not a multimodal model"),
]
REFUSED = [
    (400, "Could not process image"),
    (400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"),
    (400, "Unsupported image format"),
    (413, "Request Entity Too Large"),
    (415, "Unsupported Media Type"),
    (422, "validation error"),
    (404, "not here"),
    (500, "Internal Server Error"),
]


def refusal(status: int, text: str) -> ProviderError:
    return failure_of_response(status, {}, json.dumps({"error": {"message": text}}).encode())


def answer(text: str) -> list[Completed]:
    return [Completed(AssistantMessage([TextBlock(text)]), stop_reason="end_turn")]


def pictures(request: ModelRequest) -> int:
    users = [message for message in request.messages if isinstance(message, UserMessage)]
    return sum(isinstance(block, ImageBlock) for message in users for block in message.blocks)


def test_a_model_without_vision_is_told_from_a_picture_that_is_refused() -> None:
    for status, text in BLIND:
        assert type(refusal(status, text)) is ProviderImagesError, text
    for status, text in REFUSED:
        assert not isinstance(refusal(status, text), ProviderImagesError), text


@pytest.mark.parametrize(("status", "text"), [*BLIND, *REFUSED])
async def test_a_refused_picture_becomes_a_note_once(status: int, text: str) -> None:
    model = Recorder([refusal(status, text)], answer("a note"), answer("hi"))
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model, retry=RetryPolicy(attempts=1))
        await made.ask("look", attachments=[PICTURE])
        await made.ask("forget it")
        assert [pictures(request) for request in model.requests] == [1, 0, 0]
        assert "shot.png is left out" in str(model.requests[2].messages)
        assert len(made.client.payloads(events.SessionWarning)) == 1
        assert made.client.payloads(events.SessionError) == []


async def test_a_broken_attachment_is_not_sent_and_the_user_is_warned() -> None:
    model = Recorder(answer("nothing to see"))
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model)
        await made.ask("look", attachments=[{**PICTURE, "data": PNG_BASE64[:20]}])
        (warning,) = made.client.payloads(events.SessionWarning)
        assert (
            warning.message == "An attachment is not sent: shot.png is broken: the file is damaged or incomplete."
        )
        assert pictures(model.requests[0]) == 0


async def test_a_picture_that_was_accepted_stays_if_a_later_picture_is_refused() -> None:
    model = Recorder(answer("a cat"), [refusal(*REFUSED[0])], answer("no dog"))
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model)
        await made.ask("look", attachments=[PICTURE])
        await made.ask("and here?", attachments=[PICTURE])
        assert [pictures(request) for request in model.requests] == [1, 2, 1]


async def test_an_old_picture_that_another_model_refuses_is_left_out() -> None:
    model = Recorder(answer("a cat"), [refusal(*REFUSED[0])], answer("hi"))
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model)
        await made.ask("look", attachments=[PICTURE])
        await made.ask("hello")
        assert [pictures(request) for request in model.requests] == [1, 1, 0]


async def test_a_refusal_that_pictures_have_not_caused_is_reported_and_changes_nothing() -> None:
    wrong = ProviderRequestError("unknown parameter", status=400)
    model = Recorder([wrong], [wrong], answer("hi"))
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model)
        await made.ask("look", attachments=[PICTURE])
        await made.ask("again")
        (error,) = made.client.payloads(events.SessionError)
        assert "unknown parameter" in error.message
        assert [pictures(request) for request in model.requests] == [1, 0, 1]
