"""Measure a cluster on this machine: appends, turns and relaying compared with files, load, and takeovers.

::

    python -m tests.soak.cluster.figures --nodes 3

Files and the cluster take turns, so that their ratios hold on a busy machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from jumpseat.cluster.operating import cluster_status
from jumpseat.cluster.settings import ClusterSettings
from tests.support.nats import Nats, running_nats
from tests.support.server import JsonObject, RunningServer, Wire, running_server

LIMIT_S = 900.0
PROVIDER: JsonObject = {
    "type": "scripted",
    "script": {"prompts": [{"when": "hi", "turns": [{"text": "hello"}]}]},
}


async def turns(wire: Wire, session: str, count: int) -> list[float]:
    """Return the milliseconds of plain turns."""
    taken: list[float] = []
    for _ in range(count):
        since = len(wire.messages)
        began = time.perf_counter()
        await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        await wire.event("session.idle", session=session, since=since)
        taken.append((time.perf_counter() - began) * 1000)
    return taken


async def calls(wire: Wire, method: str, params: Any, count: int) -> list[float]:
    """Return the milliseconds of requests."""
    taken: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        await wire.call(method, params)
        taken.append((time.perf_counter() - began) * 1000)
    return taken


async def created(wire: Wire, into: list[float]) -> str:
    """Create a session, and add the milliseconds that it took."""
    began = time.perf_counter()
    session = await wire.create(PROVIDER)
    into.append((time.perf_counter() - began) * 1000)
    return session


async def load(wire: Wire, sessions: int, count: int) -> tuple[float, float]:
    """Return the turns and the events per second of sessions that take turns at once."""
    made = [await wire.create(PROVIDER) for _ in range(sessions)]
    since = len(wire.messages)
    began = time.perf_counter()

    async def work(session: str) -> None:
        await turns(wire, session, count)

    async with anyio.create_task_group() as tasks:
        for session in made:
            tasks.start_soon(work, session)
    seconds = time.perf_counter() - began
    return sessions * count / seconds, len(wire.events(since=since)) / seconds


async def takeovers(folder: Path, nats: Nats, count: int) -> list[float]:
    """Return the seconds from the death of a replica to the first answer of the next, seen by another client."""
    taken: list[float] = []
    async with running_server(folder / "stays", tcp=True, config=nats.config(), limit_s=LIMIT_S) as stays:
        for number in range(count):
            async with (
                running_server(folder / f"dies{number}", tcp=True, config=nats.config(), limit_s=LIMIT_S) as dies,
                dies.connect() as owner,
                stays.connect() as other,
            ):
                session = await owner.create(PROVIDER)
                await turns(owner, session, 3)
                await other.call("session.resume", {"sessionId": session, "provider": PROVIDER})
                await turns(other, session, 1)
                began = time.perf_counter()
                await dies.kill()
                for _ in range(1000):
                    if "error" not in await other.response(
                        await other.ask("session.mode.get", {"sessionId": session})
                    ):
                        break
                    await anyio.sleep(0.02)
                taken.append(time.perf_counter() - began)
    return taken


async def measure(nodes: int, rounds: int) -> None:
    """Print the figures."""
    folder = Path(tempfile.mkdtemp(prefix="cluster-figures-"))

    def server(name: str, config: str | None) -> Any:
        return running_server(folder / name, tcp=True, config=config, limit_s=LIMIT_S)

    async with running_nats(folder, nodes) as nats:
        async with server("files", None) as files, server("a", nats.config()) as a, server("b", nats.config()) as b:
            await compare(files, a, b, rounds)
            await anyio.sleep(3.5)
            settings = ClusterSettings(tuple(nats.url.split(",")), "jumpseat", "here")
            for replica in (await cluster_status(settings))["replicas"]:
                if replica["appends"]:
                    print(f"append: median {replica['appendMs']} ms, 99th percentile {replica['appendP99Ms']} ms")
        found = await takeovers(folder, nats, 5)
        print(f"takeover after a kill: {', '.join(f'{seconds:.2f}' for seconds in sorted(found))} s")


async def compare(files: RunningServer, a: RunningServer, b: RunningServer, rounds: int) -> None:
    """Print what files and the cluster take."""
    on_files: list[float] = []
    owned: list[float] = []
    relayed: list[float] = []
    created_files: list[float] = []
    created_cluster: list[float] = []
    async with files.connect() as wire_files, a.connect() as wire_a, b.connect() as wire_b:
        session = ""
        for _ in range(rounds):
            in_files = await created(wire_files, created_files)
            session = await created(wire_a, created_cluster)
            await turns(wire_files, in_files, 3)
            await turns(wire_a, session, 3)
            on_files += await turns(wire_files, in_files, 15)
            owned += await turns(wire_a, session, 15)
            await wire_b.call("session.resume", {"sessionId": session, "provider": PROVIDER})
            await wire_a.call("session.detach", {"sessionId": session})
            await turns(wire_b, session, 3)
            relayed += await turns(wire_b, session, 15)
        median = statistics.median
        print(
            f"turn: files {median(on_files):.2f} ms, owner {median(owned):.2f} ms"
            f" ({median(owned) / median(on_files):.2f} times), relayed {median(relayed):.2f} ms"
            f" ({median(relayed) / median(on_files):.2f} times)"
        )
        print(f"create: files {median(created_files):.2f} ms, cluster {median(created_cluster):.2f} ms")
        await wire_a.call("session.resume", {"sessionId": session, "provider": PROVIDER})
        asked = {"sessionId": session}
        here = median(await calls(wire_a, "session.mode.get", asked, 500))
        there = median(await calls(wire_b, "session.mode.get", asked, 500))
        print(f"request: owner {here:.3f} ms, relayed {there:.3f} ms: {(there - here) / 2:.3f} ms for each message")
        for name, wire in (("files", wire_files), ("cluster", wire_a)):
            per_s, events_per_s = await load(wire, 30, 20)
            print(f"30 sessions at once, {name}: {per_s:.0f} turns/s, {events_per_s:.0f} events/s")


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(prog="tests.soak.cluster.figures")
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=3, help="servers of NATS")
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    anyio.run(measure, args.nodes, args.rounds)


if __name__ == "__main__":
    main()
