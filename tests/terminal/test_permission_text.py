"""The terminal shows all of what a permission request covers, and no text of the model imitates the question."""

from __future__ import annotations

import re
from pathlib import Path

from jumpseat_client import PermissionRequest
from jumpseat_protocol.permissions import (
    McpPermission,
    MemoryPermission,
    ReadPermission,
    ShellCommand,
    ShellPermission,
    UrlPermission,
    WritePermission,
)
from jumpseat_terminal.paint import Painter
from jumpseat_terminal.permission_text import approval_scope, describe, question_title

FOLDER = Path("/work/project")


def shown(request: PermissionRequest, tool: str | None = None) -> list[str]:
    text = describe(request, Painter(200, colour=False), FOLDER, tool)
    return re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()


def shell(command: str, intention: str = "Show the status") -> ShellPermission:
    return ShellPermission(
        full_command_text=command,
        intention=intention,
        commands=[ShellCommand(identifier=command, read_only=False)],
        possible_paths=[],
        has_write_file_redirection=False,
        can_offer_session_approval=True,
    )


def test_a_description_cannot_continue_on_other_lines() -> None:
    forged = "Show the status\n\n  git status\n\nRun this command?"
    assert shown(shell("rm -r src", forged), "bash") == [
        "○ bash Show the status␊␊  git status␊␊Run this command?",
        "  rm -r src",
    ]


def test_padding_hides_no_part_of_a_command() -> None:
    assert shown(shell(f"git status{' ' * 5000}; rm x")) == [
        "○ shell Show the status",
        "  git status<5000 spaces>; rm x",
    ]
    lines = shown(shell("rm x" + "\n" * 300 + "git status"))
    assert lines[1:] == ["  rm x", "  <299 empty lines>", "  git status"]


def test_the_question_names_the_length_of_a_long_command() -> None:
    assert question_title(shell("x"), 3) == "Run this command?"
    assert question_title(shell("x"), 300) == "Run this command? It has 300 lines; scroll up to see all of them."


def test_the_target_of_a_link_is_shown_and_offered_for_approval() -> None:
    read = ReadPermission(intention="View notes", path="/work/project/notes", resolved_path="/home/me/.ssh/id_rsa")
    assert shown(read, "view") == ["○ view notes", "! leads to /home/me/.ssh/id_rsa"]
    assert approval_scope(read, FOLDER) == "all reads in this folder, and /home/me/.ssh/id_rsa"
    write = WritePermission(
        intention="Create x", file_name="/work/project/x", diff="+x", resolved_path="/home/me/.bashrc"
    )
    assert shown(write, "create") == ["○ create x", "! leads to /home/me/.bashrc", "     0 + x"]


def test_a_path_with_line_breaks_and_escape_sequences_is_one_visible_line() -> None:
    path = "/work/project/a\nRead this?\x1b[2K\u202e"
    assert shown(ReadPermission(intention="View", path=path), "view") == ["○ view a␊Read this?␛[2K<U+202E>"]


def test_a_memory_is_shown_with_everything_that_later_sessions_see() -> None:
    memory = MemoryPermission(fact="Tabs.", subject="obey x", citations="a:1", reason="asked", scope="user")
    assert shown(memory, "store_memory") == [
        "○ store_memory store a memory",
        "  Tabs.",
        "  subject: obey x",
        "  seen in: a:1",
        "  because: asked",
        "  for: all folders",
    ]


def test_server_and_host_are_shown_unambiguously() -> None:
    tool = McpPermission(
        server_name="evil\u202e", tool_name="s\u0430ve", tool_title="bash", read_only=True, args={}
    )
    assert shown(tool)[0] == "○ s<U+0430>ve of the MCP server evil<U+202E>"
    url = UrlPermission(intention="Fetch", url="https://\u0430\u0440\u0440\u04cf\u0435.com/x")
    assert shown(url)[1].endswith("(host: xn--80ak6aa92e.com)")
