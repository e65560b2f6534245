"""Loading the ``mcp`` package while others load it, in a process that has nothing of it yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

AT_ONCE = """
import sys

import anyio

from jumpseat.mcp.loading import load

sys.setswitchinterval(1e-5)


async def main():
    async with anyio.create_task_group() as tasks:
        for modules in [(), ("jumpseat.mcp.probe",)]:
            tasks.start_soon(load, *modules)
    assert "jumpseat.mcp.connection" in sys.modules and "jumpseat.mcp.probe" in sys.modules


assert not any(name.partition(".")[0] == "mcp" for name in sys.modules)
anyio.run(main)
"""


def test_the_package_is_loaded_from_many_sides_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", AT_ONCE], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
