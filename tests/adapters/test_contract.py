"""The contract of all adapters. Adapters and files are found, not listed."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.agent.model import Completed
from jumpseat.errors import ConfigError, ProviderError
from tests.adapters.conversations import REQUESTS
from tests.adapters.golden import DATA, Outcome, check, decode_stream, decode_whole, plain_request, recorded

STREAMS = recorded(".sse", ".jsonl")
WHOLES = recorded(".json")
ENDPOINT = Endpoint(
    "http://127.0.0.1:1/base",
    api_key="the-key",
    headers={"X-Mine": "endpoint", "user-agent": "mine/1"},
    user_agent="jumpseat/0",
)


def _ids(case: tuple[str, str]) -> str:
    return "/".join(case)


@pytest.mark.parametrize("case", STREAMS, ids=_ids)
def test_a_recorded_stream_decodes_as_expected(case: tuple[str, str]) -> None:
    path = DATA / case[0] / case[1]
    outcome = _decoded(case)

    assert (outcome.error is not None) == path.name.startswith("error_")
    check(path.with_name(f"{path.name}.expected"), outcome.as_json())


@pytest.mark.parametrize("case", STREAMS, ids=_ids)
def test_a_stream_decodes_identically_wherever_it_is_split(case: tuple[str, str]) -> None:
    path = DATA / case[0] / case[1]
    content = path.read_bytes()
    whole = _decoded(case)

    def decoded(cuts: list[int]) -> Outcome:
        borders = [0, *sorted(cuts), len(content)]
        pieces = [content[start:end] for start, end in pairwise(borders)]
        return decode_stream(load_adapter(case[0]), pieces, lines=path.suffix == ".jsonl")

    assert decoded(list(range(len(content)))) == whole
    chance = random.Random(path.name)
    for _ in range(20):
        assert decoded([chance.randrange(len(content)) for _ in range(chance.randrange(1, 12))]) == whole


@pytest.mark.parametrize("case", [c for c in STREAMS if not c[1].startswith("error_")], ids=_ids)
def test_the_deltas_of_a_stream_add_up_to_its_one_completed_message(case: tuple[str, str]) -> None:
    outcome = _decoded(case)

    assert [type(event) for event in outcome.events].count(Completed) == 1
    message = outcome.completed.message
    assert outcome.joined() == {
        "text": message.text(),
        "reasoning": message.reasoning(),
        "calls": {use.id: [use.name, use.arguments_json] for use in message.tool_uses()},
    }
    ids = [use.id for use in message.tool_uses()]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert all(use.name for use in message.tool_uses())
    if ids:
        assert outcome.completed.stop_reason in ("tool_use", "max_tokens")


@pytest.mark.parametrize("case", WHOLES, ids=_ids)
def test_a_recorded_whole_answer_decodes_as_expected(case: tuple[str, str]) -> None:
    path = DATA / case[0] / case[1]
    outcome = decode_whole(load_adapter(case[0]), json.loads(path.read_text(encoding="utf-8")))

    assert (outcome.error is not None) == path.name.startswith("error_")
    check(path.with_name(f"{path.name}.expected"), outcome.as_json())


@pytest.mark.parametrize("conversation", REQUESTS)
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_request_is_written_as_recorded(name: str, conversation: str) -> None:
    request = REQUESTS[conversation]
    before = copy.deepcopy(request)
    written = load_adapter(name).request(ENDPOINT, request)

    value = {"url": written.url, "headers": dict(written.headers), "body": written.body}
    check(DATA / name / "requests" / f"{conversation}.json", json.loads(json.dumps(value)))
    assert request == before, "an adapter must not change the conversation"
    assert load_adapter(name).request(ENDPOINT, request) == written, "an adapter must be pure"


@pytest.mark.parametrize("name", PROVIDERS)
def test_headers_of_the_request_win_over_the_endpoint_and_the_endpoint_over_the_adapter(name: str) -> None:
    request = REQUESTS["prompt"]
    written = load_adapter(name).request(
        Endpoint("http://h", bearer_token="t", headers={"X-A": "1", "x-b": "1", "AUTHORIZATION": "mine"}),
        type(request)(request.model, request.system, request.messages, headers={"x-a": "2"}),
    )

    headers = {key.lower(): value for key, value in written.headers.items()}
    assert len(headers) == len(written.headers)
    assert (headers["x-a"], headers["x-b"], headers["authorization"]) == ("2", "1", "mine")


@pytest.mark.parametrize("name", PROVIDERS)
def test_without_a_key_none_is_written_and_no_repr_shows_one(name: str) -> None:
    adapter = load_adapter(name)
    bare = adapter.request(Endpoint("http://h"), REQUESTS["prompt"])
    keyed = Endpoint("http://h", api_key="top-secret-1", bearer_token="top-secret-2", headers={"k": "top-secret-3"})

    assert not {"authorization", "x-api-key", "x-goog-api-key", "api-key"} & {key.lower() for key in bare.headers}
    assert "top-secret" not in repr(keyed) + repr(adapter.request(keyed, REQUESTS["prompt"]))


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_adapter_has_its_name_and_an_empty_stream_fails(name: str) -> None:
    adapter = load_adapter(name)

    assert adapter.name == name
    with pytest.raises(ProviderError):
        adapter.decoder(plain_request(stream=True)).finish()


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_decoder_turns_any_json_into_events_or_an_expected_error(name: str) -> None:
    """Put odd values into every place of a recorded stream: the HTTP layer converts errors to provider errors."""
    chance = random.Random(7)
    odd: list[Any] = [None, 0, -1, 1.5, True, "", "x", [], [None], {}, {"a": None}]
    frames = [
        line.removeprefix("data: ")
        for path in sorted((DATA / name).glob("*"))
        if path.suffix in (".sse", ".jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith(("data: {", "{")) and line.endswith("}")
    ]
    for frame in frames:
        decoder = load_adapter(name).decoder(plain_request(stream=True))
        try:
            decoder.feed(None, json.dumps(_spoilt(json.loads(frame), chance, odd)))
            decoder.finish()
        except (ProviderError, LookupError, TypeError, ValueError, AttributeError):
            pass


def test_an_unknown_adapter_is_named_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown adapter 'opnai', expected one of .*anthropic, azure.*copilot.*openai"
    ):
        load_adapter("opnai")


def test_importing_the_package_imports_no_adapter(tmp_path: Path) -> None:
    code = "import sys, jumpseat.adapters; print({'httpx', 'orjson', 'yaml', 'pydantic'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert shown.stdout.strip() == "set()"


def _decoded(case: tuple[str, str]) -> Outcome:
    path = DATA / case[0] / case[1]
    return decode_stream(load_adapter(case[0]), [path.read_bytes()], lines=path.suffix == ".jsonl")


def _spoilt(value: Any, chance: random.Random, odd: Sequence[Any]) -> Any:
    """Replace one or more parts of ``value`` by odd values."""
    if chance.random() < 0.15:
        return chance.choice(odd)
    if isinstance(value, dict):
        return {key: _spoilt(item, chance, odd) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_spoilt(item, chance, odd) for item in cast("list[Any]", value)]
    return value
