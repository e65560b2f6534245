"""``jumpseat chat`` in its various states: interruptions, sizes, stored approvals, files, no model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from anyio.from_thread import start_blocking_portal

from jumpseat.adapters.scripted import Script as ModelScript
from jumpseat_terminal.mentions import completions, find_attachments
from jumpseat_testkit.model.server import ModelServer
from tests.support.fake_copilot import ALICE, fake_copilot
from tests.terminal.terminal import Place, chat, check_capture

TOUCH = {"name": "bash", "arguments": {"command": "touch made.txt"}}
COUNT = {"name": "bash", "arguments": {"command": "for i in 1 2 3; do echo line $i; done; exec sleep 600"}}
FIRST = [
    {"tool_calls": [{"name": "bash", "arguments": {"command": "until [ -e go ]; do sleep 0.05; done"}}]},
    {"text": "First."},
]
WORDS = " ".join(f"w{number}" for number in range(40))

SCRIPT = {
    "prompts": [
        {"when": "instructions for this summary: slow", "turns": [{"hang": True}]},
        {"when": "^Please create a detailed summary", "turns": [{"text": "<overview>All of it.</overview>"}]},
        {"when": "make", "turns": [{"tool_calls": [TOUCH]}, {"text": "It is made."}]},
        {"when": "count", "turns": [{"tool_calls": [COUNT]}, {"text": "never"}]},
        {"when": "stream", "turns": [{"text": f"First.\n\n{WORDS}", "hang": True}]},
        {
            "when": "two",
            "turns": [
                {
                    "tool_calls": [
                        {"name": "bash", "arguments": {"command": "touch first.txt"}},
                        {"name": "bash", "arguments": {"command": "touch second.txt"}},
                    ]
                },
                {"text": "Both are made."},
            ],
        },
        {"when": "ask", "turns": [{"tool_calls": [{"name": "ask_user", "arguments": {"question": "Which one?"}}]}]},
        {"when": "outside", "turns": [{"tool_calls": [{"name": "view", "arguments": {"path": "/etc/passwd"}}]}]},
        {
            "when": "inside",
            "turns": [
                {"tool_calls": [{"name": "view", "arguments": {"path": "notes.txt"}}]},
                {"text": "It says {{last_tool_result}}"},
            ],
        },
        {"when": "attached", "turns": [{"text": "I see.", "expect": {"user": r"/my notes\.txt .2 lines/"}}]},
        {"turns": [{"text": "You said: {{last_user}}"}]},
    ]
}

IDLE = {"without": r"ctrl-c cancels"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, SCRIPT)


def test_conversation_is_summarized_by_a_command_and_automatically(place: Place) -> None:
    config = place.home / "config.toml"
    with chat(place) as terminal:
        terminal.submit("hello")
        terminal.until(r"You said: hello")
        terminal.submit("/compact slow")
        terminal.until(r"summarizing \d", r"ctrl-c cancels")
        terminal.press("C-c")
        terminal.until(r"^cancelled", **IDLE)
        terminal.submit("/compact")
        terminal.until(r"Summarized the conversation: about [\d,]+ tokens of context instead of [\d,]+\.")
    now = "[compaction]\nbackground_threshold = 0.0\nexhaustion_threshold = 0.0\n"
    config.write_text(f"{config.read_text()}\n{now}")
    with chat(place) as terminal:
        for word in ("alpha", "beta"):
            terminal.submit(word)
            terminal.until(rf"You said: {word}")
        terminal.until(r"Summarized the conversation: about [\d,]+ tokens of context instead of [\d,]+\.")


def test_ctrl_c_cancels_any_activity_and_does_not_quit(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("stream it")
        terminal.until(r"w39", r"ctrl-c cancels")
        terminal.press("C-c")
        terminal.until(r"w39", r"^cancelled", **IDLE)
        # A second ctrl-c right after it has nothing to cancel and does nothing else.
        terminal.press("C-c")
        terminal.until(r"press ctrl-c again")
        terminal.submit("make it")
        terminal.until(r"Run this command\?")
        terminal.press("C-c")
        terminal.until(r"✗ bash touch made.txt", **IDLE)
        terminal.submit("ask me")
        terminal.until(r"Your answer:\n❯")
        terminal.type("half an answer")
        terminal.press("C-c")
        terminal.until(r"no answer", r"one · ", **IDLE)
        terminal.submit("still there?")
        terminal.until(r"You said: still there\?")
        assert not (place.project / "made.txt").exists()


def test_ctrl_c_ends_the_process_of_a_tool(place: Place) -> None:
    with chat(place, "--yolo") as terminal:
        terminal.submit("count")
        check_capture("running", terminal, r"line 3", r"running bash", r"sleep 600  \d+s$")
        terminal.press("C-c")
        check_capture("cancelled", terminal, r"bash .* cancelled", r"^cancelled", **IDLE)


def test_ctrl_c_first_clears_the_line(place: Place) -> None:
    with chat(place) as terminal:
        terminal.type("half a prompt")
        terminal.until(r"❯ half a prompt")
        terminal.press("C-c")
        terminal.until(r"^❯$", without=r"half a prompt")
        terminal.press("C-c")
        terminal.until(r"press ctrl-c again")
        # Twice: the chat may have forgotten the first one by now.
        terminal.press("C-c", "C-c")
        terminal.until(r"exit code 0")


def test_key_after_escape_is_not_combined_with_it(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("/model")
        terminal.until(r"Which model\?")
        terminal.press("Escape")
        terminal.until(r"^❯$", without=r"Which model\?")
        terminal.press("Escape")
        # A redraw shows that the chat has read the escape, the next two that it has noticed the end of each wait.
        for columns in ("12", "80", "12"):
            terminal.tmux("run-shell", "sleep 0.1")
            terminal.tmux("resize-window", "-x", columns)
            terminal.until(r"^one · \S+…\n*\Z" if columns == "12" else r"^one · ~/project\n*\Z")
        terminal.type("/us")
        terminal.until(r"^❯ /us\n❯ /usage")


def test_approval_for_the_project_holds_in_later_sessions(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("make it")
        terminal.until(r"a yes, in this project: touch")
        terminal.keep("a")
        terminal.until(r"It is made\.")
        terminal.press("C-d")
        terminal.until(r"exit code 0")
    (place.project / "made.txt").unlink()
    with chat(place) as terminal:
        terminal.submit("make it")
        assert "Run this command?" not in terminal.until(r"It is made\.")
        assert (place.project / "made.txt").exists()
    process = place.run("-p", "make it")
    assert (process.returncode, process.stdout) == (0, "It is made.\n")


def test_question_directly_follows_its_call(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("two things")
        terminal.until(r"touch (first|second).txt\n\nRun this command\?")
        terminal.answer("y")
        terminal.until(r"touch first.txt\n(.*\n)*.*touch second.txt\n\nRun this command\?")
        terminal.answer("y")
        terminal.until(r"Both are made\.")


def test_all_calls_of_an_answer_can_be_cancelled(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("two things")
        terminal.until(r"Run this command\?(.*\n)*.*c cancel all calls of this answer")
        terminal.answer("c")
        terminal.until(r"The user cancelled this tool call\.(.*\n)*.*Both are made\.")
        assert list(place.project.glob("*.txt")) == []


def test_only_reads_outside_the_folder_need_approval(place: Place) -> None:
    (place.project / "notes.txt").write_text("something\n")
    with chat(place) as terminal:
        terminal.submit("look inside")
        assert "Read this?" not in terminal.until(r"It says 1\. something")
        terminal.submit("look outside")
        terminal.until(r"Read this\?", r"s yes, for this session: all reads in this folder, and /etc/passwd")


def test_narrower_terminal_leaves_no_remains_of_work_in_progress(place: Place) -> None:
    with chat(place, columns=100) as terminal:
        terminal.submit("stream it")
        terminal.until(r"w39", r"ctrl-c cancels")
        terminal.tmux("resize-window", "-x", "60", "-y", "24")
        narrow = terminal.until(r"w16\nw17")
        assert narrow.count("w1 w2") == 1
        terminal.tmux("resize-window", "-x", "100", "-y", "24")
        terminal.until(r"w16 w17 w18 w19 w20")
        terminal.press("C-c")
        assert terminal.until(r"^cancelled").count("w1 w2") == 1


def test_queued_prompt_is_no_longer_counted_once_it_runs(place: Place) -> None:
    script = place.home / "script.yaml"
    script.write_text(yaml.safe_dump({"prompts": [{"when": "one", "turns": FIRST}, {"turns": [{"hang": True}]}]}))
    with chat(place, "--yolo") as terminal:
        terminal.submit("number one")
        terminal.until(r"ctrl-c cancels")
        terminal.submit("and two")
        terminal.until(r"1 queued")
        (place.project / "go").touch()
        assert "queued" not in terminal.until(r"First\.", r"ctrl-c cancels", without=r"queued")


def test_resumed_session_keeps_its_folder(place: Place) -> None:
    (place.project.parent / "other").mkdir()
    with chat(place) as terminal:
        terminal.submit("hello")
        terminal.until(r"You said: hello")
        terminal.press("C-d")
        terminal.until(r"exit code 0")
    with chat(place, "-C", str(place.project.parent / "other"), columns=160) as terminal:
        terminal.until(r"one · ~/other")
        terminal.submit("/resume")
        terminal.until(r"Which session do you want to resume\?", r"hello +~/project")
        terminal.press("Enter")
        terminal.until(r"You said: hello", r"one · ~/project\n*\Z")


def test_mentioned_file_is_completed_and_attached(place: Place) -> None:
    (place.project / "my notes.txt").write_text("one\ntwo\n")
    with chat(place) as terminal:
        terminal.type("attached: @my")
        terminal.until(r'❯ attached: @my\n@"my notes.txt"')
        terminal.press("Tab")
        terminal.until(r'❯ attached: @"my notes.txt"')
        terminal.press("Enter")
        check_capture("attached", terminal, r"I see\.", r"of context")


def test_only_existing_files_are_attached(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").touch()
    (tmp_path / "what?").touch()
    text = "see @src/a.py, (@src) @src/ @nobody me@src @{group} @what? and @src/a.py."
    assert find_attachments(text, tmp_path) == [
        {"type": "file", "path": str(tmp_path / "src/a.py"), "displayName": "src/a.py"},
        {"type": "directory", "path": str(tmp_path / "src"), "displayName": "src/"},
        {"type": "file", "path": str(tmp_path / "what?"), "displayName": "what?"},
    ]


def test_mentions_are_completed_with_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "two words").mkdir()
    (tmp_path / "src" / ".hidden").touch()
    (tmp_path / "some").touch()
    (tmp_path / "evil\x1b[2J").touch()
    assert completions("look at @s", tmp_path) == (8, ["@some", "@src/"])
    assert completions("@src/", tmp_path) == (0, ['@"src/two words/'])
    assert completions("@src/.h", tmp_path) == (0, ["@src/.hidden"])
    assert completions('@"src/two', tmp_path) == (0, ['@"src/two words/'])
    assert completions("@e", tmp_path)[1] == completions("mail me@s", tmp_path)[1] == []
    assert completions("@s and", tmp_path)[1] == completions("@nowhere/x", tmp_path)[1] == []


def test_without_a_model_chat_explains_how_to_start(place: Place) -> None:
    (place.home / "config.toml").unlink()
    with chat(place) as terminal:
        check_capture("begin", terminal, r"OPENAI_API_KEY", r"jumpseat doctor")


def test_api_key_alone_is_enough(place: Place, providers: str) -> None:
    (place.home / "config.toml").unlink()
    with chat(place, env={"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": providers}) as terminal:
        terminal.until(r"openai/scripted · ~/project\n*\Z")
        terminal.submit("hello")
        terminal.until(r"Hello\.")


def test_key_for_an_unreachable_provider_gets_advice(place: Place) -> None:
    (place.home / "config.toml").unlink()
    with chat(place, env={"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}) as terminal:
        check_capture("no-list", terminal, r"/model NAME\s+selects one by name")


@pytest.fixture
def providers() -> Iterator[str]:
    """Serve a provider with a list of models, and yield its base URL."""
    with start_blocking_portal() as portal:
        server = ModelServer(ModelScript.model_validate({"turns": [{"text": "Hello."}]}))
        with portal.wrap_async_context_manager(server):
            yield server.url


def test_rate_limited_model_can_be_replaced_by_its_providers_choice(tmp_path: Path) -> None:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(fake_copilot()) as copilot:
        copilot.models.append({"id": "auto"})
        copilot.limited["by-chat"] = "user_weekly_rate_limited"
        place = Place(tmp_path, {"turns": []})
        (place.home / "config.toml").write_text("")
        with chat(place, env={**copilot.environ, "COPILOT_GITHUB_TOKEN": ALICE}) as terminal:
            terminal.until("by-chat")
            terminal.submit("hello")
            terminal.until("rate limited .user_weekly_rate_limited.", "Let the provider choose another")
            terminal.answer("y")
            terminal.until("chat/completions of alice", r"^auto ", **IDLE)
        assert copilot.called_models() == ["by-chat", "auto"]
