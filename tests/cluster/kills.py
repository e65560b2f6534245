"""Kill replicas and servers of NATS under busy sessions, and check what their clients have seen.

::

    make cluster-kills                                                  # 50 faults
    make cluster-kills ARGS='--kills 1000 --sessions 100 --seed 7'

Three servers of NATS, three replicas, and the clients of busy sessions, which connect through a balancer without
stickiness. At random moments, replicas are killed, drained and paused, servers of NATS killed and paused, and
connections cut (:mod:`tests.cluster.nemesis`). In the end, all replicas are killed, and a new one reads what is
stored: :mod:`tests.cluster.histories` compares that with what the clients were told. The histories of sessions
with broken rules are left in the folder, beside the logs of the faults, of the replicas and of what NATS has
acknowledged.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from tests.cluster.balanced import BalancedReplicas, balanced_replicas
from tests.cluster.clients import HANG_S, BusyClient, BusySession, scripted_provider
from tests.cluster.histories import History, JsonObject, Problem, problems
from tests.cluster.nemesis import LONGEST_S, Nemesis
from tests.cluster.sdk_client import SdkClient, complete
from tests.cluster.witness import Witness, witness
from tests.support.fake_openai import fake_openai, says
from tests.support.nats import running_nats

REST_S: Final = HANG_S
"""Time in which the sessions must come to rest after the last fault."""

ANSWERS: Final = {"text it": [says("one ", "two ", "three")]}
MOST_SHOWN: Final = 50

REPORT_S: Final = 60.0
"""Time between lines about the progress."""


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
    acknowledged: int = 0

    async def kill_often(
        self,
        faults: int | Sequence[str],
        pause_s: float,
        *,
        most_s: float = LONGEST_S,
        count: int = 3,
        limit_s: float = math.inf,
    ) -> None:
        """Cause faults under the sessions, and judge what their clients have seen.

        ``faults`` are the kinds of faults, or a number of random ones; ``most_s`` limits the time until a fault is
        repaired, ``limit_s`` that in which faults are caused; ``count`` is the number of replicas.
        """
        async with (
            fake_openai(ANSWERS) as model,
            running_nats(self.folder, 3) as nats,
            balanced_replicas(self.folder, nats, count) as replicas,
            witness(nats, self.folder / "acknowledgements.log") as seen,
        ):
            for session in self.busy:
                if session.with_sdk:
                    session.provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "none"}
            async with anyio.create_task_group() as tasks:
                await self._connect(replicas, tasks)
                began = time.monotonic()
                with (self.folder / "faults.log").open("w") as log:
                    nemesis = Nemesis(nats, replicas, tasks, self.choose, pause_s, log, most_s)
                    self.faults = nemesis.faults
                    tasks.start_soon(self._tell_progress, began)
                    await nemesis.cause(nemesis.any_faults(faults) if isinstance(faults, int) else faults, limit_s)
                self.took_s = time.monotonic() - began
                await self._come_to_rest()
                # Without a farewell: what was announced must be stored. All at once, because clients of the first
                # would connect to the next, whose last events nobody would hear of.
                async with anyio.create_task_group() as killing:
                    for replica in replicas.all:
                        killing.start_soon(replica.kill)
                tasks.cancel_scope.cancel()
            await replicas.all[0].start()
            async with replicas.all[0].connect() as wire:
                for session in self.busy:
                    session.history.log = await _stored(wire.call, session.history.session)
            self.found += [Problem("server", text[-3000:]) for one in replicas.all for text in one.problems]
            await self._question(seen)
        for session in self.busy:
            complete(session)
            found = [*(Problem("idle", text) for text in session.stuck), *problems(session.history)]
            if found:
                path = self.folder / f"{session.history.session}.json"
                path.write_text(json.dumps(asdict(session.history), indent=1))
            self.found += found

    async def _question(self, seen: Witness) -> None:
        """Note what the witness has seen."""
        self.acknowledged = len(seen.acknowledged)
        self.found += [Problem("lost", text) for text in await seen.broken_promises()]

    async def _tell_progress(self, began: float) -> None:
        while True:
            await anyio.sleep(REPORT_S)
            prompts = sum(client.prompted for client in self.clients)
            stuck = [text for session in self.busy for text in session.stuck]
            print(f"{time.monotonic() - began:.0f} s: {self.faults.total()} faults, {prompts} prompts", *stuck[:5])

    async def _connect(self, replicas: BalancedReplicas, tasks: TaskGroup) -> None:
        """Connect the clients of each session; returns when each session has been prompted."""
        firsts = [self._client(session, 0, replicas) for session in self.busy]
        for first in firsts:
            tasks.start_soon(first.live)
        for first in firsts:
            with anyio.fail_after(60):
                await first.has_prompted.wait()
        for session in self.busy:
            tasks.start_soon(self._client(session, 1, replicas).live)
            if session.with_sdk:
                client = SdkClient(session, replicas.balancer, self.errors)
                tasks.start_soon(client.live)
                self.clients.append(client)

    def _client(self, session: BusySession, number: int, replicas: BalancedReplicas) -> BusyClient:
        client = BusyClient(session, number, replicas.balancer, self.choose, self.errors)
        self.clients.append(client)
        return client

    async def _come_to_rest(self) -> None:
        """Wait until no session has a run, and all clients are attached."""
        for client in self.clients:
            client.rests = True
            client.at_rest = anyio.Event()
            client.wake()
        with anyio.move_on_after(REST_S):
            for client in self.clients:
                await client.at_rest.wait()
            # The last owner may have been killed when nothing ran: its clients hear of that later.
            while not all(self._agree(session) for session in self.busy):  # noqa: ASYNC110 - there is no hurry
                await anyio.sleep(0.2)
        # Late events would be wrong: there is time for them.
        await anyio.sleep(1)
        for client in self.clients:
            if client.attachment is None or not client.at_rest.is_set():
                self.found.append(Problem("idle", f"{client.name} does not come to rest"))
            else:
                client.attachment.to_the_end = True

    def _agree(self, session: BusySession) -> bool:
        """Return whether the clients of a session were told of the same last event."""
        attached = [client.attachment for client in self.clients if client.session is session]
        told = [one.persisted()[-1:] for one in attached if one is not None]
        return len({event["id"] for events in told for event in events}) < 2

    def report(self) -> None:
        """Print what has happened, and the broken rules."""
        events = sum(len(session.history.log) for session in self.busy)
        told = sum(len(one.events) for session in self.busy for one in session.history.attachments)
        prompts = sum(client.prompted for client in self.clients)
        print(f"{self.faults.total()} faults in {self.took_s:.0f} s: {dict(self.faults)}")
        print(f"{prompts} prompts, {events} stored events, {told} announcements compared, ", end="")
        print(f"{self.acknowledged} acknowledgements of NATS")
        print(f"errors that clients met: {dict(self.errors.most_common(20))}")
        for problem in self.found[:MOST_SHOWN]:
            print(problem)
        print(f"{len(self.found)} broken rules {dict(Counter(problem.kind for problem in self.found))}")


def busy_sessions(number: int, seed: int, sdk_clients: int = 0, slowness: float = 1) -> list[BusySession]:
    """Return sessions of all kinds; the first of them also have a client with the official SDK.

    With a larger ``slowness``, models and clients answer more slowly: many sessions are busy without much work.
    """
    return [
        BusySession(
            History(f"busy-{seed}-{place}"),
            goes_on=place % 2 == 0,
            races=place % 3 == 0,
            with_sdk=place < sdk_clients,
            slowness=slowness,
            provider=scripted_provider(slowness),
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
    parser.add_argument("--replicas", type=int, default=3, help="number of replicas")
    parser.add_argument("--minutes", type=float, default=math.inf, help="cause no more faults after this time")
    parser.add_argument("--slow", type=float, default=1.0, help="how slowly models and clients answer")
    parser.add_argument("--only", help="cause faults of one kind: 'drain replica', for example")
    parser.add_argument("--folder", type=Path, help="a folder to keep: logs, and what NATS has stored")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cluster-kills-") as made:
        folder = options.folder or made
        sessions = busy_sessions(options.sessions, options.seed, options.sdk, options.slow)
        run = Run(Path(folder), random.Random(options.seed), sessions)
        faults = [options.only] * options.kills if options.only else options.kills
        limit_s = options.minutes * 60
        anyio.run(partial(run.kill_often, faults, options.pause, count=options.replicas, limit_s=limit_s))
    run.report()
    raise SystemExit(1 if run.found else 0)


if __name__ == "__main__":
    main()
