"""The memory of a process over hours: threads do not spread it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from pathlib import Path
from jumpseat.system.process_memory import use_one_arena

if sys.argv[1] == "one":
    use_one_arena()
kept = []
together = threading.Barrier(4)

def work():
    kept.append([bytearray(2000) for _ in range(500)])
    together.wait()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
# glibc reserves 64 MiB, at a multiple of that, for each thread that has an arena of its own.
lines = [line for line in Path("/proc/self/maps").read_text().splitlines() if " rw-p " in line]
starts = [int(line.split("-")[0], 16) for line in lines]
print(sum(start % (64 << 20) == 0 for start in starts))
"""


def arenas(argument: str) -> int:
    """Return the number of arenas of a process with four threads that use memory."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run([sys.executable, "-c", PROGRAM, argument], env=environ, capture_output=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(
    sys.platform != "linux" or not os.confstr_names.get("CS_GNU_LIBC_VERSION"), reason="the C library is not glibc"
)
def test_threads_take_memory_from_one_place() -> None:
    assert arenas("default") > 0
    assert arenas("one") == 0
