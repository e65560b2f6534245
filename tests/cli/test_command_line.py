"""The command line as people meet it: help, slips of the finger, empty lists and completion."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jumpseat.cli.commands import COMMANDS
from tests.support.cases import all_cases


def jumpseat(home: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command with an empty home folder and no keys."""
    return subprocess.run(
        [sys.executable, "-m", "jumpseat", *args],
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "COPILOT_HOME": str(home), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_slip_gets_what_was_meant(tmp_path: Path) -> None:
    slips = {
        "chta": "unknown command 'chta', did you mean 'chat'? ('jumpseat --help' lists the commands)",
        "help chta": "unknown command 'chta', did you mean 'chat'? ('jumpseat --help' lists the commands)",
        "login": "unknown command 'login', did you mean 'setup'? ('jumpseat --help' lists the commands)",
        "xyzzy": "unknown command 'xyzzy' ('jumpseat --help' lists the commands)",
        "--stdioo": "unknown option '--stdioo', did you mean '--stdio'?",
        "--stdio now": "unexpected argument 'now'",
        "sessions shwo last": "unknown command 'shwo' of jumpseat sessions, did you mean 'show'?",
        "sessions list --limti 3": "unknown option '--limti', did you mean '--limit'?",
        "run --modle=x hello": "unknown option '--modle=x', did you mean '--model'?\nSee: jumpseat run --help",
        "run two words": (
            "unexpected argument 'words'; put a prompt of several words in quotes\nSee: jumpseat run --help"
        ),
    }
    with all_cases() as case:
        for arguments, error in slips.items():
            with case(arguments):
                done = jumpseat(tmp_path, *arguments.split())
                assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {error}\n")


def test_an_unknown_adapter_gets_what_was_meant(tmp_path: Path) -> None:
    done = jumpseat(tmp_path, "check", "openia")
    assert done.returncode == 3
    assert "unknown adapter 'openia', did you mean 'openai'?" in done.stdout


def test_help_lists_the_commands_before_the_options_of_servers(tmp_path: Path) -> None:
    done = jumpseat(tmp_path, "help")
    assert (done.returncode, done.stdout) == (0, jumpseat(tmp_path, "--help").stdout)
    commands, options = done.stdout.split("\noptions:\n")
    assert all(f"\n  {name} " in commands for name in COMMANDS)
    assert "--headless" not in commands
    assert "\n  --headless " in options
    assert jumpseat(tmp_path, "help", "sessions").stdout == jumpseat(tmp_path, "sessions", "--help").stdout
    assert jumpseat(tmp_path, "version").stdout == jumpseat(tmp_path, "--version").stdout


@pytest.mark.parametrize("name", ["sessions", "token", "mcp", "plugins", "cluster", "store"])
def test_a_command_without_its_command_prints_its_help(tmp_path: Path, name: str) -> None:
    done = jumpseat(tmp_path, name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == jumpseat(tmp_path, name, "--help").stdout


@pytest.mark.parametrize("arguments", ["mcp list", "plugins list", "sessions list", "hooks", "token list", "tools"])
def test_an_empty_list_is_no_error(tmp_path: Path, arguments: str) -> None:
    done = jumpseat(tmp_path, *arguments.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(".\n")


def test_the_list_of_sessions_says_that_those_of_a_cluster_are_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[store]\nurl = "nats://127.0.0.1:4222"\n')
    assert "The sessions of a cluster are in its store" in jumpseat(tmp_path, "sessions", "list").stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("jumpseat ses", {"sessions "}),
        ("jumpseat sessions ex", {"export "}),
        ("jumpseat run --mo", {"--model "}),
        ("jumpseat --ws", {"--ws-port", "--ws-origin"}),
        ("jumpseat completion z", {"zsh "}),
    ],
)
def test_bash_completes_commands_and_options(tmp_path: Path, line: str, expected: set[str]) -> None:
    script = """
        eval "$(jumpseat completion bash)"
        function=$(complete -p jumpseat | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_WORDS=($1)
        $function jumpseat
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "jumpseat"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m jumpseat "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", script, "bash", line],
        env={"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert set(done.stdout.splitlines()) == expected
