"""The text sent to the model for a prompt. Recorded conversations fix its blank lines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.conversation.prompt import REMINDER, wrap_prompt

NOW = "2026-01-01T00:00:00.000Z"
DATE = f"<current_datetime>{NOW}</current_datetime>"
SELECTION = {
    "type": "selection",
    "filePath": "/home/me/src/selected-file.cs",
    "displayName": "selected-file.cs",
    "selection": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 7}},
    "text": "var x;",
}
ISSUE = {
    "type": "github_reference",
    "number": 1234,
    "title": "Add E2E attachment coverage",
    "referenceType": "issue",
    "state": "open",
    "url": "https://github.com/github/copilot-sdk/issues/1234",
}


def wrapped(prompt: str, *attachments: dict[str, Any], cwd: Path = Path("/project")) -> str:
    return wrap_prompt(prompt, list(attachments), NOW, cwd)


def tagged(cwd: Path, **attachment: Any) -> str:
    """Return the line for one attachment."""
    text = wrapped("Look", {"type": "file", **attachment}, cwd=cwd)
    head, tail = f"{DATE}\n\nLook\n\n{REMINDER}\n\n<tagged_files>\n", "\n</tagged_files>"
    assert text.startswith(head)
    assert text.endswith(tail)
    return text[len(head) : -len(tail)]


def test_a_prompt_stands_between_the_date_and_a_reminder() -> None:
    assert wrapped("  Hi\n\nyou ") == f"{DATE}\n\n  Hi\n\nyou \n\n{REMINDER}"


def test_the_reminder_is_a_single_line_in_a_tag_that_recorders_strip() -> None:
    assert REMINDER.startswith("<reminder>")
    assert REMINDER.endswith("</reminder>")
    assert "\n" not in REMINDER


def test_four_newlines_precede_the_files_once_recorders_have_stripped_their_blocks(tmp_path: Path) -> None:
    (tmp_path / "attached.txt").write_text("one line\n")
    path = str(tmp_path / "attached.txt")

    text = wrapped("Read it", {"type": "file", "path": path}, cwd=tmp_path)

    assert text.replace(DATE, "").replace(REMINDER, "").strip() == (
        f"Read it\n\n\n\n<tagged_files>\n* {path} (1 lines)\n</tagged_files>"
    )


def test_a_selection_precedes_the_date_and_counts_lines_from_one() -> None:
    assert wrapped("Explain", SELECTION) == (
        "<ide_selection>\nThe user has the following text selected in their IDE."
        " This may or may not be related to their request.\n"
        "File: selected-file.cs (line 2)\n```\nvar x;\n```\n</ide_selection>"
        f"\n\n{DATE}\n\nExplain\n\n{REMINDER}"
    )


def test_a_selection_without_a_position_is_shown_without_a_line() -> None:
    bare = {"type": "selection", "filePath": "/a/b.py", "text": "x", "selection": "all"}

    assert "File: b.py\n```\nx\n```" in wrapped("Explain", bare)


def test_references_come_last() -> None:
    assert wrapped("Fix it", ISSUE).endswith(
        f"{REMINDER}\n\n<github_references>\n#1234 - Add E2E attachment coverage [issue] [open]"
        " (https://github.com/github/copilot-sdk/issues/1234)\n</github_references>"
    )


def test_all_parts_come_in_order_separated_by_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b.txt").write_text("1\n2")
    text = wrapped(
        "Go",
        ISSUE,
        {"type": "directory", "path": "a"},
        SELECTION,
        {"type": "file", "path": "b.txt"},
        {"type": "blob", "data": "AAAA", "mimeType": "image/png"},
        {"type": "of tomorrow"},
        cwd=tmp_path,
    )

    selection, date, prompt, reminder, files, references = text.split("\n\n")
    assert selection.startswith("<ide_selection>")
    assert (date, prompt, reminder) == (DATE, "Go", REMINDER)
    assert files == "<tagged_files>\n* a (0 items)\n* b.txt (2 lines)\n</tagged_files>"
    assert references.startswith("<github_references>")


@pytest.mark.parametrize(
    ("content", "lines"),
    [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"a\r\nb\r\n", 2), (b"\n\n", 2), (b"\xff\n", 1)],
)
def test_lines_of_a_file_are_counted(tmp_path: Path, content: bytes, lines: int) -> None:
    (tmp_path / "f").write_bytes(content)

    assert tagged(tmp_path, path="f") == f"* f ({lines} lines)"


def test_a_range_of_lines_is_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1\n2\n3\n")

    assert tagged(tmp_path, path="f", lineRange={"start": 1, "end": 1}) == "* f (line 1 of 3 lines)"
    assert tagged(tmp_path, path="f", lineRange={"start": 2, "end": 3}) == "* f (lines 2-3 of 3 lines)"


def test_a_directory_is_listed_with_its_number_of_entries(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)

    assert tagged(tmp_path, type="directory", path="d") == "* d (1 items)"


@pytest.mark.parametrize("kind", ["file", "directory"])
@pytest.mark.parametrize("path", ["missing", "f/inside", "x" * 300])
def test_an_unreadable_attachment_is_still_named(tmp_path: Path, kind: str, path: str) -> None:
    (tmp_path / "f").write_text("")

    assert tagged(tmp_path, type=kind, path=path) == f"* {path}"


def test_a_directory_attached_as_a_file_and_the_reverse_are_still_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")

    assert tagged(tmp_path, path=".") == "* ."
    assert tagged(tmp_path, type="directory", path="f") == "* f"


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert tagged(tmp_path, path="pipe") == "* pipe"


def test_attachments_without_a_path_are_omitted() -> None:
    assert wrapped("Hi", {"type": "file"}, {"type": "directory", "path": 7}) == wrapped("Hi")
