"""Kill jumpseat with SIGKILL while a language server runs: ``python -m tests.soak.language_servers [KILLS]``.

Fails if a language server outlives its jumpseat. ``tests/lsp/test_faults_over_the_wire.py`` has a few such kills.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import anyio

from tests.lsp.parts import DONE, edit, language_servers, project_with, word_config
from tests.support.server import running_server, scripted

KILLS = 500


async def kill_once(folder: Path, number: int) -> bool:
    """Kill a server at a random moment; return whether its language server ran by then."""
    project = project_with(folder, {"a.words": "use one\n"})
    async with running_server(folder, config=word_config(project)) as server:
        session = await server.wire.create(
            scripted(edit("a.words", "one", f"word{number}"), DONE), workingDirectory=str(project)
        )
        await server.wire.ask("session.send", {"sessionId": session, "prompt": "go"})
        if number % 2:
            await server.wire.event("session.idle")
        else:
            await anyio.sleep(random.uniform(0.0, 2.0))
        ran = bool(language_servers(server))
        server.expect_exit = -signal.SIGKILL
        # Leaving the block fails if a process is left.
        os.kill(server.process.pid, signal.SIGKILL)
    return ran


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else KILLS
    began, ran = time.monotonic(), 0
    for number in range(kills):
        with tempfile.TemporaryDirectory() as folder:
            ran += anyio.run(kill_once, Path(folder), number)
        if (number + 1) % 50 == 0:
            print(f"{number + 1} kills, {ran} with a language server, none left behind", flush=True)
    print(f"{kills} kills in {time.monotonic() - began:.0f} s, {ran} with a language server, none left behind")


if __name__ == "__main__":
    main()
