"""Search for inputs that break the property of a target, guided by the coverage that inputs reach.

::

    make fuzz ARGS='--target framing --runs 100000'
    make fuzz ARGS='--runs 10000'                                  # every target
    make fuzz ARGS='--growth'                                      # the time for twice the length
    make fuzz ARGS='--holding'                                     # messages that hold up other clients
    make fuzz ARGS='--target framing --input .fuzz/framing/crash-3f2a...'

Inputs that reach new code are kept in ``.fuzz/NAME/corpus`` for the next search. An input that breaks the property
is kept as ``.fuzz/NAME/crash-...``; once the code is mended, it belongs in ``tests/fuzz/seeds/NAME``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOUND: Final = ROOT / ".fuzz"
LONGEST_BYTES: Final = 2048
SLOWEST_S: Final = 30
"""Seconds after which one input counts as a hang."""


def main() -> int:
    """Run the command: each target in a process of its own, one after the other."""
    from tests.fuzz.growth import slowest_growth
    from tests.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--target", choices=TARGETS, action="append", help="the target (default: all)")
    parser.add_argument("--runs", type=int, default=10_000, help="inputs per target (default: 10000)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the random changes (default: 1)")
    parser.add_argument("--input", type=Path, help="try only the input in this file, without atheris")
    parser.add_argument("--growth", action="store_true", help="measure the time for twice the length instead")
    parser.add_argument(
        "--holding",
        nargs="*",
        metavar="PART",
        help="measure the messages to methods and tools instead (holding.py)",
    )
    options = parser.parse_args()
    if options.holding is not None:
        from tests.fuzz.holding import main as measure_holding

        return measure_holding(options.holding)
    names: list[str] = options.target or list(TARGETS)
    if options.growth:
        for name in names:
            if (found := slowest_growth(TARGETS[name])) is not None:
                ratio, seconds, unit = found
                print(f"{name:16} {ratio:4.1f} times  {seconds:6.3f} s  {unit!r}", flush=True)
        return 0
    if options.input is not None:
        with TARGETS[names[0]].open() as check:
            check(options.input.read_bytes())
        return 0
    failed = [name for name in names if not _searched(name, options.runs, options.seed)]
    if failed:
        print(f"broken: {', '.join(failed)}; see .fuzz/NAME/crash-*")
    return bool(failed)


def _searched(name: str, runs: int, seed: int) -> bool:
    """Search in a process of its own, because atheris ends the process; print a line of JSON with the figures."""
    started = time.monotonic()
    command = [sys.executable, "-m", "tests.fuzz.search", name, str(runs), str(seed)]
    # The search ends without cleaning up.
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, tempfile.TemporaryFile() as log:
        environ = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(command, cwd=ROOT, env=environ, check=False, stdout=log, stderr=log)
        log.seek(0)
        text = log.read().decode("utf-8", "replace")
    counts = re.findall(r"stat::number_of_executed_units:\s*(\d+)", text)
    figures = {
        "target": name,
        "executions": int(counts[-1]) if counts else 0,
        "seconds": round(time.monotonic() - started, 1),
        "broken": done.returncode != 0,
    }
    print(json.dumps(figures), flush=True)
    if done.returncode:
        print(text[-6000:], flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
