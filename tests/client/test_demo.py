"""The demo run as a process, with and without a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

MODEL_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY")


def run_demo(*args: str, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in MODEL_VARIABLES}
    command = [sys.executable, "-m", "jumpseat_client.demo", *args]
    return subprocess.run(command, stdin=stdin, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_demo_shows_tool_permission_and_second_process() -> None:
    process = run_demo()
    assert (process.returncode, process.stderr) == (0, "")
    story, wire = process.stdout.split("3. The messages on the wire")
    assert "model: scripted" in story
    assert "asks   May I call this program's tool lookup_order" in story
    assert re.search(r"asks   May I read .*returns\.md", story)
    assert 'tool   lookup_order: {"order_id":"1042"' in story
    assert "agent  Yes. The espresso machine arrived 12 days ago" in story
    assert "agent  Order 1042. I know that from our conversation" in story
    for line in (
        "-> session.create",
        r"<- assistant.message_delta +x \d+",
        "<- permission.requested +custom-tool: lookup_order",
        "-> session.permissions.handlePendingPermissionRequest approve-once",
        "-> session.tools.handlePendingToolCall",
        "<- permission.requested +read: .*returns.md",
        "second process",
        r"<- session.resume +\d+ events from disk",
    ):
        assert re.search(line, wire), line
    assert len(process.stdout.splitlines()) <= 67
    (command,) = re.findall(r"^  (\S+) setup ", wire, re.MULTILINE)
    assert Path(command).samefile(Path(sys.executable).with_name("jumpseat"))


def test_another_script_changes_the_conversation(tmp_path: Path) -> None:
    script = tmp_path / "other.yaml"
    script.write_text(
        "turns:\n"
        "  - tool_calls: [{name: bash, arguments: {command: echo from the shell, description: Say it}}]\n"
        "  - text: 'The shell said {{last_tool_result}}'\n"
        "  - text: 'Second answer'\n"
    )
    process = run_demo("--script", str(script), "--yes")
    assert (process.returncode, process.stderr) == (0, "")
    assert "from other.yaml" in process.stdout
    assert "asks   May I run this command: echo from the shell" in process.stdout
    assert "yes (--yes)" in process.stdout
    assert "agent  The shell said from the shell" in process.stdout
    assert "agent  Second answer" in process.stdout
    assert "lookup_order:" not in process.stdout


def test_denial_on_the_terminal_ends_the_prompt_but_not_the_demo() -> None:
    keyboard, terminal = pty.openpty()
    try:
        os.write(keyboard, b"n\n")
        process = run_demo(stdin=terminal)
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert (process.returncode, process.stderr) == (0, "")
    assert "tool   lookup_order: failed, The user rejected this tool call." in process.stdout
    assert "May I read" not in process.stdout
    assert "agent  Order 1042. I know that from our conversation" in process.stdout


def test_missing_script_fails_with_a_message(tmp_path: Path) -> None:
    process = run_demo("--script", str(tmp_path / "missing.yaml"))
    assert process.returncode == 1
    assert "The demo failed: " in process.stderr
    assert "missing.yaml" in process.stderr
    assert "Traceback" not in process.stderr


def test_script_without_enough_turns_fails_with_a_message(tmp_path: Path) -> None:
    script = tmp_path / "short.yaml"
    script.write_text("turns: [{text: Only this}]")
    process = run_demo("--script", str(script))
    assert process.returncode == 1
    assert "agent  Only this" in process.stdout
    assert "<- session.error" in process.stdout
    assert "The demo failed: " in process.stderr
    assert "the script has no turn 2" in process.stderr
