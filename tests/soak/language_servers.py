"""Kill jumpseat, and its language servers, at random moments of their work.

::

    make lsp-kills                                     # 500 kills
    make lsp-kills ARGS='--kills 40 --seed 7 --server clangd'

Every other kill is of jumpseat itself: no process of its language servers may be left. The others are of a process
of a language server: calls go on without its diagnostics, and the end of the session leaves no process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import anyio

from tests.lsp.parts import project_with, word_config
from tests.support.language_servers import environ_with, require_server
from tests.support.limits import WAIT_S
from tests.support.server import RunningServer, running_server, scripted
from tests.tools.session import until

KILLS: Final = 500
KILLS_OF_ONE: Final = 25
"""Kills of language servers of one jumpseat; the next ones are of another."""

SIGNALS: Final = (signal.SIGKILL, signal.SIGTERM)


class Project(NamedTuple):
    """A file, and a word in it that edits replace by others; ``files`` are the other files of the project."""

    path: str
    text: str
    word: str
    files: Mapping[str, str] = MappingProxyType({})


PROJECTS: Final[Mapping[str, Project]] = {
    "words": Project("a.words", "use name0\n", "name0"),
    "clangd": Project("a.c", "int name0(void) { return older; }\n", "name0"),
    "basedpyright-langserver": Project("a.py", "name0 = older\n", "name0"),
    "typescript-language-server": Project("a.ts", "let name0: number = older;\n", "name0"),
    "gopls": Project("a.go", "package m\n\nvar name0 int = older\n", "name0", {"go.mod": "module m\n\ngo 1.21\n"}),
    "rust-analyzer": Project(
        "src/lib.rs",
        "pub fn name0() -> i32 {\n    older\n}\n",
        "name0",
        {"Cargo.toml": '[package]\nname = "m"\nversion = "0.1.0"\nedition = "2021"\n'},
    ),
}
"""Small projects by the program of the server."""


class Killing:
    """The kills of the servers of one kind, below ``folder``."""

    def __init__(self, folder: Path, program: str, choose: random.Random) -> None:
        self.alive = 0
        self._project = PROJECTS[program]
        self._choose = choose
        self._cwd = project_with(folder, {self._project.path: self._project.text, **self._project.files})
        self._folder = folder
        self._words = 0
        if program == "words":
            self._config, self._environ = word_config(self._cwd, wait_s=0.25), dict[str, str]()
            return
        trusted = f"trusted_folders = [{json.dumps(str(self._cwd))}]\n"
        self._config = trusted + "[permissions]\nallow_unasked = true\n[lsp]\nwait_s = 0.25\n"
        self._environ = environ_with(require_server(program))

    async def kill_jumpseat(self) -> None:
        """Kill jumpseat while a language server starts, works or rests.

        Raises:
            AssertionError: a process is left.
        """
        async with running_server(self._folder, config=self._config, env=self._environ) as server:
            session = await self._open(server)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._edit, server, session)
                await anyio.sleep(self._choose.uniform(0.0, 2.0))
                tasks.cancel_scope.cancel()
            self.alive += len(server.descendants()) > 0
            number = self._choose.choice(SIGNALS)
            server.expect_exit = -number if number == signal.SIGKILL else server.expect_exit
            # Leaving the block fails if a process is left.
            server.signal(number)

    async def kill_language_servers(self, kills: int) -> None:
        """Kill a process of the language server of a session, again and again.

        Raises:
            AssertionError, TimeoutError: an edit fails, or a process is left after the end of the session.
        """
        async with running_server(
            self._folder, config=self._config, env=self._environ, limit_s=60.0 * (kills + 2)
        ) as server:
            for _ in range(kills):
                session = await self._open(server)
                await self._edit(server, session)
                await anyio.sleep(self._choose.uniform(0.0, 1.0))
                if left := server.descendants():
                    self.alive += 1
                    with suppress(ProcessLookupError):
                        os.kill(self._choose.choice(left), self._choose.choice(SIGNALS))
                await self._edit(server, session)
                await server.wire.check_alive()
                await server.wire.call("session.destroy", {"sessionId": session})
                await until(lambda: not server.descendants(), WAIT_S)

    async def _open(self, server: RunningServer) -> str:
        return await server.wire.create(scripted({"text": "done"}), workingDirectory=str(self._cwd))

    async def _edit(self, server: RunningServer, session: str) -> None:
        path = self._cwd / self._project.path
        old = path.read_text()
        self._words += 1
        new = self._project.text.replace(self._project.word, f"name{self._words}")
        arguments = {"path": self._project.path, "old_str": old, "new_str": new}
        call = {"sessionId": session, "name": "edit", "arguments": arguments}
        result = await server.wire.call("session.tools.execute", call)
        assert result["textResultForLlm"].startswith("File "), result


async def kill_often(folder: Path, program: str, kills: int, seed: int) -> tuple[int, int]:
    """Kill jumpseat and language servers below ``folder``, by turns; return the kills, and those of running ones.

    Raises:
        AssertionError, TimeoutError: a process is left, or a call fails.
    """
    killing = Killing(folder, program, random.Random(seed))
    of_language_servers = kills // 2
    for _ in range(kills - of_language_servers):
        await killing.kill_jumpseat()
    for begun in range(0, of_language_servers, KILLS_OF_ONE):
        await killing.kill_language_servers(min(KILLS_OF_ONE, of_language_servers - begun))
    return kills, killing.alive


def main() -> None:
    """Parse the arguments and kill."""
    parser = argparse.ArgumentParser(prog="make lsp-kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, help="number of kills, of all servers together")
    parser.add_argument("--seed", type=int, default=0, help="the same seed chooses the same moments, roughly")
    parser.add_argument("--server", choices=PROJECTS, action="append", help="the program of the language server")
    options = parser.parse_args()
    programs = options.server or list(PROJECTS)
    for index, program in enumerate(programs):
        kills = options.kills // len(programs) + (index < options.kills % len(programs))
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            done, alive = anyio.run(kill_often, Path(folder), program, kills, options.seed)
        took_s = time.monotonic() - begun
        print(f"{program}: {done} kills in {took_s:.0f} s, {alive} while it ran, no process left", flush=True)


if __name__ == "__main__":
    main()
