"""The questions of the Neovim plugin to the user, and the effects of the answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from tests.support.fake_copilot import ALICE, fake_copilot
from tests.support.neovim import running_neovim
from tests.support.toolchains import INSTALL_LIMIT_S

# The first test may have to install Neovim.
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
SESSION, PROJECT = "Allow for this session: all changes", "Always allow in this project: all changes"
CANCEL = "Cancel all calls of this answer"
CHOICES = ["Allow once", SESSION, PROJECT, "Reject", "Reject and explain", CANCEL]


def test_a_diff_is_shown_with_the_question_and_not_applied_before_the_answer(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[CREATE, {"text": "It is there."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('make a file')")
        nvim.until("#questions > 0")
        title = "May the agent create made.txt?"
        assert nvim.questions() == [{"prompt": title, "choices": CHOICES, "kind": "jumpseat_permission"}]
        assert nvim.lua(FLOAT) == {"title": f" {title} ", "lines": ["@@ -0,0 +1 @@", "+hello"]}
        assert nvim.lua(f"return {CHAT}:status()") == "waiting for your answer"
        assert not (nvim.folder / "made.txt").exists()
        nvim.lua("open_question('Allow once')")
        nvim.idle()
        assert (nvim.folder / "made.txt").read_text() == "hello\n"
        assert nvim.lua(FLOAT) is None
        assert nvim.text().endswith("It is there.")


def test_the_target_of_a_link_and_lines_like_a_header_are_shown_with_the_question(tmp_path: Path) -> None:
    text = "++ b/made.txt\n-- a/made.txt\n"
    create = {"tool_calls": [{"name": "create", "arguments": {"path": "linked/made.sql", "file_text": text}}]}
    with running_neovim(tmp_path, script=[create, {"text": "Done."}]) as nvim:
        outside = tmp_path / "outside"
        outside.mkdir()
        (nvim.folder / "linked").symlink_to(outside)
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('make a file')")
        nvim.until("#questions > 0")
        assert nvim.lua(FLOAT) == {
            "title": " May the agent create linked/made.sql? ",
            "lines": [
                f"# leads to {outside}/made.sql",
                "@@ -0,0 +1,2 @@",
                "+++ b/made.txt",
                "+-- a/made.txt",
            ],
        }
        nvim.lua("open_question('Reject')")
        nvim.idle()
        assert not (outside / "made.sql").exists()


@pytest.mark.parametrize("answer", ["Reject", ""])
def test_a_rejection_and_a_closed_question_run_nothing_and_end_the_turn(tmp_path: Path, answer: str) -> None:
    with running_neovim(tmp_path, script=[SHELL, {"text": "Never said."}]) as nvim:
        nvim.lua(OPEN)
        nvim.answer(answer)
        text = nvim.ask("go")
        assert "✗ denied: bash echo made > made.txt" in text
        assert "  │ The user rejected this tool call." in text
        assert "Never said." not in text
        assert not (nvim.folder / "made.txt").exists()


def test_a_rejection_with_an_explanation_reaches_the_model_and_the_turn_continues(tmp_path: Path) -> None:
    with running_neovim(
        tmp_path, script=[SHELL, {"text": "As you like.", "expect": {"tool_result": "Use tee"}}]
    ) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Reject and explain", "Use tee")
        assert nvim.ask("go").endswith("As you like.")
        assert not (nvim.folder / "made.txt").exists()


def test_cancelling_cancels_the_calls_that_wait_and_the_turn_continues(tmp_path: Path) -> None:
    calls = [call for turn in (SHELL, CREATE) for call in turn["tool_calls"]]
    script = [{"tool_calls": calls}, {"text": "Then not.", "expect": {"tool_result": "user cancelled"}}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer(CANCEL)
        assert nvim.ask("go").endswith("Then not.")
        assert len(nvim.questions()) == 1
        assert list(nvim.folder.glob("*.txt")) == []


def test_an_approval_for_the_session_covers_later_calls(tmp_path: Path) -> None:
    again = {"tool_calls": [{"name": "create", "arguments": {"path": "again.txt", "file_text": "hello\n"}}]}
    with running_neovim(tmp_path, script=[CREATE, again, {"text": "Both."}]) as nvim:
        nvim.lua(OPEN)
        nvim.answer(SESSION)
        assert nvim.ask("go").endswith("Both.")
        assert len(nvim.questions()) == 1
        assert (nvim.folder / "again.txt").exists()


def test_no_question_is_shown_in_insert_mode(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[CREATE, {"text": "Made."}]) as nvim:
        nvim.lua(OPEN)
        # Stays in insert mode until the next key: no typed key may answer.
        nvim.lua("vim.api.nvim_input('itext')")
        nvim.until("vim.fn.mode() == 'i'")
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("require('jumpseat.questions').open_questions() == 1")
        nvim.until(f"winbar({CHAT}.input):find('question pending, leave insert mode', 1, true)")
        assert nvim.questions() == []
        nvim.answer("Allow once")
        nvim.lua("vim.api.nvim_input('<Esc>')")
        nvim.idle()
        assert nvim.text().endswith("Made.")


def test_a_key_at_the_moment_a_question_appears_answers_nothing(tmp_path: Path) -> None:
    at_once = """
        local select, input = vim.ui.select, vim.ui.input
        vim.ui.select = function(items, options, choose)
          select(items, options, choose)
          if #questions == 1 then choose(items[1], 1) end
        end
        vim.ui.input = function(options, confirm)
          input(options, confirm)
          if #questions == 3 then confirm(options.default) end
        end
    """
    with running_neovim(tmp_path, script=[SHELL, {"text": "Made."}], before=at_once) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#questions == 2")
        assert nvim.questions()[0] == nvim.questions()[1]
        assert any("only just appeared" in text for text in nvim.notifications())
        nvim.answer("no command", "another command")
        nvim.lua("open_question('Edit the command first')")
        nvim.until("#questions == 4")
        assert nvim.questions()[2] == nvim.questions()[3]
        assert not (nvim.folder / "made.txt").exists()
        assert nvim.lua(f"return {CHAT}:status()") == "waiting for your answer"


def test_questions_are_shown_one_at_a_time(tmp_path: Path) -> None:
    both = {"tool_calls": [*CREATE["tool_calls"], *SHELL["tool_calls"]]}
    with running_neovim(tmp_path, script=[both, {"text": "Both."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#questions == 1")
        nvim.until(f"{CHAT}.session.asking >= 1")
        nvim.lua("open_question('Allow once')")
        nvim.until("#questions == 2")
        nvim.lua("open_question('Allow once')")
        nvim.idle()
        assert nvim.text().endswith("Both.")


def test_stopping_withdraws_the_question_and_a_late_answer_has_no_effect(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[CREATE, {"text": "Never said."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#questions == 1")
        nvim.lua("vim.cmd('JumpseatStop')")
        nvim.idle()
        assert nvim.lua(FLOAT) is None
        nvim.lua("open_question('Allow once')")
        assert nvim.ask("still there?").count("## You") == 2
        assert not (nvim.folder / "made.txt").exists()


def test_a_long_diff_can_be_viewed_before_the_answer(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(200))
    script = [
        {"tool_calls": [{"name": "create", "arguments": {"path": "long.txt", "file_text": text}}]},
        {"text": "Ok"},
    ]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#questions == 1")
        assert nvim.questions()[0]["choices"][-1] == "View all of it"
        nvim.lua("open_question('View all of it')")
        nvim.until("vim.api.nvim_win_get_config(0).relative == 'editor' or nil")
        nvim.answer("Allow once")
        nvim.keys("Gq")
        nvim.idle()
        assert len(nvim.questions()) == 2
        assert (nvim.folder / "long.txt").read_text() == text


def test_a_long_line_is_wrapped_in_the_preview(tmp_path: Path) -> None:
    command = "echo " + "harmless " * 30 + "; rm -rf ~"
    script = [{"tool_calls": [{"name": "bash", "arguments": {"command": command, "description": "Say it"}}]}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#questions == 1")
        shown = nvim.lua("""
            for _, win in ipairs(vim.api.nvim_list_wins()) do
              if vim.api.nvim_win_get_config(win).relative ~= '' then
                local height = vim.api.nvim_win_text_height(win, {}).all
                return { vim.wo[win].wrap, height == vim.api.nvim_win_get_height(win), height > 1 }
              end
            end
        """)
        assert shown == [True, True, True]


def test_a_picker_that_raises_an_error_denies_the_call_and_the_session_continues(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[CREATE, {"text": "I could not."}]) as nvim:
        nvim.lua(OPEN + " vim.ui.select = function() error('the picker is broken') end")
        assert nvim.ask("go").endswith("I could not.")
        assert "the picker is broken" in nvim.notifications()[0]
        assert not (nvim.folder / "made.txt").exists()


def test_a_question_of_the_model_is_answered_by_choice_or_free_text(tmp_path: Path) -> None:
    question = {"question": "Which colour?", "choices": ["Red", "Blue"]}
    script = [
        {"tool_calls": [{"name": "ask_user", "arguments": question}]},
        {"text": "{{last_tool_result}}.", "tool_calls": [{"name": "ask_user", "arguments": question}]},
        {"text": "{{last_tool_result}}!"},
    ]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Blue", "Other ...", "Green")
        text = nvim.ask("paint it")
        assert nvim.questions()[0]["prompt"] == "Which colour?"
        assert "Blue." in text
        assert "Green!" in text


def test_a_request_of_an_unknown_kind_is_shown_with_all_its_fields(tmp_path: Path) -> None:
    with running_neovim(tmp_path) as nvim:
        described = nvim.lua(
            "return { require('jumpseat.permissions').describe({ kind = 'teleport', to = 'Mars' }) }"
        )
        assert described[0] == "proceed with this request (teleport)?"
        assert any("Mars" in line for line in described[1])


def test_a_file_changed_by_the_agent_is_reloaded_unless_its_buffer_is_modified(tmp_path: Path) -> None:
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


def test_an_approval_in_the_project_covers_other_sessions(tmp_path: Path) -> None:
    script = [CREATE, {"text": "Made."}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer(PROJECT)
        assert nvim.ask("go").endswith("Made.")
        (nvim.folder / "made.txt").unlink()
        nvim.lua("vim.cmd('JumpseatNew')")
        assert nvim.ask("again").endswith("Made.")
        assert len(nvim.questions()) == 1


def test_a_command_can_be_edited_before_it_runs(tmp_path: Path) -> None:
    script = [SHELL, {"text": "{{last_tool_result}}"}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Edit the command first", "echo tea > made.txt")
        nvim.ask("go")
        assert nvim.questions()[1] == {"prompt": "Run: ", "default": "echo made > made.txt"}
        assert (nvim.folder / "made.txt").read_text() == "tea\n"


def test_cancelling_the_edit_of_a_command_shows_the_question_again(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[SHELL, {"text": "Made."}]) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Edit the command first", "", "Allow once")
        assert nvim.ask("go").endswith("Made.")
        assert (nvim.folder / "made.txt").read_text() == "made\n"


def test_the_question_about_an_mcp_tool_names_the_tool_the_server_and_the_arguments(tmp_path: Path) -> None:
    request = {
        "kind": "mcp",
        "serverName": "weather",
        "toolName": "forecast",
        "toolTitle": "",
        "readOnly": True,
        "args": {"city": "Berlin"},
    }
    with running_neovim(tmp_path) as nvim:
        describe = "local p = require('jumpseat.permissions') return { p.scope(...), p.describe(...) }"
        assert nvim.lua(describe, request) == [
            "forecast of weather",
            "call forecast of the MCP server weather?",
            ["# declared read-only by the server", "city: Berlin"],
            "",
        ]


def test_the_scope_of_an_approval_for_the_session_is_described(tmp_path: Path) -> None:
    shell = {"kind": "shell", "commands": [{"identifier": "git"}, {"identifier": "ls"}, {"identifier": "git"}]}
    with running_neovim(tmp_path) as nvim:
        scope = "return { require('jumpseat.permissions').scope(...) }"
        assert nvim.lua(scope, {**shell, "canOfferSessionApproval": True}) == ["git, ls"]
        assert nvim.lua(scope, {**shell, "canOfferSessionApproval": False}) == []
        assert nvim.lua(scope, {"kind": "url", "url": "https://docs.python.org:8443/3/"}) == [
            "all of docs.python.org"
        ]
        assert nvim.lua(scope, {"kind": "hook", "toolName": "bash"}) == []


def test_a_question_of_a_closed_chat_is_prefixed_with_its_name(tmp_path: Path) -> None:
    script = {"prompts": [{"when": "make", "turns": [CREATE, {"text": "Made."}]}, {"turns": [{"text": "Hi."}]}]}
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.lua("first = " + CHAT + " vim.cmd('JumpseatNew')")
        nvim.lua("first:send('make a file')")
        nvim.until("#questions == 1")
        assert nvim.questions()[0]["prompt"] == "[make a file] May the agent create made.txt?"
        assert nvim.ask("hello").endswith("Hi.")
        nvim.lua("open_question('Allow once')")
        nvim.until("first.session.state == 'idle'")
        assert (nvim.folder / "made.txt").exists()


def test_a_long_question_of_the_model_is_shown_in_a_preview(tmp_path: Path) -> None:
    question = "Which of these?\n\n- " + "one thing and another " * 6 + "\n- nothing"
    call = {"name": "ask_user", "arguments": {"question": question, "choices": ["One", "None"]}}
    with running_neovim(tmp_path, script=[{"tool_calls": [call]}, {"text": "Good."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#questions == 1")
        assert nvim.questions()[0]["prompt"] == "Your answer:"
        assert nvim.lua(FLOAT) == {"title": " The agent asks ", "lines": question.split("\n")}
        nvim.lua("open_question('One')")
        nvim.idle()
        assert nvim.lua(FLOAT) is None


PLAN = {
    "summary": "Two steps",
    "actions": ["autopilot", "interactive", "exit_only"],
    "recommendedAction": "interactive",
}


def test_a_plan_is_carried_out_in_the_chosen_mode(tmp_path: Path) -> None:
    script = [{"tool_calls": [{"name": "exit_plan_mode", "arguments": PLAN}]}, {"text": "{{last_tool_result}}"}]
    title = f"winbar({CHAT}.transcript.buf)"
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.lua("vim.cmd('JumpseatMode plan')")
        nvim.until(f"{title}:find(' · plan', 1, true)")
        nvim.answer("Carry it out interactively")
        assert "Plan approved!" in nvim.ask("make a plan")
        assert nvim.questions()[0]["choices"] == [
            "Carry it out interactively",
            "Carry it out on autopilot",
            "Leave plan mode and wait",
            "Reject and explain",
        ]
        nvim.until(f"not {title}:find(' · plan', 1, true)")


@pytest.mark.parametrize(
    ("answer", "called"),
    [("Yes, this time", ["by-chat", "auto"]), ("No, retry the same model", ["by-chat"])],
)
def test_a_rate_limited_model_is_replaced_if_the_user_agrees(
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
            (shown_question,) = nvim.questions()
            assert shown_question["prompt"] == (
                "The model is rate limited (user_weekly_rate_limited). Let its provider choose another?"
            )
            assert list(dict.fromkeys(copilot.called_models())) == called
            assert nvim.lua(f"return {CHAT}.session.model_shown") == called[-1]


def test_a_plan_is_rejected_with_an_explanation(tmp_path: Path) -> None:
    script = [{"tool_calls": [{"name": "exit_plan_mode", "arguments": PLAN}]}, {"text": "{{last_tool_result}}"}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer("  plan: make a plan first and ask for its approval")
        nvim.lua("vim.cmd('JumpseatMode')")
        nvim.until(f"{CHAT}.session.mode == 'plan'")
        nvim.answer("Reject and explain", "Three steps")
        assert nvim.ask("make a plan").endswith("still in plan mode. The user says: Three steps")
