"""Run the fault test.

::

    python -m tests.soak.cluster --kills 100 --sessions 20 --seed 7

Three servers of NATS, three replicas, and clients that prompt, answer tool calls and watch through any of them. One
fault follows the other: a replica or a server of NATS is killed, or both, a replica is paused, cut off from NATS,
or told to end. At the end everything is up again; the histories of all clients are compared with the logs.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Final

import anyio

from tests.cluster.histories import History, problems
from tests.soak.cluster.machines import Cut, Machines, Replica
from tests.soak.cluster.users import User
from tests.support.nats import free_ports, running_nats
from tests.support.server import Wire

FAULTS: Final = ("replica", "replica", "nats", "both", "pause", "cut", "drain")
SETTLE_S: Final = 30.0


async def strike(machines: Machines, kind: str, rng: random.Random) -> None:
    """Let one fault happen, and mend it."""
    replica = rng.choice(machines.replicas)
    node = rng.choice(machines.nats.nodes)
    if kind in ("nats", "both"):
        node.kill()
    if kind in ("replica", "both"):
        replica.kill()
    if kind == "pause":
        replica.pause()
        await anyio.sleep(rng.choice([0.5, 3, 18]))
        replica.wake()
    if kind == "cut":
        replica.cut.cut()
        await anyio.sleep(rng.choice([0.2, 4, 16]))
        replica.cut.mend()
    if kind == "drain":
        replica.terminate()
        await anyio.sleep(3)
        replica.kill()
    await anyio.sleep(rng.random())
    if kind in ("nats", "both"):
        node.start()
        await node.wait_until_ready()
    if not replica.alive:
        replica.start()
    await replica.wait_until_ready()


async def read_log(port: int, session_id: str) -> list[dict[str, object]]:
    """Return the log of a session."""
    wire = Wire(await anyio.connect_tcp("127.0.0.1", port))
    wire.wait_s = 30
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.read)
        await wire.call("connect", {})
        for _ in range(20):
            answer = await wire.response(
                await wire.ask("session.resume", {"sessionId": session_id, "disableResume": True})
            )
            if "error" not in answer:
                break
            await anyio.sleep(1)
        result = await wire.call("session.getMessages", {"sessionId": session_id})
        await wire.hang_up()
        tasks.cancel_scope.cancel()
        return result["events"]
    raise AssertionError("unreachable")


async def run(args: argparse.Namespace) -> int:
    """Run the test; return the number of problems."""
    rng = random.Random(args.seed)
    folder = Path(tempfile.mkdtemp(prefix="cluster-faults-"))
    struck: Counter[str] = Counter()
    began = time.monotonic()
    async with running_nats(folder, 3) as nats, anyio.create_task_group() as tasks:
        replicas: list[Replica] = []
        for number, port in enumerate(free_ports(3)):
            cut = Cut([node.port for node in nats.nodes])
            await cut.start(tasks)
            replicas.append(Replica(folder, number, port, cut))
        machines = Machines(nats, replicas)
        try:
            for replica in replicas:
                replica.start()
            for replica in replicas:
                await replica.wait_until_ready()
            ports = [replica.port for replica in replicas]
            histories = [History(f"session-{number}") for number in range(args.sessions)]
            users: list[User] = []
            for history in histories:
                users.append(
                    User(f"{history.session}/host", history, ports, random.Random(rng.random()), guest=False)
                )
                users.append(
                    User(f"{history.session}/guest", history, ports, random.Random(rng.random()), guest=True)
                )
            async with anyio.create_task_group() as clients:
                for user in users:
                    clients.start_soon(user.live)
                await anyio.sleep(3)
                until = time.monotonic() + args.minutes * 60
                while sum(struck.values()) < args.kills and time.monotonic() < until:
                    kind = rng.choice(FAULTS)
                    await strike(machines, kind, rng)
                    struck[kind] += 1
                    print(f"{sum(struck.values())} faults, {sum(user.runs for user in users)} runs", flush=True)
                    await anyio.sleep(rng.random() * args.pause)
                # No more prompts; what runs must end.
                for user in users:
                    user.stopping = True
                await anyio.sleep(SETTLE_S)
                for user in users:
                    if user.current is not None:
                        user.current.to_the_end = user.connected
                clients.cancel_scope.cancel()
            found: list[str] = []
            for history in histories:
                history.log = [dict(event) for event in await read_log(ports[0], history.session)]
                found += [f"{history.session}: {problem}" for problem in problems(history)]
            for user in users:
                found += user.stuck
            report = {
                "faults": dict(struck),
                "minutes": round((time.monotonic() - began) / 60, 1),
                "sessions": len(histories),
                "runs": sum(user.runs for user in users),
                "stored": sum(len(history.log) for history in histories),
                "announced": sum(len(each.events) for history in histories for each in history.attachments),
                "answers": sum(len(history.answers) for history in histories),
                "reconnects": sum(user.reconnects for user in users),
                "refused": sum(user.refused for user in users),
                "problems": len(found),
            }
            print(json.dumps(report))
            for problem in found[:50]:
                print(problem)
            if found:
                print(f"kept: {folder}")
                (folder / "histories.json").write_text(json.dumps([asdict(history) for history in histories]))
            else:
                shutil.rmtree(folder, ignore_errors=True)
            return len(found)
        finally:
            for replica in replicas:
                replica.wake()
                replica.kill()
            tasks.cancel_scope.cancel()
    raise AssertionError("unreachable")


def main() -> None:
    """Parse the arguments and run the test; exit with 1 if there is a problem."""
    parser = argparse.ArgumentParser(prog="tests.soak.cluster")
    parser.add_argument("--kills", type=int, default=50, help="number of faults")
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60, help="longest time")
    parser.add_argument("--pause", type=float, default=2.0, help="longest time between faults, in seconds")
    args = parser.parse_args()
    raise SystemExit(1 if anyio.run(run, args) else 0)


if __name__ == "__main__":
    main()
