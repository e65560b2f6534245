"""Recorded traffic in ``data/<adapter>/``, and its comparison with the adapters.

==================== =====================================================================================
file                 content
==================== =====================================================================================
``NAME.sse``         the bytes of a streamed answer (``NAME.jsonl`` where the wire streams JSON lines)
``NAME.json``        the body of a whole answer
``FILE.expected``    the decoded answer as JSON; files whose names begin with ``error_`` must fail
``requests/*.json``  the request for each conversation of ``conversations.py``
==================== =====================================================================================

A new adapter needs such files and no other test. ``UPDATE_GOLDEN=1 pytest tests/adapters`` rewrites the
expected files; review the difference.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from jumpseat.adapters.adapter import Adapter, Decoder
from jumpseat.adapters.providers import load_adapter
from jumpseat.adapters.transport.sse import EventSplitter, JsonLinesDecoder, SseDecoder
from jumpseat.agent.blocks import AssistantMessage
from jumpseat.agent.model import Completed, ModelEvent, ModelRequest, ReasoningDelta, TextDelta, ToolCallDelta
from jumpseat.errors import ProviderError

DATA = Path(__file__).parent / "data"


def plain_request(*, stream: bool) -> ModelRequest:
    """Return a minimal request: decoders need little of it."""
    return ModelRequest(model="m", system="", messages=[], stream=stream)


class Outcome:
    """The result of decoding: the events, and the error that ended them, if any."""

    def __init__(self) -> None:
        self.events: list[ModelEvent] = []
        self.error: ProviderError | None = None

    @property
    def completed(self) -> Completed:
        last = self.events[-1]
        assert isinstance(last, Completed)
        return last

    def joined(self) -> dict[str, Any]:
        """Join the deltas."""
        calls: dict[str, list[str]] = {}
        for event in self.events:
            if isinstance(event, ToolCallDelta):
                name, arguments = calls.setdefault(event.id, [event.name, ""])
                calls[event.id] = [name, arguments + event.arguments]
        return {
            "text": "".join(event.text for event in self.events if isinstance(event, TextDelta)),
            "reasoning": "".join(event.text for event in self.events if isinstance(event, ReasoningDelta)),
            "calls": calls,
        }

    def as_json(self) -> Any:
        if self.error is not None:
            error = self.error
            return {
                "error": type(error).__name__,
                "message": str(error),
                "status": error.status,
                "code": error.code,
                "retryable": error.retryable,
                "said_before": self.joined(),
            }
        completed = to_builtins(self.completed)
        # Adapters estimate no tokens, and search no text for calls.
        assert completed.pop("written_for") is None
        if completed["cleared"] is None:
            # Providers shorten conversations only where they are asked to.
            del completed["cleared"]
        assert completed["message"].pop("tokens") is None
        assert completed["message"].pop("universal") is None
        for block in completed["message"]["blocks"]:
            # Adapters neither validate nor translate calls.
            assert block.pop("problem", None) is None
            assert block.pop("dialect", None) is None
        if completed["usage"]:
            # Few providers send these.
            if completed["usage"]["cost"] is None:
                del completed["usage"]["cost"]
            if not completed["usage"]["nano_aiu"]:
                del completed["usage"]["nano_aiu"]
        return completed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcome) and (self.events, repr(self.error)) == (other.events, repr(other.error))

    def __repr__(self) -> str:
        return f"Outcome({self.events!r}, {self.error!r})"


def decode_stream(adapter: Adapter, pieces: Iterable[bytes], *, lines: bool = False) -> Outcome:
    """Decode a streamed answer that arrives in ``pieces``."""
    return read_stream(adapter.decoder(plain_request(stream=True)), pieces, lines=lines)


def decode_whole(adapter: Adapter, body: Any) -> Outcome:
    """Decode an answer that was not streamed."""
    return read_whole(adapter.decoder(plain_request(stream=False)), body)


def read_stream(decoder: Decoder, pieces: Iterable[bytes], *, lines: bool = False) -> Outcome:
    """Decode a streamed answer with an unused ``decoder``."""
    splitter = splitter_of(lines=lines)
    outcome = Outcome()
    try:
        for piece in pieces:
            take(decoder, splitter, piece, outcome)
        end(decoder, splitter, outcome)
    except ProviderError as error:
        outcome.error = error
    return outcome


def read_whole(decoder: Decoder, body: Any) -> Outcome:
    """Decode an answer that was not streamed with an unused ``decoder``."""
    outcome = Outcome()
    try:
        outcome.events += decoder.whole(body)
    except ProviderError as error:
        outcome.error = error
    return outcome


def splitter_of(*, lines: bool) -> EventSplitter:
    """Return a splitter for JSON lines, or for server-sent events."""
    return JsonLinesDecoder() if lines else SseDecoder()


def take(decoder: Decoder, splitter: EventSplitter, piece: bytes, into: Outcome) -> None:
    """Decode one piece of a stream."""
    for name, data in splitter.feed(piece):
        into.events += decoder.feed(name, data)


def end(decoder: Decoder, splitter: EventSplitter, into: Outcome) -> None:
    """Decode the end of a stream."""
    for name, data in splitter.finish():
        into.events += decoder.feed(name, data)
    into.events += decoder.finish()


def load(name: str) -> Adapter:
    """Return the adapter called ``name``."""
    return load_adapter(name)


def check(path: Path, value: Any) -> None:
    """Assert that ``value`` equals the JSON in ``path``."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert path.exists(), f"{path.name} is missing: UPDATE_GOLDEN=1 writes it"
    assert value == json.loads(path.read_text(encoding="utf-8"))


def recorded_message(name: str, file: str) -> AssistantMessage:
    """Return the message that a recorded stream of an adapter decodes to."""
    return decode_stream(load(name), [(DATA / name / file).read_bytes()]).completed.message
