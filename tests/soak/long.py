"""Hold one long session with sub-agents, tools, compactions and rewinds, and check it from time to time.

::

    make long                                          # 300 turns
    make long ARGS='--turns 1000'

The scripted model is served over HTTP, so that each of its requests can be checked: every call has one result, in
order. Every tenth of the way, a fresh process opens a copy of the session. Its next request must be that of the
live session, and the conversation must be valid on the wires of other providers, too. The exit code is 1 if the
memory of the server grows.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

from jumpseat.adapters.scripted import Script
from jumpseat_testkit.model.server import ModelServer
from tests.soak.views import problem_of_agents, problem_of_calls, problem_of_parents
from tests.support.server import READABLE, JsonObject, RunningServer, Wire, running_server
from tests.support.wire_rules import check_calls

REWIND_EVERY: Final = 11
"""The number of turns between two rewinds, each of which takes back two prompts."""

SUMMARY: Final = "<overview>Much was done.</overview><checkpoint_title>Much was done</checkpoint_title>"
TEXT: Final[JsonObject] = {"deltas": [f"sentence {number} of a long answer. " for number in range(60)]}
DONE: Final[JsonObject] = {"text": "It is done."}


def _calls(*calls: tuple[str, JsonObject]) -> JsonObject:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


def _agent(prompt: str, mode: str = "sync", name: str = "helper") -> tuple[str, JsonObject]:
    given = {"name": name, "agent_type": "task", "description": "x", "prompt": f"task: {prompt}", "mode": mode}
    return "task", given


def _shell(command: str) -> tuple[str, JsonObject]:
    return "bash", {"command": command, "description": "x"}


TURNS: Final[dict[str, list[JsonObject]]] = {
    "talk": [TEXT],
    "tools": [
        _calls(("lookup", {"of": "x" * 200}), ("view", {"path": "notes.txt"}), _shell("seq 200")),
        _calls(("create", {"path": "made.txt", "file_text": "made\n"}), ("lookup", {})),
        _calls(_shell("mv made.txt kept.txt; cat kept.txt"), ("view", {"path": "missing.txt"})),
        DONE,
    ],
    "two agents": [_calls(_agent("search here"), _agent("search there")), DONE],
    "in the background": [_calls(_agent("search afar", "background"), ("lookup", {})), DONE],
    "agents of agents": [_calls(_agent("lead it"), ("lookup", {})), DONE],
    "a conversation": [
        _calls(_agent("search here", name="{{last_user}}")),
        _calls(("write_agent", {"agent_id": "{{last_user}}", "message": "task: search more"})),
        _calls(("read_agent", {"agent_id": "{{last_user}}", "wait": True})),
        DONE,
    ],
    "a failure": [_calls(_agent("fail it"), _agent("search here")), DONE],
    "a cancellation": [_calls(_agent("hang it", "background")), DONE],
    "an abort": [_calls(_agent("hang it"), _agent("search here")), DONE],
}
"""The answers of the main agent's model, by kind of prompt; the session has one of each kind in turn."""

AGENTS: Final[dict[str, list[JsonObject]]] = {
    "search": [_calls(("view", {"path": "notes.txt"}), ("lookup", {})), _calls(_shell("seq 100")), TEXT],
    "lead it": [_calls(_agent("search here"), _agent("search afar", "background")), TEXT],
    "fail it": [{"errors": [{"status": 400, "message": "refused"}], "text": "-"}],
    "hang it": [_calls(("lookup", {})), {"deltas": ["I begin"], "hang": True}],
}
"""The answers of the sub-agents' models."""

ELSEWHERE: Final[tuple[JsonObject, ...]] = (
    {"type": "anthropic", "baseUrl": "http://127.0.0.1:9", "apiKey": "k"},
    {"type": "gemini", "baseUrl": "http://127.0.0.1:9", "apiKey": "k"},
    {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": "k", "wireApi": "responses"},
)
"""Providers of other wires, which are asked nothing."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures of the server after a turn; ``requests`` are those to the model so far."""

    turn: int
    rss_mib: float
    log_mib: float
    requests: int


@dataclass
class LongSession:
    """The session, its server and its model."""

    folder: Path
    server: RunningServer
    model: ModelServer
    options: JsonObject
    id: str = ""
    requests: int = 0
    compactions: int = 0
    rewinds: int = 0
    agents: int = 0
    replays: int = 0
    samples: list[Sample] = field(default_factory=list[Sample])

    @property
    def wire(self) -> Wire:
        return self.server.wire

    async def take_turn(self, number: int) -> None:
        """Send the prompt of a turn, wait for its end, and check the requests to the model."""
        kind = list(TURNS)[number % len(TURNS)]
        since = len(self.wire.messages)
        here = {"sessionId": self.id}
        await self.wire.call("session.send", here | {"prompt": f"turn {number}: {kind}"})
        if kind == "a cancellation":
            started = await self.wire.event("subagent.started", since=since)
            await self.wire.call("session.tasks.cancel", here | {"id": started["agentId"]})
        elif kind == "an abort":
            await self.wire.event("subagent.completed", since=since)
            await self.wire.call("session.abort", here)
        await self.wire.event("session.idle", since=since)
        events = self.wire.events(since=since)
        errors = [event["data"] for event in events if event["type"] == "session.error"]
        assert not errors, (kind, errors)
        self.agents += sum(event["type"] == "subagent.started" for event in events)
        self.compactions += sum(event["type"] == "session.compaction_complete" for event in events)
        for request in self.model.requests:
            check_calls("chat", request)
        self.requests += len(self.model.requests)
        self.model.requests.clear()
        if number % REWIND_EVERY == REWIND_EVERY - 1:
            await self._rewind()
        log_mib = self.server.log_of(self.id).stat().st_size / 2**20
        self.samples.append(Sample(number + 1, self.server.rss_bytes() / 2**20, log_mib, self.requests))

    async def _rewind(self) -> None:
        here = {"sessionId": self.id}
        points = (await self.wire.call("session.history.listRewindPoints", here))["points"]
        target = {"eventId": points[-2]["eventId"], "mode": "conversation-and-files"}
        outcome = (await self.wire.call("session.history.rewind", here | target))["outcome"]
        assert outcome == "success", outcome
        self.rewinds += 1

    async def replay(self) -> None:
        """Compare the session with that of a fresh process, which has a copy of its files."""
        here = {"sessionId": self.id}
        log = [json.loads(line) for line in self.server.log_of(self.id).read_text().splitlines()]
        problem = problem_of_calls(log, ended=True) or problem_of_agents(log, ended=True) or problem_of_parents(log)
        assert problem is None, problem
        live = await self.wire.call("jumpseat.session.nextRequest", here)
        with tempfile.TemporaryDirectory(prefix="replay-") as folder:
            home = Path(folder, "home")
            shutil.copytree(self.server.home / "session-state" / self.id, home / "session-state" / self.id)
            async with running_server(Path(folder), args=["--yolo"]) as server:
                await server.wire.call("session.resume", here | self.options | {"disableResume": True})
                replayed = await server.wire.call("jumpseat.session.nextRequest", here)
                assert json.dumps(replayed["body"]) == json.dumps(live["body"])
                for provider in ELSEWHERE:
                    options = {**self.options, "provider": provider, "model": "m", "disableResume": True}
                    await server.wire.call("session.resume", here | options)
                    request = await server.wire.call("jumpseat.session.nextRequest", here)
                    check_calls(provider["type"], request["body"])
        self.replays += 1


@asynccontextmanager
async def long_session(folder: Path, limit_s: float) -> AsyncGenerator[LongSession]:
    """Open the session, with a client that answers the calls of its tool."""
    summaries = {"^Please create a detailed summary": [{"text": SUMMARY}], "<system_notification>": [DONE]}
    of_agents = {f"task: {when}": turns for when, turns in AGENTS.items()}
    of_main = {rf"turn \d+: {when}": turns for when, turns in TURNS.items()}
    entries = [{"when": when, "turns": turns} for when, turns in {**summaries, **of_agents, **of_main}.items()]
    (folder / "notes.txt").write_text("notes\n" * 50)
    script = Script.model_validate({"prompts": entries, "after_last": "repeat"})
    async with (
        ModelServer(script) as model,
        running_server(folder, args=["--yolo"], config=READABLE, limit_s=limit_s) as server,
        anyio.create_task_group() as tasks,
    ):
        options: JsonObject = {
            "provider": {"type": "openai", "baseUrl": model.url, "apiKey": "k"},
            "model": "scripted",
            "tools": [{"name": "lookup", "description": "x", "skipPermission": True}],
            "workingDirectory": str(folder),
            "streaming": True,
            "enableFileChangeTracking": True,
            "infiniteSessions": {"backgroundCompactionThreshold": 0.1, "bufferExhaustionThreshold": 0.5},
        }
        session = LongSession(folder, server, model, options)
        session.id = (await server.wire.call("session.create", options))["sessionId"]
        tasks.start_soon(_answer_calls, server.wire, session.id)
        yield session
        tasks.cancel_scope.cancel()


async def _answer_calls(wire: Wire, session: str) -> None:
    position = 0
    while True:
        await wire.wait_for_message_at(position)
        event: Any = wire.messages[position].get("params", {}).get("event", {})
        position += 1
        if event.get("type") == "external_tool.requested":
            answer = {"sessionId": session, "requestId": event["data"]["requestId"], "result": "found " * 50}
            await wire.ask("session.tools.handlePendingToolCall", answer)


async def hold(folder: Path, turns: int, *, replay_every: int) -> LongSession:
    """Take the turns; every ``replay_every`` of them, and at the end, compare with a fresh process."""
    async with long_session(folder, limit_s=60 + 10 * turns) as session:
        for number in range(turns):
            await session.take_turn(number)
            if (number + 1) % replay_every == 0 or number + 1 == turns:
                await session.replay()
                print(session.samples[-1], flush=True)
    return session


def grows(samples: list[Sample]) -> bool:
    """Return whether the memory was higher in the last quarter than in the second one, by more than its noise."""
    quarter = len(samples) // 4
    second = statistics.median(sample.rss_mib for sample in samples[quarter : 2 * quarter])
    last = statistics.median(sample.rss_mib for sample in samples[-quarter:])
    print(f"memory: {second:.1f} MiB in the second quarter, {last:.1f} MiB in the last one")
    return last > second * 1.05 + 3


def main() -> int:
    """Parse the arguments, hold the session, and compare the memory."""
    parser = argparse.ArgumentParser(prog="make long", description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="long-") as folder:
        session = anyio.run(lambda: hold(Path(folder), options.turns, replay_every=max(1, options.turns // 10)))
    print(
        f"{options.turns} turns in {time.monotonic() - begun:.0f} s: {session.agents} sub-agents,"
        f" {session.compactions} compactions, {session.rewinds} rewinds; {session.requests} valid requests,"
        f" {session.replays} equal replays"
    )
    return int(grows(session.samples))


if __name__ == "__main__":
    sys.exit(main())
