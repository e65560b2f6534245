"""Outputs that are too large for a model. The text is compared literally by recorded conversations."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from jumpseat.system.private_files import write_new_file
from jumpseat.tools.orchestrator.result_limit import spill


def into(folder: Path) -> Callable[[str, bytes], str]:
    def save(name: str, data: bytes) -> str:
        write_new_file(folder / name, data)
        return str(folder / name)

    return save


def saved(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_the_note_is_literally_that_of_the_contract(tmp_path: Path) -> None:
    text = "x" * 100_000
    note = spill(text, 51200, into(tmp_path))

    path = saved(tmp_path)
    assert note == (
        f"Output too large to read at once (97.7 KB). Saved to: {path}\n"
        "Consider using tools like grep (for searching), head/tail (for viewing start/end), view with view_range"
        " (for specific sections), or jq (for JSON) to examine portions of the output.\n"
        "\n"
        "Preview (first 500 chars):\n" + "x" * 500
    )
    assert path.read_text() == text


def test_the_file_has_the_name_that_recordings_expect(tmp_path: Path) -> None:
    spill("xx", 1, into(tmp_path))

    assert re.fullmatch(r"\d{13}-copilot-tool-output-[a-z0-9]{6}\.txt", saved(tmp_path).name)


@pytest.mark.parametrize(("text", "fits"), [("x" * 10, True), ("x" * 11, False), ("é" * 5, True), ("é" * 6, False)])
def test_the_limit_counts_bytes(tmp_path: Path, text: str, fits: bool) -> None:
    assert (spill(text, 10, into(tmp_path)) == text) is fits
    assert len(list(tmp_path.iterdir())) == (0 if fits else 1)


def test_the_size_is_in_kilobytes_and_the_preview_in_characters(tmp_path: Path) -> None:
    note = spill("é" * 1024, 2047, into(tmp_path))

    assert note.startswith("Output too large to read at once (2.0 KB). ")
    assert note.endswith("\n\nPreview (first 500 chars):\n" + "é" * 500)
    assert saved(tmp_path).read_bytes() == ("é" * 1024).encode()


def test_line_endings_are_kept_in_the_file(tmp_path: Path) -> None:
    spill("a\r\nb\n", 1, into(tmp_path))

    assert saved(tmp_path).read_bytes() == b"a\r\nb\n"


def test_a_missing_folder_is_created(tmp_path: Path) -> None:
    spill("xx", 1, into(tmp_path / "session" / "temp"))

    assert saved(tmp_path / "session" / "temp").read_text() == "xx"


def test_two_outputs_at_the_same_time_have_different_files(tmp_path: Path) -> None:
    for _ in range(20):
        spill("xx", 1, into(tmp_path))

    assert len(list(tmp_path.iterdir())) == 20


def test_the_preview_reaches_the_model_even_if_the_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    note = spill("x" * 600, 10, into(tmp_path / "file"))

    assert note.startswith("Output too large to read at once (0.6 KB). It could not be saved: ")
    assert note.endswith("Preview (first 500 chars):\n" + "x" * 500)
