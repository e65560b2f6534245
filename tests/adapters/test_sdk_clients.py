"""Recorded answers, decoded by the providers' own SDKs and by the adapters, with the same result."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import anyio.to_thread
import pytest

from tests.adapters.golden import DATA
from tests.adapters.provider_sdks import import_sdk
from tests.support.cases import all_cases
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
        "openai_compatible/thoughts_of_gemini.json",
        "openai_compatible/thoughts_of_gemini.sse",
        "openai_responses/deltas_that_differ_from_the_end.sse",
        "openai_responses/tools_without_ids.sse",
    }
)


def by_openai(client: Any, *, stream: bool) -> Said:
    """Chat completions."""
    answer = client.chat.completions.create(model="m", messages=[], stream=stream)
    chunks = list(answer) if stream else [answer]
    text: list[str] = []
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        for choice in (chunk.choices or [])[:1]:
            message = choice.delta if stream else choice.message
            text.append((message and (message.content or message.refusal)) or "")
            for place, call in enumerate((message and message.tool_calls) or []):
                whole = calls.setdefault(call.index if stream else place, ["", ""])
                whole[0] += call.function.name or ""
                whole[1] += call.function.arguments or ""
    return "".join(text), [(name, arguments) for name, arguments in calls.values()]


def by_openai_responses(client: Any, *, stream: bool) -> Said:
    """Responses."""
    answer = client.responses.create(model="m", input="", stream=stream)
    if stream:
        ends = ("response.completed", "response.incomplete")
        *_, answer = (event.response for event in answer if event.type in ends)
    calls = [item for item in answer.output if item.type == "function_call"]
    parts = [part for item in answer.output if item.type == "message" for part in item.content]
    text = "".join(part.refusal if part.type == "refusal" else part.text for part in parts)
    # A free-form call has a text: the argument ``input`` of ours, whose JSON stays open if the answer is cut off.
    end = 0 if answer.status == "completed" else len('"}')
    texts = [(item.name, item.input) for item in answer.output if item.type == "custom_tool_call"]
    written = [(name, json.dumps({"input": free}, separators=(",", ":"))) for name, free in texts]
    free = [(name, arguments[: len(arguments) - end]) for name, arguments in written]
    return text, [*((call.name, call.arguments) for call in calls), *free]


def by_anthropic(client: Any, *, stream: bool) -> Said:
    """Messages."""
    answer = client.messages.create(model="m", messages=[], max_tokens=1, stream=stream)
    events = list(answer) if stream else []
    if not stream:
        blocks = answer.content
        text = "".join(block.text for block in blocks if block.type == "text")
        return text, [(block.name, json.dumps(block.input)) for block in blocks if block.type == "tool_use"]
    texts: list[str] = []
    calls: dict[int, list[str]] = {}
    for event in events:
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            calls[event.index] = [event.content_block.name, ""]
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            texts.append(event.delta.text)
        elif (
            event.type == "content_block_delta" and event.delta.type == "input_json_delta" and event.index in calls
        ):
            calls[event.index][1] += event.delta.partial_json
    return "".join(texts), [(name, arguments) for name, arguments in calls.values()]


Reader: TypeAlias = Callable[..., Said]

CLIENTS: Final[dict[Reader, tuple[str, str]]] = {
    by_openai: ("openai", "OpenAI"),
    by_openai_responses: ("openai", "OpenAI"),
    by_anthropic: ("anthropic", "Anthropic"),
}
TYPES: Final = {".sse": "text/event-stream", ".json": "application/json"}
READERS: Final[dict[str, Reader]] = {
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


def recordings(reader: Reader) -> Iterator[Path]:
    """Return the recorded answers that an SDK decodes."""
    for name, other in READERS.items():
        for path in sorted((DATA / name).glob("*")):
            answer = path.suffix in (".sse", ".json") and not path.name.startswith("error_")
            if other == reader and answer and f"{name}/{path.name}" not in NOT_OF_THE_FORM:
                yield path


@pytest.mark.parametrize("reader", [by_openai, by_openai_responses, by_anthropic])
async def test_an_sdk_and_the_adapter_decode_recorded_answers_identically(reader: Reader) -> None:
    paths = list(recordings(reader))
    replies = [Reply([path.read_bytes()], headers={"Content-Type": TYPES[path.suffix]}) for path in paths]
    async with ModelServer(*replies) as server:
        read = await anyio.to_thread.run_sync(
            read_all, reader, server.url, [path.suffix == ".sse" for path in paths]
        )

    with all_cases() as case:
        for path, answer in zip(paths, read, strict=True):
            with case(f"{path.parent.name}/{path.name}"):
                assert not isinstance(answer, Exception), answer
                text, calls = answer
                expected = json.loads(path.with_name(f"{path.name}.expected").read_text(encoding="utf-8"))
                blocks = expected["message"]["blocks"]
                assert text == "".join(block["text"] for block in blocks if "citations" in block)
                called = [(block["name"], block["arguments_json"]) for block in blocks if "arguments_json" in block]
                assert [(name, parsed(given)) for name, given in calls] == [
                    (n, parsed(given)) for n, given in called
                ]


def read_all(reader: Reader, url: str, streams: list[bool]) -> list[Said | Exception]:
    """Read the server's answers in order, each with whether it is streamed."""
    found: list[Said | Exception] = []
    module, name = CLIENTS[reader]
    make_client = getattr(import_sdk(module), name)
    with make_client(api_key="k", base_url=url, max_retries=0) as client:
        for stream in streams:
            try:
                found.append(reader(client, stream=stream))
            except Exception as error:
                found.append(error)
    return found
