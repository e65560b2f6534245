"""Measure the time per delta of each adapter's decoder, from the bytes of a stream to events, without a network.

    decoders.py [--deltas N] [--rounds N]

The adapters take turns in every round; the output is the lower quartiles and their ratios to the ``openai``
adapter. The exit code is 1 if a ratio exceeds the limit. The streams have the providers' documented formats, with
all fields that a provider sends in a chunk.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.adapters.transport.sse import EventSplitter, JsonLinesDecoder, SseDecoder
from jumpseat.agent.model import Completed, ModelRequest

LIMIT: Final = 1.5
BASE: Final = "openai"
CHUNK_BYTES: Final = 4096
WORD: Final = "word "

Chunks = list[tuple[str | None, Any]]


def chat(deltas: int) -> Chunks:
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1760000000,
        "model": "gpt-5",
        "service_tier": "default",
        "system_fingerprint": "fp_1",
    }
    text: Chunks = [
        (
            None,
            {**head, "choices": [{"index": 0, "delta": {"content": WORD}, "finish_reason": None}], "usage": None},
        )
    ]
    stop: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "stop"}
    end = (None, {**head, "choices": [stop]})
    return [*text * deltas, end, (None, "[DONE]")]


def responses(deltas: int) -> Chunks:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    event = "response.output_text.delta"
    text: Chunks = [(event, {"type": event, **place, "sequence_number": 7, "delta": WORD, "logprobs": []})]
    end: tuple[str, Any] = (
        "response.completed",
        {"type": "response.completed", "response": {"id": "r", "output": []}},
    )
    return [*text * deltas, end]


def messages(deltas: int) -> Chunks:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORD}}
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    text: Chunks = [("content_block_delta", delta)]
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    return [
        ("content_block_start", start),
        *text * deltas,
        ("message_delta", stop),
        ("message_stop", {"type": "message_stop"}),
    ]


def generate_content(deltas: int) -> Chunks:
    head = {
        "usageMetadata": {
            "promptTokenCount": 12,
            "candidatesTokenCount": 5,
            "totalTokenCount": 17,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}],
        },
        "modelVersion": "gemini-3.5-flash",
        "responseId": "r3Zk",
    }
    content = {"parts": [{"text": WORD}], "role": "model"}
    text: Chunks = [(None, {"candidates": [{"content": content, "index": 0}], **head})]
    end = (None, {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], **head})
    return [*text * (deltas - 1), end]


def interactions(deltas: int) -> Chunks:
    def event(kind: str, **fields: Any) -> tuple[str, Any]:
        return kind, {**fields, "event_type": kind}

    text: Chunks = [event("step.delta", index=0, delta={"text": WORD, "type": "text"})]
    return [
        event("step.start", index=0, step={"type": "model_output"}),
        *text * deltas,
        event("step.stop", index=0),
        event("interaction.completed", interaction={"id": "v1", "status": "completed"}),
    ]


def routed(deltas: int) -> Chunks:
    """Return an answer with reasoning in two fields, as OpenRouter sends it, then text."""
    head = {
        "id": "gen-1764000000-1",
        "object": "chat.completion.chunk",
        "created": 1764000000,
        "model": "anthropic/claude-sonnet-5",
        "provider": "Anthropic",
    }

    def chunk(**delta: Any) -> Any:
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None, "logprobs": None}
        return {**head, "choices": [{**choice, "native_finish_reason": None}]}

    detail = {"type": "reasoning.text", "text": WORD, "format": "anthropic-claude-v1", "index": 0}
    reasoning_chunk = chunk(content="", reasoning=WORD, reasoning_details=[detail])
    reasoning: Chunks = [(None, reasoning_chunk)]
    text: Chunks = [(None, chunk(content=WORD))]
    stop: dict[str, Any] = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
    return [*reasoning * (deltas - 1), *text, (None, {**head, "choices": [stop]}), (None, "[DONE]")]


def thinking(deltas: int) -> Chunks:
    """Return an answer with reasoning in a field of its own, then text."""
    head = {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1760000000,
        "model": "deepseek-v4",
        "system_fingerprint": "fp_1",
    }

    def chunk(**delta: Any) -> Any:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        return {**head, "choices": [choice], "usage": None}

    reasoning: Chunks = [(None, chunk(content=None, reasoning_content=WORD))]
    text: Chunks = [(None, chunk(content=WORD, reasoning_content=None))]
    stop: dict[str, Any] = {"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}
    return [*reasoning * (deltas // 2), *text * (deltas - deltas // 2), (None, {**head, "choices": [stop]})]


def thinking_parts(deltas: int) -> Chunks:
    """Return an answer with reasoning as parts of the content, then text."""
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1760000000, "model": "magistral-medium-2509"}

    def chunk(content: Any) -> Any:
        return {**head, "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]}

    part = {"type": "thinking", "thinking": [{"type": "text", "text": WORD}]}
    reasoning: Chunks = [(None, chunk([part]))]
    text: Chunks = [(None, chunk(WORD))]
    stop: dict[str, Any] = {"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}
    return [*reasoning * (deltas // 2), *text * (deltas - deltas // 2), (None, {**head, "choices": [stop]})]


def lines(deltas: int) -> Chunks:
    head = {"model": "qwen3", "created_at": "2026-01-31T12:00:00.000000Z"}

    def line(**message: Any) -> Any:
        return {**head, "message": {"role": "assistant", **message}, "done": False}

    reasoning: Chunks = [(None, line(content="", thinking=WORD))]
    text: Chunks = [(None, line(content=WORD))]
    end = {**head, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    return [*reasoning * (deltas // 2), *text * (deltas - deltas // 2), (None, end)]


FORMS: Final[Mapping[str, Callable[[int], Chunks]]] = {
    "openai": chat,
    "openai_responses": responses,
    "anthropic": messages,
    "azure": chat,
    "azure_responses": responses,
    "copilot": chat,
    "copilot_messages": messages,
    "copilot_responses": responses,
    "deepseek": thinking,
    "gemini": generate_content,
    "gemini_interactions": interactions,
    "githubmodels": chat,
    "huggingface": chat,
    "kimi": thinking,
    "mistral": thinking_parts,
    "novita": thinking,
    "ollama": lines,
    "openai_compatible": chat,
    "openrouter": routed,
    "xai": thinking,
}
LINES: Final = frozenset({"ollama"})
"""Adapters whose streams are JSON Lines."""


def stream(chunks: Chunks, *, as_lines: bool) -> list[bytes]:
    """Encode chunks as server-sent events or JSON Lines, split into network-sized pieces."""
    pieces: list[bytes] = []
    for name, data in chunks:
        if as_lines:
            pieces.append(orjson.dumps(data) + b"\n")
            continue
        head = b"event: %s\n" % name.encode() if name else b""
        body = data.encode() if isinstance(data, str) else orjson.dumps(data)
        pieces.append(b"%sdata: %s\n\n" % (head, body))
    whole = b"".join(pieces)
    return [whole[start : start + CHUNK_BYTES] for start in range(0, len(whole), CHUNK_BYTES)]


def decode(name: str, pieces: Sequence[bytes], deltas: int) -> float:
    """Decode an answer and return its CPU time in seconds, which excludes other processes."""
    decoder = load_adapter(name).decoder(ModelRequest("m", "", []))
    splitter: EventSplitter = JsonLinesDecoder() if name in LINES else SseDecoder()
    started = time.thread_time()
    feed = decoder.feed
    events: list[Any] = []
    for piece in pieces:
        for event, data in splitter.feed(piece):
            events = feed(event, data) or events
    last = decoder.finish() or events
    taken = time.thread_time() - started
    assert isinstance(last[-1], Completed)
    message = last[-1].message
    assert message.reasoning() + message.text() == WORD * deltas
    return taken


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--deltas", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(argv)
    # An adapter missing in FORMS is an error: every adapter is measured.
    names = list(PROVIDERS)
    streams = {name: stream(FORMS[name](options.deltas), as_lines=name in LINES) for name in names}
    taken: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            taken[name].append(decode(name, streams[name], options.deltas))
    # The lower quartile: other processes only make a round slower, never faster.
    micros_of = {name: statistics.quantiles(seconds)[0] / options.deltas * 1e6 for name, seconds in taken.items()}
    slow: list[str] = []
    for name, micros in sorted(micros_of.items(), key=lambda row: row[1]):
        ratio = micros / micros_of[BASE]
        print(f"{name:<22}{micros:8.2f} µs per delta   {ratio:5.2f} of {BASE}")
        if ratio > LIMIT:
            slow.append(name)
    if slow:
        print(f"above {LIMIT} times {BASE}: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
