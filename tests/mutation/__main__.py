"""Seed faults into the server, one at a time, and count how many of them the tests catch.

::

    make mutants                              # 200 faults
    make mutants ARGS='--count 20 --seed 7'

First the tests run once under coverage, to learn which test reaches which line (kept until the code changes). Then
each fault is put into a copy of the checkout and the tests that reach its line run there, the fastest first, until
one of them fails. A run that exceeds the time limit counts as caught. The survivors are lines that no test reaches,
and lines whose tests pass without them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from coverage import CoverageData

from tests.mutation.faults import Fault, seeded

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = ("agent", "tools", "rpc", "store")
SOURCES: Final = ("server", "protocol", "clients/python")
COPIED: Final = (*SOURCES, "tests", "docs", "clients", "benchmarks")
CACHE: Final = ROOT / ".mutants"
# These tests start executables of other languages, or a terminal: too slow to run per fault.
LEFT_OUT: Final = ("tests/contract", "tests/neovim", "tests/terminal")

MOST_TESTS: Final = 150
"""The number of tests per fault: the fastest that reach its line."""
TIME_LIMIT_S: Final = 120.0
"""Seconds per fault. A fault that makes the server hang is caught by this limit."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one fault: the test that failed, or the reason why none did."""

    fault: Fault
    caught: bool
    detail: str


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many faults (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="which faults: the same for the same code (default: 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--json", type=Path, help="also write the verdicts to this file")
    options = parser.parse_args()

    faults = seeded(ROOT / "server" / "jumpseat", ROOMS, options.count, options.seed)
    reach = Reach(_measured())
    copies: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for number in range(options.jobs):
            copies.put(_copy(Path(folder) / str(number)))

        def judge(fault: Fault) -> Verdict:
            copy = copies.get()
            try:
                verdict = _judge(copy, fault, reach.tests(fault))
            finally:
                copies.put(copy)
            print("caught  " if verdict.caught else "SURVIVED", fault, f"({verdict.detail})", flush=True)
            return verdict

        with ThreadPoolExecutor(options.jobs) as threads:
            verdicts = list(threads.map(judge, faults))
    caught = sum(verdict.caught for verdict in verdicts)
    unreached = sum(verdict.detail == NO_TEST for verdict in verdicts)
    if options.json:
        rows = [
            {"fault": str(verdict.fault), "caught": verdict.caught, "detail": verdict.detail}
            for verdict in verdicts
        ]
        options.json.write_text(json.dumps(rows, indent=1))
    print(f"{caught} of {len(verdicts)} faults caught; {unreached} are in lines that no test reaches")


NO_TEST: Final = "no test reaches the line"


class Reach:
    """The tests that reach each line, from the data of one run under coverage with a context per test."""

    def __init__(self, folder: Path) -> None:
        self._data = CoverageData(str(folder / "coverage"))
        self._data.read()
        self._seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text())

    def tests(self, fault: Fault) -> list[str]:
        """Return the ids of the tests that reach the fault, the fastest first."""
        by_line = self._data.contexts_by_lineno(str(ROOT / "server" / "jumpseat" / fault.path))
        first, last = fault.lines
        names = {name.split("|")[0] for line in range(first, last + 1) for name in by_line.get(line, ())}
        return sorted(names & self._seconds.keys(), key=lambda test: (self._seconds[test], test))


def _measured() -> Path:
    """Run the tests under coverage unless the code is unchanged; returns the folder of the data."""
    digest = hashlib.sha256()
    for folder in (*SOURCES, "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    folder = CACHE / digest.hexdigest()[:16]
    if (folder / "seconds.json").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report = folder / "report.xml"
    environ = {**os.environ, "COVERAGE_FILE": str(folder / "coverage")}
    coverage = ["--cov", "--cov-config", "tests/coverage.toml", "--cov-context=test", "--cov-report="]
    ignored = [f"--ignore={name}" for name in LEFT_OUT]
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(os.cpu_count() or 1), "--dist=worksteal"]
    process = subprocess.run(
        [*command, "--timeout=300", f"--junit-xml={report}", "-o", "junit_family=xunit1", *coverage, *ignored],
        cwd=ROOT,
        env=environ,
        check=False,
    )
    if process.returncode not in (0, 1):
        sys.exit("the tests could not be run under coverage")
    (folder / "seconds.json").write_text(json.dumps(_seconds(report)))
    return folder


def _seconds(report: Path) -> dict[str, float]:
    """Return the duration of each passed test in seconds, by its id."""
    from xml.etree import ElementTree

    found: dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        if len(case) == 0:
            found[f"{case.get('file')}::{case.get('name')}"] = float(case.get("time") or 0)
    return found


def _copy(folder: Path) -> Path:
    """Copy the checkout, with an interpreter that imports from the copy; returns ``folder``."""
    shutil.copytree(ROOT, folder, ignore=_not_copied, symlinks=True)
    venv.create(folder / ".venv", symlinks=True)
    (site,) = (folder / ".venv" / "lib").glob("python*/site-packages")
    own = [str(folder / name) for name in SOURCES]
    installed = [path for path in sys.path if path.endswith("site-packages")]
    (site / "copy.pth").write_text("\n".join([*own, *installed]) + "\n")
    script, python = folder / ".venv" / "bin" / "jumpseat", folder / ".venv" / "bin" / "python"
    script.write_text(f"#!{python}\nimport sys\nfrom jumpseat.__main__ import main\nsys.exit(main())\n")
    script.chmod(0o755)
    return folder


def _not_copied(directory: str, names: list[str]) -> list[str]:
    left = {".venv", ".git", ".mutants", ".test-tools", "__pycache__", "node_modules", "target", ".hypothesis"}
    return [name for name in names if name in left]


def _judge(copy: Path, fault: Fault, tests: Sequence[str]) -> Verdict:
    if not tests:
        return Verdict(fault, caught=False, detail=NO_TEST)
    path = copy / "server" / "jumpseat" / fault.path
    source = path.read_text()
    path.write_text(fault.applied_to(source))
    command = [".venv/bin/python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header"]
    # In two batches: most faults are caught by the first few tests.
    batches = [tests[:20], tests[20:MOST_TESTS]]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "PYTHON"))}
    begun = time.monotonic()
    try:
        for some in filter(None, batches):
            limit = TIME_LIMIT_S - (time.monotonic() - begun)
            process = subprocess.run(
                [*command, *some],
                cwd=copy,
                env=environ,
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
            if process.returncode:
                failed = [line for line in process.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
                return Verdict(fault, caught=True, detail=failed[0][:120] if failed else "pytest failed")
    except subprocess.TimeoutExpired:
        return Verdict(fault, caught=True, detail=f"the tests took longer than {TIME_LIMIT_S:g} s")
    finally:
        path.write_text(source)
    return Verdict(fault, caught=False, detail=f"{min(len(tests), MOST_TESTS)} tests passed")


if __name__ == "__main__":
    main()
