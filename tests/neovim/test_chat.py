"""The chat of the Neovim plugin: prompts, the transcript, and the state of the user's windows and drafts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.neovim import running_neovim
from tests.support.toolchains import INSTALL_LIMIT_S

# The first test may have to install Neovim.
pytestmark = pytest.mark.timeout(INSTALL_LIMIT_S + 60)

OPEN = "require('jumpseat').open()"
CHAT = "require('jumpseat').chat()"


def calls(name: str, text: str = "", **arguments: object) -> dict[str, object]:
    return {"text": text, "tool_calls": [{"name": name, "arguments": arguments}]}


def test_a_turn_shows_prompt_reasoning_tool_calls_and_answer_in_order(tmp_path: Path) -> None:
    script = [
        {**calls("nvim_buffers", "Let me look."), "reasoning": "A list would help."},
        {"deltas": ["Nothing ", "is ", "open."]},
    ]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        assert nvim.ask("What is open?").splitlines() == [
            "## You",
            "",
            "What is open?",
            "",
            "## Agent",
            "",
            "∴ thought",
            "  │ A list would help.",
            "",
            "Let me look.",
            "",
            "✓ nvim_buffers",
            "  │ No file is open in the editor.",
            "",
            "Nothing is open.",
        ]
        assert nvim.notifications() == []


def test_details_are_folded_in_every_window_that_shows_the_chat(tmp_path: Path) -> None:
    script = [calls("nvim_buffers"), {"text": "Done"}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        shown = nvim.ask("go").splitlines()
        head = next(number for number, line in enumerate(shown, 1) if line.startswith("✓"))
        folded = f"""
            local buf = {CHAT}.transcript.buf
            local win = vim.fn.bufwinid(buf)
            return vim.api.nvim_win_call(win, function()
              return {{ vim.fn.foldclosed({head}), vim.fn.foldclosedend({head}), vim.fn.foldclosed({head} - 1) }}
            end)
        """
        assert nvim.lua(folded) == [head, head + 1, -1]
        nvim.lua(f"{CHAT}:close() {OPEN}")
        assert nvim.lua(folded) == [head, head + 1, -1]
        nvim.lua(f"vim.api.nvim_set_current_win(vim.fn.bufwinid({CHAT}.transcript.buf)) vim.fn.cursor({head}, 1)")
        nvim.keys("<Tab>")
        assert nvim.lua(folded) == [-1, -1, -1]


def test_streaming_leaves_the_draft_its_undo_and_the_cursor_unchanged(tmp_path: Path) -> None:
    script = {
        "prompts": [{"when": "long", "turns": [{"text": "line\n" * 80}]}, {"turns": [{"text": "More.\n\nText."}]}]
    }
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.ask("a long one")
        nvim.keys("ione<Esc>")
        nvim.keys("otwo<Esc>")
        nvim.lua(f"vim.api.nvim_win_set_cursor(vim.fn.bufwinid({CHAT}.transcript.buf), {{ 3, 0 }})")
        nvim.ask("another")
        assert nvim.lua(f"return {CHAT}:draft()") == "one\ntwo"
        assert nvim.lua(f"return vim.api.nvim_win_get_cursor(vim.fn.bufwinid({CHAT}.transcript.buf))") == [3, 0]
        nvim.keys("u")
        assert nvim.lua(f"return {CHAT}:draft()") == "one"
        before = nvim.text()
        nvim.lua(f"vim.api.nvim_set_current_win(vim.fn.bufwinid({CHAT}.transcript.buf)) pcall(vim.cmd.undo)")
        assert nvim.text() == before


def test_a_window_at_the_end_follows_the_stream(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[{"text": "line\n" * 80 + "the end"}]) as nvim:
        nvim.lua(OPEN)
        last = len(nvim.ask("go").splitlines())
        row = nvim.lua(f"return vim.api.nvim_win_get_cursor(vim.fn.bufwinid({CHAT}.transcript.buf))[1]")
        assert row == last > 80


def test_the_keys_send_recall_and_stop(tmp_path: Path) -> None:
    script = {
        "prompts": [
            {"when": "forever", "turns": [{"text": "I begin", "hang": True}]},
            {"turns": [{"text": "Yes."}]},
        ]
    }
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.keys("ifirst<C-s>")
        nvim.idle()
        nvim.keys("iforever<Esc><CR>")
        nvim.wait_for_text("I begin")
        assert nvim.lua(f"return {CHAT}:status()") == "working"
        assert nvim.lua(f"return winbar({CHAT}.input)").rstrip().endswith("<C-c>: stop")
        nvim.keys("<C-c>")
        nvim.idle()
        assert nvim.text().endswith("I begin\n\n> stopped")
        nvim.keys("<C-Up>")
        assert nvim.lua(f"return {CHAT}:draft()") == "forever"
        nvim.keys("<C-Up>")
        assert nvim.lua(f"return {CHAT}:draft()") == "first"
        nvim.keys("<C-Up><C-Down><C-Down>")
        assert nvim.lua(f"return {CHAT}:draft()") == ""
        nvim.keys("ilast<Esc><CR>")
        nvim.idle()
        assert nvim.text().endswith("## You\n\nlast\n\n## Agent\n\nYes.")


def test_a_prompt_sent_while_another_runs_is_queued(tmp_path: Path) -> None:
    script = {
        "prompts": [
            {"when": "one", "turns": [calls("wait"), {"text": "First."}]},
            {"when": "two", "turns": [{"text": "Second."}]},
        ]
    }
    tools = """
        test_tools = {
          wait = {
            description = 'Waits', ask = false, async = true,
            run = function(_, _, done) release = done end,
          },
        }
    """
    with running_neovim(tmp_path, script=script, before=tools) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('one')")
        nvim.until("release ~= nil or nil")
        assert nvim.lua(f"return {CHAT}:status()") == "running wait"
        nvim.lua("require('jumpseat').send('two') release('now')")
        nvim.wait_for_text("Second.")
        nvim.idle()
        text = nvim.text()
        assert text.index("First.") < text.index("two") < text.index("Second.")


def test_the_lines_of_a_range_are_attached_to_the_prompt(tmp_path: Path) -> None:
    script = [{"text": "I see.", "expect": {"user": "local b = 2"}}]
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "some.lua").write_text("local a = 1\nlocal b = 2\nlocal c = 3\n")
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua("vim.cmd.edit('some.lua') vim.cmd('2,3Jumpseat What is this?')")
        nvim.wait_for_text("I see.")
        nvim.idle()
        assert "> some.lua:2-3\n\nWhat is this?" in nvim.text()


def test_an_unclosed_code_block_is_closed_at_the_end_of_its_message(tmp_path: Path) -> None:
    script = [calls("nvim_buffers", "Look:\n\n```lua\nprint(1)\n\n"), {"text": "~~~\ncode"}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        text = nvim.ask("go")
        assert "```lua\nprint(1)\n```\n\n✓ nvim_buffers" in text
        assert text.endswith("~~~\ncode\n~~~")


def test_an_error_of_the_model_is_shown_and_the_next_prompt_works(tmp_path: Path) -> None:
    script = {
        "prompts": [
            {"when": "fail", "turns": [{"errors": [{"status": 401, "message": "The key is not valid"}]}]},
            {"turns": [{"text": "Better."}]},
        ]
    }
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        assert "> ✗ HTTP 401" in nvim.ask("fail")
        assert nvim.ask("again").endswith("## You\n\nagain\n\n## Agent\n\nBetter.")


def test_thousands_of_deltas_with_wide_and_combined_characters_are_written_unchanged(tmp_path: Path) -> None:
    pieces = [f"{number} 日本 é 🙂{chr(10) if number % 10 == 0 else ' '}" for number in range(3000)]
    with running_neovim(tmp_path, script=[{"deltas": pieces}]) as nvim:
        nvim.lua(OPEN)
        assert nvim.ask("go").partition("## Agent\n\n")[2] == "".join(pieces).rstrip("\n")


def test_closing_the_windows_leaves_the_session_running(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[{"text": "Here."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("vim.cmd('JumpseatToggle')")
        assert nvim.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 1
        assert nvim.ask("Are you there?").endswith("Here.")
        nvim.lua("vim.cmd('JumpseatToggle')")
        assert nvim.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 3


def test_wiping_out_the_chat_stops_it_and_a_new_one_works(tmp_path: Path) -> None:
    script = [calls("nvim_buffers", "Look."), {"text": "I begin", "hang": True}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.wait_for_text("I begin")
        nvim.lua("first = " + CHAT + " vim.cmd('bwipeout! ' .. first.transcript.buf)")
        nvim.until("first.session.state == 'idle'")
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('again')")
        nvim.wait_for_text("## You\n\nagain")
        nvim.wait_for_text("I begin")
        nvim.lua("vim.cmd('bwipeout! ' .. " + CHAT + ".input)" + OPEN)
        assert nvim.lua("return " + CHAT + ":is_open()")
        assert nvim.notifications() == []


def test_every_position_of_the_window_works(tmp_path: Path) -> None:
    for position in ("right", "left", "top", "bottom", "tab"):
        with running_neovim(tmp_path, options={"window": {"position": position}}) as nvim:
            nvim.lua(OPEN)
            assert nvim.lua(f"return {CHAT}:is_open()")
            nvim.keys("q")
            assert not nvim.lua(f"return {CHAT}:is_open()")


def test_a_new_chat_has_a_session_of_its_own(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[{"text": "One."}, {"text": "Two."}]) as nvim:
        nvim.lua(OPEN)
        nvim.ask("first")
        first = nvim.lua(f"return {CHAT}.session.id")
        nvim.lua("vim.cmd('JumpseatNew')")
        assert nvim.ask("second").endswith("One.")
        assert nvim.lua(f"return {CHAT}.session.id") != first
        nvim.lua("vim.cmd('JumpseatResume ' .. (...))", first)
        assert nvim.ask("third").endswith("Two.")


WAIT = """
    test_tools = {
      wait = {
        description = 'Waits', ask = false, async = true,
        run = function(_, _, done) release = done end,
      },
    }
"""


def test_a_steering_prompt_reaches_the_model_before_its_next_answer(tmp_path: Path) -> None:
    script = [calls("wait"), {"text": "Blue, then.", "expect": {"user": "rather blue"}}]
    with running_neovim(tmp_path, script=script, before=WAIT) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('paint it red')")
        nvim.until("release ~= nil or nil")
        nvim.keys("irather blue<Esc>g<CR>")
        nvim.until(f"winbar({CHAT}.input):find('next: rather blue', 1, true)")
        nvim.lua("release('now')")
        nvim.idle()
        assert nvim.text().endswith("## You\n\nrather blue\n\n## Agent\n\nBlue, then.")
        assert "next:" not in nvim.lua(f"return winbar({CHAT}.input)")


def test_queued_prompts_return_to_the_prompt_buffer_when_the_turn_is_stopped(tmp_path: Path) -> None:
    script = {"prompts": [{"when": "one", "turns": [calls("wait")]}, {"turns": [{"text": "Never said."}]}]}
    with running_neovim(tmp_path, script=script, before=WAIT) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('one')")
        nvim.until("release ~= nil or nil")
        nvim.lua("require('jumpseat').send('two') require('jumpseat').send('three')")
        nvim.until(f"winbar({CHAT}.input):find('next: two +1', 1, true)")
        nvim.keys("<C-c>")
        nvim.until(f"{CHAT}:draft() == 'two\\n\\nthree'")
        nvim.idle()
        assert "Never said." not in nvim.text()


def test_a_returned_prompt_does_not_replace_a_draft(tmp_path: Path) -> None:
    script = {"prompts": [{"when": "one", "turns": [calls("wait")]}, {"turns": [{"text": "Never said."}]}]}
    with running_neovim(tmp_path, script=script, before=WAIT) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('one')")
        nvim.until("release ~= nil or nil")
        nvim.lua("require('jumpseat').send('two')")
        nvim.until(f"#{CHAT}.session.queue == 1 and {CHAT}.session.queue[1].id")
        nvim.keys("ia draft<Esc>")
        nvim.lua("vim.cmd('JumpseatStop')")
        nvim.wait_for_text("> ! not sent:\n> two")
        assert nvim.lua(f"return {CHAT}:draft()") == "a draft"


def test_commands_and_errors_are_not_parsed_as_markdown(tmp_path: Path) -> None:
    script = [
        calls("glob", "See `**here**`:", pattern="**/*.[ch] `a` **b**"),
        {"errors": [{"status": 400, "message": "turns[0](x) is `wrong`"}]},
        {"text": "Fine."},
    ]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Allow once")
        text = nvim.ask("look at **this**")
        assert "**/*.[ch] `a` **b**" in text
        # Later messages and changes above move the regions of both.
        nvim.ask("and `that`")
        concealed = """
            local buf = require('jumpseat').chat().transcript.buf
            vim.treesitter.get_parser(buf):parse(true)
            local found = {}
            for row, line in ipairs(lines(buf)) do
              for column = 1, #line do
                for _, one in ipairs(vim.treesitter.get_captures_at_pos(buf, row - 1, column - 1)) do
                  if one.metadata.conceal or one.capture == 'conceal' then
                    found[row] = (found[row] or '') .. line:sub(column, column)
                    break
                  end
                end
              end
            end
            local shown = {}
            for row, characters in pairs(found) do
              table.insert(shown, { lines(buf)[row], characters })
            end
            table.sort(shown, function(a, b) return a[1] < b[1] end)
            return shown
        """
        assert nvim.lua(concealed) == [
            ["See `**here**`:", "``"],
            ["and `that`", "``"],
            ["look at **this**", "****"],
        ]


def test_an_edit_is_shown_as_its_diff(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("old\n")
    script = [calls("edit", path="a.txt", old_str="old", new_str="new"), {"text": "Changed."}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Allow once")
        assert "✓ edit a.txt\n  │ @@ -1 +1 @@\n  │ -old\n  │ +new\n\nChanged." in nvim.ask("go")


def test_a_slash_command_is_run_and_its_output_shown(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[{"text": "Hello."}]) as nvim:
        nvim.lua(OPEN)
        nvim.ask("hello")
        nvim.lua("require('jumpseat').send('/usage')")
        nvim.wait_for_text("> scripted: 1 calls,")
        nvim.lua("require('jumpseat').send('/help')")
        nvim.wait_for_text("> /usage  ")
        nvim.wait_for_text("> /resume  ")
        nvim.lua("require('jumpseat').send('/model other')")
        nvim.until(f"winbar({CHAT}.transcript.buf):find('other', 1, true)")
        nvim.lua("require('jumpseat').send('/frobnicate')")
        nvim.wait_for_text("> ✗ unknown command '/frobnicate'; /help lists the commands")
        assert nvim.text().count("## You") == 1


def test_a_command_can_be_a_prompt_or_offer_a_choice(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[{"text": "No faults."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('/permissions')")
        nvim.wait_for_text("> /permissions allow-all  Approve all calls")
        nvim.lua("require('jumpseat').send('/review the tests')")
        nvim.wait_for_text("No faults.")
        assert "/review the tests" in nvim.text()
        assert "Change nothing" not in nvim.text()


def test_a_summary_of_the_conversation_is_reported(tmp_path: Path) -> None:
    script = [{"text": "Hello."}, {"text": "<overview>A greeting.</overview>"}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.ask("hello")
        nvim.lua("require('jumpseat').send('/compact')")
        nvim.wait_for_text("> conversation summarized: context reduced from about ")
        nvim.wait_for_text("> The conversation was compacted from about ")


def test_a_prompt_may_begin_with_a_path(tmp_path: Path) -> None:
    with running_neovim(
        tmp_path, script=[{"text": "A file.", "expect": {"user": "/etc/hosts what is it?"}}]
    ) as nvim:
        nvim.lua(OPEN)
        assert nvim.ask("/etc/hosts what is it?").endswith("A file.")


def test_commands_and_files_are_completed_in_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "some.lua").write_text("")
    with running_neovim(tmp_path, script=[{"text": "Hello."}]) as nvim:
        nvim.lua(OPEN)
        nvim.ask("hello")
        nvim.keys("i/us<C-x><C-o><Esc>")
        assert nvim.lua(f"return {CHAT}:draft()") == "/usage"
        nvim.keys("cc/mod<C-x><C-o><C-n><Esc>")
        assert nvim.lua(f"return {CHAT}:draft()") == "/model"
        nvim.keys("ccsee @so<C-x><C-o><Esc>")
        assert nvim.lua(f"return {CHAT}:draft()") == "see @some.lua"


def test_a_file_mentioned_with_an_at_sign_is_attached(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "some.lua").write_text("local a = 1\n")
    script = [{"text": "I see.", "expect": {"user": "some.lua"}}]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        text = nvim.ask("What is in @some.lua, and who is me@home or @nobody?")
        assert "## You\n\n> some.lua\n\nWhat is in @some.lua," in text
        assert text.endswith("I see.")


def test_two_chats_run_at_once_without_mixing(tmp_path: Path) -> None:
    script = {
        "prompts": [
            {"when": "one", "turns": [calls("wait", "First begins."), {"text": "First ends."}]},
            {"turns": [{"text": "Second."}]},
        ]
    }
    with running_neovim(tmp_path, script=script, before=WAIT) as nvim:
        nvim.lua(OPEN)
        nvim.lua("first = " + CHAT + " require('jumpseat').send('one')")
        nvim.until("release ~= nil or nil")
        nvim.lua("vim.cmd('JumpseatNew')")
        assert nvim.ask("hello").endswith("Second.")
        nvim.lua("release('now')")
        nvim.until("first.session.state == 'idle'")
        nvim.lua("vim.cmd('JumpseatResume ' .. first.session.id)")
        assert nvim.text().endswith("First ends.")
        assert "Second." not in nvim.text()


def test_a_prompt_on_the_command_line_steers_with_a_bang(tmp_path: Path) -> None:
    script = [calls("wait"), {"text": "Blue, then.", "expect": {"user": "rather blue"}}]
    with running_neovim(tmp_path, script=script, before=WAIT) as nvim:
        nvim.lua("vim.cmd('Jumpseat paint it red')")
        nvim.until("release ~= nil or nil")
        nvim.lua("vim.cmd('Jumpseat! rather blue')")
        nvim.until(f"#{CHAT}.session.queue == 1 and {CHAT}.session.queue[1].id")
        nvim.lua("release('now')")
        nvim.idle()
        assert nvim.text().endswith("## You\n\nrather blue\n\n## Agent\n\nBlue, then.")


def test_the_prompts_of_a_resumed_session_can_be_recalled(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[{"text": "Hello."}]) as nvim:
        nvim.lua(OPEN)
        nvim.ask("remember me")
        session = nvim.lua(f"return {CHAT}.session.id")
    with running_neovim(tmp_path) as nvim:
        nvim.lua("vim.cmd('JumpseatResume ' .. (...))", session)
        nvim.wait_for_text("Hello.")
        nvim.keys("<C-Up>")
        assert nvim.lua(f"return {CHAT}:draft()") == "remember me"


def test_words_search_the_sessions_to_resume(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script={"prompts": [{"turns": [{"text": "Hello."}]}]}) as nvim:
        nvim.lua(OPEN)
        for prompt in ("paint the red door", "paint the blue door", "write an essay"):
            nvim.ask(prompt)
            nvim.lua("vim.cmd('JumpseatNew')")
        # A single match is resumed at once.
        nvim.lua("vim.cmd('JumpseatResume ' .. (...))", "DOOR red")
        nvim.wait_for_text("paint the red door")
        # Several are offered.
        nvim.lua("vim.ui.select = function(items, _, done) offered = items done(nil) end")
        nvim.lua("vim.cmd('JumpseatResume ' .. (...))", "door paint")
        nvim.until("offered ~= nil or nil")
        assert nvim.lua("return #offered") == 2


def test_a_resumed_session_shows_what_was_answered_before_it_was_stopped(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[{"text": "I begin", "hang": True}]) as nvim:
        nvim.lua(OPEN)
        nvim.keys("iwrite an essay<Esc><CR>")
        nvim.wait_for_text("I begin")
        nvim.keys("<C-c>")
        nvim.idle()
        session = nvim.lua(f"return {CHAT}.session.id")
    with running_neovim(tmp_path) as nvim:
        nvim.lua("vim.cmd('JumpseatResume ' .. (...))", session)
        nvim.wait_for_text("> stopped")
        assert nvim.text().endswith("## You\n\nwrite an essay\n\n## Agent\n\nI begin\n\n> stopped")


def test_the_last_line_of_a_running_command_is_shown_after_its_title(tmp_path: Path) -> None:
    command = "echo first; echo second; until [ -e go ]; do sleep 0.05; done; echo third"
    script = [calls("bash", command=command, description="Count"), {"text": "Done."}]
    virtual_text = f"""(function(wanted)
        local buf = {CHAT}.transcript.buf
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, -1, 0, -1, {{ details = true }})) do
          local chunks = mark[4].virt_text
          if chunks and chunks[1][1]:find(wanted, 1, true) then
            return chunks[1][1]
          end
        end
    end)(...)"""
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Allow once")
        nvim.lua("require('jumpseat').send('count')")
        assert nvim.until(virtual_text, "second") == "  second"
        (nvim.folder / "go").touch()
        nvim.idle()
        assert nvim.lua("return " + virtual_text, "second") is None
        assert nvim.text().endswith("Done.")


def test_a_narrow_chat_shows_the_beginning_of_its_bars(tmp_path: Path) -> None:
    options = {"window": {"size": 20}, "model": "a-rather-long-name"}
    with running_neovim(tmp_path, script=[{"text": "Hello."}], options=options) as nvim:
        nvim.lua(OPEN)
        nvim.ask("hello")
        nvim.until(f"winbar({CHAT}.transcript.buf):find('…', 1, true)")
        assert nvim.lua(f"return winbar({CHAT}.transcript.buf)").rstrip() == " jumpseat · a-rathe…"
        assert nvim.lua(f"return winbar({CHAT}.input)").rstrip().endswith(" ready <CR>: send")
