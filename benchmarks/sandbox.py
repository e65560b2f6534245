"""Measure what the sandbox adds to a command: ``bash -c true`` without one and with each mechanism, in turns.

    sandbox.py [--rounds N] [--project FOLDER] [--parts]

The project is, by default, a repository of 100 folders. A run includes everything that a call of the ``bash`` tool
does for the sandbox: the examination of the project before and after the command, too. Between the commands is a
pause, as for the answer of a model: in it, the sandbox of the next command is started. ``bubblewrap, started`` is a
command without such a sandbox, as the second one of two at once. The exit code is 1 if bubblewrap adds more than
5 ms, the median of all rounds.

With ``--parts``, shows instead where the time of bubblewrap goes, without the tool around it. The fastest tenth of
the rounds is the part that a busy machine changes least.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import ByteStream, TaskGroup
from msgspec.structs import replace

from jumpseat.sandbox.mechanisms import Mechanism, candidates
from jumpseat.sandbox.proxy import UnreachableError
from jumpseat.sandbox.session import Sandboxes, SessionSandbox
from jumpseat.sandbox.session_network import Reach, SessionNetwork
from jumpseat.sandbox.settings import SandboxSettings
from jumpseat.sandbox.view import View
from jumpseat.tools.running_commands import CommandRunner
from jumpseat.tools.shell.process import BASH
from jumpseat.tools.shell.shells import Shells

LIMIT_MS: Final = 5.0
PLAIN: Final = "without"
STARTED: Final = "bubblewrap, started"

PAUSE_S: Final = 0.03
"""Time between two commands."""


async def measure(project: Path, home: Path, rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds of each run, by the name of the mechanism."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    times: dict[str, list[float]] = {}
    async with anyio.create_task_group() as tasks:
        runners: dict[str, CommandRunner] = {PLAIN: Shells(tasks)}
        for mechanism in candidates(environ):
            for name in (mechanism.name, STARTED) if mechanism.name == "bubblewrap" else (mechanism.name,):
                make = partial(_sandbox, mechanism, project, home, environ, tasks)
                runners.setdefault(name, Shells(tasks, make_sandbox=make))
        for number in range(rounds + 3):
            for name, shells in runners.items():
                # With this variable, no sandbox is started in advance.
                variables = environ | ({"REPLY": ""} if name == STARTED else {})
                began = time.perf_counter()
                shell = await shells.start("true", cwd=project, environ=variables)
                await shell.wait()
                took = time.perf_counter() - began
                assert shell.exit_code == 0, (name, shell.output())
                # The first rounds fill caches.
                if number >= 3:
                    times.setdefault(name, []).append(took * 1000)
                await anyio.sleep(PAUSE_S)
        for shells in runners.values():
            await shells.close()
    return times


async def measure_parts(project: Path, home: Path, rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds of commands with more and more of the sandbox, and of the work before and after."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    mechanism = next(found for found in candidates(environ) if found.name == "bubblewrap")
    words = [*BASH, "true"]
    times: dict[str, list[float]] = {}
    async with anyio.create_task_group() as tasks:
        sandbox = _sandbox(mechanism, project, home, environ, tasks)
        confined = await sandbox.confine(words, project, environ, outlives=True)
        commands = {
            "bash": words,
            "+ bwrap": mechanism.command(View(network=True), project, words, outlives=True),
            "+ mounts": mechanism.command(
                replace(confined.view, namespace=None, network=True), project, words, outlives=True
            ),
            "+ network": confined.command,
        }
        for _ in range(rounds):
            for name, command in commands.items():
                times.setdefault(name, []).append(_run(command, project, confined.environ))
            began = time.perf_counter()
            again = await sandbox.confine(words, project, environ, outlives=True)
            prepared = time.perf_counter()
            await sandbox.settle(again)
            times.setdefault("preparation", []).append((prepared - began) * 1000)
            times.setdefault("comparison", []).append((time.perf_counter() - prepared) * 1000)
        await sandbox.close()
    return times


def _run(command: list[str], project: Path, environ: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=project, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return (time.perf_counter() - began) * 1000


class _NoHosts:
    """Reaches no host, and decides about none."""

    def forbids(self, url: str) -> bool:
        return True

    async def allows(self, url: str, reach: Reach) -> bool:
        return False

    async def connect(self, host: str, port: int, *, private: bool, proxy: str | None) -> ByteStream:
        raise UnreachableError(host)


def _sandbox(
    mechanism: Mechanism, project: Path, home: Path, environ: dict[str, str], tasks: TaskGroup
) -> SessionSandbox:
    sandboxes = Sandboxes(SandboxSettings(mode="require"), home / ".jumpseat", environ)
    sandboxes.mechanism, sandboxes.probed = mechanism, True
    hosts = _NoHosts()
    network = SessionNetwork(lambda: sandboxes.defaults, tasks, hosts, hosts.connect, lambda: environ)
    return SessionSandbox(sandboxes, lambda: sandboxes.defaults, lambda: [project], network=network)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--project", type=Path)
    parser.add_argument("--parts", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder, "home"), options.project or Path(folder, "project")
        home.mkdir()
        if options.project is None:
            for number in range(100):
                (project / f"package{number // 10}" / f"part{number}").mkdir(parents=True)
            subprocess.run(["git", "init", "--quiet", str(project)], check=True)
        run = measure_parts if options.parts else measure
        times = anyio.run(run, project.resolve(), home.resolve(), options.rounds)
    if options.parts:
        for name, values in times.items():
            fast = statistics.quantiles(values, n=10)[0]
            print(f"{name:12} {statistics.median(values):7.2f} ms  {fast:7.2f} ms in the fastest tenth")
        return 0
    plain = times[PLAIN]
    added = 0.0
    for name, values in times.items():
        # The difference of each pair: a busy moment of the machine affects both halves.
        more = statistics.median(mine - base for mine, base in zip(values, plain, strict=True))
        print(f"{name:20} {statistics.median(values):7.2f} ms  {more:+7.2f} ms")
        added = more if name == "bubblewrap" else added
    return int(added > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
