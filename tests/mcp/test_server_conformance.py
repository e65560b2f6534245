"""The official conformance suite for servers, against ``jumpseat mcp-server``.

docs/mcp.md says why the other scenarios cannot run: they need the tools, prompts and resources of the suite's own
example server.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from subprocess import CompletedProcess, run
from typing import Final

import anyio.to_thread
import pytest

from tests.mcp.test_conformance import SUITE, node
from tests.mcp.test_server_for_agents import over_http
from tests.support.cases import all_cases
from tests.support.toolchains import require_npm

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]

SCENARIOS: Final = (
    "server-initialize",
    "ping",
    "tools-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)


async def test_the_scenarios_that_apply_to_the_server_pass(tmp_path: Path) -> None:
    package = require_npm("@modelcontextprotocol/conformance", SUITE) / "node_modules" / "@modelcontextprotocol"
    command = [node(), str(package / "conformance" / "dist" / "index.js"), "server"]
    async with over_http(tmp_path, "--no-token") as url:
        with all_cases() as case:
            for scenario in SCENARIOS:
                with case(scenario):
                    checking = partial(
                        run,
                        [*command, "--url", url, "--scenario", scenario],
                        cwd=tmp_path,
                        capture_output=True,
                        text=True,
                        timeout=100,
                        check=False,
                    )
                    done: CompletedProcess[str] = await anyio.to_thread.run_sync(checking)
                    assert done.returncode == 0, done.stdout
