"""The server of ``blocking.py``: its sessions, its model, and the program that sends pings meanwhile."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import orjson
from driver import Server, ServerError, Turn

Answer: TypeAlias = list[dict[str, Any]] | bytes
"""The deltas of an answer, or all bytes of a response."""


class Model:
    """A model whose next answers are given, and a page of the web. It answers after ``pause_s`` seconds."""

    def __init__(self, pause_s: float = 0.0) -> None:
        self.answers: list[Answer] = []
        self.pause_s = pause_s
        self.page = b""
        self.url = ""

    @property
    def page_url(self) -> str:
        """The address of ``page``."""
        return self.url.replace("/v1", "/page")

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None, None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with server:
            yield

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"GET /page"):
                    writer.write(
                        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
                    )
                    writer.write(self.page)
                    await writer.drain()
                    break
                length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length[1]) if length else 0)
                # Other requests ask for a title or a summary.
                is_turn = b'"tools"' in body or b"<tools>" in body
                deltas = self.answers.pop(0) if self.answers and is_turn else [{"content": "done"}]
                if self.pause_s:
                    await asyncio.sleep(self.pause_s)
                if isinstance(deltas, bytes):
                    writer.write(deltas)
                    await writer.drain()
                    break
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                )
                reason = "tool_calls" if any("tool_calls" in delta for delta in deltas) else "stop"
                choices: list[dict[str, Any]] = [*({"index": 0, "delta": delta} for delta in deltas)]
                choices.append({"index": 0, "delta": {}, "finish_reason": reason})
                for choice in choices:
                    chunk = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m"}
                    part = b"data: %b\n\n" % orjson.dumps(chunk | {"choices": [choice]})
                    writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                    await writer.drain()
                writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class Bench:
    """A server under ``folder``, its model, and the program that sends pings."""

    def __init__(self, model: Model, folder: Path, pings: asyncio.subprocess.Process | None) -> None:
        self.model = model
        self.folder = folder
        self._pings = pings
        self._count = 0
        self.failure = ""

    async def project(self, **files: str) -> Path:
        """Make a new folder with files, whose names are the keys with ``__`` for a slash."""
        self._count += 1
        folder = self.folder / f"project{self._count}"
        folder.mkdir()
        for name, text in files.items():
            path = folder / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8", "surrogatepass")
        return folder

    async def measured(self, run: Callable[[], Awaitable[object]]) -> tuple[float, float]:
        """Return the longest wait and the longest processor time, in milliseconds, while ``run`` is awaited."""
        assert self._pings is not None
        assert self._pings.stdin is not None
        assert self._pings.stdout is not None
        self._pings.stdin.write(b"begin\n")
        await self._pings.stdout.readline()
        try:
            await run()
        except (ServerError, TimeoutError, OSError) as error:
            self.failure = f"{type(error).__name__} {str(error)[:100]}"
        # What the server does after the answer counts as well.
        await asyncio.sleep(0.2)
        self._pings.stdin.write(b"end\n")
        wait, cpu = (await self._pings.stdout.readline()).split()
        return float(wait), float(cpu)


class SdkBench(Bench):
    """A server behind the protocol of the SDKs."""

    def __init__(
        self, server: AskedServer, model: Model, folder: Path, pings: asyncio.subprocess.Process | None
    ) -> None:
        super().__init__(model, folder, pings)
        self.server = server

    async def session(self, folder: Path, **options: Any) -> str:
        return await self.server.create(workingDirectory=str(folder), enableConfigDiscovery=True, **options)

    async def turn(self, session: str, prompt: str, *answers: Answer, **more: Any) -> Turn | None:
        self.model.answers = [*answers]
        try:
            return await self.server.turn(session, prompt, **more)
        except (ServerError, TimeoutError) as error:
            self.failure = f"{type(error).__name__} {str(error)[:100]}"
            return None


class AskedServer(Server):
    """A server whose questions are answered with approval."""

    def _event(self, session_id: str, event: dict[str, Any]) -> None:
        if event["type"] == "permission.requested":
            answer = {"sessionId": session_id, "requestId": event["data"]["requestId"]}
            self._request(
                "session.permissions.handlePendingPermissionRequest", answer | {"result": {"kind": "approve-once"}}
            )
        super()._event(session_id, event)


def call(name: str, **arguments: Any) -> list[dict[str, Any]]:
    """Return the deltas of a call, whose arguments come in 100 pieces."""
    return pieces_of_call(name, json.dumps(arguments, ensure_ascii=False), 100)


def pieces_of_call(name: str, text: str, count: int) -> list[dict[str, Any]]:
    """Return the deltas of a call, whose arguments come in ``count`` pieces."""
    size = max(1, len(text) // count)
    function = {"name": name, "arguments": ""}
    deltas = [
        {
            "tool_calls": [
                {"index": 0, "id": f"call_{time.monotonic_ns()}", "type": "function", "function": function}
            ]
        }
    ]
    for at in range(0, len(text), size):
        deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": text[at : at + size]}}]})
    return deltas
