"""The contract of all adapters: those of the server, adapters that extend them, and declared ones.

Adapters and recordings are found; see ``subjects.py``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, Final, cast

import anyio
import pytest

from jumpseat.adapters.adapter import Decoder
from jumpseat.adapters.transport.http import HttpModel, HttpTransport
from jumpseat.adapters.transport.sse import EventSplitter, JsonLinesDecoder, SseDecoder
from jumpseat.agent.blocks import (
    AssistantMessage,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import Completed, ModelEvent, ModelRequest
from jumpseat.errors import ProviderAuthError, ProviderError, ProviderRequestError
from tests.adapters.conversations import REQUESTS
from tests.adapters.golden import DATA, Outcome, check, plain_request
from tests.adapters.subjects import BASE_URL, KEY, SUBJECTS, Subject, resigned
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply

Case = tuple[Subject, str, str]

STREAMS: Final[list[Case]] = [(one, *found) for one in SUBJECTS for found in one.streams()]
WHOLES: Final[list[Case]] = [(one, *found) for one in SUBJECTS for found in one.wholes()]
OWN_STREAMS: Final = [case for case in STREAMS if case[1] == case[0].name]
SHORT: Final = 6000
"""The longest stream, in bytes, that is split at each byte; longer ones are split at each event."""


def _ids(case: Any) -> str:
    return "-".join(str(part) for part in cast("Case", case))


# --- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", STREAMS, ids=_ids)
def test_a_stream_in_pieces_of_one_byte_decodes_as_recorded(case: Case) -> None:
    subject, folder, file = case
    outcome = decoded(subject, folder, file, 1)

    assert (outcome.error is not None) == file.startswith("error_")
    assert_as_recorded(case, outcome)


@pytest.mark.parametrize("case", WHOLES, ids=_ids)
def test_a_whole_answer_decodes_as_recorded(case: Case) -> None:
    subject, folder, file = case
    outcome = Outcome()
    try:
        body = json.loads((DATA / folder / file).read_text(encoding="utf-8"))
        outcome.events += subject.begin(plain_request(stream=False)).decoder.whole(body)
    except ProviderError as error:
        outcome.error = error

    assert (outcome.error is not None) == file.startswith("error_")
    assert_as_recorded(case, outcome)


@pytest.mark.parametrize("case", OWN_STREAMS, ids=_ids)
def test_a_truncated_stream_fails_as_such_or_completes_with_the_decoded_text(case: Case) -> None:
    subject, folder, file = case
    content = (DATA / folder / file).read_bytes()
    whole = decoded(subject, folder, file, len(content)).joined()
    decoder, splitter = subject.begin(plain_request(stream=True)).decoder, splitter_of(file)
    said = Outcome()
    places = range(len(content)) if len(content) <= SHORT else ends_of_events(content)
    fed = 0

    for place in places:
        try:
            take(decoder, splitter, content[fed:place], said)
        except ProviderError:
            # The error is part of the recording.
            break
        fed = place
        broken = copy.deepcopy((decoder, splitter))
        outcome = Outcome()
        outcome.events += said.events
        try:
            for name, data in broken[1].finish():
                outcome.events += broken[0].feed(name, data)
            outcome.events += broken[0].finish()
        except ProviderError:
            assert whole["text"].startswith(outcome.joined()["text"])
            continue
        message = outcome.completed.message
        assert outcome.joined()["text"] == message.text(), place
        assert whole["text"].startswith(message.text()), place


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_two_concurrent_answers_do_not_mix(subject: Subject) -> None:
    files = [found for found in subject.streams() if not found[1].startswith("error_")][:4]
    alone = [decoded(subject, *found, 64) for found in files]
    readers = [(subject.begin(plain_request(stream=True)).decoder, splitter_of(file)) for _, file in files]
    left = [(DATA / folder / file).read_bytes() for folder, file in files]
    together = [Outcome() for _ in files]

    while any(left):
        for number, (decoder, splitter) in enumerate(readers):
            take(decoder, splitter, left[number][:7], together[number])
            left[number] = left[number][7:]
    for number, (decoder, splitter) in enumerate(readers):
        for name, data in splitter.finish():
            together[number].events += decoder.feed(name, data)
        together[number].events += decoder.finish()

    assert together == alone


# --- requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conversation", REQUESTS)
@pytest.mark.parametrize("subject", [one for one in SUBJECTS if one.twin], ids=str)
def test_an_extending_adapter_writes_the_same_requests(subject: Subject, conversation: str) -> None:
    assert subject.twin is not None
    request = resigned(REQUESTS[conversation], subject.twin, subject)
    before = copy.deepcopy(request)
    written = subject.begin(request).request

    expected = json.loads((DATA / subject.twin / "requests" / f"{conversation}.json").read_text(encoding="utf-8"))
    value = {"url": written.url, "headers": dict(written.headers), "body": written.body}
    assert json.loads(json.dumps(value)) == expected
    assert request == before


@pytest.mark.parametrize("conversation", REQUESTS)
@pytest.mark.parametrize("subject", [one for one in SUBJECTS if not one.twin], ids=str)
def test_every_other_adapter_writes_as_recorded(subject: Subject, conversation: str) -> None:
    request = REQUESTS[conversation]
    before = copy.deepcopy(request)
    written = subject.begin(request).request

    value = {"url": written.url, "headers": dict(written.headers), "body": written.body}
    check(DATA / subject.name / "requests" / f"{conversation}.json", json.loads(json.dumps(value)))
    assert request == before


@pytest.mark.parametrize("case", [case for case in STREAMS if not case[2].startswith("error_")], ids=_ids)
def test_signed_values_go_back_to_their_provider_only(case: Case) -> None:
    subject, folder, file = case
    answer = decoded(subject, folder, file, 4096).completed.message
    seals = set(sealed(answer))
    follow_up = following(answer)
    own = json.dumps(subject.begin(follow_up).request.body)
    stranger = resigned(follow_up, subject.name, subject)
    stranger.messages[:] = [foreign(message, subject.caller().signs_as) for message in stranger.messages]
    elsewhere = json.dumps(subject.begin(stranger).request.body)

    if folder in (subject.name, subject.twin):
        assert [seal for seal in seals if json.dumps(seal)[1:-1] not in own] == []
    assert [seal for seal in seals if json.dumps(seal)[1:-1] in elsewhere] == []
    for use in answer.tool_uses():
        assert f"result of {use.id}" in own
        assert f"result of {use.id}" in elsewhere


# --- calls --------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
async def test_two_concurrent_sessions_get_their_own_answers(subject: Subject) -> None:
    files = [found for found in subject.streams() if not found[1].startswith("error_")][:2]
    files = files * 2 if len(files) == 1 else files

    def answer(request: SeenRequest) -> Reply:
        number = 1 if "model-one" in request.path + request.body.decode() else 0
        folder, file = files[number]
        content = (DATA / folder / file).read_bytes()
        kind = "application/x-ndjson" if file.endswith(".jsonl") else "text/event-stream"
        return Reply([content[i : i + 50] for i in range(0, len(content), 50)], headers={"Content-Type": kind})

    got: dict[int, Any] = {}
    async with ModelServer(answer=answer) as server, HttpTransport() as transport:
        model = HttpModel(subject.caller(server.url), transport)

        async def one_session(number: int) -> None:
            name = "model-one" if number else "model-nil"
            wanted = ModelRequest(name, f"system-{number}", [UserMessage([TextBlock(f"prompt-{number}")])])
            async with model.stream(wanted) as events:
                got[number] = [event async for event in events]

        async with anyio.create_task_group() as group:
            for number in (0, 1):
                group.start_soon(one_session, number)

        for number, (folder, file) in enumerate(files):
            alone = await decoded_async(subject, folder, file, ModelRequest("m", "", [UserMessage([])]))
            assert completed(got[number]).message == completed(alone).message
        for request in server.requests:
            text = request.body.decode()
            assert ("system-0" in text) == ("prompt-0" in text) != ("prompt-1" in text)


@pytest.mark.anyio
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
async def test_an_error_status_becomes_the_matching_error_without_the_key(subject: Subject) -> None:
    said = {"error": {"message": f"no, {KEY}-0123456789 is not good", "type": "x"}}
    statuses: list[tuple[int, type[ProviderError], bool]] = [
        (401, ProviderAuthError, False),
        (400, ProviderRequestError, False),
        (429, ProviderError, True),
        (503, ProviderError, True),
        (529, ProviderError, True),
    ]
    replies = [json_reply(said, status=status, headers={"Retry-After": "7"}) for status, _, _ in statuses]
    async with ModelServer(*replies) as server, HttpTransport() as transport:
        model = HttpModel(subject.caller(server.url), transport)
        for status, kind, retryable in statuses:
            with pytest.raises(kind) as caught:
                await answered(model)
            assert (caught.value.status, caught.value.retryable) == (status, retryable)
            assert not retryable or caught.value.retry_after_s == 7
            assert KEY not in str(caught.value)


# --- the recordings -----------------------------------------------------------------------------------------------

WANTED: Final = frozenset(
    {
        "text",
        "a call",
        "calls in parallel",
        "reasoning",
        "usage",
        "an error",
        "an error in mid-answer",
        "streamed",
        "whole",
        "end_turn",
        "tool_use",
        "max_tokens",
    }
)


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_the_recordings_of_an_adapter_cover_all_kinds_of_answers(subject: Subject) -> None:
    assert WANTED - set(features(subject)) == set()


def features(subject: Subject) -> Iterator[str]:
    """Return the kinds of answers in the recordings of an adapter."""
    for folder, file in [*subject.streams(), *subject.wholes()]:
        expected = json.loads((DATA / folder / f"{file}.expected").read_text(encoding="utf-8"))
        yield "whole" if file.endswith(".json") else "streamed"
        if "error" in expected:
            yield "an error in mid-answer" if expected["said_before"]["text"] else "an error"
            continue
        blocks = expected["message"]["blocks"]
        calls = sum("arguments_json" in block for block in blocks)
        yield expected["stop_reason"]
        yield from ["a call"] * bool(calls) + ["calls in parallel"] * (calls > 1)
        yield from ["usage"] * bool(expected["usage"])
        yield from ["text"] * any("citations" in block for block in blocks)
        yield from ["reasoning"] * any(block.keys() == {"text", "provider", "provider_data"} for block in blocks)


async def answered(model: HttpModel) -> list[ModelEvent]:
    async with model.stream(REQUESTS["prompt"]) as events:
        return [event async for event in events]


# --- parts --------------------------------------------------------------------------------------------------------


def splitter_of(file: str) -> EventSplitter:
    return JsonLinesDecoder() if file.endswith(".jsonl") else SseDecoder()


def take(decoder: Decoder, splitter: EventSplitter, piece: bytes, into: Outcome) -> None:
    for name, data in splitter.feed(piece):
        into.events += decoder.feed(name, data)


def decoded(subject: Subject, folder: str, file: str, size: int) -> Outcome:
    """Split a recorded stream into pieces of ``size`` bytes."""
    content = (DATA / folder / file).read_bytes()
    decoder, splitter = subject.begin(plain_request(stream=True)).decoder, splitter_of(file)
    outcome = Outcome()
    try:
        for start in range(0, len(content), size):
            take(decoder, splitter, content[start : start + size], outcome)
        for name, data in splitter.finish():
            outcome.events += decoder.feed(name, data)
        outcome.events += decoder.finish()
    except ProviderError as error:
        outcome.error = error
    return outcome


async def decoded_async(subject: Subject, folder: str, file: str, request: ModelRequest) -> list[ModelEvent]:
    decoder, splitter = (await subject.caller(BASE_URL).prepare(request)).decoder, splitter_of(file)
    outcome = Outcome()
    take(decoder, splitter, (DATA / folder / file).read_bytes(), outcome)
    for name, data in splitter.finish():
        outcome.events += decoder.feed(name, data)
    return outcome.events + decoder.finish()


def assert_as_recorded(case: Case, outcome: Outcome) -> None:
    subject, folder, file = case
    path = DATA / folder / f"{file}.expected"
    if subject.name == folder:
        check(path, outcome.as_json())
        return
    expected = json.loads(path.read_text(encoding="utf-8"))
    assert outcome.as_json() == resigned(expected, folder, subject)


def ends_of_events(content: bytes) -> list[int]:
    return [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]


def completed(events: list[ModelEvent]) -> Completed:
    assert isinstance(events[-1], Completed)
    return events[-1]


SEALS: Final = frozenset(
    {"signature", "data", "encrypted_content", "thoughtSignature", "reasoning_opaque", "encrypted_index"}
)
"""Fields that only their provider can decode."""


def sealed(value: Any) -> Iterator[str]:
    """Return the values of an answer that only its provider can decode."""
    if isinstance(value, AssistantMessage):
        for block in value.blocks:
            yield from sealed(getattr(block, "provider_data", None))
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if key in SEALS and isinstance(item, str) and len(item) > 2:
                yield item
            yield from sealed(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from sealed(item)


def following(answer: AssistantMessage) -> ModelRequest:
    """Return the next request after an answer."""
    messages: list[Message] = [UserMessage([TextBlock("hi")]), answer]
    if answer.tool_uses():
        results = [ToolResultBlock(use.id, use.name, f"result of {use.id}") for use in answer.tool_uses()]
        messages.append(ToolMessage(results))
    else:
        messages.append(UserMessage([TextBlock("go on")]))
    return ModelRequest("m", "s", messages)


def foreign(message: Message, provider: str) -> Message:
    """Replace the signature ``provider`` in ``message`` by that of another provider."""
    if not isinstance(message, AssistantMessage):
        return message
    changed = copy.deepcopy(message)
    for block in changed.blocks:
        if isinstance(block, (ReasoningBlock, ToolUseBlock)) and block.provider == provider:
            block.provider = "stranger"
        elif getattr(block, "provider", None) == provider:
            block.provider = "stranger"  # pyright: ignore[reportAttributeAccessIssue]
    return changed
