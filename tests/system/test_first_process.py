"""The first process of a container reaps orphans, passes signals on, and exits as its child does."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jumpseat.sandbox.bubblewrap import Bubblewrap
from tests.sandbox.parts import MECHANISMS

pytestmark = pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")

PROGRAM = """
import os, signal, subprocess, sys, time
from jumpseat.system.first_process import leave_first_process

def orphans():
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if parent == "1" and int(name) != os.getpid():
            found.append(state)
    return found

leave_first_process()
print(os.getppid(), flush=True)
subprocess.run(["sh", "-c", "sleep 0.1 & sleep 0.1 &"])
while orphans():
    time.sleep(0.01)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
os.kill(1, signal.SIGTERM)
while True:
    time.sleep(0.01)
"""

SERVER = """
import atexit, os, sys
from jumpseat.__main__ import main
atexit.register(lambda: print(os.getppid()))
sys.argv = ["jumpseat", "--version"]
main()
"""


def run_first(program: str) -> tuple[list[str], int]:
    """Run a program as the first process of a PID namespace; return the lines of its output and its exit code."""
    bubblewrap = MECHANISMS["bubblewrap"]
    assert isinstance(bubblewrap, Bubblewrap)
    options = ["--unshare-pid", "--as-pid-1", "--dev-bind", "/", "/", "--proc", "/proc"]
    words = [bubblewrap.program, *options, "--", sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.splitlines(), done.returncode


def test_no_zombie_is_left_and_signals_reach_the_child() -> None:
    assert run_first(PROGRAM) == (["1"], 7)


def test_the_server_is_a_child_of_the_first_process() -> None:
    lines, code = run_first(SERVER)
    assert (lines[-1], code) == ("1", 0)
