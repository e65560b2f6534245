"""Measure the door of the Agent Host Protocol beside that of the Copilot SDK protocol.

    agent_hosts.py [--subscribers N] [--deltas N] [--sessions N] [--turns N] [--joins N] [--command COMMAND]

One session streams an answer to all subscribers, at one door after the other: processor time of the server per
delta and subscriber, and its memory. Clients join a session one after another, at each door. Then the time of the
first snapshot of a chat with many turns, of coming back to it after a lost connection and after a restart, and that
of the first page of a list of many sessions, as seen by a client, and the longest time that a ping has waited
meanwhile. Only figures of one run can be compared with each other: other programs may use the processors.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from growth import copy_session
from process import cpu_seconds, memory_mib
from websockets.asyncio.client import ClientConnection, connect

CONFIG: Final = '[adapters.fake]\ntype = "scripted"\nscript = "script.json"\nmodels = ["one"]\n'
ROOT: Final = "ahp-root://"
LIMIT_S: Final = 300.0
RETURN_TURNS: Final = 5
"""The turns that a client misses who then comes back; with many more, it gets a snapshot."""


class Client:
    """A client of either door on a WebSocket; the answers come in the order of the requests."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0

    async def call(self, method: str, **params: Any) -> Any:
        """Send a request and return its result."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        await self._socket.send(json.dumps(message))
        mark = f'"id":{self._number},'
        while True:
            text = await self._socket.recv()
            if mark in str(text)[:60]:
                answer = json.loads(text)
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]

    async def notify(self, method: str, **params: Any) -> None:
        await self._socket.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def abort(self) -> None:
        """End the connection at once, with what is unread."""
        self._socket.transport.abort()

    async def read_until(self, mark: str) -> int:
        """Read until a message contains ``mark``; return the number of messages."""
        count = 0
        while True:
            count += 1
            if mark in str(await self._socket.recv()):
                return count


@asynccontextmanager
async def serving(command: str, home: Path) -> AsyncGenerator[tuple[int, int]]:
    """Run a server; yields its process id and its WebSocket port."""
    (home / "config.toml").write_text(CONFIG)
    argv = [*shlex.split(command), "--ws-port", "0", "--no-token"]
    environ = {**os.environ, "COPILOT_HOME": str(home), "HOME": str(home)}
    process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE, env=environ, cwd=home)
    assert process.stdout is not None
    try:
        found = re.search(rb"port (\d+)", await process.stdout.readline())
        assert found is not None
        yield process.pid, int(found[1])
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def client_of(port: int, path: str, client_id: str | None = None) -> AsyncGenerator[Client]:
    async with connect(
        f"ws://127.0.0.1:{port}/{path}",
        proxy=None,
        max_size=None,
        max_queue=None,
        compression=None,
        ping_interval=None,
    ) as socket:
        client = Client(socket)
        if path == "ahp":
            params = {"clientId": client_id or str(uuid4()), "protocolVersions": ["1.0.0"]}
            await client.call("initialize", channel=ROOT, **params)
        else:
            await client.call("connect")
        yield client


def chat_of(session: str) -> str:
    from base64 import urlsafe_b64encode

    return f"ahp-chat://default/{urlsafe_b64encode(f'ahp-session:/{session}'.encode()).decode().rstrip('=')}"


async def prompt(client: Client, session: str, turn: str) -> None:
    message = {"text": "talk", "origin": {"kind": "user"}}
    action = {
        "type": "chat/turnStarted",
        "turnId": turn,
        "startedAt": "2026-01-01T00:00:00.000Z",
        "message": message,
    }
    await client.notify("dispatchAction", channel=chat_of(session), clientSeq=1, action=action)


async def streamed(port: int, pid: int, path: str, subscribers: int, deltas: int) -> None:
    """Print the cost of an answer for all subscribers of one session."""
    session = str(uuid4())
    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(client_of(port, "ahp"))
        await host.call("createSession", channel=f"ahp-session:/{session}")
        await host.call("subscribe", channel=chat_of(session))
        # The first turn of a process loads what turns need.
        await prompt(host, session, "t0")
        await host.read_until("chat/turnComplete")
        before = memory_mib(pid)
        clients = [await stack.enter_async_context(client_of(port, path)) for _ in range(subscribers)]
        for client in clients:
            if path == "ahp":
                await client.call("subscribe", channel=chat_of(session))
            else:
                await client.call("session.resume", sessionId=session, streaming=True)
        began, used = time.perf_counter(), cpu_seconds(pid)
        await prompt(host, session, "t1")
        end = "chat/turnComplete" if path == "ahp" else '"session.idle"'
        counts = await asyncio.gather(*(client.read_until(end) for client in clients))
        seconds, used = time.perf_counter() - began, cpu_seconds(pid) - used
        sent = deltas * subscribers
        print(
            f"{path}: {subscribers} subscribers, {deltas} deltas: {sent / seconds:,.0f} deltas/s as read here, "
            f"{used / sent * 1e6:.1f} us of the server for each; {sum(counts) / subscribers:.0f} messages a client,"
            f" memory {memory_mib(pid) - before:.0f} MiB more"
        )


async def joined(port: int, pid: int, path: str, joins: int) -> None:
    """Print the cost of clients that join one session, one after another and all staying."""
    session = str(uuid4())
    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(client_of(port, "ahp"))
        await host.call("createSession", channel=f"ahp-session:/{session}")
        # Otherwise, it would be closed while the others connect.
        await host.call("subscribe", channel=chat_of(session))
        clients = [await stack.enter_async_context(client_of(port, path)) for _ in range(joins)]
        for part in (clients[: joins // 4], clients[joins // 4 :]):
            began, used = time.perf_counter(), cpu_seconds(pid)
            for client in part:
                if path == "ahp":
                    await client.call("subscribe", channel=f"ahp-session:/{session}")
                    await client.call("subscribe", channel=chat_of(session))
                else:
                    await client.call("session.resume", sessionId=session, streaming=True)
            seconds, used = time.perf_counter() - began, cpu_seconds(pid) - used
            which = "first" if part[0] is clients[0] else "next"
            print(
                f"{path}: the {which} {len(part)} clients join in {seconds:.1f} s, "
                f"{used / len(part) * 1000:.1f} ms of the server for each"
            )
        for client in clients:
            client.abort()


async def returned(port: int, pid: int, session: str, last_seen: int, what: str, client_id: str) -> None:
    """Print the cost of coming back to a session and its chat."""
    async with connect(f"ws://127.0.0.1:{port}/ahp", proxy=None, max_size=None, compression=None) as socket:
        client = Client(socket)
        channels = [f"ahp-session:/{session}", chat_of(session)]
        place = {"clientId": client_id, "lastSeenServerSeq": last_seen, "subscriptions": channels}
        async with timed(port, pid, f"{what}: reconnect"):
            answer = await client.call("reconnect", channel=ROOT, **place)
        size = len(json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode())
        print(f"    answered with {answer['type']}, {len(answer.get('actions', ()))} actions, {size:,} bytes")


async def pinging(client: Client, waits: list[float]) -> None:
    """Note how long pings wait, until cancelled."""
    while True:
        began = time.perf_counter()
        await client.call("ping", channel=ROOT)
        waits.append(time.perf_counter() - began)
        await asyncio.sleep(0.002)


@asynccontextmanager
async def timed(port: int, pid: int, what: str) -> AsyncGenerator[None]:
    waits: list[float] = []
    async with client_of(port, "ahp") as other:
        pings = asyncio.create_task(pinging(other, waits))
        began, used = time.perf_counter(), cpu_seconds(pid)
        yield
        took, used = time.perf_counter() - began, cpu_seconds(pid) - used
        await asyncio.sleep(0.02)
        pings.cancel()
    print(
        f"{what}: {took * 1000:.0f} ms ({used * 1000:.0f} ms of the server), "
        f"longest wait of a ping {max(waits) * 1000:.0f} ms, memory {memory_mib(pid):.0f} MiB"
    )


async def measure(command: str, subscribers: int, deltas: int, sessions: int, turns: int, joins: int) -> None:
    with tempfile.TemporaryDirectory(prefix="agent-hosts-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        answer = {"deltas": ["words "] * deltas}
        (home / "script.json").write_text(json.dumps({"turns": [answer], "after_last": "repeat"}))
        async with serving(command, home) as (pid, port):
            await streamed(port, pid, "ahp", subscribers, deltas)
            await streamed(port, pid, "rpc", subscribers, deltas)
            await joined(port, pid, "ahp", joins)
            await joined(port, pid, "rpc", joins)
        (home / "script.json").write_text(json.dumps({"turns": [{"text": "word " * 100}], "after_last": "repeat"}))
        session = str(uuid4())
        async with serving(command, home) as (_, port), client_of(port, "ahp") as client:
            await client.call("createSession", channel=f"ahp-session:/{session}")
            await client.call("subscribe", channel=chat_of(session))
            for number in range(turns):
                await prompt(client, session, f"t{number}")
                await client.read_until("chat/turnComplete")
        async with serving(command, home) as (pid, port), client_of(port, "ahp") as client:
            async with timed(port, pid, f"first snapshot of {turns} turns"):
                await client.call("subscribe", channel=chat_of(session))
            async with timed(port, pid, "second snapshot"):
                await client.call("subscribe", channel=chat_of(session))
            async with timed(port, pid, "snapshot of the last 20 turns"):
                await client.call("subscribe", channel=chat_of(session), view={"turns": 20})
            async with client_of(port, "ahp", "away") as away:
                await away.call("subscribe", channel=f"ahp-session:/{session}")
                seen = (await away.call("subscribe", channel=chat_of(session)))["snapshot"]["fromSeq"]
            for number in range(RETURN_TURNS):
                await prompt(client, session, f"u{number}")
                await client.read_until("chat/turnComplete")
            await returned(port, pid, session, seen, f"after {RETURN_TURNS} turns of others", "away")
        async with serving(command, home) as (pid, port):
            await returned(port, pid, session, seen, f"after a restart, {turns + RETURN_TURNS} turns", "away")
        # One of those with a prompt: lists show no others.
        stored = [path for path in (home / "session-state").iterdir() if path.name != session]
        small = max(stored, key=lambda path: (path / "events.jsonl").stat().st_size)
        copy_session(small, small.name, sessions)
        async with serving(command, home) as (pid, port), client_of(port, "ahp") as client:
            for what in ("first ever", "second"):
                async with timed(port, pid, f"{what} list of {sessions} sessions, a page of 100"):
                    page = await client.call("listSessions", channel=ROOT)
            async with timed(port, pid, "all its pages"):
                while (cursor := page.get("nextCursor")) is not None:
                    page = await client.call("listSessions", channel=ROOT, cursor=cursor)
        async with (
            serving(command, home) as (pid, port),
            client_of(port, "ahp") as client,
            timed(port, pid, "first list after a start"),
        ):
            await client.call("listSessions", channel=ROOT)
        async with (
            serving(command, home) as (pid, port),
            client_of(port, "rpc") as client,
            timed(port, pid, "session.list of the Copilot SDK protocol, after a start"),
        ):
            await client.call("session.list")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure the door of the Agent Host Protocol.")
    parser.add_argument("--subscribers", type=int, default=1000)
    parser.add_argument("--deltas", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--joins", type=int, default=400)
    parser.add_argument("--command", default=f"{Path(sys.executable).parent / 'jumpseat'}")
    given = parser.parse_args(argv)
    coroutine = measure(given.command, given.subscribers, given.deltas, given.sessions, given.turns, given.joins)
    asyncio.run(asyncio.wait_for(coroutine, 4 * LIMIT_S))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
