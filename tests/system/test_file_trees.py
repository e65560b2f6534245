"""Folders nested deeper than Python's stack are walked and deleted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from jumpseat.store.session.files import WorkspaceFiles
from jumpseat.system.file_trees import delete_folder, walk

LEVELS = sys.getrecursionlimit() + 500


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="needs folders by descriptor")
def test_a_deep_folder_is_walked_and_deleted(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("text")
    (root / "link").symlink_to(tmp_path)
    folder = os.open(root, os.O_RDONLY)
    for _ in range(LEVELS):
        os.mkdir("f", dir_fd=folder)
        inner = os.open("f", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    try:
        found = list(walk(root))
        assert len(found) == LEVELS + 1
        assert sorted(found[0][2]) == ["file", "link"]
        assert anyio.run(WorkspaceFiles(root).names) == ["file"]
    finally:
        delete_folder(root)
    assert not root.exists()
    assert tmp_path.exists()
    assert list(walk(root)) == []
