"""The official client of the Agent Host Protocol, in Rust and unmodified, drives the server.

``drivers/ahp`` is the program: it folds with the official reducers, and compares with newcomers after each step.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.ahp.client import door_server
from tests.support.server import JsonObject, calls
from tests.support.toolchains import in_ci, missing, require_program, tool_folder

DRIVER: Final = Path(__file__).parent / "drivers" / "ahp"
VERSIONS: Final = ("0.9.0", "0.10.0", "1.0.0")
BUILD_LIMIT_S: Final = 900
RUN_LIMIT_S: Final = 240

SCRIPT: Final[JsonObject] = {
    "prompts": [
        {
            "when": "make a file",
            "turns": [calls("create", path="made.txt", file_text="hello\n"), {"text": "All done."}],
        },
        {"when": "another", "turns": [calls("create", path="other.txt", file_text="hello\n"), {"text": "No."}]},
        {"when": "hang on", "turns": [{"text": "I am", "hang": True}]},
        {
            "when": "use my tool",
            "turns": [calls("look_up", word="seat"), {"text": "It says: {{last_tool_result}}"}],
        },
        {"turns": [{"reasoning": "Well.", "deltas": ["The ", "answer"]}] * 9},
    ]
}


@pytest.mark.anyio
@pytest.mark.long_build
@pytest.mark.timeout(BUILD_LIMIT_S + 2 * len(VERSIONS) * RUN_LIMIT_S)
async def test_the_official_client_comes_through_its_scenario_and_a_restart(tmp_path: Path) -> None:
    with tool_folder("ahp-driver") as folder:
        program = tmp_path / "driver"
        shutil.copy(built(folder), program)
    for version in VERSIONS:
        home = tmp_path / version
        home.mkdir()
        kept = home / "kept.json"
        async with door_server(home, SCRIPT) as (server, port):
            await drive(program, version, f"ws://127.0.0.1:{port}/ahp", kept, "first")
            await server.kill()
        async with door_server(home, SCRIPT) as (_, port):
            await drive(program, version, f"ws://127.0.0.1:{port}/ahp", kept, "again")


async def drive(program: Path, version: str, *args: str | Path) -> None:
    with anyio.fail_after(RUN_LIMIT_S):
        environ = {**os.environ, "RUST_BACKTRACE": "0", "AHP_VERSION": version}
        process = await anyio.run_process([program, *args], check=False, stderr=subprocess.STDOUT, env=environ)
    assert process.returncode == 0, process.stdout.decode()


def built(folder: Path) -> Path:
    """Build the program in a folder of the cache and return its path. The first build is made in CI only."""
    program = folder / "target" / "debug" / "ahp-driver"
    cargo = require_program("cargo")
    if not in_ci() and not program.exists():
        pytest.skip("the official client is not built: CI=1 builds it once, which takes minutes")
    shutil.copytree(DRIVER, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target"))
    environ = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    for command in ("fetch", "build"):
        process = subprocess.run(
            [cargo, command, "--quiet"],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=BUILD_LIMIT_S,
        )
        if process.returncode != 0 and command == "fetch":
            missing(f"the official client cannot be fetched: {process.stderr[-400:]}")
        assert process.returncode == 0, process.stderr[-2000:]
    return program
