"""Recorded answers, decoded by the providers' own SDKs and by the adapters, with the same result."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import anthropic
import anyio
import anyio.to_thread
import openai
import pytest

from tests.adapters.golden import DATA
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

Said: TypeAlias = tuple[str, list[tuple[str, str]]]
"""The text, and the name and arguments of each call."""

# Answers of gateways, and errors: the SDKs fail, or lose parts that the adapters decode.
NOT_OF_THE_FORM: Final = frozenset(
    {
        "anthropic/unknown_events_and_blocks.sse",
        "copilot/two_choices.json",
        "openai/arguments_as_object_without_id.json",
        "openai/byte_order_mark_no_space_no_last_blank_line.sse",
        "openai/content_as_parts.json",
        "openai/content_as_parts.sse",
        "openai/half_emoji_escapes.sse",
        "openai/legacy_function_call.json",
        "openai/legacy_function_call.sse",
        "openai/split_choices.json",
        "openai/split_choices.sse",
        "openai/tools_all_at_index_zero.sse",
        "openai/tools_arguments_as_object.sse",
        "openai/tools_without_ids_and_indexes.sse",
        "openai_responses/deltas_that_differ_from_the_end.sse",
        "openai_responses/tools_without_ids.sse",
    }
)


@contextmanager
def client_of(kind: Any, url: str) -> Generator[Any]:
    """Return an SDK's client that calls ``url``."""
    with kind(api_key="k", base_url=url, max_retries=0) as client:
        yield client


def by_openai(url: str, *, stream: bool) -> Said:
    """Chat completions."""
    with client_of(openai.OpenAI, url) as client:
        answer = client.chat.completions.create(model="m", messages=[], stream=stream)
        chunks = list(answer) if stream else [answer]
    text: list[str] = []
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        for choice in (chunk.choices or [])[:1]:
            said = choice.delta if stream else choice.message
            text.append((said and (said.content or said.refusal)) or "")
            for place, call in enumerate((said and said.tool_calls) or []):
                whole = calls.setdefault(call.index if stream else place, ["", ""])
                whole[0] += call.function.name or ""
                whole[1] += call.function.arguments or ""
    return "".join(text), [(name, arguments) for name, arguments in calls.values()]


def by_openai_responses(url: str, *, stream: bool) -> Said:
    """Responses."""
    with client_of(openai.OpenAI, url) as client:
        answer = client.responses.create(model="m", input="", stream=stream)
        if stream:
            ends = ("response.completed", "response.incomplete")
            *_, answer = (event.response for event in answer if event.type in ends)
    calls = [item for item in answer.output if item.type == "function_call"]
    said = [part for item in answer.output if item.type == "message" for part in item.content]
    text = "".join(part.refusal if part.type == "refusal" else part.text for part in said)
    return text, [(call.name, call.arguments) for call in calls]


def by_anthropic(url: str, *, stream: bool) -> Said:
    """Messages."""
    with client_of(anthropic.Anthropic, url) as client:
        answer = client.messages.create(model="m", messages=[], max_tokens=1, stream=stream)
        events = list(answer) if stream else []
    if not stream:
        blocks = answer.content
        text = "".join(block.text for block in blocks if block.type == "text")
        return text, [(one.name, json.dumps(one.input)) for one in blocks if one.type == "tool_use"]
    said: list[str] = []
    calls: dict[int, list[str]] = {}
    for event in events:
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            calls[event.index] = [event.content_block.name, ""]
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            said.append(event.delta.text)
        elif (
            event.type == "content_block_delta" and event.delta.type == "input_json_delta" and event.index in calls
        ):
            calls[event.index][1] += event.delta.partial_json
    return "".join(said), [(name, arguments) for name, arguments in calls.values()]


READERS: Final[dict[str, Callable[..., Said]]] = {
    "openai": by_openai,
    "azure": by_openai,
    "copilot": by_openai,
    "deepseek": by_openai,
    "githubmodels": by_openai,
    "huggingface": by_openai,
    "kimi": by_openai,
    "novita": by_openai,
    "openai_compatible": by_openai,
    "openrouter": by_openai,
    "xai": by_openai,
    "openai_responses": by_openai_responses,
    "azure_responses": by_openai_responses,
    "copilot_responses": by_openai_responses,
    "anthropic": by_anthropic,
    "copilot_messages": by_anthropic,
}


def parsed(arguments: str) -> Any:
    """Parse the arguments of a call; return text that is not JSON unchanged."""
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def recordings() -> Iterator[tuple[str, str]]:
    for name in READERS:
        for path in sorted((DATA / name).glob("*")):
            answer = path.suffix in (".sse", ".json") and not path.name.startswith("error_")
            if answer and f"{name}/{path.name}" not in NOT_OF_THE_FORM:
                yield name, path.name


@pytest.mark.parametrize(("name", "file"), list(recordings()), ids=str)
async def test_an_sdk_and_the_adapter_decode_a_recorded_answer_identically(name: str, file: str) -> None:
    path = DATA / name / file
    expected = json.loads(path.with_name(f"{file}.expected").read_text(encoding="utf-8"))["message"]["blocks"]
    text = "".join(block["text"] for block in expected if "citations" in block)
    calls = [(block["name"], parsed(block["arguments_json"])) for block in expected if "arguments_json" in block]
    stream = path.suffix != ".json"
    content = "text/event-stream" if stream else "application/json"

    async with ModelServer(Reply([path.read_bytes()], headers={"Content-Type": content})) as server:
        read = functools.partial(READERS[name], server.url, stream=stream)
        said, called = await anyio.to_thread.run_sync(read)

    assert said == text
    assert [(tool, parsed(arguments)) for tool, arguments in called] == calls
