"""The recipes of CONTRIBUTING.md, applied to copies of the server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from jumpseat_protocol.envelope import FrameDecoder, encode_frame

ROOT: Final = Path(__file__).parent.parent.parent
PACKAGES: Final = ("server/jumpseat", "protocol/jumpseat_protocol")


class RecipeServer:
    """A server that runs from a copy of the code, on stdio."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result; events before the response are added to ``events``."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(
            encode_frame(orjson.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
        )
        stdin.flush()
        decoder = FrameDecoder()
        while True:
            for body in decoder.feed(os.read(stdout.fileno(), 1 << 16)):
                assert isinstance(body, bytes)
                message = orjson.loads(body)
                if message.get("method") == "session.event":
                    self.events.append(message["params"]["event"])
                if message.get("id") == method:
                    assert "result" in message, message["error"]
                    return message["result"]


@contextmanager
def recipe_server(folder: Path) -> Generator[RecipeServer]:
    """Run a server with all recipes of the page, from a copy in ``folder``."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs", folder / "docs")
    for diff in re.findall("```diff\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL):
        # The line numbers in the page may be outdated.
        subprocess.run(["git", "apply", "-"], cwd=folder, input=diff.encode(), check=True, timeout=120)
    (folder / "home").mkdir()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "COPILOT_HOME": str(folder / "home"),
        "PYTHONPATH": os.pathsep.join(str((folder / package).parent) for package in PACKAGES),
    }
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "jumpseat", "--stdio"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environ, cwd=folder) as process:
        yield RecipeServer(process)
        process.kill()
