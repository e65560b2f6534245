"""Walk and delete folders of any depth: commands can nest folders deeper than Python's stack.

``os.walk`` (before Python 3.12) and ``shutil.rmtree`` call themselves for each level.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def walk(folder: Path | str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the paths of ``folder`` and of all folders below, each with the names of its folders and other entries.

    Links are not followed, and are among the other entries. Folders that cannot be read are left out.
    """
    waiting = [os.fspath(folder)]
    while waiting:
        path = waiting.pop()
        folders: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
        except OSError:
            continue
        yield path, folders, others
        waiting += [os.path.join(path, name) for name in folders]


def delete_folder(folder: Path) -> None:
    """Delete a folder with its contents, as far as possible."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        with suppress(OSError):
            subprocess.run(["rm", "-rf", "--", str(folder)], check=False, stderr=subprocess.DEVNULL)
