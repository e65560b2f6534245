"""Memories on disk: scores, other processes, and invalid lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumpseat.agent.memories import Memory
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import StoreError
from jumpseat.store.user import memories
from jumpseat.store.user.memories import MemoryStore
from jumpseat_protocol.sessions import MemoryOptions


def there(folder: Path) -> SessionSettings:
    return SessionSettings(cwd=folder)


def log_of(home: Path) -> Path:
    (path,) = (home / "memories" / "repositories").iterdir()
    return path


def test_storing_a_fact_again_raises_its_score(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path, by_default=False)
    settings = there(tmp_path)
    for fact in ("one", "two", "two", "three"):
        store.store(settings, Memory(fact, subject=f"about {fact}"), "because")
    store.store(settings, Memory("mine", scope="user"), "")
    assert [(memory.fact, memory.score, memory.scope) for memory in store.recall(settings)] == [
        ("two", 2, "repository"),
        ("one", 1, "repository"),
        ("three", 1, "repository"),
        ("mine", 1, "user"),
    ]
    # Another process, in another folder.
    assert [memory.fact for memory in MemoryStore(tmp_path, by_default=False).recall(there(Path("/else")))] == [
        "mine"
    ]


def test_a_memory_with_score_zero_is_forgotten_and_can_be_stored_again(tmp_path: Path) -> None:
    store, settings = MemoryStore(tmp_path, by_default=False), there(tmp_path)
    store.store(settings, Memory("one", subject="old"), "")
    store.vote(settings, Memory("one"), -1, "it is not so")
    assert store.recall(settings) == []
    store.store(settings, Memory("one", subject="new"), "")
    assert store.recall(settings) == [Memory("one", subject="new")]


def test_invalid_lines_are_ignored_and_a_torn_line_affects_no_other(tmp_path: Path) -> None:
    store, settings = MemoryStore(tmp_path, by_default=False), there(tmp_path)
    store.store(settings, Memory("one"), "")
    path = log_of(tmp_path)
    with path.open("ab") as file:
        file.write(b'\n[1]\n{"fact": 3, "vote": 1}\n{"fact": "x", "vote": "1"}\n\xff\n{"fact": "torn", "vo')
    store.store(settings, Memory("two"), "")
    assert [memory.fact for memory in store.recall(settings)] == ["one", "two"]


def test_a_long_log_is_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "COMPACTED_BYTES", 2000)
    monkeypatch.setattr(memories, "MAX_COMPACTED", 3)
    store, settings = MemoryStore(tmp_path, by_default=False), there(tmp_path)
    for _ in range(5):
        store.store(settings, Memory("often", subject="s", citations="c"), "")
    for number in range(30):
        store.store(settings, Memory(f"fact {number}"), "")
    path = log_of(tmp_path)
    assert path.stat().st_size <= 2000
    found = store.recall(settings)
    assert found[0] == Memory("often", subject="s", citations="c", score=5)
    assert found[-1].fact == "fact 29"


def test_a_failed_write_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "memories").write_text("in the way")
    store, settings = MemoryStore(tmp_path, by_default=True), there(tmp_path)
    with pytest.raises(StoreError, match="cannot write the memories: Not a directory"):
        store.store(settings, Memory("one"), "")
    assert store.recall(settings) == []
    assert store.enabled(settings)
    settings.set_options(memory=MemoryOptions(enabled=False))
    assert not store.enabled(settings)
