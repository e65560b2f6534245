"""Count what a turn costs the event loop and the kernel: tasks, scopes, locks, thread hops, system calls.

    counts.py [NAME=PYTHON ...] [--turns N]

PYTHON is the interpreter of a virtual environment with jumpseat; without arguments, the one that runs this program.
Counts do not depend on the machine. System calls are counted by strace, where it is installed and may trace.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import orjson
from counted_server import COUNTED
from driver import Server

HERE: Final = Path(__file__).resolve().parent
TURNS: Final = {"plain turn": "Hello", "tool turn": "calls=1"}
SYSTEM_CALLS: Final = "system calls"


async def count(python: str, model_url: str, turns: int) -> dict[str, Counter[str]]:
    """Return the counts of one turn of each kind, as sums over ``turns`` of them."""
    with tempfile.TemporaryDirectory(prefix="counts-", ignore_cleanup_errors=True) as home:
        target = Path(home) / "counts.json"
        os.environ["COUNTS_FILE"] = str(target)
        command = shlex.join([python, str(HERE / "counted_server.py")])
        server = await Server.start(command, Path(home), model_url)
        try:
            await server.call("connect", {})
            found: dict[str, Counter[str]] = {}
            for kind, prompt in TURNS.items():
                session = await server.create()
                for _ in range(5):
                    await server.turn(session, prompt)
                # The log of a session is synced and closed a moment after the last turn.
                await asyncio.sleep(0.5)
                before = _counts(server.pid, target)
                for _ in range(turns):
                    await server.turn(session, prompt)
                found[kind] = _counts(server.pid, target) - before
                found[kind][SYSTEM_CALLS] = await _system_calls(server, session, prompt, turns)
            return found
        finally:
            await server.kill()


def _counts(pid: int, target: Path) -> Counter[str]:
    """Return the counts since the start of the server, which writes them when it is signalled."""
    target.unlink(missing_ok=True)
    os.kill(pid, signal.SIGUSR1)
    while not target.exists():
        time.sleep(0.01)
    return Counter(orjson.loads(target.read_bytes()))


async def _system_calls(server: Server, session: str, prompt: str, turns: int) -> int:
    """Return the system calls of all threads during some turns; 0 if they cannot be counted."""
    strace = shutil.which("strace")
    if strace is None:
        return 0
    with tempfile.NamedTemporaryFile(prefix="counts-") as summary:
        tracer = await asyncio.create_subprocess_exec(
            *(strace, "-f", "-c", "-o", summary.name, "-p", str(server.pid)), stderr=subprocess.PIPE
        )
        assert tracer.stderr is not None
        # The first line says that it is attached, or why not.
        if b"attached" not in await tracer.stderr.readline():
            return 0
        for _ in range(turns):
            await server.turn(session, prompt)
        tracer.send_signal(signal.SIGINT)
        await tracer.communicate()
        return _sum_calls(Path(summary.name))


def _sum_calls(summary: Path) -> int:
    # Columns: share of the time, seconds, microseconds per call, calls, perhaps errors, name.
    rows = [line.split() for line in summary.read_text().splitlines()]
    return sum(int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit() and row[-1] != "total")


async def run(servers: Mapping[str, str], turns: int) -> None:
    model = await asyncio.create_subprocess_exec(sys.executable, str(HERE / "model.py"), stdout=subprocess.PIPE)
    assert model.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(await model.stdout.readline())}/v1"
        found = {name: await count(python, url, turns) for name, python in servers.items()}
    finally:
        model.kill()
        await model.wait()
    columns = [f"{kind}, {name}" if len(servers) > 1 else kind for kind in TURNS for name in servers]
    print(f"| per turn, mean of {turns} | {' | '.join(columns)} |")
    print("| --- |" + " ---: |" * len(columns))
    for row in (*COUNTED, SYSTEM_CALLS):
        values = [found[name][kind][row] / turns for kind in TURNS for name in servers]
        print(f"| {row} | {' | '.join(f'{value:.1f}' for value in values)} |")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Count what a turn costs the event loop and the kernel.")
    parser.add_argument("servers", nargs="*", metavar="NAME=PYTHON", help="the interpreter of an environment")
    parser.add_argument("--turns", type=int, default=50)
    options = parser.parse_args(argv)
    servers: dict[str, str] = {}
    for given in options.servers:
        name, equals, python = given.partition("=")
        if not name or not equals or not python:
            parser.error(f"expected NAME=PYTHON, got {given!r}")
        servers[name] = python
    asyncio.run(run(servers or {"jumpseat": sys.executable}, options.turns))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
