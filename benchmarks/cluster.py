"""Measure what a cluster costs: three synced servers of NATS and replicas on this machine, against files.

::

    make bench-cluster                                 # some minutes; draws docs/performance/takeover.svg
    make bench-cluster ARGS='--parts append,turn'

Each part prints its figures. What is compared is measured alternately, in one run: files and NATS, the owner and a
replica that relays. All processes share this machine, so a rate is given for each second of processor time that a
process used, too.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

import anyio
import orjson
from anyio.abc import TaskGroup
from benchmarks.driver import Server
from benchmarks.plot import write_chart
from benchmarks.process import cpu_seconds, memory_mib
from tests.cluster.balanced import BalancedReplicas, Replica, balanced_replicas
from tests.support.nats import Nats, running_nats
from tests.support.server import JsonObject, Wire, calls, scripted

from jumpseat.agent.clock import new_id, utc_now
from jumpseat.cluster.nats import jetstream
from jumpseat.cluster.nats.settings import ClusterSettings
from jumpseat.cluster.sessions.index import Index, IndexEntry
from jumpseat.cluster.sessions.lease import Lease
from jumpseat.cluster.sessions.records import Record
from jumpseat.store.session.event_log import FileEventLog, LogSyncer
from jumpseat_protocol.events import Event, SessionWarning

HERE: Final = Path(__file__).parent
SERVER: Final = shlex.quote(str(Path(sys.executable).with_name("jumpseat")))
APPENDS: Final = 1000
TURNS: Final = 150
CALLS: Final = 500
TAKEOVERS: Final = 8
AT_ONCE: Final = 300
BUSY: Final = 30
BUSY_S: Final = 15.0
STORED: Final = (1000, 10_000, 30_000, 100_000)

Part: TypeAlias = Callable[[Path, Path], Awaitable[None]]


def show(what: str, values: list[float], unit: str = "ms", scale: float = 1e3) -> float:
    """Print the median, the 10th and 99th percentile and the largest of the values; return the median."""
    ordered = sorted(value * scale for value in values)
    median, p10, p99 = statistics.median(ordered), ordered[len(ordered) // 10], ordered[len(ordered) * 99 // 100]
    print(f"{what:48} {median:9.3f} {unit}   p10 {p10:9.3f}   p99 {p99:9.3f}   most {ordered[-1]:9.3f}", flush=True)
    return median


@asynccontextmanager
async def model() -> AsyncGenerator[str]:
    """Run the model; yields its address."""
    async with await anyio.open_process([sys.executable, str(HERE / "model.py")], stderr=None) as process:
        assert process.stdout is not None
        port = int(await process.stdout.receive())
        yield f"http://127.0.0.1:{port}/v1"
        process.kill()


@asynccontextmanager
async def server(home: Path, url: str, nats: Nats | None = None) -> AsyncGenerator[Server]:
    """Run a server on stdio, which stores its sessions in files or in NATS."""
    _make_home(home, nats.config(copies=len(nats.nodes)) if nats is not None else "")
    running = await Server.start(SERVER, home, url)
    try:
        await running.call("connect", {})
        yield running
    finally:
        await running.kill()


def _make_home(home: Path, config: str) -> None:
    home.mkdir()
    (home / "config.toml").write_text(config)


# --- parts --------------------------------------------------------------------------------------------------------


async def append(folder: Path, _out: Path) -> None:
    """One event of a session, from the append to the moment in which it may be announced."""
    async with running_nats(folder, 3) as nats, anyio.create_task_group() as tasks:
        settings = ClusterSettings(tuple(nats.url.split(",")), "bench", "here", copies=3)
        async with jetstream.connect(settings, "bench") as stream:
            for size in (300, 5000):
                event = Event.of(
                    new_id(), utc_now(), None, SessionWarning(warning_type="bench", message="x" * (size - 200))
                )
                await _append(folder / str(size), event, stream, tasks)
        tasks.cancel_scope.cancel()


async def _append(folder: Path, event: Event, stream: jetstream.JetStream, tasks: TaskGroup) -> None:
    _make_home(folder, "")
    line = event.encode() + b"\n"
    log = FileEventLog(str(folder / "events.jsonl"), LogSyncer(tasks), lambda: None)
    lease = Lease(stream, tasks, f"bench-{folder.name}", 1, 0)
    files: list[float] = []
    plain: list[float] = []
    cluster: list[float] = []
    seq = 0
    for number in range(APPENDS + 50):
        began = time.perf_counter()
        log.append(event)
        files_s = time.perf_counter() - began
        began = time.perf_counter()
        record = Record("events", line)
        subject = stream.names.log(f"plain-{folder.name}")
        seq = await stream.append(subject, line, f"plain:{folder.name}:{number}", seq, record.headers(1))
        plain_s = time.perf_counter() - began
        began = time.perf_counter()
        lease.store(Record("events", line))
        await lease.wait()
        if number >= 50:
            files.append(files_s)
            plain.append(plain_s)
            cluster.append(time.perf_counter() - began)
    in_files = show(f"append of {len(line)} bytes, files", files)
    show(f"publish of {len(line)} bytes, three synced nodes", plain)
    in_nats = show(f"append of {len(line)} bytes, three synced nodes", cluster)
    print(f"{'':48} {in_nats - in_files:9.3f} ms over files")
    log.end()


async def turn(folder: Path, _out: Path) -> None:
    """A plain turn with an answer of one word, without the time of the network of a model."""
    async with (
        model() as url,
        running_nats(folder, 3) as nats,
        server(folder / "files", url) as files,
        server(folder / "owner", url, nats) as owner,
        server(folder / "relay", url, nats) as other,
    ):
        here, there = await files.create(), await owner.create()
        await other.call("session.resume", {"sessionId": there})
        drivers = (("files", files, here), ("cluster", owner, there), ("relayed", other, there))
        took: dict[str, list[float]] = {name: [] for name, _, _ in drivers}
        for number in range(TURNS + 10):
            for name, driver, session in drivers:
                seconds = (await driver.turn(session, "Hello")).seconds
                if number >= 10:
                    took[name].append(seconds)
        medians = {name: show(f"plain turn, {name}", values) for name, values in took.items()}
        for name in ("cluster", "relayed"):
            print(f"{'':48} {medians[name] / medians['files']:9.2f} times files")


async def relay(folder: Path, _out: Path) -> None:
    """A request about a session, to its owner and through a replica that relays: two messages more."""
    async with (
        model() as url,
        running_nats(folder, 3) as nats,
        server(folder / "owner", url, nats) as owner,
        server(folder / "relay", url, nats) as other,
    ):
        session = await owner.create()
        await owner.turn(session, "Hello")
        await other.call("session.resume", {"sessionId": session})
        took: dict[str, list[float]] = {"owner": [], "relayed": []}
        for number in range(CALLS + 20):
            for name, driver in (("owner", owner), ("relayed", other)):
                began = time.perf_counter()
                await driver.call("session.metadata.isProcessing", {"sessionId": session})
                if number >= 20:
                    took[name].append(time.perf_counter() - began)
        medians = {name: show(f"request, {name}", values) for name, values in took.items()}
        each = (medians["relayed"] - medians["owner"]) / 2
        print(f"{'':48} {each:9.3f} ms for each relayed message")


async def takeover(folder: Path, out: Path) -> None:
    """The time from the end of an owner to the first announcement of the next one, to a client that stayed."""
    series: dict[str, list[float]] = {"killed": [], "killed with its NATS": [], "drained": [], "paused": []}
    async with running_nats(folder, 3) as nats, balanced_replicas(folder, nats) as replicas:
        for number in range(TAKEOVERS):
            for name, values in series.items():
                if name == "paused" and number >= TAKEOVERS // 3:
                    continue
                values.append(await _take_over(nats, replicas, name))
                print(f"takeover {number}, owner {name}: {values[-1]:.2f} s", flush=True)
    for name, values in series.items():
        show(f"takeover, owner {name}", values, "s", 1)
    charts = {
        name: [(100.0 * (place + 1) / len(values), value) for place, value in enumerate(sorted(values))]
        for name, values in series.items()
    }
    title = "From the end of the owner to the first event of the next one"
    write_chart(out / "takeover.svg", title, "percent of takeovers", "seconds", charts)


async def _take_over(nats: Nats, replicas: BalancedReplicas, how: str) -> float:
    first, second, _ = replicas.all
    turns = [] if how == "drained" else [{"deltas": ["word "] * 2000, "delay_ms": 10}]
    provider = scripted(*turns, {"text": "more"})
    provider["script"]["after_last"] = "repeat"
    took_s = 0.0
    async with second.connect() as wire:
        wire.wait_s = 60
        async with first.connect() as owner:
            session = (await _patiently(owner, "session.create", {"provider": provider}))["sessionId"]
            await _patiently(wire, "session.resume", {"sessionId": session, "provider": provider})
            if how == "drained":
                return await _drain(first, wire, session)
            await owner.call("session.send", {"sessionId": session, "prompt": "go"})
            await wire.event("assistant.turn_start", session=session)
            since, began = len(wire.messages), time.perf_counter()
            if how == "paused":
                first.pause()
            else:
                if how == "killed with its NATS":
                    # The connection of the first replica begins at the first server.
                    nats.nodes[0].kill()
                await first.kill()
            await wire.event("session.warning", session=session, since=since, warningType="taken_over")
            took_s = time.perf_counter() - began
        await _repair(nats, first, wire, session)
    return took_s


async def _patiently(wire: Wire, method: str, params: JsonObject) -> JsonObject:
    """Send a request until it is served: after the fault before, the store may not be there yet."""
    while True:
        answer = await wire.response(await wire.ask(method, params))
        if "error" not in answer:
            return answer["result"]
        assert answer["error"]["data"]["code"] == "store_unavailable", answer
        await anyio.sleep(0.2)


async def _drain(first: Replica, wire: Wire, session: str) -> float:
    """Let a replica end while a client at another one prompts a session of it; return the longest turn."""
    turns: list[float] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first.terminate)
        while first.running or len(turns) < 3:
            began = time.perf_counter()
            await wire.prompt(session, "more")
            turns.append(time.perf_counter() - began)
    await first.start()
    return max(turns)


async def _repair(nats: Nats, first: Replica, wire: Wire, session: str) -> None:
    for node in nats.nodes:
        if not node.running:
            node.start()
    await nats.wait_until_ready()
    if first.paused:
        first.unpause()
    if not first.running:
        await first.start()
    await _patiently(wire, "session.destroy", {"sessionId": session})


async def takeovers(folder: Path, _out: Path) -> None:
    """Many busy sessions whose owner is killed: the time to the first announcement of the next owner of each."""
    provider = scripted(calls("lookup"), {"text": "more"})
    # Nobody answers: all runs are open when their replica is killed.
    tools = [{"name": "lookup", "description": "Look up", "skipPermission": True}]
    async with running_nats(folder, 3) as nats, balanced_replicas(folder, nats) as replicas:
        first, second, _ = replicas.all
        async with second.connect() as wire, first.connect() as owner:
            wire.wait_s = 120
            sessions = [await owner.create(provider) for _ in range(AT_ONCE)]
            for session in sessions:
                await wire.call("session.resume", {"sessionId": session, "provider": provider, "tools": tools})
                await owner.call("session.send", {"sessionId": session, "prompt": "go"})
                await wire.event("external_tool.requested", session=session)
            took: list[float] = []
            since, began = len(wire.messages), time.perf_counter()

            async def wait(session: str) -> None:
                await wire.event("session.idle", session=session, since=since)
                took.append(time.perf_counter() - began)

            await first.kill()
            async with anyio.create_task_group() as tasks:
                for session in sessions:
                    tasks.start_soon(wait, session)
    show(f"end of {AT_ONCE} interrupted runs at their next owner", took, "s", 1)


async def load(folder: Path, _out: Path) -> None:
    """Many sessions with turns of a tool call, in files, a cluster and relayed: rates, and their processor time."""
    async with model() as url, running_nats(folder, 3) as nats:
        for name, store in (("files", None), ("cluster", nats)):
            async with server(folder / name, url, store) as driver:
                sessions = [await driver.create() for _ in range(BUSY)]
                await _load(name, driver, sessions, nats if store is not None else None)
        async with server(folder / "owner", url, nats) as owner, server(folder / "relay", url, nats) as relaying:
            sessions = [await owner.create() for _ in range(BUSY)]
            for session in sessions:
                await relaying.call("session.resume", {"sessionId": session})
            await _load("relayed", relaying, sessions, nats, owner)


async def _load(
    name: str, driver: Server, sessions: list[str], nats: Nats | None, owner: Server | None = None
) -> None:
    nodes = [node.pid for node in nats.nodes] if nats is not None else []
    replicas = [driver.pid, *([owner.pid] if owner is not None else [])]
    before = [cpu_seconds(pid) for pid in (*replicas, *nodes)]
    turns = events = 0
    began = time.perf_counter()

    async def work(session: str) -> None:
        nonlocal turns, events
        while time.perf_counter() - began < BUSY_S:
            done = await driver.turn(session, "calls=1")
            turns += 1
            events += done.persisted

    async with anyio.create_task_group() as tasks:
        for session in sessions:
            tasks.start_soon(work, session)
    took_s = time.perf_counter() - began
    used = [cpu_seconds(pid) - then for pid, then in zip((*replicas, *nodes), before, strict=True)]
    print(f"{BUSY} sessions, turns with a tool call, {name}:")
    print(f"  {turns / took_s:.0f} turns and {events / took_s:.0f} events per second")
    for which, used_s in zip(
        ("relaying replica", "owner") if owner is not None else ("replica",), used, strict=False
    ):
        print(
            f"  {which}: {turns / used_s:.0f} turns and {events / used_s:.0f} events per second of processor time"
        )
    if nodes:
        each = sum(used[len(replicas) :]) / len(nodes)
        print(f"  a server of NATS: {events / each:.0f} events per second of processor time", flush=True)


async def stored(folder: Path, _out: Path) -> None:
    """Sessions that nobody has open: disk and memory of NATS, start and memory of a replica, and its list."""
    async with running_nats(folder, 3) as nats:
        settings = ClusterSettings(tuple(nats.url.split(",")), "jumpseat", "here", copies=3)
        async with jetstream.connect(settings, "bench") as stream:
            done = 0
            for number, size in enumerate(STORED):
                began = time.perf_counter()
                await _store(stream, range(done, size))
                print(f"{size - done} sessions stored in {time.perf_counter() - began:.1f} s")
                done = size
                await _measure_stored(folder / f"replica-{number}", nats, size)


async def _store(stream: jetstream.JetStream, numbers: range) -> None:
    """Store sessions of ten events of 500 bytes, with their entries in the list."""
    left = iter(numbers)
    index = Index(stream, None)  # pyright: ignore[reportArgumentType]

    async def work() -> None:
        for number in left:
            session = f"stored-{number:08d}"
            record = Record("events", (b'{"type":"session.info","data":"' + b"x" * 468 + b'"}\n') * 10)
            subject = stream.names.log(session)
            await stream.append(subject, record.data, f"{session}:1", 0, record.headers(1))
            metadata = {
                "sessionId": session,
                "startTime": "2026-01-01T00:00:00.000Z",
                "modifiedTime": "2026-01-01T00:00:00.000Z",
                "summary": f"What is stored under the number {number}?",
                "isRemote": False,
                "context": {"cwd": "/work/project"},
            }
            await index.put(IndexEntry(session, number, None, None, orjson.dumps(metadata), "/work/project"))

    async with anyio.create_task_group() as tasks:
        for _ in range(64):
            tasks.start_soon(work)


async def _measure_stored(home: Path, nats: Nats, size: int) -> None:
    disk = _size(nats.nodes[0].folder)
    memory = statistics.mean(memory_mib(node.pid) for node in nats.nodes)
    began = time.perf_counter()
    async with server(home, "http://127.0.0.1:1", nats) as driver:
        start_s = time.perf_counter() - began
        began = time.perf_counter()
        await driver.call("session.list", {"filter": {"cwd": "/nowhere"}})
        list_s = time.perf_counter() - began
        used_mib = memory_mib(driver.pid)
        began = time.perf_counter()
        await driver.call("session.list", {})
        list_all_s = time.perf_counter() - began
        table_mib = _size(home / "replicas") / 2**20
        print(f"{size} stored sessions: each server of NATS {disk / 2**20:.0f} MiB disk, {memory:.0f} MiB memory;")
        print(f"  a replica starts in {start_s:.2f} s, has {used_mib:.0f} MiB and {table_mib:.0f} MiB disk,")
        print(f"  lists none in {list_s * 1e3:.0f} ms and all in {list_all_s * 1e3:.0f} ms", flush=True)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


PARTS: Final[dict[str, Part]] = {
    "append": append,
    "turn": turn,
    "relay": relay,
    "takeover": takeover,
    "takeovers": takeovers,
    "load": load,
    "stored": stored,
}


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(prog="make bench-cluster", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to measure (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, default=HERE.parent / "docs" / "performance", help="folder of the chart"
    )
    options = parser.parse_args()
    for part in options.parts.split(","):
        with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder:
            anyio.run(PARTS[part], Path(folder), options.out)


if __name__ == "__main__":
    main()
