"""Measure for how long one input of a mebibyte keeps a server from answering others.

    blocking.py [--only TEXT] [--units NAME...] [--bytes N] [--command COMMAND]

Each input, ordinary and hostile, is sent to each entry of a server, while another program asks for its health every
ten milliseconds over a connection of its own. Shown are the longest wait for an answer, and the longest processor
time that the server's main thread took between a question and its answer, which other programs on the machine do
not change. The exit code is 1 if that is more than 100 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import select
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import orjson
from driver import Server, ServerError, Turn

LIMIT_MS: Final = 100.0
SHOWN_MS: Final = 40.0
PAUSE_S: Final = 0.01
MIB: Final = 2**20

UNITS: Final[Mapping[str, str]] = {
    "code": "def name(first, second):\n    return [first, second + 1]  # comment\n\n",
    "prose": "The quick brown fox jumps over the lazy dog, and runs away. ",
    "letters": "a",
    "spaces": " ",
    "lines": "\n",
    "quotes": '"',
    "backslashes": "\\",
    "brackets": "[",
    "braces": '{"a":',
    "angles": "<",
    "tags": "<tool>",
    "calls": '<tool name="bash"><command>',
    "ends": "</tool>",
    "entities": "&lt;",
    "fences": "```xml\n",
    "slashes": "/a",
    "dollars": "$(",
    "dashes": "- ",
    "options": "--a=b ",
    "controls": "\x1b[",
    "hidden": "\u202e",
    "mixed": "a\u043f ",
    "emoji": "\U0001f600\u200d",
    "digits": "1",
    "equals": "a=",
    "diff": "+a\n-b\n",
    "at": "@a ",
    "addresses": "http://a/ ",
    "keys": "sk-aaaaaaaaaaaaaaaaaaaaaaaa ",
    "numbered": "1\ta\n",
}


class Model:
    """A model whose next answers are given: a list of deltas of chat completions each."""

    def __init__(self) -> None:
        self.answers: list[list[dict[str, Any]]] = []
        self.url = ""

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
                length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                await reader.readexactly(int(length[1]) if length else 0)
                deltas = self.answers.pop(0) if self.answers else [{"content": "done"}]
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
    """A server, a connection to it, and the program that sends pings."""

    def __init__(self, server: AskedServer, model: Model, folder: Path, pings: asyncio.subprocess.Process) -> None:
        self.server = server
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

    async def session(self, folder: Path, **options: Any) -> str:
        return await self.server.create(workingDirectory=str(folder), enableConfigDiscovery=True, **options)

    async def turn(self, session: str, prompt: str, *answers: list[dict[str, Any]], **more: Any) -> Turn | None:
        self.model.answers = [*answers]
        try:
            return await self.server.turn(session, prompt, **more)
        except (ServerError, TimeoutError) as error:
            self.failure = f"{type(error).__name__} {str(error)[:100]}"
            return None

    async def measured(self, run: Callable[[], Awaitable[object]]) -> tuple[float, float]:
        """Return the longest wait and the longest processor time, in milliseconds, while ``run`` is awaited."""
        assert self._pings.stdin is not None
        assert self._pings.stdout is not None
        self._pings.stdin.write(b"begin\n")
        await self._pings.stdout.readline()
        await run()
        # What the server does after the answer counts as well.
        await asyncio.sleep(0.2)
        self._pings.stdin.write(b"end\n")
        wait, cpu = (await self._pings.stdout.readline()).split()
        return float(wait), float(cpu)


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
    text = json.dumps(arguments, ensure_ascii=False)
    size = max(1, len(text) // 100)
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


Entry = Callable[["Bench", str], Awaitable[Callable[[], Awaitable[object]]]]


async def _prompt(bench: Bench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.session(await bench.project())
    return lambda: bench.turn(session, text)


async def _answer(bench: Bench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.session(await bench.project())
    return lambda: bench.turn(session, "x", [{"content": text}])


async def _pieces(bench: Bench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.session(await bench.project())
    size = max(1, len(text) // 1000)
    deltas = [{"content": text[at : at + size]} for at in range(0, len(text), size)]
    return lambda: bench.turn(session, "x", deltas)


async def _reasoning(bench: Bench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.session(await bench.project())
    return lambda: bench.turn(session, "x", [{"reasoning_content": text}, {"content": "done"}])


async def _xml(bench: Bench, text: str) -> Callable[[], Awaitable[object]]:
    provider = {"type": "openai", "baseUrl": bench.model.url, "apiKey": "none", "toolProtocol": "xml"}
    session = await bench.session(await bench.project(), provider=provider)
    size = max(1, len(text) // 100)
    deltas = [{"content": text[at : at + size]} for at in range(0, len(text), size)]
    return lambda: bench.turn(session, "x", deltas)


async def _xml_whole(bench: Bench, text: str) -> Callable[[], Awaitable[object]]:
    provider = {"type": "openai", "baseUrl": bench.model.url, "apiKey": "none", "toolProtocol": "xml"}
    session = await bench.session(await bench.project(), provider=provider)
    return lambda: bench.turn(session, "x", [{"content": f'<tool name="bash"><command>{text}'}])


def _tool(
    name: str, files: Callable[[str], dict[str, str]] = lambda _: {}, **arguments: str | Callable[[str], Any]
) -> Entry:
    async def entry(bench: Bench, text: str) -> Callable[[], Awaitable[object]]:
        folder = await bench.project(**files(text))
        session = await bench.session(folder)
        made = {
            key: value(text) if callable(value) else value.replace("FOLDER", str(folder))
            for key, value in arguments.items()
        }
        return lambda: bench.turn(session, "x", call(name, **made))

    return entry


async def _malformed(bench: Bench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.session(await bench.project())
    function = {"name": "bash", "arguments": text}
    delta = {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]}
    return lambda: bench.turn(session, "x", [delta])


async def _client_tool(bench: Bench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.server.create()
    bench.server.tool_result = text
    return lambda: bench.turn(session, "x", call("add", a=1))


def _file(name: str) -> Entry:
    async def entry(bench: Bench, text: str) -> Callable[[], Awaitable[object]]:
        folder = await bench.project(**{name: text})

        async def run() -> None:
            try:
                session = await bench.session(folder)
                await bench.turn(session, "x", call("bash", command="true"))
            except ServerError:
                pass

        return run

    return entry


async def _picture(bench: Bench, text: str) -> Callable[[], Awaitable[object]]:
    import base64

    folder = await bench.project()
    data = b"\x89PNG\r\n\x1a\n" + text.encode("utf-8", "surrogatepass")
    session = await bench.session(folder)
    blob = {
        "type": "blob",
        "data": base64.b64encode(data).decode(),
        "mimeType": "image/png",
        "displayName": "p.png",
    }

    async def run() -> None:
        await bench.turn(session, "x", attachments=[blob])
        await bench.turn(session, "y")

    return run


ENTRIES: Final[Mapping[str, Entry]] = {
    "prompt": _prompt,
    "answer": _answer,
    "answer in 1,000 pieces": _pieces,
    "reasoning": _reasoning,
    "XML": _xml,
    "XML call": _xml_whole,
    "malformed arguments": _malformed,
    "command": _tool("bash", command=lambda text: text),
    "command, quoted": _tool("bash", command=lambda text: f"echo {shlex.quote(text)}"),
    "output": _tool("bash", lambda text: {"f.txt": text}, command="cat f.txt; exit 1"),
    "new file": _tool("create", path="FOLDER/new.txt", file_text=lambda text: text),
    "edit": _tool(
        "edit",
        lambda text: {"f.txt": text},
        path="FOLDER/f.txt",
        old_str=lambda text: text[: len(text) // 2],
        new_str="x",
    ),
    "edit, missing": _tool(
        "edit",
        lambda text: {"f.txt": text},
        path="FOLDER/f.txt",
        old_str=lambda text: text[: len(text) // 2] + "z",
        new_str="x",
    ),
    "edit, small": _tool(
        "edit", lambda text: {"f.txt": text}, path="FOLDER/f.txt", old_str="no such text", new_str="x"
    ),
    "view": _tool("view", lambda text: {"f.txt": text}, path="FOLDER/f.txt"),
    "grep": _tool("grep", lambda text: {"f.txt": text}, path="FOLDER", pattern=".", output_mode="content"),
    "path": _tool("view", path=lambda text: text),
    "pattern": _tool("grep", pattern=lambda text: text, path="FOLDER"),
    "glob": _tool("glob", pattern=lambda text: text, path="FOLDER"),
    "address": _tool("web_fetch", url=lambda text: f"http://127.0.0.1:9/{text}"),
    "host": _tool("web_fetch", url=lambda text: f"http://{text}"),
    "result of a client's tool": _client_tool,
    "picture": _picture,
    "AGENTS.md": _file("AGENTS.md"),
    "instructions": _file(".github__copilot-instructions.md"),
    "skill": _file(".github__skills__s__SKILL.md"),
    "prompt file": _file(".github__prompts__p.prompt.md"),
    ".mcp.json": _file(".mcp.json"),
    "settings": _file(".jumpseat__config.toml"),
    "git settings": _file(".git__config"),
    "hooks": _file(".github__hooks__h.json"),
}


async def run(command: str, size: int, only: str, units: list[str]) -> bool:
    """Measure all; return whether nothing took longer than the limit."""
    model, good = Model(), True
    with tempfile.TemporaryDirectory(prefix="blocking-", ignore_cleanup_errors=True) as name:
        async with model.listening():
            bench = await _start(command, Path(name), model)
            for title, entry in ENTRIES.items():
                if only not in title:
                    continue
                for unit, part in UNITS.items():
                    if units and unit not in units:
                        continue
                    bench.failure = ""
                    text = (part * (size // len(part.encode()) + 1)).encode()[:size].decode("utf-8", "ignore")
                    wait, cpu = await bench.measured(await entry(bench, text))
                    good = good and cpu <= LIMIT_MS
                    if cpu > SHOWN_MS or wait > SHOWN_MS * 4 or bench.failure:
                        print(
                            f"{title:28} {unit:12} {wait:7.0f} ms  {cpu:7.0f} ms of the processor {bench.failure}"
                        )
                print(f"{title:28} done", flush=True)
            await bench.server.kill()
    return good


async def _start(command: str, home: Path, model: Model) -> Bench:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = await AskedServer.start(f"{command} --metrics-port {port}", home, model.url)
    assert isinstance(server, AskedServer)
    await server.call("connect", {})
    pings = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        "--pings",
        str(port),
        str(server.pid),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    return Bench(server, model, home, pings)


def send_pings(port: int, pid: int) -> None:
    """Ask for the server's health every ten milliseconds between the lines ``begin`` and ``end``.

    Prints the longest wait and the longest processor time of the server's main thread, in milliseconds.
    """
    for _ in sys.stdin:
        longest = [0.0, 0.0]
        _ping(port, pid)
        print("begun", flush=True)
        while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
            longest = [max(pair) for pair in zip(longest, _ping(port, pid), strict=True)]
        sys.stdin.readline()
        print(*longest, flush=True)


def _ping(port: int, pid: int) -> tuple[float, float]:
    began, used = time.perf_counter(), _used(pid)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
    return (time.perf_counter() - began) * 1e3, (_used(pid) - used) / 1e6


def _used(pid: int) -> int:
    """Return the processor time of the main thread of a process, in nanoseconds."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--units", nargs="*", default=[])
    parser.add_argument("--bytes", type=int, default=MIB)
    parser.add_argument("--command", default=f"{sys.executable} -m jumpseat")
    parser.add_argument("--pings", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pings:
        send_pings(*options.pings)
        return 0
    return 0 if asyncio.run(run(options.command, options.bytes, options.only, options.units)) else 1


if __name__ == "__main__":
    sys.exit(main())
