"""The entries of the list of sessions, in memory and in a file."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.lowlevel
import orjson
import pytest

from jumpseat.store.session.index import FRESH_S, RECENT, SHARE, SessionIndex
from jumpseat.store.session.table import Entry

pytestmark = pytest.mark.thorough

MANY = 100
"""Enough sessions for the file to be written."""


@dataclass
class Home:
    """A folder with sessions, and processes that list them.

    Sessions are written as programs do it: with a mark while they are open, and ``workspace.yaml`` replaced.
    """

    root: Path
    now: float = 100.0
    examined: list[str] = field(default_factory=list[str])
    slow_s: float = 0.0
    _changes: int = 0

    def open(self, name: str) -> None:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "inuse.1.lock").touch()
        self._age(folder)

    def write(self, name: str, summary: str | None, changed_s: int = 1_000) -> None:
        folder = self.root / name
        (folder / "draft").write_text(summary or "")
        (folder / "draft").replace(folder / "workspace.yaml")
        log = folder / "events.jsonl"
        log.write_text("x" * changed_s)
        os.utime(log, (changed_s, changed_s))
        self._age(folder)

    def close(self, name: str) -> None:
        (self.root / name / "inuse.1.lock").unlink()
        self._age(self.root / name)

    def change(self, name: str, summary: str | None, changed_s: int = 1_000) -> None:
        self.open(name)
        self.write(name, summary, changed_s)
        self.close(name)

    def remove(self, name: str) -> None:
        for file in (self.root / name).iterdir():
            file.unlink()
        (self.root / name).rmdir()

    def process(self, recent: int = RECENT) -> SessionIndex:
        return SessionIndex(self.root, self._examine, lambda name: not name.startswith("."), self._clock, recent)

    def _age(self, folder: Path) -> None:
        """Give a folder a time of its own that is not of the last seconds."""
        self._changes += 1
        os.utime(folder, (self._changes, self._changes))

    def _clock(self) -> float:
        self.now += self.slow_s
        return self.now

    def _examine(self, name: str, _changed_s: float) -> Entry:
        self.examined.append(name)
        summary = (self.root / name / "workspace.yaml").read_text()
        creator = "ann" if name.endswith("7") else None
        return Entry(creator, orjson.dumps([name, summary]) if summary else None)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "session-state")
    for number in range(MANY):
        home.change(f"s{number}", f"prompt {number}", 1_000 + number)
    return home


def listed(index: SessionIndex, open_here: Iterable[str] = ()) -> list[list[str]]:
    found = orjson.loads(b"".join(index.json([*open_here])))
    assert found == [orjson.loads(entry.json or b"null") for entry in index.entries([*open_here])]
    return found


def test_the_next_process_examines_only_what_has_changed_since(home: Home) -> None:
    before = listed(home.process())
    assert sorted(home.examined) == sorted(f"s{number}" for number in range(MANY))
    assert before[0] == [f"s{MANY - 1}", f"prompt {MANY - 1}"]
    home.examined.clear()
    home.change("s7", "another prompt", 9_000)
    home.remove("s8")

    next_process = home.process()
    after = listed(next_process)

    assert home.examined == ["s7"]
    assert after == [["s7", "another prompt"], *(entry for entry in before if entry[0] not in ("s7", "s8"))]
    assert [entry.created_by for entry in next_process.entries([])][:4] == ["ann", None, None, "ann"]


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
    home.change("new", "hello", 9_000)
    home.remove("s8")

    names = [name for name, _ in listed(index)]

    assert names[0] == "new"
    assert "s8" not in names


def test_changes_of_this_process_are_seen_at_once(home: Home) -> None:
    index = home.process()
    listed(index)
    home.change("s1", "while open", 9_000)
    home.change("s2", "before closing", 9_001)
    index.touch("s2")

    found = listed(index, open_here=["s1"])

    assert found[:2] == [["s2", "before closing"], ["s1", "while open"]]


def test_changes_of_sessions_that_another_process_has_open_are_seen_at_once(home: Home) -> None:
    home.open("s1")
    home.change("unprompted", None)
    index = home.process()
    listed(index)
    home.write("s1", "elsewhere", 9_000)
    home.change("unprompted", "the first prompt", 9_001)

    assert listed(index)[:2] == [["unprompted", "the first prompt"], ["s1", "elsewhere"]]


@pytest.mark.parametrize("recent", [RECENT, 0])
def test_sessions_that_another_process_has_opened_since_are_seen_after_a_moment(home: Home, recent: int) -> None:
    index = home.process(recent)
    before = listed(index)
    home.change("s1", "elsewhere", 9_000)

    assert listed(index) == before
    home.now += FRESH_S
    assert listed(index)[0] == ["s1", "elsewhere"]


def test_a_check_that_takes_long_is_repeated_less_often(home: Home) -> None:
    index = home.process()
    home.slow_s = 1.0
    before = listed(index)
    home.slow_s = 0.0
    home.change("s1", "elsewhere", 9_000)

    # Each comparison lists twice.
    home.now += SHARE - 2.0
    assert listed(index) == before
    home.now += 1.0
    assert listed(index)[0] == ["s1", "elsewhere"]


@pytest.mark.thorough
def test_changes_of_many_processes_in_any_order_are_seen(home: Home) -> None:
    chance = random.Random(7)
    index = home.process(recent=10)
    open_elsewhere: set[str] = set()
    for step in range(300):
        changed_s = chance.randrange(100, 2_000)
        name = f"s{chance.randrange(MANY + 20)}"
        match chance.choice(("open", "write", "close", "close", "remove", "process")):
            case "open" if (home.root / name).is_dir() and name not in open_elsewhere:
                home.open(name)
                open_elsewhere.add(name)
            case "write" if name in open_elsewhere:
                home.write(name, f"prompt at step {step}", changed_s)
            case "close" if name in open_elsewhere:
                home.close(name)
                open_elsewhere.remove(name)
            case "remove" if (home.root / name).is_dir() and name not in open_elsewhere:
                home.remove(name)
            case "process" if step % 5 == 0:
                index = home.process(recent=10)
            case _:
                home.change(name, chance.choice((None, f"prompt at step {step}")), changed_s)
                open_elsewhere.discard(name)
        home.now += FRESH_S

        found = listed(index)

        assert sorted(found) == sorted(
            [folder.name, summary]
            for folder in home.root.iterdir()
            if (summary := (folder / "workspace.yaml").read_text())
        )
        times = [(home.root / name / "events.jsonl").stat().st_mtime for name, _ in found]
        assert times == sorted(times, reverse=True)


def test_without_a_folder_there_are_no_sessions(tmp_path: Path) -> None:
    index = Home(tmp_path / "missing").process()

    assert listed(index) == []
    assert listed(index) == []


@pytest.mark.anyio
async def test_a_check_beside_other_tasks_leaves_nothing_to_examine(home: Home) -> None:
    before = listed(home.process())
    home.change("s7", "another prompt", 9_000)
    home.remove("s8")
    home.examined.clear()
    next_process = home.process()

    await next_process.prepare(list)
    assert home.examined == ["s7"]
    home.examined.clear()
    after = listed(next_process)

    assert home.examined == []
    assert after == [["s7", "another prompt"], *(entry for entry in before if entry[0] not in ("s7", "s8"))]


@pytest.mark.anyio
@pytest.mark.parametrize("is_listed_meanwhile", [False, True])
async def test_sessions_that_change_during_a_check_beside_other_tasks_are_seen(
    home: Home, is_listed_meanwhile: bool
) -> None:
    index = home.process()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(index.prepare, list)
        await anyio.lowlevel.checkpoint()
        home.change("new", "a new one", 9_000)
        home.remove("s8")
        index.touch("new")
        if is_listed_meanwhile:
            listed(index)

    found = listed(index)
    assert found[0] == ["new", "a new one"]
    assert sorted(name for name, _ in found) == sorted({"new", *(f"s{n}" for n in range(MANY) if n != 8)})


def test_lists_begin_where_the_last_page_has_ended(home: Home) -> None:
    listed(home.process())
    home.change("s7", "another prompt", 1_000 + MANY // 2)
    index = home.process()
    found = [(orjson.loads(entry.json or b"null"), entry) for entry in index.entries([])]
    for until_s in (1_000 + MANY // 3, 999, 20_000):
        wanted = list(index.entries([], until_s * 10**9))
        expected = [
            entry for (name, _), entry in found if (home.root / name / "events.jsonl").stat().st_mtime <= until_s
        ]
        assert wanted == expected
