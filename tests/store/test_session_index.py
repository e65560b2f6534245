"""The entries of the list of sessions, in memory and in a file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from jumpseat.store.session_index import FRESH_S, Entry, SessionIndex, State

MANY = 100
"""Enough sessions for the file to be written."""


@dataclass
class Home:
    """A folder with sessions, and processes that list them."""

    root: Path
    now: float = 100.0
    examined: list[str] = field(default_factory=list[str])

    def write(self, name: str, summary: str | None, changed_s: int = 1_000) -> None:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "workspace.yaml").write_text(summary or "")
        log = folder / "events.jsonl"
        log.write_text("x" * changed_s)
        os.utime(log, (changed_s, changed_s))

    def remove(self, name: str) -> None:
        for file in (self.root / name).iterdir():
            file.unlink()
        (self.root / name).rmdir()

    def process(self) -> SessionIndex:
        return SessionIndex(self.root, self._examine, lambda name: not name.startswith("."), lambda: self.now)

    def _examine(self, name: str, state: State, _changed_s: float) -> Entry:
        self.examined.append(name)
        summary = (self.root / name / "workspace.yaml").read_text()
        return Entry(state, None, orjson.dumps([name, summary]) if summary else None)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "session-state")
    for number in range(MANY):
        home.write(f"s{number}", f"prompt {number}", 1_000 + number)
    return home


def listed(index: SessionIndex, open_here: Iterable[str] = ()) -> list[list[str]]:
    return orjson.loads(index.joined([*open_here]))


def test_the_next_process_examines_only_what_has_changed_since(home: Home) -> None:
    before = listed(home.process())
    assert sorted(home.examined) == sorted(f"s{number}" for number in range(MANY))
    assert before[0] == [f"s{MANY - 1}", f"prompt {MANY - 1}"]
    home.examined.clear()
    home.write("s7", "another prompt", 9_000)
    home.remove("s8")

    after = listed(home.process())

    assert home.examined == ["s7"]
    assert after == [["s7", "another prompt"], *(entry for entry in before if entry[0] not in ("s7", "s8"))]


@pytest.mark.parametrize("damage", [b"", b"not an index", None, b"0" * 32 + b"\n[]"])
def test_a_damaged_file_is_ignored_and_replaced(home: Home, damage: bytes | None) -> None:
    before = listed(home.process())
    path = home.root.parent / "session-index"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    home.examined.clear()

    assert listed(home.process()) == before
    assert len(home.examined) == MANY
    assert path.stat().st_mode & 0o777 == 0o600
    home.examined.clear()
    assert listed(home.process()) == before
    assert home.examined == []


def test_new_and_removed_sessions_of_other_processes_are_seen_at_once(home: Home) -> None:
    index = home.process()
    listed(index)
    home.write("new", "hello", 9_000)
    home.remove("s8")

    names = [name for name, _ in listed(index)]

    assert names[0] == "new"
    assert "s8" not in names


def test_changes_of_this_process_are_seen_at_once(home: Home) -> None:
    index = home.process()
    listed(index)
    home.write("s1", "while open", 9_000)
    home.write("s2", "before closing", 9_001)
    index.touch("s2")

    found = listed(index, open_here=["s1"])

    assert found[:2] == [["s2", "before closing"], ["s1", "while open"]]


def test_changes_of_other_processes_are_seen_after_a_moment(home: Home) -> None:
    home.write("unprompted", None)
    index = home.process()
    listed(index)
    home.write("s1", "elsewhere", 9_000)
    home.write("unprompted", "the first prompt", 9_001)

    assert listed(index)[0] == ["unprompted", "the first prompt"]
    home.now += FRESH_S
    assert listed(index)[:2] == [["unprompted", "the first prompt"], ["s1", "elsewhere"]]


def test_without_a_folder_there_are_no_sessions(tmp_path: Path) -> None:
    index = Home(tmp_path / "missing").process()

    assert listed(index) == []
    assert listed(index) == []
