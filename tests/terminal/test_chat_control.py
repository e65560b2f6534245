"""The commands of ``jumpseat chat`` that show and change what the agent may do and has done."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.forked import executable
from tests.support.mcp_servers import stdio
from tests.support.skills import write_skill
from tests.terminal.terminal import CONFIG, Place, chat

TOUCH = {"name": "bash", "arguments": {"command": "touch made.txt"}}
CREATE = {"name": "create", "arguments": {"path": "new.txt", "file_text": "new\n"}}

SCRIPT = {
    "prompts": [
        {"when": "make", "turns": [{"tool_calls": [TOUCH]}, {"text": "It is made."}]},
        {
            "when": "write",
            "turns": [
                {
                    "tool_calls": [
                        {"name": "edit", "arguments": {"path": "a.txt", "old_str": "one", "new_str": "two"}}
                    ]
                },
                {"tool_calls": [CREATE]},
                {"text": "It is written."},
            ],
        },
        {
            "when": "wrong",
            "turns": [
                {"tool_calls": [{"name": "edit", "arguments": {"path": "a.txt", "old_str": "x", "new_str": "y"}}]},
                {"text": "It failed: {{last_tool_result}}"},
            ],
        },
        {"turns": [{"text": "You said: {{last_user}}"}]},
    ]
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path, SCRIPT)
    (place.project / "a.txt").write_text("one\n")
    return place


def test_kept_approvals_are_said_back_listed_and_revoked(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("/permissions")
        terminal.until(r"No approval outlasts its call\.")
        terminal.submit("make it")
        terminal.until(r"Run this command\?")
        terminal.keep("a")
        terminal.until(r"kept in this project, in later sessions too: touch", r"It is made\.")
        terminal.submit("/permissions")
        terminal.until(r"this project +commands: touch +touch made\.txt", r"Revoke an approval\?")
        terminal.press("Enter")
        terminal.until(r"revoked for this project: commands: touch", r"(?s)No approval.*No approval")
        terminal.submit("make it")
        terminal.until(r"Run this command\?")
    assert '"touch"' not in (place.home / "approvals.json").read_text()


def test_mode_is_shown_and_changed_by_a_key_and_a_command(place: Place) -> None:
    with chat(place) as terminal:
        terminal.press("BTab")
        terminal.until(r"^accepts edits · ")
        terminal.submit("write it")
        terminal.until(r"● edit a\.txt +\+1 -1\n +1 - one\n +1 \+ two", r"It is written\.")
        terminal.submit("make it")
        terminal.until(r"Run this command\?")
        terminal.press("Escape")
        terminal.until(r"^❯$", without=r"ctrl-c cancels")
        terminal.press("BTab")
        terminal.until(r"^plan mode · ")
        terminal.press("BTab")
        terminal.until(r"^one · ", without=r"^plan mode")
        terminal.submit("/accept-edits")
        terminal.until(r"Changes to files in this folder are made without a question\.", r"^accepts edits · ")
        terminal.submit("/accept-edits off")
        terminal.until(r"You are asked about each change", without=r"^accepts edits · ")
        (place.project / "a.txt").write_text("one\n")
        terminal.submit("write it")
        terminal.until(r"Make this change\?")


def test_changes_are_shown_and_taken_back(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("/diff")
        terminal.until(r"No prompt of this session has changed files")
        terminal.press("BTab")
        terminal.until(r"^accepts edits · ")
        terminal.submit("write it")
        terminal.until(r"It is written\.")
        (place.project / "new.txt").write_text("mine\n")
        terminal.submit("/diff")
        terminal.until(r"after: write it\n● a\.txt +\+1 -1\n", r"● new\.txt +\+1 -0 changed since then")
        terminal.submit("/undo")
        terminal.until(r"1 file as before: a\.txt\n! not touched, because changed since .*: new\.txt")
        assert (place.project / "a.txt").read_text() == "one\n"
        assert (place.project / "new.txt").read_text() == "mine\n"
        terminal.submit("/undo")
        terminal.until(r"There is nothing to undo\.")


def test_a_rewind_shows_the_files_and_takes_back_what_is_wanted(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("/rewind")
        terminal.until(r"There is no prompt to go back to\.")
        terminal.press("BTab")
        terminal.until(r"^accepts edits · ")
        terminal.submit("write it")
        terminal.until(r"It is written\.")
        (place.project / "new.txt").write_text("mine\n")
        terminal.submit("/rewind")
        terminal.until(r"Go back to before which prompt\?", r"write it +\+2 -1")
        terminal.press("Enter")
        terminal.until(r"modified: a\.txt +\+1 -1\n +created: new\.txt +\+1 -0", r"What goes back\?")
        terminal.press("Enter")
        terminal.until(r"1 file as before: a\.txt\n! not touched, because changed since then: new\.txt")
        assert (place.project / "a.txt").read_text() == "one\n"
        assert (place.project / "new.txt").read_text() == "mine\n"


def test_own_command_is_shown_and_handed_to_the_model(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("!echo some words; exit 3")
        terminal.until(r"✗ ! echo some words; exit 3  exit code 3, 1 line(?:, \d+s)?\n    some words\n", r"^❯$")
        terminal.submit("and now?")
        terminal.until(r"❯ and now\?\n  \+ ! echo some words; exit 3", r"\[exit code 3\]")
        terminal.submit("!echo begin; sleep 600")
        terminal.until(r"begin\n", r"running your command \d+s · ctrl-c cancels")
        terminal.press("C-c")
        terminal.until(r"cancelled by the user, 1 line", r"^❯$", without=r"ctrl-c cancels")


def test_edit_that_cannot_succeed_is_refused_without_a_question(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("wrong")
        assert "Make this change?" not in terminal.until(r"It failed: old_str was not found in a\.txt")


def test_what_fills_the_context_and_what_it_costs_is_shown(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("/context")
        terminal.until(r"The context is empty before the first prompt\.")
        terminal.submit("hello")
        terminal.until(r"You said: hello")
        terminal.submit("/context")
        terminal.until(r"of 128,000 tokens of one", r"█+░+", r"█ tools +[\d,]+ +\d", r"░ free +[\d,]+ +\d")
        terminal.submit("/cost")
        terminal.until(r"one +price unknown +1 call")
        for command, answer in (
            ("/mcp", r" +github-mcp-server +disabled"),
            ("/agents", r"There are no agents"),
            ("/skills", r"There are no skills"),
        ):
            terminal.submit(command)
            terminal.until(rf"❯ {command}\n{answer}")


def test_servers_agents_and_skills_are_listed_with_their_states(place: Place) -> None:
    server = stdio()
    (place.home / "mcp-config.json").write_text(
        json.dumps({"mcpServers": {"works": server, "fails": {**server, "command": "/no/such/program"}}})
    )
    (place.home / "agents").mkdir()
    (place.home / "agents/reviewer.md").write_text(
        "---\nname: reviewer\ndescription: Reviews code. At length.\n---\nYou review."
    )
    write_skill(place.home / "skills")
    with chat(place, columns=120) as terminal:
        # The servers start in the background. Each list is awaited, and gone before the next one is asked for.
        listed = "pending"
        for _ in range(200):
            if "pending" not in listed:
                break
            terminal.forget()
            terminal.until(r"^❯$", without=r"^ *works ")
            terminal.submit("/mcp")
            listed = terminal.until(r"^ *works +[a-z]+", r"^ *fails +[a-z]+")
        terminal.until(r"^ *works +connected +\d+ tools: .*echo", r"^ *fails +failed +.*/no/such/program")
        terminal.submit("/mcp disable works")
        terminal.until(r"(?s)/mcp disable works\n.*works +disabled")
        terminal.submit("/agents")
        terminal.until(r"Which agent\?", r"reviewer +Reviews code$", r"none \(current\)")
        terminal.press("Enter")
        terminal.until(r"agent: reviewer")
        terminal.submit("/agents")
        terminal.until(r"reviewer \(current\)")
        terminal.press("Escape")
        terminal.until(r"^❯$")
        terminal.submit("/skills")
        terminal.until(r"^ */tea +\S+ +How to make tea")


def test_hooks_and_plugins_are_listed_and_a_plugin_runs_only_what_the_user_has_seen(place: Place) -> None:
    (place.home / "hooks").mkdir()
    hook = {"version": 1, "hooks": {"preToolUse": [{"bash": "./guard.sh", "matcher": "bash"}]}}
    (place.home / "hooks/guard.json").write_text(json.dumps(hook))
    plugin = place.project / "cup"
    plugin.mkdir()
    (plugin / "plugin.json").write_text(json.dumps({"name": "cup", "version": "1.0"}))
    (plugin / ".mcp.json").write_text(json.dumps({"mcpServers": {"cup-server": {"command": "/no/such/cup"}}}))
    with chat(place, columns=120) as terminal:
        terminal.submit("/hooks")
        terminal.until(r"^ *preToolUse +user +runs +bash +\./guard\.sh")
        terminal.submit("/plugins install ./cup")
        terminal.until(r"MCP server +cup-server +/no/such/cup", r"Run these programs\?")
        terminal.press("Enter")
        terminal.until(r"^ *cup +1\.0 +enabled, runs nothing before /plugins trust cup")
        terminal.submit("/plugins trust cup")
        terminal.until(r"Run these programs\?")
        terminal.press("Down", "Enter")
        terminal.until(r"cup is trusted", r"(?s)/plugins trust cup\n.*^ *cup +1\.0 +enabled$")
        terminal.submit("/plugins remove cup")
        terminal.until(r"No plugins are installed")


def test_models_have_the_same_window_in_the_chat_and_on_the_command_line(place: Place) -> None:
    config = CONFIG.replace('["one",', '[{id = "one", context_window = 400000},')
    (place.home / "config.toml").write_text(config)
    command = [executable(), "models"]
    done = subprocess.run(command, env=place.env(), cwd=place.project, capture_output=True, text=True, check=True)
    # The window of a model that nothing is known about is an assumption.
    listed = {row[0]: row[2] for row in map(str.split, done.stdout.splitlines())}
    assert (listed["play/one"], listed["play/two"]) == ("400000", "~128000")
    with chat(place) as terminal:
        terminal.submit("/model")
        terminal.until(r"play/one +400k \(current\)$", r"play/two +128k$")
    with chat(place) as terminal:
        terminal.submit("hello")
        terminal.until(r"You said: hello")
        terminal.submit("/context")
        terminal.until(r"of 400,000 tokens of one")


def test_bare_command_at_a_terminal_is_a_chat(place: Place) -> None:
    with chat(place, command=(executable(),)) as terminal:
        terminal.submit("hello")
        terminal.until(r"You said: hello")
        terminal.press("C-d")
        terminal.until(r"exit code 0")
    # ctrl-c in the list of sessions leaves.
    with chat(place, "--resume", ready=r"Which session do you want to resume\?") as terminal:
        terminal.press("C-c")
        assert "/help lists" not in terminal.until(r"exit code 0")


def test_commands_are_suggested_with_descriptions(place: Place) -> None:
    with chat(place) as terminal:
        terminal.type("/c")
        terminal.until(r"^❯ /connect +connect a provider", r"^  /context +show what fills the context window")
        terminal.press("Down", "Down", "Down", "Tab")
        terminal.until(r"^❯ /context $|^❯ /context$")
