"""The recipes for a method and an event in CONTRIBUTING.md, applied to a copy of the server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import orjson
import pytest

from jumpseat_protocol.framing import FrameDecoder, encode_frame
from tests.support.server import scripted

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("server/jumpseat", "protocol/jumpseat_protocol")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the server and the protocol with the recipes applied."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    recipes = re.findall("```diff\n(---.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    for recipe in recipes:
        # The line numbers in the page may be outdated.
        subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=recipe.encode(), check=True, timeout=30)
    return tmp_path


@pytest.fixture
def server(copy: Path, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "home").mkdir()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "COPILOT_HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join(str((copy / package).parent) for package in PACKAGES),
    }
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "jumpseat", "--stdio"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environ, cwd=tmp_path) as process:
        yield process
        process.kill()


def test_the_recipes_add_a_method_that_answers_and_an_event(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    created = call(server.stdin, server.stdout, "session.create", {"provider": scripted()})
    params = {"sessionId": created["sessionId"]}

    events: list[dict[str, Any]] = []
    clock = call(server.stdin, server.stdout, "session.clock.get", params, events)

    assert clock == {"startedAt": created["startTime"]}
    assert [event["data"] for event in events if event["type"] == "session.clock_read"] == [clock]


def call(
    stdin: IO[bytes],
    stdout: IO[bytes],
    method: str,
    params: dict[str, Any],
    events: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Send a request and return its result; events before the response are added to ``events``."""
    stdin.write(encode_frame(orjson.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params})))
    stdin.flush()
    decoder = FrameDecoder()
    while True:
        for body in decoder.feed(os.read(stdout.fileno(), 1 << 16)):
            assert isinstance(body, bytes)
            message = orjson.loads(body)
            if message.get("method") == "session.event" and events is not None:
                events.append(message["params"]["event"])
            if message.get("id") == method:
                return message["result"]
