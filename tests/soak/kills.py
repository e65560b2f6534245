"""Kill the server with SIGKILL at random moments of its turns, resume, and compare.

::

    make kills                                         # 100 kills
    make kills ARGS='--kills 1000 --seed 7'

After each kill a new process resumes the session at once. It must have every event that was announced, one result
for each call, and an answer to the next prompt.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel

from tests.soak.views import problem_of_agents, problem_of_calls, problem_of_parents
from tests.support.events import data_of
from tests.support.server import JsonObject, RunningServer, running_server

SESSION_KILLS: Final = 25
"""The number of kills of one session; the next kills are of a new one."""

TOOLS: Final = [{"name": "lookup", "description": "x", "skipPermission": True}]
SLOW_TEXT: Final = {"deltas": [f"word {number} " for number in range(30)], "delay_ms": 1}


def _calls(*calls: tuple[str, JsonObject]) -> JsonObject:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


def _agent(prompt: str, mode: str) -> tuple[str, JsonObject]:
    """Return a call that starts a sub-agent."""
    start = {"name": prompt, "agent_type": "task", "description": "x", "prompt": prompt, "mode": mode}
    return "task", start


PROVIDER: Final[JsonObject] = {
    "type": "scripted",
    "script": {
        "prompts": [
            {"when": "check it", "turns": [{"text": "still here"}]},
            {"when": "text it", "turns": [SLOW_TEXT]},
            {
                "when": "tools it",
                "turns": [
                    _calls(("lookup", {}), ("view", {"path": "notes.txt"}), ("lookup", {})),
                    _calls(("bash", {"command": "echo one; echo two"}), ("lookup", {})),
                    SLOW_TEXT,
                ],
            },
            {
                "when": "agents it",
                "turns": [
                    _calls(_agent("lead it", "sync"), _agent("scout it", "background")),
                    _calls(("lookup", {})),
                    SLOW_TEXT,
                ],
            },
            {
                "when": "lead it",
                "turns": [_calls(_agent("scout it", "sync"), _agent("scout it", "background")), SLOW_TEXT],
            },
            {
                "when": "scout it",
                "turns": [_calls(("view", {"path": "notes.txt"}), ("lookup", {})), {"text": "found"}],
            },
            {"when": "compact it", "turns": [{"text": "much to summarize " * 50}]},
            {"turns": [{"text": "A summary."}]},
        ],
        "after_last": "repeat",
    },
}


@dataclass
class Victim:
    """The session that is killed, and the events of it that were announced before."""

    session: str = ""
    told: list[JsonObject] = field(default_factory=list[JsonObject])
    kills: int = 0


async def kill_often(folder: Path, kills: int, seed: int) -> int:
    """Kill servers in ``folder``; returns the number of announced events that were compared.

    Raises:
        AssertionError: an event is lost, a call has no result, or a session does not go on.
    """
    choose = random.Random(seed)
    victim = Victim()
    compared = 0
    (folder / "notes.txt").write_text("notes")
    for _ in range(kills):
        if victim.kills == SESSION_KILLS:
            victim = Victim()
        async with running_server(folder, args=("--yolo",), limit_s=300) as server:
            compared += await _resume(server, folder, victim)
            await _prompt_and_kill(server, victim, choose)
    async with running_server(folder, args=("--yolo",)) as server:
        compared += await _resume(server, folder, victim)
    return compared


async def _resume(server: RunningServer, folder: Path, victim: Victim) -> int:
    """Open the session, compare its log with what was announced, and check that a prompt is answered."""
    wire = server.wire
    options: JsonObject = {"provider": PROVIDER, "tools": TOOLS, "workingDirectory": str(folder), "streaming": True}
    if victim.session:
        await wire.call("session.resume", {"sessionId": victim.session, **options})
    else:
        victim.session = (await wire.call("session.create", options))["sessionId"]
    log: list[JsonObject] = (await wire.call("session.getMessages", {"sessionId": victim.session}))["events"]
    ids = [event["id"] for event in log]
    for event in victim.told:
        assert event["id"] in ids, f"an announced event is lost: {event}"
        assert log[ids.index(event["id"])] == event
    assert len(ids) == len(set(ids))
    problem = problem_of_calls(log, ended=True) or problem_of_agents(log, ended=True) or problem_of_parents(log)
    assert problem is None, problem
    events = await wire.prompt(victim.session, "check it")
    answers = [data["content"] for data in data_of(events, "assistant.message")]
    assert answers == ["still here"], [event["type"] for event in events] + answers
    compared, victim.told = len(victim.told), [*victim.told, *_persisted(wire.events(victim.session))]
    return compared


async def _prompt_and_kill(server: RunningServer, victim: Victim, choose: random.Random) -> None:
    wire, session = server.wire, victim.session
    since = position = len(wire.messages)
    kind = choose.choice(["text", "tools", "tools", "agents", "agents", "compact"])
    await wire.ask("session.send", {"sessionId": session, "prompt": f"{kind} it"})
    if kind == "compact":
        await wire.ask("session.history.compact", {"sessionId": session})
    last = position + choose.randint(0, 60)
    while position < last and not _is_idle(wire.messages[since:]):
        await wire.wait_for_message_at(position)
        message: Any = wire.messages[position]
        position += 1
        event = message.get("params", {}).get("event", {})
        if event.get("type") == "external_tool.requested":
            answer = {"sessionId": session, "requestId": event["data"]["requestId"], "result": "found"}
            await wire.ask("session.tools.handlePendingToolCall", answer)
    # Between two messages, too.
    await anyio.sleep(choose.choice([0, 0, 0.0005, 0.001, 0.005]))
    await server.kill()
    # A command may have been about to start another one.
    while left := server.descendants():
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await anyio.lowlevel.checkpoint()
    await wire.ended.wait()
    victim.told += _persisted(wire.events(session, since=since))
    victim.kills += 1


def _persisted(events: list[JsonObject]) -> list[JsonObject]:
    return [event for event in events if not event.get("ephemeral")]


def _is_idle(messages: list[JsonObject]) -> bool:
    return any(message.get("params", {}).get("event", {}).get("type") == "session.idle" for message in messages)


def main() -> None:
    """Parse the arguments and kill."""
    parser = argparse.ArgumentParser(prog="make kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="number of processes that are killed")
    parser.add_argument("--seed", type=int, default=0, help="the same seed chooses the same moments, roughly")
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        compared = anyio.run(kill_often, Path(folder), options.kills, options.seed)
    took_s = time.monotonic() - begun
    print(f"{options.kills} kills in {took_s:.0f} s; {compared} comparisons of announced events, none lost")


if __name__ == "__main__":
    main()
