"""Requests of the adapters, validated with the types of the providers' own SDKs.

A body may have no unknown field: validation must leave it unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import load_adapter
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelRequest
from tests.adapters.closed_types import closed
from tests.adapters.golden import DATA
from tests.adapters.histories import random_bodies
from tests.adapters.provider_sdks import import_sdk
from tests.support.cases import all_cases

# The adapter, the SDK's types of a streamed and of a whole request, and the fields that they lack.
TYPES: Final[list[tuple[str, str, str, str, frozenset[str]]]] = [
    (
        "mistral",
        "mistralai.client.models",
        "ChatCompletionStreamRequest",
        "ChatCompletionRequest",
        frozenset[str](),
    ),
    # Only the documentation has presets.
    ("openrouter", "openrouter.components", "ChatRequest", "ChatRequest", frozenset({"preset"})),
    # The client lacks `truncate`, and drops references in schemas and ids of calls; the server accepts them.
    (
        "ollama",
        "ollama._types",
        "ChatRequest",
        "ChatRequest",
        frozenset({"$ref", "id", "type", "index", "tool_call_id", "truncate"}),
    ),
]


@pytest.mark.parametrize(
    ("name", "module", "streamed", "whole", "left_out"), TYPES, ids=[declared[0] for declared in TYPES]
)
def test_requests_match_the_types_of_the_providers_sdks(
    name: str, module: str, streamed: str, whole: str, left_out: frozenset[str]
) -> None:
    types = import_sdk(module)
    for path in sorted((DATA / name / "requests").glob("*.json")):
        body = json.loads(path.read_text(encoding="utf-8"))["body"]
        read = getattr(types, streamed if body["stream"] else whole).model_validate(body)
        written = read.model_dump(mode="json", by_alias=True, exclude_none=True)

        assert list(_lost(body, written, left_out)) == [], path.name


def _lost(sent: Any, kept: Any, left_out: frozenset[str], where: str = "") -> Iterator[str]:
    """Return the paths where ``kept`` differs from what was sent."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        other = cast("dict[str, Any]", kept)
        for key, value in cast("dict[str, Any]", sent).items():
            if key in other:
                yield from _lost(value, other[key], left_out, f"{where}.{key}")
            elif key not in left_out:
                yield f"{where}.{key}"
    elif isinstance(sent, list) and isinstance(kept, list):
        pairs = zip(cast("list[Any]", sent), cast("list[Any]", kept), strict=True)
        for index, (pair, same) in enumerate(pairs):
            yield from _lost(pair, same, left_out, f"{where}[{index}]")
    elif sent != kept:
        yield f"{where}: {sent!r} became {kept!r}"


CHAT: Final = "openai.types.chat.completion_create_params:CompletionCreateParams"
RESPONSES: Final = "openai.types.responses.response_create_params:ResponseCreateParams"
MESSAGES: Final = "anthropic.types.beta.message_create_params:MessageCreateParams"

THOUGHTS: Final = frozenset({"reasoning_content", "reasoning_details", "extra_content"})

# The adapter, its types, and the documented fields that the SDK lacks.
PARAMS: Final[list[tuple[str, str, frozenset[str]]]] = [
    ("openai", CHAT, THOUGHTS),
    ("openai_compatible", CHAT, THOUGHTS),
    ("azure", CHAT, frozenset[str]()),
    ("copilot", CHAT, frozenset({"reasoning_opaque", "reasoning_text"})),
    ("deepseek", CHAT, frozenset({"thinking", "reasoning_content"})),
    ("githubmodels", CHAT, frozenset[str]()),
    ("huggingface", CHAT, frozenset[str]()),
    ("kimi", CHAT, frozenset({"thinking", "reasoning_content"})),
    ("novita", CHAT, frozenset({"top_k", "min_p", "repetition_penalty"})),
    ("xai", CHAT, frozenset[str]()),
    ("openai_responses", RESPONSES, frozenset[str]()),
    ("azure_responses", RESPONSES, frozenset[str]()),
    ("copilot_responses", RESPONSES, frozenset[str]()),
    # For models before 4.7, and other servers with Anthropic's API.
    ("anthropic", MESSAGES, frozenset({"temperature", "top_p", "top_k"})),
    ("copilot_messages", MESSAGES, frozenset({"temperature", "top_p", "top_k"})),
]


@pytest.mark.parametrize("types", [CHAT, RESPONSES, MESSAGES], ids=["chat", "responses", "messages"])
def test_requests_have_no_field_unknown_to_the_providers_sdks(types: str) -> None:
    module, _, kind = types.partition(":")
    params = import_sdk(module)
    streamed, whole = (closed(getattr(params, f"{kind}{how}")) for how in ("Streaming", "NonStreaming"))

    with all_cases() as case:
        for name, its_types, own in PARAMS:
            for path in sorted((DATA / name / "requests").glob("*.json")) if its_types == types else ():
                with case(f"{name}/{path.name}"):
                    body = _without(own, json.loads(path.read_text(encoding="utf-8"))["body"])
                    (streamed if body["stream"] else whole).validate_python(body)


RANDOM_HISTORIES: Final = 300


@pytest.mark.parametrize("wire", ["openai", "openai_responses", "anthropic"])
def test_requests_of_random_histories_match_the_types_of_params(wire: str) -> None:
    types, own = next((types, own) for name, types, own in PARAMS if name == wire)
    module, _, kind = types.partition(":")
    params = import_sdk(module)
    streamed, whole = (closed(getattr(params, f"{kind}{how}")) for how in ("Streaming", "NonStreaming"))

    for body in random_bodies(wire, RANDOM_HISTORIES, _body_of(wire)):
        (streamed if body["stream"] else whole).validate_python(_without(own, body))


@pytest.mark.parametrize(
    ("name", "module", "streamed", "whole", "left_out"), TYPES, ids=[declared[0] for declared in TYPES]
)
def test_requests_of_random_histories_match_the_types_of_models(
    name: str, module: str, streamed: str, whole: str, left_out: frozenset[str]
) -> None:
    types = import_sdk(module)
    for body in random_bodies(name, RANDOM_HISTORIES, _body_of(name)):
        read = getattr(types, streamed if body["stream"] else whole).model_validate(body)
        written = read.model_dump(mode="json", by_alias=True, exclude_none=True)

        assert list(_lost(body, written, left_out)) == []


def test_requests_of_random_histories_match_the_types_of_gemini() -> None:
    content = import_sdk("google.genai.types").Content
    for body in random_bodies("gemini", RANDOM_HISTORIES, _body_of("gemini")):
        for message in body["contents"]:
            content.model_validate(message)


def _body_of(wire: str) -> Callable[[ModelRequest], JsonObject]:
    adapter = load_adapter(wire)
    return lambda request: adapter.request(Endpoint("http://h/v1"), request).body


def _without(own: frozenset[str], value: Any) -> Any:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {key: _without(own, item) for key, item in table.items() if key not in own}
    return [_without(own, item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
