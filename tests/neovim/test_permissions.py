"""What the plugin asks the user, how, and what comes of the answers."""

from __future__ import annotations

from pathlib import Path

import pytest

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
CHOICES = ["Allow once", "Allow for this session", "Reject", "Reject, and tell why"]


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
        nvim.answer("Allow for this session")
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
        nvim.until("require('jumpseat.permissions').open_questions() == 1")
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
