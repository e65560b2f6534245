"""Loading the ``mcp`` package, in a process that has nothing of it yet."""

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

HALF_OF_IT = """
import sys

import anyio

from jumpseat.mcp.loading import load

anyio.run(load, "jumpseat.mcp.login", "jumpseat.mcp.probe")
loaded = {name for name in sys.modules if name in ("mcp.server", "uvicorn", "starlette", "jsonschema")}
assert not loaded, loaded

# As functions of users may ask for it, which run in this process.
import mcp
from mcp import ClientSession, ServerSession
from mcp.server.fastmcp import FastMCP

assert ClientSession is sys.modules["mcp.client.session"].ClientSession
assert mcp.Tool is mcp.types.Tool and sys.modules["mcp"] is mcp
assert not hasattr(mcp, "what_is_not_there")
"""


def run(code: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def test_the_package_is_loaded_from_many_sides_at_once() -> None:
    assert run(AT_ONCE) == (0, "")


def test_what_only_servers_need_is_loaded_when_somebody_asks_for_it() -> None:
    assert run(HALF_OF_IT) == (0, "")
