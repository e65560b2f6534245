"""The doors of ``blocking.py`` for editors, which speak ACP, and for WebSocket clients."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shlex
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson
from blocking_server import Answer, Bench, Model, call
from driver import CALL_S, ServerError, environment

MASK: Final = b"\1\2\3\4"


class Editor:
    """An editor: its requests get responses, and it answers all questions of the server."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self.answers: dict[str, Any] = {}
        """Results by method. Others are empty objects."""
        self._ids = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, command: str, home: Path, model_url: str) -> Editor:
        variables = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": model_url, "OPENAI_MODEL": "fake-model"}
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command),
            "--no-auto-login",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env=environment(home) | variables,
            limit=1 << 26,
            start_new_session=True,
        )
        editor = cls(process)
        capabilities = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
        await editor.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
        return editor

    async def call(self, method: str, params: Any) -> Any:
        """Send a request and return its result.

        Raises:
            ServerError: the response is an error.
        """
        self._ids += 1
        answer = self._waiting[self._ids] = asyncio.get_running_loop().create_future()
        self.send({"id": self._ids, "method": method, "params": params})
        await self._stdin.drain()
        async with asyncio.timeout(CALL_S):
            return await answer

    def send(self, message: dict[str, Any]) -> None:
        self.write(orjson.dumps({"jsonrpc": "2.0", **message}) + b"\n")

    def write(self, data: bytes) -> None:
        self._stdin.write(data)

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()
        self._reading.cancel()

    async def _read(self) -> None:
        while line := await self._stdout.readline():
            message = orjson.loads(line)
            if (method := message.get("method")) is None:
                answer = self._waiting.pop(message.get("id") or 0, None)
                if answer is None or answer.done():
                    continue
                if error := message.get("error"):
                    answer.set_exception(ServerError(error["message"], error["code"]))
                else:
                    answer.set_result(message.get("result"))
            elif "id" in message:
                if method == "session/request_permission":
                    allowed = next(o for o in message["params"]["options"] if o["kind"] == "allow_once")
                    result = {"outcome": {"outcome": "selected", "optionId": allowed["optionId"]}}
                else:
                    result = self.answers.get(method, {})
                self.send({"id": message["id"], "result": result})


class EditorBench(Bench):
    """A server behind an editor."""

    def __init__(self, editor: Editor, model: Model, folder: Path, pings: asyncio.subprocess.Process) -> None:
        super().__init__(model, folder, pings)
        self.editor = editor

    async def session(self, folder: Path, servers: list[Any] | None = None) -> str:
        params = {"cwd": str(folder), "mcpServers": servers or []}
        return (await self.editor.call("session/new", params))["sessionId"]

    async def prompt(self, session: str, blocks: list[Any], *answers: Answer) -> None:
        self.model.answers = [*answers]
        await self.editor.call("session/prompt", {"sessionId": session, "prompt": blocks})


Entry: TypeAlias = Callable[[EditorBench, str], Awaitable[Callable[[], Awaitable[object]]]]


def _blocks(make: Callable[[str], list[Any]], *answers: Answer) -> Entry:
    async def entry(bench: EditorBench, text: str) -> Callable[[], Awaitable[object]]:
        session = await bench.session(await bench.project())
        return lambda: bench.prompt(session, make(text), *answers)

    return entry


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _resource(text: str) -> list[Any]:
    return [{"type": "resource", "resource": {"uri": "file:///a", "text": text, "mimeType": "text/plain"}}]


def _image(text: str) -> list[Any]:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + text.encode()).decode()
    return [_text("x"), {"type": "image", "mimeType": "image/png", "data": data}]


def _raw(make: Callable[[str], bytes]) -> Entry:
    """Send a line that is perhaps no message."""

    async def entry(bench: EditorBench, text: str) -> Callable[[], Awaitable[object]]:
        async def run() -> None:
            bench.editor.write(make(text).replace(b"\n", b" ") + b"\n")
            # Is answered after the line.
            with suppress(ServerError):
                await bench.editor.call("session/list", {})

        return run

    return entry


def _nested(text: str) -> bytes:
    deep = b"[" * (len(text) // 2) + b"]" * (len(text) // 2)
    return b'{"jsonrpc": "2.0", "method": "session/prompt", "id": "a", "params": {"_meta": %b}}' % deep


def _answers(make: Callable[[str], dict[str, Any]], name: str, **arguments: str) -> Entry:
    """Call a tool that asks the editor something."""

    async def entry(bench: EditorBench, text: str) -> Callable[[], Awaitable[object]]:
        folder = await bench.project(**{"f.txt": "one\n"})
        session = await bench.session(folder)
        bench.editor.answers = make(text)
        made = {key: value.replace("FOLDER", str(folder)) for key, value in arguments.items()}
        return lambda: bench.prompt(session, [_text("x")], call(name, **made))

    return entry


def _terminal(text: str) -> dict[str, Any]:
    return {
        "terminal/create": {"terminalId": "t"},
        "terminal/wait_for_exit": {"exitCode": 1},
        "terminal/output": {"output": text, "truncated": False, "exitStatus": {"exitCode": 1}},
    }


async def _servers(bench: EditorBench, text: str) -> Callable[[], Awaitable[object]]:
    folder = await bench.project()
    half = text[: len(text) // 2]
    servers = [
        {"name": f"{half[at : at + 100]}{at}", "command": "false", "args": [half[at : at + 100]], "env": []}
        for at in range(0, len(half), 5000)
    ]
    return lambda: bench.session(folder, servers)


EDITOR_ENTRIES: Final[Mapping[str, Entry]] = {
    "ACP prompt": _blocks(lambda text: [_text(text)]),
    "ACP blocks": _blocks(lambda text: [_text(text[at : at + 50]) for at in range(0, len(text), 50)]),
    "ACP command": _blocks(lambda text: [_text(f"/{text}")]),
    "ACP resource": _blocks(_resource),
    "ACP link": _blocks(
        lambda text: [{"type": "resource_link", "uri": f"file:///{text[:500_000]}", "name": text[:500_000]}]
    ),
    "ACP picture": _blocks(_image),
    "ACP answer": _blocks(lambda _: [_text("x")]),
    "ACP line": _raw(lambda text: text.encode("utf-8", "replace")),
    "ACP nesting": _raw(_nested),
    "ACP members": _raw(
        lambda text: orjson.dumps(
            {"jsonrpc": "2.0", "id": "a", "method": "session/new", "params": {text: text[:9]}}
        )
    ),
    "ACP MCP servers": _servers,
    "ACP file to view": _answers(
        lambda text: {"fs/read_text_file": {"content": text}}, "view", path="FOLDER/f.txt"
    ),
    "ACP file to edit": _answers(
        lambda text: {"fs/read_text_file": {"content": text}},
        "edit",
        path="FOLDER/f.txt",
        old_str="one",
        new_str="two",
    ),
    "ACP terminal": _answers(_terminal, "bash", command="true"),
}


class WebClient:
    """A WebSocket client."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.pid = process.pid
        self._process, self._reader, self._writer = process, reader, writer

    @classmethod
    async def start(cls, command: str, port: int, home: Path) -> WebClient:
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command),
            "--ws-port",
            str(port),
            "--no-auto-login",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env=environment(home),
            start_new_session=True,
        )
        assert process.stdout is not None
        # It is ready.
        await process.stdout.readline()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"GET /rpc HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n" % port
        )
        if b" 101 " not in await reader.readuntil(b"\r\n\r\n"):
            raise ServerError("no WebSocket")
        client = cls(process, reader, writer)
        client.send([b'{"jsonrpc": "2.0", "id": 1, "method": "connect", "params": {}}'])
        await client.answer()
        return client

    def send(self, parts: list[bytes]) -> None:
        """Send a message in frames."""
        frames = bytearray()
        for number, part in enumerate(parts):
            opcode = (0 if number else 1) | (0x80 if number == len(parts) - 1 else 0)
            length = len(part)
            head = bytes((0x80 | length,)) if length < 126 else b"\xff" + length.to_bytes(8)
            padded = part + bytes(-length % 4)
            masked = int.from_bytes(padded) ^ int.from_bytes(MASK * (len(padded) // 4))
            frames += bytes((opcode,)) + head + MASK + masked.to_bytes(len(padded))[:length]
        self._writer.write(frames)

    async def answer(self) -> None:
        """Wait for the next message."""
        async with asyncio.timeout(CALL_S):
            length = (await self._reader.readexactly(2))[1]
            if length >= 126:
                length = int.from_bytes(await self._reader.readexactly(2 if length == 126 else 8))
            await self._reader.readexactly(length)

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()
        self._writer.close()


class WebBench(Bench):
    """A server behind a WebSocket."""

    def __init__(self, client: WebClient, model: Model, folder: Path, pings: asyncio.subprocess.Process) -> None:
        super().__init__(model, folder, pings)
        self.client = client


def _frames(size: int, make: Callable[[str], bytes]) -> Callable[[WebBench, str], Any]:
    async def entry(bench: WebBench, text: str) -> Callable[[], Awaitable[object]]:
        data = make(text)
        parts = [data[at : at + size] for at in range(0, len(data), size)]

        async def run() -> None:
            bench.client.send(parts)
            await bench.client.answer()

        return run

    return entry


def _ping(text: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping", "params": {"message": text}}).encode()


WEB_ENTRIES: Final[Mapping[str, Callable[[WebBench, str], Any]]] = {
    "WebSocket message": _frames(1 << 24, _ping),
    "WebSocket message of text": _frames(1 << 24, lambda text: text.encode("utf-8", "replace")),
    "WebSocket frames of 100": _frames(100, _ping),
    "WebSocket frames of 1": _frames(1, lambda text: _ping(text[: len(text) // 7])),
}
