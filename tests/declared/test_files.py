"""Reading declaration files."""

from __future__ import annotations

import os
from pathlib import Path

from jumpseat.declared.files import run_python


def test_a_change_of_the_same_second_and_size_is_seen_and_no_bytecode_is_written(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    for word in ("city", "town"):
        path.write_text(f"word = '{word}'\n")
        os.utime(path, (1_000_000, 1_000_000))
        module = run_python(path, "jumpseat_test")
        assert module.word == word
    assert [file.name for file in tmp_path.iterdir()] == ["mine.py"]
