"""Prompts that wait in ``jumpseat chat``: those typed before it is ready, and those sent during a turn."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.support.forked import executable
from tests.terminal.terminal import Place, chat

WAIT = {"tool_calls": [{"name": "bash", "arguments": {"command": "until [ -e go ]; do sleep 0.05; done"}}]}
EDIT = {"name": "create", "arguments": {"path": "made.txt", "file_text": "one\ntwo\n"}}
SCRIPT = {
    "prompts": [
        {"when": "wait", "turns": [WAIT, {"text": "Waited."}]},
        {"when": "make", "turns": [{"tool_calls": [EDIT]}, {"text": "It is made."}]},
        {"when": "touch", "turns": [{"tool_calls": [{"name": "bash", "arguments": {"command": "touch a"}}]}]},
        {"when": "read", "turns": [{"tool_calls": [{"name": "view", "arguments": {"path": "made.txt"}}]}]},
        {"turns": [{"text": "You said: {{last_user}}"}]},
    ],
    "after_last": "repeat",
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, SCRIPT)


def test_prompts_typed_before_the_chat_is_ready_are_sent_one_by_one(place: Place) -> None:
    # The shell gives the program its keys only after both prompts have been typed.
    slow = place.project / "slow.sh"
    slow.write_text(f"#!/bin/sh\necho begun\nuntil [ -e typed ]; do sleep 0.05; done\nexec {executable()} chat\n")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    with chat(place, command=(os.fspath(slow),), ready="begun") as terminal:
        terminal.type("first")
        terminal.press("Enter")
        terminal.type("second")
        terminal.press("Enter")
        (place.project / "typed").touch()
        terminal.until("You said: first", "You said: second")


def test_waiting_prompts_are_seen_and_come_back_when_the_turn_is_cancelled(place: Place) -> None:
    with chat(place, "--allow-tool", "shell") as terminal:
        terminal.submit("wait for it")
        terminal.until("running bash")
        terminal.submit("the second thing")
        terminal.submit("the third thing")
        terminal.until(r"❯ the second thing +\(queued\)", r"❯ the third thing +\(queued\)", "2 queued")
        terminal.press("C-c")
        screen = terminal.until(r"❯ the second thing\n  the third thing\n", "cancelled", without="queued")
        assert "You said" not in screen
        terminal.press("Enter")
        terminal.until("You said: the second thing")


def test_an_approval_of_the_session_takes_one_more_key(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("make it")
        terminal.until("yes, for this session")
        terminal.answer("s")
        terminal.until("Keep this approval", r"❯ k keep:", without="one moment")
        terminal.press("Enter")
        terminal.until("kept for the rest of this session", "It is made")


def test_a_no_is_told_to_people_in_their_words(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("touch it")
        terminal.until("tell the model why")
        terminal.answer("n")
        terminal.until("What should change")
        terminal.type("another name")
        terminal.press("Enter")
        screen = terminal.until("bash touch a  denied", "no: another name")
        assert "rejected this tool call" not in screen


def test_rewind_names_the_changes_of_each_prompt_alone(place: Place) -> None:
    with chat(place, "--allow-tool", "write") as terminal:
        terminal.submit("!echo aside")
        terminal.until("the model sees this with your next prompt")
        terminal.submit("hello there")
        terminal.until("You said: hello there")
        terminal.submit("make it")
        terminal.until("It is made")
        terminal.submit("/rewind")
        terminal.until(r"make it +\+2 -0", r"hello there$")


def test_a_misspelt_command_gets_a_suggestion_and_lines_are_counted_as_they_are(place: Place) -> None:
    (place.project / "made.txt").write_text("one\ntwo\n")
    with chat(place) as terminal:
        terminal.submit("/modle")
        terminal.until("Unknown command /modle; did you mean /model?")
        terminal.submit("read it")
        terminal.until(r"view made\.txt  2 lines")
