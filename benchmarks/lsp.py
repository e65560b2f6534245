"""Measure how long the result of an edit waits for a warm language server: ``python -m benchmarks.lsp [EDITS]``.

For each well-known server that can be installed, a project with an old error is edited again and again: every other
edit breaks something, and the next one repairs it. Prints quantiles of the time of an edit, but for the first ones,
and how many of the errors were in the result of the edit that brought them.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import anyio
from tests.lsp.test_real_servers import LANGUAGES, Seeded
from tests.support.language_servers import require_server

from jumpseat.lsp.catalogue import DEFAULTS, LanguageServer
from jumpseat.lsp.server import Change, Limits, Server

EDITS: Final = 40
WARM_UP: Final = 4
FILLER: Final = 300
"""Lines that are added to the edited file."""

COMMENT: Final = {"Python": "#"}


async def measure(root: Path, language: str, seeded: Seeded, edits: int) -> str:
    programs = require_server(seeded.server)
    environ = {**os.environ, "PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}
    name, config = next((n, c) for n, c in DEFAULTS.items() if c.command == seeded.server)
    path_name, old, new, expected = next(edit for edit in seeded.edits if edit[3])
    for file, text in seeded.files.items():
        target = root / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + (f"{COMMENT.get(language, '//')} filler\n" * FILLER if file == path_name else ""))
    path, times, told = root / path_name, list[float](), 0
    good = path.read_text()
    broken = good.replace(old, new, 1)
    async with anyio.create_task_group() as tasks:
        server = Server(
            LanguageServer(name, str(programs / seeded.server), config, {}),
            root,
            tasks,
            lambda: environ,
            None,
            Limits(),
            needs_sandbox=False,
        )
        for number in range(edits + WARM_UP):
            before, after = (good, broken) if number % 2 == 0 else (broken, good)
            path.write_text(after)
            began = time.perf_counter()
            server.submit(path, Change(before, after))
            await server.wait()
            if number >= WARM_UP:
                times.append(time.perf_counter() - began)
                told += len(await server.take())
            else:
                await server.take()
        await server.close()
    quantiles = statistics.quantiles(times, n=20)
    want = len(expected) * (edits // 2)
    return f"{language:12} p50 {statistics.median(times):.3f} s  p95 {quantiles[-1]:.3f} s  told {told} of {want}"


def main() -> None:
    edits = int(sys.argv[1]) if len(sys.argv) > 1 else EDITS
    for language, seeded in LANGUAGES.items():
        try:
            with tempfile.TemporaryDirectory() as folder:
                root = Path(os.path.realpath(folder))
                print(anyio.run(measure, root, language, seeded, edits), flush=True)
        except BaseException as error:
            # `pytest.skip` of a server that cannot be installed is no Exception.
            if isinstance(error, KeyboardInterrupt):
                raise
            print(f"{language:12} {error}", flush=True)


if __name__ == "__main__":
    main()
