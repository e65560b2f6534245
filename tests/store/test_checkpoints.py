"""Checkpoints: the files with the summaries of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumpseat.errors import StoreError
from jumpseat.store.session.checkpoints import Checkpoints
from jumpseat.store.session.state_files import DiskFiles


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(DiskFiles(tmp_path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


def numbers(checkpoints: Checkpoints) -> list[int]:
    return [checkpoint.number for checkpoint in checkpoints.list()]


def test_a_new_checkpoint_gets_a_number_above_all_others(checkpoints: Checkpoints) -> None:
    assert [checkpoints.add("One", "text", after=0).number for _ in range(2)] == [1, 2]
    assert checkpoints.add("Later", "text", after=7).number == 8
    assert numbers(checkpoints) == [1, 2, 8]
    assert checkpoints.read(8) == "# Later\n\ntext\n"
    assert checkpoints.read(3) is None


@pytest.mark.parametrize(
    ("title", "name", "shown"),
    [
        ("Fix the parser!", "001-fix-the-parser.md", "Fix the parser!"),
        ("../../etc/passwd", "001-etc-passwd.md", "../../etc/passwd"),
        ("\n two\nlines ", "001-two-lines.md", "two lines"),
        ("", "001-checkpoint.md", "Checkpoint"),
        ("日本", "001-checkpoint.md", "日本"),
        ("\ud83d", "001-checkpoint.md", "?"),
        ("word " * 50, "001-" + "word-" * 9 + "word.md", ("word " * 16).strip()),
    ],
)
def test_any_title_makes_a_valid_file_name(
    checkpoints: Checkpoints, folder: Path, title: str, name: str, shown: str
) -> None:
    kept = checkpoints.add(title, "text", after=0)
    assert (kept.filename, kept.path) == (name, str(folder / name))
    assert (folder / name).is_file()
    assert [checkpoint.title.strip() for checkpoint in checkpoints.list()] == [shown]


def test_other_files_are_ignored_and_left_alone(checkpoints: Checkpoints, folder: Path) -> None:
    checkpoints.add("One", "text", after=0)
    (folder / "notes.md").write_text("mine")
    (folder / "002-folder.md").mkdir()
    assert numbers(checkpoints)[0] == 1
    assert checkpoints.read(2) is None
    checkpoints.drop_after(5)
    assert (folder / "notes.md").read_text() == "mine"


def test_checkpoints_above_a_number_can_be_removed(checkpoints: Checkpoints, folder: Path) -> None:
    for title in ("one", "two", "three"):
        checkpoints.add(title, "text", after=0)
    checkpoints.drop_after(1)
    assert numbers(checkpoints) == [1]
    index = (folder / "index.md").read_text()
    assert "[one]" in index
    assert "[two]" not in index


def test_a_missing_folder_counts_as_empty(checkpoints: Checkpoints, tmp_path: Path) -> None:
    checkpoints.drop_after(0)
    checkpoints.copy_to(Checkpoints(DiskFiles(tmp_path / "other")), up_to=9)
    assert checkpoints.list() == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_created_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(StoreError, match="cannot write"):
        Checkpoints(DiskFiles(tmp_path)).add("one", "text", after=0)
