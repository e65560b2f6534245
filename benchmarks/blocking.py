"""Measure for how long one input of a mebibyte keeps a server from answering others.

    blocking.py [--only TEXT...] [--units NAME...] [--bytes N] [--command COMMAND]

Each input, ordinary and hostile, is sent to each entry of a server, while another program asks for its health every
ten milliseconds over a connection of its own. Shown are the longest wait for an answer, and the longest processor
time that the server's main thread took between a question and its answer, which other programs on the machine do
not change. The exit code is 1 if that is more than 100 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from blocking_server import AskedServer, Bench, Model, SdkBench
from doors import ENTRIES, FOREIGN_SERVERS
from other_doors import EDITOR_ENTRIES, WEB_ENTRIES, Editor, EditorBench, WebBench, WebClient

LIMIT_MS: Final = 100.0
SHOWN_MS: Final = 40.0
PAUSE_S: Final = 0.01
MIB: Final = 2**20

Started: TypeAlias = tuple[Bench, Callable[[], Awaitable[None]]]
"""A started server, and a function that kills it."""

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
    "tables": "<table><tr><td>",
    "attributes": '<a href="/a" title="b">c</a>',
    "references": "&#x26;",
    "comments": "<!--",
    "anchors": "&a [*a] ",
    "keyed": "[a]\nb = 1\n",
}


async def run(command: str, size: int, only: list[str], units: list[str]) -> bool:
    """Measure all; return whether nothing took longer than the limit."""
    model, good = Model(), True
    async with model.listening():
        for start, entries in DOORS:
            chosen = {title: entry for title, entry in entries.items() if any(part in title for part in only)}
            if not chosen:
                continue
            with tempfile.TemporaryDirectory(prefix="blocking-", ignore_cleanup_errors=True) as name:
                bench, kill = await start(command, Path(name), model)
                for title, entry in chosen.items():
                    good = await _try(bench, title, entry, size, units) and good
                await kill()
    return good


async def _try(bench: Bench, title: str, entry: Callable[..., Any], size: int, units: list[str]) -> bool:
    """Send all texts through a door; return whether nothing took longer than the limit."""
    good = True
    for unit, part in UNITS.items():
        if units and unit not in units:
            continue
        bench.failure = ""
        text = (part * (size // len(part.encode()) + 1)).encode()[:size].decode("utf-8", "ignore")
        wait, cpu = await bench.measured(await entry(bench, text))
        good = good and cpu <= LIMIT_MS
        if cpu > SHOWN_MS or wait > SHOWN_MS * 4 or bench.failure:
            print(f"{title:28} {unit:12} {wait:7.0f} ms  {cpu:7.0f} ms of the processor {bench.failure}")
    print(f"{title:28} done", flush=True)
    return good


async def _start_sdk(command: str, home: Path, model: Model) -> Started:
    port = _free_port()
    (home / "config.toml").write_text(_config(home))
    server = await AskedServer.start(f"{command} --metrics-port {port}", home, model.url)
    assert isinstance(server, AskedServer)
    await server.call("connect", {})
    return SdkBench(server, model, home, await _pings(port, server.pid)), server.kill


async def _start_editor(command: str, home: Path, model: Model) -> Started:
    port = _free_port()
    (home / "config.toml").write_text(_config(home))
    editor = await Editor.start(f"{command} acp --metrics-port {port}", home, model.url)
    return EditorBench(editor, model, home, await _pings(port, editor.pid)), editor.kill


async def _start_web(command: str, home: Path, model: Model) -> Started:
    port, web_port = _free_port(), _free_port()
    (home / "config.toml").write_text(_config(home))
    client = await WebClient.start(f"{command} --metrics-port {port} --no-token", web_port, home)
    return WebBench(client, model, home, await _pings(port, client.pid)), client.kill


DOORS: Final[
    Sequence[tuple[Callable[[str, Path, Model], Awaitable[Started]], Mapping[str, Callable[..., Any]]]]
] = (
    (_start_sdk, ENTRIES),
    (_start_editor, EDITOR_ENTRIES),
    (_start_web, WEB_ENTRIES),
)
"""How servers are started, and the doors of each."""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


async def _pings(port: int, pid: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        "--pings",
        str(port),
        str(pid),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _config(home: Path) -> str:
    lines = [f"trusted_folders = [{json.dumps(str(home))}]", "[tools.web_fetch]", "allow_private = true"]
    lines += ["[lsp]", "defaults = false"]
    for place in ("one", "many"):
        args = json.dumps([FOREIGN_SERVERS, "lsp", place, str(home / "text")])
        lines += [f"[lsp.{place}]", f"command = {json.dumps(sys.executable)}", f"args = {args}"]
        lines.append(f'extensions = {{".{place}" = "{place}"}}')
    return "\n".join(lines)


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
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the names of entries")
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
