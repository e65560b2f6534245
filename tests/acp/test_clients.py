"""The protocol's own SDKs for Python and JavaScript against the real server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import CONFIG
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


def run(command: list[str], environ: dict[str, str]) -> dict[str, Any]:
    process = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return json.loads(process.stdout)


def check_conversation(output: dict[str, Any], folder: Path) -> None:
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


def test_the_sdk_of_version_2_holds_a_whole_conversation(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "home" / "script.json").write_text(json.dumps(WITH_TOOL))
    driver = str(DRIVERS / "draft.mjs")
    output = run(
        [require_program("node"), driver, str(require_acp_sdk("npm")), executable(), str(tmp_path)], environ
    )
    assert (output["version"], output["echoed"]) == (2, True)
    assert (output["stop"], output["cancelled"]) == ("end_turn", "cancelled")
    assert output["listed"] == ["please edit"]
    assert output["asked"][0] == "Edit a.txt"
    assert {"server/discover", "tools/list", "tools/call"} <= set(output["served"])
    assert {"agent_message", "agent_thought", "state_update", "user_message"} <= set(output["replayed"])
    assert {"tool_call_update", "usage_update", "session_info_update"} <= set(output["kinds"])
    assert (tmp_path / "a.txt").read_text() == "b\n"
    assert output["exit"] == 0


@pytest.mark.parametrize("language", ["python", "javascript", "older javascript"])
def test_an_sdk_of_the_protocol_holds_a_whole_conversation(
    tmp_path: Path, environ: dict[str, str], language: str
) -> None:
    server = executable()
    if language == "python":
        python = require_acp_sdk("pypi") / "bin" / "python"
        command = [str(python), str(DRIVERS / "editor.py"), server, str(tmp_path)]
        # This SDK passes only a few well-known variables to the agent.
        environ["HOME"] = str(tmp_path)
        (tmp_path / ".jumpseat").symlink_to(tmp_path / "home")
    else:
        command = [
            require_program("node"),
            str(DRIVERS / "editor.mjs"),
            str(require_acp_sdk("npm", ACP_NPM_1 if "older" in language else None)),
            server,
            str(tmp_path),
        ]
    output = run(command, environ)
    check_conversation(output, tmp_path)
    assert output.get("exit", 0) == 0
