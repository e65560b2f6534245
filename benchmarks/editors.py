"""Measure the waiting times of an editor: the first response over ACP, new sessions, and the exit of the process.

    editors.py [--rounds N]

Both protocols take turns in every round; the output is the best and the median of the rounds, in milliseconds. The
limits of ``docs/benchmarks.md`` apply to the best, because other processes only make a round slower.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

COMMAND: Final = str(Path(sys.executable).with_name("jumpseat"))
CREDENTIALS: Final = {"OPENAI_API_KEY": "key", "OPENAI_MODEL": "model"}
START_RATIO: Final = 1.5
SESSION_MS: Final = 30.0
EXIT_MS: Final = 500.0


class ServerProcess:
    """A server process, its start time, and its stdin and stdout."""

    def __init__(self, home: str, *flags: str) -> None:
        environ = {"PATH": os.environ["PATH"], "HOME": home, "COPILOT_HOME": home, **CREDENTIALS}
        self._started = time.perf_counter()
        self._process = subprocess.Popen(
            [COMMAND, *flags, "--no-auto-login"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stdin: IO[bytes] = self._process.stdin
        self.stdout: IO[bytes] = self._process.stdout

    def age_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1000

    def call(self, method: str, params: Any) -> float:
        """Send a request over ACP and return the time until its response, in milliseconds."""
        began = time.perf_counter()
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()
        while json.loads(self.stdout.readline()).get("id") != method:
            pass
        return (time.perf_counter() - began) * 1000

    def end(self) -> float:
        """Close stdin and return the time until the exit of the process, in milliseconds."""
        began = time.perf_counter()
        self.stdin.close()
        self._process.wait()
        return (time.perf_counter() - began) * 1000


def ping(home: str) -> dict[str, float]:
    server = ServerProcess(home, "--headless", "--stdio")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"message": "there?"}}).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    server.stdin.flush()
    server.stdout.readline()
    taken = {"start to ping": server.age_ms()}
    server.end()
    return taken


def editor(home: str) -> dict[str, float]:
    server = ServerProcess(home, "--acp")
    server.call("initialize", {"protocolVersion": 1})
    taken = {"start to initialize": server.age_ms()}
    params: dict[str, Any] = {"cwd": home, "mcpServers": []}
    taken["first session/new"] = server.call("session/new", params)
    taken["session/new"] = server.call("session/new", params)
    taken["exit"] = server.end()
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the waiting times of an editor.")
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    figures: dict[str, list[float]] = {}
    measures: list[Callable[[str], dict[str, float]]] = [ping, editor]
    with tempfile.TemporaryDirectory() as home:
        for _ in range(rounds):
            for measure in measures:
                for name, value in measure(home).items():
                    figures.setdefault(name, []).append(value)
    for name, values in figures.items():
        print(f"{name:20} best {min(values):7.1f} ms   median {statistics.median(values):7.1f} ms")
    ratio = min(figures["start to initialize"]) / min(figures["start to ping"])
    print(f"initialize takes {ratio:.2f} times the time of ping")
    limits = {
        f"initialize above {START_RATIO} times ping": ratio > START_RATIO,
        f"session/new above {SESSION_MS:.0f} ms": min(figures["first session/new"]) > SESSION_MS,
        f"exit above {EXIT_MS:.0f} ms": min(figures["exit"]) > EXIT_MS,
    }
    for limit, broken in limits.items():
        if broken:
            print(f"limit exceeded: {limit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
