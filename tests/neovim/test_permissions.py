"""What the plugin asks the user, how, and what comes of the answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from tests.support.fake_copilot import ALICE, fake_copilot
from tests.support.neovim import running_neovim
from tests.support.toolchains import INSTALL_LIMIT_S

# The first of them may have to fetch a Neovim.
pytestmark = pytest.mark.timeout(INSTALL_LIMIT_S + 60)

OPEN = "require('jumpseat').open()"
CHAT = "require('jumpseat').chat()"
FLOAT = """
    for _, win in ipairs(vim.api.nvim_list_wins()) do
      local config = vim.api.nvim_win_get_config(win)
      if config.relative ~= '' then
        return { title = config.title[1][1], lines = lines(vim.api.nvim_win_get_buf(win)) }
      end
    end
"""
CREATE = {"tool_calls": [{"name": "create", "arguments": {"path": "made.txt", "file_text": "hello\n"}}]}
SHELL = {
    "tool_calls": [{"name": "bash", "arguments": {"command": "echo made > made.txt", "description": "Make it"}}]
}
SESSION, PROJECT = "Allow for this session: all changes", "Allow in this project, for good: all changes"
CHOICES = ["Allow once", SESSION, PROJECT, "Reject", "Reject, and tell why"]


def test_a_diff_is_shown_with_the_question_and_nothing_happens_before_the_answer(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[CREATE, {"text": "It is there."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('make a file')")
        nvim.until("#asked > 0")
        title = "May the agent create made.txt?"
        assert nvim.asked() == [{"prompt": title, "choices": CHOICES, "kind": "jumpseat_permission"}]
        assert nvim.lua(FLOAT) == {"title": f" {title} ", "lines": ["@@ -0,0 +1 @@", "+hello"]}
        assert nvim.lua(f"return {CHAT}:status()") == "waits for your answer"
        assert not (nvim.folder / "made.txt").exists()
        nvim.lua("open_question('Allow once')")
        nvim.idle()
        assert (nvim.folder / "made.txt").read_text() == "hello\n"
        assert nvim.lua(FLOAT) is None
        assert nvim.text().endswith("It is there.")


@pytest.mark.parametrize("answer", ["Reject", ""])
def test_a_rejection_and_a_closed_question_run_nothing_and_end_the_turn(tmp_path: Path, answer: str) -> None:
    with running_neovim(tmp_path, script=[SHELL, {"text": "Never said."}]) as nvim:
        nvim.lua(OPEN)
        nvim.answer(answer)
        text = nvim.ask("go")
        assert "✗ not allowed: bash echo made > made.txt" in text
        assert "  │ The user rejected this tool call." in text
        assert "Never said." not in text
        assert not (nvim.folder / "made.txt").exists()


def test_a_rejection_with_a_reason_is_read_by_the_model_which_goes_on(tmp_path: Path) -> None:
    with running_neovim(
        tmp_path, script=[SHELL, {"text": "As you like.", "expect": {"tool_result": "Use tee"}}]
    ) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Reject, and tell why", "Use tee")
        assert nvim.ask("go").endswith("As you like.")
        assert not (nvim.folder / "made.txt").exists()


def test_what_is_allowed_for_the_session_is_not_asked_again(tmp_path: Path) -> None:
    again = {"tool_calls": [{"name": "create", "arguments": {"path": "again.txt", "file_text": "hello\n"}}]}
    with running_neovim(tmp_path, script=[CREATE, again, {"text": "Both."}]) as nvim:
        nvim.lua(OPEN)
        nvim.answer(SESSION)
        assert nvim.ask("go").endswith("Both.")
        assert len(nvim.asked()) == 1
        assert (nvim.folder / "again.txt").exists()


def test_nobody_is_asked_while_typing(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[CREATE, {"text": "Made."}]) as nvim:
        nvim.lua(OPEN)
        # In insert mode until the next key: nothing that is typed may answer.
        nvim.lua("vim.api.nvim_input('itext')")
        nvim.until("vim.fn.mode() == 'i'")
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("require('jumpseat.questions').open_questions() == 1")
        nvim.until(f"winbar({CHAT}.input):find('has a question, leave insert mode', 1, true)")
        assert nvim.asked() == []
        nvim.answer("Allow once")
        nvim.lua("vim.api.nvim_input('<Esc>')")
        nvim.idle()
        assert nvim.text().endswith("Made.")


def test_questions_come_one_at_a_time(tmp_path: Path) -> None:
    both = {"tool_calls": [*CREATE["tool_calls"], *SHELL["tool_calls"]]}
    with running_neovim(tmp_path, script=[both, {"text": "Both."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#asked == 1")
        nvim.until(f"{CHAT}.session.asking >= 1")
        nvim.lua("open_question('Allow once')")
        nvim.until("#asked == 2")
        nvim.lua("open_question('Allow once')")
        nvim.idle()
        assert nvim.text().endswith("Both.")


def test_stopping_takes_the_question_off_the_screen_and_a_late_answer_does_nothing(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[CREATE, {"text": "Never said."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#asked == 1")
        nvim.lua("vim.cmd('JumpseatStop')")
        nvim.idle()
        assert nvim.lua(FLOAT) is None
        nvim.lua("open_question('Allow once')")
        assert nvim.ask("still there?").count("## You") == 2
        assert not (nvim.folder / "made.txt").exists()


def test_a_long_diff_can_be_walked_through_before_the_answer(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(200))
    script = [
        {"tool_calls": [{"name": "create", "arguments": {"path": "long.txt", "file_text": text}}]},
        {"text": "Ok"},
    ]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#asked == 1")
        assert nvim.asked()[0]["choices"][-1] == "Look at all of it"
        nvim.lua("open_question('Look at all of it')")
        assert nvim.lua("return vim.api.nvim_win_get_config(0).relative") == "editor"
        nvim.answer("Allow once")
        nvim.keys("Gq")
        nvim.idle()
        assert len(nvim.asked()) == 2
        assert (nvim.folder / "long.txt").read_text() == text


def test_nothing_of_a_long_line_is_hidden_beyond_the_edge(tmp_path: Path) -> None:
    command = "echo " + "harmless " * 30 + "; rm -rf ~"
    script = [{"tool_calls": [{"name": "bash", "arguments": {"command": command, "description": "Say it"}}]}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#asked == 1")
        shown = nvim.lua("""
            for _, win in ipairs(vim.api.nvim_list_wins()) do
              if vim.api.nvim_win_get_config(win).relative ~= '' then
                local height = vim.api.nvim_win_text_height(win, {}).all
                return { vim.wo[win].wrap, height == vim.api.nvim_win_get_height(win), height > 1 }
              end
            end
        """)
        assert shown == [True, True, True]


def test_a_picker_that_breaks_denies_and_the_session_goes_on(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[CREATE, {"text": "I could not."}]) as nvim:
        nvim.lua(OPEN + " vim.ui.select = function() error('the picker is broken') end")
        assert nvim.ask("go").endswith("I could not.")
        assert "the picker is broken" in nvim.notifications()[0]
        assert not (nvim.folder / "made.txt").exists()


def test_a_question_of_the_model_is_answered_by_choice_or_in_words(tmp_path: Path) -> None:
    question = {"question": "Which colour?", "choices": ["Red", "Blue"]}
    script = [
        {"tool_calls": [{"name": "ask_user", "arguments": question}]},
        {"text": "{{last_tool_result}}.", "tool_calls": [{"name": "ask_user", "arguments": question}]},
        {"text": "{{last_tool_result}}!"},
    ]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Blue", "Something else ...", "Green")
        text = nvim.ask("paint it")
        assert nvim.asked()[0]["prompt"] == "Which colour?"
        assert "Blue." in text
        assert "Green!" in text


def test_a_request_of_an_unknown_kind_is_shown_as_it_came(tmp_path: Path) -> None:
    with running_neovim(tmp_path) as nvim:
        described = nvim.lua(
            "return { require('jumpseat.permissions').describe({ kind = 'teleport', to = 'Mars' }) }"
        )
        assert described[0] == "do this (teleport)?"
        assert any("Mars" in line for line in described[1])


def test_a_file_that_the_agent_changes_is_read_again_where_nothing_is_unsaved(tmp_path: Path) -> None:
    edit = {"name": "edit", "arguments": {"path": "a.txt", "old_str": "old", "new_str": "new"}}
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("old\n")
    (tmp_path / "project" / "b.txt").write_text("mine\n")
    with running_neovim(tmp_path, script=[{"tool_calls": [edit]}, {"text": "Changed."}]) as nvim:
        nvim.lua("vim.cmd.edit('b.txt') vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'unsaved' })")
        nvim.lua("vim.o.hidden = true vim.cmd.edit('a.txt')" + OPEN)
        nvim.answer("Allow once")
        nvim.ask("go")
        assert nvim.lua("return { lines(vim.fn.bufnr('a.txt')), lines(vim.fn.bufnr('b.txt')) }") == [
            ["new"],
            ["unsaved"],
        ]


def test_what_is_allowed_in_the_project_is_not_asked_in_another_session(tmp_path: Path) -> None:
    script = [CREATE, {"text": "Made."}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer(PROJECT)
        assert nvim.ask("go").endswith("Made.")
        (nvim.folder / "made.txt").unlink()
        nvim.lua("vim.cmd('JumpseatNew')")
        assert nvim.ask("again").endswith("Made.")
        assert len(nvim.asked()) == 1


def test_a_command_is_changed_before_it_runs_and_the_model_is_told(tmp_path: Path) -> None:
    script = [SHELL, {"text": "{{last_tool_result}}"}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Change it first", "echo tea > made.txt")
        nvim.ask("go")
        assert nvim.asked()[1] == {"prompt": "Run: ", "default": "echo made > made.txt"}
        assert (nvim.folder / "made.txt").read_text() == "tea\n"


def test_a_command_that_is_not_changed_after_all_is_asked_about_again(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[SHELL, {"text": "Made."}]) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Change it first", "", "Allow once")
        assert nvim.ask("go").endswith("Made.")
        assert (nvim.folder / "made.txt").read_text() == "made\n"


def test_a_call_of_an_mcp_server_names_the_tool_the_server_and_the_arguments(tmp_path: Path) -> None:
    request = {
        "kind": "mcp",
        "serverName": "weather",
        "toolName": "forecast",
        "toolTitle": "",
        "readOnly": True,
        "args": {"city": "Berlin"},
    }
    with running_neovim(tmp_path) as nvim:
        asked = "local p = require('jumpseat.permissions') return { p.scope(...), p.describe(...) }"
        assert nvim.lua(asked, request) == [
            "forecast of weather",
            "call forecast of the MCP server weather?",
            ["# the server says that it only reads", "city: Berlin"],
            "",
        ]


def test_what_an_approval_for_the_session_covers_is_said(tmp_path: Path) -> None:
    shell = {"kind": "shell", "commands": [{"identifier": "git"}, {"identifier": "ls"}, {"identifier": "git"}]}
    with running_neovim(tmp_path) as nvim:
        scope = "return { require('jumpseat.permissions').scope(...) }"
        assert nvim.lua(scope, {**shell, "canOfferSessionApproval": True}) == ["git, ls"]
        assert nvim.lua(scope, {**shell, "canOfferSessionApproval": False}) == []
        assert nvim.lua(scope, {"kind": "url", "url": "https://docs.python.org:8443/3/"}) == [
            "all of docs.python.org"
        ]
        assert nvim.lua(scope, {"kind": "hook", "toolName": "bash"}) == []


def test_a_question_of_a_chat_that_is_not_open_says_whose_it_is(tmp_path: Path) -> None:
    script = {"prompts": [{"when": "make", "turns": [CREATE, {"text": "Made."}]}, {"turns": [{"text": "Hi."}]}]}
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.lua("first = " + CHAT + " vim.cmd('JumpseatNew')")
        nvim.lua("first:send('make a file')")
        nvim.until("#asked == 1")
        assert nvim.asked()[0]["prompt"] == "[make a file] May the agent create made.txt?"
        assert nvim.ask("hello").endswith("Hi.")
        nvim.lua("open_question('Allow once')")
        nvim.until("first.session.state == 'idle'")
        assert (nvim.folder / "made.txt").exists()


def test_a_long_question_of_the_model_is_shown_whole_beside_its_choices(tmp_path: Path) -> None:
    question = "Which of these?\n\n- " + "one thing and another " * 6 + "\n- nothing"
    asked = {"name": "ask_user", "arguments": {"question": question, "choices": ["One", "None"]}}
    with running_neovim(tmp_path, script=[{"tool_calls": [asked]}, {"text": "Good."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#asked == 1")
        assert nvim.asked()[0]["prompt"] == "Your answer:"
        assert nvim.lua(FLOAT) == {"title": " The agent asks ", "lines": question.split("\n")}
        nvim.lua("open_question('One')")
        nvim.idle()
        assert nvim.lua(FLOAT) is None


PLAN = {
    "summary": "Two steps",
    "actions": ["autopilot", "interactive", "exit_only"],
    "recommendedAction": "interactive",
}


def test_a_plan_is_carried_out_in_the_way_that_is_chosen(tmp_path: Path) -> None:
    script = [{"tool_calls": [{"name": "exit_plan_mode", "arguments": PLAN}]}, {"text": "{{last_tool_result}}"}]
    title = f"winbar({CHAT}.transcript.buf)"
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.lua("vim.cmd('JumpseatMode plan')")
        nvim.until(f"{title}:find(' · plan', 1, true)")
        nvim.answer("Carry it out, and ask me")
        assert "Plan approved!" in nvim.ask("make a plan")
        assert nvim.asked()[0]["choices"] == [
            "Carry it out, and ask me",
            "Carry it out without stopping",
            "Leave plan mode, and wait",
            "Reject, and tell why",
        ]
        nvim.until(f"not {title}:find(' · plan', 1, true)")


@pytest.mark.parametrize(
    ("answer", "called"),
    [("Yes, for now", ["by-chat", "auto"]), ("No, try it again", ["by-chat"])],
)
def test_a_model_that_is_rate_limited_gives_way_where_the_user_says_so(
    tmp_path: Path, answer: str, called: list[str]
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text("[retry]\nattempts = 1\n")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(fake_copilot()) as copilot:
        copilot.models.append({"id": "auto"})
        copilot.limited["by-chat"] = "user_weekly_rate_limited"
        login = {**copilot.environ, "COPILOT_GITHUB_TOKEN": ALICE}
        with running_neovim(tmp_path, environ=login, options={"model": "by-chat"}) as nvim:
            nvim.lua(OPEN)
            nvim.answer(answer)
            nvim.ask("hello")
            (asked,) = nvim.asked()
            assert asked["prompt"] == (
                "The model is rate limited (user_weekly_rate_limited). Let its provider choose another?"
            )
            assert list(dict.fromkeys(copilot.called())) == called
            assert nvim.lua(f"return {CHAT}.session.model_shown") == called[-1]


def test_a_plan_is_sent_back_with_a_reason(tmp_path: Path) -> None:
    script = [{"tool_calls": [{"name": "exit_plan_mode", "arguments": PLAN}]}, {"text": "{{last_tool_result}}"}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer("  plan: make a plan first, and ask me what I think of it")
        nvim.lua("vim.cmd('JumpseatMode')")
        nvim.until(f"{CHAT}.session.mode == 'plan'")
        nvim.answer("Reject, and tell why", "Three steps")
        assert nvim.ask("make a plan").endswith("still in plan mode. The user says: Three steps")
