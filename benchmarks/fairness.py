"""Measure whether sessions that stream at once get fair shares of the server.

    fairness.py [--sessions N] [--deltas N] [--pace MS] [--rounds N] [--command COMMAND]

All sessions get a prompt at once and stream an answer of the same length. Shares are judged in two ways, both
relative to what each session would get if all were served alike:

* **progress**: at the moment when the sessions have received half of all deltas, the share of the one that has
  received the least (1 is fair; below 0.5, a session waits more than twice its share);
* **ends**: the time of the last session to end, as a multiple of the mean.

The model serves its answers in turns, delta by delta, so that shares are those of the server. With ``--pace``, it
sends a delta of each answer every MS milliseconds instead of as fast as it can.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from driver import Server

HERE: Final = Path(__file__).resolve().parent
LEAST_SHARE: Final = 0.5
LATEST_END: Final = 2.0


class WatchedServer(Server):
    """A server whose deltas are noted: the session of each, and the time of its arrival in seconds."""

    arrivals: list[tuple[str, float]]

    def _event(self, session_id: str, event: dict[str, Any]) -> None:
        if event["type"] == "assistant.message_delta":
            self.arrivals.append((session_id, time.perf_counter()))
        super()._event(session_id, event)


@dataclass(frozen=True, slots=True)
class Shares:
    """The result of one round. ``progress`` is a share, ``latest`` a multiple of the mean, ``gap_ms`` a time."""

    progress: float
    latest: float
    first: float
    gap_ms: float
    seconds: float


async def measure(command: str, model_url: str, sessions: int, prompt: str) -> Shares:
    with tempfile.TemporaryDirectory(prefix="fairness-", ignore_cleanup_errors=True) as home:
        server = await WatchedServer.start(command, Path(home), model_url)
        assert isinstance(server, WatchedServer)
        try:
            await server.call("connect", {})
            ids = [await server.create() for _ in range(sessions)]
            server.arrivals = []
            await asyncio.gather(*(server.turn(session, "Hello") for session in ids))
            server.arrivals = []
            started = time.perf_counter()
            await asyncio.gather(*(server.turn(session, prompt) for session in ids))
            seconds = time.perf_counter() - started
            return _shares(ids, server.arrivals, started, seconds)
        finally:
            await server.kill()


def _shares(ids: list[str], arrivals: list[tuple[str, float]], started: float, seconds: float) -> Shares:
    half = arrivals[: len(arrivals) // 2]
    received = {session: sum(1 for other, _ in half if other == session) for session in ids}
    times = {session: [at for other, at in arrivals if other == session] for session in ids}
    ends = [at[-1] - started for at in times.values()]
    firsts = [at[0] - started for at in times.values()]
    gaps = [after - before for at in times.values() for before, after in itertools.pairwise(at)]
    return Shares(
        progress=min(received.values()) / statistics.mean(received.values()),
        latest=max(ends) / statistics.mean(ends),
        first=max(firsts) / statistics.mean(firsts),
        gap_ms=max(gaps, default=0.0) * 1e3,
        seconds=seconds,
    )


async def run(command: str, sessions: int, deltas: int, pace_ms: float, rounds: int) -> bool:
    """Print the shares of each round and their medians; return whether these are fair."""
    model = await asyncio.create_subprocess_exec(sys.executable, str(HERE / "model.py"), stdout=subprocess.PIPE)
    assert model.stdout is not None
    prompt = f"deltas={deltas} pace={pace_ms:g}"
    try:
        url = f"http://127.0.0.1:{int(await model.stdout.readline())}/v1"
        results = [await measure(command, url, sessions, prompt) for _ in range(rounds)]
    finally:
        model.kill()
        await model.wait()
    print(f"{sessions} sessions, {deltas} deltas each, every {pace_ms:g} ms\n")
    print("| round | least share at half | last first delta / mean | last end / mean | longest gap, ms | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for number, shares in enumerate(results, 1):
        print(
            f"| {number} | {shares.progress:.2f} | {shares.first:.2f} | {shares.latest:.2f} "
            f"| {shares.gap_ms:.0f} | {shares.seconds:.2f} |"
        )
    progress = statistics.median(shares.progress for shares in results)
    latest = statistics.median(shares.latest for shares in results)
    return progress >= LEAST_SHARE and latest <= LATEST_END


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure the shares of sessions that stream at once.")
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--deltas", type=int, default=1000)
    parser.add_argument("--pace", type=float, default=0, metavar="MS", help="milliseconds between two deltas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--command", default=shlex.quote(str(Path(sys.executable).with_name("jumpseat"))))
    options = parser.parse_args(argv)
    fair = asyncio.run(run(options.command, options.sessions, options.deltas, options.pace, options.rounds))
    return 0 if fair else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
