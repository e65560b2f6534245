"""Measure servers of the Copilot SDK protocol, with a model on loopback that answers at once.

    bench.py [NAME=COMMAND ...] [--rounds N] [--json FILE] [--check FILE] [--keep FILE]

The servers are the ``jumpseat`` installed with this Python, the floor (see ``floor.py``) and each given COMMAND:
any server that speaks the protocol over stdio, started with the flags of the SDKs. The servers take turns in every
round; the output is the medians of the rounds and their ratios to the floor. ``--check`` compares the ratios with
those that ``--keep`` has written to a file. See ``docs/benchmarks.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import httpx2
import orjson
from driver import METHOD_NOT_FOUND, Server, ServerError
from process import NotMeasurableError, memory_mib

HERE: Final = Path(__file__).resolve().parent
FLOOR: Final = "floor"
DEFAULT_ROUNDS: Final = 3

STREAM_DELTAS: Final = 5000
SESSIONS_AT_ONCE: Final = 50
RESUME_EVENTS: Final = 2000


WORSE: Final = 1.2
"""The factor by which a ratio to the floor may be worse than the kept one."""


@dataclass(slots=True)
class Run:
    """A server in a round. Measures are taken in the order of :data:`MEASURES` and depend on earlier ones."""

    command: str
    home: Path
    model_port: int
    session: str = ""
    long_session: str = ""
    _server: Server | None = None

    @property
    def server(self) -> Server:
        assert self._server is not None
        return self._server

    async def start(self) -> None:
        self._server = await Server.start(self.command, self.home, f"http://127.0.0.1:{self.model_port}/v1")

    async def end(self) -> None:
        if self._server is not None:
            await self._server.kill()

    async def ping(self) -> None:
        await self.server.call("ping", {"message": "x"})

    async def request_sizes(self) -> list[int]:
        """Return the sizes in bytes of the model's requests since the last call."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            return (await client.get(f"http://127.0.0.1:{self.model_port}/sizes")).json()

    def log_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.home.rglob("events.jsonl"))


# --- the measures -----------------------------------------------------------------------------------------------


async def start(run: Run) -> float:
    """Start the server; return the time until its first response to `ping`, in seconds, handshake included."""
    started = time.perf_counter()
    await run.start()
    await run.server.call("connect", {})
    await run.ping()
    return time.perf_counter() - started


async def idle_memory(run: Run) -> float:
    """Return the memory of the whole process tree before the first session, in MiB (PSS)."""
    return memory_mib(run.server.pid)


async def first_create(run: Run) -> float:
    """Return the duration of the first `session.create` of the process, in milliseconds."""
    started = time.perf_counter()
    run.session = await run.server.create()
    return (time.perf_counter() - started) * 1e3


async def first_turn(run: Run) -> float:
    """Return the duration of the first turn of the process, in milliseconds, with the imports of its first use."""
    return (await run.server.turn(run.session, "Hello")).seconds * 1e3


async def create(run: Run) -> float:
    """Return the median duration of 10 calls of `session.create`, in milliseconds."""
    return await _median(10, run.server.create) * 1e3


async def plain_turn(run: Run) -> float:
    """Return the median duration of 20 turns with an answer of one word, in milliseconds."""
    return statistics.median([(await run.server.turn(run.session, "Hello")).seconds for _ in range(20)]) * 1e3


async def tool_turn(run: Run) -> float:
    """Return the median duration of 10 turns with two model calls and one tool call, in milliseconds."""
    return statistics.median([(await run.server.turn(run.session, "calls=1")).seconds for _ in range(10)]) * 1e3


async def log_per_turn(run: Run) -> float:
    """Return the mean growth of the event log in 10 turns with an answer of one word, in bytes."""
    session = await run.server.create()
    await run.server.turn(session, "Hello")
    before = run.log_bytes()
    for _ in range(10):
        await run.server.turn(session, "Hello")
    return (run.log_bytes() - before) / 10


async def streaming(run: Run) -> float:
    """Return the deltas per second that the client receives in a turn with an answer of 5000 deltas."""
    turn = await run.server.turn(await run.server.create(), f"deltas={STREAM_DELTAS}")
    if turn.deltas != STREAM_DELTAS:
        raise ServerError(f"expected {STREAM_DELTAS} deltas, got {turn.deltas}")
    return turn.deltas / turn.seconds


async def fifty_sessions(run: Run) -> float:
    """Return the duration of 50 concurrent turns in 50 sessions, each with 100 deltas, in seconds."""
    sessions = [await run.server.create() for _ in range(SESSIONS_AT_ONCE)]
    started = time.perf_counter()
    await asyncio.gather(*(run.server.turn(session, "deltas=100") for session in sessions))
    return time.perf_counter() - started


async def memory_with_sessions(run: Run) -> float:
    """Return the memory of the process tree with the 63 sessions created so far, in MiB (PSS)."""
    return memory_mib(run.server.pid)


async def ping(run: Run) -> float:
    """Return the median duration of 200 calls of `ping`, in microseconds."""
    return await _median(200, run.ping) * 1e6


async def request_size(run: Run) -> float:
    """Return the size of a session's first request to the model, with the server's own tools, in bytes."""
    return await _first_request(run, await run.server.create(tools=[]))


async def request_size_without_tools(run: Run) -> float:
    """Return the size of a session's first request to the model without tools (`availableTools: []`), in bytes."""
    return await _first_request(run, await run.server.create(availableTools=[]))


async def log_in_all(run: Run) -> float:
    """Add a session of 2000 events; return the size of all event logs, in KiB."""
    run.long_session = await run.server.create()
    events = 0
    while events < RESUME_EVENTS:
        turn = await run.server.turn(run.long_session, "calls=8")
        if not turn.persisted:
            raise NotMeasurableError("the server persists no events")
        events += turn.persisted
    return run.log_bytes() / 1024


async def exit_time(run: Run) -> float:
    """Close stdin; return the time until the process exits with all its sessions, in seconds."""
    return await run.server.close_stdin()


async def resume(run: Run) -> float:
    """Start a new process; return the duration of `session.resume` for 2000 events, in milliseconds."""
    await run.start()
    await run.server.call("connect", {})
    await run.ping()
    started = time.perf_counter()
    await run.server.resume(run.long_session)
    return (time.perf_counter() - started) * 1e3


async def _median(times: int, work: Callable[[], Awaitable[object]]) -> float:
    """Return the median duration of ``work`` over ``times`` runs, in seconds."""
    taken: list[float] = []
    for _ in range(times):
        started = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


async def _first_request(run: Run, session: str) -> float:
    await run.request_sizes()
    await run.server.turn(session, "Hello")
    return (await run.request_sizes())[0]


# --- the table --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measure:
    """A row of the table; ``limit`` is the accepted multiple of the floor, ``ceiling`` the accepted value."""

    title: str
    unit: str
    take: Callable[[Run], Awaitable[float]]
    limit: float | None = None
    ceiling: float | None = None
    more_is_better: bool = False

    @property
    def name(self) -> str:
        return self.take.__name__

    def allowed(self) -> str:
        if self.limit is not None:
            return f"at least {self.limit:.2f}x" if self.more_is_better else f"{self.limit:.1f}x"
        return "" if self.ceiling is None else _figure(self.ceiling, self.unit)

    def exceeds(self, value: float, floor: float | None) -> bool:
        if self.ceiling is not None and value > self.ceiling:
            return True
        if self.limit is None or not floor:
            return False
        return value / floor < self.limit if self.more_is_better else value / floor > self.limit


MEASURES: Final = (
    Measure("start to first `ping`", "s", start, limit=4.3),
    Measure("memory, idle", "MiB", idle_memory, limit=3),
    Measure("first `session.create`", "ms", first_create),
    Measure("first turn", "ms", first_turn),
    Measure("`session.create`", "ms", create),
    Measure("plain turn", "ms", plain_turn, limit=3.4),
    Measure("turn with one client tool call", "ms", tool_turn, limit=3.4),
    Measure("event log of a plain turn", "bytes", log_per_turn),
    Measure("streaming one answer", "deltas/s", streaming, limit=0.40, more_is_better=True),
    Measure("50 sessions at once, 100 deltas each", "s", fifty_sessions, limit=3.2),
    Measure("memory with 63 sessions", "MiB", memory_with_sessions, limit=3.4),
    Measure("`ping`", "us", ping),
    Measure("first request, own tools", "bytes", request_size, ceiling=8 * 1024),
    Measure("first request, no tools", "bytes", request_size_without_tools),
    Measure("event logs of the whole run", "KiB", log_in_all),
    Measure("exit after stdin is closed", "s", exit_time),
    Measure("`session.resume`, 2000 events", "ms", resume),
)

Values: TypeAlias = dict[str, float]
"""Values by the name of their measure."""


@dataclass(slots=True)
class Results:
    """The results of one server: values and errors of its rounds."""

    rounds: list[Values] = field(default_factory=list[Values])
    problems: list[str] = field(default_factory=list[str])

    def medians(self) -> Values:
        found: Values = {}
        for measure in MEASURES:
            if values := [results[measure.name] for results in self.rounds if measure.name in results]:
                found[measure.name] = statistics.median(values)
        return found


async def run_round(command: str, model_port: int, results: Results) -> None:
    """Take all measures of a server once; the first failure ends the round."""
    values: Values = {}
    results.rounds.append(values)
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as home:
        run = Run(command, Path(home), model_port)
        try:
            for measure in MEASURES:
                try:
                    values[measure.name] = await measure.take(run)
                except NotMeasurableError:
                    pass
                except Exception as error:
                    if isinstance(error, ServerError) and error.code == METHOD_NOT_FOUND:
                        continue
                    results.problems.append(f"{measure.title}: {type(error).__name__}: {error}")
                    return
        finally:
            await run.end()


async def measure_all(servers: dict[str, str], rounds: int) -> dict[str, Results]:
    results = {name: Results() for name in servers}
    model = await asyncio.create_subprocess_exec(sys.executable, str(HERE / "model.py"), stdout=subprocess.PIPE)
    assert model.stdout is not None
    try:
        port = int(await model.stdout.readline())
        for number in range(1, rounds + 1):
            for name, command in servers.items():
                print(f"round {number} of {rounds}: {name}", file=sys.stderr)
                await run_round(command, port, results[name])
    finally:
        model.kill()
        await model.wait()
    return results


def table(results: dict[str, Results]) -> list[str]:
    """Return the medians as a Markdown table, with ratios to the floor."""
    medians = {name: result.medians() for name, result in results.items()}
    floor = medians.get(FLOOR, {})
    rows = [["measure", "our limit", *medians], ["---"] * (len(medians) + 2)]
    for measure in MEASURES:
        row = [measure.title, measure.allowed()]
        base = floor.get(measure.name)
        for name, values in medians.items():
            value = values.get(measure.name)
            if value is None:
                row.append("-")
                continue
            cell = _figure(value, measure.unit)
            if name != FLOOR and base and measure.unit != "bytes":
                cell += f" ({_ratio(value / base)})"
            row.append(cell)
        rows.append(row)
    return [f"| {' | '.join(row)} |" for row in rows]


def exceeded_limits(results: dict[str, Results], name: str) -> list[str]:
    """Return a message for every limit that a server exceeds."""
    floor = results[FLOOR].medians() if FLOOR in results else {}
    values = results[name].medians()
    return [
        f"{measure.title}: {_figure(values[measure.name], measure.unit)} exceeds the limit of {measure.allowed()}"
        for measure in MEASURES
        if measure.name in values and measure.exceeds(values[measure.name], floor.get(measure.name))
    ]


def ratios(results: dict[str, Results]) -> Values:
    """Return the ratios of jumpseat to the floor, at least 1 being worse than the floor in all of them."""
    ours, floor = results["jumpseat"].medians(), results[FLOOR].medians()
    found: Values = {}
    for measure in MEASURES:
        # Sizes are checked by tests; the floor has no log and no sessions to resume.
        if measure.unit not in ("bytes", "KiB") and (base := floor.get(measure.name)) and measure.name in ours:
            ratio = ours[measure.name] / base
            found[measure.name] = round(1 / ratio if measure.more_is_better else ratio, 3)
    return found


def compare(now: Values, kept: Values) -> tuple[list[str], bool]:
    """Return a table of the ratios beside the kept ones, and whether none is worse than allowed."""
    lines = ["| measure | kept | now | |", "| --- | --- | --- | --- |"]
    fine = True
    for measure in MEASURES:
        if (before := kept.get(measure.name)) is None or measure.name not in now:
            continue
        ratio = now[measure.name]
        is_worse = ratio > before * WORSE
        fine = fine and not is_worse
        note = f"{(ratio / before - 1) * 100:+.0f} %" + (": **worse**" if is_worse else "")
        lines.append(f"| {measure.title} | {before:.2f}x | {ratio:.2f}x | {note} |")
    return lines, fine


def _figure(value: float, unit: str) -> str:
    digits = 0 if value >= 100 or not value or unit == "bytes" else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:,.{digits}f} {unit}"


def _ratio(value: float) -> str:
    return f"{value:.0f}x" if value >= 10 else f"{value:.1f}x" if value >= 1 else f"{value:.2f}x"


def _with_absolute_paths(command: str) -> str:
    """Make the relative paths in a command absolute: servers run in another folder."""
    words = shlex.split(command)
    return shlex.join(str(Path(word).absolute()) if "/" in word and Path(word).exists() else word for word in words)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure and compare servers of the Copilot SDK protocol.")
    parser.add_argument("servers", nargs="*", metavar="NAME=COMMAND", help="another server to measure")
    parser.add_argument(
        "--rounds", type=int, default=DEFAULT_ROUNDS, help="number of rounds (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the values of every round to this file")
    parser.add_argument("--check", type=Path, metavar="FILE", help="fail if a ratio is worse than in this file")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the ratios to this file")
    options = parser.parse_args(argv)
    python = Path(sys.executable)
    servers = {
        "jumpseat": shlex.quote(str(python.with_name("jumpseat"))),
        FLOOR: shlex.join([str(python), str(HERE / "floor.py")]),
    }
    for given in options.servers:
        name, equals, command = given.partition("=")
        if not name or not equals or not command:
            parser.error(f"expected NAME=COMMAND, got {given!r}")
        servers[name] = _with_absolute_paths(command)
    results = asyncio.run(measure_all(servers, max(1, options.rounds)))
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, rounds: {options.rounds}\n")
    print("\n".join(table(results)))
    problems = [f"{name}: {problem}" for name, result in results.items() for problem in result.problems]
    for line in [*problems, *exceeded_limits(results, "jumpseat")]:
        print(f"\n{line}")
    if options.json is not None:
        figures = {
            name: {"medians": result.medians(), "rounds": result.rounds, "problems": result.problems}
            for name, result in results.items()
        }
        options.json.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    if options.keep is not None and not problems:
        options.keep.write_bytes(orjson.dumps(ratios(results), option=orjson.OPT_INDENT_2) + b"\n")
    fine = True
    if options.check is not None and not problems:
        lines, fine = compare(ratios(results), orjson.loads(options.check.read_bytes()))
        print("\nRatios to the floor, less is better:\n")
        print("\n".join(lines))
    # An exceeded limit is for people to judge, because machines differ; a failed measure is an error.
    return 1 if problems or not fine else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
