"""The JSON of messages that is kept between the requests of a session, for every adapter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain, cycle, islice
from typing import Any, Final, cast

import pytest
from msgspec.structs import replace

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import load_adapter
from jumpseat.agent.blocks import AssistantMessage, Message, TextBlock, UserMessage
from jumpseat.agent.encoded_history import (
    MAX_TAIL,
    MIN_MESSAGES,
    MIN_PART_BYTES,
    WrittenBudget,
    WrittenMessages,
    encode,
    encode_in_parts,
    plain,
)
from jumpseat.agent.model import ModelRequest, ToolSchema
from tests.adapters.conversations import REQUESTS
from tests.adapters.subjects import SUBJECTS, Subject

MESSAGES: Final[list[Message]] = [*chain.from_iterable(request.messages for request in REQUESTS.values())]
pytestmark = [pytest.mark.anyio, pytest.mark.thorough]

KEEPING: Final = ("openai", "openai_responses", "anthropic", "gemini", "gemini_interactions", "ollama")
"""One adapter of each wire that keeps what it writes."""

LONG: Final = 3 * (MIN_MESSAGES + MAX_TAIL)


def long_conversation(count: int) -> list[Message]:
    """Return ``count`` messages: those of all recorded requests, one after the other, again and again."""
    return [replace(message) for message in islice(cycle(MESSAGES), count)]


def sent(body: dict[str, Any]) -> Any:
    """Return a body as it is sent."""
    return json.loads(encode(body))


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
async def test_a_growing_conversation_is_sent_as_if_it_was_written_anew(subject: Subject) -> None:
    written = WrittenMessages(WrittenBudget())
    conversation = long_conversation(LONG)
    grown = [conversation[:count] for count in (MIN_MESSAGES, MIN_MESSAGES + 1, LONG - MAX_TAIL - 1, LONG)]
    shortened = conversation[: LONG - 20]
    rewound = [*conversation[:70], UserMessage([TextBlock("Instead:")]), *conversation[75:]]
    for messages in (*grown, shortened, rewound, conversation[:3]):
        request = ModelRequest("m-1", "Be brief.", messages)

        kept = (await subject.prepare(replace(request, written=written))).request.body

        anew = (await subject.prepare(request)).request.body
        assert sent(kept) == sent(anew)
        assert plain(kept) == sent(anew)


@pytest.mark.parametrize(
    "name", ["openai", "openai_responses", "anthropic", "gemini", "gemini_interactions", "ollama"]
)
def test_what_is_sent_again_is_not_written_again(name: str) -> None:
    adapter, written = load_adapter(name), WrittenMessages(WrittenBudget())
    request = ModelRequest("m-1", "Be brief.", long_conversation(LONG), written=written)
    adapter.request(Endpoint("http://h"), request)
    size = written.size

    first, second = (adapter.request(Endpoint("http://h"), request).body for _ in range(2))

    assert written.size == size > 0
    assert encode(first) == encode(second)
    assert count_parts(second) < count_parts(sent(second)) / 3
    rewound = [UserMessage([TextBlock("Instead:")]), *request.messages[1:]]
    adapter.request(Endpoint("http://h"), replace(request, messages=rewound))
    fresh = WrittenMessages(WrittenBudget())
    adapter.request(Endpoint("http://h"), replace(request, messages=rewound, written=fresh))
    assert written.size == fresh.size


def count_parts(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(count_parts, cast("dict[str, Any]", value).values()))
    return sum(map(count_parts, cast("list[Any]", value))) if isinstance(value, list) else 0


@pytest.mark.parametrize("name", KEEPING)
def test_a_request_repeats_the_bytes_of_the_one_before_it(name: str) -> None:
    adapter, endpoint = load_adapter(name), Endpoint("http://h", options={"prompt_caching": False})
    if name != "anthropic":
        endpoint = Endpoint("http://h")
    written = WrittenMessages(WrittenBudget())
    messages: list[Message] = []
    before = b""
    for turn in range(MIN_MESSAGES):
        messages.append(UserMessage([TextBlock(f"Question {turn} — {'x' * turn}")]))
        request = ModelRequest("m-1", "Be brief.", [*messages], written=written)
        body = adapter.request(endpoint, request).body
        conversation = next(body[key] for key in ("messages", "input", "contents") if key in body)
        now = encode(conversation)
        assert now.startswith(before)
        before = now.removesuffix(b"]")
        messages.append(AssistantMessage([TextBlock(f"Answer {turn}")]))


def test_longer_kept_values_are_parts_of_a_request_instead_of_copies() -> None:
    schema = ToolSchema.of({"type": "object", "properties": {"a\0": {"description": "x" * MIN_PART_BYTES}}})
    short = ToolSchema.of({"type": "object"})
    body = {"a": "\0", "tools": [{"schema": schema}, {"schema": short}, {"schema": schema}], "é": 1}

    parts = encode_in_parts(body)

    assert [part is schema.json for part in parts] == [False, True, False, True, False]
    assert b"".join(parts) == encode(plain(body)) == encode(body)


def test_a_text_that_is_not_unicode_is_sent_with_a_replacement() -> None:
    adapter, written = load_adapter("openai"), WrittenMessages(WrittenBudget())
    messages: list[Message] = [UserMessage([TextBlock(f"{number} \ud800")]) for number in range(MIN_MESSAGES)]

    body = adapter.request(Endpoint("http://h"), ModelRequest("m-1", "", messages, written=written)).body

    assert sent(body)["messages"][1] == {"role": "user", "content": "1 ?"}


def test_the_conversation_that_was_not_sent_for_the_longest_time_is_forgotten_first() -> None:
    conversation = long_conversation(LONG)
    once = size_of(conversation)
    budget = WrittenBudget(limit=2 * once)
    written = [WrittenMessages(budget) for _ in range(3)]

    for owner in (written[0], written[1], written[0], written[2]):
        write(owner, conversation)

    assert [owner.size for owner in written] == [once, 0, once]
    assert budget.size == 2 * once
    write(written[1], conversation)
    assert [owner.size for owner in written] == [0, once, once]


def test_the_budget_of_a_session_that_ends_is_free_again() -> None:
    budget = WrittenBudget()
    write(written := WrittenMessages(budget), long_conversation(LONG))
    assert budget.size > 0

    del written

    assert budget.size == 0


def write(owner: WrittenMessages, messages: Sequence[Message]) -> None:
    request = ModelRequest("m-1", "", [*messages], written=owner)
    load_adapter("openai_responses").request(Endpoint("http://h"), request)
    owner.end()


def size_of(messages: Sequence[Message]) -> int:
    write(owner := WrittenMessages(WrittenBudget()), messages)
    return owner.size
