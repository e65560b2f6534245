"""The log of file changes stays below its limit: old prompts go as a whole, and the latest one stays."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from jumpseat.store.session.file_changes import LARGEST_BYTES, LARGEST_LOG_BYTES, Cause, FileChangeLog, new_change
from jumpseat.store.session.state_files import DiskFiles

pytestmark = pytest.mark.thorough

PROMPTS = 40
SMALL = b"x" * (LARGEST_BYTES // 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "changes.jsonl"


@pytest.mark.thorough
def test_a_log_that_grows_too_large_loses_its_oldest_prompts_as_a_whole(path: Path) -> None:
    log = FileChangeLog(DiskFiles(path.parent))
    files = [Path("/project/a"), Path("/project/b")]
    for number in range(PROMPTS):
        for file in files:
            log.add(
                Cause(f"prompt-{number}", f"do {number}"),
                [new_change(file, file, SMALL, SMALL + str(number).encode())],
            )
            assert path.stat().st_size <= LARGEST_LOG_BYTES

    found = log.read()
    first = PROMPTS - len(found)
    assert 0 < first < PROMPTS - 1
    assert [changes.prompt for changes in found] == [f"do {number}" for number in range(first, PROMPTS)]
    assert all(list(changes.files) == files for changes in found)
    latest = found[-1].files[files[0]]
    assert (latest.before, latest.after, latest.kept) == (SMALL, SMALL + str(PROMPTS - 1).encode(), True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_changes_of_one_file_by_one_prompt_take_the_space_of_one(path: Path) -> None:
    log = FileChangeLog(DiskFiles(path.parent))
    for number in range(2 * PROMPTS):
        change = new_change(
            Path("/project/a"), Path("/project/a"), SMALL + str(number).encode(), SMALL + str(number + 1).encode()
        )
        log.add(Cause("prompt", "go"), [change])

    assert path.stat().st_size <= LARGEST_LOG_BYTES
    (change,) = log.read()[0].files.values()
    assert (change.before, change.after) == (SMALL + b"0", SMALL + str(2 * PROMPTS).encode())


@pytest.mark.thorough
def test_a_prompt_that_changes_more_than_the_log_holds_keeps_the_names_of_all_files(path: Path) -> None:
    log = FileChangeLog(DiskFiles(path.parent))
    files = [Path(f"/project/{number}") for number in range(2 * PROMPTS)]
    for file in files:
        log.add(Cause("prompt", "go"), [new_change(file, file, SMALL, SMALL)])

    assert path.stat().st_size <= LARGEST_LOG_BYTES
    (changes,) = log.read()
    assert list(changes.files) == files
    kept = [change.kept for change in changes.files.values()]
    assert set(kept) == {True, False}


def test_single_files_are_left_out_and_stay_so_in_a_log_that_is_shortened(path: Path) -> None:
    log = FileChangeLog(DiskFiles(path.parent))
    a, b, odd = Path("/project/a"), Path("/project/b"), Path(os.fsdecode(b"/project/\xff"))
    for number in range(2):
        log.add(Cause(str(number), "go"), [new_change(file, file, b"x", b"y") for file in (a, b, odd)])
    log.mark_files_undone("0", [a, odd])
    assert [list(changes.files) for changes in log.read()] == [[b], [a, b, odd]]
    for number in range(2 * PROMPTS):
        log.add(Cause("1", "go"), [new_change(a, a, SMALL + str(number).encode(), SMALL)])
    assert b"undone_files" not in path.read_bytes()
    assert [list(changes.files) for changes in log.read()] == [[b], [a, b, odd]]
    log.mark_files_undone("0", [b])
    assert [list(changes.files) for changes in log.read()] == [[a, b, odd]]


def test_the_changes_of_a_call_are_kept_after_an_undo(path: Path) -> None:
    log = FileChangeLog(DiskFiles(path.parent))
    a = Path("/project/a")
    for interaction, old, new in (("0", b"x", b"y"), ("1", b"y", b"z")):
        log.add(Cause(interaction, "go"), [replace(new_change(a, a, old, new), call="call-1")])
    log.mark_undone("1")
    assert [log.of_call(one, "call-1")[a].before for one in ("0", "1", "unknown")] == [b"x", b"y", b"x"]
    assert log.of_call("0", "call-2") == {}
