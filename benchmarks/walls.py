"""Measure the share of each wall in a turn that views a file, edits it and runs a command.

    walls.py [--rounds N] [--command-line LINE] [--installed N] [--answer-ms N]

A wall with a setting is measured by two servers, one with it and one without, whose turns alternate: shown is the
median of the differences. The others have no setting: the median time in their functions, times the calls a turn.
The model answers at once, so that the shares are the largest possible ones, or after some time. The exit code is 1
if a wall of commands takes more than 5 ms, or another one more than 3 % of the turn. The project has N folders of
installed packages, 3,000 by default.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import os
import random
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from blocking_server import AskedServer, Model, SdkBench, call

LIMIT: Final = 0.03
COMMAND_LIMIT_MS: Final = 5.0

OFF: Final[Mapping[str, str]] = {
    "none": "",
    "sandbox": '[sandbox]\nmode = "off"',
    "syntax check": "[edits]\ncheck_syntax = false",
    "loop guard": "[limits]\nrepeats_before_hint = 0\nrepeats_before_question = 0",
    "brief and reminder": "[project]\nbrief = false\ncheck_reminder = false",
    "hooks in files": "[hooks]\nfiles = false",
    "language servers": "[lsp]\nenabled = false",
}
"""The settings that switch each wall off."""

OF_COMMANDS: Final = frozenset(
    {"sandbox", "sandbox, before a command", "sandbox, after a command", "judgement of a command"}
)

BESIDE: Final = "sandbox, during an answer"
"""The part that delays nobody, unless the model answers at once; it is a part of the row "sandbox"."""

COMMIT: Final = (
    ("init", "--quiet"),
    ("add", "."),
    ("-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "--quiet", "--message=x"),
    ("branch", "other"),
)

FUNCTION: Final = """
def name(first: int, second: int) -> list[int]:
    return [first, second + 1]
"""


async def measure(rounds: int, line: str, installed: int, answer_ms: float) -> bool:
    """Show the share of each wall; return whether none exceeds its limit."""
    model = Model(answer_ms / 1e3)
    with tempfile.TemporaryDirectory(prefix="walls-", ignore_cleanup_errors=True) as name:
        async with model.listening():
            servers = {wall: await _start(Path(name, wall), text, model, installed) for wall, text in OFF.items()}
            turns: dict[str, list[float]] = {wall: [] for wall in servers}
            for number in range(rounds + 3):
                # The first one of a round finds the caches of the processor as the pause has left them.
                for wall in random.sample(list(servers), len(servers)):
                    bench, session, project = servers[wall]
                    took = await _turn(bench, session, project, number, line)
                    # The first turns import modules and fill caches.
                    if number >= 3:
                        turns[wall].append(took)
                    elif number == 2:
                        (Path(name, wall) / "times").write_text("")
            for bench, _, _ in servers.values():
                await bench.server.kill()
        whole = statistics.median(turns["none"])
        costs = {
            wall: statistics.median(mine - base for mine, base in zip(turns["none"], others, strict=True))
            for wall, others in turns.items()
            if wall != "none"
        }
        for wall, spent in _times(Path(name, "none") / "times").items():
            costs[wall] = statistics.median(spent) * len(spent) / rounds
    print(f"a turn takes {whole:.1f} ms")
    good = True
    for wall, cost in costs.items():
        limit = COMMAND_LIMIT_MS if wall in OF_COMMANDS else LIMIT * whole
        fine = wall == BESIDE or cost <= limit
        print(f"{wall:24} {cost:7.2f} ms {cost / whole:7.1%} {'' if fine else ' too much'}")
        good = good and fine
    return good


async def _start(home: Path, settings: str, model: Model, installed: int) -> tuple[SdkBench, str, Path]:
    project = home / "project"
    for number in range(installed // 10):
        for part in range(9):
            (project / "node_modules" / f"package{number}" / f"part{part}").mkdir(parents=True)
    project.mkdir(parents=True, exist_ok=True)
    (project / ".gitignore").write_text("node_modules\n")
    for number in range(50):
        path = project / f"package{number}" / "module.py"
        path.parent.mkdir(parents=True)
        path.write_text(f"VALUE = {number}\n" * 20)
    (project / "main.py").write_text("VALUE = 0\n" + FUNCTION * 50)
    for words in COMMIT:
        await (await asyncio.create_subprocess_exec("git", "-C", str(project), *words)).wait()
    (home / "config.toml").write_text(f"trusted_folders = [{json.dumps(str(project))}]\n{settings}\n")
    (home / "times").touch()
    server = await AskedServer.start(shlex.join([sys.executable, __file__, "--serve"]), home, model.url)
    assert isinstance(server, AskedServer)
    await server.call("connect", {})
    bench = SdkBench(server, model, home, None)
    return bench, await bench.session(project), project


async def _turn(bench: SdkBench, session: str, project: Path, number: int, line: str) -> float:
    """Run one turn and return its milliseconds."""
    path = str(project / "main.py")
    answers = [
        call("view", path=path),
        call("edit", path=path, old_str=f"VALUE = {number}\n", new_str=f"VALUE = {number + 1}\n"),
        call("bash", command=f"{line} # {number}", description="Count lines"),
    ]
    turn = await bench.turn(session, "Go on", *answers)
    assert turn is not None, bench.failure
    assert _begins_with(path, f"VALUE = {number + 1}\n")
    return turn.seconds * 1e3


def _begins_with(path: str, line: str) -> bool:
    return Path(path).read_text().startswith(line)


def _times(file: Path) -> dict[str, list[float]]:
    """Return the milliseconds that were spent in each wall, by its name."""
    times: dict[str, list[float]] = {}
    for entry in file.read_text().splitlines():
        wall, nanoseconds = entry.split("\t")
        times.setdefault(wall, []).append(int(nanoseconds) / 1e6)
    return times


def serve() -> None:
    """Run a server that writes the times in walls without a setting to a file in its home folder."""
    from jumpseat.__main__ import main as run_server
    from jumpseat.agent.permissions import disclosure, facts
    from jumpseat.sandbox.session import SessionSandbox
    from jumpseat_protocol.permissions import ShellPermission

    file = os.open(Path(os.environ["COPILOT_HOME"], "times"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(wall: str, started: int) -> None:
        os.write(file, f"{wall}\t{time.perf_counter_ns() - started}\n".encode())

    def timed(wall: Callable[..., str], function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter_ns()
            try:
                return function(*args, **kwargs)
            finally:
                note(wall(*args), started)

        return run

    def timed_async(wall: Callable[..., str], function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def run(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter_ns()
            try:
                return await function(*args, **kwargs)
            finally:
                note(wall(*args), started)

        return run

    def judged(request: object, *_: object) -> str:
        return "judgement of a command" if isinstance(request, ShellPermission) else "judgement of files"

    def finished(_: object, pace: str | None = None) -> str:
        return BESIDE if pace == "answer" else "sandbox, after a turn"

    facts.gather_facts = timed(judged, facts.gather_facts)
    disclosure.disclose = timed(lambda *_: "marks of disguises", disclosure.disclose)
    # Parts of the row "sandbox", shown apart.
    SessionSandbox.confine = timed_async(lambda *_: "sandbox, before a command", SessionSandbox.confine)
    SessionSandbox.settle = timed_async(lambda *_: "sandbox, after a command", SessionSandbox.settle)
    SessionSandbox.finish = timed_async(finished, SessionSandbox.finish)
    sys.argv[0] = "jumpseat"
    run_server()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--command-line", default="wc -l main.py", metavar="LINE")
    parser.add_argument("--installed", type=int, default=3000, metavar="N")
    parser.add_argument("--answer-ms", type=float, default=0.0, metavar="N")
    options = parser.parse_args()
    measured = measure(options.rounds, options.command_line, options.installed, options.answer_ms)
    return 0 if asyncio.run(measured) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        del sys.argv[1]
        serve()
    else:
        sys.exit(main())
