"""The protocol's own SDKs for Python and JavaScript against the real server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests.acp.test_remote import TOKEN, serving
from tests.support.cases import all_cases
from tests.support.editor import CONFIG, Schemas
from tests.support.forked import executable
from tests.support.toolchains import ACP_NPM_1, require_acp_sdk, require_program

DRIVERS = Path(__file__).parent / "drivers"
SCRIPT: dict[str, Any] = {
    "prompts": [
        {
            "when": "hang",
            "turns": [{"text": "I am thinking", "hang": True}],
        },
        {
            "turns": [
                {
                    "reasoning": "so be it",
                    "tool_calls": [
                        {"name": "edit", "arguments": {"path": "a.txt", "old_str": "a", "new_str": "b"}}
                    ],
                },
                {"text": "done"},
            ],
        },
    ]
}

WITH_TOOL: dict[str, Any] = {
    "prompts": [
        SCRIPT["prompts"][0],
        {
            "turns": [
                SCRIPT["prompts"][1]["turns"][0],
                {"tool_calls": [{"name": "ide-selection", "arguments": {}}]},
                {"text": "done"},
            ],
        },
    ]
}
"""The same, with a tool of the editor."""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(CONFIG)
    (home / "script.json").write_text(json.dumps(SCRIPT))
    (tmp_path / "a.txt").write_text("a\n")
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COPILOT_HOME": str(home)}


def javascript(driver: str, version: str | None = None) -> list[str]:
    """Return the command of a driver, without its arguments."""
    return [require_program("node"), str(DRIVERS / driver), str(require_acp_sdk("npm", version))]


def python() -> list[str]:
    return [str(require_acp_sdk("pypi") / "bin" / "python"), str(DRIVERS / "editor.py")]


def run(command: list[str], environ: dict[str, str]) -> dict[str, Any]:
    process = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return json.loads(process.stdout)


def check_conversation(output: dict[str, Any], folder: Path, schemas: Schemas) -> None:
    """Check what a driver of version 1 has seen, which has edited ``a.txt`` in ``folder``."""
    assert output["version"] == 1
    assert output["options"] == ["mode", "model", "reasoning_effort", "allow_all"]
    assert output["stop"] == "end_turn"
    assert output["cancelled"] == "cancelled"
    assert output["listed"] == ["please edit"]
    assert output["asked"] == ["Edit a.txt"]
    assert (folder / "a.txt").read_text() == "b\n"
    assert output["replayed"][:2] == ["agent_message_chunk", "agent_thought_chunk"]
    assert {"tool_call", "tool_call_update", "usage_update", "available_commands_update"} <= set(output["kinds"])
    assert output.get("exit", 0) == 0
    schemas.check_conversation(output["messages"])


def check_draft(output: dict[str, Any], folder: Path, schemas: Schemas) -> None:
    """Check what a driver of version 2 has seen, which has edited ``a.txt`` and has an MCP server of its own."""
    assert (output["version"], output["echoed"]) == (2, True)
    assert (output["stop"], output["cancelled"]) == ("end_turn", "cancelled")
    assert output["listed"] == ["please edit"]
    assert output["asked"][0] == "Edit a.txt"
    assert {"server/discover", "tools/list", "tools/call"} <= set(output["served"])
    assert {"agent_message", "agent_thought", "state_update", "user_message"} <= set(output["replayed"])
    assert {"tool_call_update", "usage_update", "session_info_update"} <= set(output["kinds"])
    assert (folder / "a.txt").read_text() == "b\n"
    assert output["exit"] == 0
    schemas.check_conversation(output["messages"], unstable=True)


def test_the_sdk_of_version_2_holds_a_whole_conversation(
    tmp_path: Path, environ: dict[str, str], draft_schemas: Schemas
) -> None:
    (tmp_path / "home" / "script.json").write_text(json.dumps(WITH_TOOL))
    output = run([*javascript("draft.mjs"), executable(), str(tmp_path)], environ)
    check_draft(output, tmp_path, draft_schemas)


@pytest.mark.parametrize("language", ["python", "javascript", "older javascript"])
def test_an_sdk_of_the_protocol_holds_a_whole_conversation(
    tmp_path: Path, environ: dict[str, str], schemas: Schemas, language: str
) -> None:
    older = ACP_NPM_1 if "older" in language else None
    driver = python() if language == "python" else javascript("editor.mjs", older)
    check_conversation(run([*driver, executable(), str(tmp_path)], environ), tmp_path, schemas)


@pytest.mark.thorough
@pytest.mark.anyio
@pytest.mark.parametrize("way", ["tcp", "ws", "http", "ws bridge"])
async def test_the_sdks_hold_a_whole_conversation_over_a_network(
    tmp_path: Path, schemas: Schemas, draft_schemas: Schemas, way: str
) -> None:
    drivers = {
        "javascript": (javascript("editor.mjs"), check_conversation, schemas),
        "older javascript": (javascript("editor.mjs", ACP_NPM_1), check_conversation, schemas),
        "version 2": (javascript("draft.mjs"), check_draft, draft_schemas),
        "python": (python(), check_conversation, schemas),
    }
    if way in ("ws", "http"):
        # This SDK has no client for them.
        del drivers["python"]
    kind, _, bridge = way.partition(" ")
    with all_cases() as case:
        for name, (driver, check, known) in drivers.items():
            with case(name):
                folder = tmp_path / name.replace(" ", "-")
                folder.mkdir()
                (folder / "a.txt").write_text("a\n")
                script = WITH_TOOL if check is check_draft else SCRIPT
                async with serving(folder, known, script["prompts"]) as place:
                    port = place.server.port if kind == "tcp" else place.web_port
                    url = f"{kind}://127.0.0.1:{port}{'' if kind == 'tcp' else '/acp'}"
                    ends = [executable(), str(folder), "acp", "--connect", url] if bridge else [url, str(folder)]
                    environ = {**os.environ, "COPILOT_CONNECTION_TOKEN": TOKEN}
                    output = await anyio.to_thread.run_sync(run, [*driver, *ends], environ)
                check(output, folder, known)
