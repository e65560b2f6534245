"""The server process of the Neovim plugin: start, failures and exit; resumed sessions, models, health checks."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.forked import INSTALLED, executable
from tests.support.limits import WAIT_S
from tests.support.neovim import PLUGIN, Neovim, require_neovim, running_neovim
from tests.support.toolchains import INSTALL_LIMIT_S, ROOT, require_program

# The first test may have to install Neovim.
pytestmark = pytest.mark.timeout(INSTALL_LIMIT_S + 60)

KILLABLE = {"cmd": [INSTALLED]}
"""Options to start the installed server: a signal reaches it directly."""
OPEN = "require('jumpseat').open()"
SERVER_PID = "vim.iter(vim.api.nvim_get_proc_children(vim.fn.getpid())):find(function(pid) return pid end)"


def server_pid(nvim: Neovim) -> int:
    return nvim.lua(f"return {SERVER_PID}")


def program(path: Path, text: str) -> str:
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)


def test_a_killed_server_is_reported_and_the_next_prompt_continues_in_another(tmp_path: Path) -> None:
    with running_neovim(tmp_path, options=KILLABLE, script=[{"text": "One."}, {"text": "Two."}]) as nvim:
        nvim.lua(OPEN)
        nvim.ask("first")
        first = server_pid(nvim)
        os.kill(first, signal.SIGKILL)
        nvim.wait_for_text("> ✗ the server was killed by signal 9")
        # The script plays its second turn only if the first is in the conversation.
        assert nvim.ask("second").endswith("## You\n\nsecond\n\n## Agent\n\nTwo.")
        assert server_pid(nvim) != first


def test_a_server_killed_during_a_tool_call_settles_the_call_and_its_question(tmp_path: Path) -> None:
    script = [{"tool_calls": [{"name": "create", "arguments": {"path": "a", "file_text": ""}}]}, {"text": "Again."}]
    with running_neovim(tmp_path, options=KILLABLE, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.until("#questions == 1")
        os.kill(server_pid(nvim), signal.SIGKILL)
        nvim.wait_for_text("✗ create a: connection lost")
        nvim.idle()
        assert nvim.lua("return require('jumpseat.questions').open_questions()") == 0
        nvim.lua("open_question('Allow once')")
        assert nvim.ask("go on").endswith("Again.")


def test_queued_prompts_return_to_the_prompt_buffer_when_the_server_dies(tmp_path: Path) -> None:
    script = {
        "prompts": [{"when": "one", "turns": [{"text": "I begin", "hang": True}]}, {"turns": [{"text": "Two."}]}]
    }
    with running_neovim(tmp_path, options=KILLABLE, script=script) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('one')")
        nvim.wait_for_text("I begin")
        nvim.lua("require('jumpseat').send('two')")
        queue = "require('jumpseat').chat().session.queue"
        nvim.until(f"#{queue} == 1 and {queue}[1].id")
        os.kill(server_pid(nvim), signal.SIGKILL)
        nvim.until("require('jumpseat').chat():draft() == 'two'")
        nvim.keys("<CR>")
        nvim.idle()
        assert nvim.text().endswith("## You\n\ntwo\n\n## Agent\n\nTwo.")


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="pidfd is available on Linux only")
@pytest.mark.parametrize("how", ["quit", "kill"])
def test_the_server_exits_with_neovim(tmp_path: Path, how: str) -> None:
    with running_neovim(tmp_path, script=[{"text": "One.", "hang": True}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('go')")
        nvim.wait_for_text("One.")
        pid = server_pid(nvim)
        watched = os.pidfd_open(pid)
        try:
            if how == "quit":
                nvim.quit()
            else:
                nvim.process.kill()
                nvim.process.wait(WAIT_S)
            assert select.select([watched], [], [], 5.0)[0], "the server is still running"
        finally:
            os.close(watched)


def test_a_missing_server_is_reported_and_the_prompt_kept(tmp_path: Path) -> None:
    with running_neovim(tmp_path, options={"cmd": ["no-such-server"]}) as nvim:
        nvim.lua(OPEN)
        nvim.keys("iprecious words<Esc><CR>")
        nvim.wait_for_text('> ✗ cannot run "no-such-server"')
        assert nvim.lua("return require('jumpseat').chat():draft()") == "precious words"
        assert nvim.lua("return require('jumpseat').chat():status()") == "not connected"


def test_a_prompt_stopped_while_the_server_starts_is_not_sent(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[{"text": "Never said."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('too early') vim.cmd('JumpseatStop')")
        nvim.wait_for_text("> ✗ stopped before the prompt was sent")
        nvim.idle()
        assert nvim.lua("return require('jumpseat').chat():draft()") == "too early"
        assert "Never said." not in nvim.text()


def test_a_program_that_is_not_a_server_is_reported(tmp_path: Path) -> None:
    wrong = program(
        tmp_path / "wrong", "print('Welcome!', flush=True); print(); print('\\r\\n\\r\\n', flush=True); input()"
    )
    with running_neovim(tmp_path, options={"cmd": [wrong]}) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('hello')")
        nvim.wait_for_text("> ✗ the server's output is not JSON-RPC: Welcome!")


def test_the_stderr_of_an_exited_server_is_shown(tmp_path: Path) -> None:
    wrong = program(tmp_path / "wrong", "import sys; sys.exit('error: out of coffee')")
    with running_neovim(tmp_path, options={"cmd": [wrong]}) as nvim:
        nvim.lua(OPEN)
        nvim.lua("require('jumpseat').send('hello')")
        nvim.wait_for_text("> ✗ the server exited with code 1: out of coffee")


def test_a_session_of_an_earlier_neovim_is_chosen_shown_and_continued(tmp_path: Path) -> None:
    script: list[dict[str, Any]] = [
        {"text": "Look.", "reasoning": "Hm.", "tool_calls": [{"name": "nvim_buffers", "arguments": {}}]},
        {"text": "Nothing."},
        {"text": "I do."},
    ]
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua(OPEN)
        before = nvim.ask("What is open?")
    with running_neovim(tmp_path, script=script) as nvim:
        nvim.lua("vim.cmd('JumpseatResume')")
        nvim.until("#questions == 1")
        choices = nvim.questions()[0]["choices"]
        assert len(choices) == 1
        assert re.fullmatch(r"(just now|\d min ago) +What is open\?", choices[0])
        nvim.lua("open_question((...))", choices[0])
        nvim.wait_for_text("Nothing.")
        assert nvim.text() == before
        assert nvim.ask("Do you remember?").endswith("I do.")


def test_an_unknown_session_is_reported(tmp_path: Path) -> None:
    with running_neovim(tmp_path) as nvim:
        nvim.lua("vim.cmd('JumpseatResume nowhere')")
        nvim.wait_for_text("> ✗ Session not found: nowhere")


def test_the_model_is_chosen_from_a_list_or_by_name(tmp_path: Path) -> None:
    shown = "winbar(require('jumpseat').chat().transcript.buf)"
    with running_neovim(tmp_path, script=[{"text": "I am {{model}}."}, {"text": "Now {{model}}."}]) as nvim:
        nvim.lua(OPEN)
        nvim.lua("vim.cmd('JumpseatModel first')")
        assert nvim.ask("who?").endswith("I am first.")
        nvim.answer("  Other ...", "second")
        nvim.lua("vim.cmd('JumpseatModel')")
        nvim.until(f"{shown}:find('jumpseat · second', 1, true)")
        assert nvim.questions()[0]["prompt"] == "Model"
        assert nvim.ask("and now?").endswith("Now second.")


def test_a_model_is_described_by_its_context_window_and_capabilities(tmp_path: Path) -> None:
    model = {
        "id": "m1",
        "name": "Model One",
        "capabilities": {
            "supports": {"vision": True, "reasoningEffort": True},
            "limits": {"max_context_window_tokens": 1_048_576},
        },
    }
    with running_neovim(tmp_path) as nvim:
        line = nvim.lua("return require('jumpseat.models').line(...)", model, "m1")
        assert line == "● m1  (Model One, 1M, vision, reasoning)"


def test_health_reports_the_server_its_protocol_and_a_ping(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[]) as nvim:
        nvim.lua("vim.cmd('checkhealth jumpseat')")
        report = nvim.lua("return table.concat(lines(0), '\\n')")
        assert re.search(r"OK Neovim 0\.\d+", report)
        assert re.search(r"OK server: .*/jumpseat\n", report)
        assert re.search(r"OK version \S+, started in \d+ ms", report)
        assert "OK protocol 3" in report
        assert "OK ping: ok" in report
        assert "ERROR" not in report


def test_health_advises_how_to_install_a_missing_server(tmp_path: Path) -> None:
    with running_neovim(tmp_path, options={"cmd": "no-such-server"}) as nvim:
        nvim.lua("vim.cmd('checkhealth jumpseat')")
        report = nvim.lua("return table.concat(lines(0), '\\n')")
        assert 'ERROR "no-such-server" was not found' in report
        assert "pip install ~/src/jumpseat" in report
        assert "$PATH" in report


def test_health_advises_how_to_configure_a_model(tmp_path: Path) -> None:
    with running_neovim(tmp_path) as nvim:
        nvim.lua("vim.cmd('checkhealth jumpseat')")
        report = nvim.lua("return table.concat(lines(0), '\\n')")
        assert "WARNING models: no model is configured" in report
        assert "$OPENAI_API_KEY" in report
        assert "ERROR" not in report
        nvim.lua(OPEN)
        assert "> ✗ no model is configured" in nvim.ask("hello")


def test_a_tilde_in_the_command_is_expanded(tmp_path: Path) -> None:
    home = tmp_path / "user"
    home.mkdir()
    (home / "my server").symlink_to(executable())
    with running_neovim(tmp_path, options={"cmd": ["~/my server"]}, script=[{"text": "At home."}]) as nvim:
        nvim.lua(OPEN)
        assert nvim.ask("where?").endswith("At home.")


def test_the_installation_in_the_readme_works(tmp_path: Path) -> None:
    (commands,) = re.findall(r"```console\n(.*?)```", (PLUGIN / "README.md").read_text(), re.DOTALL)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "jumpseat").symlink_to(ROOT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    env["HOME"] = str(tmp_path)
    subprocess.run(["sh", "-ec", commands.replace("$ ", "")], env=env, check=True, timeout=120)
    look = "help jumpseat | call writefile([expand('%:t'), exists(':JumpseatResume')], 'seen')"
    subprocess.run(
        [require_neovim(), "--headless", "-c", look, "-c", "qall"], env=env, cwd=tmp_path, check=True, timeout=120
    )
    assert (tmp_path / "seen").read_text().split() == ["jumpseat.txt", "2"]


def test_models_modes_and_sessions_are_completed_on_the_command_line(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[{"text": "Hello."}]) as nvim:
        nvim.lua(OPEN)
        nvim.ask("hello")
        session = nvim.lua("return require('jumpseat').chat().session.id")
        complete = "return vim.fn.getcompletion((...), 'cmdline')"
        assert nvim.lua(complete, "JumpseatModel scr") == ["scripted"]
        assert nvim.lua(complete, "JumpseatMode ") == ["interactive", "plan", "autopilot"]
        assert nvim.lua(complete, f"JumpseatResume {session[:-2]}") == [session]


def test_frames_split_at_any_byte_are_decoded(tmp_path: Path) -> None:
    bodies = [json.dumps({"text": "é" * length}, ensure_ascii=False) for length in (0, 1, 50, 5000)]
    read = """
        local wire, size = '', ...
        for _, body in ipairs(select(2, ...)) do
          wire = wire .. ('Content-Length: %d\\r\\nX: y\\r\\n\\r\\n%s'):format(#body, body)
        end
        local decoder, found = require('jumpseat.rpc').decoder(), {}
        for at = 1, #wire, size do
          vim.list_extend(found, decoder:feed(wire:sub(at, at + size - 1)))
        end
        return found
    """
    with running_neovim(tmp_path) as nvim:
        for size in (1, 7, 64, 100_000):
            assert nvim.lua(read, size, bodies) == bodies


def test_the_help_has_current_tags_and_lines_of_at_most_78_characters(tmp_path: Path) -> None:
    folder = tmp_path / "doc"
    folder.mkdir()
    text = (PLUGIN / "doc" / "jumpseat.txt").read_text()
    (folder / "jumpseat.txt").write_text(text)
    process = subprocess.run(
        [require_neovim(), "--clean", "--headless", "-c", f"helptags {folder}", "-c", "qall"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )
    assert process.stderr == ""
    # The file makes :help work without a plugin manager; `:helptags clients/neovim/doc` updates it.
    assert (folder / "tags").read_text() == (PLUGIN / "doc" / "tags").read_text()
    tags = {line.split("\t")[0] for line in (folder / "tags").read_text().splitlines()}
    assert {"jumpseat", "jumpseat-options", "jumpseat-tools", ":Jumpseat", ":JumpseatModel"} <= tags
    # Every reference has a target.
    assert set(re.findall(r"\|(:?[jJ]umpseat[\w.-]*(?:\(\))?)\|", text)) <= tags
    assert all(len(line) <= 78 for line in text.splitlines())


def test_every_command_and_option_is_in_the_help(tmp_path: Path) -> None:
    text = (PLUGIN / "doc" / "jumpseat.txt").read_text()
    commands = re.findall(r'^command\("(\w+)"', (PLUGIN / "plugin" / "jumpseat.lua").read_text(), re.MULTILINE)
    assert len(commands) == 7
    assert all(f"*:{name}*" in text for name in commands)
    with running_neovim(tmp_path) as nvim:
        defaults = nvim.lua("return require('jumpseat.config').defaults")
    for name in (*defaults, *defaults["keymaps"], *defaults["window"]):
        assert re.search(rf"\b{name}\b", text), name


@pytest.mark.parametrize("page", ["README.md", "doc/jumpseat.txt"])
def test_the_example_configurations_work(tmp_path: Path, page: str) -> None:
    text = (PLUGIN / page).read_text()
    examples = re.findall(r"(?:```lua|>lua)\n(.*?)\n(?:```|<)", text, re.DOTALL)
    setups = [example for example in examples if "setup(" in example]
    assert setups
    git = ["git", "-c", "init.defaultBranch=trunk", "init", "-q", str(tmp_path / "project")]
    subprocess.run([require_program("git"), *git[1:]], check=True, timeout=120)
    (tmp_path / "project" / ".git" / "HEAD").write_text("ref: refs/heads/trunk\n")
    called: list[dict[str, Any]] = [
        {"tool_calls": [{"name": "git_branch", "arguments": {}}]},
        {"text": "result: {{last_tool_result}}"},
    ]
    scripted = "require('jumpseat.config').options.provider = { type = 'scripted', script = { turns = (...) } }"
    with running_neovim(tmp_path) as nvim:
        for setup in setups:
            nvim.lua(setup)
        nvim.lua(scripted, called)
        nvim.lua("require('jumpseat.config').options.cmd = { 'jumpseat' }")
        nvim.lua("require('jumpseat.config').options.env = { COPILOT_HOME = (...) }", str(tmp_path / "home"))
        nvim.lua(OPEN)
        nvim.answer("Allow once")
        assert "trunk" in nvim.ask("Which branch?").partition("result: ")[2]


def test_the_screen_in_the_readme_equals_a_recorded_one() -> None:
    (shown,) = re.findall(r"```text\n(.*?)```", (PLUGIN / "README.md").read_text(), re.DOTALL)
    assert shown == (Path(__file__).parent / "screens" / "question.txt").read_text()
