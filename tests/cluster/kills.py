"""Kill replicas and servers of NATS under busy sessions, and check what their clients have seen.

::

    make cluster-kills                                                  # 50 faults
    make cluster-kills ARGS='--kills 1000 --sessions 100 --seed 7'

Three servers of NATS, three replicas, and the clients of busy sessions, which connect through a balancer without
stickiness. At random moments, replicas are killed, drained and paused, servers of NATS killed and paused, and
connections cut. In the end, all replicas are killed, and a new one reads what is stored:
:mod:`tests.cluster.histories` compares that with what the clients were told.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import anyio
from anyio.abc import TaskGroup

from tests.cluster.balanced import BalancedReplicas, Replica, balanced_replicas
from tests.cluster.clients import HANG_S, BusyClient, BusySession
from tests.cluster.histories import History, JsonObject, Problem, problems
from tests.cluster.sdk_client import SdkClient, complete
from tests.support.fake_openai import fake_openai, says
from tests.support.nats import Nats, Node, running_nats

REST_S: Final = 2 * HANG_S
"""Time in which the sessions must come to rest after the last fault."""

ANSWERS: Final = {"text it": [says("one ", "two ", "three")]}
MOST_SHOWN: Final = 50

Fault: TypeAlias = Callable[[], Awaitable[None]]


class Nemesis:
    """Causes faults, each of which it repairs after a while; at most one server of NATS is away at a time."""

    def __init__(
        self, nats: Nats, replicas: BalancedReplicas, tasks: TaskGroup, choose: random.Random, pause_s: float
    ) -> None:
        self.faults: Counter[str] = Counter()
        self._nats = nats
        self._replicas = replicas
        self._tasks = tasks
        self._choose = choose
        self._pause_s = pause_s
        self._busy: set[Replica] = set()
        self._nats_lock = anyio.Lock()
        self._repairs = 0
        self._news = anyio.Event()
        self._choices: dict[str, tuple[int, Fault]] = {
            "kill replica": (6, self._kill_replica),
            "drain replica": (2, self._drain_replica),
            "pause replica": (3, self._pause_replica),
            "kill NATS": (4, self._kill_nats),
            "pause NATS": (1, self._pause_nats),
            "kill both": (2, self._kill_both),
            "cut clients": (1, self._cut_clients),
            "cut a replica off": (2, self._cut_off),
        }

    async def cause(self, number: int) -> None:
        """Cause a number of faults, one after the other; returns when all of them are repaired."""
        names, weights = list(self._choices), [weight for weight, _ in self._choices.values()]
        for _ in range(number):
            (name,) = self._choose.choices(names, weights)
            self.faults[name] += 1
            await self._choices[name][1]()
            await anyio.sleep(self._choose.expovariate(1 / self._pause_s))
        while self._repairs:
            await self._news.wait()

    def _repair_later(self, repair: Fault, delay_s: float) -> None:
        async def work() -> None:
            await anyio.sleep(delay_s)
            await repair()
            self._repairs -= 1
            self._news.set()
            self._news = anyio.Event()

        self._repairs += 1
        self._tasks.start_soon(work)

    async def _take(self) -> Replica | None:
        """Return a replica without a fault, which has one until it is given back; never the last one."""
        free = [replica for replica in self._replicas.running() if replica not in self._busy]
        if len(free) < 2:
            return None
        replica = self._choose.choice(free)
        self._busy.add(replica)
        return replica

    async def _kill_replica(self) -> None:
        if (replica := await self._take()) is not None:
            await replica.kill()
            self._repair_later(self._start(replica), self._choose.uniform(0, 3))

    def _start(self, replica: Replica) -> Fault:
        async def start() -> None:
            await replica.start()
            self._busy.discard(replica)

        return start

    async def _drain_replica(self) -> None:
        if (replica := await self._take()) is None:
            return

        async def restart() -> None:
            await replica.terminate()
            await replica.start()
            self._busy.discard(replica)

        self._repair_later(restart, 0)

    async def _pause_replica(self) -> None:
        if (replica := await self._take()) is None:
            return
        replica.pause()

        async def wake() -> None:
            replica.unpause()
            self._busy.discard(replica)

        self._repair_later(wake, self._choose.choice([0.5, 2, 5, 18, 25]))

    async def _kill_nats(self) -> None:
        self._tasks.start_soon(self._without_nats, True)

    async def _pause_nats(self) -> None:
        self._tasks.start_soon(self._without_nats, False)

    async def _without_nats(self, kill: bool) -> None:
        self._repairs += 1
        async with self._nats_lock:
            node = self._choose.choice(self._nats.nodes)
            if kill:
                node.kill()
            else:
                node.pause()
            await anyio.sleep(self._choose.choice([0.2, 2, 8]))
            await self._bring_back(node, kill)
            # Time for an election: without a break, nothing could be stored at all.
            await anyio.sleep(3)
        self._repairs -= 1
        self._news.set()
        self._news = anyio.Event()

    async def _bring_back(self, node: Node, killed: bool) -> None:
        if killed:
            node.start()
        else:
            node.unpause()
        await self._nats.wait_until_ready()

    async def _kill_both(self) -> None:
        await self._kill_nats()
        await self._kill_replica()

    async def _cut_clients(self) -> None:
        self._replicas.balancer.cut()

    async def _cut_off(self) -> None:
        """Cut a replica off from NATS for a while."""
        if (replica := await self._take()) is None:
            return
        replica.nats.accepts = False
        replica.nats.cut()

        async def connect() -> None:
            replica.nats.accepts = True
            self._busy.discard(replica)

        self._repair_later(connect, self._choose.choice([0, 0.5, 3, 20]))


@dataclass
class Run:
    """A cluster with busy sessions, and what has become of it. ``errors`` counts those that clients met."""

    folder: Path
    choose: random.Random
    busy: list[BusySession]
    clients: list[BusyClient | SdkClient] = field(default_factory=list[BusyClient | SdkClient])
    faults: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    found: list[Problem] = field(default_factory=list[Problem])
    took_s: float = 0.0

    async def kill_often(self, faults: int, pause_s: float) -> None:
        """Cause faults under the sessions, and judge what their clients have seen."""
        async with (
            fake_openai(ANSWERS) as model,
            running_nats(self.folder, 3) as nats,
            balanced_replicas(self.folder, nats) as replicas,
        ):
            for session in self.busy:
                if session.with_sdk:
                    session.provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "none"}
            async with anyio.create_task_group() as tasks:
                await self._connect(replicas, tasks)
                nemesis = Nemesis(nats, replicas, tasks, self.choose, pause_s)
                began = time.monotonic()
                await nemesis.cause(faults)
                self.took_s, self.faults = time.monotonic() - began, nemesis.faults
                await self._come_to_rest()
                # Without a farewell: what was announced must be stored.
                for replica in replicas.all:
                    await replica.kill()
                tasks.cancel_scope.cancel()
            await replicas.all[0].start()
            async with replicas.all[0].connect() as wire:
                for session in self.busy:
                    session.history.log = await _stored(wire.call, session.history.session)
            self.found += [Problem("server", text[-3000:]) for one in replicas.all for text in one.problems]
        for session in self.busy:
            complete(session)
            self.found += [Problem("idle", text) for text in session.stuck]
            self.found += problems(session.history)

    async def _connect(self, replicas: BalancedReplicas, tasks: TaskGroup) -> None:
        """Connect the clients of each session; returns when each session has been prompted."""
        for session in self.busy:
            first, second = (
                BusyClient(session, number, replicas.balancer, self.choose, self.errors) for number in range(2)
            )
            tasks.start_soon(first.live)
            with anyio.fail_after(60):
                await first.has_prompted.wait()
            tasks.start_soon(second.live)
            self.clients += [first, second]
            if session.with_sdk:
                third = SdkClient(session, replicas.balancer, self.errors)
                tasks.start_soon(third.live)
                self.clients.append(third)

    async def _come_to_rest(self) -> None:
        """Wait until no session has a run, and all clients are attached."""
        for client in self.clients:
            client.rests = True
            client.at_rest = anyio.Event()
            client.wake()
        with anyio.move_on_after(REST_S):
            for client in self.clients:
                await client.at_rest.wait()
        # Late events would be wrong: there is time for them.
        await anyio.sleep(1)
        for client in self.clients:
            if client.attachment is None or not client.at_rest.is_set():
                self.found.append(Problem("idle", f"{client.name} does not come to rest"))
            else:
                client.attachment.to_the_end = True

    def report(self) -> None:
        """Print what has happened, and the broken rules."""
        events = sum(len(session.history.log) for session in self.busy)
        told = sum(len(one.events) for session in self.busy for one in session.history.attachments)
        prompts = sum(client.prompted for client in self.clients)
        print(f"{self.faults.total()} faults in {self.took_s:.0f} s: {dict(self.faults)}")
        print(f"{prompts} prompts, {events} stored events, {told} announcements compared")
        print(f"errors that clients met: {dict(self.errors.most_common(20))}")
        for problem in self.found[:MOST_SHOWN]:
            print(problem)
        print(f"{len(self.found)} broken rules {dict(Counter(problem.kind for problem in self.found))}")


def busy_sessions(number: int, seed: int, sdk_clients: int = 0) -> list[BusySession]:
    """Return sessions of all kinds; the first of them also have a client with the official SDK."""
    return [
        BusySession(
            History(f"busy-{seed}-{place}"),
            goes_on=place % 2 == 0,
            races=place % 3 == 0,
            with_sdk=place < sdk_clients,
        )
        for place in range(number)
    ]


async def _stored(call: Callable[[str, JsonObject], Awaitable[JsonObject]], session: str) -> list[JsonObject]:
    """Return the stored events of a session that nobody has open."""
    events: list[JsonObject] = []
    cursor: str | None = None
    while cursor != "":
        params: JsonObject = {"sessionId": session, "max": 1000} | ({"cursor": cursor} if cursor else {})
        page = await call("sessions.readPersistedEvents", params)
        events += page["events"]
        cursor = page["cursor"] if page.get("hasMore") else ""
    return events


def main() -> None:
    """Parse the arguments and cause faults; exits with 1 if a rule is broken."""
    parser = argparse.ArgumentParser(prog="make cluster-kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="number of faults")
    parser.add_argument("--sessions", type=int, default=10, help="number of busy sessions, with two clients each")
    parser.add_argument("--sdk", type=int, default=2, help="number of clients with the official Python SDK")
    parser.add_argument("--seed", type=int, default=0, help="the same seed chooses the same faults, roughly")
    parser.add_argument("--pause", type=float, default=2.0, help="mean time between faults, in seconds")
    parser.add_argument("--folder", type=Path, help="a folder to keep: logs, and what NATS has stored")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cluster-kills-") as made:
        folder = options.folder or made
        sessions = busy_sessions(options.sessions, options.seed, options.sdk)
        run = Run(Path(folder), random.Random(options.seed), sessions)
        anyio.run(run.kill_often, options.kills, options.pause)
    run.report()
    raise SystemExit(1 if run.found else 0)


if __name__ == "__main__":
    main()
