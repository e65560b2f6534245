"""The chat in a terminal, compared with recorded and reviewed screens.

``UPDATE_SCREENS=1`` records the screens again; review the diff.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.neovim import Neovim, Screen, require_recorded_neovim, running_neovim, screen_of
from tests.support.toolchains import INSTALL_LIMIT_S

# The first test may have to install Neovim.
pytestmark = pytest.mark.timeout(INSTALL_LIMIT_S + 60)

SCREENS = Path(__file__).parent / "screens"
CODE = "local M = {}\n\nfunction M.add(a, b)\n  return a - b\nend\n\nreturn M\n"
SCRIPT: list[dict[str, Any]] = [
    {
        "reasoning": "A sum of 1 for 3 and 2 looks like a difference.",
        "text": "Let me look at the file you have open.",
        "tool_calls": [{"name": "nvim_read_buffer", "arguments": {}}],
    },
    {
        "text": "`M.add` subtracts. The fix is **one** character:\n\n```lua\nreturn a + b\n```\n",
        "tool_calls": [{"name": "edit", "arguments": {"path": "sum.lua", "old_str": "a - b", "new_str": "a + b"}}],
    },
    {
        "text": "Now I would like to try it.",
        "tool_calls": [
            {"name": "bash", "arguments": {"command": "lua -e 'print(2)' && make test", "description": "Try it"}}
        ],
    },
    {"text": "Fine. What has changed:\n\n- `M.add` adds\n- the tests were not run"},
    {"text": "There is more to be said, and I", "hang": True},
]


@contextmanager
def chatting(
    folder: Path, script: list[dict[str, Any]] | None = None, options: dict[str, Any] | None = None
) -> Generator[tuple[Neovim, Screen]]:
    """Open a file on the left and the chat on the right."""
    (folder / "project").mkdir()
    (folder / "project" / "sum.lua").write_text(CODE)
    program = require_recorded_neovim()
    with (
        running_neovim(folder, real_ui=True, program=program, script=script, options=options) as nvim,
        screen_of(nvim) as screen,
    ):
        nvim.lua("vim.o.showcmd = false vim.cmd.edit('sum.lua')")
        screen.until("return M")
        screen.type(":Jumpseat", "Enter")
        screen.until("ready")
        yield nvim, screen


def test_a_conversation_from_the_empty_chat_to_a_stopped_turn(tmp_path: Path) -> None:
    with chatting(tmp_path, SCRIPT) as (nvim, screen):
        screen.matches(SCREENS / "empty.txt")
        screen.type("i", "Why is 3 and 2 1, and can you mend it?")
        screen.until("mend it?")
        screen.type("Escape", "Enter")
        screen.until("Type number")
        screen.matches(SCREENS / "question.txt")
        nvim.wait_until_ready()
        screen.type("1", "Enter")
        screen.until("run this command?")
        screen.matches(SCREENS / "command.txt")
        nvim.wait_until_ready()
        screen.type("6", "Enter")
        screen.until("instead?")
        nvim.wait_until_ready()
        screen.type("Leave the tests to me", "Enter")
        screen.until("were not run")
        screen.matches(SCREENS / "answer.txt")
        screen.type("C-w", "k", "g", "g", "/", "edit sum", "Enter", "z", "t")
        screen.until("-  return")
        screen.matches(SCREENS / "details.txt")
        screen.type("G", "i", "Go on", "C-s")
        screen.until("and I")
        screen.type("i", "And then tell me what is left to do", "C-s")
        screen.until("next:")
        screen.matches(SCREENS / "working.txt")
        screen.interrupt("> stopped")
        screen.matches(SCREENS / "stopped.txt")


def test_a_plan_and_a_question_of_the_model(tmp_path: Path) -> None:
    question = (
        "How much is to be done?\n\nThe tests are many, and slow; some of them need a network, which is not here."
    )
    script: list[dict[str, Any]] = [
        {
            "text": "First a question.",
            "tool_calls": [{"name": "ask_user", "arguments": {"question": question, "choices": ["All", "Little"]}}],
        },
        {
            "text": "This is how I would do it.",
            "tool_calls": [
                {
                    "name": "exit_plan_mode",
                    "arguments": {
                        "summary": "# Mend the sum\n\n1. change `-` to `+`\n2. write a test\n3. run it",
                        "actions": ["autopilot", "interactive", "exit_only"],
                        "recommendedAction": "interactive",
                    },
                }
            ],
        },
    ]
    with chatting(tmp_path, script) as (nvim, screen):
        screen.type("i", "/mode plan", "C-s")
        screen.until("· plan")
        screen.type("i", "Mend it", "C-s")
        screen.until("Type number")
        screen.matches(SCREENS / "asked.txt")
        nvim.wait_until_ready()
        screen.type("2", "Enter")
        screen.until("Carry out the plan")
        screen.matches(SCREENS / "plan.txt")


def test_choosing_a_model(tmp_path: Path) -> None:
    with chatting(tmp_path, SCRIPT) as (_, screen):
        screen.type("g", "m")
        screen.until("Type number")
        screen.matches(SCREENS / "models.txt")


def test_a_server_that_fails_to_start(tmp_path: Path) -> None:
    program = tmp_path / "wrong"
    program.write_text("#!/bin/sh\necho 'error: unknown option --stdio' >&2\nexit 2\n")
    program.chmod(0o755)
    with chatting(tmp_path, options={"cmd": [str(program)]}) as (_, screen):
        screen.type("i", "Hello", "C-s")
        screen.until("exited with code 2")
        screen.matches(SCREENS / "broken.txt")
