"""Put a server under a mixed load, and check that its memory, handles, tasks and processes do not grow.

::

    make load                                          # five minutes
    make load ARGS='--minutes 60 --clients 6 --seed 7'

The server is a process of its own that listens on TCP. Each client connects, opens a few sessions, and does one
thing after the other in them: prompts with streamed answers over HTTP, calls of its own tools, confined commands,
MCP servers, aborted answers, compactions, forks, model calls without a session, deletions. Clients hang up in the
middle now and then. The exit code is 1 if something fails, or if a figure grows.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

from tests.support.fake_openai import MODEL, FakeOpenAI, calls, fake_openai, says, stalls
from tests.support.server import READABLE, JsonObject, RunningServer, Wire, running_server

CONNECTION_ACTIONS: Final = 40
"""The number of actions of one connection."""

KEPT_SESSIONS: Final = 4
"""Most sessions of one client; the oldest is deleted first."""

TOOLS: Final = [{"name": "lookup", "description": "x", "parameters": {"type": "object"}, "skipPermission": True}]

MCP_SERVER: Final = {
    "command": sys.executable,
    "args": ["-S", "-E", str(Path(__file__).with_name("mcp_tool.py"))],
    "tools": ["*"],
}

SCRIPT: Final = {
    "text please": [says(*(f"word {number} " for number in range(200)))],
    "tool please": [calls("lookup"), says("It is done.")],
    "file please": [calls("view", path="notes.txt"), says("It is done.")],
    "write please": [
        calls("create", path="made.txt", file_text="x"),
        calls("bash", command="rm made.txt"),
        says("ok"),
    ],
    "shell please": [calls("bash", command="for i in 1 2 3; do echo $i; done"), says("It is done.")],
    "long please": [calls("bash", command="seq 20000"), says("It is done.")],
    "echo please": [calls("tools-echo", text="x"), says("It is done.")],
    "stall please": [stalls("It begins")],
    "a detailed summary": [says("A summary.")],
}
"""The answers of the model, by prompt; the last one is for compactions."""

PROMPTS: Final = tuple(SCRIPT)[:-1]

COUNTER: Final = """
import sys

if "--headless" in sys.orig_argv:
    import asyncio, os, threading, time

    loops = []
    run_forever = asyncio.BaseEventLoop.run_forever

    def remember(loop):
        loops.append(loop)
        run_forever(loop)

    asyncio.BaseEventLoop.run_forever = remember

    def count():
        while True:
            time.sleep({pause})
            # Not by gc.get_objects, which makes tuple(generator) fail in other threads: bpo-15108.
            tasks = sum(len(asyncio.all_tasks(loop)) for loop in loops)
            with open({path!r} + ".new", "w") as file:
                file.write(str(tasks))
            os.replace({path!r} + ".new", {path!r})

    threading.Thread(target=count, daemon=True).start()
"""
"""A ``sitecustomize.py`` that has the server count its own tasks: nothing shows them from outside."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures of the server at one time, ``at_s`` seconds after the begin."""

    at_s: float
    rss_mib: float
    handles: int
    threads: int
    tasks: int
    processes: int
    actions: int


@dataclass
class Load:
    """What is known about the load so far."""

    folder: Path
    server: RunningServer
    model: FakeOpenAI
    choose: random.Random
    seconds: float
    most_actions: int | None = None
    begun: float = field(default_factory=time.monotonic)
    done: Counter[str] = field(default_factory=Counter[str])
    left: list[str] = field(default_factory=list[str])
    """The sessions of clients that have hung up: they stay live, and the next client takes them over."""
    samples: list[Sample] = field(default_factory=list[Sample])

    @property
    def at_s(self) -> float:
        return time.monotonic() - self.begun

    @property
    def over(self) -> bool:
        """Return whether the clients stop now: after the given time, or number of actions."""
        enough = self.most_actions is not None and self.done.total() >= self.most_actions
        return enough or self.at_s > self.seconds

    def sample(self) -> Sample:
        process = Path("/proc", str(self.server.process.pid))
        tasks = self.folder / "tasks"
        found = Sample(
            at_s=round(self.at_s),
            rss_mib=round(self.server.rss_bytes() / 1024**2, 1),
            handles=len(os.listdir(process / "fd")),
            threads=len(os.listdir(process / "task")),
            tasks=int(tasks.read_text()) if tasks.exists() else 0,
            processes=len(self.server.descendants()),
            actions=self.done.total(),
        )
        self.samples.append(found)
        return found


class Client:
    """One client: what it does on one connection."""

    def __init__(self, load: Load, wire: Wire) -> None:
        self._load = load
        self._wire = wire
        self._sessions: list[str] = []

    async def begin(self) -> None:
        """Take over the sessions of a client that has hung up."""
        taken, self._load.left[:] = self._load.left[:KEPT_SESSIONS], self._load.left[KEPT_SESSIONS:]
        for session in taken:
            options = {"sessionId": session, **self._options(mcp=False)}
            answer = await self._wire.response(await self._wire.ask("session.resume", options))
            # The session may not have been created before the client hung up.
            if "error" not in answer:
                await self._prompt(session, "text please")
                self._sessions.append(session)

    async def act(self) -> str:
        """Do one thing at random; return its name."""
        choose = self._load.choose
        if not self._sessions:
            await self._open()
            return "open"
        session = choose.choice(self._sessions)
        others = ("open", "resume", "fork", "compact", "complete", "delete", "list")
        name = choose.choice((*PROMPTS, *PROMPTS, *others))
        match name:
            case "open":
                await self._open()
            case "resume":
                await self._wire.call("session.destroy", {"sessionId": session})
                await self._wire.call("session.resume", {"sessionId": session, **self._options(mcp=False)})
            case "fork":
                fork = await self._wire.call("sessions.fork", {"sessionId": session})
                await self._wire.call("session.delete", {"sessionId": fork["sessionId"]})
            case "compact":
                await self._prompt(session, "text please")
                await self._wire.call("session.history.compact", {"sessionId": session})
            case "complete":
                messages = [{"role": "user", "content": [{"type": "text", "text": "text please"}]}]
                await self._wire.call(
                    "jumpseat.complete", {"provider": self._provider(), "model": MODEL, "messages": messages}
                )
            case "delete":
                self._sessions.remove(session)
                await self._wire.call("session.delete", {"sessionId": session})
            case "list":
                await self._wire.call("session.list")
            case _:
                await self._prompt(session, name)
        return name

    async def leave(self) -> None:
        """Delete all sessions, or hang up in the middle of a request."""
        if self._load.choose.random() < 0.5:
            for session in self._sessions:
                await self._wire.call("session.delete", {"sessionId": session})
        else:
            last = str(uuid.uuid4())
            self._load.left += [*self._sessions, last]
            await self._wire.ask("session.create", {"sessionId": last, **self._options(mcp=True)})

    async def _open(self) -> None:
        if len(self._sessions) == KEPT_SESSIONS:
            await self._wire.call("session.delete", {"sessionId": self._sessions.pop(0)})
        options = self._options(mcp=self._load.choose.random() < 0.2)
        session = (await self._wire.call("session.create", options))["sessionId"]
        # A session without a prompt is not stored, and cannot be resumed or forked.
        await self._prompt(session, "text please")
        self._sessions.append(session)

    async def _prompt(self, session: str, text: str) -> None:
        since = position = len(self._wire.messages)
        await self._wire.call("session.send", {"sessionId": session, "prompt": text})
        while True:
            await self._wire.wait_for_message_at(position)
            params: Any = self._wire.messages[position].get("params", {})
            position += 1
            if params.get("sessionId") != session:
                continue
            event = params.get("event", {})
            match event.get("type"):
                case "external_tool.requested":
                    answer = {"sessionId": session, "requestId": event["data"]["requestId"], "result": "found"}
                    await self._wire.call("session.tools.handlePendingToolCall", answer)
                case "assistant.message_delta" if text == "stall please":
                    await self._wire.call("session.abort", {"sessionId": session})
                case "session.error":
                    raise AssertionError(f"{text}: {event['data']}")
                case "session.idle":
                    break
                case _:
                    pass
        del self._wire.messages[since:]

    def _provider(self) -> JsonObject:
        return {"type": "openai", "baseUrl": self._load.model.base_url, "apiKey": "key-of-the-load-test-1"}

    def _options(self, *, mcp: bool) -> JsonObject:
        servers = {"mcpServers": {"tools": MCP_SERVER}} if mcp else {}
        folder = {"workingDirectory": str(self._load.folder)}
        return {
            "provider": self._provider(),
            "model": MODEL,
            "tools": TOOLS,
            "streaming": True,
            **servers,
            **folder,
        }


async def run_load(folder: Path, minutes: float, clients: int, seed: int, most_actions: int | None = None) -> Load:
    """Load a server in ``folder``, and print a sample about every hundredth part of the time.

    The last sample is of the server at rest.

    Raises:
        AssertionError: an action fails.
    """
    (folder / "notes.txt").write_text("notes")
    pause_s = max(2.0, minutes * 60 / 100)
    site = folder / "site"
    site.mkdir()
    counter = COUNTER.format(path=str(folder / "tasks"), pause=min(pause_s, 10) / 2)
    (site / "sitecustomize.py").write_text(counter)
    async with (
        fake_openai(SCRIPT) as model,
        running_server(
            folder,
            tcp=True,
            args=("--yolo",),
            env={"PYTHONPATH": str(site)},
            config=READABLE,
            limit_s=minutes * 60 + 300,
        ) as server,
    ):
        load = Load(folder, server, model, random.Random(seed), minutes * 60, most_actions)
        async with anyio.create_task_group() as observers:
            observers.start_soon(_observe, load, pause_s)
            async with anyio.create_task_group() as tasks:
                for _ in range(clients):
                    tasks.start_soon(_run_client, load)
            observers.cancel_scope.cancel()
        async with server.connect() as wire:
            listed = await wire.call("session.list")
            # A session that never had a prompt is not listed, and one of a client that hung up may not exist.
            for session in {*load.left, *(session["sessionId"] for session in listed["sessions"])}:
                await wire.response(await wire.ask("session.delete", {"sessionId": session}))
        for _ in range(2):
            # The first count may have begun before.
            (folder / "tasks").unlink(missing_ok=True)
            while not (folder / "tasks").exists():  # noqa: ASYNC110 - made by another process
                await anyio.sleep(0.1)
        print("at rest:", load.sample(), flush=True)
    return load


async def _observe(load: Load, pause_s: float) -> None:
    while True:
        await anyio.sleep(pause_s)
        print(load.sample(), flush=True)
        load.model.requests.clear()
        load.model.authorizations.clear()
        load.model.headers.clear()


async def _run_client(load: Load) -> None:
    while not load.over:
        async with load.server.connect() as wire:
            # The server is as busy as it can be.
            wire.wait_s = 120
            client = Client(load, wire)
            await client.begin()
            for _ in range(CONNECTION_ACTIONS):
                load.done[await client.act()] += 1
                if load.over:
                    break
            await client.leave()


def growth_of(samples: list[Sample]) -> list[str]:
    """Return the figures that were higher in the last quarter than in the second one, by more than their noise."""
    quarter = len(samples) // 4
    problems: list[str] = []
    for name, slack in (("rss_mib", 0.1), ("handles", 0.2), ("threads", 0.2), ("tasks", 0.2), ("processes", 0.2)):
        before, after = (
            statistics.median(getattr(sample, name) for sample in part)
            for part in (samples[quarter : 2 * quarter], samples[-quarter:])
        )
        print(f"{name:10} {before:8.1f} in the second quarter, {after:8.1f} in the last one")
        if after > before * (1 + slack) + 3:
            problems.append(name)
    return problems


def main() -> int:
    """Parse the arguments, load the server, and compare."""
    parser = argparse.ArgumentParser(prog="make load", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        load = anyio.run(run_load, Path(folder), options.minutes, options.clients, options.seed)
    print(f"{load.done.total()} actions: {dict(load.done.most_common())}")
    problems = growth_of(load.samples[:-1])
    for name in problems:
        print(f"{name} grows")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
