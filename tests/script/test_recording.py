"""Scripts that were recorded pass, and read well."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.record.recorder import record_conversation, record_session
from jumpseat_testkit.steps import load_script
from tests.script.scripts import one_turn
from tests.support.commands import run_command
from tests.support.forked import executable

TURNS = [
    {"text": "I look.", "tool_calls": [{"name": "look_up", "arguments": {"word": "a"}}]},
    {"tool_calls": [{"name": "view", "arguments": {"path": "${folder}/a.txt"}}]},
    {"text": "It has: {{last_tool_result}}"},
]
SCRIPT: dict[str, Any] = {
    "within": 30,
    "model": {"turns": TURNS},
    "files": {"a.txt": "one\ntwo\n"},
    "steps": [
        {
            "call": "session.create",
            "params": {
                "provider": {"type": "openai", "baseUrl": "${model}", "apiKey": "secret-key"},
                "model": "any",
                "requestPermission": True,
                "tools": [{"name": "look_up", "description": "Look up", "parameters": {"type": "object"}}],
            },
            "result": {"sessionId": "${session}"},
        },
        {"call": "session.send", "params": {"sessionId": "${session}", "prompt": "What is in a.txt?"}},
        {"events": [{"type": "permission.requested", "data": {"requestId": "${p1}"}}]},
        {
            "call": "session.permissions.handlePendingPermissionRequest",
            "params": {"sessionId": "${session}", "requestId": "${p1}", "result": {"kind": "approve-once"}},
        },
        {"events": [{"type": "external_tool.requested", "data": {"requestId": "${e1}"}}]},
        {
            "call": "session.tools.handlePendingToolCall",
            "params": {"sessionId": "${session}", "requestId": "${e1}", "result": "a letter"},
        },
        {"events": [{"type": "permission.requested", "data": {"requestId": "${p2}"}}]},
        {
            "call": "session.permissions.handlePendingPermissionRequest",
            "params": {"sessionId": "${session}", "requestId": "${p2}", "result": {"kind": "approve-once"}},
        },
        {"events": ["session.idle"]},
    ],
}


def write(path: Path, script: dict[str, Any]) -> str:
    path.write_text(json.dumps(script))
    return str(path)


def test_a_stored_session_becomes_a_script_that_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["script", write(tmp_path / "real.json", SCRIPT), "--keep", str(tmp_path / "kept")]) == 0
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path / "kept" / "home"))
    recorded = tmp_path / "recorded.script.yaml"
    assert run_command(["script", "--record", str(recorded), "--session", "last"]) == 0
    text = recorded.read_text()
    assert str(tmp_path) not in text
    assert load_script(recorded).files == {"a.txt": "one\ntwo\n"}
    assert "  # Prompt 1\n" in text
    assert "restart: true" in text
    assert max(map(len, text.splitlines())) < 160
    assert run_command(["script", str(recorded)]) == 0, capsys.readouterr().out

    # The script is about what it was recorded from.
    recorded.write_text(text.replace("a letter", "a number", 1))
    assert run_command(["script", str(recorded)]) == 1


@pytest.mark.parametrize("protocol", ["copilot", "acp-1", "ahp"])
def test_a_live_conversation_becomes_a_script_that_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], protocol: str
) -> None:
    model = {"turns": [{"tool_calls": [{"name": "bash", "arguments": {"command": "echo hi"}}]}, {"text": "Done."}]}
    script = one_turn(protocol, within=30, model=model) if protocol != "copilot" else SCRIPT
    if protocol == "ahp":
        (tmp_path / "a project").mkdir()
        create, *steps = script["steps"]
        folders = {"workingDirectories": [(tmp_path / "a project").as_uri()]}
        script["steps"] = [{**create, "params": {**create["params"], **folders}}, *steps]
    recorded = tmp_path / "recorded.script.yaml"
    command = {"copilot": "--headless --stdio", "acp-1": "acp", "ahp": "ahp"}[protocol]
    served = f"{command} --no-auto-login"
    server = f"{shlex.quote(str(executable()))} {served}"
    recorder = shlex.join([str(executable()), "script", "--record", str(recorded), "--server", server])
    assert run_command(["script", write(tmp_path / "real.json", script), "--server", recorder]) == 0
    text = recorded.read_text()
    assert f"protocol: {protocol}\n" in text
    assert "secret-key" not in text
    assert str(tmp_path) not in text
    # Nobody but the author of a script knows the files of a conversation.
    files = 'files: {a.txt: "one\\ntwo\\n"}\n' if protocol == "copilot" else ""
    recorded.write_text(text.replace("steps:\n", f"within: 30\n{files}steps:\n", 1))
    assert run_command(["script", str(recorded)]) == 0, capsys.readouterr().out


def test_nothing_is_recorded_of_nothing() -> None:
    with pytest.raises(ScriptError, match="no message"):
        record_conversation([], "copilot", {})
    with pytest.raises(ScriptError, match="no events"):
        record_session([], {})
