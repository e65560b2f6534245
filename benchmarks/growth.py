"""Measure how cost grows with sessions, stored sessions and events, and draw it.

    growth.py [NAME=COMMAND ...] [--out FOLDER] [--most N] [--parts live,stored,events]

The servers are the given COMMANDs, or else the ``jumpseat`` installed with this Python. Every figure except memory
is the processor time of the server, because that hardly depends on what else the machine does. The folder gets one
CSV file per part, in which the rows of other servers stay, and one SVG chart per measure.

Large stores and long logs are copies: the server under measurement writes one session, whose files are repeated
with new ids. So they have the format of that server.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.request import Request, urlopen

import orjson
from driver import Server
from plot import write_chart
from process import cpu_seconds, memory_mib

HERE: Final = Path(__file__).resolve().parent
TURNS: Final = 60
"""The number of turns over which their cost is averaged."""

UUID: Final = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
CALL_ID: Final = re.compile(rb'"call_\d+_(\d+)"')

Row: TypeAlias = dict[str, float]
Start: TypeAlias = Callable[[Path], Awaitable[Server]]


@asynccontextmanager
async def running(command: str, home: Path, model_url: str) -> AsyncGenerator[Server]:
    """Run a server that is ready for requests."""
    server = await Server.start(command, home, model_url)
    try:
        await server.call("connect", {})
        await server.call("ping", {"message": "x"})
        yield server
    finally:
        await server.kill()


@asynccontextmanager
async def home_folder() -> AsyncGenerator[Path]:
    folder = tempfile.mkdtemp(prefix="growth-")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def cost_ms(server: Server, times: int, work: Callable[[int], Awaitable[object]]) -> float:
    """Return the mean processor time of ``work`` over ``times`` runs, in milliseconds."""
    before = cpu_seconds(server.pid)
    for number in range(times):
        await work(number)
    return (cpu_seconds(server.pid) - before) * 1e3 / times


# --- live sessions ----------------------------------------------------------------------------------------------


async def live(command: str, model_url: str, most: int) -> AsyncIterator[Row]:
    """Yield the costs with 1 to 1,000 live sessions in one process."""
    async with home_folder() as home, running(command, home, model_url) as server:
        ids: list[str] = []
        for size in (1, 10, 100, 1000):
            if size > most:
                return
            missing = size - len(ids)

            async def create(_number: int, ids: list[str] = ids) -> None:
                ids.append(await server.create())

            create_ms = await cost_ms(server, missing, create)
            for session in ids[-missing:]:
                await server.turn(session, "Hello")

            async def take_turn(number: int, ids: list[str] = ids) -> None:
                await server.turn(ids[number % len(ids)], "Hello")

            async def list_all(_number: int) -> None:
                await server.call("session.list", {})

            yield {
                "sessions": size,
                "turn_ms": await cost_ms(server, TURNS, take_turn),
                "create_ms": create_ms,
                "list_ms": await cost_ms(server, 3, list_all),
                "memory_mib": memory_mib(server.pid),
            }


# --- stored sessions --------------------------------------------------------------------------------------------


async def stored(command: str, model_url: str, most: int) -> AsyncIterator[Row]:
    """Yield the costs of a new process with 10 to 100,000 stored sessions."""
    async with home_folder() as home:
        async with running(command, home, model_url) as server:
            session = await server.create()
            await server.turn(session, "Hello")
            await server.turn(session, "calls=8")
            await server.close_stdin()
        original = next(path for path in home.rglob("events.jsonl")).parent
        count = 1
        for size in (10, 100, 1000, 10_000, 100_000):
            if size > most:
                return
            copy_session(original, session, size - count)
            count = size
            server = await Server.start(command, home, model_url)
            try:
                await server.call("connect", {})
                await server.call("ping", {"message": "x"})
                row: Row = {"sessions": size, "start_ms": cpu_seconds(server.pid) * 1e3}
                row["first_list_ms"] = await _list(server, size)
                row["list_ms"] = await _list(server, size)
                await asyncio.sleep(1.5)
                row["later_list_ms"] = await _list(server, size)
                row["memory_mib"] = memory_mib(server.pid)
                await server.close_stdin()
            finally:
                await server.kill()
            async with running(command, home, model_url) as again:
                row["list_of_next_process_ms"] = await _list(again, size)
            yield row


async def _list(server: Server, size: int) -> float:
    found: list[int] = []

    async def list_all(_number: int) -> None:
        found.append(len((await server.call("session.list", {}))["sessions"]))

    taken = await cost_ms(server, 1, list_all)
    assert found == [size], f"expected {size} sessions, got {found[0]}"
    return taken


def copy_session(original: Path, session_id: str, times: int) -> None:
    """Store copies of a session under new ids, without the mark of a program that was killed."""
    folders = [str(path.relative_to(original)) for path in original.rglob("*") if path.is_dir()]
    files = [(str(path.relative_to(original)), path.read_bytes()) for path in original.rglob("*.*")]
    files = [(name, content) for name, content in files if not name.startswith("inuse.")]
    old_id = session_id.encode()
    # Files without the id are links. File systems limit the links to one file.
    sources: dict[str, str] = {}
    for number in range(times):
        new_id = str(uuid.uuid4())
        target = str(original.with_name(new_id))
        for folder in ("", *folders):
            os.mkdir(f"{target}/{folder}")
        for name, content in files:
            if old_id in content or number % 1000 == 0:
                with open(f"{target}/{name}", "wb") as file:
                    file.write(content.replace(old_id, new_id.encode()))
                sources[name] = f"{target}/{name}"
            else:
                os.link(sources[name], f"{target}/{name}")


# --- events of one session --------------------------------------------------------------------------------------


async def events(command: str, model_url: str, most: int) -> AsyncIterator[Row]:
    """Yield the costs of a session with 100 to 100,000 events, resumed in a new process.

    ``short_turn_ms`` is that of a session with two turns, where the model reads as many bytes before each prompt
    as it gets from the long session: while the model works, the server's memory leaves the caches.
    """
    for size in (100, 1000, 10_000, 20_000, 100_000):
        if size > most:
            return
        async with home_folder() as home:
            async with running(command, home, model_url) as server:
                session = await server.create(**_UNLIMITED)
                await server.turn(session, "calls=8")
                await server.close_stdin()
            log = next(home.rglob("events.jsonl"))
            lengthen(log, size)
            async with running(command, home, model_url) as server:
                before = memory_mib(server.pid)

                async def resume(_number: int, server: Server = server, session: str = session) -> None:
                    await server.resume(session)

                async def take_turn(_number: int, server: Server = server, session: str = session) -> None:
                    await server.turn(session, "Hello")

                resume_ms = await cost_ms(server, 1, resume)
                after = memory_mib(server.pid)
                await take_turn(0)
                await asyncio.to_thread(_sizes, model_url)
                row = {
                    "events": size,
                    "resume_ms": resume_ms,
                    "resume_memory_mib": after - before,
                    "turn_ms": await cost_ms(server, TURNS // 3, take_turn),
                    "memory_mib": memory_mib(server.pid),
                    "log_mib": log.stat().st_size / (1 << 20),
                }
                body = _request_of(max(await asyncio.to_thread(_sizes, model_url)))
                short = await server.create(**_UNLIMITED)
                await server.turn(short, "calls=8")

                async def take_short_turn(
                    _number: int, server: Server = server, session: str = short, body: bytes = body
                ) -> None:
                    await asyncio.to_thread(_ask, model_url, body)
                    await server.turn(session, "Hello")

                await take_short_turn(0)
                yield row | {"short_turn_ms": await cost_ms(server, TURNS // 3, take_short_turn)}


def _request_of(size: int) -> bytes:
    """Return a request of about ``size`` bytes that the model answers as it does a plain prompt."""
    message = {"role": "user", "content": "Hello"}
    most = size // len(orjson.dumps(message))
    return orjson.dumps({"model": "fake-model", "stream": True, "messages": [message] * max(1, most)})


def _ask(model_url: str, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"{model_url}/chat/completions", body, headers)) as answer:
        answer.read()


def _sizes(model_url: str) -> list[int]:
    """Return the sizes in bytes of the model's requests since the last call."""
    with urlopen(f"{model_url}/sizes") as answer:
        return orjson.loads(answer.read())


_UNLIMITED: Final[dict[str, Any]] = {
    "tools": [
        {
            "name": "add",
            "description": "add numbers",
            "parameters": {"type": "object", "properties": {"a": {"type": "number"}}},
            "skipPermission": True,
        }
    ],
    "availableTools": ["add"],
    "infiniteSessions": {"enabled": False},
}


def lengthen(log: Path, size: int) -> None:
    """Repeat the turn in a log, with new ids, until the log has ``size`` events."""
    lines = log.read_bytes().splitlines(keepends=True)
    begin = next(index for index, line in enumerate(lines) if b'"user.message"' in line)
    turn = b"".join(lines[begin:])
    own = set(UUID.findall(turn)) - set(UUID.findall(b"".join(lines[:begin])))
    last_id = orjson.loads(lines[-1])["id"]
    written = len(lines)
    with log.open("ab") as file:
        for number in range(1, (size - written) // (len(lines) - begin) + 1):
            tail = b"%012x" % number
            copy = UUID.sub(lambda found, tail=tail: found[0][:24] + tail if found[0] in own else found[0], turn)
            copy = CALL_ID.sub(rb'"call_%d_\1"' % (1000 + number), copy)
            first, _, rest = copy.partition(b"\n")
            record = orjson.loads(first)
            record["parentId"] = last_id
            last_id = last_id[:24] + tail.decode()
            file.write(orjson.dumps(record) + b"\n" + rest)


# --- the whole --------------------------------------------------------------------------------------------------

PARTS: Final[Mapping[str, Callable[[str, str, int], AsyncIterator[Row]]]] = {
    "live": live,
    "stored": stored,
    "events": events,
}

CHARTS: Final = (
    ("live", "sessions", "turn_ms", "A plain turn, by live sessions", "processor time, ms"),
    ("live", "sessions", "memory_mib", "Memory, by live sessions", "PSS, MiB"),
    ("live", "sessions", "list_ms", "session.list, by live sessions", "processor time, ms"),
    ("stored", "sessions", "start_ms", "Start to ping, by stored sessions", "processor time, ms"),
    ("stored", "sessions", "list_of_next_process_ms", "First session.list of a process", "processor time, ms"),
    ("stored", "sessions", "list_ms", "session.list again, by stored sessions", "processor time, ms"),
    ("stored", "sessions", "memory_mib", "Memory after session.list", "PSS, MiB"),
    ("events", "events", "turn_ms", "A plain turn, by events of its session", "processor time, ms"),
    ("events", "events", "resume_ms", "session.resume, by events", "processor time, ms"),
    ("events", "events", "resume_memory_mib", "Memory that session.resume adds", "PSS, MiB"),
)


async def measure(servers: Mapping[str, str], parts: Sequence[str], most: int, out: Path) -> None:
    model = await asyncio.create_subprocess_exec(sys.executable, str(HERE / "model.py"), stdout=subprocess.PIPE)
    assert model.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(await model.stdout.readline())}/v1"
        for part in parts:
            target = out / f"{part}.csv"
            # Servers that were measured before stay in the file.
            rows = [row for row in read_rows(target) if row["server"] not in servers]
            for name, command in servers.items():
                async for row in PARTS[part](command, url, most):
                    rows.append({"server": name} | {key: f"{value:.10g}" for key, value in _rounded(row).items()})
                    print(part, rows[-1], file=sys.stderr, flush=True)
            with target.open("w", newline="", encoding="utf-8") as file:
                # Servers that were measured before may lack newer columns.
                columns = list(dict.fromkeys(column for row in rows for column in row))
                writer = csv.DictWriter(file, columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    finally:
        model.kill()
        await model.wait()


def read_rows(source: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file; none if it does not exist."""
    if not source.exists():
        return []
    with source.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _rounded(row: Row) -> Row:
    return {key: round(value, 2) for key, value in row.items()}


def draw(out: Path) -> None:
    """Draw the charts of all CSV files in a folder."""
    for part, x, y, title, y_label in CHARTS:
        series: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for row in read_rows(out / f"{part}.csv"):
            series[row["server"]].append((float(row[x]), float(row[y])))
        if series:
            write_chart(out / f"{part}-{y.removesuffix('_ms').removesuffix('_mib')}.svg", title, x, y_label, series)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure and draw how cost grows.")
    parser.add_argument("servers", nargs="*", metavar="NAME=COMMAND", help="another server to measure")
    parser.add_argument(
        "--out", type=Path, default=HERE.parent / "docs" / "performance", help="folder of the results"
    )
    parser.add_argument("--most", type=int, default=100_000, help="leave out larger sizes (default: %(default)s)")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to measure (default: %(default)s)")
    parser.add_argument("--draw", action="store_true", help="only draw the charts of what was measured before")
    options = parser.parse_args(argv)
    servers: dict[str, str] = {}
    for given in options.servers:
        name, equals, command = given.partition("=")
        if not name or not equals or not command:
            parser.error(f"expected NAME=COMMAND, got {given!r}")
        servers[name] = command
    servers = servers or {"jumpseat": shlex.quote(str(Path(sys.executable).with_name("jumpseat")))}
    parts = options.parts.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"unknown part {unknown[0]!r}, expected one of {', '.join(PARTS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.draw:
        asyncio.run(measure(servers, parts, options.most, options.out))
    draw(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
