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
from tests.support.toolchains import require_acp_sdk, require_program

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


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(CONFIG)
    (home / "script.json").write_text(json.dumps(SCRIPT))
    (tmp_path / "a.txt").write_text("a\n")
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COPILOT_HOME": str(home)}


@pytest.mark.parametrize("language", ["python", "javascript"])
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
            str(require_acp_sdk("npm")),
            server,
            str(tmp_path),
        ]
    process = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stderr
    output = json.loads(process.stdout)
    assert output["version"] == 1
    assert output["options"] == ["mode", "model", "reasoning_effort", "allow_all"]
    assert output["stop"] == "end_turn"
    assert output["cancelled"] == "cancelled"
    assert output["listed"] == ["please edit"]
    assert output["asked"] == ["Edit a.txt"]
    assert (tmp_path / "a.txt").read_text() == "b\n"
    assert output["replayed"][:2] == ["agent_message_chunk", "agent_thought_chunk"]
    assert {"tool_call", "tool_call_update", "usage_update", "available_commands_update"} <= set(output["kinds"])
    assert output.get("exit", 0) == 0
    assert process.stderr == ""
