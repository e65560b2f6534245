"""Measure which errors of edits are told to the model, with real language servers.

    python -m benchmarks.lsp [LANGUAGE ...] [--part N] [--show]

For each language, a project of 34 files that has errors is edited by the tools of a running server whose model is
scripted. Each change brings known errors, in that file or in others, or none; the next call takes it back.
An answer is right if it has a problem at each place of a new error and at no other one. What comes later than with
the result of the call is asked for, and counts as late. Servers are installed at first use.
The exit code is 1 if an error is not told, something else is, or the 95th percentile of the time until all is told
is above a second.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import anyio
import pytest
from benchmarks.seeds import PROJECTS
from benchmarks.seeds.seed import Project, Seed
from tests.lsp.parts import DONE
from tests.support.language_servers import environ_with, require_server
from tests.support.server import JsonObject, Wire, calls, running_server, scripted

LIMIT_S: Final = 1.0
COLD_S: Final = 180.0
"""Time for a server to start and load the project."""

LATE_S: Final = 20.0
"""Time for what is not in the result of the call."""

CALM_S: Final = 1.0
"""Time in which nothing must be told after a change that brings nothing more."""

PAUSE_S: Final = 0.1
NOTES: Final = "notes.txt"
SLOWEST: Final = 8


class Answers:
    """What was told of one language."""

    def __init__(self) -> None:
        self.took_s: dict[str, float] = {}
        self.changes = self.wanted = self.at_once = self.late = self.missed = self.false = 0
        self.notes: list[str] = []


def patch(*lines: str) -> JsonObject:
    return calls("apply_patch", input="\n".join(["*** Begin Patch", *lines, "*** End Patch"]))


def call_of(seed: Seed) -> JsonObject:
    """Return the turn of a model that makes a change."""
    if seed.to:
        return patch(f"*** Update File: {seed.path}", f"*** Move to: {seed.to}")
    if seed.old:
        return calls("edit", path=seed.path, old_str=seed.old, new_str=seed.new)
    return (
        calls("create", path=seed.path, file_text=seed.new) if seed.new else patch(f"*** Delete File: {seed.path}")
    )


def call_back(seed: Seed, files: Mapping[str, str]) -> JsonObject:
    """Return the turn that takes a change back."""
    if seed.to:
        return patch(f"*** Update File: {seed.to}", f"*** Move to: {seed.path}")
    if not seed.old:
        return (
            patch(f"*** Delete File: {seed.path}")
            if seed.new
            else calls("create", path=seed.path, file_text=files[seed.path])
        )
    before = files[seed.path]
    after = before.replace(seed.old, seed.new, 1)
    if seed.new and after.count(seed.new) == 1:
        return calls("edit", path=seed.path, old_str=seed.new, new_str=seed.old)
    return calls("edit", path=seed.path, old_str=after, new_str=before)


def places_of(seed: Seed, texts: Sequence[str], project: Path) -> set[tuple[str, int]]:
    """Return the files and lines of errors of a change that was made."""
    places: set[tuple[str, int]] = set()
    for place in texts:
        path, _, text = place.partition(": ")
        lines = (project / path).read_text().split("\n")
        found = [number for number, line in enumerate(lines, 1) if text in line]
        assert found, f"{seed.what}: no line of {path} has {text!r}"
        places.add((path, found[0]))
    return places


def told_in(text: str) -> dict[tuple[str, int], str]:
    """Return the places in the result of a call, with their lines."""
    lines = text.partition("may have brought:\n")[2].splitlines()
    told: dict[tuple[str, int], str] = {}
    for line in lines:
        if not line.startswith("  ") and line.count(":") >= 3:
            path, number, _ = line.split(":", 2)
            told[path, int(number)] = line
    return told


class Measured:
    """A session that makes the changes of a project in ``folder``."""

    def __init__(self, wire: Wire, session: str, folder: Path) -> None:
        self.answers = Answers()
        self._wire = wire
        self._session = session
        self._folder = folder

    async def change(self, what: str, seed: Seed | None, limit_s: float = LATE_S) -> None:
        """Have the model make its next change, and judge what is told; without ``seed``, that is nothing."""
        events = await self._wire.prompt(self._session)
        (began,) = (event for event in events if event["type"] == "tool.execution_start")
        (ended,) = (event for event in events if event["type"] == "tool.execution_complete")
        data = ended["data"]
        assert data["success"], f"{what}: {data}"
        wanted, also = set[tuple[str, int]](), set[tuple[str, int]]()
        if seed is not None:
            wanted, also = (places_of(seed, texts, self._folder) for texts in (seed.places, seed.also))
        told = told_in(data["result"]["content"])
        at_once, took_s = {*told}, _time_of(ended) - _time_of(began)
        since = time.monotonic()
        while (missing := wanted - {*told}) and time.monotonic() - since < limit_s:
            await anyio.sleep(PAUSE_S)
            told |= await self._told_later()
        if wanted - at_once and not missing:
            took_s += time.monotonic() - since
        end = time.monotonic() + CALM_S
        while time.monotonic() < end:
            await anyio.sleep(PAUSE_S)
            told |= await self._told_later()
        self._judge(
            what, wanted, at_once, {place: line for place, line in told.items() if place not in also}, took_s
        )

    async def _told_later(self) -> dict[tuple[str, int], str]:
        """Return what is told with the result of another call."""
        params = {"sessionId": self._session, "name": "view", "arguments": {"path": NOTES}}
        return told_in((await self._wire.call("session.tools.execute", params))["textResultForLlm"])

    def _judge(
        self,
        what: str,
        wanted: set[tuple[str, int]],
        at_once: set[tuple[str, int]],
        told: Mapping[tuple[str, int], str],
        took_s: float,
    ) -> None:
        late, missed = (wanted - at_once) & {*told}, wanted - {*told}
        false = [line for place, line in told.items() if place not in wanted]
        answers = self.answers
        answers.changes += 1
        answers.took_s[what] = took_s
        answers.wanted += len(wanted)
        answers.late += len(late)
        answers.missed += len(missed)
        answers.false += len(false)
        if late or missed or false:
            note = f"{what}, {took_s:.1f} s: late {sorted(late)}, missed {sorted(missed)}, false"
            answers.notes.append("\n  ".join([note, *false]))


def _time_of(event: JsonObject) -> float:
    return datetime.fromisoformat(event["timestamp"]).timestamp()


async def measure(project: Project, folder: Path) -> Answers:
    """Make all changes of a project below ``folder``."""
    programs, files = require_server(project.program), {**project.all_files(), NOTES: "Nothing.\n"}
    root = folder / "project"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    config = f"trusted_folders = [{json.dumps(str(root))}]\n[permissions]\nallow_unasked = true\n"
    # The first change is made twice: while the server starts, and when it is warm.
    seeds = [project.seeds[0], *project.seeds]
    turns = [turn for seed in seeds for turn in (call_of(seed), DONE, call_back(seed, files), DONE)]
    async with running_server(folder, config=config, env=environ_with(programs), limit_s=3600) as server:
        session = await server.wire.create(
            scripted(*turns), workingDirectory=str(root), infiniteSessions={"enabled": False}
        )
        cold = Measured(server.wire, session, root)
        await cold.change("start", seeds[0], COLD_S)
        await cold.change("start, taken back", None)
        print(
            f"  {project.language}: first answer after {cold.answers.took_s['start']:.1f} s",
            *cold.answers.notes,
            flush=True,
        )
        measured = Measured(server.wire, session, root)
        for seed in project.seeds:
            await measured.change(f"{seed.path}: {seed.what}", seed)
            await measured.change(f"{seed.path}: {seed.what}, taken back", None)
    return measured.answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help=", ".join(PROJECTS))
    parser.add_argument("--part", type=int, default=1, metavar="N", help="make only every N-th of the changes")
    parser.add_argument("--show", action="store_true", help="print what is not right, and what took longest")
    options = parser.parse_args()
    print("language    seeds  changes  errors  told  with the result  others told  median s  95 % s")
    is_good = True
    for language in options.languages or PROJECTS:
        project = PROJECTS[language]
        project = project._replace(seeds=project.seeds[:: options.part])
        try:
            with tempfile.TemporaryDirectory(prefix="seeds-") as folder:
                answers = anyio.run(measure, project, Path(os.path.realpath(folder)))
        except pytest.skip.Exception as reason:
            print(f"{language:12}{reason}", flush=True)
            continue
        times = answers.took_s.values()
        slow = statistics.quantiles(times, n=20)[-1]
        is_good &= not answers.missed and not answers.false and slow <= LIMIT_S
        told = answers.wanted - answers.missed
        print(
            f"{language:12}{len(project.seeds):5}{answers.changes:9}{answers.wanted:8}{told:6}"
            f"{told - answers.late:17}{answers.false:13}{statistics.median(times):10.2f}{slow:8.2f}",
            flush=True,
        )
        if options.show:
            slowest = sorted(answers.took_s.items(), key=lambda item: -item[1])[:SLOWEST]
            print(*answers.notes, *(f"{what}, {took_s:.2f} s" for what, took_s in slowest), sep="\n", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
