"""A fake OpenAI-compatible model on loopback, scripted by the last user message; it records every request.

It serves ``/chat/completions``, streamed or not, and a list of models. A script maps a text to the answers of the
model: if that text occurs in the last user message, the first answer replies to it, the second replies to the
tool results that follow, and so on. No state is kept between requests, so retries and resumed sessions get the
same answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]

MODEL = "fake-model"
_HEAD_LIMIT = 1 << 20


@dataclass(frozen=True)
class Says:
    """The model answers with a text, one delta per chunk."""

    chunks: tuple[str, ...]


@dataclass(frozen=True)
class Calls:
    """The model calls one tool."""

    tool: str
    arguments: JsonObject


@dataclass(frozen=True)
class Stalls:
    """The model streams some chunks and then nothing, until the caller hangs up."""

    chunks: tuple[str, ...]


Answer: TypeAlias = Says | Calls | Stalls
Script: TypeAlias = Mapping[str, Sequence[Answer]]


def says(*chunks: str) -> Says:
    """Answer with ``chunks``, joined."""
    return Says(chunks)


def calls(tool: str, **arguments: Any) -> Calls:
    """Answer with one call of ``tool``."""
    return Calls(tool, arguments)


def stalls(*chunks: str) -> Stalls:
    """Answer with ``chunks`` and never finish."""
    return Stalls(chunks)


@dataclass
class FakeOpenAI:
    """A running fake. ``requests`` holds the bodies received, in order."""

    script: Script
    base_url: str = ""
    requests: list[JsonObject] = field(default_factory=list[JsonObject])
    authorizations: list[str | None] = field(default_factory=list[str | None])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    unscripted: list[str] = field(default_factory=list[str])
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a caller has hung up during a stalled answer."""

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                await self._serve_request(reader, writer)
        writer.close()

    async def _serve_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if method == "GET" and path.endswith("/models"):
            await _send_json(writer, 200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})
            return
        if method != "POST" or not path.endswith("/chat/completions"):
            await _send_json(writer, 404, {"error": {"message": f"no such endpoint: {method} {path}"}})
            return
        request: JsonObject = json.loads(body)
        self.requests.append(request)
        self.authorizations.append(headers.get("authorization"))
        self.headers.append(headers)
        answer = self._answer(request["messages"])
        if answer is None:
            await _send_json(
                writer, 400, {"error": {"message": f"no answer in the script for {self.unscripted[-1]!r}"}}
            )
        elif request.get("stream"):
            await _send_stream(writer, _chunks(answer, request))
            if isinstance(answer, Stalls):
                await self._await_hang_up(reader)
            await _end_stream(writer)
        elif isinstance(answer, Stalls):
            await self._await_hang_up(reader)
        else:
            await _send_json(writer, 200, _whole(answer, request))

    async def _await_hang_up(self, reader: asyncio.StreamReader) -> None:
        try:
            await reader.readexactly(1)
        finally:
            self.hung_up.set()

    def _answer(self, messages: list[JsonObject]) -> Answer | None:
        """Find the answer: by the last user message that is in the script, then by the model's answers since."""
        step = 0
        for message in reversed(messages):
            if message["role"] == "assistant":
                step += 1
            for prompt, answers in self.script.items():
                if message["role"] == "user" and prompt in _text(message) and step < len(answers):
                    return answers[step]
        self.unscripted.append(_text(messages[-1]))
        return None


@contextlib.asynccontextmanager
async def fake_openai(script: Script) -> AsyncGenerator[FakeOpenAI]:
    """Serve ``script`` on a free loopback port for the duration of the block."""
    model = FakeOpenAI(script)
    server = await asyncio.start_server(model._serve_connection, "127.0.0.1", 0, limit=_HEAD_LIMIT)  # pyright: ignore[reportPrivateUsage] - one module
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(server.close)
        model.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        yield model


def texts(request: JsonObject, role: str) -> list[str]:
    """Return the texts of the messages of ``role`` in a recorded request, in order."""
    return [_text(message) for message in request["messages"] if message["role"] == role]


def _text(message: JsonObject) -> str:
    content: str | list[JsonObject] | None = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _message(answer: Says | Calls) -> JsonObject:
    match answer:
        case Says(chunks):
            return {"role": "assistant", "content": "".join(chunks)}
        case Calls():
            return {"role": "assistant", "content": None, "tool_calls": [_tool_call(answer)]}


def _tool_call(answer: Calls) -> JsonObject:
    function = {"name": answer.tool, "arguments": json.dumps(answer.arguments)}
    return {"id": f"call_{answer.tool}", "type": "function", "function": function}


def _finish_reason(answer: Answer) -> str:
    return "tool_calls" if isinstance(answer, Calls) else "stop"


def _whole(answer: Says | Calls, request: JsonObject) -> JsonObject:
    choice = {"index": 0, "message": _message(answer), "finish_reason": _finish_reason(answer)}
    return {
        "id": "completion-1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [choice],
        "usage": _USAGE,
    }


def _chunks(answer: Answer, request: JsonObject) -> Iterator[JsonObject]:
    frame = {"id": "completion-1", "object": "chat.completion.chunk", "created": 1, "model": request["model"]}

    def chunk(delta: JsonObject, finish_reason: str | None = None) -> JsonObject:
        return {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    yield chunk({"role": "assistant", "content": ""})
    match answer:
        case Calls():
            call = _tool_call(answer)
            arguments = call["function"].pop("arguments")
            half = len(arguments) // 2
            call["function"]["arguments"] = arguments[:half]
            yield chunk({"tool_calls": [{"index": 0, **call}]})
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments[half:]}}]})
        case Says(chunks) | Stalls(chunks):
            for text in chunks:
                yield chunk({"content": text})
    if not isinstance(answer, Stalls):
        yield chunk({}, _finish_reason(answer))
        yield {**frame, "choices": [], "usage": _USAGE}


async def _send_json(writer: asyncio.StreamWriter, status: int, value: JsonObject) -> None:
    body = json.dumps(value).encode()
    writer.write(b"HTTP/1.1 %d .\r\nContent-Type: application/json\r\n" % status)
    writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()


async def _send_stream(writer: asyncio.StreamWriter, chunks: Iterator[JsonObject]) -> None:
    writer.write(b"HTTP/1.1 200 .\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for chunk in chunks:
        writer.write(_http_chunk(b"data: " + json.dumps(chunk).encode() + b"\n\n"))
        await writer.drain()


async def _end_stream(writer: asyncio.StreamWriter) -> None:
    writer.write(_http_chunk(b"data: [DONE]\n\n") + _http_chunk(b""))
    await writer.drain()


def _http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
