"""Targets for what arrives as a stream of bytes: messages, JSON-RPC, and the streamed answers of providers."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import anyio
import orjson
from anyio.from_thread import start_blocking_portal

from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.adapters.transport.sse import EventSplitter, JsonLinesDecoder, ServerEvent, SseDecoder
from jumpseat.agent.model import Completed, ModelEvent, ModelRequest
from jumpseat.errors import InvalidRequestError, ProviderError, ProviderProtocolError
from jumpseat.parsing.json_text import SurrogateRepair, read_json, repair_surrogates
from jumpseat.rpc.json_rpc_peer import JsonRpcPeer
from jumpseat.rpc.transport import Decoder
from jumpseat_protocol.envelope import MAX_BODY_BYTES, FrameDecoder, FramingError, LineDecoder, encode_frame
from tests.fuzz.target import Check, same_however_split, silenced

SMALL_BYTES: Final = 64
"""A limit that inputs exceed often."""
RECORDED: Final = Path(__file__).parents[1] / "adapters" / "data"


# --- messages -----------------------------------------------------------------------------------------------------


def check_framing(data: bytes) -> None:
    """Headers: any bytes become bodies and errors, the same however split, within the limit; frames come back."""
    for limit in (SMALL_BYTES, 1 << 20):
        items = same_however_split(data, partial(_messages, FrameDecoder, limit))
        assert len(items) <= len(data)
        assert all(0 < len(item) <= limit for item in items if isinstance(item, bytes))
    if data:
        assert _messages(FrameDecoder, MAX_BODY_BYTES, [encode_frame(data) * 2]) == [data, data]


def check_lines(data: bytes) -> None:
    """Lines: the same however split, within the limit, and each line without its white space."""
    for limit in (SMALL_BYTES, 1 << 20):
        items = same_however_split(data, partial(_messages, LineDecoder, limit))
        assert all(0 < len(item) <= limit and b"\n" not in item for item in items if isinstance(item, bytes))
    bodies = [line.strip() for line in data.split(b"\n")[:-1]]
    assert _messages(LineDecoder, MAX_BODY_BYTES, [data]) == [body for body in bodies if body]


def _messages(framing: Callable[[int], Decoder], limit: int, chunks: Iterable[bytes]) -> list[bytes | FramingError]:
    decoder = framing(limit)
    return [item for chunk in chunks for item in decoder.feed(chunk)]


@contextmanager
def open_json_rpc() -> Generator[Check]:
    """JSON-RPC: nothing is raised, each request gets one response, other messages at most one; ping still works."""
    sent: list[dict[str, Any]] = []

    def fail(_params: object) -> None:
        raise InvalidRequestError("refused")

    async def later(params: object) -> object:
        await anyio.lowlevel.checkpoint()
        return params

    methods: dict[str, Callable[[Any], Any]] = {"ping": lambda params: params, "fail": fail, "later": later}

    def send(*parts: bytes) -> None:
        sent.append(orjson.loads(b"".join(parts)))

    async def check(data: bytes) -> None:
        sent.clear()
        async with anyio.create_task_group() as tasks:
            peer = JsonRpcPeer(send, tasks)
            peer.find = methods.get
            for line in data.split(b"\n"):
                peer.receive(line)
                peer.receive(b'{"jsonrpc":"2.0","id":"mine","method":"ping"}')
        lines = data.split(b"\n")
        # An input may itself send a request with this id.
        assert sum(message["id"] == "mine" for message in sent) >= len(lines)
        assert len(lines) <= len(sent) <= 2 * len(lines)
        for message in sent:
            assert message["jsonrpc"] == "2.0"
            assert ("result" in message) != ("error" in message)
            assert message.get("error", {}).get("message") != "Internal error"
        wanted = sum(map(_is_request, lines))
        assert len(sent) - len(lines) >= wanted

    with silenced(), start_blocking_portal() as portal:
        yield lambda data: portal.call(check, data)


def _is_request(line: bytes) -> bool:
    try:
        message = orjson.loads(line)
    except ValueError:
        return False
    if not isinstance(message, dict):
        return False
    members = cast("dict[str, Any]", message)
    return isinstance(members.get("method"), str) and members.get("id") is not None


# --- JSON ---------------------------------------------------------------------------------------------------------


def check_json(data: bytes) -> None:
    """JSON: the typed error or a value; valid text means the same as for a strict parser; repairs work in parts."""
    with suppress(orjson.JSONDecodeError):
        value = read_json(data)
        with suppress(orjson.JSONDecodeError):
            assert orjson.loads(data) == value
    whole = repair_surrogates(data)
    assert repair_surrogates(whole) == whole

    def repaired(chunks: list[bytes]) -> bytes:
        repair = SurrogateRepair()
        return b"".join([*map(repair.feed, chunks), repair.end()])

    # Outside of JSON, the part before an escape may change what the escape is.
    if not re.search(rb"\\(?![\\u])", data):
        assert same_however_split(data, repaired) == whole


# --- streamed answers ---------------------------------------------------------------------------------------------


def check_sse(data: bytes) -> None:
    """Server-sent events: the same however split; the typed error beyond the limit; written events come back."""
    events = same_however_split(data, lambda chunks: _events(SseDecoder(), chunks))
    assert sum(len(text) for _, text in events) <= len(data) * 3
    with suppress(ProviderProtocolError):
        _events(SseDecoder(max_event_bytes=SMALL_BYTES), [data[at : at + 7] for at in range(0, len(data), 7)])
    written = "".join(
        f"event: {name}\n" * bool(name) + f"data: {text}\n\n" for name, text in events if text and "\n" not in text
    )
    again = [(name or None, text) for name, text in events if text and "\n" not in text]
    assert _events(SseDecoder(), [written.encode()]) == again


def check_json_lines(data: bytes) -> None:
    """JSON lines: the same however split; the typed error beyond the limit; written lines come back."""
    events = same_however_split(data, lambda chunks: _events(JsonLinesDecoder(), chunks))
    with suppress(ProviderProtocolError):
        _events(JsonLinesDecoder(max_event_bytes=SMALL_BYTES), [data[at : at + 7] for at in range(0, len(data), 7)])
    written = "".join(f"data:{text}\n" for _, text in events)
    assert _events(JsonLinesDecoder(), [written.encode()]) == events


def _events(splitter: EventSplitter, chunks: Iterable[bytes]) -> list[ServerEvent]:
    return [event for chunk in chunks for event in splitter.feed(chunk)] + splitter.finish()


_DECODERS: Final = tuple(name for name in PROVIDERS if name != "scripted")


def check_answers(data: bytes) -> None:
    """Decoders of all providers: any events become model events, or an error that their caller converts."""
    events = [(None, text) for text in re.split(r"\n+", data.decode("utf-8", "replace")) if text]
    for name in _DECODERS:
        decoder = load_adapter(name).decoder(ModelRequest(model="m", system="", messages=[], stream=True))
        _decoded(lambda decoder=decoder: [out for event in events for out in decoder.feed(*event)])
        _decoded(decoder.finish)
        with suppress(orjson.JSONDecodeError):
            body = orjson.loads(events[0][1] if events else "")
            if isinstance(body, dict):
                whole = load_adapter(name).decoder(ModelRequest(model="m", system="", messages=[], stream=False))
                _decoded(partial(whole.whole, cast("dict[str, Any]", body)))


def _decoded(decode: Callable[[], list[ModelEvent]]) -> None:
    # See HttpEvents: the four general types become a ProviderProtocolError.
    with suppress(ProviderError, LookupError, TypeError, ValueError, AttributeError):
        out = decode()
        assert sum(isinstance(event, Completed) for event in out) <= 1


def answer_seeds() -> Iterator[bytes]:
    """Yield the data of recorded answers."""
    for path in sorted([*RECORDED.rglob("*.sse"), *RECORDED.rglob("*.jsonl")]):
        content = path.read_bytes()
        if len(content) < 8192:
            yield b"\n".join(re.sub(rb"^data: ?", b"", line) for line in content.splitlines() if line[:1] in b"d{")
