"""Import of the ``mcp`` package in a process that has not imported any of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

CONCURRENTLY = """
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


def test_the_package_can_be_loaded_by_several_tasks_at_once() -> None:
    process = subprocess.run(
        [sys.executable, "-c", CONCURRENTLY], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (process.returncode, process.stderr) == (0, "")
