"""Run sessions whose provider or MCP server fails at a random place, and check how each run ends.

::

    make storms                                    # 2,000 runs
    make storms ARGS='--runs 10000 --seed 7'
    make storms ARGS='--only 17 --seed 7'          # one run, with its events

Each run has a session on one of eight wires, streamed: the model thinks, writes, calls two tools, and answers. Once
in a run, the traffic breaks off, ends early, stalls, reports an overload, is refused, or contains garbage; in a
quarter of the runs, a call of an MCP server fails as well. The rules:

- A run ends once, with the right answer or with one ``session.error`` that names the failure. A failure that passes
  within two requests ends in the right answer, unless it is a refusal that no repetition changes.
- Each call of a tool has one result, and no call runs twice.
- The next prompt, which meets no fault, gets the right answer.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

from tests.storms.answers import WIRES, JsonObject
from tests.storms.servers import Plan, Storm, plan_of
from tests.support.server import RunningServer, Wire, running_server

RUNS_PER_CONNECTION: Final = 25
LIMIT_S: Final = 60.0
"""The time in which a run has to end."""

TOOLS: Final = [
    {
        "name": "note",
        "description": "Note a token.",
        "parameters": {"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]},
        "skipPermission": True,
    }
]

CONFIG: Final = """
[retry]
first_wait_s = 0.01
longest_wait_s = 0.05
[permissions]
allow_unasked = true
"""


def config_of(url: str) -> str:
    """Return the configuration of a server whose adapters call the provider at ``url``."""
    tables = [
        f'[adapters.{name}]\nextends = "{name}"\nbase_url = "{url}/{name}"\napi_key_env = "STORM_KEY"\n'
        'models = ["m"]\nlist_models = false\n'
        f"[adapters.{name}.opts.timeouts]\nfirst_byte = 2.0\nidle = 1.0\n"
        for name in WIRES
    ]
    return "\n".join((CONFIG, *tables))


@dataclass
class Outcome:
    """How the runs have ended."""

    ends: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter[str]))
    faults: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter[str]))
    broken: list[str] = field(default_factory=list[str])

    def add(self, plan: Plan, end: str) -> None:
        self.ends[plan.wire][end] += 1
        self.faults[plan.fault][end] += 1


class Rules:
    """The events of one run, and the rules that they break."""

    def __init__(self, plan: Plan, prompt: int) -> None:
        self.events: list[JsonObject] = []
        self._plan = plan
        self._prompt = prompt

    def of(self, kind: str) -> list[JsonObject]:
        return [event["data"] for event in self.events if event["type"] == kind]

    @property
    def right(self) -> bool:
        """Whether the run has ended in the right answer."""
        answers = self.of("assistant.message")
        wanted = f"done-{self._plan.number}-{self._prompt}."
        return bool(answers) and wanted in answers[-1]["content"] and not self.of("session.error")

    def problems(self) -> list[str]:
        """Return the rules that are broken, in words."""
        found: list[str] = []
        errors = self.of("session.error")
        if not self.right and len(errors) != 1:
            found.append(f"ended in no answer and {len(errors)} errors")
        for error in errors:
            text = error["message"]
            if len(text) < 20 or len(text) > 2000 or "Internal error" in text or "Traceback" in text:
                found.append(f"unclear error: {text[:200]!r}")
        begun = Counter(data["toolCallId"] for data in self.of("tool.execution_start"))
        ended = Counter(data["toolCallId"] for data in self.of("tool.execution_complete"))
        if begun != ended or any(count > 1 for count in begun.values()):
            found.append(f"calls {dict(begun)} have results {dict(ended)}")
        if len(self.of("session.idle")) != 1:
            found.append("ended more than once")
        return found


async def follow(wire: Wire, session: str, since: int, rules: Rules, plan: Plan) -> None:
    """Collect the events of a run up to its end, and answer the calls of the client's tool."""
    position = since
    while True:
        await wire.wait_for_message_at(position)
        message = wire.messages[position]
        position += 1
        if message.get("method") != "session.event" or message["params"]["sessionId"] != session:
            continue
        event = message["params"]["event"]
        rules.events.append(event)
        if event["type"] == "external_tool.requested":
            data = event["data"]
            token = data["arguments"]["token"]
            plan.runs[token] += 1
            params = {"sessionId": session, "requestId": data["requestId"], "result": f"noted {token}"}
            await wire.call("session.tools.handlePendingToolCall", params)
        elif event["type"] == "session.idle":
            return


async def run_one(wire: Wire, made: Storm, plan: Plan, outcome: Outcome, *, shows: bool) -> None:
    """Run a session through its plan and one more prompt."""
    made.plans[plan.number] = plan
    options: JsonObject = {"model": f"{plan.wire}/m", "streaming": True, "tools": TOOLS, "availableTools": ["note"]}
    if plan.mcp_fault is not None:
        server = {"type": "http", "url": f"{made.url}/mcp/{plan.number}", "tools": ["*"], "timeout": 500}
        options |= {"mcpServers": {"storm": server}, "availableTools": ["note", "storm-bump"]}
    session = (await wire.call("session.create", options))["sessionId"]
    problems: list[str] = []
    first = True
    try:
        for prompt in (1, 2):
            rules = Rules(plan, prompt)
            since = len(wire.messages)
            with anyio.fail_after(LIMIT_S):
                text = f"Go. storm-{plan.number}-{prompt}-"
                await wire.call("session.send", {"sessionId": session, "prompt": text})
                await follow(wire, session, since, rules, plan)
            problems += [f"prompt {prompt}: {problem}" for problem in rules.problems()]
            if prompt == 1:
                outcome.add(plan, "answer" if rules.right else "error")
                first = rules.right
                if plan.passes and not first:
                    errors = [error["message"] for error in rules.of("session.error")]
                    problems.append(f"a failure that passes ended the run: {errors}")
            elif not rules.right:
                problems.append(f"prompt 2: no answer: {[error['message'] for error in rules.of('session.error')]}")
            if shows:
                for event in rules.events:
                    print(event["type"], str(event["data"])[:300])
    except TimeoutError:
        problems.append("did not end")
    problems += [f"{token} ran {count} times" for token, count in plan.runs.items() if count > 1]
    if problems:
        outcome.broken.append(f"{plan}: {problems} (first prompt {'right' if first else 'failed'})")
    await wire.call("session.destroy", {"sessionId": session})
    del made.plans[plan.number]


async def work(
    server: RunningServer, made: Storm, numbers: list[int], seed: int, outcome: Outcome, shows: bool
) -> None:
    """Take runs from ``numbers`` until there are none."""
    while numbers:
        async with server.connect() as wire:
            for _ in range(RUNS_PER_CONNECTION):
                if numbers:
                    await run_one(wire, made, plan_of(numbers.pop(), seed), outcome, shows=shows)


async def weather(runs: int, seed: int, jobs: int, only: int | None = None) -> Outcome:
    """Run all plans, ``jobs`` at a time."""
    outcome = Outcome()
    numbers = [*range(runs)] if only is None else [only]
    numbers.reverse()
    with tempfile.TemporaryDirectory(prefix="storms-") as folder:
        made = Storm()
        async with (
            made.server,
            running_server(
                Path(folder), tcp=True, config=config_of(made.url), env={"STORM_KEY": "k"}, limit_s=runs + 600
            ) as server,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(jobs):
                tasks.start_soon(work, server, made, numbers, seed, outcome, only is not None)
    return outcome


def table(title: str, rows: dict[str, Counter[str]]) -> str:
    """Return the ends of runs as a Markdown table."""
    lines = [f"| {title} | right answer | one clear error |", "|---|---|---|"]
    lines += [f"| {name} | {ends['answer']} | {ends['error']} |" for name, ends in sorted(rows.items())]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make storms")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--only", type=int)
    arguments = parser.parse_args()
    # Clients that have hung up are no news here.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    begun = time.monotonic()
    outcome: Any = anyio.run(weather, arguments.runs, arguments.seed, arguments.jobs, arguments.only)
    print(table("wire", outcome.ends), table("fault", outcome.faults), sep="\n\n")
    for line in outcome.broken[:40]:
        print(line)
    print(f"{arguments.runs} runs in {time.monotonic() - begun:.0f} s, {len(outcome.broken)} break a rule")
    sys.exit(bool(outcome.broken))


if __name__ == "__main__":
    main()
