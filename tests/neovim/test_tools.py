"""Tools that run in the editor: built-in ones, and those of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.neovim import Neovim, running_neovim
from tests.support.toolchains import INSTALL_LIMIT_S

# The first test may have to install Neovim.
pytestmark = pytest.mark.timeout(INSTALL_LIMIT_S + 60)

OPEN = "require('jumpseat').open()"
RUN = """
    local name, args = ...
    require('jumpseat.tools').run(name, args, { session_id = 's', cwd = vim.fn.getcwd() }, function(fields)
      answered = fields
    end)
    vim.wait(60000, function() return answered ~= nil end)
    return answered
"""


def run(nvim: Neovim, name: str, **arguments: Any) -> Any:
    """Run a tool and return its result for the model, or all fields of the answer if there is none."""
    fields = nvim.lua(RUN, name, arguments)
    return fields.get("result", fields)


def one_call(name: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"tool_calls": [{"name": name, "arguments": arguments}]}, {"text": "result: {{last_tool_result}}"}]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.lua").write_text("one\ntwo\nthree\n")
    (tmp_path / "project" / "b.lua").write_text("other\n")
    return tmp_path


def test_the_model_reads_unsaved_changes_without_asking(project: Path) -> None:
    with running_neovim(project, script=one_call("nvim_read_buffer")) as nvim:
        nvim.lua("vim.cmd.edit('a.lua') vim.api.nvim_buf_set_lines(0, 1, 2, false, { 'changed' })" + OPEN)
        text = nvim.ask("read").partition("result: ")[2]
        assert text == "a.lua, lines 1 to 3 of 3, with unsaved changes\n1. one\n2. changed\n3. three"
        assert nvim.questions() == []


def test_a_buffer_is_read_by_path_and_by_lines(project: Path) -> None:
    with running_neovim(project) as nvim:
        nvim.lua("vim.cmd.edit('a.lua') vim.o.hidden = true vim.cmd.edit('b.lua')" + OPEN)
        assert run(nvim, "nvim_read_buffer", path="a.lua", first_line=2, last_line=9).endswith("\n2. two\n3. three")
        assert run(nvim, "nvim_read_buffer").splitlines()[0].startswith("b.lua, lines 1 to 1")
        assert run(nvim, "nvim_read_buffer", path=str(project / "project" / "a.lua")).startswith("a.lua,")
        assert run(nvim, "nvim_read_buffer", path="c.lua") == {
            "textResultForLlm": "c.lua is not open in the editor.",
            "resultType": "failure",
        }
        assert run(nvim, "nvim_read_buffer", first_line=7)["textResultForLlm"] == "b.lua has 1 lines."
        assert run(nvim, "nvim_buffers") == "a.lua\nb.lua (the user is here, line 1)"


def test_reading_a_buffer_outside_of_the_folder_requires_approval(project: Path) -> None:
    (project / "secret.txt").write_text("hidden\n")
    (project / "project" / "link.txt").symlink_to(project / "secret.txt")
    script = one_call("nvim_read_buffer", path="link.txt")
    with running_neovim(project, script=script) as nvim:
        nvim.lua("vim.cmd.edit('link.txt')" + OPEN)
        nvim.answer("Reject and explain", "It is private")
        assert "hidden" not in nvim.ask("read")
        assert nvim.questions()[0]["prompt"] == "May the agent call nvim_read_buffer?"


def test_paths_are_relative_to_the_session_s_folder_after_a_change_of_directory(project: Path) -> None:
    (project / "elsewhere").mkdir()
    script = one_call("nvim_read_buffer", path="a.lua")
    with running_neovim(project, script=script) as nvim:
        nvim.lua("vim.cmd.edit('a.lua')" + OPEN)
        nvim.lua("vim.fn.chdir((...))", str(project / "elsewhere"))
        assert "result: a.lua, lines 1 to 3 of 3" in nvim.ask("read")
        assert nvim.questions() == []


def test_diagnostics_are_sorted_and_filtered(project: Path) -> None:
    made = """
        vim.cmd.edit('a.lua')
        vim.diagnostic.set(vim.api.nvim_create_namespace('test'), 0, {
          { lnum = 2, col = 1, message = 'unused\\n variable', severity = 2, source = 'lua_ls', code = 'unused' },
          { lnum = 0, col = 4, message = 'no such name', severity = 1 },
        })
    """
    with running_neovim(project) as nvim:
        nvim.lua(made + OPEN)
        error = "a.lua:1:5: error: no such name"
        warning = "a.lua:3:2: warning: unused variable [unused] (lua_ls)"
        assert run(nvim, "nvim_diagnostics") == f"{error}\n{warning}"
        assert run(nvim, "nvim_diagnostics", path="a.lua", severity="error") == error
        assert run(nvim, "nvim_diagnostics", path="b.lua")["resultType"] == "failure"
        nvim.lua("vim.diagnostic.reset()")
        assert run(nvim, "nvim_diagnostics") == "No diagnostics."


def test_diagnostics_of_a_file_that_was_just_changed_are_waited_for(project: Path) -> None:
    attached = """
        vim.cmd.edit('a.lua')
        local buf, namespace = vim.api.nvim_get_current_buf(), vim.api.nvim_create_namespace('test')
        local function answer(method, _, reply)
          local capabilities = { textDocumentSync = 1 }
          return true, 1, reply(nil, method == 'initialize' and { capabilities = capabilities } or nil)
        end
        local function hear(method)
          if method == 'textDocument/didOpen' or method == 'textDocument/didChange' then
            vim.schedule(function()
              local text = vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1]
              vim.diagnostic.set(namespace, buf, { { lnum = 0, col = 0, message = text, severity = 1 } })
            end)
          end
          return true
        end
        vim.lsp.start({ name = 'test', cmd = function()
          return { request = answer, notify = hear, is_closing = function() end, terminate = function() end }
        end })
        vim.wait(60000, function() return vim.diagnostic.get(buf)[1] ~= nil end)
        vim.o.autoread = true
    """
    with running_neovim(project) as nvim:
        nvim.lua(attached + OPEN)
        assert run(nvim, "nvim_diagnostics", wait_for=["b.lua", "c.lua"]) == "a.lua:1:1: error: one"
        nvim.lua("answered = nil")
        (project / "project" / "a.lua").write_text("changed\n")
        found = run(nvim, "nvim_diagnostics", path="a.lua", wait_for=["a.lua"])
        assert found == "a.lua:1:1: error: changed"


def test_the_selection_is_the_last_one_outside_of_the_chat(project: Path) -> None:
    with running_neovim(project) as nvim:
        nvim.lua("vim.cmd.edit('a.lua')")
        assert run(nvim, "nvim_selection") == "Nothing is selected."
        nvim.keys("ggjVj<Esc>")
        nvim.lua(OPEN)
        assert run(nvim, "nvim_selection") == "a.lua, lines 2 to 3:\ntwo\nthree"
        nvim.lua("vim.cmd.wincmd('p') vim.fn.win_gotoid(vim.fn.bufwinid('a.lua'))")
        nvim.keys("gg0lvl<Esc>")
        assert run(nvim, "nvim_selection") == "a.lua, lines 1 to 1:\nne"


def test_a_file_is_opened_beside_the_chat_and_unsaved_changes_are_kept(project: Path) -> None:
    with running_neovim(project) as nvim:
        nvim.lua("vim.cmd.edit('b.lua') vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'unsaved' })" + OPEN)
        assert run(nvim, "nvim_open", path="a.lua", line=3, column=2) == "Opened a.lua at line 3."
        place = "local win = vim.fn.bufwinid('a.lua') return vim.api.nvim_win_get_cursor(win)"
        assert nvim.lua(place) == [3, 1]
        assert nvim.lua("return vim.api.nvim_buf_get_name(0):match('^jumpseat://prompt') ~= nil")
        assert nvim.lua("return lines(vim.fn.bufnr('b.lua'))") == ["unsaved"]
        assert run(nvim, "nvim_open", path="none.lua")["textResultForLlm"] == "none.lua is not a file."


OWN = """
    test_tools = {
      add = {
        description = 'Add two numbers',
        parameters = { type = 'object', properties = { a = { type = 'number' }, b = { type = 'number' } } },
        run = function(args) return { sum = args.a + args.b } end,
      },
      breaks = { description = 'Breaks', ask = false, run = function() error('a secret of the stack') end },
      refuses = { description = 'Refuses', ask = false, run = function() return nil, 'Not on a Sunday.' end },
      says_nothing = { description = 'Says nothing', ask = false, run = function() end },
      odd = { description = 'Odd', ask = false, run = function() return { f = function() end } end },
      bytes = {
        description = 'Bytes', ask = false,
        run = function() return 'caf\\233 \\240\\159\\153\\130 \\237\\160\\128' end,
      },
      later = {
        description = 'Later', ask = false, async = true,
        run = function(args, ctx, done) vim.schedule(function() done(args.word .. '!') done('twice') end) end,
      },
      nvim_open = false,
    }
"""


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("later", {"word": "now"}, "now!"),
        ("refuses", {}, "Not on a Sunday."),
        ("says_nothing", {}, "Done"),
        ("bytes", {}, "caf\N{REPLACEMENT CHARACTER} \N{SLIGHTLY SMILING FACE} " + "\N{REPLACEMENT CHARACTER}" * 3),
    ],
)
def test_the_result_of_a_user_s_tool_is_sent_to_the_model(
    tmp_path: Path, name: str, arguments: dict[str, Any], expected: str
) -> None:
    with running_neovim(tmp_path, script=one_call(name, **arguments), before=OWN) as nvim:
        nvim.lua(OPEN)
        assert nvim.ask("go").endswith(f"result: {expected}")


@pytest.mark.parametrize(
    ("name", "reason"), [("breaks", "a secret of the stack"), ("odd", "Cannot serialise function")]
)
def test_an_error_in_a_tool_is_shown_to_the_user_but_not_to_the_model(
    tmp_path: Path, name: str, reason: str
) -> None:
    with running_neovim(tmp_path, script=[*one_call(name), {"text": "Yes."}], before=OWN) as nvim:
        nvim.lua(OPEN)
        text = nvim.ask("go")
        assert f"✗ {name}:" in text
        assert reason not in text
        assert reason in nvim.notifications()[0]
        assert nvim.ask("still there?").endswith("Yes.")


def test_a_user_s_tool_requires_approval_by_default(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=one_call("add", a=1, b=2), before=OWN) as nvim:
        nvim.lua(OPEN)
        nvim.answer("Allow once")
        assert '"sum":3' in nvim.ask("go")
        assert nvim.questions()[0]["prompt"] == "May the agent call add?"


def test_removed_tools_are_not_offered(tmp_path: Path) -> None:
    with running_neovim(tmp_path, before=OWN) as nvim:
        names = nvim.lua(
            "return vim.tbl_map(function(t) return t.name end, require('jumpseat.tools').declarations())"
        )
        assert "add" in names
        assert "nvim_buffers" in names
        assert "nvim_open" not in names


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            "{ tools = { ['two words'] = { description = '', run = print } } }",
            "tools.two words: expected a name of letters",
        ),
        ("{ tools = { add = { run = print } } }", "tools.add: expected a table with a string `description`"),
        ("{ modell = 'x' }", 'unknown option "modell"'),
        ("{ window = { position = 'middle' } }", "window.position: expected right, left"),
        ("{ window = { size = 'big' } }", "window.size: expected a number, got a string"),
        ("{ model = 7 }", "model: expected a string, got a number"),
        ("{ keymaps = { send = { normal = 'x' } } }", "keymaps.send.normal: expected one of the modes"),
        ("{ keymaps = { sent = { n = 'x' } } }", 'unknown option "keymaps.sent"'),
    ],
)
def test_an_invalid_configuration_is_refused(nvim: Neovim, options: str, problem: str) -> None:
    assert problem in nvim.lua(f"return select(2, pcall(require('jumpseat').setup, {options}))")


@pytest.fixture(scope="module")
def nvim(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running_neovim(tmp_path_factory.mktemp("nvim")) as running:
        yield running
