"""A model on loopback that answers at once, so that measured times are the server's own.

The model implements chat completions, and for other agents the text ``pong`` on the Responses and Gemini wires. The
last user message of a chat completion selects the answer:

* containing ``deltas=N``: a text in N deltas, and with ``pace=MS``, one every MS milliseconds, in turns with
  other answers;
* containing ``calls=N``: N calls of the tool ``add``, and a short text after their results;
* anything else: the text ``pong``.

``GET /sizes`` returns the sizes of the requests since the last such call, in bytes. As a program, it listens on a
free port and prints the port.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

MODEL: Final = "fake-model"
HEADERS_LIMIT: Final = 1 << 20
BUFFERED_LIMIT: Final = 1 << 16

_CHUNK: Final[dict[str, Any]] = {"id": "answer", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
_USAGE: Final = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
_DELTAS: Final = re.compile(r"deltas=(\d+)")
_PACE: Final = re.compile(r"pace=([\d.]+)")
_CALLS: Final = re.compile(r"calls=(\d+)")


_PONG_ITEM: Final[dict[str, Any]] = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "pong", "annotations": []}],
}
_PONG_RESPONSE: Final[dict[str, Any]] = {
    "id": "answer",
    "object": "response",
    "model": MODEL,
    "status": "completed",
    "output": [_PONG_ITEM],
    "usage": {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    },
}
_RESPONSES_EVENTS: Final[tuple[dict[str, Any], ...]] = (
    {"type": "response.created", "response": {**_PONG_RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**_PONG_ITEM, "content": []}},
    {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "pong"},
    {"type": "response.output_item.done", "output_index": 0, "item": _PONG_ITEM},
    {"type": "response.completed", "response": _PONG_RESPONSE},
)
_GEMINI_EVENTS: Final[tuple[dict[str, Any], ...]] = (
    {
        "candidates": [
            {"index": 0, "content": {"role": "model", "parts": [{"text": "pong"}]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
    },
)


class FakeModel:
    """The endpoint, shared by all connections."""

    def __init__(self) -> None:
        self._sizes: list[int] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection until it is closed."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                match = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(match[1])) if match else b""
                if head.startswith(b"GET ") and not head.startswith(b"GET /sizes "):
                    # A question about the model.
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                elif head.startswith(b"GET "):
                    taken, self._sizes = self._sizes, []
                    writer.write(_whole(taken))
                elif b"/responses" in head.partition(b"\r\n")[0]:
                    _pong(writer, _RESPONSES_EVENTS)
                elif b"GenerateContent" in head.partition(b"\r\n")[0]:
                    _pong(writer, _GEMINI_EVENTS)
                else:
                    self._sizes.append(len(body))
                    await _answer(orjson.loads(body), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def _pong(writer: asyncio.StreamWriter, events: Iterable[dict[str, Any]]) -> None:
    """Send a whole stream of server-sent events; the name of an event is its type."""
    body = b"".join(
        (b"event: %b\n" % event["type"].encode() if "type" in event else b"")
        + b"data: %b\n\n" % orjson.dumps(event)
        for event in events
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(body)
    writer.write(head + body)


async def _answer(request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    deltas = list(_deltas(request["messages"]))
    calls = any("tool_calls" in delta for delta in deltas)
    finish = "tool_calls" if calls else "stop"
    if not request.get("stream"):
        text = "".join(delta.get("content", "") for delta in deltas)
        message = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        writer.write(_whole({**_CHUNK, "object": "chat.completion", "choices": [message], "usage": _USAGE}))
        return
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    pace_s = _pace_s(request["messages"])
    # One write per delta, as real models send them.
    for part in _parts(deltas, finish):
        if pace_s is not None:
            await asyncio.sleep(pace_s)
        writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        if writer.transport.get_write_buffer_size() > BUFFERED_LIMIT:
            await writer.drain()
    writer.write(b"0\r\n\r\n")


def _pace_s(messages: list[dict[str, Any]]) -> float | None:
    last_user = next(message for message in reversed(messages) if message["role"] == "user")
    found = _PACE.search(_text(last_user["content"]))
    return float(found[1]) / 1e3 if found else None


def _deltas(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the deltas of the answer to a conversation."""
    last_user = max(i for i, message in enumerate(messages) if message["role"] == "user")
    prompt = _text(messages[last_user]["content"])
    answered = any(message["role"] == "tool" for message in messages[last_user:])
    if found := _DELTAS.search(prompt):
        for number in range(int(found[1])):
            yield {"content": f"word{number} "}
    elif (found := _CALLS.search(prompt)) and not answered:
        for index in range(int(found[1])):
            # Ids must be unique in the conversation.
            name = {"name": "add", "arguments": ""}
            yield {
                "tool_calls": [
                    {"index": index, "id": f"call_{len(messages)}_{index}", "type": "function", "function": name}
                ]
            }
            yield {"tool_calls": [{"index": index, "function": {"arguments": f'{{"a":{index}}}'}}]}
    else:
        yield {"content": "done" if answered else "pong"}


def _parts(deltas: Iterable[dict[str, Any]], finish: str) -> Iterator[bytes]:
    """Encode an answer as server-sent events."""
    yield _event([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
    for delta in deltas:
        yield _event([{"index": 0, "delta": delta, "finish_reason": None}])
    yield _event([{"index": 0, "delta": {}, "finish_reason": finish}])
    yield _event([], usage=_USAGE)
    yield b"data: [DONE]\n\n"


def _event(choices: list[dict[str, Any]], **more: Any) -> bytes:
    return b"data: %b\n\n" % orjson.dumps({**_CHUNK, "choices": choices, **more})


def _whole(value: Any) -> bytes:
    body = orjson.dumps(value)
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


async def main() -> None:
    server = await asyncio.start_server(FakeModel().serve, "127.0.0.1", 0, limit=HEADERS_LIMIT)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
