"""The contract of all adapters: those of the server, adapters that extend them, and declared ones.

Adapters and recordings are found; see ``subjects.py``. One test goes through all recordings of an adapter.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, cast

import anyio
import pytest

from jumpseat.adapters.adapter import Decoder, Endpoint
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.adapters.transport.http import HttpModel, HttpTransport
from jumpseat.adapters.transport.sse import EventSplitter
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
from tests.adapters.golden import (
    DATA,
    Outcome,
    check,
    end,
    plain_request,
    read_stream,
    read_whole,
    splitter_of,
    take,
)
from tests.adapters.subjects import SUBJECTS, Subject, resigned
from tests.support.cases import all_cases
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]

RECORDED: Final = [subject for subject in SUBJECTS if subject.own_streams()]
SHORT: Final = 300
"""The longest stream, in bytes, that is truncated at each byte.

Longer ones are truncated at the end and in the middle of each line.
"""


# --- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
async def test_recorded_answers_decode_as_expected(subject: Subject) -> None:
    with all_cases() as case:
        for path in subject.streams():
            with case(name_of(path)):
                outcome = await decoded(subject, path, [path.read_bytes()])
                assert_as_expected(subject, path, outcome)
                if outcome.error is None:
                    assert_deltas_add_up(outcome)
        for path in subject.wholes():
            with case(name_of(path)):
                decoder = (await subject.prepare(plain_request(stream=False))).decoder
                body = json.loads(path.read_text(encoding="utf-8"))
                assert_as_expected(subject, path, read_whole(decoder, body))


@pytest.mark.parametrize("subject", RECORDED, ids=str)
async def test_streams_decode_identically_wherever_they_are_split(subject: Subject) -> None:
    with all_cases() as case:
        for path in subject.own_streams():
            with case(path.name):
                content = path.read_bytes()
                whole = await decoded(subject, path, [content])
                chance = random.Random(path.name)
                cuts = [[chance.randrange(len(content)) for _ in range(chance.randrange(1, 12))] for _ in range(20)]
                for places in [range(len(content)), *cuts]:
                    borders = [0, *sorted(places), len(content)]
                    pieces = [content[start:stop] for start, stop in pairwise(borders)]
                    assert await decoded(subject, path, pieces) == whole


@pytest.mark.thorough
@pytest.mark.parametrize("subject", RECORDED, ids=str)
async def test_truncated_streams_fail_as_such_or_complete_with_the_decoded_text(subject: Subject) -> None:
    with all_cases() as case:
        for path in subject.own_streams():
            with case(path.name):
                await check_truncations(subject, path, path.read_bytes())


async def check_truncations(subject: Subject, path: Path, content: bytes) -> None:
    """Truncate a recorded stream at many places."""
    whole = (await decoded(subject, path, [content])).joined()
    decoder, splitter = await reader(subject, path)
    said = Outcome()
    fed = 0

    for place in truncations(content):
        try:
            take(decoder, splitter, content[fed:place], said)
        except ProviderError:
            # The error is part of the recording.
            break
        fed = place
        cut_decoder, cut_splitter = copy.deepcopy((decoder, splitter))
        outcome = Outcome()
        outcome.events += said.events
        try:
            end(cut_decoder, cut_splitter, outcome)
        except ProviderError:
            assert whole["text"].startswith(outcome.joined()["text"]), place
            continue
        message = outcome.completed.message
        assert outcome.joined()["text"] == message.text(), place
        assert whole["text"].startswith(message.text()), place


async def test_concurrent_answers_do_not_mix() -> None:
    with all_cases() as case:
        for subject in SUBJECTS:
            with case(subject.name):
                paths = [path for path in subject.streams() if not path.name.startswith("error_")][:4]
                alone = [await decoded(subject, path, [path.read_bytes()]) for path in paths]
                readers = [await reader(subject, path) for path in paths]
                left = [path.read_bytes() for path in paths]
                together = [Outcome() for _ in paths]

                while any(left):
                    for number, (decoder, splitter) in enumerate(readers):
                        take(decoder, splitter, left[number][:7], together[number])
                        left[number] = left[number][7:]
                for number, (decoder, splitter) in enumerate(readers):
                    end(decoder, splitter, together[number])

                assert together == alone


def test_decoders_turn_any_json_into_events_or_expected_errors() -> None:
    """Put odd values into every place of recorded streams: the HTTP layer converts errors to provider errors."""
    odd: list[Any] = [None, 0, -1, 1.5, True, "", "x", [], [None], {}, {"a": None}]
    with all_cases() as case:
        for name in PROVIDERS:
            chance = random.Random(7)
            frames = [
                line.removeprefix("data: ")
                for path in sorted((DATA / name).glob("*"))
                if path.suffix in (".sse", ".jsonl")
                for line in path.read_text(encoding="utf-8").splitlines()
                if line.startswith(("data: {", "{")) and line.endswith("}")
            ]
            for frame in frames:
                broken = json.dumps(spoilt(json.loads(frame), chance, odd))
                decoder = load_adapter(name).decoder(plain_request(stream=True))
                with (
                    case(f"{name}: {broken}"),
                    suppress(ProviderError, LookupError, TypeError, ValueError, AttributeError),
                ):
                    decoder.feed(None, broken)
                    decoder.finish()


def test_an_empty_stream_fails() -> None:
    with all_cases() as case:
        for name in PROVIDERS:
            with case(name), pytest.raises(ProviderError):
                load_adapter(name).decoder(plain_request(stream=True)).finish()


# --- requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
async def test_requests_are_written_as_recorded(subject: Subject) -> None:
    folder = subject.twin or subject.name
    with all_cases() as case:
        for conversation, recorded in REQUESTS.items():
            with case(conversation):
                request = resigned(recorded, folder, subject) if subject.twin else recorded
                before = copy.deepcopy(request)
                written = (await subject.prepare(request)).request

                value = {"url": written.url, "headers": dict(written.headers), "body": written.body}
                value = json.loads(json.dumps(value))
                path = DATA / folder / "requests" / f"{conversation}.json"
                if subject.twin:
                    assert value == json.loads(path.read_text(encoding="utf-8"))
                else:
                    check(path, value)
                assert request == before, "an adapter must not change the conversation"
                assert (await subject.prepare(request)).request == written, "an adapter must be pure"


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
async def test_signed_values_go_back_to_their_provider_only(subject: Subject) -> None:
    with all_cases() as case:
        for path in subject.streams():
            if path.name.startswith("error_"):
                continue
            with case(name_of(path)):
                answer = (await decoded(subject, path, [path.read_bytes()])).completed.message
                seals = set(sealed(answer))
                follow_up = following(answer)
                own = json.dumps((await subject.prepare(follow_up)).request.body)
                follow_up.messages[:] = [
                    foreign(message, subject.caller().signs_as) for message in follow_up.messages
                ]
                elsewhere = json.dumps((await subject.prepare(follow_up)).request.body)

                if path.parent.name in (subject.name, subject.twin):
                    assert [seal for seal in seals if json.dumps(seal)[1:-1] not in own] == []
                assert [seal for seal in seals if json.dumps(seal)[1:-1] in elsewhere] == []
                for use in answer.tool_uses():
                    assert f"result of {use.id}" in own
                    assert f"result of {use.id}" in elsewhere


def test_headers_of_the_request_win_over_the_endpoint_and_the_endpoint_over_the_adapter() -> None:
    prompt = REQUESTS["prompt"]
    request = ModelRequest(prompt.model, prompt.system, prompt.messages, headers={"x-a": "2"})
    endpoint = Endpoint("http://h", bearer_token="t", headers={"X-A": "1", "x-b": "1", "AUTHORIZATION": "mine"})
    with all_cases() as case:
        for name in PROVIDERS:
            with case(name):
                written = load_adapter(name).request(endpoint, request)
                headers = {key.lower(): value for key, value in written.headers.items()}
                assert len(headers) == len(written.headers)
                assert (headers["x-a"], headers["x-b"], headers["authorization"]) == ("2", "1", "mine")


def test_without_a_key_none_is_written_and_no_repr_shows_one() -> None:
    keyed = Endpoint("http://h", api_key="top-secret-1", bearer_token="top-secret-2", headers={"k": "top-secret-3"})
    assert "top-secret" not in repr(keyed)
    with all_cases() as case:
        for name in PROVIDERS:
            with case(name):
                adapter = load_adapter(name)
                bare = {key.lower() for key in adapter.request(Endpoint("http://h"), REQUESTS["prompt"]).headers}
                assert not {"authorization", "x-api-key", "x-goog-api-key", "api-key"} & bare
                assert "top-secret" not in repr(adapter.request(keyed, REQUESTS["prompt"]))


# --- calls --------------------------------------------------------------------------------------------------------


async def test_two_concurrent_sessions_get_their_own_answers() -> None:
    with all_cases() as case:
        for subject in SUBJECTS:
            with case(subject.name):
                await check_concurrent_sessions(subject)


async def check_concurrent_sessions(subject: Subject) -> None:
    paths = [path for path in subject.streams() if not path.name.startswith("error_")][:2]
    paths = paths * 2 if len(paths) == 1 else paths

    def answer(request: SeenRequest) -> Reply:
        path = paths[1 if "model-one" in request.path + request.body.decode() else 0]
        content = path.read_bytes()
        kind = "application/x-ndjson" if path.suffix == ".jsonl" else "text/event-stream"
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

    for number, path in enumerate(paths):
        call = await subject.prepare(ModelRequest("m", "", [UserMessage([])]))
        alone = read_stream(call.decoder, [path.read_bytes()], lines=path.suffix == ".jsonl")
        assert completed(got[number]).message == alone.completed.message
    for request in server.requests:
        text = request.body.decode()
        assert ("system-0" in text) == ("prompt-0" in text) != ("prompt-1" in text)


STATUSES: Final[list[tuple[int, type[ProviderError], bool]]] = [
    (401, ProviderAuthError, False),
    (400, ProviderRequestError, False),
    (429, ProviderError, True),
    (503, ProviderError, True),
    (529, ProviderError, True),
]


async def test_an_error_status_becomes_the_matching_error_without_the_key() -> None:
    key = "the-key-0123456789"
    said = {"error": {"message": f"no, {key} is not good", "type": "x"}}
    replies = [json_reply(said, status=status, headers={"Retry-After": "7"}) for status, _, _ in STATUSES]
    async with HttpTransport() as transport:
        with all_cases() as case:
            for subject in SUBJECTS:
                async with ModelServer(*replies) as server:
                    model = HttpModel(subject.caller(server.url, key), transport)
                    for status, kind, retryable in STATUSES:
                        with case(f"{subject}: {status}"):
                            with pytest.raises(kind) as caught:
                                await answered(model)
                            assert (caught.value.status, caught.value.retryable) == (status, retryable)
                            assert not retryable or caught.value.retry_after_s == 7
                            assert key not in str(caught.value)


async def answered(model: HttpModel) -> list[ModelEvent]:
    async with model.stream(REQUESTS["prompt"]) as events:
        return [event async for event in events]


@pytest.mark.thorough
@pytest.mark.parametrize("subject", RECORDED, ids=str)
async def test_streams_over_http_decode_identically_however_they_are_sent(subject: Subject) -> None:
    """Serve each stream in random pieces, with other line ends, comments and content types."""
    async with HttpTransport() as transport:
        with all_cases() as case:
            for path in subject.own_streams():
                with case(path.name):
                    alone = await decoded(subject, path, [path.read_bytes()])
                    for headers, content in sent_in_all_ways(path):
                        outcome = await over_http(subject, transport, headers, cut(content, path.name))
                        assert outcome.joined() == alone.joined()
                        assert type(outcome.error) is type(alone.error)
                        if alone.error is None:
                            assert outcome.as_json() == alone.as_json()


def sent_in_all_ways(path: Path) -> Iterator[tuple[dict[str, str], bytes]]:
    """Return the headers and bytes of a recorded stream, as servers send it that differ in details."""
    content = path.read_bytes()
    if path.suffix == ".jsonl":
        yield {"Content-Type": "application/x-ndjson"}, content
        yield {"Content-Type": "application/x-ndjson"}, content.replace(b"\n", b"\r\n")
        return
    events = {"Content-Type": "text/event-stream; charset=utf-8"}
    plain = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    yield events, content
    yield events, plain.replace(b"\n", b"\r\n")
    yield events, b"\xef\xbb\xbf" + plain.replace(b"data: ", b"data:").replace(b"event: ", b"event:")
    yield events, b": connected\n\n" + plain.replace(b"\n\n", b"\n\n: ping\n\n")
    if plain.startswith((b"data", b"event", b":")):
        yield {}, plain


def cut(content: bytes, seed: str) -> list[bytes]:
    chance = random.Random(seed)
    places = sorted({chance.randrange(1, len(content)) for _ in range(12)} if len(content) > 1 else ())
    return [content[start:end] for start, end in pairwise([0, *places, len(content)])]


async def over_http(
    subject: Subject, transport: HttpTransport, headers: dict[str, str], pieces: list[bytes]
) -> Outcome:
    """Decode a stream that a server sends in pieces."""
    outcome = Outcome()
    async with ModelServer(Reply(pieces, headers=headers)) as server:
        model = HttpModel(subject.caller(server.url), transport)
        try:
            async with model.stream(plain_request(stream=True)) as events:
                async for event in events:
                    outcome.events.append(event)
        except ProviderError as error:
            outcome.error = error
    return outcome


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


def test_the_recordings_of_an_adapter_cover_all_kinds_of_answers() -> None:
    missing = {subject.name: WANTED - set(features(subject)) for subject in SUBJECTS}
    assert {name: kinds for name, kinds in missing.items() if kinds} == {}


def features(subject: Subject) -> Iterator[str]:
    """Return the kinds of answers in the recordings of an adapter."""
    for path in [*subject.streams(), *subject.wholes()]:
        expected = json.loads(expected_file(path).read_text(encoding="utf-8"))
        yield "whole" if path.suffix == ".json" else "streamed"
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


# --- parts --------------------------------------------------------------------------------------------------------


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def expected_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.expected")


async def reader(subject: Subject, path: Path) -> tuple[Decoder, EventSplitter]:
    """Return the decoder and the splitter for a recorded stream."""
    decoder = (await subject.prepare(plain_request(stream=True))).decoder
    return decoder, splitter_of(lines=path.suffix == ".jsonl")


async def decoded(subject: Subject, path: Path, pieces: Iterable[bytes]) -> Outcome:
    """Decode a recorded stream that arrives in ``pieces``."""
    decoder = (await subject.prepare(plain_request(stream=True))).decoder
    return read_stream(decoder, pieces, lines=path.suffix == ".jsonl")


def truncations(content: bytes) -> Iterable[int]:
    """Return the sizes to which a stream is truncated."""
    if len(content) <= SHORT:
        return range(len(content))
    ends = [0, *(place + 1 for place, byte in enumerate(content) if byte == ord("\n"))]
    within = [(start + end) // 2 for start, end in pairwise(ends)]
    return sorted({*ends, *within})


def assert_as_expected(subject: Subject, path: Path, outcome: Outcome) -> None:
    assert (outcome.error is not None) == path.name.startswith("error_")
    folder = path.parent.name
    if subject.name == folder:
        check(expected_file(path), outcome.as_json())
    else:
        expected = json.loads(expected_file(path).read_text(encoding="utf-8"))
        assert outcome.as_json() == resigned(expected, folder, subject)


def assert_deltas_add_up(outcome: Outcome) -> None:
    """Assert that the deltas add up to the one completed message."""
    assert [type(event) for event in outcome.events].count(Completed) == 1
    message = outcome.completed.message
    calls = message.tool_uses()
    assert outcome.joined() == {
        "text": message.text(),
        "reasoning": message.reasoning(),
        "calls": {use.id: [use.name, use.arguments_json] for use in calls},
    }
    assert all(use.id and use.name for use in calls)
    assert len({use.id for use in calls}) == len(calls)
    assert not calls or outcome.completed.stop_reason in ("tool_use", "max_tokens")


def completed(events: list[ModelEvent]) -> Completed:
    assert isinstance(events[-1], Completed)
    return events[-1]


def spoilt(value: Any, chance: random.Random, odd: Sequence[Any]) -> Any:
    """Replace one or more parts of ``value`` by odd values."""
    if chance.random() < 0.15:
        return chance.choice(odd)
    if isinstance(value, dict):
        return {key: spoilt(item, chance, odd) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [spoilt(item, chance, odd) for item in cast("list[Any]", value)]
    return value


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
