"""Drive the server through random steps of its clients, and check the rules that always hold.

::

    make soak                                          # 20,000 steps, some minutes
    make soak ARGS='--steps 1000000 --seed 7 --jobs 2'

A failure prints the steps that led to it; with ``--shrink``, the shortest list that Hypothesis finds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.soak.machine import Soak

STEPS_OF_EXAMPLE = 60


def main() -> None:
    """Parse the arguments and run; exits with 1 if a rule is broken."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000, help="number of steps, approximately")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same steps")
    parser.add_argument("--shrink", action="store_true", help="look for a shorter list of steps after a failure")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, each with a seed of its own")
    options = parser.parse_args()
    if options.jobs == 1:
        run(options.steps, options.seed, shrink=options.shrink)
        return
    share = ["--steps", str(options.steps // options.jobs), *(["--shrink"] if options.shrink else [])]
    workers = [
        subprocess.Popen([sys.executable, "-m", "tests.soak", *share, "--seed", str(options.seed + number)])
        for number in range(options.jobs)
    ]
    sys.exit(max(worker.wait() for worker in workers))


def run(steps: int, seed_number: int, *, shrink: bool) -> None:
    """Run about ``steps`` steps.

    Raises:
        AssertionError: a rule is broken.
    """
    begun = time.monotonic()
    examples = max(1, steps // STEPS_OF_EXAMPLE)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS_OF_EXAMPLE,
        deadline=None,
        database=None,
        verbosity=Verbosity.normal,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    try:
        run_state_machine_as_test(seed(seed_number)(Soak), settings=chosen)
    finally:
        took_s = time.monotonic() - begun
        print(f"seed {seed_number}: {Soak.steps} steps in {took_s:.0f} s")


if __name__ == "__main__":
    main()
