"""Measure other agents as black boxes: start, memory, a turn, with the model of the bench.

    peers.py [--rounds N] [NAME=COMMAND ...]

NAME is ``jumpseat``, ``opencode`` or ``gemini``, which speak the Agent Client Protocol (``COMMAND`` without its
arguments), or ``codex`` (the ``codex`` program, whose ``app-server`` has a protocol of its own). Each agent gets an
empty home folder, the model on loopback, and no credentials.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
from process import memory_mib

HERE: Final = Path(__file__).resolve().parent
TURNS: Final = 10
LIMIT_S: Final = 60.0

CODEX_CONFIG: Final = """
model = "fake-model"
model_provider = "bench"
[model_providers.bench]
name = "bench"
base_url = "MODEL_URL"
wire_api = "responses"
env_key = "BENCH_KEY"
"""
OPENCODE_CONFIG: Final[dict[str, Any]] = {
    "model": "bench/fake-model",
    "provider": {
        "bench": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "MODEL_URL", "apiKey": "none"},
            "models": {"fake-model": {"name": "fake"}},
        }
    },
}


@dataclass(frozen=True, slots=True)
class Kind:
    """The start of an agent. ``MODEL_URL`` in ``environ`` and ``files`` stands for the base URL of the model."""

    arguments: tuple[str, ...]
    environ: Mapping[str, str]
    files: Mapping[str, bytes]
    speaks_acp: bool = True


KINDS: Final = {
    "jumpseat": Kind(
        ("acp",), {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "MODEL_URL", "OPENAI_MODEL": "fake-model"}, {}
    ),
    "opencode": Kind(
        ("acp",),
        {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        {".config/opencode/opencode.json": orjson.dumps(OPENCODE_CONFIG)},
    ),
    "gemini": Kind(
        ("--acp", "-m", "gemini-2.5-flash"),
        {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "MODEL_ROOT"},
        {".gemini/settings.json": orjson.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})},
    ),
    "codex": Kind(
        ("app-server",), {"BENCH_KEY": "none"}, {".codex/config.toml": CODEX_CONFIG.encode()}, speaks_acp=False
    ),
}


class Agent:
    """A running agent and its protocol: JSON-RPC, one message per line."""

    def __init__(self, process: asyncio.subprocess.Process, *, speaks_acp: bool) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._acp = speaks_acp
        self._ids = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    async def initialize(self) -> None:
        if self._acp:
            await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        else:
            client = {"name": "bench", "title": "bench", "version": "1"}
            await self.call("initialize", {"clientInfo": client})
            self._send({"method": "initialized"})

    async def create(self, cwd: str) -> str:
        """Create a session and return its id."""
        if self._acp:
            return (await self.call("session/new", {"cwd": cwd, "mcpServers": []}))["sessionId"]
        params = {"cwd": cwd, "approvalPolicy": "never", "sandbox": "read-only"}
        return (await self.call("thread/start", params))["thread"]["id"]

    async def turn(self, session: str) -> None:
        """Send a prompt and wait for the end of its turn."""
        prompt = [{"type": "text", "text": "Hello"}]
        if self._acp:
            await self.call("session/prompt", {"sessionId": session, "prompt": prompt})
            return
        await self.call("turn/start", {"threadId": session, "input": prompt})
        while (await self._next()).get("method") != "turn/completed":
            pass

    async def call(self, method: str, params: Any) -> Any:
        self._ids += 1
        self._send({"id": self._ids, "method": method, "params": params})
        while True:
            message = await self._next()
            if message.get("id") == self._ids and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    async def end(self) -> None:
        """End the agent and its child processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        self._stdin.write(orjson.dumps(({"jsonrpc": "2.0"} if self._acp else {}) | message) + b"\n")

    async def _next(self) -> dict[str, Any]:
        async with asyncio.timeout(LIMIT_S):
            while True:
                line = await self._stdout.readline()
                if not line:
                    raise RuntimeError("the agent has exited")
                if line.startswith(b"{"):
                    return orjson.loads(line)


async def measure(name: str, command: str, port: int) -> dict[str, float]:
    """Return the values of one process: times in milliseconds, memory in MiB."""
    kind, url = KINDS[name], f"http://127.0.0.1:{port}/v1"
    with tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as home:
        _write_files(Path(home), kind, url)
        environ = {
            key: value.replace("MODEL_URL", url).replace("MODEL_ROOT", url[:-3])
            for key, value in kind.environ.items()
        }
        started = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command),
            *kind.arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env={"PATH": os.environ["PATH"], "HOME": home, **environ},
            limit=1 << 26,
            start_new_session=True,
        )
        agent = Agent(process, speaks_acp=kind.speaks_acp)
        try:
            await agent.initialize()
            found = {
                "start to `initialize`, s": time.perf_counter() - started,
                "memory, MiB": memory_mib(agent.pid),
            }
            started = time.perf_counter()
            session = await agent.create(home)
            found["first session, ms"] = (time.perf_counter() - started) * 1e3
            turns: list[float] = []
            for _ in range(TURNS + 1):
                started = time.perf_counter()
                await agent.turn(session)
                turns.append((time.perf_counter() - started) * 1e3)
            found["first turn, ms"], found["turn, ms"] = turns[0], statistics.median(turns[1:])
            found[f"memory after {TURNS + 1} turns, MiB"] = memory_mib(agent.pid)
            return found
        finally:
            await agent.end()


def _write_files(home: Path, kind: Kind, url: str) -> None:
    for name, content in kind.files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.replace(b"MODEL_URL", url.encode()))


async def run(agents: Mapping[str, str], rounds: int) -> None:
    model = await asyncio.create_subprocess_exec(sys.executable, str(HERE / "model.py"), stdout=subprocess.PIPE)
    assert model.stdout is not None
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in agents}
    try:
        port = int(await model.stdout.readline())
        for _ in range(rounds):
            for name, command in agents.items():
                for row, value in (await measure(name, command, port)).items():
                    figures[name].setdefault(row, []).append(value)
    finally:
        model.kill()
        await model.wait()
    print(f"| median of {rounds} | {' | '.join(figures)} |")
    print("| --- |" + " ---: |" * len(figures))
    for row in next(iter(figures.values())):
        cells = [f"{statistics.median(figures[name][row]):.3g}" for name in figures]
        print(f"| {row} | {' | '.join(cells)} |")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure other agents as black boxes.")
    parser.add_argument("agents", nargs="*", metavar="NAME=COMMAND", help=f"NAME is one of {', '.join(KINDS)}")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(argv)
    agents = {"jumpseat": shlex.quote(str(Path(sys.executable).with_name("jumpseat")))}
    for given in options.agents:
        name, equals, command = given.partition("=")
        if name not in KINDS or not equals or not command:
            parser.error(f"expected NAME=COMMAND with a name of {', '.join(KINDS)}, got {given!r}")
        agents[name] = command
    asyncio.run(run(agents, options.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
