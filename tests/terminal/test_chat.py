"""``jumpseat chat`` in a real terminal. The captures are screens that were reviewed by eye."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.forked import INSTALLED
from tests.terminal.terminal import Place, chat, check_capture

MARKDOWN = """\
# A heading

Some *emphasis*, `code` and a [link](https://example.org/page).
日本語のテキストも正しく折り返されます、幅の広い文字が混ざっていても。

1. First do this, which takes a line that is long enough to be wrapped at eighty columns.
2. Then that
   - nested

```python
def hello(name: str) -> None:
    print(f"hello {name}")
```

| name | what |
|---|---|
| view | reads a file |
| edit | changes a file |

> quoted

The end.
"""

EDITS = [
    {
        "reasoning": "The file should hold two lines.",
        "text": "I will **edit** the file `a.txt`.",
        "tool_calls": [{"name": "create", "arguments": {"path": "a.txt", "file_text": "one\ntwo\n"}}],
    },
    {"tool_calls": [{"name": "edit", "arguments": {"path": "a.txt", "old_str": "two", "new_str": "zwei"}}]},
    {"tool_calls": [{"name": "bash", "arguments": {"command": "seq 10", "description": "Count to ten"}}]},
    {"tool_calls": [{"name": "bash", "arguments": {"command": "false"}}]},
    {"text": "All done."},
]

COMMAND = [
    {"tool_calls": [{"name": "bash", "arguments": {"command": "echo first > out.txt", "description": "Write"}}]},
    {"text": "It said: {{last_tool_result}}"},
]

QUESTION = [
    {
        "tool_calls": [
            {
                "name": "ask_user",
                "arguments": {
                    "question": "Which colour should the *bike shed* have?",
                    "choices": ["red", "green", "a long choice that does not fit on a narrow screen"],
                },
            }
        ]
    },
    {"text": "{{last_tool_result}}"},
]

TRICK = [
    {"tool_calls": [{"name": "bash", "arguments": {"command": "echo \x1b]0;\ntouch owned\n\x07"}}]},
    {"text": "Done."},
]

SCRIPT = {
    "prompts": [
        {"when": "Review the spelling", "turns": [{"text": "No faults."}]},
        {"when": "markdown", "turns": [{"text": MARKDOWN}]},
        {"when": "edit", "turns": EDITS},
        {"when": "command", "turns": COMMAND},
        {"when": "ask", "turns": QUESTION},
        {"when": "hang", "turns": [{"text": "Working on it.\n\nStill", "hang": True}]},
        {"when": "fail", "turns": [{"errors": [{"status": 401, "message": "bad key"}], "text": "never"}]},
        {"when": "evil", "turns": [{"text": "before \x1b[2J\x1b]0;owned\x07after \u202etxt.exe\x1b[31m red"}]},
        {"when": "trick", "turns": TRICK},
        {"turns": [{"text": "You said: {{last_user}}"}]},
    ]
}

IMPORTS = {"PYTHONPATH": str(Path(__file__).parents[2])}

SIZES = pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 20)], ids=["80x24", "40x20"])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, SCRIPT)


@SIZES
def test_markdown_is_rendered(place: Place, columns: int, rows: int) -> None:
    with chat(place, columns=columns, rows=rows) as terminal:
        terminal.submit("show markdown")
        check_capture(f"markdown-{columns}", terminal, r"The end\.", r"of context")


@SIZES
def test_changes_are_shown_before_they_are_made(place: Place, columns: int, rows: int) -> None:
    with chat(place, columns=columns, rows=rows) as terminal:
        terminal.submit("edit it")
        terminal.until(r"Make this change\?")
        assert not (place.project / "a.txt").exists()
        check_capture(f"change-{columns}", terminal)
        terminal.keep("s")
        terminal.until(r"Run this command\?")
        terminal.answer("y")
        terminal.until(r"● bash seq 10", r"Run this command\?")
        terminal.answer()
        check_capture(f"tools-{columns}", terminal, r"All done\.", r"of context", without=r"ctrl-c cancels")
        assert (place.project / "a.txt").read_text() == "one\nzwei\n"


@SIZES
def test_question_of_the_model_can_be_answered_freely(place: Place, columns: int, rows: int) -> None:
    with chat(place, columns=columns, rows=rows) as terminal:
        terminal.submit("ask me")
        check_capture(f"question-{columns}", terminal, r"0 something else")
        terminal.answer("0")
        terminal.until(r"Your answer:\n❯", without=r"something else")
        terminal.type("violet")
        terminal.press("Enter")
        terminal.until(r"User responded: violet")
        terminal.submit("ask again")
        terminal.until(r"0 something else")
        terminal.answer("Down")
        terminal.until(r"User selected: green")


@SIZES
def test_help_fits_on_the_screen(place: Place, columns: int, rows: int) -> None:
    with chat(place, columns=columns, rows=rows) as terminal:
        terminal.submit("/help")
        check_capture(f"help-{columns}", terminal, r"!command(.*\n)+.*prompt\n+❯\n.*project$")


def test_denial_with_a_reason_is_reported_to_the_model(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("a command")
        terminal.until(r"Run this command\?")
        terminal.answer("n")
        terminal.until(r"What should change\?")
        terminal.type("use another file")
        terminal.press("Enter")
        check_capture("refused", terminal, r"It said: ", r"of context")
        assert not (place.project / "out.txt").exists()


def test_escape_denies_and_ends_the_turn(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("a command")
        terminal.until(r"Run this command\?")
        terminal.press("Escape")
        terminal.until(r"✗ bash", r"of context", without=r"ctrl-c cancels")
        assert "It said" not in terminal.screen()
        assert not (place.project / "out.txt").exists()


def test_command_can_be_edited_before_it_runs(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("a command")
        terminal.until(r"Run this command\?")
        terminal.answer("e")
        terminal.until(r"Command:\n❯ echo first > out.txt")
        terminal.press("C-u")
        terminal.type("echo second > out.txt")
        terminal.press("Enter")
        terminal.until(r"Call it like this\?")
        terminal.answer()
        terminal.until(r"It said:")
        assert (place.project / "out.txt").read_text() == "second\n"


def test_invalid_json_arguments_are_refused_with_a_reason(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("edit it")
        terminal.until(r"Make this change\?")
        terminal.answer("e")
        terminal.until(r"Arguments as JSON:")
        terminal.press("BSpace", "Enter")
        terminal.until(r"invalid JSON")
        terminal.press("Escape")
        terminal.until(r"Make this change\?")


def test_keys_typed_while_a_question_appears_do_not_answer_it(place: Place) -> None:
    with chat(place) as terminal:
        terminal.type("edit it")
        terminal.until("❯ edit it")
        # Sent at once, faster than any screen: the keys are meant for the next prompt.
        terminal.press("Enter", "y", "y", "y", "y")
        terminal.until(r"Make this change\?")
        assert not (place.project / "a.txt").exists()


def test_ctrl_c_cancels_the_turn_and_twice_quits(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("hang on")
        check_capture("working", terminal, r"Still", r"ctrl-c cancels")
        terminal.press("C-c")
        terminal.until(r"^cancelled", without=r"ctrl-c cancels")
        terminal.submit("hello")
        terminal.until(r"You said: hello")
        # Only now, so that these do not combine with the ctrl-c that cancelled.
        terminal.until(r"of context")
        terminal.press("C-c", "C-c")
        check_capture("left", terminal, r"exit code 0")


def test_prompt_sent_during_a_turn_is_queued(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("hang on")
        terminal.until(r"Still", r"ctrl-c cancels")
        terminal.submit("another one")
        terminal.until(r"1 queued")


def test_failure_is_shown_and_the_next_prompt_works(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("fail now")
        terminal.until(r"✗ .*bad key")
        terminal.submit("hello")
        check_capture("failed", terminal, r"You said: hello", r"of context")


def test_text_of_the_model_cannot_control_the_terminal(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("evil")
        screen = terminal.until(r"before after <U\+202E>txt\.exe red")
        assert "❯ evil" in screen
        assert "owned" not in terminal.tmux("display-message", "-p", "#{pane_title}")


def test_command_is_shown_with_its_control_characters(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("trick me")
        terminal.until(r"echo ␛\]0;\n  touch owned\n  ␇", r"Run this command\?")


def test_form_is_filled_in_field_by_field(place: Place) -> None:
    command = (sys.executable, "-m", "tests.terminal.form")
    with chat(place, command=command, env=IMPORTS, ready="Fill in", columns=120) as terminal:
        check_capture("form", terminal)
        terminal.answer("y")
        terminal.until(r"Name: What it is called")
        terminal.press("Enter")
        terminal.until(r"an answer is required")
        terminal.type("jumpseat")
        terminal.press("Enter")
        terminal.until(r"How many\n❯ 3")
        terminal.type("x")
        terminal.press("Enter")
        terminal.until(r"expected an integer")
        terminal.press("BSpace", "Enter")
        terminal.until(r"Colour\n❯ 1 red")
        terminal.answer("2")
        terminal.until(r"Sure\n❯ y yes")
        terminal.answer("n")
        terminal.until(r"^note$")
        terminal.press("Enter")
        terminal.until(r"Send these answers\?")
        terminal.answer("y")
        answer = {"name": "jumpseat", "count": 3, "colour": "g", "sure": False}
        terminal.until(re.escape(str({"action": "accept", "content": answer})))


def test_form_can_be_declined_and_cancelled(place: Place) -> None:
    command = (sys.executable, "-m", "tests.terminal.form")
    with chat(place, command=command, env=IMPORTS, ready="Fill in") as terminal:
        terminal.answer("n")
        terminal.until(r"'action': 'decline'")
    with chat(place, command=command, env=IMPORTS, ready="Fill in") as terminal:
        terminal.press("Escape")
        terminal.until(r"'action': 'cancel'")


def test_session_can_be_resumed_from_a_list_and_is_shown(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("hello there")
        terminal.until(r"You said: hello there")
        terminal.submit("/new")
        terminal.until(r"(?s)help lists.*help lists")
        terminal.submit("second session")
        terminal.until(r"You said: second session")
        terminal.press("C-d")
        terminal.until(r"exit code 0")
    with chat(place, "--resume", ready=r"Which session do you want to resume\?") as terminal:
        check_capture("picker", terminal, r"hello there")
        terminal.type("hello")
        terminal.until(r"search: hello", without=r"second")
        terminal.press("Enter")
        check_capture("resumed", terminal, r"You said: hello there", r"one · ")
        terminal.submit("more")
        terminal.until(r"You said: more")
    with chat(place, "--continue") as terminal:
        terminal.until(r"❯ more", r"You said: more")


def test_resumed_session_shows_what_was_answered_before_it_was_cancelled(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("hang")
        terminal.until(r"Still")
        terminal.press("C-c")
        terminal.until(r"^cancelled", without=r"ctrl-c cancels")
        terminal.press("C-d")
        terminal.until(r"exit code 0")
    with chat(place, "--continue") as terminal:
        terminal.until(r"(?s)❯ hang.*Working on it\..*Still.*cancelled")


def test_runs_and_failures_are_left_out_of_the_list_until_they_are_resumed_by_id(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("hello there")
        terminal.until(r"You said: hello there")
    ran = place.run("a quick question", "--output-format", "json")
    session = json.loads(ran.stdout)["sessionId"]
    with chat(place, "--continue") as terminal:
        terminal.until(r"You said: hello there")
        terminal.submit("/sessions quick")
        terminal.until(r"1 session of one prompt or without an answer left out", r"no matches")
        terminal.press("Escape")
        terminal.until(r"^❯\s*$", without=r"no matches")
        terminal.submit(f"/sessions {session[:8]}")
        terminal.until(r"You said: a quick question")
        terminal.submit("go on")
        terminal.until(r"You said: go on")
    with chat(place, "--resume", ready=r"Which session do you want to resume\?") as terminal:
        terminal.until(r"a quick question", without=r"left out")


def test_a_session_is_exported_to_a_new_file_of_the_kind_that_its_name_says(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("hello there")
        terminal.until(r"You said: hello there")
        terminal.submit("/export talk.html")
        terminal.until(r"Wrote \S*talk\.html")
        terminal.submit("/export talk.html")
        terminal.until(r"talk\.html' exists already")
        terminal.submit("/export talk.doc")
        terminal.until(r"talk\.doc has none of the endings md, html, jsonl")
        terminal.submit("/export")
        terminal.until(r"Wrote \S*session-\w{8}\.md")
    page = (place.project / "talk.html").read_text()
    assert "<p>You said: hello there</p>" in page
    assert '<td>one</td><td class="number">1</td>' in page
    (markdown,) = place.project.glob("session-*.md")
    assert "> hello there" in markdown.read_text()


def test_unknown_session_is_an_error(place: Place) -> None:
    with chat(place, "--resume", "nothing", ready=r"exit code 1") as terminal:
        assert "error: no session has an id that starts with 'nothing'" in terminal.screen()


def test_model_can_be_chosen_from_a_list_and_by_name(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("/model")
        check_capture("models", terminal, r"Which model\?")
        terminal.type("two")
        terminal.until(r"search: two", without=r"日本語")
        terminal.press("Enter")
        terminal.until(r"model: play/two")
        terminal.submit("/model play/one")
        terminal.until(r"model: play/one")
        terminal.submit("/model nobody/knows")
        terminal.until(r"This model is not listed")


def test_commands_are_completed_and_unknown_ones_reported(place: Place) -> None:
    with chat(place) as terminal:
        terminal.type("/us")
        terminal.until(r"^❯ /usage  show the calls and tokens")
        terminal.press("Tab", "Enter")
        terminal.until(r"changes +\+0 -0 lines")
        terminal.submit("/tools")
        terminal.until(r"  bash +Run a command")
        terminal.submit("/nothing")
        terminal.until(r"Unknown command /nothing")
        terminal.submit("/etc/hosts what is it?")
        terminal.until(r"You said: /etc/hosts what is it\?")


def test_a_command_of_the_server_can_be_a_prompt(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("/review the spelling")
        terminal.until(r"No faults\.", without=r"Change nothing")


def test_folded_output_is_shortened_and_reasoning_can_be_shown(place: Place) -> None:
    with chat(place, "--yolo") as terminal:
        terminal.submit("edit it")
        screen = terminal.until(r"All done\.")
        assert re.search(r"^∴ thought(?: for \d+s)?, 6 words \(ctrl-o\)$", screen, re.MULTILINE)
        assert "The file should hold" not in screen
        assert "... 7 lines above (ctrl-o)" in screen
        terminal.press("C-o")
        assert re.search(r"^\S.*, in full:\n", terminal.until(r", in full:$"), re.MULTILINE)
        terminal.press("C-o")
        terminal.until(r"Nothing was shortened since")
        terminal.submit("/thinking on")
        terminal.until(r"is shown in full")
        terminal.submit("edit it again")
        terminal.until(r"∴ The file should hold two lines\.")


def test_deny_rule_overrides_yolo(place: Place) -> None:
    with chat(place, "--yolo", "--deny-tool", "shell(echo)") as terminal:
        terminal.submit("a command")
        terminal.until(r"It said: Permission denied by a rule: shell\(echo\)")
        assert not (place.project / "out.txt").exists()


def test_no_color_turns_colours_off(place: Place) -> None:
    with chat(place, env={"NO_COLOR": "1"}) as terminal:
        terminal.submit("edit it")
        terminal.until(r"Make this change\?")
        painted = terminal.tmux("capture-pane", "-p", "-e", "-S", "-100")
        codes = {
            int(code) for found in re.findall(r"\x1b\[([\d;]*)m", painted) for code in found.split(";") if code
        }
        # Bold, dim and their ends; 39 and 49 are the terminal's own colours.
        assert codes <= {0, 1, 2, 3, 22, 23, 39, 49}
    with chat(place) as terminal:
        terminal.submit("edit it")
        terminal.until(r"Make this change\?")
        assert "\x1b[32m" in terminal.tmux("capture-pane", "-p", "-e", "-S", "-100")


def test_long_prompts_wrap_and_have_several_lines(place: Place) -> None:
    with chat(place, columns=40, rows=20) as terminal:
        terminal.type("a prompt that is much longer than one line of this screen")
        terminal.press("C-j")
        terminal.type("and a second line")
        terminal.until(r"and a second line")
        terminal.press("Enter")
        check_capture("long-prompt-40", terminal, r"You said: ", r"of context")


def test_screen_is_redrawn_when_its_size_changes(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("a command")
        terminal.until(r"Run this command\?")
        terminal.tmux("resize-window", "-x", "50", "-y", "20")
        terminal.until(r"Run this command\?", r"❯ y yes")
        terminal.answer("y")
        terminal.until(r"It said:", r"❯")


def test_death_of_the_server_is_reported_and_the_terminal_restored(place: Place) -> None:
    # The installed command, whose server is a child of it.
    with chat(place, command=(INSTALLED, "chat")) as terminal:
        terminal.submit("call")
        terminal.until(r"You said: call")
        (pid,) = terminal.tmux("list-panes", "-F", "#{pane_pid}").split()
        server = _descendant(int(pid), "--headless")
        terminal.tmux("run-shell", f"kill -9 {server}")
        terminal.until(r"error: the server exited with code -9", r"exit code 1")


def _descendant(pid: int, word: str) -> int:
    """Return the id of the descendant of ``pid`` with ``word`` in its command line, or 0."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if word in Path(f"/proc/{child}/cmdline").read_text().split("\0"):
            return int(child)
        found = _descendant(int(child), word)
        if found:
            return found
    return 0
